//! `reactor.history`: which events were reacted to, and what came of it. All of it is read from the journal:
//! events that a reaction led to say so themselves.

use std::collections::{BTreeMap, HashMap};

use brine_core::bus::{Bus, TimeOrSeq};
use brine_core::event::{Event, STAMP};
use brine_core::glob::fnmatch;
use brine_core::store::StoreError;
use brine_core::value::FromValue;
use brine_core::{Map, Value, map};

use crate::failed_states;
use crate::peek::FROM;
use crate::run::ERROR_TAG;

/// From so many failed states of one job on, those of further minions are not named.
const MOST_STATES: usize = 20;
/// How many events are looked at in one go.
const PAGE: u64 = 4096;

/// What history is wanted.
#[derive(Debug, Clone, Default)]
pub struct HistoryFilter {
    /// A glob over the tags of the events that were reacted to.
    pub tag: Option<String>,
    /// The `id` in their data.
    pub id: Option<String>,
    /// How many events, the newest.
    pub limit: usize,
}

/// One reaction, as its events tell it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Done {
    pub seq: u64,
    pub entry: String,
    pub file: String,
    pub reaction: String,
    pub jid: Option<String>,
    pub started: String,
    pub outcome: Outcome,
}

/// What came of a reaction.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Outcome {
    /// Who was asked; nobody for runner and wheel functions.
    pub minions: Vec<String>,
    /// Who returned, or the call itself under no name; with success.
    pub returned: Vec<(String, bool)>,
    /// The states that failed, by name.
    pub failed_states: Vec<String>,
    pub ended: Option<String>,
    pub error: Option<String>,
}

impl Outcome {
    pub fn text(&self) -> String {
        let text = self.returns_text();
        if self.failed_states.is_empty() {
            text
        } else {
            format!("{text}; failed states: {}", self.failed_states.join(", "))
        }
    }

    fn returns_text(&self) -> String {
        if let Some(error) = &self.error {
            return error.clone();
        }
        let failed: Vec<_> = self.returned.iter().filter(|(_, good)| !good).map(|(id, _)| id.as_str()).collect();
        match (&self.minions[..], &self.returned[..]) {
            ([], []) => "not ended".to_owned(),
            ([], _) if failed.is_empty() => "done".to_owned(),
            ([], _) => "failed".to_owned(),
            (asked, returned) => {
                let mut text = format!("{} of {} returned", returned.len(), asked.len());
                if !failed.is_empty() {
                    text += &format!(", failed: {}", failed.join(", "));
                }
                text
            }
        }
    }
}

/// Gathers what `ret` events say, by job id.
#[derive(Default)]
pub(crate) struct Returns(HashMap<String, Outcome>);

impl Returns {
    /// Whether the event is a return.
    pub fn take(&mut self, event: &Event) -> bool {
        let parts: Vec<_> = event.tag().split('/').collect();
        let (jid, id) = match parts[..] {
            ["salt", "run" | "wheel", jid, "ret"] => (jid, ""),
            ["salt", "job", jid, "ret", id] => (jid, id),
            _ => return false,
        };
        let data = event.data();
        // Minions return jobs; what the master's calls came to, the master alone tells.
        if id.is_empty() && data.contains_key(FROM) {
            return false;
        }
        let flag = |name: &str| data.get(name).and_then(Value::as_bool);
        let good = flag("success").unwrap_or(true) && data.get("retcode").and_then(Value::as_i64).unwrap_or(0) == 0;
        let outcome = self.0.entry(jid.to_owned()).or_default();
        outcome.returned.push((id.to_owned(), good));
        if !good && outcome.failed_states.len() < MOST_STATES {
            outcome.failed_states.extend(failed_states::of_return(&data));
        }
        let stamp = stamp(&data);
        if outcome.ended.as_ref().is_none_or(|ended| *ended < stamp) {
            outcome.ended = Some(stamp);
        }
        true
    }

    pub fn of(&self, jid: &str) -> Outcome {
        self.0.get(jid).cloned().unwrap_or_default()
    }
}

pub(crate) fn stamp(data: &Map) -> String {
    data.get(STAMP).map(ToString::to_string).unwrap_or_default()
}

