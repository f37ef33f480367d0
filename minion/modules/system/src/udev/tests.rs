use brine_value::{list, map};

use super::*;
use crate::testing::{Scripted, answers, context_with};

const SDA: &str = "
        | P: /devices/pci0/block/sda
        | N: sda
        | L: 0
        | S: disk/by-id/ata-1
        | S: disk/by-path/pci-1
        | E: DEVNAME=/dev/sda
        | E: SUBSYSTEM=block
        | E: MAJOR=8
        | E: ID_REVISION=1.50
        | E: ID_SERIAL=a=b
        | E: ID_LONG=123456789012345678901234567890
        |
        | P: /devices/net/eth0
        | E: SUBSYSTEM=net
        | E: INTERFACE=eth0
    ";

#[test]
fn devices_match_salt() {
    let transcript = format!(
        "$ udevadm info --export --query=all --name=/dev/sda\n{SDA}\n$ udevadm info --export-db\n{SDA}
            $ udevadm info --export --query=all --path=/sys/none\n! Unknown device\n= 1"
    );
    let context = context_with(map! {"os_family" => "Debian"}, Scripted::new(&transcript));
    let mut calls: Vec<(&str, Value, Map)> = ["udev.info", "udev.env", "udev.name", "udev.path", "udev.links"]
        .map(|name| (name, list!["/dev/sda"], map! {}))
        .to_vec();
    calls.push(("udev.info", list!["/sys/none"], map! {}));
    calls.push(("udev.exportdb", list![], map! {}));
    calls.push(("udev.exportdb", list![list!["net", "usb"]], map! {}));
    calls.push(("udev.exportdb", list!["net"], map! {}));
    insta::assert_snapshot!(answers(&context, &calls), @r#"
        udev.info: {"P": "/devices/pci0/block/sda", "N": "sda", "L": "0", "S": ["disk/by-id/ata-1", "disk/by-path/pci-1"], "E": {"DEVNAME": "/dev/sda", "SUBSYSTEM": "block", "MAJOR": 8, "ID_REVISION": 1.5, "ID_SERIAL": "a=b", "ID_LONG": "123456789012345678901234567890"}}
        udev.env: {"DEVNAME": "/dev/sda", "SUBSYSTEM": "block", "MAJOR": 8, "ID_REVISION": 1.5, "ID_SERIAL": "a=b", "ID_LONG": "123456789012345678901234567890"}
        udev.name: "sda"
        udev.path: "/devices/pci0/block/sda"
        udev.links: ["disk/by-id/ata-1", "disk/by-path/pci-1"]
        udev.info: ERROR: Unknown device
        udev.exportdb: [{"P": "/devices/pci0/block/sda", "N": "sda", "L": "0", "S": ["disk/by-id/ata-1", "disk/by-path/pci-1"], "E": {"DEVNAME": "/dev/sda", "SUBSYSTEM": "block", "MAJOR": 8, "ID_REVISION": 1.5, "ID_SERIAL": "a=b", "ID_LONG": "123456789012345678901234567890"}}, {"P": "/devices/net/eth0", "E": {"SUBSYSTEM": "net", "INTERFACE": "eth0"}}]
        udev.exportdb: [{"P": "/devices/net/eth0", "E": {"SUBSYSTEM": "net", "INTERFACE": "eth0"}}]
        udev.exportdb: ERROR: subsystems must be a list
        "#);
}
