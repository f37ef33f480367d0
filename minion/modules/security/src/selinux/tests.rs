use brine_value::list;

use super::*;
use crate::testing::{Scripted, answers, context_with};

// As written by policycoreutils 3.4.
#[test]
fn booleans_and_modules_are_listed_and_set() {
    let programs = Scripted::new(
        "
            $ semanage boolean --list
            | SELinux boolean                State  Default Description
            |
            | aide_mmap_files                (off  ,  on)  Allow aide to mmap files
            $ setsebool aide_mmap_files=on
            $ setsebool -P a=off b=1
            ! Could not change active booleans: Invalid boolean
            = 255
            $ semodule --list-modules=full
            | 100 accountsd       pp
            | 400 old             pp disabled
            $ semodule --disable accountsd
            $ semodule --install /m.pp
            $ semodule --remove none
            ! libsemanage.semanage_direct_remove_key: Unable to remove module none
            = 1
            ",
    );
    let context = context_with(map! {}, programs);
    insta::assert_snapshot!(answers(&context, &[
        ("selinux.list_sebool", list![], map! {}),
        ("selinux.getsebool", list!["aide_mmap_files"], map! {}),
        ("selinux.getsebool", list!["none"], map! {}),
        ("selinux.setsebool", list!["aide_mmap_files", true], map! {}),
        ("selinux.setsebools", list![map! {"a" => "off", "b" => 1}], map! {"persist" => true}),
        ("selinux.setsebool", list!["-x", true], map! {}),
        ("selinux.list_semod", list![], map! {}),
        ("selinux.getsemod", list!["old"], map! {}),
        ("selinux.setsemod", list!["accountsd", "Disabled"], map! {}),
        ("selinux.setsemod", list!["accountsd", "maybe"], map! {}),
        ("selinux.install_semod", list!["/m.pp"], map! {}),
        ("selinux.remove_semod", list!["none"], map! {}),
    ]), @r#"
        selinux.list_sebool: {"aide_mmap_files": {"State": "off", "Default": "on", "Description": "Allow aide to mmap files"}}
        selinux.getsebool: {"State": "off", "Default": "on", "Description": "Allow aide to mmap files"}
        selinux.getsebool: {}
        selinux.setsebool: true
        selinux.setsebools: false
        selinux.setsebool: ERROR: '-x=on' cannot be used: it starts with '-' or is empty
        selinux.list_semod: {"accountsd": {"Enabled": true, "Version": null}, "old": {"Enabled": false, "Version": null}}
        selinux.getsemod: {"Enabled": false, "Version": null}
        selinux.setsemod: true
        selinux.setsemod: ERROR: Invalid state maybe
        selinux.install_semod: true
        selinux.remove_semod: false
        "#);
}
