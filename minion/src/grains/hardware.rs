//! Processors and memory.

use brine_core::{Map, Value, map};

pub(super) fn grains() -> Map {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let arch = std::env::consts::ARCH;
    let os_arch = match arch {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    map! {
        "cpuarch" => arch,
        "osarch" => os_arch,
        "num_cpus" => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        "cpu_model" => field(&cpus, "model name"),
        "cpu_flags" => field(&cpus, "flags").split_whitespace().collect::<Value>(),
        "mem_total" => mebibytes(&memory, "MemTotal"),
        "swap_total" => mebibytes(&memory, "SwapTotal"),
    }
}

fn field<'a>(text: &'a str, name: &str) -> &'a str {
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.split_once(':'));
    found.map_or("", |(_, value)| value.trim())
}

fn mebibytes(meminfo: &str, name: &str) -> i64 {
    let kibibytes = field(meminfo, name).split_whitespace().next().and_then(|number| number.parse::<i64>().ok());
    kibibytes.unwrap_or(0) / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_proc_files_are_read() {
        assert_eq!(mebibytes("MemTotal:       24679056 kB\nSwapTotal: 0 kB\n", "MemTotal"), 24100);
        assert_eq!(field("model name\t: Some CPU\n", "model name"), "Some CPU");
        assert_eq!(field("", "x"), "");
    }
}
