//! The configured beacons, which the daemon polls and the execution module `beacons` changes.

use brine_value::{Map, Value, map};
use parking_lot::Mutex;

/// The current beacons of the minion's configuration, without those of the pillar.
#[derive(Debug, Default)]
pub struct Configured(Mutex<Map>);

impl Configured {
    /// Creates the configuration from beacons by name.
    pub fn new(beacons: Map) -> Self {
        Configured(Mutex::new(beacons))
    }

    /// Returns the beacons of the pillar and, with precedence, those of the configuration.
    pub fn all(&self, pillar: &Map) -> Map {
        let mut all = of_pillar(pillar);
        all.extend(self.own());
        all
    }

    /// Returns the beacons of the configuration.
    pub fn own(&self) -> Map {
        self.0.lock().clone()
    }

    /// Replaces the beacons of the configuration.
    pub fn replace(&self, beacons: Map) {
        *self.0.lock() = beacons;
    }

    /// Changes the beacons of the configuration.
    pub fn change<T>(&self, change: impl FnOnce(&mut Map) -> T) -> T {
        change(&mut self.0.lock())
    }

    /// Enables or disables a beacon of the configuration. Returns whether it exists.
    pub fn set_enabled(&self, name: &str, enabled: bool) -> bool {
        self.change(|beacons| {
            let Some(config) = beacons.get_mut(name) else { return false };
            let enabled = Value::Bool(enabled);
            match config {
                Value::Map(options) => _ = options.insert("enabled".into(), enabled),
                Value::List(list) => {
                    let is = |entry: &&mut Value| entry.get("enabled").is_some();
                    match list.iter_mut().find(is).and_then(Value::as_map_mut) {
                        Some(entry) => _ = entry.insert("enabled".into(), enabled),
                        None => list.push(map! {"enabled" => enabled}.into()),
                    }
                }
                other => *other = Value::List(vec![map! {"enabled" => enabled}.into()]),
            }
            true
        })
    }
}

/// Returns the beacons of a pillar.
pub fn of_pillar(pillar: &Map) -> Map {
    pillar.get("beacons").and_then(Value::as_map).cloned().unwrap_or_default()
}
