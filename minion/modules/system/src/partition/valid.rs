//! Validation of arguments for `parted`, which splits its arguments at blanks and takes each word for a command.

use std::fmt;
use std::os::unix::fs::FileTypeExt;

use brine_function::CallError;
use brine_host::programs::argument;
use brine_value::Value;

pub(super) const UNITS: &[&str] =
    &["s", "B", "kB", "MB", "MiB", "GB", "GiB", "TB", "TiB", "%", "cyl", "chs", "compact"];

pub(super) const DISK_FLAGS: &[&str] = &["cylinder_alignment", "pmbr_boot", "implicit_partition_table"];

pub(super) const PARTITION_FLAGS: &[&str] = &[
    "boot",
    "root",
    "swap",
    "hidden",
    "raid",
    "lvm",
    "lba",
    "hp-service",
    "palo",
    "prep",
    "msftres",
    "bios_grub",
    "atvrecv",
    "diag",
    "legacy_boot",
    "msftdata",
    "irst",
    "esp",
    "type",
];

pub(super) const FILE_SYSTEMS: &[&str] = &[
    "btrfs",
    "ext2",
    "ext3",
    "ext4",
    "fat",
    "fat32",
    "fat16",
    "linux-swap",
    "reiserfs",
    "hfs",
    "hfs+",
    "hfsx",
    "NTFS",
    "ntfs",
    "ufs",
    "xfs",
];

pub(super) const LABELS: &[&str] = &["aix", "amiga", "bsd", "dvh", "gpt", "loop", "mac", "msdos", "pc98", "sun"];

/// Returns the error of an invalid argument of a function.
pub(super) fn invalid(what: &str, function: &str) -> CallError {
    CallError::Execution(format!("Invalid {what} passed to partition.{function}"))
}

/// Checks that a word is one of those that `parted` knows.
pub(super) fn one_of(word: &str, words: &[&str], what: &str, function: &str) -> Result<(), CallError> {
    if words.contains(&word) { Ok(()) } else { Err(invalid(what, function)) }
}

/// Checks that a path is a block device.
pub(super) fn device_of(path: &str) -> Result<String, CallError> {
    if !is_block_device(path) {
        return Err(CallError::Execution("Invalid device passed to partition module.".into()));
    }
    argument(path)
}

pub(super) fn is_block_device(path: &str) -> bool {
    // Transcripts are of User-Mode Linux, whose disks no host has.
    if cfg!(test) && matches!(path, "/dev/ubda" | "/dev/ubda1" | "/dev/ubdb") {
        return true;
    }
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device())
}

/// The number of a partition.
pub(super) struct Number(u32);

impl Number {
    pub fn of(value: &Value, what: &str, function: &str) -> Result<Self, CallError> {
        value.to_string().trim().parse().map(Number).map_err(|_| invalid(what, function))
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Checks that a value is a position on a disk: a number with or without a unit.
pub(super) fn boundary(value: &Value) -> Result<String, CallError> {
    let text = value.to_string();
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    if unit.len() == text.len() || !(unit.is_empty() || UNITS.contains(&unit)) {
        return Err(CallError::Execution(format!("Invalid partition boundary passed: \"{text}\"")));
    }
    Ok(text)
}