/// The reaction that an event tells of, and the number of what it reacted to. Its returns are not filled in.
pub(crate) fn reaction_of(event: &Event) -> Option<(u64, Done)> {
    let tag = event.tag();
    let is_new = tag.ends_with("/new") && tag.starts_with("salt/");
    if !is_new && tag != ERROR_TAG {
        return None;
    }
    let data = event.data();
    // Only the master tells of reactions.
    if data.contains_key(FROM) {
        return None;
    }
    let cause = u64::from_value(data.get("_cause")?)?;
    let text = |name: &str| data.get(name).map(ToString::to_string).unwrap_or_default();
    let (seq, started) = (event.seq(), stamp(&data));
    let mut outcome = Outcome::default();
    if !is_new {
        outcome.error = Some(text("message"));
        let (entry, file) = (text("_entry"), text("file"));
        return Some((cause, Done { seq, entry, file, reaction: String::new(), jid: None, started, outcome }));
    }
    let asked = data.get("minions").and_then(Value::as_list).unwrap_or_default();
    outcome.minions = asked.iter().map(ToString::to_string).collect();
    let jid = data.get("jid").map(ToString::to_string);
    let reaction = text("_reaction");
    // Calls that a reaction made further down have no reaction of their own to name.
    if reaction.is_empty() {
        return None;
    }
    Some((cause, Done { seq, entry: text("_entry"), file: text("_sls"), reaction, jid, started, outcome }))
}

/// The newest events that were reacted to, newest first: each with its entry, file, reactions, job ids,
/// outcomes and times. Reads the journal: for a thread that may block.
pub fn history(bus: &Bus, filter: &HistoryFilter) -> Result<Value, StoreError> {
    let mut returns = Returns::default();
    let mut by_cause: BTreeMap<u64, Vec<Done>> = BTreeMap::new();
    let mut wanted: HashMap<u64, Option<Event>> = HashMap::new();
    let mut below = bus.last_seq() + 1;
    let mut found = 0;
    while found < filter.limit {
        let Some(newest) = bus.last_before(below)? else { break };
        below = newest + 1;
        let from = below.saturating_sub(PAGE).max(1);
        let events = window(bus, from, below)?;
        // Backwards, so that returns are known before the jobs that they belong to.
        for event in events.iter().rev().filter(|event| event.seq() < below) {
            if returns.take(event) {
                continue;
            }
            let Some((cause, mut done)) = reaction_of(event) else { continue };
            if let Some(jid) = &done.jid {
                let of_jid = returns.of(jid);
                done.outcome = Outcome { minions: done.outcome.minions, ..of_jid };
            }
            by_cause.entry(cause).or_default().push(done);
        }
        below = from;
        // What reacted to an event at or above here has been seen.
        for cause in by_cause.range(below..).map(|(cause, _)| *cause) {
            if let std::collections::hash_map::Entry::Vacant(vacant) = wanted.entry(cause) {
                vacant.insert(event_at(bus, cause)?.filter(|event| wants(filter, event)));
            }
        }
        found = wanted.values().flatten().count();
    }
    let told = by_cause.into_iter().rev().filter_map(|(cause, mut reactions)| {
        let event = wanted.remove(&cause)??;
        reactions.reverse();
        Some(told(&event, &reactions))
    });
    Ok(told.take(filter.limit).collect())
}

/// Reads all events from `from` to before `below`.
fn window(bus: &Bus, from: u64, below: u64) -> Result<Vec<Event>, StoreError> {
    let (mut events, mut at) = (Vec::new(), from);
    while at < below {
        // Large events come in smaller pages.
        let page = bus.read(TimeOrSeq::Seq(at), (below - at) as usize)?;
        let Some(last) = page.last() else { break };
        at = last.seq() + 1;
        events.extend(page);
    }
    Ok(events)
}

/// The event of this number, if the journal has it.
pub(crate) fn event_at(bus: &Bus, seq: u64) -> Result<Option<Event>, StoreError> {
    Ok(bus.read(TimeOrSeq::Seq(seq), 1)?.pop().filter(|event| event.seq() == seq))
}

fn wants(filter: &HistoryFilter, event: &Event) -> bool {
    let tag = filter.tag.as_ref().is_none_or(|tag| fnmatch(tag, event.tag()));
    let id =
        || filter.id.as_ref().is_none_or(|id| event.data().get("id").is_some_and(|value| value.to_string() == *id));
    tag && id()
}

fn told(event: &Event, reactions: &[Done]) -> Value {
    let data = event.data();
    let one = |done: &Done| {
        let mut told = map! {"entry" => done.entry.as_str(), "file" => done.file.as_str()};
        if !done.reaction.is_empty() {
            told.insert("reaction".into(), done.reaction.as_str().into());
        }
        if let Some(jid) = &done.jid {
            told.insert("jid".into(), jid.as_str().into());
        }
        told.insert("outcome".into(), done.outcome.text().into());
        told.insert("started".into(), done.started.as_str().into());
        if let Some(ended) = &done.outcome.ended {
            told.insert("ended".into(), ended.as_str().into());
        }
        Value::Map(told)
    };
    let mut told = map! {"seq" => event.seq(), "tag" => event.tag(), "time" => stamp(&data)};
    told.extend(data.get("id").map(|id| ("id".into(), id.clone())));
    told.insert("reactions".into(), reactions.iter().map(one).collect());
    told.into()
}
