//! `partition`: functions that change disks and their partition tables.

use brine_context::Context;
use brine_function::{Args, CallResult, function};
use brine_host::programs::argument;
use brine_value::Value;

use super::valid::{DISK_FLAGS, FILE_SYSTEMS, LABELS, Number, PARTITION_FLAGS, boundary, device_of, invalid, one_of};
use super::{lines, types};

const SWITCH: &[&str] = &["on", "off"];

/// Have the kernel read the partition tables of disks again, and return the output; without disks, those of all.
///
/// CLI Example:
///
///     salt '*' partition.probe
///     salt '*' partition.probe /dev/sda /dev/sdb
#[function]
pub fn probe(
    context: &Context,
    /// Paths of the devices; all by default.
    #[rest]
    devices: Vec<Value>,
) -> CallResult {
    let devices = devices.iter().map(|device| device_of(&device.to_string())).collect::<Result<Vec<_>, _>>()?;
    let words: Vec<&str> = ["partprobe", "--"].into_iter().chain(devices.iter().map(String::as_str)).collect();
    lines(context, &words)
}

/// Copy the file system of a partition to another one, and return the output. Releases of parted from 3.0 on cannot do
/// this.
///
/// CLI Example:
///
///     salt '*' partition.cp /dev/sda 2 3
#[function]
pub fn cp(
    context: &Context,
    /// Path of the device.
    device: String,
    /// Number of the partition to copy.
    from_minor: Value,
    /// Number of the partition to copy to.
    to_minor: Value,
) -> CallResult {
    let device = device_of(&device)?;
    let from = Number::of(&from_minor, "minor number", "cp")?.to_string();
    let to = Number::of(&to_minor, "minor number", "cp")?.to_string();
    lines(context, &["parted", "-m", "-s", &device, "cp", &from, &to])
}

/// Set the type of a partition, and return the output. `system_id` is a number of `partition.system_types`.
///
/// CLI Example:
///
///     salt '*' partition.set_id /dev/sda 1 83
#[function]
pub fn set_id(
    context: &Context,
    /// Path of the device.
    device: String,
    /// Number of the partition.
    minor: Value,
    /// Id of the type of the partition.
    system_id: String,
) -> CallResult {
    let device = device_of(&device)?;
    let number = Number::of(&minor, "minor number", "set_id")?.to_string();
    if types(context)?.get(system_id.as_str()).is_none() {
        return Err(invalid("system_id", "set_id"));
    }
    lines(context, &["sfdisk", "--part-type", &device, &number, &argument(&system_id)?])
}

/// Create a file system on a partition, and return the output. All data of the partition is lost.
///
/// CLI Example:
///
///     salt '*' partition.mkfs /dev/sda2 ext4
#[function]
pub fn mkfs(
    context: &Context,
    /// Path of the device.
    device: String,
    /// The type, such as `ext4`, `xfs`, `fat` or `linux-swap`. The program for it must be installed.
    fs_type: String,
) -> CallResult {
    let device = device_of(&device)?;
    one_of(&fs_type, FILE_SYSTEMS, "fs_type", "mkfs")?;
    let program = match fs_type.as_str() {
        "linux-swap" => "mkswap".to_owned(),
        "NTFS" => "mkfs.ntfs".to_owned(),
        other => format!("mkfs.{other}"),
    };
    if context.minion.programs.find(&program).is_none() {
        return Ok(format!("Error: {program} is unavailable.").into());
    }
    lines(context, &[&program, &device])
}

/// Create a partition table, and return the output. All partitions of the disk are lost.
///
/// CLI Example:
///
///     salt '*' partition.mklabel /dev/sda msdos
#[function]
pub fn mklabel(
    context: &Context,
    /// Path of the device.
    device: String,
    /// `aix`, `amiga`, `bsd`, `dvh`, `gpt`, `loop`, `mac`, `msdos`, `pc98` or `sun`.
    label_type: String,
) -> CallResult {
    one_of(&label_type, LABELS, "label_type", "mklabel")?;
    lines(context, &["parted", "-m", "-s", &argument(&device)?, "mklabel", &label_type])
}

