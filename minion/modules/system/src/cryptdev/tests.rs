use brine_value::list;

use super::*;
use crate::testing::{Scripted, answers, context_with};

#[test]
fn devices_are_mapped_and_unmapped() {
    let programs = Scripted::new(
        "
            $ dmsetup ls --target crypt
            | swap\t(254, 0)
            | data\t(254:1)
            $ cryptsetup open --key-file /key /dev/sdz1 data
            $ cryptsetup open --key-file /none /dev/sdz1 data
            ! Failed to open key file.
            = 1
            $ cryptsetup close data
            ",
    );
    let context = context_with(map! {}, programs);
    insta::assert_snapshot!(answers(&context, &[
        ("cryptdev.active", list![], map! {}),
        ("cryptdev.open", list!["data", "/dev/sdz1", "/key"], map! {}),
        ("cryptdev.open", list!["data", "/dev/sdz1", "/none"], map! {}),
        ("cryptdev.open", list!["data", "/dev/sdz1", "none"], map! {}),
        ("cryptdev.open", list!["-x", "/dev/sdz1", "/key"], map! {}),
        ("cryptdev.close", list!["data"], map! {}),
    ]), @r#"
        cryptdev.active: {"swap": {"devname": "swap", "major": "254", "minor": "0"}, "data": {"devname": "data", "major": "254", "minor": "1"}}
        cryptdev.open: true
        cryptdev.open: false
        cryptdev.open: ERROR: For immediate crypt device mapping, keyfile must not be none
        cryptdev.open: ERROR: '-x' cannot be used: it starts with '-' or is empty
        cryptdev.close: true
        "#);
    assert_eq!(mapped("No devices found"), None);
}

#[test]
fn entries_are_listed_set_and_removed() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().display().to_string();
    std::fs::write(&path, "# <target> <source>\nswap  /dev/sda2 /dev/urandom swap,size=256\nswap /dev/sdb none\n")
        .unwrap();
    let context = context_with(map! {}, Scripted::new(""));
    let config = || map! {"config" => &path};
    let with = |more: Map| config().into_iter().chain(more).collect::<Map>();
    insta::assert_snapshot!(answers(&context, &[
        ("cryptdev.crypttab", list![], config()),
        ("cryptdev.set_crypttab", list!["data", "/dev/sdc", "/key", list!["luks", "discard"]], config()),
        ("cryptdev.set_crypttab", list!["data", "/dev/sdc", "/key", "luks,discard"], config()),
        ("cryptdev.set_crypttab", list!["data", "/dev/sdd"], with(map! {"test" => true})),
        ("cryptdev.set_crypttab", list!["swap", "/dev/sdb", "/key"], with(map! {"match_on" => list!["name", "device"]})),
        ("cryptdev.set_crypttab", list!["swap", "/dev/sdb"], with(map! {"match_on" => "colour"})),
        ("cryptdev.set_crypttab", list!["a b", "/dev/sdb"], config()),
        ("cryptdev.rm_crypttab", list!["none"], config()),
        ("cryptdev.crypttab", list!["/no/such"], map! {}),
        ("cryptdev.rm_crypttab", list!["x", "/no/such"], map! {}),
    ]).replace(&path, "FILE"), @r#"
        cryptdev.crypttab: {"swap": {"device": "/dev/sda2", "password": "/dev/urandom", "options": ["swap", "size=256"]}, "swap_": {"device": "/dev/sdb", "password": "none", "options": [""]}}
        cryptdev.set_crypttab: "new"
        cryptdev.set_crypttab: "present"
        cryptdev.set_crypttab: "change"
        cryptdev.set_crypttab: "change"
        cryptdev.set_crypttab: ERROR: Unrecognized keys in match_on: "colour"
        cryptdev.set_crypttab: ERROR: name is invalid: expected a word without blanks, got 'a b'
        cryptdev.rm_crypttab: "absent"
        cryptdev.crypttab: {}
        cryptdev.rm_crypttab: ERROR: Bad config file "/no/such"
        "#);
    insta::assert_snapshot!(std::fs::read_to_string(&path).unwrap(), @r#"
        # <target> <source>
        swap  /dev/sda2 /dev/urandom swap,size=256
        swap         /dev/sdb                                     /key
        data         /dev/sdc                                     /key                   luks,discard
        "#);
    assert_eq!(
        answers(&context, &[("cryptdev.rm_crypttab", list!["swap"], config())]),
        "cryptdev.rm_crypttab: \"change\""
    );
    assert!(!std::fs::read_to_string(&path).unwrap().contains("swap"));
}
