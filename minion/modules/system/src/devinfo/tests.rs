use brine_value::json::to_json;
use brine_value::list;

use super::*;
use crate::testing::{Scripted, context_with};

#[test]
fn disks_are_chosen_by_their_properties() {
    let transcript = "
            $ udevadm info --export --query=all --name=sda
            | S: by-id/one
            | S: by-id/two
            | E: ID_BUS=ata
            $ udevadm info --export --query=all --name=sdb
            | S: by-id/three
            | E: ID_BUS=usb
        ";
    let context = context_with(map! {"disks" => list!["sdb", "sda"]}, Scripted::new(transcript));
    for (criteria, without, expected) in [
        (map! {}, map! {}, list!["sda", "sdb"]),
        (map! {"e.id_bus" => "ata"}, map! {}, list!["sda"]),
        (map! {"e.id_bus" => list!["ata", "usb"]}, map! {"s" => "by-id/two"}, list!["sdb"]),
        (map! {"e.none" => "n/a"}, map! {}, list!["sda", "sdb"]),
        (map! {"e" => "x"}, map! {}, list!["sda", "sdb"]),
        (map! {"s" => list!["by-id/two", "by-id/three"]}, map! {"e.id_bus" => "ata"}, list!["sdb"]),
    ] {
        assert_eq!(filter(&context, criteria.clone(), without.clone()).unwrap(), expected, "{criteria:?} {without:?}");
    }
}

#[test]
fn hardware_is_described_with_grains() {
    let grains = map! {"efi" => false, "mem_total" => 5, "fqdn" => "a.b", "disks" => list![]};
    let programs = Scripted::new("$ hwinfo ...\n| cpu:\n|                        Some CPU, 2400 MHz");
    let context = context_with(grains, programs.clone());
    let all = hwinfo(&context, Value::Nil, true, false, Value::Nil).unwrap();
    insta::assert_snapshot!(to_json(&all), @r#"{"hwinfo": {"cpu": {"0": "Some CPU, 2400 MHz"}}, "bios grains": {"efi": false, "efi-secure-boot": null}, "memory grains": {"mem_total": 5}, "network grains": {"fqdn": "a.b", "ip_interfaces": null}}"#);
    let some = hwinfo(&context, list!["disk"], false, true, list!["/dev/sda"]).unwrap();
    insta::assert_snapshot!(to_json(&some), @r#"{"hwinfo": {"cpu": {"": "", "Note": "Some CPU, 2400 MHz"}}}"#);
    insta::assert_snapshot!(programs.ran(), @r"
        hwinfo --bios --cpu --disk --memory --network --partition --short
        hwinfo --disk --listmd --only /dev/sda
        ");
    assert!(hwinfo(&context, list!["--help"], true, false, Value::Nil).is_err());
}