/// The arguments of `partition.mkpart`.
#[derive(Args)]
pub struct PartitionArgs {
    /// Path of the disk.
    device: String,
    /// `primary`, `logical` or `extended`.
    part_type: String,
    /// Type of the file system that it is for; none is created.
    fs_type: Option<String>,
    /// Start on the disk, in megabytes or with a unit.
    #[default]
    start: Value,
    /// End on the disk.
    #[default]
    end: Value,
}

/// Create a partition, and return the output.
///
/// CLI Example:
///
///     salt '*' partition.mkpart /dev/sda primary fs_type=fat32 start=0 end=639
///     salt '*' partition.mkpart /dev/sda primary start=0 end=639
#[function]
pub fn mkpart(context: &Context, #[args] args: PartitionArgs) -> CallResult {
    let PartitionArgs { device, part_type, fs_type, start, end } = args;
    let device = device_of(&device)?;
    one_of(&part_type, &["primary", "logical", "extended"], "part_type", "mkpart")?;
    let fs_type = fs_type.filter(|fs_type| !fs_type.is_empty());
    let mut words = vec!["parted", "-m", "-s", "--", &device, "mkpart", &part_type];
    if let Some(fs_type) = &fs_type {
        one_of(fs_type, FILE_SYSTEMS, "fs_type", "mkpart")?;
        words.push(fs_type);
    }
    let position = |value: &Value| if value.is_nil() { Ok(String::new()) } else { boundary(value) };
    let (start, end) = (position(&start)?, position(&end)?);
    words.extend([start.as_str(), &end]);
    lines(context, &words)
}

/// Create a partition, as `partition.mkpart`.
///
/// CLI Example:
///
///     salt '*' partition.mkpartfs /dev/sda primary fs_type=fat32 start=0 end=639
#[function]
pub fn mkpartfs(context: &Context, #[args] args: PartitionArgs) -> CallResult {
    mkpart(context, args)
}

/// Set the name of a partition, and return the output. A name consists of letters, digits, blanks, `_` and `-`. Only
/// partition tables of the types `gpt`, `mac` and `pc98` have names.
///
/// CLI Example:
///
///     salt '*' partition.name /dev/sda 1 'My Documents'
#[function]
pub fn name(
    context: &Context,
    /// Path of the device.
    device: String,
    /// Number of the partition.
    partition: Value,
    /// Name of the partition.
    name: String,
) -> CallResult {
    let device = device_of(&device)?;
    let number = Number::of(&partition, "partition", "name")?.to_string();
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || " _-".contains(c)) {
        return Err(invalid("characters", "name"));
    }
    // The inner quotes are for parted, which splits its arguments at blanks.
    lines(context, &["parted", "-m", "-s", &device, "name", &number, &format!("'{name}'")])
}

/// Search for a lost partition between two positions, and return the output.
///
/// CLI Example:
///
///     salt '*' partition.rescue /dev/sda 0 8056
#[function]
pub fn rescue(
    context: &Context,
    /// Path of the device.
    device: String,
    /// Start of the partition.
    start: Value,
    /// End of the partition.
    end: Value,
) -> CallResult {
    let device = device_of(&device)?;
    let (start, end) = (boundary(&start)?, boundary(&end)?);
    lines(context, &["parted", "-m", "-s", &device, "rescue", &start, &end])
}

/// Resize a partition, and return the output. Releases of parted from 3.0 on cannot do this.
///
/// CLI Example:
///
///     salt '*' partition.resize /dev/sda 3 200 850
#[function]
pub fn resize(
    context: &Context,
    /// Path of the device.
    device: String,
    /// Number of the partition.
    minor: Value,
    /// Start of the partition.
    start: Value,
    /// End of the partition.
    end: Value,
) -> CallResult {
    let device = device_of(&device)?;
    let number = Number::of(&minor, "minor number", "resize")?.to_string();
    let (start, end) = (boundary(&start)?, boundary(&end)?);
    lines(context, &["parted", "-m", "-s", "--", &device, "resize", &number, &start, &end])
}

