//! `ps`: processes of this host, from `/proc`.

use std::fs;

use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::accounts::Accounts;
use brine_text::python_regex::Regex;
use brine_value::{Value, map};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

mod counters;
pub mod host;
mod partitions;
mod process;
pub(crate) mod state;
mod usage;

pub(super) static MODULE: Module = Module {
    functions: &[
        &FUNCTIONS,
        &host::FUNCTIONS,
        &usage::FUNCTIONS,
        &counters::FUNCTIONS,
        &partitions::FUNCTIONS,
        &process::FUNCTIONS,
    ],
    states: &[&state::FUNCTIONS],
    ..Module::EMPTY
};

/// Execution functions of `ps`.
pub static FUNCTIONS: Functions<Context> = registry!("ps", [get_pid_list, pgrep, pkill, kill_pid]);

/// Return the PIDs of all processes.
///
/// CLI Example:
///
///     salt '*' ps.get_pid_list
#[function]
pub fn get_pid_list(_context: &Context) -> CallResult {
    Ok(pids().into_iter().collect())
}

/// Return the PIDs of processes, or only of a user's, with a string in their name, or with `full` in their command
/// line; with `pattern_is_regex` the string is a regular expression. Returns nothing if there is none.
///
/// CLI Example:
///
///     salt '*' ps.pgrep bash user=tom
#[function]
pub fn pgrep(
    _context: &Context,
    /// String in the name of the process.
    pattern: String,
    /// Owner of the processes.
    user: Option<String>,
    /// Whether the pattern is searched for in the whole command line.
    #[default(false)]
    full: bool,
    /// Whether the pattern is a regular expression.
    #[default(false)]
    pattern_is_regex: bool,
) -> CallResult {
    let pids = if pattern_is_regex {
        let regex = Regex::new(&pattern).map_err(CallError::execution)?;
        matching(user.as_deref(), full, |text| regex.is_match(text).unwrap_or(false))
    } else {
        matching(user.as_deref(), full, |text| text.contains(&pattern))
    };
    Ok(if pids.is_empty() { Value::Nil } else { pids.into_iter().collect() })
}

/// Send a signal to the processes that `pgrep` finds, except the minion's own, and return them; nothing if there is
/// none.
///
/// CLI Example:
///
///     salt '*' ps.pkill bash signal=9 user=tom
#[function]
pub fn pkill(
    _context: &Context,
    /// String in the name of the process.
    pattern: String,
    /// Owner of the processes.
    user: Option<String>,
    /// Number of the signal.
    #[default(15)]
    signal: i32,
    /// Whether the pattern is searched for in the whole command line.
    #[default(false)]
    full: bool,
) -> CallResult {
    if pattern.is_empty() {
        return Err(CallError::Execution("the pattern is empty and would match every process".into()));
    }
    let signal = signal_of(signal)?;
    let own = std::process::id();
    let pids = matching(user.as_deref(), full, |text| text.contains(&pattern));
    let killed: Vec<u32> = pids.into_iter().filter(|pid| *pid != own && send(*pid, signal)).collect();
    Ok(if killed.is_empty() { Value::Nil } else { map! {"killed" => killed.into_iter().collect::<Value>()}.into() })
}

/// Send a signal to a process, and return whether the process exists.
///
/// CLI Example:
///
///     salt '*' ps.kill_pid 2000 signal=9
#[function]
pub fn kill_pid(
    _context: &Context,
    /// Id of the process.
    pid: u32,
    /// Number of the signal.
    #[default(15)]
    signal: i32,
) -> CallResult {
    Ok(send(pid, signal_of(signal)?).into())
}

fn pids() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    pids
}

fn signal_of(number: i32) -> Result<Signal, CallError> {
    Signal::try_from(number).map_err(|_| CallError::Execution(format!("unknown signal {number}")))
}

fn send(pid: u32, signal: Signal) -> bool {
    // Zero and negative PIDs would address process groups.
    i32::try_from(pid).is_ok_and(|pid| pid > 0 && kill(Pid::from_raw(pid), signal).is_ok())
}

/// Returns the PIDs of processes whose name, or with `full` command line, matches: those of a user, or of all users.
fn matching(user: Option<&str>, full: bool, fits: impl Fn(&str) -> bool) -> Vec<u32> {
    let owner = user.map(|name| Accounts::read().user(name).map(|account| account.uid));
    let matches = |pid: &u32| {
        let is_owned = owner.is_none_or(|owner| owner.is_some() && owner_of(*pid) == owner);
        is_owned && (if full { command_line(*pid) } else { name_of(*pid) }).is_some_and(|text| fits(&text))
    };
    pids().into_iter().filter(matches).collect()
}

fn owner_of(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_whitespace().next()?.parse().ok()
}

fn command_line(pid: u32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim_end_matches('\0').replace('\0', " "))
}

/// Returns the name of a process. The kernel stores only its first 15 bytes, so a longer name is taken from the command
/// line.
fn name_of(pid: u32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim_end().to_owned();
    if name.len() < 15 {
        return Some(name);
    }
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let program = String::from_utf8_lossy(line.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned();
    let whole = program.rsplit('/').next().unwrap_or_default().to_owned();
    Some(if whole.starts_with(&name) { whole } else { name })
}

#[cfg(test)]
mod tests;
