use brine_value::{list, map};

use super::*;
use crate::testing::{self, Scripted};

#[test]
fn output_of_pacman_is_parsed() {
    let text = "brine-one 1.1-1\nbrine-two 1:1.0-1\ndownloading core.db...\nno pair at all\n";
    let expected = [("brine-one", "1.1-1"), ("brine-two", "1:1.0-1")];
    assert_eq!(pairs(text), expected.map(|(name, version)| (name.to_owned(), version.to_owned())).into());
    let text = "case brine-one 1.1-1 [installed: 1.0-1]\ncase brine-two 1:1.0-1\nother brine-one 1.0-1\n";
    assert_eq!(repository_versions(text, "brine-one", &[]), ["1.1-1", "1.0-1"]);
    assert_eq!(repository_versions(text, "brine-one", &["other".into()]), ["1.0-1"]);
}

#[test]
fn refreshed_databases_are_parsed() {
    let text =
        ":: Synchronizing package databases...\n case downloading...\n core is up to date\ndownloading extra.db...\n";
    assert_eq!(refreshed(text), map! {"case" => true, "core" => false, "extra" => true});
}

/// Transcripts of pacman 6.0, shortened.
#[test]
fn packages_are_managed() {
    let script = "
            $ pacman -Q
            | brine-one 1.0-1
            | brine-two 1:1.0-1
            $ pacman -Sp --needed --print-format '%n %v' brine-one
            | brine-lib 3-1
            | brine-one 1.1-1
            $ pacman -Sp --needed --print-format '%n %v' nosuch
            ! error: target not found: nosuch
            = 1
            $ pacman -S -p -u --print-format '%n %v'
            | brine-lib 3-1
            | brine-one 1.1-1
            $ pacman -Sl
            | case brine-one 1.1-1
            | case brine-two 1:1.0-1
            $ vercmp 1.1-1 1.0-1
            | 1
            $ vercmp 1.1-1 1.0
            | 1
            $ vercmp 1.1-1 9
            | -1
            $ pacman -S --noprogressbar --noconfirm --needed brine-one=1.1-1
            $ pacman -S --noprogressbar --noconfirm --needed nosuch
            ! error: target not found: nosuch
            = 1
            $ pacman -R --noprogressbar --noconfirm brine-two
            ! error: failed to prepare transaction (could not satisfy dependencies)
            = 1
            $ pacman -Rsc --noprogressbar --noconfirm brine-two
            $ pacman -Sy
            | :: Synchronizing package databases...
            |  case downloading...
            $ pacman -Qqo /etc/passwd
            ! error: No package owns /etc/passwd
            = 1
            $ pacman -Ql brine-one nosuch
            | brine-one /usr/share/brine one/
            ! error: package 'nosuch' was not found
            = 1
        ";
    let one = |version: &str| map! {"name" => "brine-one", "version" => version};
    let calls = [
        ("pkg.list_pkgs", list![], map! {}),
        ("pkg.latest_version", list!["brine-one", "nosuch"], map! {}),
        ("pkg.list_upgrades", list![], map! {"refresh" => false}),
        ("pkg.refresh_db", list![], map! {}),
        ("pkg.install", list![], one(">1.0")),
        ("pkg.install", list![], one(">9")),
        ("pkg.install", list!["nosuch"], map! {}),
        ("pkg.remove", list!["brine-two"], map! {}),
        ("pkg.purge", list!["brine-two"], map! {}),
        ("pkg.owner", list!["/etc/passwd"], map! {}),
        ("pkg.file_list", list!["brine-one", "nosuch"], map! {}),
        ("pkg.hold", list!["brine-one"], map! {}),
        ("pkg.list_repos", list![], map! {}),
    ];
    let context = testing::context_with(map! {"os_family" => "Arch"}, Scripted::new(script));
    insta::assert_snapshot!(testing::answers(&context, &calls), @r#"
        pkg.list_pkgs: {"brine-one": "1.0-1", "brine-two": "1:1.0-1"}
        pkg.latest_version: {"brine-one": "1.1-1", "nosuch": ""}
        pkg.list_upgrades: {"brine-one": "1.1-1"}
        pkg.refresh_db: {"case": true}
        pkg.install: {}
        pkg.install: ERROR: Problem encountered installing package(s). Additional info follows:

        changes:
            ----------
        errors:
            - No version matching 'brine-one>9' could be found (available: 1.1-1)
        pkg.install: ERROR: Problem encountered installing package(s). Additional info follows:

        changes:
            ----------
        errors:
            - error: target not found: nosuch
        pkg.remove: ERROR: Problem encountered removing package(s). Additional info follows:

        changes:
            ----------
        errors:
            - error: failed to prepare transaction (could not satisfy dependencies)
        pkg.purge: {}
        pkg.owner: ""
        pkg.file_list: {"errors": ["error: package 'nosuch' was not found"], "files": ["/usr/share/brine one/"]}
        pkg.hold: 'pkg.hold' is not available.
        pkg.list_repos: 'pkg.list_repos' is not available.
        "#);
}
