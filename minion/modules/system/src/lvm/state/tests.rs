//! Tests of states with the reports of LVM.

use super::*;
use crate::testing::applied;

const NONE: &str = "= 5\n";

fn pv(group: &str) -> String {
    format!("$ pvdisplay -c /dev/null\n| /dev/null:{group}:131072:-1:8:8:-1:4096:15:13:2:nr6leo\n")
}

fn lv(sectors: u32, extents: u32) -> String {
    format!("$ lvdisplay -c /dev/vg0/lv0\n| /dev/vg0/lv0:vg0:3:0:-1:0:{sectors}:{extents}:-1:0:-1:-1:-1\n")
}

#[test]
fn volumes_are_created_and_removed() {
    let no_pv = format!("$ pvdisplay -c /dev/null\n{NONE}");
    let no_vg = format!("$ vgdisplay -c vg0\n{NONE}");
    let no_lv = format!("$ lvdisplay -c /dev/vg0/lv0\n{NONE}");
    let vg = "$ vgdisplay -c vg0\n| vg0:r/w:772:-1:0:0:0:-1:0:1:1:61440:4096:15:0:15:YZgzPF\n".to_owned();
    let (pv_name, vg_name) = (map! {"name" => "/dev/null"}, map! {"name" => "vg0"});
    let with_device = map! {"name" => "vg0", "devices" => "/dev/null"};
    let lv_name = map! {"name" => "lv0", "vgname" => "vg0", "size" => "8M"};
    let lv_gone = map! {"name" => "lv0", "vgname" => "vg0"};
    for (function, keyword, test, transcript, result, comment, changed) in [
        ("lvm.pv_present", &pv_name, false, pv(""), Some(true), "Physical Volume /dev/null already present", ""),
        ("lvm.pv_present", &pv_name, true, no_pv.clone(), None, "Physical Volume /dev/null is set to be created", ""),
        (
            "lvm.pv_present",
            &pv_name,
            false,
            format!("{no_pv}{no_pv}{}$ pvcreate --yes /dev/null\n", pv("")),
            Some(true),
            "Created Physical Volume /dev/null",
            "created",
        ),
        (
            "lvm.pv_present",
            &pv_name,
            false,
            format!("{no_pv}$ pvcreate --yes /dev/null\n{NONE}"),
            Some(false),
            "Failed to create Physical Volume /dev/null",
            "",
        ),
        ("lvm.pv_absent", &pv_name, false, no_pv.clone(), Some(true), "Physical Volume /dev/null does not exist", ""),
        (
            "lvm.pv_absent",
            &pv_name,
            false,
            format!("{}{}{no_pv}$ pvremove --yes /dev/null\n", pv(""), pv("")),
            Some(true),
            "Removed Physical Volume /dev/null",
            "removed",
        ),
        (
            "lvm.vg_present",
            &with_device,
            false,
            format!("{no_vg}{no_vg}{vg}$ vgcreate vg0 /dev/null -qq\n"),
            Some(true),
            "Created Volume Group vg0",
            "created",
        ),
        ("lvm.vg_present", &with_device, true, no_vg.clone(), None, "Volume Group vg0 is set to be created", ""),
        (
            "lvm.vg_present",
            &with_device,
            false,
            format!("{vg}{}", pv("vg0")),
            Some(true),
            "Volume Group vg0 already present\n/dev/null is part of Volume Group",
            "",
        ),
        (
            "lvm.vg_present",
            &with_device,
            false,
            format!("{vg}{}", pv("vg1")),
            Some(false),
            "Volume Group vg0 already present\n/dev/null is part of vg1",
            "",
        ),
        (
            "lvm.vg_present",
            &with_device,
            false,
            format!("{vg}{no_pv}"),
            Some(false),
            "Volume Group vg0 already present\npv /dev/null is not present",
            "",
        ),
        (
            "lvm.vg_present",
            &with_device,
            false,
            format!("{vg}{}{}$ vgextend vg0 -qq /dev/null\n", pv(""), pv("vg0")),
            Some(true),
            "Volume Group vg0 already present",
            "/dev/null",
        ),
        (
            "lvm.vg_present",
            &with_device,
            true,
            format!("{vg}{}", pv("")),
            None,
            "Volume Group vg0 already present",
            "/dev/null",
        ),
        ("lvm.vg_absent", &vg_name, false, no_vg.clone(), Some(true), "Volume Group vg0 already absent", ""),
        (
            "lvm.vg_absent",
            &vg_name,
            false,
            format!("{vg}$ vgremove vg0 --yes\n{NONE}"),
            Some(false),
            "Failed to remove Volume Group vg0",
            "",
        ),
        ("lvm.lv_present", &lv_name, true, no_lv.clone(), None, "Logical Volume lv0 is set to be created", ""),
        (
            "lvm.lv_present",
            &lv_name,
            false,
            format!("{no_lv}{}$ lvcreate -n lv0 vg0 -L 8M -qq\n", lv(16384, 2)),
            Some(true),
            "Created Logical Volume lv0",
            "created",
        ),
        (
            "lvm.lv_present",
            &lv_name,
            false,
            format!("{no_lv}$ lvcreate -n lv0 vg0 -L 8M -qq\n! no space\n{NONE}"),
            Some(false),
            "Failed to create Logical Volume lv0. Error: no space",
            "",
        ),
        ("lvm.lv_absent", &lv_gone, false, no_lv.clone(), Some(true), "Logical Volume lv0 already absent", ""),
        (
            "lvm.lv_absent",
            &lv_gone,
            false,
            format!("{}{no_lv}$ lvremove vg0/lv0 --yes\n", lv(16384, 2)),
            Some(true),
            "Removed Logical Volume lv0",
            "removed",
        ),
    ] {
        let report = applied(function, keyword.clone(), test, &transcript);
        assert_eq!((report.result, &*report.comment), (result, comment), "{function} {transcript}");
        let has = report.changes.get(changed).is_some() || (changed.is_empty() && !report.changes.is_truthy());
        assert!(has, "{function} {comment}: {}", report.changes);
    }
}

