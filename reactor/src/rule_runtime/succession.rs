//! The handover of rule state in a cluster of masters: the leader offers its state at an interval, and the next leader
//! adopts it.
//!
//! An offer contains the last event of each master that the state includes, because the order of events differs from
//! bus to bus.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use brine_event::Event;
use brine_value::{FromValue, Value, list, map, msgpack};

use super::RuleRuntime;
use crate::gate::{Gate, Position};

/// The shortest time between two offers.
const OFFER_INTERVAL: Duration = Duration::from_secs(1);

/// The progress of the handover.
#[derive(Default)]
pub(super) struct Succession {
    /// Whether the state has changed since the last offer.
    pub is_changed: bool,
    offered: Option<Instant>,
    /// The last event of each master that the adopted state includes, as sequence numbers by master.
    included: HashMap<String, u64>,
}

/// The offered state of a master's rules: the pairs of a snapshot, and the events that it includes.
#[derive(Debug, PartialEq)]
struct Offer {
    pairs: Vec<(Vec<u8>, Vec<u8>)>,
    included: Vec<Position>,
}

impl Offer {
    fn pack(&self) -> Vec<u8> {
        let pairs: Vec<Value> = self
            .pairs
            .iter()
            .map(|(key, value)| list![Value::Bytes(key.clone()), Value::Bytes(value.clone())])
            .collect();
        let included: Vec<Value> = self.included.iter().map(|(master, seq)| list![master.as_str(), *seq]).collect();
        msgpack::pack_map(&map! {"pairs" => pairs, "counted" => included})
    }

    fn unpack(packed: &[u8]) -> Option<Self> {
        let fields = msgpack::unpack_map(packed).ok()?;
        let pair = |pair: &Value| match pair.as_list()? {
            [key, value] => Some((key.as_bytes()?.to_vec(), value.as_bytes()?.to_vec())),
            _ => None,
        };
        let position = |position: &Value| match position.as_list()? {
            [master, seq] => Some((master.as_str()?.to_owned(), u64::from_value(seq)?)),
            _ => None,
        };
        Some(Offer {
            pairs: fields.get("pairs")?.as_list()?.iter().map(pair).collect::<Option<_>>()?,
            included: fields.get("counted")?.as_list()?.iter().map(position).collect::<Option<_>>()?,
        })
    }
}

impl RuleRuntime {
    /// Offers the state to the next leader, if it has changed and [`OFFER_INTERVAL`] has passed.
    pub fn offer(&self, gate: &dyn Gate) {
        {
            let mut succession = self.succession.lock();
            if !succession.is_changed || succession.offered.is_some_and(|last| last.elapsed() < OFFER_INTERVAL) {
                return;
            }
            (succession.is_changed, succession.offered) = (false, Some(Instant::now()));
        }
        let (pairs, last_seen) = {
            let engine = self.engine.lock();
            (engine.snapshot(), engine.last_seen())
        };
        let mut included: HashMap<String, u64> = self.succession.lock().included.clone();
        for (master, seq) in gate.positions(last_seen) {
            let highest = included.entry(master).or_default();
            *highest = (*highest).max(seq);
        }
        gate.offer_rule_state(Offer { pairs, included: included.into_iter().collect() }.pack());
    }

    /// Adopts the latest state that another master has offered.
    pub async fn adopt_offer(&self, gate: &dyn Gate) {
        if self.engine.lock().is_empty() {
            return;
        }
        let Some(packed) = gate.rule_state().await else { return };
        let Some(Offer { pairs, included }) = Offer::unpack(&packed) else {
            return tracing::error!(
                "adopting the rule state of another master failed: it is invalid; the rules keep their own state"
            );
        };
        self.engine.lock().adopt(&pairs, self.clock.now());
        let mut succession = self.succession.lock();
        (succession.included, succession.is_changed) = (included.into_iter().collect(), true);
        tracing::info!("adopted the rule state of another master");
    }

    /// Returns whether the adopted state includes an event already.
    pub fn is_included(&self, gate: &dyn Gate, event: &Event) -> bool {
        let mut succession = self.succession.lock();
        if succession.included.is_empty() {
            return false;
        }
        let (master, seq) = gate.position(event);
        let Some(last) = succession.included.get(&master) else { return false };
        let is_included = seq <= *last;
        if !is_included {
            // Events of a master arrive in order, so the next one is new as well. A master that lost its store restarts
            // its numbers.
            succession.included.remove(&master);
        }
        is_included
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_is_parsed_back_and_garbage_is_rejected() {
        let offer = Offer {
            pairs: vec![(b"r\0k".to_vec(), b"v".to_vec())],
            included: vec![("m1".into(), 7), ("m2".into(), 9)],
        };
        assert_eq!(Offer::unpack(&offer.pack()), Some(offer));
        let wrong = map! {"pairs" => list![list![1]], "counted" => list![]};
        for junk in [&b""[..], b"junk", &msgpack::pack_map(&wrong)] {
            assert_eq!(Offer::unpack(junk), None);
        }
    }
}
