use brine_value::{list, map};

use crate::testing::{Scripted, answers, context_with};

// As written by npm 11.19.
#[test]
fn packages_are_installed_listed_and_removed() {
    let programs = Scripted::new(
        r#"
            $ npm install --json --loglevel=error mine@1.0.0
            $ npm install --json --loglevel=error --global --registry=http://r old
            | npm WARN old
            | {"added": [1]}
            $ npm install --json --loglevel=error --global --dry-run nosuch
            | {
            |   "error": {"code": "E404", "summary": "Not Found - GET https://registry.npmjs.org/nosuch"}
            | }
            = 1
            $ npm uninstall mine
            | removed 1 package in 327ms
            $ npm uninstall none --global
            ! npm error
            = 1
            $ npm list --json --silent --global --depth=0
            | {
            |   "name": "lib",
            |   "dependencies": {"npm": {"version": "11.19.1", "overridden": false}}
            | }
            $ npm list --json --silent nosuch
            | {}
            = 1
            $ npm cache clean --force
            $ npm cache ls x
            | x-1.0.tgz
            $ npm config get cache
            | /root/.npm
            "#,
    );
    let context = context_with(map! {}, programs);
    insta::assert_snapshot!(answers(&context, &[
        ("npm.install", list!["mine@1.0.0"], map! {"dir" => "/srv"}),
        ("npm.install", list![], map! {"pkgs" => list!["old"], "registry" => "http://r"}),
        ("npm.install", list!["nosuch"], map! {"dry_run" => true}),
        ("npm.install", list!["--unsafe-perm"], map! {}),
        ("npm.uninstall", list!["mine", "/srv"], map! {}),
        ("npm.uninstall", list!["none"], map! {}),
        ("npm.list", list![], map! {"depth" => 0}),
        ("npm.list", list!["nosuch", "/srv"], map! {}),
        ("npm.cache_clean", list![], map! {"force" => true}),
        ("npm.cache_list", list!["x"], map! {}),
        ("npm.cache_path", list![], map! {}),
    ]), @r#"
        npm.install: ""
        npm.install: {"added": [1]}
        npm.install: ERROR: Not Found - GET https://registry.npmjs.org/nosuch
        npm.install: ERROR: '--unsafe-perm' cannot be used: it starts with '-' or is empty
        npm.uninstall: true
        npm.uninstall: false
        npm.list: {"npm": {"version": "11.19.1", "overridden": false}}
        npm.list: {}
        npm.cache_clean: true
        npm.cache_list: "x-1.0.tgz"
        npm.cache_path: "/root/.npm"
        "#);
}
