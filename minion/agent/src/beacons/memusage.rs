//! `memusage`: memory usage above a percentage.

use brine_value::{Map, map};

use super::settings::{Settings, number, percent};
use super::{Beacon, Kind, Options, PollContext, entry};

struct Usage {
    field: &'static str,
    threshold: f64,
    of: fn(&str) -> Option<f64>,
}

pub(super) const KIND: Kind = Kind {
    name: "memusage",
    doc: "Memory usage of at least the given percentage, at each poll.",
    options: Options::Named(&[entry("percent", "Required. The percentage, such as `63%`.")]),
    fields: &[entry("memusage", "The percentage in use.")],
    start,
    ..Kind::DEFAULT
};

fn start(settings: &Settings) -> Result<Box<dyn Beacon>, String> {
    start_for(settings, "memusage", |info| {
        let (total, free) = (kilobytes(info, "MemTotal")?, kilobytes(info, "MemAvailable")?);
        Some(percent(total.saturating_sub(free), total))
    })
}

/// Creates a beacon for one percentage of `/proc/meminfo`.
pub(super) fn start_for(
    settings: &Settings,
    field: &'static str,
    of: fn(&str) -> Option<f64>,
) -> Result<Box<dyn Beacon>, String> {
    let threshold = number("percent", settings.get("percent").ok_or("option 'percent' is missing")?)?;
    Ok(Box::new(Usage { field, threshold, of }))
}

/// Returns a value of `/proc/meminfo`, in kB.
pub(super) fn kilobytes(info: &str, name: &str) -> Option<u64> {
    let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.split_whitespace().next()?.parse().ok()
}

impl Usage {
    fn events(&self, info: &str) -> Result<Vec<Map>, String> {
        let used = (self.of)(info).ok_or("parsing /proc/meminfo failed: a field is missing")?;
        Ok(if used >= self.threshold { vec![map! {self.field => used}] } else { Vec::new() })
    }
}

impl Beacon for Usage {
    fn poll(&mut self, _context: &PollContext<'_>) -> Result<Vec<Map>, String> {
        self.events(&super::read("/proc/meminfo")?)
    }
}

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::super::tests::{poll_once, wrong};
    use super::*;

    const INFO: &str =
        "MemTotal:       1000 kB\nMemAvailable:    630 kB\nSwapTotal:       200 kB\nSwapFree:        150 kB\n";

    #[test]
    fn usage_is_reported_from_the_threshold_on() {
        for (threshold, report) in [(37, true), (38, false)] {
            let usage = Usage {
                field: "memusage",
                threshold: threshold.into(),
                of: |info| Some(percent(1000 - kilobytes(info, "MemAvailable")?, kilobytes(info, "MemTotal")?)),
            };
            assert_eq!(usage.events(INFO).unwrap(), if report { vec![map! {"memusage" => 37.0}] } else { vec![] });
            assert!(usage.events("").is_err());
        }
    }

    #[test]
    fn memory_and_swap_of_this_host_are_read() {
        for (name, limit, report) in [("memusage", "0%", 1), ("swapusage", "0%", 1), ("memusage", "101%", 0)] {
            let events = poll_once(name, &list![map! {"percent" => limit}]).unwrap();
            assert_eq!(events.len(), report, "{name}");
            for event in events {
                assert!((0.0..=100.0).contains(&event.get(name).unwrap().as_f64().unwrap()));
            }
        }
        assert_eq!(wrong("swapusage", &list![]), "option 'percent' is missing");
    }
}
