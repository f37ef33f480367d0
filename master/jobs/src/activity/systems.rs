//! The systems of minions by their stored grains, read again after a minute.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use brine_master_store::minion_data::MinionData;
use brine_value::{Map, Value};

/// The time after which the grains are read again.
const LIFETIME: Duration = Duration::from_secs(60);
/// The maximum length of a grain that is kept, in characters.
const MAX_TEXT: usize = 100;

/// What a minion runs on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct System {
    /// The operating system and its release.
    pub os: String,
    /// The version of the minion.
    pub version: String,
    /// The first address that is not the host's own.
    pub address: String,
}

/// The systems of minions by id.
#[derive(Default)]
pub struct Systems {
    known: HashMap<String, System>,
    read: Option<Instant>,
}

impl Systems {
    /// Returns the systems of minions; those without stored grains are missing.
    pub fn of(&mut self, data: &MinionData, ids: &[String]) -> &HashMap<String, System> {
        if self.read.is_none_or(|read| read.elapsed() > LIFETIME) {
            self.known.clear();
            self.read = Some(Instant::now());
        }
        for id in ids {
            if !self.known.contains_key(id)
                && let Some(grains) = data.grains(id)
            {
                self.known.insert(id.clone(), System::of(&grains));
            }
        }
        &self.known
    }
}

impl System {
    fn of(grains: &Map) -> Self {
        let text = |name: &str| {
            let text = grains.get(name).filter(|value| !value.is_nil()).map(ToString::to_string).unwrap_or_default();
            text.chars().take(MAX_TEXT).collect::<String>()
        };
        let addresses = grains.get("ipv4").and_then(Value::as_list).unwrap_or_default().iter();
        let address = addresses.map(ToString::to_string).find(|one| !one.starts_with("127."));
        System {
            os: format!("{} {}", text("os"), text("osrelease")).trim().to_owned(),
            version: text("saltversion"),
            address: address.unwrap_or_default().chars().take(MAX_TEXT).collect(),
        }
    }
}
