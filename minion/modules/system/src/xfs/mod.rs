//! `xfs`: file systems of the type XFS.

mod dumps;
mod parse;

use std::path::Path;

use brine_context::programs::run as run_words;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::process::Output;
use brine_host::programs::argument;
use brine_value::{Map, Value, map};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `xfs`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "xfs",
    [info, dumps::dump, dumps::inventory, dumps::prune_dump, devices, estimate, mkfs, modify, defragment]
);

/// Return the geometry of a file system by its device or mount point.
///
/// CLI Example:
///
///     salt '*' xfs.info /dev/sda1
#[function]
pub fn info(
    context: &Context,
    /// Path of the device.
    device: String,
) -> CallResult {
    let output = run_words(context, &["xfs_info".into(), argument(&device)?], &[("LC_ALL", "C")])?;
    if !output.stderr.is_empty() {
        return Err(CallError::Execution(output.stderr.replace("xfs_info:", "").trim().into()));
    }
    Ok(parse::geometry(&output.stdout).into())
}

/// Return the devices with a file system of this type, each with its label, its UUID and where it is mounted.
///
/// CLI Example:
///
///     salt '*' xfs.devices
#[function]
pub fn devices(context: &Context) -> CallResult {
    let output = run(context, &["blkid", "-o", "export"])?;
    Ok(found(&output.stdout)?.into())
}

/// Return the size that a file system with the files of a directory would have.
///
/// CLI Example:
///
///     salt '*' xfs.estimate /path/to/file
#[function]
pub fn estimate(
    context: &Context,
    /// Path of the directory.
    path: String,
) -> CallResult {
    if !Path::new(&path).exists() {
        return Err(CallError::Execution(format!("Path \"{path}\" was not found.")));
    }
    let output = run(context, &["xfs_estimate", "-v", &argument(&path)?])?;
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [directory, block_size, blocks, megabytes, logsize] = words[..] else { return None };
        let about = map! {
            "block _size" => block_size, "blocks" => blocks, "megabytes" => megabytes, "logsize" => logsize,
        };
        Some((directory.into(), about.into()))
    };
    Ok(output.stdout.lines().skip(1).filter_map(row).collect::<Map>().into())
}

/// The arguments of `xfs.mkfs`.
#[derive(Debug, brine_function::Args)]
pub struct NewFileSystem {
    /// The device.
    device: String,
    /// The label.
    label: Option<String>,
    /// The size of sectors.
    ssize: Option<String>,
    /// Whether an existing file system is kept.
    noforce: Option<bool>,
    /// Options of blocks (`-b`), such as `size=4096`.
    bso: Option<String>,
    /// Options of metadata (`-m`).
    gmo: Option<String>,
    /// Options of inodes (`-i`).
    ino: Option<String>,
    /// Options of the log (`-l`).
    lso: Option<String>,
    /// Options of the real-time section (`-r`).
    rso: Option<String>,
    /// Options of directories (`-n`).
    nmo: Option<String>,
    /// Options of the data section (`-d`).
    dso: Option<String>,
}

/// Create a file system on a device, and return its geometry.
///
/// CLI Example:
///
///     salt '*' xfs.mkfs /dev/sda1
///     salt '*' xfs.mkfs /dev/sda1 dso='su=32k,sw=6' noforce=True
#[function]
pub fn mkfs(context: &Context, #[args] new: NewFileSystem) -> CallResult {
    let mut words = vec!["mkfs.xfs".to_owned()];
    let non_empty = |value: &Option<String>| value.clone().filter(|value| !value.is_empty());
    for (flag, value) in [("-L", &new.label), ("-s", &new.ssize)] {
        words.extend(non_empty(value).into_iter().flat_map(|value| [flag.to_owned(), value]));
    }
    let options = [
        ("-b", &new.bso),
        ("-m", &new.gmo),
        ("-n", &new.nmo),
        ("-i", &new.ino),
        ("-d", &new.dso),
        ("-l", &new.lso),
        ("-r", &new.rso),
    ];
    for (flag, value) in options {
        let Some(value) = non_empty(value).filter(|value| value.contains('=')) else { continue };
        if !value.split(',').all(|pair| pair.split('=').count() == 2) {
            return Err(CallError::Execution(format!("Wrong parameters \"{value}\" for option \"{flag}\"")));
        }
        words.extend([flag.to_owned(), value]);
    }
    if new.noforce != Some(true) {
        words.push("-f".into());
    }
    words.push(argument(&new.device)?);
    let output = run(context, &words.iter().map(String::as_str).collect::<Vec<_>>())?;
    Ok(parse::geometry(&output.stdout).into())
}

/// Set the label or the UUID of a file system, and return it. `uuid` sets a new UUID, or if False none; `lazy_counting`
/// switches the counters of the superblock to lazy ones or back.
///
/// CLI Example:
///
///     salt '*' xfs.modify /dev/sda1 label='My backup' lazy_counting=False
///     salt '*' xfs.modify /dev/sda1 uuid=True
#[function]
pub fn modify(
    context: &Context,
    /// Path of the device.
    device: String,
    /// Label of the dump, or of the file system.
    label: Option<String>,
    /// Whether lazy counters are used.
    lazy_counting: Option<bool>,
    /// New UUID of the file system.
    uuid: Option<bool>,
) -> CallResult {
    let label = label.filter(|label| !label.is_empty());
    if label.is_none() && lazy_counting.is_none() && uuid.is_none() {
        return Err(CallError::Execution(format!("Nothing specified for modification for \"{device}\" device")));
    }
    let mut words = vec!["xfs_admin"];
    words.extend(label.as_deref().into_iter().flat_map(|label| ["-L", label]));
    words.extend(lazy_counting.into_iter().flat_map(|lazy| ["-c", if lazy { "1" } else { "0" }]));
    words.extend(uuid.into_iter().flat_map(|uuid| ["-U", if uuid { "generate" } else { "nil" }]));
    let device = argument(&device)?;
    words.push(&device);
    run(context, &words)?;
    Ok(found(&run(context, &["blkid", "-o", "export", &device])?.stdout)?.into())
}

/// Defragment the mounted file system of a device.
///
/// CLI Example:
///
///     salt '*' xfs.defragment /dev/sda1
#[function]
pub fn defragment(
    context: &Context,
    /// Path of the device.
    device: String,
) -> CallResult {
    if device == "/" {
        return Err(CallError::Execution("Root is not a device.".into()));
    }
    if !mounts()?.contains_key(&Value::from(device.as_str())) {
        return Err(CallError::Execution(format!("Device \"{device}\" is not mounted")));
    }
    Ok(map! {"log" => run(context, &["xfs_fsr", &argument(&device)?])?.stdout}.into())
}

/// Runs a program. An exit status other than 0 is an error only with error output, as in Salt: `blkid` exits with 2 and
/// prints nothing if it finds no device.
fn run(context: &Context, words: &[&str]) -> Result<Output, CallError> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let output = run_words(context, &words, &[("LC_ALL", "C")])?;
    if output.retcode != 0 && !output.stderr.is_empty() {
        return Err(CallError::Execution(output.stderr));
    }
    Ok(output)
}

/// Returns the devices of this type in the output of `blkid -o export`.
fn found(output: &str) -> Result<Map, CallError> {
    Ok(parse::devices(output, &mounts()?))
}

/// Returns the mounted file systems of this type, by device.
fn mounts() -> Result<Map, CallError> {
    let text = std::fs::read_to_string("/proc/mounts")
        .map_err(|error| CallError::Execution(format!("reading /proc/mounts failed: {error}")))?;
    Ok(parse::mounts(&text))
}

#[cfg(test)]
mod tests;
