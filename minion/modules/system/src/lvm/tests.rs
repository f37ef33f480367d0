//! Listings, removal and sizes, with the output of LVM 2.03.16.

use brine_value::list;

use super::*;
use crate::testing::{Scripted, answers, context_with};

// As written by LVM 2.03.16.
#[test]
fn volumes_are_listed() {
    let context = context_with(
        map! {},
        Scripted::new(
            r#"
            $ lvm version
            |   LVM version:     2.03.16(2) (2022-05-18)
            |   Library version: 1.02.185 (2022-05-18)
            $ pvdisplay -c
            |   /dev/loop0:vg0:131072:-1:8:8:-1:4096:15:13:2:nr6leo-d1ui-fsbt-Lwnf-xkdl-XcZ2-VdR8vI
            |   "/dev/loop1" is a new physical volume of "64.00 MiB"
            |   /dev/loop1::131072:-1:0:0:-1:0:0:0:0:xj0CZ4-RMCw-sjHT-VNcG-pAcd-ZTHH-9Vf1Ee
            $ pvdisplay -c /dev/null
            |   /dev/null:vg0:131072:-1:8:8:-1:4096:15:13:2:nr6leo-d1ui-fsbt-Lwnf-xkdl-XcZ2-VdR8vI
            $ pvdisplay -c /dev/none
            !   Cannot use /dev/none: device not found
            = 5
            $ vgdisplay -c vg0
            |   vg0:r/w:772:-1:0:0:0:-1:0:1:1:61440:4096:15:0:15:YZgzPF-Eqeg-TX26-HLoT-WH55-rmPk-iEwsht
            $ vgdisplay -c none
            !   Volume group "none" not found
            !   Cannot process volume group none
            = 5
            $ lvdisplay -c /dev/vg0/lv0
            |   /dev/vg0/lv0:vg0:3:0:-1:0:16384:2:-1:0:-1:-1:-1
            "#,
        ),
    );
    insta::assert_snapshot!(answers(&context, &[
        ("lvm.version", list![], map! {}),
        ("lvm.fullversion", list![], map! {}),
        ("lvm.pvdisplay", list![], map! {}),
        ("lvm.pvdisplay", list!["/dev/null"], map! {"real" => true}),
        ("lvm.pvdisplay", list!["/dev/none"], map! {"quiet" => true}),
        ("lvm.vgdisplay", list!["vg0"], map! {}),
        ("lvm.vgdisplay", list!["none"], map! {}),
        ("lvm.lvdisplay", list!["/dev/vg0/lv0"], map! {}),
        ("lvm.lvdisplay", list!["--all"], map! {}),
    ]), @r#"
    lvm.version: "2.03.16(2) (2022-05-18)"
    lvm.fullversion: {"LVM version": "2.03.16(2) (2022-05-18)", "Library version": "1.02.185 (2022-05-18)"}
    lvm.pvdisplay: {"/dev/loop0": {"Physical Volume Device": "/dev/loop0", "Volume Group Name": "vg0", "Physical Volume Size (kB)": "131072", "Internal Physical Volume Number": "-1", "Physical Volume Status": "8", "Physical Volume (not) Allocatable": "8", "Current Logical Volumes Here": "-1", "Physical Extent Size (kB)": "4096", "Total Physical Extents": "15", "Free Physical Extents": "13", "Allocated Physical Extents": "2"}, "/dev/loop1": {"Physical Volume Device": "/dev/loop1", "Volume Group Name": "", "Physical Volume Size (kB)": "131072", "Internal Physical Volume Number": "-1", "Physical Volume Status": "0", "Physical Volume (not) Allocatable": "0", "Current Logical Volumes Here": "-1", "Physical Extent Size (kB)": "0", "Total Physical Extents": "0", "Free Physical Extents": "0", "Allocated Physical Extents": "0"}}
    lvm.pvdisplay: {"/dev/null": {"Physical Volume Device": "/dev/null", "Volume Group Name": "vg0", "Physical Volume Size (kB)": "131072", "Internal Physical Volume Number": "-1", "Physical Volume Status": "8", "Physical Volume (not) Allocatable": "8", "Current Logical Volumes Here": "-1", "Physical Extent Size (kB)": "4096", "Total Physical Extents": "15", "Free Physical Extents": "13", "Allocated Physical Extents": "2", "Real Physical Volume Device": "/dev/null"}}
    lvm.pvdisplay: {}
    lvm.vgdisplay: {"vg0": {"Volume Group Name": "vg0", "Volume Group Access": "r/w", "Volume Group Status": "772", "Internal Volume Group Number": "-1", "Maximum Logical Volumes": "0", "Current Logical Volumes": "0", "Open Logical Volumes": "0", "Maximum Logical Volume Size": "-1", "Maximum Physical Volumes": "0", "Current Physical Volumes": "1", "Actual Physical Volumes": "1", "Volume Group Size (kB)": "61440", "Physical Extent Size (kB)": "4096", "Total Physical Extents": "15", "Allocated Physical Extents": "0", "Free Physical Extents": "15", "UUID": "YZgzPF-Eqeg-TX26-HLoT-WH55-rmPk-iEwsht"}}
    lvm.vgdisplay: {}
    lvm.lvdisplay: {"/dev/vg0/lv0": {"Logical Volume Name": "/dev/vg0/lv0", "Volume Group Name": "vg0", "Logical Volume Access": "3", "Logical Volume Status": "0", "Internal Logical Volume Number": "-1", "Open Logical Volumes": "0", "Logical Volume Size": "16384", "Current Logical Extents Associated": "2", "Allocated Logical Extents": "-1", "Allocation Policy": "0", "Read Ahead Sectors": "-1", "Major Device Number": "-1", "Minor Device Number": "-1"}}
    lvm.lvdisplay: ERROR: '--all' cannot be used: it starts with '-' or is empty
    "#);
}

#[test]
fn volumes_are_removed_and_resized() {
    let context = context_with(
        map! {},
        Scripted::new(
            r#"
            $ pvdisplay -c /dev/a
            |   /dev/a:vg0:131072:-1:8:8:-1:4096:15:13:2:nr6leo
            $ pvdisplay -c /dev/a
            = 5
            $ pvdisplay -c /dev/b
            |   /dev/b:vg0:131072:-1:8:8:-1:4096:15:13:2:nr6leo
            $ pvdisplay -c /dev/none
            = 5
            $ pvremove --yes /dev/a
            |   Labels on physical volume "/dev/a" successfully wiped.
            $ pvremove -qq /dev/b
            !   PV /dev/b is used by VG vg0 so please use vgreduce first.
            = 5
            $ pvresize --yes /dev/b
            |   1 physical volume(s) resized or updated / 0 physical volume(s) not resized
            $ vgextend vg0 -qq /dev/a /dev/b
            $ vgextend vg0 --yes /dev/none
            !   Cannot use /dev/none: device not found
            = 5
            $ vgremove vg0 --yes
            $ lvremove vg0/lv0 -qq
            !   Failed to find logical volume "vg0/lv0"
            = 5
            $ lvresize --force --resizefs -L 16M /dev/vg0/lv0
            $ lvextend -qq -l +100%FREE /dev/vg0/lv0
            "#,
        ),
    );
    insta::assert_snapshot!(answers(&context, &[
        ("lvm.pvremove", list!["/dev/a,/dev/none"], map! {}),
        ("lvm.pvremove", list!["/dev/none"], map! {"override" => false}),
        ("lvm.pvremove", list!["/dev/none"], map! {}),
        ("lvm.pvremove", list![list!["/dev/b"]], map! {"force" => false}),
        ("lvm.pvresize", list!["/dev/b"], map! {}),
        ("lvm.vgextend", list!["vg0", "/dev/a,/dev/b"], map! {}),
        ("lvm.vgextend", list!["vg0", "/dev/none"], map! {"force" => true}),
        ("lvm.vgextend", list!["vg0", ""], map! {}),
        ("lvm.vgremove", list!["vg0"], map! {}),
        ("lvm.lvremove", list!["lv0", "vg0"], map! {"force" => false}),
        ("lvm.lvresize", list!["16M", "/dev/vg0/lv0"], map! {"force" => true, "resizefs" => true}),
        ("lvm.lvresize", list![], map! {"lvpath" => "/dev/vg0/lv0"}),
        ("lvm.lvextend", list![], map! {"lvpath" => "/dev/vg0/lv0", "extents" => "+100%FREE"}),
    ]), @r#"
    lvm.pvremove: true
    lvm.pvremove: "/dev/none is not a physical volume"
    lvm.pvremove: true
    lvm.pvremove: "  PV /dev/b is used by VG vg0 so please use vgreduce first."
    lvm.pvresize: true
    lvm.vgextend: {"Output from vgextend": "Volume group \"vg0\" successfully extended"}
    lvm.vgextend: {"Output from vgextend": "Cannot use /dev/none: device not found"}
    lvm.vgextend: "Error: vgname and device(s) are both required"
    lvm.vgremove: "Volume group \"vg0\" successfully removed"
    lvm.lvremove: "Failed to find logical volume \"vg0/lv0\""
    lvm.lvresize: {"Output from lvresize": "Logical volume \"/dev/vg0/lv0\" successfully resized."}
    lvm.lvresize: {}
    lvm.lvextend: {"Output from lvextend": "Logical volume \"/dev/vg0/lv0\" successfully extended."}
    "#);
}