/// Remove a partition, and return the output.
///
/// CLI Example:
///
///     salt '*' partition.rm /dev/sda 5
#[function]
pub fn rm(
    context: &Context,
    /// Path of the device.
    device: String,
    /// Number of the partition.
    minor: Value,
) -> CallResult {
    let device = device_of(&device)?;
    let number = Number::of(&minor, "minor number", "rm")?.to_string();
    lines(context, &["parted", "-m", "-s", &device, "rm", &number])
}

/// Set a flag of a partition, and return the output.
///
/// CLI Example:
///
///     salt '*' partition.set /dev/sda 1 boot '"on"'
#[function(name = "set")]
pub fn set_(
    context: &Context,
    /// Path of the device.
    device: String,
    /// Number of the partition.
    minor: Value,
    /// `boot`, `root`, `swap`, `hidden`, `raid`, `lvm`, `lba`, `hp-service`, `palo`, `prep`, `msftres`, `bios_grub`,
    /// `atvrecv`, `diag`, `legacy_boot`, `msftdata`, `irst`, `esp` or `type`.
    flag: String,
    /// The string `on` or `off`; quote it, since YAML makes it True or False.
    state: String,
) -> CallResult {
    let device = device_of(&device)?;
    let number = Number::of(&minor, "minor number", "set")?.to_string();
    one_of(&flag, PARTITION_FLAGS, "flag", "set")?;
    one_of(&state, SWITCH, "state", "set")?;
    lines(context, &["parted", "-m", "-s", &device, "set", &number, &flag, &state])
}

/// Toggle a flag of a partition, and return the output. The flags are those of `partition.set`.
///
/// CLI Example:
///
///     salt '*' partition.toggle /dev/sda 1 boot
#[function]
pub fn toggle(
    context: &Context,
    /// Path of the device.
    device: String,
    /// Number of the partition.
    partition: Value,
    /// Name of the flag.
    flag: String,
) -> CallResult {
    let device = device_of(&device)?;
    let number = Number::of(&partition, "partition number", "toggle")?.to_string();
    one_of(&flag, PARTITION_FLAGS, "flag", "toggle")?;
    lines(context, &["parted", "-m", "-s", &device, "toggle", &number, &flag])
}

/// Set a flag of a disk, and return the output.
///
/// CLI Example:
///
///     salt '*' partition.disk_set /dev/sda pmbr_boot '"on"'
#[function]
pub fn disk_set(
    context: &Context,
    /// Path of the device.
    device: String,
    /// `cylinder_alignment`, `pmbr_boot` or `implicit_partition_table`.
    flag: String,
    /// The string `on` or `off`; quote it, since YAML makes it True or False.
    state: String,
) -> CallResult {
    let device = device_of(&device)?;
    one_of(&flag, DISK_FLAGS, "flag", "disk_set")?;
    one_of(&state, SWITCH, "state", "disk_set")?;
    lines(context, &["parted", "-m", "-s", &device, "disk_set", &flag, &state])
}

/// Toggle a flag of a disk, and return the output. The flags are those of `partition.disk_set`.
///
/// CLI Example:
///
///     salt '*' partition.disk_toggle /dev/sda pmbr_boot
#[function]
pub fn disk_toggle(
    context: &Context,
    /// Path of the device.
    device: String,
    /// Name of the flag.
    flag: String,
) -> CallResult {
    let device = device_of(&device)?;
    one_of(&flag, DISK_FLAGS, "flag", "disk_toggle")?;
    lines(context, &["parted", "-m", "-s", &device, "disk_toggle", &flag])
}
