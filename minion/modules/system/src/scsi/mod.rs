//! `scsi`: SCSI devices.

use std::io::Write;
use std::path::Path;

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_system::user_files;
use brine_value::{Map, Value, list, map};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `scsi`.
pub static FUNCTIONS: Functions<Context> = registry!("scsi", [ls, rescan_all]);

/// Return the SCSI devices with their attributes, as `lsscsi` reports them.
///
/// CLI Example:
///
///     salt '*' scsi.ls
///     salt '*' scsi.ls get_size=False
#[function]
pub fn ls(
    context: &Context,
    /// Whether the sizes are returned, which old releases of `lsscsi` cannot.
    #[default(true)]
    get_size: bool,
) -> CallResult {
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
pub fn rescan_all(
    _context: &Context,
    /// Number of the host, such as `0` for `/sys/class/scsi_host/host0`.
    host: String,
) -> CallResult {
    rescan(Path::new("/sys/class/scsi_host"), &host)
}

fn rescan(hosts: &Path, host: &str) -> CallResult {
    let directory = hosts.join(format!("host{host}"));
    if host.is_empty() || !host.bytes().all(|byte| byte.is_ascii_digit()) || !directory.is_dir() {
        return Ok(format!("Host {host} does not exist").into());
    }
    // Any channel, target and unit.
    user_files::open_truncated(directory.join("scan"), 0o200)
        .and_then(|mut file| file.write_all(b"- - -\n"))
        .map_err(CallError::execution)?;
    Ok(list![])
}

fn devices(text: &str, get_size: bool) -> Map {
    let mut devices = Map::new();
    let mut current: Option<Map> = None;
    let mut key = Value::Nil;
    for line in text.lines() {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        if line.starts_with('[') {
            if let Some(device) = current.take() {
                devices.insert(key.clone(), device.into());
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
        devices.insert(key, device.into());
    }
    devices
}

#[cfg(test)]
mod tests;
