//! `ps`: memory, processors and file systems of this host.

use brine_context::Context;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};
use jiff::Timestamp;
use nix::sys::statvfs::statvfs;

use crate::status::read;

/// Execution functions of `ps`.
pub static FUNCTIONS: Functions<Context> =
    registry!("ps", [boot_time, num_cpus, total_physical_memory, virtual_memory, swap_memory, disk_usage]);

/// Return the boot time: in seconds since 1970, or in a format of strftime.
///
/// CLI Example:
///
///     salt '*' ps.boot_time
#[function]
pub fn boot_time(
    _context: &Context,
    /// Format of the time; seconds since 1970 by default.
    time_format: Option<String>,
) -> CallResult {
    let text = read("/proc/stat")?;
    let line = text.lines().find_map(|line| line.strip_prefix("btime "));
    let started: i64 = line.and_then(|seconds| seconds.trim().parse().ok()).ok_or_else(|| invalid("/proc/stat"))?;
    let Some(form) = time_format else { return Ok(started.into()) };
    let started = Timestamp::from_second(started).map_err(CallError::execution)?.to_zoned(brine_clock::zone());
    Ok(brine_clock::strftime(&form, &started).map_err(CallError::execution)?.into())
}

/// Return the number of processors.
///
/// CLI Example:
///
///     salt '*' ps.num_cpus
#[function]
pub fn num_cpus(_context: &Context) -> CallResult {
    Ok(read("/proc/stat")?.lines().filter(|line| is_one_processor(line)).count().into())
}

/// Return the total physical memory in bytes.
///
/// CLI Example:
///
///     salt '*' ps.total_physical_memory
#[function]
pub fn total_physical_memory(_context: &Context) -> CallResult {
    Ok(memory(&read("/proc/meminfo")?, "MemTotal").into())
}

/// Return the memory usage in bytes.
///
/// CLI Example:
///
///     salt '*' ps.virtual_memory
#[function]
pub fn virtual_memory(_context: &Context) -> CallResult {
    Ok(virtual_of(&read("/proc/meminfo")?).into())
}

/// Return the swap usage in bytes.
///
/// CLI Example:
///
///     salt '*' ps.swap_memory
#[function]
pub fn swap_memory(_context: &Context) -> CallResult {
    Ok(swap_of(&read("/proc/meminfo")?, &read("/proc/vmstat")?).into())
}

/// Return the usage of the file system of a path in bytes.
///
/// CLI Example:
///
///     salt '*' ps.disk_usage /home
#[function]
pub fn disk_usage(
    _context: &Context,
    /// Path on the file system.
    path: String,
) -> CallResult {
    Ok(usage_of(&path)?.into())
}

/// Returns the size and usage of a path's file system: `total`, `used` and `free` in bytes, and `percent`.
pub(super) fn usage_of(path: &str) -> Result<Map, CallError> {
    let status = statvfs(path)
        .map_err(|error| CallError::Execution(format!("reading the file system of '{path}' failed: {error}")))?;
    let size = status.fragment_size();
    let (used, free) = ((status.blocks() - status.blocks_free()) * size, status.blocks_available() * size);
    Ok(map! {
        "total" => status.blocks() * size, "used" => used, "free" => free, "percent" => percent(used, used + free),
    })
}

fn invalid(path: &str) -> CallError {
    CallError::Execution(format!("{path} is invalid"))
}

fn is_one_processor(line: &str) -> bool {
    line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns an amount of `/proc/meminfo` in bytes.
pub(super) fn memory(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let amount = line.and_then(|amount| amount.split_whitespace().next()?.parse::<u64>().ok());
    amount.unwrap_or_default() * 1024
}

/// Returns a share in percent, with one decimal.
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64 * 1000.0).round() / 10.0 }
}

fn virtual_of(text: &str) -> Map {
    let of = |name: &str| memory(text, name);
    let (total, available) = (of("MemTotal"), of("MemAvailable"));
    let used = total.saturating_sub(available);
    map! {
        "total" => total, "available" => available, "percent" => percent(used, total), "used" => used,
        "free" => of("MemFree"), "active" => of("Active"), "inactive" => of("Inactive"), "buffers" => of("Buffers"),
        "cached" => of("Cached") + of("SReclaimable"), "shared" => of("Shmem"), "slab" => of("Slab"),
    }
}

fn swap_of(meminfo: &str, vmstat: &str) -> Map {
    let (total, free) = (memory(meminfo, "SwapTotal"), memory(meminfo, "SwapFree"));
    let used = total.saturating_sub(free);
    // The kernel counts pages of 4 KiB.
    let moved = |name: &str| -> Value {
        let line = vmstat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        (line.and_then(|pages| pages.trim().parse::<u64>().ok()).unwrap_or_default() * 4096).into()
    };
    map! {
        "total" => total, "used" => used, "free" => free, "percent" => percent(used, total),
        "sin" => moved("pswpin"), "sout" => moved("pswpout"),
    }
}

#[cfg(test)]
mod tests {
    use brine_function::Args;

    use super::*;
    use crate::testing;

    #[test]
    fn memory_is_reported_in_bytes() {
        let meminfo = "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 667 kB\nBuffers: 1 kB\nCached: 200 kB\n\
                       SwapCached: 7 kB\nActive: 3 kB\nInactive: 4 kB\nSwapTotal: 100 kB\nSwapFree: 75 kB\nShmem: 5 kB\n\
                       Slab: 6 kB\nSReclaimable: 2 kB\n";
        let expected = map! {
            "total" => 1_024_000, "available" => 683_008, "percent" => 33.3, "used" => 340_992, "free" => 102_400,
            "active" => 3072, "inactive" => 4096, "buffers" => 1024, "cached" => 206_848, "shared" => 5120, "slab" => 6144,
        };
        assert_eq!(virtual_of(meminfo), expected);
        let expected = map! {
            "total" => 102_400, "used" => 25_600, "free" => 76_800, "percent" => 25.0, "sin" => 8192, "sout" => 0,
        };
        assert_eq!(swap_of(meminfo, "pswpin 2\npswpinner 9\n"), expected);
        assert_eq!(percent(0, 0).to_string(), "0");
        assert!(is_one_processor("cpu0 1 2") && !is_one_processor("cpu  1 2"));
    }

    #[test]
    fn this_host_is_reported() {
        let context = testing::context(&[]);
        let ask = |fun: &str, args: &[&str]| {
            context.call(&format!("ps.{fun}"), Args::positional(args.iter().map(|arg| (*arg).into()))).unwrap()
        };
        assert!(ask("boot_time", &[]).as_i64().unwrap() > 0);
        assert!(ask("boot_time", &["%Y"]).to_string().starts_with("20"));
        assert!(ask("num_cpus", &[]).as_i64().unwrap() > 0);
        assert_eq!(Some(&ask("total_physical_memory", &[])), ask("virtual_memory", &[]).get("total"));
        assert!(ask("disk_usage", &["/"]).get("total").unwrap().as_i64().unwrap() > 0);
        let error = context.call("ps.disk_usage", Args::positional(["/no/such/place".into()])).unwrap_err();
        assert!(error.to_string().contains("/no/such/place"), "{error}");
    }
}
