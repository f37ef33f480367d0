//! `ps`: the attributes of a process, processes by state, and logged-in users.

use std::fs;

use brine_context::Context;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};
use nix::unistd::{Uid, User};

use super::usage::{Process, Units, memory, status as name_of_state};
use super::{name_of, pids};
use crate::status::read;

/// Execution functions of `ps`.
pub static FUNCTIONS: Functions<Context> = registry!("ps", [proc_info, status, get_users]);

/// Attributes of `proc_info`: those of the Python package `psutil`, except for the ones that require a scan of all
/// sockets or memory pages.
const ATTRIBUTES: [&str; 23] = [
    "pid",
    "ppid",
    "name",
    "status",
    "username",
    "uids",
    "gids",
    "terminal",
    "create_time",
    "cmdline",
    "exe",
    "cwd",
    "nice",
    "num_threads",
    "num_fds",
    "num_ctx_switches",
    "cpu_times",
    "cpu_num",
    "memory_info",
    "memory_percent",
    "io_counters",
    "environ",
    "threads",
];

/// Return the attributes of a process: all, or the ones named in `attrs` of `pid`, `ppid`, `name`, `status`,
/// `username`, `uids`, `gids`, `terminal`, `create_time`, `cmdline`, `exe`, `cwd`, `nice`, `num_threads`, `num_fds`,
/// `num_ctx_switches`, `cpu_times`, `cpu_num`, `memory_info`, `memory_percent`, `io_counters`, `environ` and `threads`.
///
/// CLI Example:
///
///     salt '*' ps.proc_info 2322
///     salt '*' ps.proc_info 2322 attrs='["pid", "name"]'
#[function]
pub fn proc_info(
    _context: &Context,
    /// Id of the process.
    pid: u32,
    /// Names of attributes; all by default.
    attrs: Option<Vec<String>>,
) -> CallResult {
    let units = Units::read()?;
    let process =
        Process::read(pid).ok_or_else(|| CallError::Execution(format!("process PID not found (pid={pid})")))?;
    let attrs = attrs.unwrap_or_else(|| ATTRIBUTES.map(str::to_owned).to_vec());
    if let Some(unknown) = attrs.iter().find(|attr| !ATTRIBUTES.contains(&attr.as_str())) {
        return Err(CallError::Execution(format!(
            "process attribute '{unknown}' is not available: use {}",
            ATTRIBUTES.join(", ")
        )));
    }
    let about = ProcessInfo { status: text_of(pid, "status"), process, units };
    Ok(attrs.into_iter().map(|attr| (attr.as_str().into(), about.attribute(&attr))).collect::<Map>().into())
}

/// Return the processes in a state, such as `running`, `sleeping`, `disk-sleep`, `stopped`, `zombie` or `idle`, with
/// their PIDs and names.
///
/// CLI Example:
///
///     salt '*' ps.status zombie
#[function]
pub fn status(
    _context: &Context,
    /// Status of the processes, such as `sleeping`.
    status: String,
) -> CallResult {
    if status.is_empty() {
        return Err(CallError::Execution("Filter is required for ps.status".into()));
    }
    // Salt's documentation writes the names of states with underscores.
    let state = status.replace('_', "-");
    let processes =
        pids().into_iter().filter_map(Process::read).filter(|process| name_of_state(process.state) == state);
    Ok(processes.map(|process| Value::from(map! {"pid" => process.pid, "name" => name_of(process.pid)})).collect())
}

/// Return the logged-in users: name, terminal, host, since when in seconds since 1970, and the PID of the session.
///
/// CLI Example:
///
///     salt '*' ps.get_users
#[function]
pub fn get_users(_context: &Context) -> CallResult {
    // A host without the file has no sessions.
    Ok(sessions(&fs::read("/var/run/utmp").unwrap_or_default()).into_iter().map(Value::from).collect())
}

/// A process, and the units of procfs.
struct ProcessInfo {
    process: Process,
    /// Content of `/proc/PID/status`.
    status: String,
    units: Units,
}

impl ProcessInfo {
    fn attribute(&self, name: &str) -> Value {
        let pid = self.process.pid;
        match name {
            "pid" => pid.into(),
            "ppid" => self.process.number(0).into(),
            "name" => name_of(pid).into(),
            "status" => name_of_state(self.process.state).into(),
            "username" => {
                let uid = self.ids("Uid").first().copied().unwrap_or_default();
                let user = User::from_uid(Uid::from_raw(u32::try_from(uid).unwrap_or(u32::MAX))).ok().flatten();
                user.map_or_else(|| uid.to_string(), |user| user.name).into()
            }
            "uids" => self.ids("Uid").into_iter().take(3).collect(),
            "gids" => self.ids("Gid").into_iter().take(3).collect(),
            "terminal" => terminal(self.process.number(3)).into(),
            "create_time" => self.process.started(&self.units).into(),
            "cmdline" => words(&bytes_of(pid, "cmdline")),
            "exe" => link(pid, "exe"),
            "cwd" => link(pid, "cwd"),
            "nice" => nice(&text_of(pid, "stat")),
            "num_threads" => self.ids("Threads").first().copied().into(),
            "num_fds" => fs::read_dir(format!("/proc/{pid}/fd")).ok().map(Iterator::count).into(),
            "num_ctx_switches" => ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"]
                .into_iter()
                .map(|name| self.ids(name).first().copied().unwrap_or_default())
                .collect(),
            "cpu_times" => [10, 11, 12, 13, 38].into_iter().map(|at| self.process.seconds(at, &self.units)).collect(),
            "cpu_num" => self.process.number(35).into(),
            "memory_info" => memory(&text_of(pid, "statm"), self.units.page).into_values().collect(),
            "memory_percent" => self.share_of_memory().into(),
            "io_counters" => io(&text_of(pid, "io")),
            "environ" => environment(&bytes_of(pid, "environ")).into(),
            "threads" => self.threads(),
            _ => Value::Nil,
        }
    }

