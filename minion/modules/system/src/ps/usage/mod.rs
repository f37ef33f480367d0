//! `ps`: the busiest processes, and the tables of `ps` and `lsof`.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

use brine_context::Context;
use brine_context::programs::run;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_text::python_regex::Regex;
use brine_value::{Map, Value, map};
use nix::unistd::{SysconfVar, Uid, User, sysconf};

use super::{name_of, owner_of, pids};
use crate::status::read;

/// Execution functions of `ps`.
pub static FUNCTIONS: Functions<Context> = registry!("ps", [top, psaux, lsof, netstat, ss]);

/// The interval at which `wait` checks whether the job is cancelled.
const STEP: Duration = Duration::from_millis(100);

/// Return the processes that use the most processor time during an interval in seconds.
///
/// CLI Example:
///
///     salt '*' ps.top
///     salt '*' ps.top 5 10
#[function]
pub fn top(
    context: &Context,
    /// Number of processes that are listed.
    #[default(5)]
    num_processes: usize,
    /// Seconds over which the usage is measured.
    #[default(3.0)]
    interval: f64,
) -> CallResult {
    let units = Units::read()?;
    let before: HashMap<(u32, u64), f64> =
        pids().into_iter().filter_map(Process::read).map(|process| (process.key(), process.used(&units))).collect();
    wait(context, Duration::try_from_secs_f64(interval).map_err(CallError::execution)?);
    let now = pids().into_iter().filter_map(Process::read);
    let mut busy: Vec<(f64, Process)> =
        now.filter_map(|process| Some((process.used(&units) - before.get(&process.key())?, process))).collect();
    busy.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    Ok(busy.into_iter().take(num_processes).map(|(_, process)| process.described(&units)).collect())
}

/// Return the lines of `ps aux` that match a regular expression, and how many there are.
///
/// CLI Example:
///
///     salt '*' ps.psaux www-data.+apache2
#[function]
pub fn psaux(
    context: &Context,
    /// Text in the line of the process or connection.
    name: String,
) -> CallResult {
    let regex = Regex::new(&name).map_err(CallError::execution)?;
    // Excludes the command line that called this function, as in Salt.
    let own = Regex::new("salt.+ps.psaux.+").map_err(CallError::execution)?;
    let is = |regex: &Regex, line: &str| regex.is_match(line).unwrap_or(false);
    let output = run(context, &["ps".into(), "aux".into()], &[])?;
    let lines: Vec<&str> = output.stdout.lines().filter(|line| is(&regex, line) && !is(&own, line)).collect();
    let count = format!("{} occurrence(s).", lines.len());
    Ok(Value::List(vec![name.into(), lines.into_iter().collect(), count.into()]))
}

/// Return the open files of the processes whose name begins with a string, as reported by `lsof`.
///
/// CLI Example:
///
///     salt '*' ps.lsof apache2
#[function]
pub fn lsof(
    context: &Context,
    /// Text in the line of the process or connection.
    name: String,
) -> CallResult {
    let output = run(context, &["lsof".into(), "-c".into(), argument(&name)?], &[])?;
    Ok(Value::List(vec![name.into(), output.stdout.into()]))
}

/// Return the lines of `netstat -nap` in which a string occurs.
///
/// CLI Example:
///
///     salt '*' ps.netstat apache2
#[function]
pub fn netstat(
    context: &Context,
    /// Text in the line of the process or connection.
    name: String,
) -> CallResult {
    lines_with(context, &["netstat", "-nap"], name)
}

/// Return the lines of `ss -neap` in which a string occurs.
///
/// CLI Example:
///
///     salt '*' ps.ss apache2
#[function]
pub fn ss(
    context: &Context,
    /// Text in the line of the process or connection.
    name: String,
) -> CallResult {
    lines_with(context, &["ss", "-neap"], name)
}

fn lines_with(context: &Context, command: &[&str], name: String) -> CallResult {
    let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
    let output = run(context, &command, &[])?;
    let lines: Value = output.stdout.lines().filter(|line| line.contains(&name)).collect();
    Ok(Value::List(vec![name.into(), lines]))
}

/// Waits for an interval, or until the job is cancelled.
pub(super) fn wait(context: &Context, interval: Duration) {
    let end = Instant::now() + interval;
    while Instant::now() < end && !context.job.cancel.is_cancelled() {
        std::thread::sleep(STEP.min(end.saturating_duration_since(Instant::now())));
    }
}

