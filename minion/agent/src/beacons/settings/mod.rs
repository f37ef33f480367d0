//! The configuration of one beacon.

use std::time::Duration;

use brine_value::{Map, Value};

use super::{Entry, entry};

/// The options of all beacons.
pub const COMMON_OPTIONS: &[Entry] = &[
    entry("beacon_module", "The kind of beacon, if the name of its configuration is another one."),
    entry("interval", "The number of seconds between two polls (the minion's `loop_interval`)."),
    entry("enabled", "Whether the beacon is polled (True)."),
    entry("disable_during_state_run", "Whether the beacon is not polled while states are applied (False)."),
    entry("run_once", "Whether the beacon is disabled after its first poll (False)."),
];

/// The options of one beacon: the common ones, and its own.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settings {
    /// The kind of beacon: `beacon_module`, or the name of the configuration.
    pub module: String,
    /// The time between two polls; `None` for every loop of the minion.
    pub interval: Option<Duration>,
    /// Whether it is polled.
    pub enabled: bool,
    /// Whether it is not polled during a state run (`disable_during_state_run`).
    pub is_paused_during_states: bool,
    /// Whether it is disabled after its first successful poll (`run_once`).
    pub once: bool,
    /// Its own options, in the order of the configuration.
    pub own: Vec<(String, Value)>,
}

impl Settings {
    /// Parses a list of one-key mappings, Salt's form, or one mapping.
    pub fn read(name: &str, config: &Value) -> Result<Self, String> {
        let entries: Vec<(&Value, &Value)> = match config {
            Value::Nil => Vec::new(),
            Value::Map(map) => map.iter().collect(),
            Value::List(list) => {
                let maps: Option<Vec<&Map>> = list.iter().map(Value::as_map).collect();
                let maps = maps.ok_or("an entry is not a mapping: write '- option: value'")?;
                maps.into_iter().flatten().collect()
            }
            other => return Err(format!("expected a list of options, got {}", other.type_name())),
        };
        let mut settings = Settings {
            module: name.to_owned(),
            interval: None,
            enabled: true,
            is_paused_during_states: false,
            once: false,
            own: Vec::new(),
        };
        for (key, value) in entries {
            let key = key.to_string();
            match key.as_str() {
                "beacon_module" => settings.module = text("beacon_module", value)?,
                "interval" => settings.interval = Some(seconds(value)?).filter(|interval| !interval.is_zero()),
                "enabled" => settings.enabled = value.is_truthy(),
                "disable_during_state_run" => settings.is_paused_during_states = value.is_truthy(),
                "run_once" => settings.once = value.is_truthy(),
                _ if key.starts_with('_') => {}
                _ => settings.own.push((key, value.clone())),
            }
        }
        Ok(settings)
    }

    /// Returns the value of one of its own options; of several with the same name, the last.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.own.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Returns a required option that is a mapping.
    pub fn map(&self, name: &str) -> Result<&Map, String> {
        let value = self.get(name).ok_or_else(|| format!("option '{name}' is missing"))?;
        value.as_map().ok_or_else(|| format!("option '{name}': expected a mapping, got {}", value.type_name()))
    }

    /// Returns an option that is a boolean.
    pub fn flag(&self, name: &str, default: bool) -> Result<bool, String> {
        self.get(name).map_or(Ok(default), |value| flag(name, value))
    }
}

/// Converts the value of an option to a boolean.
pub(crate) fn flag(name: &str, value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| format!("option '{name}': expected True or False, got {value}"))
}

/// Converts the value of an option to a string.
pub(crate) fn text(name: &str, value: &Value) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| format!("option '{name}': expected a string, got {value}"))
}

/// Converts the value of an option, a number or a string such as `80%`, to a number.
pub(crate) fn number(name: &str, value: &Value) -> Result<f64, String> {
    let wrong = || format!("option '{name}': expected a number, got {value}");
    match value {
        Value::Int(n) => Ok(*n as f64),
        Value::UInt(n) => Ok(*n as f64),
        Value::Float(n) => Ok(*n),
        Value::Str(text) => text.replace('%', "").trim().parse().map_err(|_| wrong()),
        _ => Err(wrong()),
    }
}

fn seconds(value: &Value) -> Result<Duration, String> {
    let seconds = number("interval", value)?;
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("option 'interval': expected seconds, got {value}"))
}

/// Returns `part` of `whole` as a percentage with one decimal.
pub(crate) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64 * 1000.0).round() / 10.0 }
}

#[cfg(test)]
mod tests;
