//! What had been handed over before a restart, read from the journal.
//!
//! The reactor's place in the journal is behind what it has done. The events that its reactions led to say
//! which those are (`_cause`, `_entry`, `_sls`, `_reaction`), so what comes again after a crash is known by
//! the job id that it has already. Only the master's own events count: what a minion sends carries its id (`_from`),
//! and says nothing about reactions, but for the return of a job that it was asked for.

use std::collections::{HashMap, HashSet};

use brine_bus::store::StoreError;
use brine_bus::{Bus, TimeOrSeq};
use brine_event::Event;
use brine_ids::Jid;
use brine_runtime::executors::MayBlock;
use brine_value::{FromValue, Map, Value};

use crate::peek::FROM;

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

/// A reaction that a `new` event tells of.
struct Known {
    key: Key,
    handed_over: HandedOver,
    /// The minions that the job is for; none for a call.
    asked: HashSet<String>,
}

/// Reads the reactions that were dispatched for the events from this number on.
pub(crate) fn read(thread: &MayBlock, bus: &Bus, from: u64) -> Result<HashMap<Key, HandedOver>, StoreError> {
    let last = bus.last_seq();
    let mut by_jid: HashMap<String, Known> = HashMap::new();
    let mut at = from;
    while at <= last {
        let events = bus.read(thread, TimeOrSeq::Seq(at), PAGE)?;
        let Some(end) = events.last() else { break };
        at = end.seq() + 1;
        for event in &events {
            take(event, from, &mut by_jid);
        }
    }
    Ok(by_jid.into_values().map(|known| (known.key, known.handed_over)).collect())
}

/// Learns from one event.
fn take(event: &Event, from: u64, by_jid: &mut HashMap<String, Known>) {
    // salt/job|run|wheel / jid / new|ret...
    let mut parts = event.tag().split('/');
    let (first, kind, jid, what) = (parts.next(), parts.next(), parts.next(), parts.next());
    let (Some("salt"), Some(kind @ ("job" | "run" | "wheel")), Some(jid)) = (first, kind, jid) else { return };
    match what {
        Some("new") => {
            let data = event.data();
            let Some(key) = key(&data).filter(|key| key.seq >= from && !data.contains_key(FROM)) else { return };
            let Ok(parsed) = jid.parse() else { return };
            let asked = data.get("minions").and_then(Value::as_list).unwrap_or_default();
            let asked = asked.iter().map(ToString::to_string).collect();
            let handed_over = HandedOver { jid: parsed, ended: false };
            by_jid.insert(jid.to_owned(), Known { key, handed_over, asked });
        }
        Some("ret") => {
            let Some(known) = by_jid.get_mut(jid) else { return };
            known.handed_over.ended |= match event.data().get(FROM) {
                None => true,
                Some(from) => {
                    let from = from.to_string();
                    kind == "job" && parts.next() == Some(from.as_str()) && known.asked.contains(&from)
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

    /// What is learned from these events of one job or call.
    fn learned(events: &[(&str, Map)]) -> Vec<HandedOver> {
        let mut by_jid = HashMap::new();
        for (tag, data) in events {
            take(&Event::from_map(&tag.replace("JID", JID), data).unwrap(), 1, &mut by_jid);
        }
        by_jid.into_values().map(|known| known.handed_over).collect()
    }

    #[test]
    fn minions_cannot_forge_that_a_reaction_was_dispatched() {
        let cause = map! {"_cause" => 7, "_entry" => "e", "_sls" => "s", "_reaction" => "r"};
        let with = |more: Map| cause.clone().into_iter().chain(more).collect::<Map>();
        let asked = with(map! {"minions" => list!["web1", "web2"]});
        let from = |id: &str| map! {"_from" => id};
        for (events, known) in [
            (vec![("salt/run/JID/new", cause.clone())], Some(false)),
            (vec![("salt/run/JID/new", with(from("web1")))], None),
            (vec![("salt/job/JID/new", with(from("web1")))], None),
            (vec![("salt/run/JID/new", cause.clone()), ("salt/run/JID/ret", map! {})], Some(true)),
            (vec![("salt/run/JID/new", cause.clone()), ("salt/run/JID/ret", from("web1"))], Some(false)),
            (vec![("salt/job/JID/new", asked.clone()), ("salt/job/JID/ret/web1", from("web1"))], Some(true)),
            (vec![("salt/job/JID/new", asked.clone()), ("salt/job/JID/ret/web1", map! {})], Some(true)),
            (vec![("salt/job/JID/new", asked.clone()), ("salt/job/JID/ret/web1", from("evil"))], Some(false)),
            (vec![("salt/job/JID/new", asked.clone()), ("salt/job/JID/ret/evil", from("evil"))], Some(false)),
        ] {
            let ended: Vec<_> = learned(&events).into_iter().map(|handed_over| handed_over.ended).collect();
            assert_eq!(ended, Vec::from_iter(known), "{events:?}");
        }
    }
}
