//! Selects the events of the local bus that an upstream master receives, and builds the messages with returns and
//! events.

use std::collections::{HashMap, VecDeque};

use brine_event::Event;
use brine_ids::Jid;
use brine_value::{FromValue, Map, Value, map};

use crate::settings::Mode;

/// The fields of a return that are forwarded.
const RETURN_FIELDS: &[&str] = &["return", "retcode", "success", "fun_args", "out", "metadata"];
/// The fields of the event of a new job that make up its load.
const LOAD_FIELDS: &[&str] = &["jid", "fun", "arg", "tgt", "tgt_type", "user", "metadata"];
/// The maximum number of jobs whose load is remembered.
const MAX_LOADS: usize = 1000;

/// The return of a minion below this syndic.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MinionReturn {
    pub jid: Jid,
    pub id: String,
    fun: Value,
    master_id: Option<Value>,
    fields: Map,
}

/// An item to forward.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item {
    /// Part of a `_syndic_return`.
    Return(Box<MinionReturn>),
    /// Part of a `_minion_event`: tag and data.
    Event(String, Map),
}

/// Returns the item that an upstream master receives for an event; `None` if it receives nothing.
pub(crate) fn item(event: &Event, mode: Mode, own_id: Option<&str>) -> Option<Item> {
    let tag = event.tag();
    let parts: Vec<&str> = tag.split('/').collect();
    let job = match parts[..] {
        ["salt", "job", jid, ..] => jid.parse::<Jid>().ok(),
        _ => None,
    };
    let mut data = event.data();
    data.retain(|name, _| !name.as_str().is_some_and(|name| name.starts_with('_')));
    let is_of = |data: &Map| own_id.is_some() && data.get("master_id").and_then(Value::as_str) == own_id;
    match (job, &parts[..]) {
        (Some(jid), ["salt", "job", _, "ret", id]) if data.contains_key("return") => {
            // A job of this master, which the masters of a cluster know already.
            if mode == Mode::Cluster && is_of(&data) {
                return None;
            }
            let fun = data.get("fun").cloned().unwrap_or_default();
            let master_id = data.get("master_id").cloned();
            data.retain(|name, _| name.as_str().is_some_and(|name| RETURN_FIELDS.contains(&name)));
            Some(Item::Return(Box::new(MinionReturn { jid, id: (*id).to_owned(), fun, master_id, fields: data })))
        }
        (Some(_), ["salt", "job", _, "new"]) => {
            // An upstream master waits for these minions. The empty list means that no further syndic reports more of
            // them.
            data.entry("syndics".into()).or_insert_with(|| Value::List(Vec::new()));
            Some(Item::Event(tag.to_owned(), data))
        }
        // Reports of lower syndics.
        _ if tag.starts_with("syndic/") && tag.ends_with("/new") => Some(Item::Event(tag.to_owned(), data)),
        // As in Salt, an event with a retcode counts as a return.
        _ if mode == Mode::Cluster || data.contains_key("retcode") => None,
        _ => Some(Item::Event(tag.to_owned(), data)),
    }
}

/// The loads of jobs that local or lower masters started: an upstream master receives them with the first return.
#[derive(Debug, Default)]
pub(crate) struct Loads {
    by_jid: HashMap<Jid, Map>,
    order: VecDeque<Jid>,
}

impl Loads {
    /// Remembers the load in the event of a new job.
    pub fn record(&mut self, item: &Item) {
        let Item::Event(tag, data) = item else { return };
        let jid = tag.strip_prefix("salt/job/").and_then(|rest| rest.strip_suffix("/new"));
        let Some(Ok(jid)) = jid.map(str::parse::<Jid>) else { return };
        let load = LOAD_FIELDS.iter().filter_map(|name| Some(((*name).into(), data.get(*name)?.clone()))).collect();
        if self.by_jid.insert(jid.clone(), load).is_none() {
            self.order.push_back(jid);
        }
        if self.order.len() > MAX_LOADS
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_jid.remove(&oldest);
        }
    }
}

/// Builds the `_syndic_return` message of the syndic `id`, with one bundle per job.
pub(crate) fn returns_load(id: &str, returns: Vec<MinionReturn>, loads: &Loads) -> Map {
    let mut bundles: Vec<(Jid, Map)> = Vec::new();
    for one in returns {
        let position = bundles.iter().position(|(jid, _)| *jid == one.jid);
        let at = position.unwrap_or_else(|| {
            let mut bundle = map! {
                "id" => id,
                "jid" => &one.jid,
                "fun" => one.fun.clone(),
                "load" => loads.by_jid.get(&one.jid).cloned().unwrap_or_default(),
                "return" => Map::new(),
            };
            bundle.extend(one.master_id.clone().map(|master| ("master_id".into(), master)));
            bundles.push((one.jid.clone(), bundle));
            bundles.len() - 1
        });
        if let Some(all) = bundles[at].1.get_mut("return").and_then(Value::as_map_mut) {
            all.insert(one.id.into(), one.fields.into());
        }
    }
    let bundles: Vec<Value> = bundles.into_iter().map(|(_, bundle)| bundle.into()).collect();
    map! {"cmd" => "_syndic_return", "id" => id, "load" => bundles, "ack" => true}
}

/// Builds the `_minion_event` message of the syndic `id`.
pub(crate) fn events_load(id: &str, events: Vec<(String, Map)>) -> Map {
    let events: Vec<Value> = events.into_iter().map(|(tag, data)| map! {"tag" => tag, "data" => data}.into()).collect();
    map! {"cmd" => "_minion_event", "id" => id, "events" => events, "pretag" => format!("syndic/{id}")}
}

/// Returns the sequence number of an event of the local bus, if it carries one.
pub(crate) fn seq(event: &Event) -> Option<u64> {
    event.data().get("_seq").and_then(u64::from_value)
}

#[cfg(test)]
mod tests;
