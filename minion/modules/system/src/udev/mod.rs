//! `udev`: the records of devices in the database of udev.

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `udev`.
pub static FUNCTIONS: Functions<Context> = registry!("udev", [info, env, name, path, links, exportdb]);

/// Return the record of a device in the database of udev: its properties (`E`), name (`N`), path (`P`) and symbolic
/// links (`S`).
///
/// CLI Example:
///
///     salt '*' udev.info /dev/sda
///     salt '*' udev.info /sys/class/net/eth0
#[function]
pub fn info(
    context: &Context,
    /// Path or name of the device.
    dev: String,
) -> CallResult {
    about(context, &dev).map(Into::into)
}

/// Return the properties of a device.
///
/// CLI Example:
///
///     salt '*' udev.env /dev/sda
#[function]
pub fn env(
    context: &Context,
    /// Path or name of the device.
    dev: String,
) -> CallResult {
    part(context, &dev, "E")
}

/// Return the name of a device.
///
/// CLI Example:
///
///     salt '*' udev.name /dev/sda
#[function]
pub fn name(
    context: &Context,
    /// Path or name of the device.
    dev: String,
) -> CallResult {
    part(context, &dev, "N")
}

/// Return the path of a device below `/sys`.
///
/// CLI Example:
///
///     salt '*' udev.path /dev/sda
#[function]
pub fn path(
    context: &Context,
    /// Path or name of the device.
    dev: String,
) -> CallResult {
    part(context, &dev, "P")
}

/// Return the symbolic links to a device that udev created below `/dev`.
///
/// CLI Example:
///
///     salt '*' udev.links /dev/sda
#[function]
pub fn links(
    context: &Context,
    /// Path or name of the device.
    dev: String,
) -> CallResult {
    part(context, &dev, "S")
}

/// Return the records of all devices in the database of udev, or of those of some subsystems.
///
/// CLI Example:
///
///     salt '*' udev.exportdb
///     salt '*' udev.exportdb subsystems='[usb, block]'
#[function]
pub fn exportdb(
    context: &Context,
    /// Names of subsystems; all by default.
    #[default]
    subsystems: Value,
) -> CallResult {
    let names = match &subsystems {
        Value::Nil => None,
        Value::List(subsystems) => Some(subsystems),
        _ => return Err(CallError::Execution("subsystems must be a list".into())),
    };
    let devices = query(context, &["udevadm", "info", "--export-db"])?;
    let fits = |device: &Map| {
        let subsystem = device.get("E").and_then(|properties| properties.get("SUBSYSTEM"));
        names.is_none_or(|names| subsystem.is_some_and(|subsystem| names.contains(subsystem)))
    };
    Ok(devices.into_iter().filter(fits).collect())
}

fn part(context: &Context, dev: &str, part: &str) -> CallResult {
    Ok(about(context, dev)?.shift_remove(part).unwrap_or_default())
}

fn about(context: &Context, dev: &str) -> Result<Map, CallError> {
    let kind = if dev.contains("sys") { "path" } else { "name" };
    let device = format!("--{kind}={dev}");
    let devices = query(context, &["udevadm", "info", "--export", "--query=all", &device])?;
    devices.into_iter().next().ok_or_else(|| CallError::Execution(format!("udev does not know the device {dev}")))
}

fn query(context: &Context, words: &[&str]) -> Result<Vec<Map>, CallError> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let output = run(context, &words, &[])?;
    if output.retcode != 0 {
        return Err(CallError::Execution(output.stderr));
    }
    Ok(devices(&output.stdout))
}

/// Parses the output of `udevadm info`: devices are separated by empty lines.
fn devices(text: &str) -> Vec<Map> {
    let (mut devices, mut device) = (Vec::new(), Map::new());
    for line in text.lines().map(str::trim).chain([""]) {
        if line.is_empty() {
            if !device.is_empty() {
                devices.push(normalized(std::mem::take(&mut device)));
            }
            continue;
        }
        let Some((query, data)) = line.split_once(':').map(|(query, data)| (query, data.trim())) else { continue };
        match (query, data.split_once('=')) {
            ("E", Some((name, value))) => {
                if let Value::Map(properties) = device.entry("E".into()).or_insert_with(Value::map) {
                    properties.insert(name.into(), number(value));
                }
            }
            ("E", None) => {}
            _ => {
                if let Value::List(items) = device.entry(query.into()).or_insert_with(|| Value::List(Vec::new())) {
                    items.push(data.into());
                }
            }
        }
    }
    devices
}

/// Unwraps lists with a single item.
fn normalized(device: Map) -> Map {
    let item = |value: Value| match value {
        Value::List(mut items) if items.len() == 1 => items.remove(0),
        other => other,
    };
    device.into_iter().map(|(query, value)| (query, item(value))).collect()
}

/// Converts a property to a number, if it is one.
fn number(text: &str) -> Value {
    let trimmed = text.trim();
    let whole = trimmed.parse::<i64>().map(Value::from).or_else(|_| trimmed.parse::<u64>().map(Value::from));
    let is_whole = trimmed.bytes().all(|byte| byte.is_ascii_digit());
    // An integer beyond 64 bits remains a string.
    let fraction = || if is_whole { None } else { trimmed.parse::<f64>().ok().map(Value::from) };
    whole.ok().or_else(fraction).unwrap_or_else(|| text.into())
}

#[cfg(test)]
mod tests;
