//! `disk`: functions that query and change block devices.

use brine_context::Context;
use brine_context::programs::run;
use brine_function::{Args, CallError, CallResult, function};
use brine_host::programs::argument;
use brine_value::{Map, Value};

/// The attributes that `disk.dump` returns, each with its flag of `blockdev`.
const ATTRIBUTES: &[&str] = &[
    "getro",
    "getsz",
    "getss",
    "getpbsz",
    "getiomin",
    "getioopt",
    "getalignoff",
    "getmaxsect",
    "getsize",
    "getsize64",
    "getra",
    "getfra",
];

/// The options of `disk.tune`: name, the flags of `blockdev` that set and query it, and whether it takes a value.
const OPTIONS: &[(&str, &str, &str, bool)] = &[
    ("read-ahead", "--setra", "getra", true),
    ("filesystem-read-ahead", "--setfra", "getfra", true),
    ("read-only", "--setro", "getro", false),
    ("read-write", "--setrw", "getro", false),
];

/// Return the attributes of a block device, as reported by `blockdev`: all, or those listed in `args`. False if it
/// cannot be read.
///
/// CLI Example:
///
///     salt '*' disk.dump /dev/sda1
#[function]
pub fn dump(
    context: &Context,
    /// Path of the device.
    device: String,
    /// Names of attributes, as of `blockdev --report`; all by default.
    args: Option<Vec<String>>,
) -> CallResult {
    let Some(all) = attributes_of(context, &device)? else { return Ok(false.into()) };
    let Some(names) = args.filter(|args| !args.is_empty()) else { return Ok(all.into()) };
    selected(&all, names.iter().map(String::as_str)).map(Value::from)
}

/// Set attributes of a block device, and return those that were set.
///
/// Options are `read-ahead` and `filesystem-read-ahead`, in sectors of 512 bytes, and `read-only` and `read-write`,
/// which are True.
///
/// CLI Example:
///
///     salt '*' disk.tune /dev/sda1 read-ahead=1024 read-write=True
#[function]
pub fn tune(
    context: &Context,
    /// Path of the device.
    device: String,
    /// `read-ahead` and `filesystem-read-ahead`, in sectors of 512 bytes, and `read-only` or `read-write`, each True.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let (mut words, mut getters, mut invalid) = (vec!["blockdev".to_owned()], Vec::new(), Vec::new());
    for (key, value) in kwargs.iter().filter(|(key, _)| !key.as_str().is_some_and(|key| key.starts_with("__"))) {
        let option = OPTIONS.iter().find(|(name, ..)| key.as_str() == Some(name));
        match option {
            Some((_, setter, getter, true)) => {
                words.extend([(*setter).to_owned(), argument(&value.to_string())?]);
                getters.push(*getter);
            }
            Some((_, setter, getter, false)) if value.to_string() == "True" => {
                words.push((*setter).to_owned());
                getters.push(*getter);
            }
            _ => invalid.push(format!("{key}={value}")),
        }
    }
    if !invalid.is_empty() {
        return Err(CallError::Execution(format!("Invalid keyword arguments: {}", invalid.join(", "))));
    }
    words.push(argument(&device)?);
    let output = run(context, &words, &[])?;
    if output.retcode != 0 {
        return Err(CallError::Execution(output.stderr));
    }
    let Some(all) = attributes_of(context, &device)? else { return Ok(false.into()) };
    if getters.is_empty() { Ok(all.into()) } else { selected(&all, getters.into_iter()).map(Value::from) }
}

/// Remove the signatures of file systems, RAID and partition tables from a device, and return whether that succeeded.
///
/// CLI Example:
///
///     salt '*' disk.wipe /dev/sda1
#[function]
pub fn wipe(
    context: &Context,
    /// Path of the device.
    device: String,
) -> CallResult {
    let output = run(context, &["wipefs".into(), "-a".into(), argument(&device)?], &[])?;
    if output.retcode != 0 {
        tracing::error!(jid = context.job.jid, device, "wiping a device failed: {}", output.stderr);
    }
    Ok((output.retcode == 0).into())
}

/// Resize an ext2, ext3 or ext4 file system to the size of its device. The result is True, or nothing after a failure.
///
/// CLI Example:
///
///     salt '*' disk.resize2fs /dev/sda1
#[function]
pub fn resize2fs(
    context: &Context,
    /// Path of the device.
    device: String,
) -> CallResult {
    let output = run(context, &["resize2fs".into(), argument(&device)?], &[])?;
    Ok(if output.retcode == 0 { true.into() } else { Value::Nil })
}

