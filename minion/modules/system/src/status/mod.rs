//! `status`: load, memory, processors and processes of this host.

use std::path::Path;

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_text::glob::fnmatch;
use brine_value::{Map, Value, map};
use jiff::Timestamp;
use nix::sys::statvfs::statvfs;

mod custom;
pub mod master;
pub(crate) mod state;
pub mod tables;

pub(super) static MODULE: Module = Module {
    functions: &[&FUNCTIONS, &master::FUNCTIONS, &tables::FUNCTIONS],
    states: &[&state::FUNCTIONS],
    ..Module::EMPTY
};

/// Execution functions of `status`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "status",
    [loadavg, cpustats, meminfo, cpuinfo, vmstats, nproc, uptime, diskusage, procs, time, version, custom::custom]
);

/// Return the load averages of the last 1, 5 and 15 minutes.
///
/// CLI Example:
///
///     salt '*' status.loadavg
#[function]
pub fn loadavg(_context: &Context) -> CallResult {
    let text = read("/proc/loadavg")?;
    Ok(["1-min", "5-min", "15-min"].into_iter().zip(text.split_whitespace()).map(pair).collect::<Map>().into())
}

/// Return the processor times since boot, in ticks, and the number of interrupts.
///
/// CLI Example:
///
///     salt '*' status.cpustats
#[function]
pub fn cpustats(_context: &Context) -> CallResult {
    Ok(processor_times(&read("/proc/stat")?).into())
}

/// Return the memory usage of this host.
///
/// CLI Example:
///
///     salt '*' status.meminfo
#[function]
pub fn meminfo(_context: &Context) -> CallResult {
    Ok(memory(&read("/proc/meminfo")?).into())
}

/// Return the processors of this host; if there are several, the values of the last one.
///
/// CLI Example:
///
///     salt '*' status.cpuinfo
#[function]
pub fn cpuinfo(_context: &Context) -> CallResult {
    let one = |(name, value): (&str, &str)| {
        let (name, value) = (name.trim(), value.trim());
        let words = || value.split_whitespace().collect::<Value>();
        (name.into(), if name == "flags" { words() } else { value.into() })
    };
    Ok(read("/proc/cpuinfo")?.lines().filter_map(|line| line.split_once(':')).map(one).collect::<Map>().into())
}

/// Return the counters of virtual memory.
///
/// CLI Example:
///
///     salt '*' status.vmstats
#[function]
pub fn vmstats(_context: &Context) -> CallResult {
    Ok(read("/proc/vmstat")?.lines().filter_map(|line| line.split_once(' ')).map(pair).collect::<Map>().into())
}

/// Return the number of usable processors.
///
/// CLI Example:
///
///     salt '*' status.nproc
#[function]
pub fn nproc(_context: &Context) -> CallResult {
    Ok(std::thread::available_parallelism().map_err(CallError::execution)?.get().into())
}

/// Return the uptime of this host, and the number of logged-in users.
///
/// CLI Example:
///
///     salt '*' status.uptime
#[function]
pub fn uptime(context: &Context) -> CallResult {
    let text = read("/proc/uptime")?;
    let seconds = text.split(['.', ' ']).next().and_then(|seconds| seconds.parse().ok());
    let seconds: i64 = seconds.ok_or_else(|| CallError::Execution("/proc/uptime is invalid".into()))?;
    let mut report = up_for(seconds, Timestamp::now());
    if let Ok(who) = run(context, &["who".into(), "-s".into()], &[]) {
        report.insert("users".into(), who.stdout.split('\n').count().into());
    }
    Ok(report.into())
}

/// Return the available and total bytes of file systems, for paths or for types of file systems, which may be
/// globs; by default of all file systems.
///
/// CLI Example:
///
///     salt '*' status.diskusage /var ext4
#[function]
pub fn diskusage(
    _context: &Context,
    /// Paths, which begin with a slash, and types of file systems, such as `ext4`.
    #[rest]
    args: Vec<Value>,
) -> CallResult {
    let args: Vec<String> = args.iter().map(ToString::to_string).collect();
    let (mut paths, kinds): (Vec<String>, Vec<String>) = args.into_iter().partition(|arg| arg.starts_with('/'));
    let all = paths.is_empty() && kinds.is_empty();
    for line in read("/proc/mounts")?.lines() {
        let mut words = line.split_whitespace().skip(1);
        let (Some(path), Some(kind)) = (words.next(), words.next()) else { continue };
        if (all || kinds.iter().any(|pattern| fnmatch(pattern, kind))) && !paths.iter().any(|other| other == path) {
            paths.push(path.to_owned());
        }
    }
    let usage = |path: String| {
        let (available, total) = match statvfs(path.as_str()) {
            Ok(status) => {
                (Some(status.blocks_available() * status.block_size()), Some(status.blocks() * status.block_size()))
            }
            Err(error) => {
                tracing::warn!(path, %error, "reading the usage of a file system failed");
                (None, None)
            }
        };
        (path.into(), map! {"available" => available, "total" => total}.into())
    };
    Ok(paths.into_iter().filter(|path| Path::new(path).exists()).map(usage).collect::<Map>().into())
}

