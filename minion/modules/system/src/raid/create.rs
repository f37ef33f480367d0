//! `raid`: creation and assembly of arrays.

use brine_context::Context;
use brine_function::{CallError, CallResult, function};
use brine_host::process::Program;
use brine_host::programs::{argument, program};
use brine_value::{Map, Value};

use super::words;

/// Create an array, and return the output of `mdadm`. The data of its devices is lost.
///
/// Further arguments are options of `mdadm`, such as `chunk` or `spare-devices`. True sets an option without a value.
///
/// CLI Example:
///
///     salt '*' raid.create /dev/md0 level=1 chunk=256 devices="['/dev/xvdd', '/dev/xvde']" test_mode=True
#[function]
pub fn create(
    context: &Context,
    /// The device of the array.
    name: String,
    /// The RAID level, such as `1`, `5` or `raid10`.
    level: String,
    /// The devices, as a list or separated by commas; `missing` stands for one that is added later.
    devices: Value,
    /// The format of the RAID metadata.
    #[default("default".into())]
    metadata: String,
    /// Whether the command is returned and not run.
    #[default(false)]
    test_mode: bool,
    /// Long options of `mdadm`, without their dashes; True for those without a value.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let devices = devices_of(&devices)?;
    let spares = match kwargs.get("spare-devices") {
        Some(spares) => spares.to_string().trim().parse().ok().filter(|spares| *spares < devices.len()),
        None => Some(0),
    };
    let invalid = || {
        let count = devices.len();
        CallError::Execution(format!("spare-devices is invalid: expected a number less than that of devices, {count}"))
    };
    let active = devices.len() - spares.ok_or_else(invalid)?;
    let mut command = words(&["mdadm", "-C", &argument(&name)?, "-R", "-v", "-l", &argument(&level)?]);
    command.extend(options(&kwargs)?);
    command.extend(words(&["-e", &argument(&metadata)?, "-n", &active.to_string()]));
    command.extend(devices);
    if test_mode {
        return Ok(command.join(" ").into());
    }
    mdadm(context, &command)
}

/// Assemble an array from its devices, and return the output of `mdadm`.
///
/// Further arguments are options of `mdadm`, such as `force`. True sets an option without a value.
///
/// CLI Example:
///
///     salt '*' raid.assemble /dev/md0 "['/dev/xvdd', '/dev/xvde']"
#[function]
pub fn assemble(
    context: &Context,
    /// The device of the array.
    name: String,
    /// The devices, as a list or separated by commas.
    devices: Value,
    /// Whether the command is returned, as a list, and not run.
    #[default(false)]
    test_mode: bool,
    /// Long options of `mdadm`, without their dashes; True for those without a value.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let mut command = words(&["mdadm", "-A", &argument(&name)?, "-v"]);
    command.extend(options(&kwargs)?);
    command.extend(devices_of(&devices)?);
    if test_mode {
        return Ok(command.into_iter().map(Value::from).collect());
    }
    mdadm(context, &command)
}

/// Returns the output of `mdadm` with its messages. Its exit status becomes the job's.
fn mdadm(context: &Context, words: &[String]) -> CallResult {
    let program = Program { merge: true, ..program(words, &[]) };
    let output = context.run_program(&program).map_err(CallError::execution)?;
    if output.retcode != 0 {
        context.set_retcode(output.retcode);
        tracing::error!(jid = context.job.jid, "{} failed: {}", program.command, output.stdout);
    }
    Ok(output.stdout.into())
}

/// Parses devices: a list, or a string separated by commas.
pub(super) fn devices_of(devices: &Value) -> Result<Vec<String>, CallError> {
    let names: Vec<String> = match devices {
        Value::Nil => Vec::new(),
        Value::List(list) => list.iter().map(ToString::to_string).collect(),
        text => text.to_string().split(',').map(|name| name.trim().to_owned()).collect(),
    };
    if names.is_empty() {
        return Err(CallError::Execution("devices is invalid: expected at least one device".into()));
    }
    names.iter().map(|name| argument(name)).collect()
}

/// Returns the command line options of arguments that mdadm interprets.
fn options(kwargs: &Map) -> Result<Vec<String>, CallError> {
    let mut words = Vec::new();
    for (key, value) in kwargs {
        let name = key.to_string();
        if name.starts_with("__") {
            continue;
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(CallError::Execution(format!("'{name}' is not an option of mdadm: expected a long option")));
        }
        words.push(format!("--{name}"));
        if *value != Value::Bool(true) {
            words.push(argument(&value.to_string())?);
        }
    }
    Ok(words)
}
