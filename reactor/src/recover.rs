//! What had been handed over before a restart, read from the journal.
//!
//! The reactor's place in the journal is behind what it has done. The events that its reactions led to say
//! which those are (`_cause`, `_entry`, `_sls`, `_reaction`), so what comes again after a crash is known by
//! the job id that it has already.

use std::collections::HashMap;

use brine_core::bus::{Bus, TimeOrSeq};
use brine_core::store::StoreError;
use brine_core::value::FromValue;
use brine_core::{Jid, Map, Value};

/// How many events are read at once.
const PAGE: usize = 4096;

/// What tells one reaction to one event from all others: the event's number, the entry, the file, and
/// which reaction of the file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub seq: u64,
    pub entry: String,
    pub file: String,
    pub label: String,
}

/// A reaction that had been handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandedOver {
    /// The job id that it has.
    pub jid: Jid,
    /// Whether something came of it: a minion has returned, or the call has ended.
    pub ended: bool,
}

/// The fields that tell which reaction led to an event.
pub(crate) fn key(data: &Map) -> Option<Key> {
    let text = |name: &str| data.get(name).and_then(Value::as_str).map(str::to_owned);
    let seq = u64::from_value(data.get("_cause")?)?;
    Some(Key { seq, entry: text("_entry")?, file: text("_sls")?, label: text("_reaction")? })
}

/// Reads what was handed over for the events from this number on.
pub(crate) fn read(bus: &Bus, from: u64) -> Result<HashMap<Key, HandedOver>, StoreError> {
    let last = bus.last_seq();
    let mut by_jid: HashMap<String, (Key, HandedOver)> = HashMap::new();
    let mut at = from;
    while at <= last {
        let events = bus.read(TimeOrSeq::Seq(at), PAGE)?;
        let Some(end) = events.last() else { break };
        at = end.seq() + 1;
        for event in &events {
            // salt/job|run|wheel / jid / new|ret...
            let mut parts = event.tag().split('/');
            let (first, kind, jid, what) = (parts.next(), parts.next(), parts.next(), parts.next());
            if first != Some("salt") || !matches!(kind, Some("job" | "run" | "wheel")) {
                continue;
            }
            match (jid, what) {
                (Some(jid), Some("new")) => {
                    let Some(key) = key(&event.data()).filter(|key| key.seq >= from) else { continue };
                    let Ok(parsed) = jid.parse() else { continue };
                    by_jid.insert(jid.to_owned(), (key, HandedOver { jid: parsed, ended: false }));
                }
                (Some(jid), Some("ret")) => {
                    if let Some((_, handed_over)) = by_jid.get_mut(jid) {
                        handed_over.ended = true;
                    }
                }
                _ => {}
            }
        }
    }
    Ok(by_jid.into_values().collect())
}