#[test]
fn volumes_are_resized() {
    let volume = |key: &str, value: Value, force: bool| {
        map! {"name" => "lv0", "vgname" => "vg0", key => value, "force" => force}
    };
    let before = lv(16384, 2);
    for (keyword, test, more, result, comment) in [
        (volume("size", "8M".into(), false), false, String::new(), Some(true), "Logical Volume lv0 already present"),
        (
            volume("size", "16384s".into(), false),
            false,
            String::new(),
            Some(true),
            "Logical Volume lv0 already present",
        ),
        (volume("extents", 2.into(), false), false, String::new(), Some(true), "Logical Volume lv0 already present"),
        (
            volume("extents", "50%FREE".into(), false),
            false,
            String::new(),
            Some(true),
            "Logical Volume lv0 already present, 50%FREE won't be resized.",
        ),
        (
            volume("size", 4.into(), false),
            false,
            String::new(),
            Some(false),
            "To reduce a Logical Volume option 'force' must be True.",
        ),
        (volume("size", "16MB".into(), false), true, String::new(), None, "Logical Volume lv0 is set to be resized"),
        (
            volume("size", "16M".into(), false),
            false,
            format!("{}$ lvresize -qq -L 16M /dev/vg0/lv0\n", lv(32768, 4)),
            Some(true),
            "Resized Logical Volume lv0",
        ),
        (
            volume("extents", 1.into(), true),
            false,
            format!("{}$ lvresize --force -l 1 /dev/vg0/lv0\n", lv(8192, 1)),
            Some(true),
            "Resized Logical Volume lv0",
        ),
        (
            volume("size", "1T".into(), false),
            false,
            "$ lvresize -qq -L 1T /dev/vg0/lv0\n! no space\n= 5\n".into(),
            Some(false),
            "Failed to resize Logical Volume lv0.\nError: no space",
        ),
    ] {
        let report = applied("lvm.lv_present", keyword, test, &format!("{before}{more}"));
        assert_eq!((report.result, &*report.comment), (result, comment));
    }
    for (size, expected) in [
        ("5", Some(5.0)),
        ("2g", Some(2048.0)),
        ("1TB", Some(1_048_576.0)),
        ("4096s", Some(2.0)),
        ("x", None),
        ("5q", None),
        ("", None),
    ] {
        assert_eq!(megabytes(&size.into()).ok(), expected, "{size}");
    }
}
