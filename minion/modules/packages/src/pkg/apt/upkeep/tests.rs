use brine_value::list;

use super::*;
use crate::testing::{Scripted, answers, context_with};

fn on_debian() -> Map {
    map! {"id" => "m", "os" => "Debian", "os_family" => "Debian", "osarch" => "amd64"}
}

// As written by apt 2.6, dpkg 1.21, gpg 2.2 and debian-goodies 0.88.
#[test]
fn apt_and_dpkg_output_is_parsed() {
    let programs = Scripted::new(
        "
            $ apt-get --assume-no autoremove
            | Reading package lists...
            | The following packages will be REMOVED:
            |   libb1 liba1
            | 0 upgraded, 0 newly installed, 2 to remove and 0 not upgraded.
            | Abort.
            = 1
            $ apt-cache show gawk
            | Package: gawk
            | Version: 1:5.2.1-2
            | Description-en: GNU awk
            |  a long: text
            | Section: interpreters
            |
            | Package: gawk
            | Version: 1:5.1.0-1
            | Section: interpreters
            $ dpkg -S /etc/hostname
            ! dpkg-query: no path found matching pattern /etc/hostname
            = 1
            $ dpkg -S /etc
            | base-files: /etc
            $ checkrestart --machine --package
            | PROCESSES: 2
            | SERVICE:ssh,1,openssh-server
            | SERVICE:cron,2,cron
            $ dpkg --get-selections '*'
            | vim    install
            | nano   hold
            $ dpkg --set-selections
            ",
    );
    let context = context_with(on_debian(), programs.clone());
    insta::assert_snapshot!(answers(&context, &[
        ("pkg.autoremove", list![true], map! {}),
        ("pkg.show", list!["gawk"], map! {"filter" => "section, Version"}),
        ("pkg.show", list!["-o"], map! {}),
        ("pkg.show", list![], map! {}),
        ("pkg.which", list!["/etc/hostname"], map! {}),
        ("pkg.which", list!["/etc"], map! {}),
        ("pkg.which", list!["etc"], map! {}),
        ("pkg.services_need_restart", list![], map! {}),
        ("pkg.parse_arch", list!["zsh:amd64"], map! {}),
        ("pkg.parse_arch", list!["zsh"], map! {}),
        ("pkg.set_selections", list![], map! {"selection" => map! {"hold" => list!["vim", "nano"]}}),
        ("pkg.set_selections", list![], map! {"selection" => "vim"}),
        ("pkg.set_selections", list![], map! {"selection" => map! {"keep" => "vim"}}),
        ("pkg.set_selections", list![], map! {"selection" => map! {"hold" => "vim install\nnano"}}),
        ("pkg.set_selections", list!["salt://x"], map! {"selection" => map! {"hold" => "vim"}}),
        ("pkg.set_selections", list![], map! {}),
    ]), @r#"
        pkg.autoremove: ["liba1", "libb1"]
        pkg.show: {"gawk": {"1:5.2.1-2": {"Section": "interpreters"}, "1:5.1.0-1": {"Section": "interpreters"}}}
        pkg.show: ERROR: '-o' cannot be used: it starts with '-' or is empty
        pkg.show: {}
        pkg.which: null
        pkg.which: "base-files"
        pkg.which: false
        pkg.services_need_restart: ["cron", "ssh"]
        pkg.parse_arch: {"name": "zsh", "arch": "amd64"}
        pkg.parse_arch: {"name": "zsh", "arch": null}
        pkg.set_selections: {"vim": {"old": "install", "new": "hold"}}
        pkg.set_selections: ERROR: selection is invalid: expected a mapping from states to packages
        pkg.set_selections: ERROR: Invalid state(s): keep
        pkg.set_selections: ERROR: the package name 'vim install
        nano' is invalid: expected no whitespace
        pkg.set_selections: ERROR: The 'selection' and 'path' arguments to pkg.set_selections are mutually exclusive, and cannot be specified together
        pkg.set_selections: {}
        "#);
    let elsewhere = context_with(map! {"os_family" => "RedHat"}, Scripted::new(""));
    assert!(elsewhere.call("pkg.show", Args::positional(["x".into()])).is_err());
}

#[test]
fn keys_are_parsed() {
    let text = "tru::1:1\npub:-:4096:1:B7B:1500::-:::scSC::::::23::0:\nfpr:::::::::ABCD:\nuid:-::::1500::X::Debian <a@b>::::::::::0:\n\
                sub:-:4096:1:C8C:1600:1700:::::s::::::23:\nfpr:::::::::EF01:\n";
    let subkey = map! {
        "algorithm" => 1, "bits" => 4096, "capability" => "s", "date_creation" => 1600, "date_expiration" => 1700,
        "keyid" => "C8C", "validity" => "-", "fingerprint" => "EF01",
    };
    let parsed_keys = keys(text);
    assert_eq!(parsed_keys.get("B7B").and_then(|key| key.get("subkey")), Some(&subkey.into()));
    assert_eq!(parsed_keys.get("B7B").and_then(|key| key.get("fingerprint")), Some(&"ABCD".into()));
    assert_eq!(parsed_keys.get("B7B").and_then(|key| key.get("uid")), Some(&"Debian <a@b>".into()));
    assert_eq!(keys("fpr:::::::::ABCD:\nsub:x\n"), Map::new());
}

#[test]
fn downloaded_packages_are_found_below_the_cache() {
    let directory = tempfile::tempdir().unwrap();
    let below = directory.path().join("archives/partial");
    std::fs::create_dir_all(&below).unwrap();
    for name in ["a.deb", "b.txt"] {
        std::fs::write(below.join(name), "x").unwrap();
    }
    assert_eq!(packages_below(directory.path(), MAX_DEPTH), [below.join("a.deb")]);
    assert_eq!(packages_below(directory.path(), 1), Vec::<PathBuf>::new());
}