/// Return the processes of this host by PID, each with its `user` and `cmd`.
///
/// CLI Example:
///
///     salt '*' status.procs
#[function]
pub fn procs(context: &Context) -> CallResult {
    let output = run(context, &["ps", "-eo", "user:64,pid,args"].map(str::to_owned), &[])?;
    Ok(processes(&output.stdout).into())
}

/// Return the time, in a format of strftime.
///
/// CLI Example:
///
///     salt '*' status.time '%s'
#[function]
pub fn time(
    _context: &Context,
    /// Format of the time.
    #[default("%A, %d. %B %Y %I:%M%p".into())]
    format: String,
) -> CallResult {
    Ok(brine_clock::strftime(&format, &brine_clock::now()).map_err(CallError::execution)?.into())
}

/// Return the kernel version.
///
/// CLI Example:
///
///     salt '*' status.version
#[function]
pub fn version(_context: &Context) -> CallResult {
    Ok(read("/proc/version")?.trim().into())
}

/// Reads a file of procfs.
pub(super) fn read(path: &str) -> Result<String, CallError> {
    std::fs::read_to_string(path).map_err(|error| CallError::Execution(format!("reading {path} failed: {error}")))
}

/// Parses an integer, or returns the string.
fn number(text: &str) -> Value {
    let text = text.trim();
    let whole = || text.parse::<u64>().map(Value::from).or_else(|_| text.parse::<i64>().map(Value::from));
    whole().or_else(|_| text.parse::<f64>().map(Value::from)).unwrap_or_else(|_| text.into())
}

fn pair((name, value): (&str, &str)) -> (Value, Value) {
    (name.into(), number(value))
}

fn processor_times(text: &str) -> Map {
    const NAMES: [&str; 8] = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];
    let mut report = Map::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let Some(name) = words.next() else { continue };
        let mut numbers = words.map(number);
        let counted = |mut numbers: Box<dyn Iterator<Item = Value>>, each: &str| {
            map! {"total" => numbers.next(), each => numbers.collect::<Value>()}.into()
        };
        let numbers_of = |numbers: Vec<Value>| Box::new(numbers.into_iter()) as Box<dyn Iterator<Item = Value>>;
        let value: Value = match name {
            "cpu" => NAMES.into_iter().map(Value::from).zip(numbers).collect::<Map>().into(),
            "intr" => counted(numbers_of(numbers.collect()), "irqs"),
            "softirq" => counted(numbers_of(numbers.collect()), "softirqs"),
            _ => numbers.next().unwrap_or_default(),
        };
        report.insert(name.into(), value);
    }
    report
}

fn memory(text: &str) -> Map {
    let one = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        let mut words = rest.split_whitespace();
        let mut amount = map! {"value" => words.next()?};
        if let Some(unit) = words.next() {
            amount.insert("unit".into(), unit.into());
        }
        Some((name.into(), amount.into()))
    };
    text.lines().filter_map(one).collect()
}

fn up_for(seconds: i64, now: Timestamp) -> Map {
    let since = now - jiff::SignedDuration::from_secs(seconds);
    let rest = seconds % 86_400;
    map! {
        "seconds" => seconds,
        "since_iso" => since.strftime("%Y-%m-%dT%H:%M:%S.%6f").to_string(),
        "since_t" => since.as_second(),
        "days" => seconds / 86_400,
        "time" => format!("{}:{}", rest / 3600, rest % 3600 / 60),
    }
}

fn processes(text: &str) -> Map {
    let one = |line: &str| {
        let mut words = line.split_whitespace();
        let (user, pid) = (words.next()?, words.next()?);
        let cmd = words.collect::<Vec<_>>().join(" ");
        Some((pid.into(), map! {"user" => user, "cmd" => cmd}.into()))
    };
    text.lines().skip(1).filter_map(one).collect()
}

#[cfg(test)]
mod tests;
