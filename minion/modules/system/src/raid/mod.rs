//! `raid`: software RAID arrays, with the program `mdadm`.

mod config;
mod create;
mod parse;
pub(crate) mod state;
#[cfg(test)]
mod tests;

use std::path::Path;

use brine_context::programs::{run, succeeds};
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::process::Output;
use brine_host::programs::argument;
use brine_value::{Map, Value};

use self::parse::Detail;

pub(super) static MODULE: Module =
    Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], unavailable: Some(unavailable), ..Module::EMPTY };

/// Execution functions of `raid`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "raid",
    [list_, detail, destroy, stop, create::create, config::save_config, create::assemble, examine, add]
);

fn unavailable(context: &Context) -> Option<String> {
    context.minion.programs.find("mdadm").is_none().then(|| "Unable to locate command: mdadm".into())
}

/// Return the active arrays by device, each with its `device`, `metadata`, `name` and `uuid`.
///
/// CLI Example:
///
///     salt '*' raid.list
#[function(name = "list")]
pub fn list_(context: &Context) -> CallResult {
    Ok(arrays(context)?.into())
}

/// Return the details of an array, as reported by `mdadm --detail`, and its `members` by number.
///
/// CLI Example:
///
///     salt '*' raid.detail /dev/md0
#[function]
pub fn detail(
    context: &Context,
    /// The device of the array.
    #[default("/dev/md0".into())]
    device: String,
) -> CallResult {
    Ok(Map::from(detail_of(context, &device)?).into())
}

/// Stop an array and erase the RAID metadata of its members. Returns whether the array is gone; its data is lost.
///
/// CLI Example:
///
///     salt '*' raid.destroy /dev/md0
#[function]
pub fn destroy(
    context: &Context,
    /// The device of the array.
    device: String,
) -> CallResult {
    if !Path::new(&device).exists() {
        return Ok(false.into());
    }
    let members = detail_of(context, &device)?.members;
    let stopped = succeeds(context, &words(&["mdadm", "--stop", &argument(&device)?]))?.is_truthy();
    if stopped && !members.is_empty() {
        let mut erase = words(&["mdadm", "--zero-superblock"]);
        for member in &members {
            erase.push(argument(&member.device)?);
        }
        succeeds(context, &erase)?;
    }
    config::forget(context, &device)?;
    Ok(arrays(context)?.get(device.as_str()).is_none().into())
}

/// Stop all arrays that are not in use, and return whether that succeeded.
///
/// CLI Example:
///
///     salt '*' raid.stop
#[function]
pub fn stop(context: &Context) -> CallResult {
    succeeds(context, &words(&["mdadm", "--stop", "--scan"]))
}

/// Return the RAID metadata of a member of an array, as `mdadm --examine --export` names it; an empty mapping if there
/// is none.
///
/// CLI Example:
///
///     salt '*' raid.examine /dev/sda1
#[function]
pub fn examine(
    context: &Context,
    /// The device of the array.
    device: String,
    /// Whether missing metadata is not an error of the call.
    #[default(false)]
    quiet: bool,
) -> CallResult {
    let output = run(context, &words(&["mdadm", "-Y", "-E", &argument(&device)?]), &[])?;
    if !quiet {
        report(context, "examining a device", &output);
    }
    let pair = |line: &str| {
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        (Value::from(name), Value::from(value))
    };
    Ok(output.stdout.lines().map(pair).collect::<Map>().into())
}

/// Add a device to an array, and return whether that succeeded.
///
/// CLI Example:
///
///     salt '*' raid.add /dev/md0 /dev/sda1
#[function]
pub fn add(
    context: &Context,
    /// The device of the array.
    name: String,
    /// The device of the array.
    device: String,
) -> CallResult {
    succeeds(context, &words(&["mdadm", "--manage", &argument(&name)?, "--add", &argument(&device)?]))
}

fn arrays(context: &Context) -> Result<Map, CallError> {
    let output = run(context, &words(&["mdadm", "--detail", "--scan"]), &[])?;
    report(context, "listing arrays", &output);
    Ok(parse::arrays(&output.stdout))
}

fn detail_of(context: &Context, device: &str) -> Result<Detail, CallError> {
    if !Path::new(device).exists() {
        return Err(CallError::Execution(format!("Device {device} doesn't exist!")));
    }
    let output = run(context, &words(&["mdadm", "--detail", &argument(device)?]), &[])?;
    report(context, "reading an array", &output);
    Ok(Detail::parse(device, &output.stdout))
}

/// Logs the error messages of a failed program, whose exit status becomes the job's.
fn report(context: &Context, operation: &str, output: &Output) {
    if output.retcode != 0 {
        context.set_retcode(output.retcode);
        tracing::error!(jid = context.job.jid, "{operation} failed: {}", output.stderr);
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
