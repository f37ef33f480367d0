//! `memusage`: memory in use, from so many percent on.

use brine_value::{Map, map};

use super::settings::{Settings, number, percent};
use super::{Look, Moment};

struct Usage {
    field: &'static str,
    most: f64,
    of: fn(&str) -> Option<f64>,
}

pub(super) fn start(settings: &Settings) -> Result<Box<dyn Look>, String> {
    start_for(settings, "memusage", |info| {
        let (total, free) = (kilobytes(info, "MemTotal")?, kilobytes(info, "MemAvailable")?);
        Some(percent(total.saturating_sub(free), total))
    })
}

/// A beacon for one percentage out of `/proc/meminfo`.
pub(super) fn start_for(
    settings: &Settings,
    field: &'static str,
    of: fn(&str) -> Option<f64>,
) -> Result<Box<dyn Look>, String> {
    let most = number("percent", settings.get("percent").ok_or("option 'percent' is missing")?)?;
    Ok(Box::new(Usage { field, most, of }))
}

/// An amount in `/proc/meminfo`.
pub(super) fn kilobytes(info: &str, name: &str) -> Option<u64> {
    let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.split_whitespace().next()?.parse().ok()
}

impl Usage {
    fn tell(&self, info: &str) -> Result<Vec<Map>, String> {
        let used = (self.of)(info).ok_or("/proc/meminfo does not say it")?;
        Ok(if used >= self.most { vec![map! {self.field => used}] } else { Vec::new() })
    }
}

impl Look for Usage {
    fn look(&mut self, _moment: &Moment<'_>) -> Result<Vec<Map>, String> {
        self.tell(&super::read("/proc/meminfo")?)
    }
}

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::super::tests::{look_at, wrong};
    use super::*;

    const INFO: &str =
        "MemTotal:       1000 kB\nMemAvailable:    630 kB\nSwapTotal:       200 kB\nSwapFree:        150 kB\n";

    #[test]
    fn what_is_used_is_told_from_a_limit_on() {
        for (most, told) in [(37, true), (38, false)] {
            let usage = Usage {
                field: "memusage",
                most: most.into(),
                of: |info| Some(percent(1000 - kilobytes(info, "MemAvailable")?, kilobytes(info, "MemTotal")?)),
            };
            assert_eq!(usage.tell(INFO).unwrap(), if told { vec![map! {"memusage" => 37.0}] } else { vec![] });
            assert!(usage.tell("").is_err());
        }
    }

    #[test]
    fn both_are_asked_of_this_host() {
        for (name, limit, told) in [("memusage", "0%", 1), ("swapusage", "0%", 1), ("memusage", "101%", 0)] {
            let events = look_at(name, &list![map! {"percent" => limit}]).unwrap();
            assert_eq!(events.len(), told, "{name}");
            for event in events {
                assert!((0.0..=100.0).contains(&event.get(name).unwrap().as_f64().unwrap()));
            }
        }
        assert_eq!(wrong("swapusage", &list![]), "option 'percent' is missing");
    }
}
