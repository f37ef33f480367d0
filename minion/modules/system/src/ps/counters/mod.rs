//! `ps`: the kernel's counters of processors, block devices and network interfaces, in the shape of the Python package
//! `psutil`, which Salt returns.

use std::path::Path;
use std::time::Duration;

use brine_context::Context;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value};
use nix::unistd::{SysconfVar, sysconf};

use super::usage::wait;
use crate::status::read;

/// Execution functions of `ps`.
pub static FUNCTIONS: Functions<Context> =
    registry!("ps", [cpu_percent, cpu_times, disk_io_counters, network_io_counters]);

/// The columns of `/proc/stat` for a processor.
const TIMES: [&str; 10] =
    ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"];

/// Counters of a block device: the name, the column in `/proc/diskstats`, and a factor: the kernel counts sectors of
/// 512 bytes.
const DISK: [(&str, usize, u64); 9] = [
    ("read_count", 3, 1),
    ("write_count", 7, 1),
    ("read_bytes", 5, 512),
    ("write_bytes", 9, 512),
    ("read_time", 6, 1),
    ("write_time", 10, 1),
    ("read_merged_count", 4, 1),
    ("write_merged_count", 8, 1),
    ("busy_time", 12, 1),
];

/// Counters of a network interface: the name, the column in `/proc/net/dev`, and a factor.
const NETWORK: [(&str, usize, u64); 8] = [
    ("bytes_sent", 8, 1),
    ("bytes_recv", 0, 1),
    ("packets_sent", 9, 1),
    ("packets_recv", 1, 1),
    ("errin", 2, 1),
    ("errout", 10, 1),
    ("dropin", 3, 1),
    ("dropout", 11, 1),
];

/// The maximum interval of `cpu_percent`, in seconds.
const MAX_INTERVAL: f64 = 3600.0;

/// Return the share of time in percent that the processors were busy during an interval in seconds: of all together, or
/// with `per_cpu` of each.
///
/// CLI Example:
///
///     salt '*' ps.cpu_percent
#[function]
pub fn cpu_percent(
    context: &Context,
    /// Seconds over which the usage is measured.
    #[default(0.1)]
    interval: f64,
    /// Whether each processor is listed.
    #[default(false)]
    per_cpu: bool,
) -> CallResult {
    if !(0.0..=MAX_INTERVAL).contains(&interval) {
        return Err(CallError::Execution(format!("interval must be between 0 and {MAX_INTERVAL} seconds")));
    }
    let before = processors(&read("/proc/stat")?, per_cpu);
    wait(context, Duration::from_secs_f64(interval));
    let after = processors(&read("/proc/stat")?, per_cpu);
    let mut busy = before.iter().zip(&after).map(|(before, after)| Value::from(busy(before, after)));
    Ok(if per_cpu { busy.collect() } else { busy.next().unwrap_or_default() })
}

/// Return the seconds that the processors spent in each state since boot: of all together, or with `per_cpu` of each.
///
/// CLI Example:
///
///     salt '*' ps.cpu_times
#[function]
pub fn cpu_times(
    _context: &Context,
    /// Whether each processor is listed.
    #[default(false)]
    per_cpu: bool,
) -> CallResult {
    let ticks = sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100) as f64;
    let seconds = |counted: &Vec<u64>| -> Value {
        let named = TIMES.iter().zip(counted).map(|(name, ticked)| ((*name).into(), (*ticked as f64 / ticks).into()));
        named.collect::<Map>().into()
    };
    let counted = processors(&read("/proc/stat")?, per_cpu);
    Ok(if per_cpu { counted.iter().map(seconds).collect() } else { counted.first().map(seconds).unwrap_or_default() })
}

/// Return the I/O counters of all disks since boot, or of one device; False if it does not exist.
///
/// CLI Example:
///
///     salt '*' ps.disk_io_counters
///     salt '*' ps.disk_io_counters device=sda1
#[function]
pub fn disk_io_counters(
    _context: &Context,
    /// Name of the device; the sum of all by default.
    device: Option<String>,
) -> CallResult {
    let text = read("/proc/diskstats")?;
    let rows = text.lines().filter_map(|line| Some((line.split_whitespace().nth(2)?, columns(line))));
    // Partitions are part of their disks.
    let is_disk = |name: &str| Path::new("/sys/block").join(name.replace('/', "!")).exists();
    Ok(report(rows, device.as_deref(), &DISK, is_disk))
}

/// Return the I/O counters of all network interfaces since boot, or of one; False if it does not exist.
///
/// CLI Example:
///
///     salt '*' ps.network_io_counters
///     salt '*' ps.network_io_counters interface=eth0
#[function]
pub fn network_io_counters(
    _context: &Context,
    /// Name of the interface; the sum of all by default.
    interface: Option<String>,
) -> CallResult {
    let text = read("/proc/net/dev")?;
    let rows = text.lines().filter_map(|line| line.split_once(':')).map(|(name, rest)| (name.trim(), columns(rest)));
    Ok(report(rows, interface.as_deref(), &NETWORK, |_| true))
}

/// Returns the columns of a line as integers; other columns are zero.
fn columns(line: &str) -> Vec<u64> {
    line.split_whitespace().map(|word| word.parse().unwrap_or_default()).collect()
}

/// Returns the ticks in each state: a row for all processors together, or with `each` one for each processor.
fn processors(text: &str, each: bool) -> Vec<Vec<u64>> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("cpu"));
    let meant = rows.filter(|rest| rest.starts_with(' ') != each);
    meant.map(|rest| columns(rest.trim_start_matches(|c: char| c.is_ascii_digit()))).collect()
}

/// Returns the share of time between two readings that was not idle, in percent with one decimal.
fn busy(before: &[u64], after: &[u64]) -> f64 {
    let passed: Vec<u64> = before.iter().zip(after).map(|(before, after)| after.saturating_sub(*before)).collect();
    // The time of guests is included in `user` and `nice`.
    let total: u64 = passed.iter().take(8).sum();
    let idle: u64 = passed.iter().skip(3).take(2).sum();
    if total == 0 { 0.0 } else { ((total - idle) as f64 / total as f64 * 1000.0).round() / 10.0 }
}

/// Returns the counters of the named row, or the sums over the rows that `counts` selects; False if there is no such
/// row.
fn report<'a>(
    rows: impl Iterator<Item = (&'a str, Vec<u64>)>,
    required_name: Option<&str>,
    counters: &[(&'static str, usize, u64)],
    counts: impl Fn(&str) -> bool,
) -> Value {
    let required_name = required_name.filter(|name| !name.is_empty());
    let rows: Vec<_> =
        rows.filter(|(name, _)| required_name.map_or_else(|| counts(name), |required| required == *name)).collect();
    if required_name.is_some() && rows.is_empty() {
        return false.into();
    }
    let sum = |column: usize, unit: u64| -> u64 {
        let amounts = rows.iter().map(|(_, numbers)| numbers.get(column).copied().unwrap_or_default());
        amounts.fold(0_u64, u64::saturating_add).saturating_mul(unit)
    };
    counters.iter().map(|(name, column, unit)| ((*name).into(), sum(*column, *unit).into())).collect::<Map>().into()
}

#[cfg(test)]
mod tests;
