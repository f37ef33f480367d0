//! `ps`: processes that run or do not run.

use std::collections::HashSet;
use std::path::Path;

use brine_value::{Map, Value, map};

use super::settings::Settings;
use super::{Beacon, Kind, Options, PollContext, entry};

/// The length to which the kernel truncates the name of a process.
const COMM_LEN: usize = 15;

/// The processes by name, with the state that is reported.
struct Ps(Vec<(String, Reported)>);

/// The reported state of a process.
#[derive(Clone, Copy)]
enum Reported {
    Running,
    Stopped,
    /// For any other value of the option: `False` is reported if the process does not run.
    Missing,
}

pub(super) const KIND: Kind = Kind {
    name: "ps",
    doc: "Processes that run or do not run, at each poll.",
    options: Options::Named(&[entry(
        "processes",
        "Required. A mapping of process names to `running` or `stopped`: the state that is reported.",
    )]),
    fields: &[entry("<process>", "`Running`, `Stopped`, or False.")],
    start,
    ..Kind::DEFAULT
};

fn start(settings: &Settings) -> Result<Box<dyn Beacon>, String> {
    let reported = |value: &Value| match value.as_str() {
        Some("running") => Reported::Running,
        Some("stopped") => Reported::Stopped,
        _ => Reported::Missing,
    };
    let processes = settings.map("processes")?;
    Ok(Box::new(Ps(processes.iter().map(|(name, value)| (name.to_string(), reported(value))).collect())))
}

impl Ps {
    fn events(&self, running: &HashSet<String>) -> Vec<Map> {
        let one = |(name, reported): &(String, Reported)| {
            let name = name.as_str();
            match (reported, running.contains(name)) {
                (Reported::Running, true) => Some(map! {name => "Running"}),
                (Reported::Stopped, false) => Some(map! {name => "Stopped"}),
                (Reported::Missing, false) => Some(map! {name => false}),
                _ => None,
            }
        };
        self.0.iter().filter_map(one).collect()
    }
}

/// Returns the names of all processes.
fn names() -> Result<HashSet<String>, String> {
    let entries = std::fs::read_dir("/proc").map_err(|error| format!("/proc cannot be read: {error}"))?;
    Ok(entries.filter_map(|entry| name(&entry.ok()?.path())).collect())
}

/// Returns the name of a process: the kernel's or, where that is truncated, the file name of the program.
pub(super) fn name(directory: &Path) -> Option<String> {
    directory.file_name()?.to_str()?.parse::<u32>().ok()?;
    // The process may have ended.
    let name = std::fs::read_to_string(directory.join("comm")).ok()?.trim_end_matches('\n').to_owned();
    if name.len() < COMM_LEN {
        return Some(name);
    }
    let line = std::fs::read(directory.join("cmdline")).unwrap_or_default();
    let program = line.split(|byte| *byte == 0).next().unwrap_or_default();
    let program = String::from_utf8_lossy(program);
    let program = program.rsplit('/').next().unwrap_or_default();
    Some(if program.starts_with(&name) { program.to_owned() } else { name })
}

impl Beacon for Ps {
    fn poll(&mut self, _context: &PollContext<'_>) -> Result<Vec<Map>, String> {
        Ok(self.events(&names()?))
    }
}

#[cfg(test)]
mod tests;