/// The units of procfs.
pub(super) struct Units {
    /// Clock ticks per second.
    ticks: f64,
    /// Bytes per page.
    pub(super) page: u64,
    /// The boot time, in seconds since 1970.
    boot: f64,
}

impl Units {
    pub(super) fn read() -> Result<Self, CallError> {
        let number = |name| sysconf(name).ok().flatten().and_then(|number| u64::try_from(number).ok());
        let text = read("/proc/stat")?;
        let boot = text.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok());
        Ok(Units {
            ticks: number(SysconfVar::CLK_TCK).unwrap_or(100) as f64,
            page: number(SysconfVar::PAGE_SIZE).unwrap_or(4096),
            boot: boot.ok_or_else(|| CallError::Execution("/proc/stat is invalid".into()))?,
        })
    }
}

/// A process, with the integers in `/proc/PID/stat` after the state.
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) state: char,
    numbers: Vec<u64>,
}

impl Process {
    pub(super) fn read(pid: u32) -> Option<Self> {
        Self::parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Parses `1 (name) S 0 1 ...`; the name may have parentheses and blanks.
    pub(super) fn parse(pid: u32, text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(") ")?;
        let mut words = rest.split_whitespace();
        let state = words.next()?.chars().next()?;
        // Negative integers become 0: none of them is used.
        let numbers: Vec<u64> = words.map(|word| word.parse().unwrap_or_default()).collect();
        (numbers.len() >= 19).then_some(Process { pid, state, numbers })
    }

    /// Returns a key that stays unique when PIDs are reused: the PID and the start time.
    fn key(&self) -> (u32, u64) {
        (self.pid, self.numbers[18])
    }

    /// Returns a time in seconds, by its index after the state: 10 is user, 11 system, 12 and 13 are those of children,
    /// 38 is I/O.
    pub(super) fn seconds(&self, place: usize, units: &Units) -> f64 {
        self.numbers.get(place).copied().unwrap_or_default() as f64 / units.ticks
    }

    /// Returns an integer by its index after the state; index 0 is the PID of the parent.
    pub(super) fn number(&self, place: usize) -> u64 {
        self.numbers.get(place).copied().unwrap_or_default()
    }

    /// Returns the start time, in seconds since 1970.
    pub(super) fn started(&self, units: &Units) -> f64 {
        units.boot + self.seconds(18, units)
    }

    fn used(&self, units: &Units) -> f64 {
        self.seconds(10, units) + self.seconds(11, units)
    }

    fn described(&self, units: &Units) -> Value {
        let pid = self.pid;
        let owner = owner_of(pid);
        let name = owner.and_then(|uid| User::from_uid(Uid::from_raw(uid)).ok().flatten()).map(|user| user.name);
        map! {
            "cmd" => command(pid),
            "user" => name.or_else(|| owner.map(|uid| uid.to_string())),
            "status" => status(self.state),
            "pid" => pid,
            "create_time" => self.started(units),
            "cpu" => map! {
                "user" => self.seconds(10, units), "system" => self.seconds(11, units),
                "children_user" => self.seconds(12, units), "children_system" => self.seconds(13, units),
                "iowait" => self.seconds(38, units),
            },
            "mem" => memory(&fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default(), units.page),
        }
        .into()
    }
}

/// Returns the arguments of a process, or its name if it has none.
fn command(pid: u32) -> Value {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    match text.trim_end_matches('\0') {
        "" => name_of(pid).into(),
        words => words.split('\0').collect(),
    }
}

/// Returns the name of a process state as in the Python package `psutil`.
pub(super) fn status(state: char) -> &'static str {
    match state {
        'R' => "running",
        'S' => "sleeping",
        'D' => "disk-sleep",
        'T' => "stopped",
        't' => "tracing-stop",
        'Z' => "zombie",
        'X' | 'x' => "dead",
        'K' => "wake-kill",
        'W' => "waking",
        'I' => "idle",
        'P' => "parked",
        _ => "?",
    }
}

/// Parses `/proc/PID/statm`, in bytes.
pub(super) fn memory(text: &str, page: u64) -> Map {
    let pages: Vec<u64> = text.split_whitespace().map(|number| number.parse().unwrap_or_default()).collect();
    let bytes = |place: usize| pages.get(place).copied().unwrap_or_default() * page;
    map! {
        "rss" => bytes(1), "vms" => bytes(0), "shared" => bytes(2), "text" => bytes(3), "lib" => bytes(4),
        "data" => bytes(5), "dirty" => bytes(6),
    }
}

#[cfg(test)]
mod tests;
