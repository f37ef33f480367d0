//! Recovers the reactions that were dispatched before a restart from the journal.
//!
//! After a crash the cursor is behind the dispatched reactions. The events of their jobs identify them (`_cause`,
//! `_entry`, `_sls`, `_reaction`), so a repeated reaction keeps its job id. Only the master's own events are trusted.
//! An event of a minion carries its id (`_from`) and proves only the return of a job that was sent to it.

use std::collections::{HashMap, HashSet};

use brine_bus::store::StoreError;
use brine_bus::{Bus, TimeOrSeq};
use brine_digest::Digest;
use brine_event::Event;
use brine_ids::Jid;
use brine_runtime::executors::MayBlock;
use brine_value::{FromValue, Map, Value};

use crate::routing_fields::FROM;

/// The number of events read at once.
const PAGE: usize = 4096;

/// The idempotency key of a reaction: the event's sequence number, the entry, the file, and the label within the file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub seq: u64,
    pub entry: String,
    pub file: String,
    pub label: String,
}

impl Key {
    /// Returns the job id of a dispatch without a record, of an event with this time in microseconds: the same one again
    /// after a restart.
    pub fn jid(&self, time: u64) -> Jid {
        let text = [&*self.seq.to_string(), &self.entry, &self.file, &self.label].join("\0");
        let digest = Digest::Sha256.of(text);
        let number = digest.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        Jid::of_event(time, number)
    }
}

/// The dispatch of a reaction before the restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriorDispatch {
    /// The job id of the reaction.
    pub jid: Jid,
    /// Whether a minion has returned, or the call has ended.
    pub ended: bool,
}

/// Reads the key of the reaction that led to an event.
pub(crate) fn key(data: &Map) -> Option<Key> {
    let text = |name: &str| data.get(name).and_then(Value::as_str).map(str::to_owned);
    let seq = u64::from_value(data.get("_cause")?)?;
    Some(Key { seq, entry: text("_entry")?, file: text("_sls")?, label: text("_reaction")? })
}

/// A reaction that a `new` event identifies.
struct Known {
    key: Key,
    prior: PriorDispatch,
    /// The minions that the job was sent to; empty for a call.
    targets: HashSet<String>,
}

/// Reads the reactions to the events from this sequence number on.
pub(crate) fn read(thread: &MayBlock, bus: &Bus, from: u64) -> Result<HashMap<Key, PriorDispatch>, StoreError> {
    let last = bus.last_seq();
    let mut by_jid: HashMap<String, Known> = HashMap::new();
    let mut at = from;
    while at <= last {
        let events = bus.read(thread, TimeOrSeq::Seq(at), PAGE)?;
        let Some(end) = events.last() else { break };
        at = end.seq() + 1;
        for event in &events {
            record(event, from, &mut by_jid);
        }
    }
    Ok(by_jid.into_values().map(|job| (job.key, job.prior)).collect())
}

/// Records the dispatch or return that an event reports.
fn record(event: &Event, from: u64, by_jid: &mut HashMap<String, Known>) {
    // salt/job|run|wheel / jid / new|ret...
    let mut parts = event.tag().split('/');
    let (first, kind, jid, what) = (parts.next(), parts.next(), parts.next(), parts.next());
    let (Some("salt"), Some(kind @ ("job" | "run" | "wheel")), Some(jid)) = (first, kind, jid) else { return };
    match what {
        Some("new") => {
            let data = event.data();
            let Some(key) = key(&data).filter(|key| key.seq >= from && !data.contains_key(FROM)) else { return };
            let Ok(parsed) = jid.parse() else { return };
            let targets = data.get("minions").and_then(Value::as_list).unwrap_or_default();
            let targets = targets.iter().map(ToString::to_string).collect();
            let prior = PriorDispatch { jid: parsed, ended: false };
            by_jid.insert(jid.to_owned(), Known { key, prior, targets });
        }
        Some("ret") => {
            let Some(job) = by_jid.get_mut(jid) else { return };
            job.prior.ended |= match event.data().get(FROM) {
                None => true,
                Some(from) => {
                    let from = from.to_string();
                    kind == "job" && parts.next() == Some(from.as_str()) && job.targets.contains(&from)
                }
            };
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    const JID: &str = "20261120235852025555";

    /// Returns the dispatches that these events of one job or call prove.
    fn proven(events: &[(&str, Map)]) -> Vec<PriorDispatch> {
        let mut by_jid = HashMap::new();
        for (tag, data) in events {
            record(&Event::from_map(&tag.replace("JID", JID), data).unwrap(), 1, &mut by_jid);
        }
        by_jid.into_values().map(|job| job.prior).collect()
    }

    #[test]
    fn minions_cannot_forge_that_a_reaction_was_dispatched() {
        let cause = map! {"_cause" => 7, "_entry" => "e", "_sls" => "s", "_reaction" => "r"};
        let with = |more: Map| cause.clone().into_iter().chain(more).collect::<Map>();
        let targets = with(map! {"minions" => list!["web1", "web2"]});
        let from = |id: &str| map! {"_from" => id};
        for (events, expected) in [
            (vec![("salt/run/JID/new", cause.clone())], Some(false)),
            (vec![("salt/run/JID/new", with(from("web1")))], None),
            (vec![("salt/job/JID/new", with(from("web1")))], None),
            (vec![("salt/run/JID/new", cause.clone()), ("salt/run/JID/ret", map! {})], Some(true)),
            (vec![("salt/run/JID/new", cause.clone()), ("salt/run/JID/ret", from("web1"))], Some(false)),
            (vec![("salt/job/JID/new", targets.clone()), ("salt/job/JID/ret/web1", from("web1"))], Some(true)),
            (vec![("salt/job/JID/new", targets.clone()), ("salt/job/JID/ret/web1", map! {})], Some(true)),
            (vec![("salt/job/JID/new", targets.clone()), ("salt/job/JID/ret/web1", from("evil"))], Some(false)),
            (vec![("salt/job/JID/new", targets.clone()), ("salt/job/JID/ret/evil", from("evil"))], Some(false)),
        ] {
            let ended: Vec<_> = proven(&events).into_iter().map(|prior| prior.ended).collect();
            assert_eq!(ended, Vec::from_iter(expected), "{events:?}");
        }
    }
}
