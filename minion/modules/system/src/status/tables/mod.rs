//! `status`: kernel counters of networks and block devices, and the summary of all functions.

use brine_context::Context;
use brine_context::programs::run;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_text::python_regex::Regex;
use brine_value::{Map, Value, map};

use super::{number, processes, read};

/// Functions of `all_status`, in order.
const ALL: [&str; 11] = [
    "cpuinfo",
    "cpustats",
    "diskstats",
    "diskusage",
    "loadavg",
    "meminfo",
    "netdev",
    "netstats",
    "uptime",
    "vmstats",
    "w",
];

/// Execution functions of `status`.
pub static FUNCTIONS: Functions<Context> = registry!("status", [netstats, netdev, diskstats, pid, w, all_status]);

/// Return the kernel's counters of network protocols.
///
/// CLI Example:
///
///     salt '*' status.netstats
#[function]
pub fn netstats(_context: &Context) -> CallResult {
    Ok(protocols(&read("/proc/net/netstat")?).into())
}

/// Return the kernel's counters of network interfaces.
///
/// CLI Example:
///
///     salt '*' status.netdev
#[function]
pub fn netdev(_context: &Context) -> CallResult {
    Ok(read("/proc/net/dev")?.lines().filter_map(interface).collect::<Map>().into())
}

/// Return the kernel's counters of block devices.
///
/// CLI Example:
///
///     salt '*' status.diskstats
#[function]
pub fn diskstats(_context: &Context) -> CallResult {
    Ok(read("/proc/diskstats")?.lines().filter_map(device).collect::<Map>().into())
}

/// Return the PIDs of the processes whose line in `ps` matches a pattern, one per line.
///
/// CLI Example:
///
///     salt '*' status.pid sshd
#[function]
pub fn pid(
    context: &Context,
    /// Text in the line of the process in `ps`.
    sig: String,
) -> CallResult {
    let regex = Regex::new(&sig).map_err(CallError::execution)?;
    let output = run(context, &["ps", "-eo", "user:64,pid,args"].map(str::to_owned), &[])?;
    let own = std::process::id().to_string();
    let fits = |(pid, reported): &(Value, Value)| {
        let cmd = reported.get("cmd").map(ToString::to_string).unwrap_or_default();
        pid.as_str() != Some(&*own) && !cmd.contains("status.pid") && regex.is_match(&cmd).unwrap_or(false)
    };
    let pids = processes(&output.stdout).into_iter().filter(fits).map(|(pid, _)| pid.to_string());
    Ok(pids.collect::<Vec<_>>().join("\n").into())
}

/// Return the logged-in users and their activity.
///
/// CLI Example:
///
///     salt '*' status.w
#[function]
pub fn w(context: &Context) -> CallResult {
    Ok(run(context, &["w".into(), "-h".into()], &[])?.stdout.lines().filter_map(logged_in).collect())
}

/// Return the results of most functions of this module together.
///
/// CLI Example:
///
///     salt '*' status.all_status
#[function]
pub fn all_status(context: &Context) -> CallResult {
    let report =
        ALL.into_iter().map(|name| Ok((name.into(), context.call(&format!("status.{name}"), Args::default())?)));
    report.collect::<Result<Map, CallError>>().map(Value::from)
}

/// Parses pairs of lines: one with names, one with integers.
fn protocols(text: &str) -> Map {
    let lines: Vec<&str> = text.lines().collect();
    let pair = |pair: &[&str]| {
        let [names, numbers] = pair else { return None };
        let ((protocol, names), (_, numbers)) = (names.split_once(':')?, numbers.split_once(':')?);
        let counted = names.split_whitespace().zip(numbers.split_whitespace());
        let counted: Map = counted.map(|(name, counted)| (name.into(), number(counted))).collect();
        Some((protocol.into(), counted.into()))
    };
    lines.chunks(2).filter_map(pair).collect()
}

fn interface(line: &str) -> Option<(Value, Value)> {
    const NAMES: [&str; 16] = [
        "rx_bytes",
        "rx_packets",
        "rx_errs",
        "rx_drop",
        "rx_fifo",
        "rx_frame",
        "rx_compressed",
        "rx_multicast",
        "tx_bytes",
        "tx_packets",
        "tx_errs",
        "tx_drop",
        "tx_fifo",
        "tx_colls",
        "tx_carrier",
        "tx_compressed",
    ];
    let (name, numbers) = line.split_once(':')?;
    let name = name.trim();
    let mut report = map! {"iface" => name};
    report.extend(
        NAMES.into_iter().zip(numbers.split_whitespace()).map(|(name, counted)| (name.into(), number(counted))),
    );
    Some((name.into(), report.into()))
}

fn device(line: &str) -> Option<(Value, Value)> {
    const NAMES: [&str; 14] = [
        "major",
        "minor",
        "device",
        "reads_issued",
        "reads_merged",
        "sectors_read",
        "ms_spent_reading",
        "writes_completed",
        "writes_merged",
        "sectors_written",
        "ms_spent_writing",
        "io_in_progress",
        "ms_spent_in_io",
        "weighted_ms_spent_in_io",
    ];
    let words = || line.split_whitespace();
    let name = words().nth(2)?;
    let mut report: Map =
        NAMES.into_iter().zip(words()).map(|(name, counted)| (name.into(), number(counted))).collect();
    // The name of a device remains a string even if it is all digits.
    report.insert("device".into(), name.into());
    Some((name.into(), report.into()))
}

/// Parses a line of `w -h`. Salt's field names are for a `w` without the FROM column, so one more column shifts
/// them; consumers expect these names.
fn logged_in(line: &str) -> Option<Value> {
    let mut rest = line.trim_start();
    let mut report = Map::new();
    for name in ["user", "tty", "login", "idle", "jcpu", "pcpu"] {
        let (word, after) = rest.split_once(char::is_whitespace)?;
        report.insert(name.into(), word.into());
        rest = after.trim_start();
    }
    report.insert("what".into(), rest.into());
    Some(report.into())
}

#[cfg(test)]
mod tests;