/// Create a file system on a device, and return whether that succeeded.
///
/// CLI Example:
///
///     salt '*' disk.format /dev/sdX1
#[function(name = "format")]
pub fn format_(
    context: &Context,
    /// Path of the device.
    device: String,
    /// Type of the file system.
    #[default("ext4".into())]
    fs_type: String,
    /// The size of inodes, for ext and xfs.
    inode_size: Option<i64>,
    /// Whether the inode tables are initialized later by the kernel, for ext.
    lazy_itable_init: Option<i64>,
    /// The size of the allocation table, 12, 16 or 32, for fat and vfat.
    fat: Option<i64>,
    /// Whether it is created on something that is no partition, or has a file system, for ext and xfs.
    #[default(false)]
    force: bool,
) -> CallResult {
    let (is_ext, is_xfs) = (fs_type.starts_with("ext"), fs_type == "xfs");
    let mut words = vec!["mkfs".to_owned(), "-t".to_owned(), argument(&fs_type)?];
    match inode_size {
        Some(size) if is_ext => words.extend(["-i".into(), size.to_string()]),
        Some(size) if is_xfs => words.extend(["-i".into(), format!("size={size}")]),
        _ => {}
    }
    if let Some(lazy) = lazy_itable_init.filter(|_| is_ext) {
        words.extend(["-E".into(), format!("lazy_itable_init={lazy}")]);
    }
    if let Some(fat) = fat.filter(|fat| fs_type.ends_with("fat") && [12, 16, 32].contains(fat)) {
        words.extend(["-F".into(), fat.to_string()]);
    }
    if force && (is_ext || is_xfs) {
        words.push(if is_ext { "-F" } else { "-f" }.into());
    }
    words.push(argument(&device)?);
    let is_made = run(context, &words, &[])?;
    if is_made.retcode != 0 {
        tracing::error!(jid = context.job.jid, device, "creating a file system failed: {}", is_made.stderr);
    }
    let is_flushed = run(context, &["sync".to_owned()], &[])?;
    Ok((is_made.retcode == 0 && is_flushed.retcode == 0).into())
}

/// Return the type of the file system on a device, or an empty string.
///
/// CLI Example:
///
///     salt '*' disk.fstype /dev/sdX1
#[function]
pub fn fstype(
    context: &Context,
    /// Path of the device.
    device: String,
) -> CallResult {
    let device = argument(&device)?;
    let second_line = |words: &[&str]| -> Result<Option<String>, CallError> {
        if context.minion.programs.find(words[0]).is_none() {
            return Ok(None);
        }
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Ok(run(context, &words, &[("LC_ALL", "C")])?.stdout.lines().nth(1).map(|line| line.trim().to_owned()))
    };
    if let Some(file_system) = second_line(&["lsblk", "-o", "fstype", &device])?.filter(|text| !text.is_empty()) {
        return Ok(file_system.into());
    }
    let row = second_line(&["df", "-T", &device])?.unwrap_or_default();
    Ok(row.split_whitespace().nth(1).unwrap_or_default().into())
}

/// Return the type of the file system that contains a path.
///
/// CLI Example:
///
///     salt '*' disk.get_fstype_from_path /root
#[function]
pub fn get_fstype_from_path(
    context: &Context,
    /// Path of a file.
    path: String,
) -> CallResult {
    let device = context.call("mount.get_device_from_path", Args::positional([path.into()]))?;
    fstype(context, device.to_string())
}

/// Returns all attributes of a device; `None` if it cannot be read.
pub(crate) fn attributes_of(context: &Context, device: &str) -> Result<Option<Map>, CallError> {
    let flags = ATTRIBUTES.iter().map(|name| format!("--{name}"));
    let words: Vec<String> = std::iter::once("blockdev".to_owned()).chain(flags).chain([argument(device)?]).collect();
    let output = run(context, &words, &[])?;
    let lines = output.stdout.lines().filter(|line| !line.is_empty());
    let all = ATTRIBUTES.iter().zip(lines).map(|(name, line)| ((*name).into(), line.into())).collect();
    Ok((output.retcode == 0).then_some(all))
}

fn selected<'a>(all: &Map, names: impl Iterator<Item = &'a str>) -> Result<Map, CallError> {
    let one = |name: &str| {
        let unknown = || CallError::Execution(format!("'{name}' is none of {}", ATTRIBUTES.join(", ")));
        Ok((name.into(), all.get(name).cloned().ok_or_else(unknown)?))
    };
    names.map(one).collect()
}

#[cfg(test)]
mod tests;
