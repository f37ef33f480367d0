//! `partition`: partition tables of disks, with the programs `parted` and `sfdisk`.

mod change;
mod listing;
#[cfg(test)]
mod tests;
mod valid;

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::process::Program;
use brine_host::programs::program;
use brine_value::{Map, Value};

use self::valid::{Number, device_of, invalid, one_of};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `partition`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "partition",
    [
        change::probe,
        list_,
        align_check,
        check,
        change::cp,
        get_id,
        change::set_id,
        system_types,
        change::mkfs,
        change::mklabel,
        change::mkpart,
        change::mkpartfs,
        change::name,
        change::rescue,
        change::resize,
        change::rm,
        change::set_,
        change::toggle,
        change::disk_set,
        change::disk_toggle,
        exists,
        get_block_device
    ]
);

/// Return the partition table of a disk: `info` about the disk, and `partitions` by number.
///
/// CLI Example:
///
///     salt '*' partition.list /dev/sda
///     salt '*' partition.list /dev/sda unit=s
#[function(name = "list")]
pub fn list_(
    context: &Context,
    /// Path of the device.
    device: String,
    /// The unit of positions and sizes: `s`, `B`, `kB`, `MB`, `MiB`, `GB`, `GiB`, `TB`, `TiB`, `%`, `cyl`, `chs` or
    /// `compact`.
    unit: Option<String>,
) -> CallResult {
    let device = device_of(&device)?;
    let mut words = vec!["parted", "-m", "-s", &device];
    let unit = unit.filter(|unit| !unit.is_empty());
    if let Some(unit) = &unit {
        if !valid::UNITS.contains(&unit.as_str()) {
            return Err(invalid("unit", "part_list"));
        }
        words.extend(["unit", unit]);
    }
    words.push("print");
    let output = run(context, &owned(&words), &[])?;
    if output.retcode != 0 {
        // A disk without a partition table is still described.
        context.set_retcode(output.retcode);
        tracing::error!(jid = context.job.jid, device, "listing partitions failed: {}", output.stderr);
    }
    Ok(listing::parse(&output.stdout)?.into())
}

/// Return whether a partition is aligned, as the lines of `parted`. `part_type` is `minimal` or `optimal`.
///
/// CLI Example:
///
///     salt '*' partition.align_check /dev/sda minimal 1
#[function]
pub fn align_check(
    context: &Context,
    /// Path of the device.
    device: String,
    /// Type of the partition, such as `primary`.
    part_type: String,
    /// Number of the partition.
    partition: Value,
) -> CallResult {
    let device = device_of(&device)?;
    one_of(&part_type, &["minimal", "optimal"], "part_type", "align_check")?;
    let number = Number::of(&partition, "partition", "align_check")?.to_string();
    // With `-s` parted would not print the result.
    lines(context, &["parted", "-m", &device, "align-check", &part_type, &number])
}

/// Check the file system of a partition, and return the output. Releases of parted from 3.0 on cannot do this.
///
/// CLI Example:
///
///     salt '*' partition.check /dev/sda 1
#[function]
pub fn check(
    context: &Context,
    /// Path of the device.
    device: String,
    /// Number of the partition.
    minor: Value,
) -> CallResult {
    let device = device_of(&device)?;
    let number = Number::of(&minor, "minor number", "check")?.to_string();
    lines(context, &["parted", "-m", "-s", &device, "check", &number])
}

/// Return the type of a partition: a number such as 83 for Linux or 82 for swap, or the UUID of a GPT type.
///
/// CLI Example:
///
///     salt '*' partition.get_id /dev/sda 1
#[function]
pub fn get_id(
    context: &Context,
    /// Path of the device.
    device: String,
    /// Number of the partition.
    minor: Value,
) -> CallResult {
    let device = device_of(&device)?;
    let number = Number::of(&minor, "minor number", "get_id")?.to_string();
    lines(context, &["sfdisk", "--part-type", &device, &number])
}

/// Return the partition types that `sfdisk` knows, by number.
///
/// CLI Example:
///
///     salt '*' partition.system_types
#[function]
pub fn system_types(context: &Context) -> CallResult {
    Ok(types(context)?.into())
}

/// Return whether a path is a block device.
///
/// CLI Example:
///
///     salt '*' partition.exists /dev/sdb1
#[function]
pub fn exists(
    _context: &Context,
    /// Path of the device.
    #[default]
    device: String,
) -> CallResult {
    Ok(valid::is_block_device(&device).into())
}

/// Return the names of the disks, without RAM disks, loop devices and optical drives.
///
/// CLI Example:
///
///     salt '*' partition.get_block_device
#[function]
pub fn get_block_device(context: &Context) -> CallResult {
    lines(context, &["lsblk", "-n", "-io", "KNAME", "-d", "-e", "1,7,11", "-l"])
}

/// Parses the types of `sfdisk`; of each name, the first word, as in Salt.
fn types(context: &Context) -> Result<Map, CallError> {
    let output = run(context, &owned(&["sfdisk", "-T"]), &[])?;
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        Some((Value::from(words.next()?), Value::from(words.next()?)))
    };
    Ok(output.stdout.lines().filter(|line| !line.starts_with("Id")).filter_map(line).collect())
}

/// Runs a program and returns the lines of its output and its error messages. Its exit status becomes the job's.
fn lines(context: &Context, words: &[&str]) -> CallResult {
    let program = Program { merge: true, ..program(&owned(words), &[]) };
    let output = context.run_program(&program).map_err(CallError::execution)?;
    if output.retcode != 0 {
        context.set_retcode(output.retcode);
        tracing::error!(jid = context.job.jid, "{} failed: {}", program.command, output.stdout);
    }
    Ok(output.stdout.lines().collect())
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
