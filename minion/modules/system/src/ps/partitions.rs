//! `ps`: mounted partitions.

use std::fs;

use brine_context::Context;
use brine_function::{CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};

use crate::status::read;

use super::host::usage_of;

/// Execution functions of `ps`.
pub static FUNCTIONS: Functions<Context> = registry!("ps", [disk_partitions, disk_partition_usage]);

/// Return the mounted partitions of disks, or with `all` all file systems: device, mount point, type and options.
///
/// CLI Example:
///
///     salt '*' ps.disk_partitions
#[function]
pub fn disk_partitions(
    _context: &Context,
    /// Whether file systems without a device are listed, too.
    #[default(false)]
    all: bool,
) -> CallResult {
    Ok(partitions(all)?.into_iter().map(Value::from).collect())
}

/// Return the mounted partitions, or with `all` all file systems, and their usage in bytes.
///
/// CLI Example:
///
///     salt '*' ps.disk_partition_usage
#[function]
pub fn disk_partition_usage(
    _context: &Context,
    /// Whether file systems without a device are listed, too.
    #[default(false)]
    all: bool,
) -> CallResult {
    let with_usage = partitions(all)?.into_iter().map(|mut about| {
        let path = about.get("mountpoint").map(ToString::to_string).unwrap_or_default();
        about.extend(usage_of(&path)?);
        Ok(Value::from(about))
    });
    with_usage.collect()
}

fn partitions(all: bool) -> Result<Vec<Map>, brine_function::CallError> {
    let types = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    Ok(parse(&read("/proc/self/mounts")?, &types, all))
}

/// Parses the lines of `/proc/self/mounts`. Without `all`, only file systems whose type needs a device are returned.
fn parse(mounts: &str, types: &str, all: bool) -> Vec<Map> {
    let is_of_disks = |fstype: &str| fstype == "zfs" || types.lines().any(|line| line.trim_start() == fstype);
    let line = |line: &str| {
        let mut words = line.split(' ');
        let (device, mountpoint, fstype, opts) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let device = if device == "none" { String::new() } else { unescaped(device) };
        (all || !device.is_empty() && is_of_disks(fstype)).then(|| {
            map! {
                "device" => device, "mountpoint" => unescaped(mountpoint), "fstype" => fstype, "opts" => unescaped(opts),
            }
        })
    };
    mounts.lines().filter_map(line).collect()
}

/// Decodes the octal escapes of the kernel (`\ooo`) for blanks, tabs, newlines, backslashes and number signs.
fn unescaped(word: &str) -> String {
    let mut text = word.to_owned();
    for (code, character) in [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\043", "#"), ("\\134", "\\")] {
        text = text.replace(code, character);
    }
    text
}

#[cfg(test)]
mod tests {
    use brine_function::Args;

    use super::*;
    use crate::testing;

    #[test]
    fn partitions_are_distinguished_from_other_file_systems() {
        let types = "nodev\tproc\nnodev\ttmpfs\n\text4\n";
        let mounts = "/dev/sda1 /data\\040two ext4 rw,relatime 0 0\nproc /proc proc rw 0 0\nnone /x ext4 rw 0 0\n\
                      tank /tank zfs rw 0 0\nbad\n";
        let names = |all| -> Vec<String> {
            parse(mounts, types, all).iter().map(|about| about.get("mountpoint").unwrap().to_string()).collect()
        };
        assert_eq!(names(false), ["/data two", "/tank"]);
        assert_eq!(names(true), ["/data two", "/proc", "/x", "/tank"]);
    }

    #[test]
    fn this_host_has_file_systems() {
        let context = testing::context(&[]);
        let all = context.call("ps.disk_partition_usage", Args::positional([true.into()])).unwrap();
        let root = all.as_list().unwrap().iter().find(|about| about.get("mountpoint") == Some(&"/".into())).unwrap();
        assert!(root.get("total").unwrap().as_i64().unwrap() > 0, "{root}");
    }
}