    /// Returns the integers of a line of `/proc/PID/status`.
    fn ids(&self, name: &str) -> Vec<u64> {
        let line = self.status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_default().split_whitespace().filter_map(|word| word.parse().ok()).collect()
    }

    fn share_of_memory(&self) -> f64 {
        let resident = memory(&text_of(self.process.pid, "statm"), self.units.page).get("rss").and_then(Value::as_f64);
        let total = read("/proc/meminfo").ok().map(|text| super::host::memory(&text, "MemTotal")).unwrap_or_default();
        if total == 0 { 0.0 } else { resident.unwrap_or_default() / total as f64 * 100.0 }
    }

    fn threads(&self) -> Value {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.process.pid)).into_iter().flatten().flatten();
        let mut ids: Vec<u32> = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect();
        ids.sort_unstable();
        let thread = |id: u32| {
            let path = format!("/proc/{}/task/{id}/stat", self.process.pid);
            let thread = Process::parse(id, &fs::read_to_string(path).ok()?)?;
            let seconds = |at| Value::from(thread.seconds(at, &self.units));
            Some(Value::List(vec![id.into(), seconds(10), seconds(11)]))
        };
        ids.into_iter().filter_map(thread).collect()
    }
}

/// Returns the first MiB of a file in `/proc/PID`; empty if it cannot be read. The kernel limits arguments and
/// environment variables, but a process can raise that limit.
fn bytes_of(pid: u32, file: &str) -> Vec<u8> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let opened = fs::File::open(format!("/proc/{pid}/{file}"));
    // The process may have ended in the meantime.
    let _ = opened.and_then(|opened| opened.take(1 << 20).read_to_end(&mut bytes));
    bytes
}

fn text_of(pid: u32, file: &str) -> String {
    String::from_utf8_lossy(&bytes_of(pid, file)).into_owned()
}

fn link(pid: u32, name: &str) -> Value {
    fs::read_link(format!("/proc/{pid}/{name}")).ok().map(|path| path.to_string_lossy().into_owned()).into()
}

fn words(bytes: &[u8]) -> Value {
    let text = String::from_utf8_lossy(bytes);
    match text.trim_end_matches('\0') {
        "" => Value::List(Vec::new()),
        words => words.split('\0').collect(),
    }
}

/// Returns the niceness, field 19 of `/proc/PID/stat`, which may be negative.
fn nice(stat: &str) -> Value {
    let rest = stat.rsplit_once(") ").map(|(_, rest)| rest).unwrap_or_default();
    rest.split_whitespace().nth(16).and_then(|word| word.parse::<i64>().ok()).into()
}

/// Returns the I/O counters of `/proc/PID/io` in psutil's order.
fn io(text: &str) -> Value {
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))?;
        line.trim().parse::<u64>().ok()
    };
    let names = ["syscr", "syscw", "read_bytes", "write_bytes", "rchar", "wchar"];
    names.into_iter().map(number).collect::<Option<Vec<u64>>>().map_or(Value::Nil, |all| all.into_iter().collect())
}

fn environment(bytes: &[u8]) -> Map {
    let text = String::from_utf8_lossy(bytes);
    text.split('\0').filter_map(|line| line.split_once('=')).map(|(name, value)| (name.into(), value.into())).collect()
}

/// Returns the device file for the device number of a terminal: a pseudo-terminal, virtual console or serial line.
fn terminal(number: u64) -> Option<String> {
    let (major, minor) = ((number >> 8) & 0xfff, (number & 0xff) | ((number >> 12) & 0xfff00));
    match major {
        4 if minor < 64 => Some(format!("/dev/tty{minor}")),
        4 => Some(format!("/dev/ttyS{}", minor - 64)),
        136..=143 => Some(format!("/dev/pts/{}", (major - 136) * 256 + minor)),
        _ => None,
    }
}

/// Layout of a record of utmp(5), in bytes: its size, and the offset and width of the seconds of its time.
#[cfg(target_arch = "aarch64")]
const RECORD: (usize, usize, usize) = (400, 344, 8);
#[cfg(not(target_arch = "aarch64"))]
const RECORD: (usize, usize, usize) = (384, 340, 4);

/// The record type of sessions, `USER_PROCESS`.
const SESSION: u8 = 7;

/// Parses the records of utmp(5).
fn sessions(bytes: &[u8]) -> Vec<Map> {
    let (size, at, width) = RECORD;
    let session = |record: &[u8]| {
        let text = |from: usize, length: usize| {
            let field = record.get(from..from + length).unwrap_or_default();
            String::from_utf8_lossy(field.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
        };
        let number = |from: usize, width: usize| {
            let field = record.get(from..from + width).unwrap_or_default();
            field.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
        };
        let host = text(76, 256);
        (record.first() == Some(&SESSION)).then(|| {
            map! {
                "name" => text(44, 32), "terminal" => text(8, 32),
                "host" => if host == ":0" || host == ":0.0" { "localhost".to_owned() } else { host },
                "started" => number(at, width) as f64, "pid" => number(4, 4),
            }
        })
    };
    bytes.chunks_exact(size).filter_map(session).collect()
}

#[cfg(test)]
mod tests;
