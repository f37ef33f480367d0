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
    /// The version of Salt, or of Brine with that of Salt which it stands for.
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
            version: match (text("brineversion"), text("saltversion")) {
                (own, salt) if own.is_empty() => salt,
                (own, salt) => format!("Brine {own} (Salt {salt})"),
            },
            address: address.unwrap_or_default().chars().take(MAX_TEXT).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use brine_value::map;

    use super::*;

    #[test]
    fn minions_of_brine_have_both_versions() {
        for (grains, expected) in [
            (map! {"saltversion" => "3006.9"}, "3006.9"),
            (map! {"saltversion" => "3008.3", "brineversion" => "0.1.0"}, "Brine 0.1.0 (Salt 3008.3)"),
            (map! {"brineversion" => Value::Nil}, ""),
        ] {
            assert_eq!(System::of(&grains).version, expected, "{grains:?}");
        }
    }
}
