use brine_testing::Scripted;
use brine_value::list;

use super::*;
use crate::testing::context_with;

#[test]
fn packages_are_installed_and_removed() {
    let listed = r#"$ npm list --json --silent --global --depth=0
            | {"dependencies": {"a": {"version": "1.0"}, "@s/b": {"version": "2.0", "resolved": "git+https://x/b.git"}}}
            "#;
    let one = |name: &str| map! {"name" => name};
    for (function, keyword, test, more, result, comment) in [
        ("npm.installed", one("a"), false, "", Some(true), "Package(s) 'a' satisfied by a@1.0"),
        ("npm.installed", one("a@1.0"), false, "", Some(true), "Package(s) 'a@1.0' satisfied by a@1.0"),
        ("npm.installed", one("@s/b@2.0"), false, "", Some(true), "Package(s) '@s/b@2.0' satisfied by @s/b@2.0"),
        (
            "npm.installed",
            one("https://x/b.git"),
            false,
            "",
            Some(true),
            "Package(s) 'https://x/b.git' satisfied by @s/b@2.0",
        ),
        ("npm.installed", one("a@1.1"), true, "", None, "NPM package(s) 'a@1.1' are set to be installed"),
        (
            "npm.installed",
            map! {"name" => "n", "pkgs" => list!["a", "c"]},
            true,
            "",
            None,
            "NPM package(s) 'c' are set to be installed. Package(s) 'a, c' satisfied by a@1.0",
        ),
        (
            "npm.installed",
            one("c"),
            false,
            "$ npm install --json --loglevel=error --global c\n",
            Some(true),
            "Package(s) 'c' successfully installed",
        ),
        (
            "npm.installed",
            map! {"name" => "a", "force_reinstall" => true},
            false,
            "$ npm install --json --loglevel=error --global a\n! no network\n= 1\n",
            Some(false),
            "Error installing 'a': no network",
        ),
        ("npm.removed", one("c"), false, "", Some(true), "Package 'c' is not installed"),
        ("npm.removed", one("a"), true, "", None, "Package 'a' is set to be removed"),
        (
            "npm.removed",
            one("a"),
            false,
            "$ npm uninstall a --global\n",
            Some(true),
            "Package 'a' was successfully removed",
        ),
        (
            "npm.removed",
            one("a"),
            false,
            "$ npm uninstall a --global\n= 1\n",
            Some(false),
            "Error removing package 'a'",
        ),
        (
            "npm.cache_cleaned",
            one("a"),
            false,
            "$ npm cache ls a\n| /c/a/\n$ npm cache ls\n| /c\n| /c/a/\n$ npm cache clean a\n",
            Some(true),
            "Cached a successfully removed",
        ),
        (
            "npm.cache_cleaned",
            one("b"),
            false,
            "$ npm cache ls b\n$ npm cache ls\n| /c\n",
            Some(true),
            "Package b is not in the cache",
        ),
        (
            "npm.cache_cleaned",
            map! {"name" => Value::Nil},
            true,
            "$ npm cache ls\n| /c\n",
            None,
            "Cached packages set to be removed",
        ),
        (
            "npm.bootstrap",
            one("/srv"),
            false,
            "$ npm install --json --loglevel=error\n| {\"added\": 1}\n",
            Some(true),
            "Directory was successfully bootstrapped",
        ),
        (
            "npm.bootstrap",
            one("/srv"),
            true,
            "$ npm install --json --loglevel=error --dry-run\n| {\"added\": 0, \"changed\": 0}\n",
            Some(true),
            "/srv is already bootstrapped",
        ),
    ] {
        let programs = Scripted::new(&format!("{listed}{more}"));
        let call = context_with(map! {}, programs);
        let context = brine_testing::state_context(test, call.clone());
        let report = call.minion.states.call(&context, function, Args::keyword(keyword.clone())).unwrap();
        let got = (report.get("result").and_then(Value::as_bool), report.get("comment").unwrap().to_string());
        assert_eq!(got, (result, comment.to_owned()), "{function} {keyword:?}");
    }
}
