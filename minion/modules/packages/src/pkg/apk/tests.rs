use brine_value::{list, map};

use super::*;
use crate::testing::{self, Scripted};

#[test]
fn names_and_versions_are_split() {
    let pair = |name: &str, version: &str| Some((name.to_owned(), version.to_owned()));
    for (text, expected) in [
        ("brine-one-1.0-r0", pair("brine-one", "1.0-r0")),
        ("musl-1.2.4_git20230717-r4", pair("musl", "1.2.4_git20230717-r4")),
        ("so:libc.musl-x86_64.so.1", None),
        ("", None),
    ] {
        assert_eq!(split(text), expected, "{text}");
    }
}

#[test]
fn simulated_changes_are_parsed() {
    let text = "(1/3) Upgrading musl (1.2.4-r1 -> 1.2.4-r2)\n(2/3) Installing pcre2 (10.42-r1)\n\
                (3/3) Upgrading git (2.40.1-r0 -> 2.40.3-r0)\nOK: 23 MiB in 40 packages\n";
    let expected = [("git", "2.40.3-r0"), ("musl", "1.2.4-r2")];
    let expected = expected.map(|(name, version)| (name.to_owned(), version.to_owned()));
    assert_eq!(planned(text, &["Upgrading"]), expected.into());
}

#[test]
fn output_of_apk_policy_is_parsed() {
    let text = "git policy:\n  2.40.1-r0:\n    lib/apk/db/installed\n  2.40.3-r0:\n    https://example.org/main\n";
    assert_eq!(policy(text), ["2.40.1-r0", "2.40.3-r0"]);
}

#[test]
fn packages_are_managed() {
    let script = "
            $ apk info -v
            | brine-one-1.0-r0
            | brine-two-2.0_rc1-r3
            $ apk policy brine-one
            | brine-one policy:
            |   1.0-r0:
            |     lib/apk/db/installed
            |   1.1-r0:
            |     https://example.org/main
            $ apk policy nosuch
            $ apk version -t 1.1-r0 1.0-r0
            | >
            $ apk version -t 1.1-r0 1.0
            | >
            $ apk add brine-one=1.1-r0
            $ apk add nosuch
            | ERROR: unable to select packages:
            |   nosuch (no such package):
            |     required by: world[nosuch]
            = 1
            $ apk del brine-two
            $ apk upgrade --simulate
            | (1/1) Upgrading brine-one (1.0-r0 -> 1.1-r0)
            | OK: 8 MiB in 15 packages
            $ apk update
            $ apk info -W /bin/sh
            | /bin/sh symlink target is owned by busybox-1.36.1-r5
            $ apk info -W /nosuch
            ! ERROR: /nosuch: Could not find owner package
            = 1
            $ apk info -L brine-one
            | brine-one-1.0-r0 contains:
            | usr/share/brine-one/version
            |
        ";
    let calls = [
        ("pkg.list_pkgs", list![], map! {}),
        ("pkg.latest_version", list!["brine-one", "nosuch"], map! {}),
        ("pkg.list_upgrades", list![], map! {"refresh" => false}),
        ("pkg.refresh_db", list![], map! {}),
        ("pkg.install", list![], map! {"name" => "brine-one", "version" => ">1.0"}),
        ("pkg.install", list!["nosuch"], map! {}),
        ("pkg.remove", list!["brine-two"], map! {}),
        ("pkg.owner", list!["/bin/sh", "/nosuch"], map! {}),
        ("pkg.file_list", list!["brine-one"], map! {}),
        ("pkg.version_cmp", list!["1.1-r0", "1.0-r0"], map! {}),
        ("pkg.unhold", list!["brine-one"], map! {}),
        ("pkg.get_repo", list!["x"], map! {}),
    ];
    let context = testing::context_with(map! {"os_family" => "Alpine"}, Scripted::new(script));
    insta::assert_snapshot!(testing::answers(&context, &calls), @r#"
        pkg.list_pkgs: {"brine-one": "1.0-r0", "brine-two": "2.0_rc1-r3"}
        pkg.latest_version: {"brine-one": "1.1-r0", "nosuch": ""}
        pkg.list_upgrades: {"brine-one": "1.1-r0"}
        pkg.refresh_db: true
        pkg.install: {}
        pkg.install: ERROR: Problem encountered installing package(s). Additional info follows:

        changes:
            ----------
        errors:
            - ERROR: unable to select packages:
                nosuch (no such package):
                  required by: world[nosuch]
        pkg.remove: {}
        pkg.owner: {"/bin/sh": "busybox", "/nosuch": ""}
        pkg.file_list: {"errors": [], "files": ["/usr/share/brine-one/version"]}
        pkg.version_cmp: 1
        pkg.unhold: 'pkg.unhold' is not available.
        pkg.get_repo: 'pkg.get_repo' is not available.
        "#);
}
