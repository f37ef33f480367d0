use brine_value::json::to_json;

use super::*;

const SHORT: &str = "cpu:
                       Intel(R) CPU, 2400 MHz
                       Intel(R) CPU, 2401 MHz
disk:
  /dev/sda             ATA Disk
network:
  eth0                 Virtio Ethernet Card 0
";
const FULL: &str = r#"01: None 00.0: 10105 BIOS
  [Created at bios.186]
  Unique ID: rdCR.lZF+r4EgHp4
  Hardware Class: bios
  BIOS Keyboard LED Status:
    Scroll Lock: off
    Num Lock: off
  Base Memory: 639 kB
  MP spec rev 1.4 info:
    OEM id: "BOCHSCPU"
  Config Status: cfg=new, avail=yes, need=no, active=unknown

02: IDE 00.0: 10600 Disk
  Model: "QEMU HARDDISK"
  Driver: "ata_piix", "sd"
  Driver Modules: "ata_piix"
  Device File: /dev/sda
  Device Files: /dev/sda, /dev/disk/by-id/ata-1, /dev/disk/by-path/pci-1
  I/O Port: 0x1f0 (rw)
  I/O Port: 0x3f6 (rw)
  Attached to: #3 (IDE interface)
    Size: 5
  El Torito info: platform x86, bootable
    Boot Catalog: at sector 0x00fa
"#;

/// The expected results are those of Salt 3008.5.
#[test]
fn descriptions_are_parsed_as_salt_parses_them() {
    assert_eq!(to_json(&short(SHORT)), include_str!("../short.json").trim());
    assert_eq!(to_json(&full(FULL)), include_str!("../full.json").trim());
    assert_eq!(full("x\n  y\n    z: 1\n"), Value::map());
    assert_eq!(short(""), Value::map());
}
