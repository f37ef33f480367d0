//! `scsi`: SCSI devices.

use std::path::Path;

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Function, function, registry};
use brine_value::{Map, Value, list, map};

pub(super) static MODULE: Module = Module { functions: &[FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `scsi`.
pub static FUNCTIONS: &[Function<Context>] = registry!("scsi", [ls, rescan_all]);

/// Return the SCSI devices with their attributes, as `lsscsi` reports them.
///
/// get_size
///     Whether the sizes are returned, which old releases of `lsscsi` cannot.
///
/// CLI Example:
///
///     salt '*' scsi.ls
///     salt '*' scsi.ls get_size=False
#[function]
pub fn ls(context: &Context, #[default(true)] get_size: bool) -> CallResult {
    if context.minion.programs.find("lsscsi").is_none() {
        context.set_retcode(1);
        return Ok("scsi.ls not available - lsscsi command not found".into());
    }
    let flags = if get_size { "-dLsv" } else { "-dLv" };
    let output = run(context, &["lsscsi".to_owned(), flags.to_owned()], &[])?;
    if output.retcode != 0 {
        context.set_retcode(output.retcode);
        let error = output.stderr.lines().next().unwrap_or_default();
        let hint = if error == "lsscsi: invalid option -- 's'" { " - try get_size=False" } else { "" };
        return Ok(format!("{error}{hint}").into());
    }
    Ok(devices(&output.stdout, get_size).into())
}

/// Rescan a SCSI host, by its number, for new devices.
///
/// CLI Example:
///
///     salt '*' scsi.rescan_all 0
#[function]
pub fn rescan_all(_context: &Context, host: String) -> CallResult {
    rescan(Path::new("/sys/class/scsi_host"), &host)
}

fn rescan(hosts: &Path, host: &str) -> CallResult {
    let directory = hosts.join(format!("host{host}"));
    if host.is_empty() || !host.bytes().all(|byte| byte.is_ascii_digit()) || !directory.is_dir() {
        return Ok(format!("Host {host} does not exist").into());
    }
    // Any channel, target and unit.
    std::fs::write(directory.join("scan"), "- - -\n").map_err(CallError::execution)?;
    Ok(list![])
}

fn devices(text: &str, get_size: bool) -> Map {
    let mut found = Map::new();
    let mut current: Option<Map> = None;
    let mut key = Value::Nil;
    for line in text.lines() {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        if line.starts_with('[') {
            if let Some(device) = current.take() {
                found.insert(key.clone(), device.into());
            }
            key = words.first().copied().unwrap_or_default().into();
            let size = if get_size { words.pop() } else { None };
            let numbers = words.pop().filter(|word| word.starts_with('[')).map(|word| word.replace(['[', ']'], ""));
            let (major, minor) = numbers.as_deref().and_then(|numbers| numbers.split_once(':')).unzip();
            let device = words.pop();
            current = Some(map! {
                "lun" => key.to_string().replace(['[', ']'], ""),
                "size" => size,
                "major" => major,
                "minor" => minor,
                "device" => device,
                "model" => words.get(3..).unwrap_or_default().join(" "),
            });
        } else if let (true, Some(device)) = (line.starts_with(' '), &mut current) {
            if let ["dir:" | "dir", first, second] = words[..] {
                device.insert("dir".into(), list![first, second.replace(['[', ']'], "")]);
            } else if let Some((name, value)) = line.trim().split_once('=') {
                device.insert(name.into(), value.into());
            }
        }
    }
    if let Some(device) = current {
        found.insert(key, device.into());
    }
    found
}

#[cfg(test)]
mod tests {
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
}
