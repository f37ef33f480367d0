use brine_value::json::to_json;

use super::*;
use crate::testing::{Scripted, context_with};

const LSSCSI: &str = "\
[0:0:0:0]    disk    ATA      Samsung SSD 840  DB6Q  /dev/sda [8:0]  500GB
  device_blocked=0
  iocounterbits=32
  dir: /sys/bus/scsi/devices/0:0:0:0  [/sys/devices/pci0000:00/host0/target0:0:0/0:0:0:0]
[1:0:0:0]    cd/dvd  HL-DT-ST DVD RAM          1.00  /dev/sr0 [11:0]        -
";

#[test]
fn devices_match_salt() {
    insta::assert_snapshot!(to_json(&devices(LSSCSI, true).into()), @r#"{"[0:0:0:0]": {"lun": "0:0:0:0", "size": "500GB", "major": "8", "minor": "0", "device": "/dev/sda", "model": "Samsung SSD 840 DB6Q", "device_blocked": "0", "iocounterbits": "32", "dir": ["/sys/bus/scsi/devices/0:0:0:0", "/sys/devices/pci0000:00/host0/target0:0:0/0:0:0:0"]}, "[1:0:0:0]": {"lun": "1:0:0:0", "size": "-", "major": "11", "minor": "0", "device": "/dev/sr0", "model": "DVD RAM 1.00"}}"#);
    let short = "[0:0:0:0]    disk    ATA      Samsung  DB6Q  /dev/sda [8:0]\n";
    insta::assert_snapshot!(to_json(&devices(short, false).into()), @r#"{"[0:0:0:0]": {"lun": "0:0:0:0", "size": null, "major": "8", "minor": "0", "device": "/dev/sda", "model": "Samsung DB6Q"}}"#);
}

#[test]
fn failures_are_reported_in_one_line() {
    let grains = || map! {"os_family" => "Debian"};
    let none = context_with(grains(), Scripted::new(""));
    assert_eq!(ls(&none, true).unwrap(), "scsi.ls not available - lsscsi command not found".into());
    let old = "$ lsscsi -dLsv\n! lsscsi: invalid option -- 's'\n! usage\n= 1";
    let old = context_with(grains(), Scripted::new(old));
    assert_eq!(ls(&old, true).unwrap(), "lsscsi: invalid option -- 's' - try get_size=False".into());
}

#[test]
fn only_hosts_are_scanned() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(root.path().join("host0")).unwrap();
    std::fs::create_dir_all(root.path().join("other")).unwrap();
    assert_eq!(rescan(root.path(), "0").unwrap(), list![]);
    assert_eq!(std::fs::read_to_string(root.path().join("host0/scan")).unwrap(), "- - -\n");
    for host in ["1", "", "0/../other", "../other", "x"] {
        assert_eq!(rescan(root.path(), host).unwrap(), format!("Host {host} does not exist").into());
    }
    assert!(!root.path().join("other/scan").exists());
}
