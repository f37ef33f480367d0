//! The history for `reactor.history`: events with the results of their reactions and with skipped reactions. Results
//! are read from the journal: the events of a reaction's job carry its identifying fields.

use std::collections::{BTreeMap, HashMap, VecDeque};

use brine_bus::store::StoreError;
use brine_bus::{Bus, TimeOrSeq};
use brine_event::{Event, STAMP};
use brine_runtime::executors::MayBlock;
use brine_text::glob::fnmatch;
use brine_value::{FromValue, Map, Value, map};

use crate::Reactor;
use crate::diagnose::Note;
use crate::entries::ERROR_TAG;
use crate::failed_states::{FAILED_STATES, FailedState, failed_states};
use crate::routing_fields::FROM;

/// The number of events examined at once.
const PAGE: u64 = 4096;
/// The maximum number of returns that wait for the event of their job. Beyond it, the newest are forgotten: the history
/// is read backwards, so that they have waited longest.
const MAX_RETURNS: usize = 100_000;

/// Selects events of the history.
#[derive(Debug, Clone, Default)]
pub struct HistoryFilter {
    /// A glob over the tags of the events.
    pub tag: Option<String>,
    /// The `id` in their data.
    pub id: Option<String>,
    /// The maximum number of events.
    pub limit: usize,
}

/// A reaction, as its events record it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReactionRecord {
    pub seq: u64,
    pub entry: String,
    pub file: String,
    pub reaction: String,
    pub jid: Option<String>,
    pub started: String,
    pub outcome: Outcome,
}

/// The result of a reaction.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Outcome {
    /// The minions of the job; empty for runner and wheel functions.
    pub minions: Vec<String>,
    /// The minions that returned, each with its success; the end of a call has an empty name.
    pub returned: Vec<(String, bool)>,
    /// The failed states, each with the minion's id.
    pub failed_states: Vec<(String, FailedState)>,
    pub ended: Option<String>,
    pub error: Option<String>,
}

impl Outcome {
    pub fn text(&self) -> String {
        if let Some(error) = &self.error {
            return error.clone();
        }
        let failed: Vec<_> = self.returned.iter().filter(|(_, good)| !good).map(|(id, _)| id.as_str()).collect();
        let mut text = match (&self.minions[..], &self.returned[..]) {
            ([], []) => "not ended".to_owned(),
            ([], _) if failed.is_empty() => "done".to_owned(),
            ([], _) => "failed".to_owned(),
            (minions, returned) => {
                let mut text = format!("{} of {} returned", returned.len(), minions.len());
                if !failed.is_empty() {
                    text += &format!(", failed: {}", failed.join(", "));
                }
                text
            }
        };
        if let Some((id, state)) = self.failed_states.first() {
            let more = self.failed_states.len() - 1;
            text += &format!("; first failed state{}: {}", of_minion(id), state.text());
            if more > 0 {
                text += &format!(" (and {more} more)");
            }
        }
        text
    }
}

fn of_minion(id: &str) -> String {
    if id.is_empty() { String::new() } else { format!(" of {id}") }
}

/// Collects the results of `ret` events by job id.
#[derive(Default)]
pub(crate) struct Returns {
    by_jid: HashMap<String, Outcome>,
    /// The job ids in the order of their first return.
    order: VecDeque<String>,
    count: usize,
}

impl Returns {
    /// Records the event if it is a return. Returns whether it is one.
    pub fn record(&mut self, event: &Event) -> bool {
        let parts: Vec<_> = event.tag().split('/').collect();
        let (jid, id) = match parts[..] {
            ["salt", "run" | "wheel", jid, "ret"] => (jid, ""),
            ["salt", "job", jid, "ret", id] => (jid, id),
            _ => return false,
        };
        let data = event.data();
        // Minions return jobs only: the returns of calls come from the master.
        if id.is_empty() && data.contains_key(FROM) {
            return false;
        }
        let flag = |name: &str| data.get(name).and_then(Value::as_bool);
        let good = flag("success").unwrap_or(true) && data.get("retcode").and_then(Value::as_i64).unwrap_or(0) == 0;
        if !self.by_jid.contains_key(jid) {
            self.order.push_back(jid.to_owned());
        }
        self.count += 1;
        let outcome = self.by_jid.entry(jid.to_owned()).or_default();
        outcome.returned.push((id.to_owned(), good));
        if !good {
            let room = FAILED_STATES.saturating_sub(outcome.failed_states.len());
            let states = data.get("return").map(failed_states).unwrap_or_default();
            outcome.failed_states.extend(states.into_iter().take(room).map(|state| (id.to_owned(), state)));
        }
        let stamp = stamp(&data);
        if outcome.ended.as_ref().is_none_or(|ended| *ended < stamp) {
            outcome.ended = Some(stamp);
        }
        while self.count > MAX_RETURNS
            && let Some(oldest) = self.order.pop_front()
        {
            self.forget(&oldest);
        }
        true
    }

    pub fn of(&self, jid: &str) -> Outcome {
        self.by_jid.get(jid).cloned().unwrap_or_default()
    }

    /// Forgets the returns of a job whose event was read: earlier events have none.
    fn forget(&mut self, jid: &str) {
        if let Some(outcome) = self.by_jid.remove(jid) {
            self.count -= outcome.returned.len();
        }
        // Those of jobs that are forgotten out of order are removed now and then.
        if self.order.len() > 2 * self.by_jid.len() + 1024 {
            self.order.retain(|jid| self.by_jid.contains_key(jid));
        }
    }
}

/// Returns the job id of an event that begins a job or call.
fn begun(tag: &str) -> Option<&str> {
    match tag.split('/').collect::<Vec<_>>()[..] {
        ["salt", "job" | "run" | "wheel", jid, "new"] => Some(jid),
        _ => None,
    }
}

pub(crate) fn stamp(data: &Map) -> String {
    data.get(STAMP).map(ToString::to_string).unwrap_or_default()
}

/// Returns the reaction that an event records, without its returns, and the sequence number of its cause.
pub(crate) fn reaction_of(event: &Event) -> Option<(u64, ReactionRecord)> {
    let tag = event.tag();
    let is_new = tag.ends_with("/new") && tag.starts_with("salt/");
    if !is_new && tag != ERROR_TAG {
        return None;
    }
    let data = event.data();
    // Events of minions are no evidence of a reaction: only the master's own events are trusted.
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
        return Some((
            cause,
            ReactionRecord { seq, entry, file, reaction: String::new(), jid: None, started, outcome },
        ));
    }
    let asked = data.get("minions").and_then(Value::as_list).unwrap_or_default();
    outcome.minions = asked.iter().map(ToString::to_string).collect();
    let jid = data.get("jid").map(ToString::to_string);
    let reaction = text("_reaction");
    // Calls nested in a reaction carry no `_reaction`.
    if reaction.is_empty() {
        return None;
    }
    Some((cause, ReactionRecord { seq, entry: text("_entry"), file: text("_sls"), reaction, jid, started, outcome }))
}

impl Reactor {
    /// Returns the newest events with reactions or skipped reactions, newest first: each with entries, files,
    /// reactions, job ids, results and times. A tag in the filter includes events that no entry matches. Reads the
    /// journal, so it needs a thread that may block.
    pub fn history(&self, thread: &MayBlock, bus: &Bus, filter: &HistoryFilter) -> Result<Value, StoreError> {
        let mut returns = Returns::default();
        let mut by_cause: BTreeMap<u64, Vec<ReactionRecord>> = BTreeMap::new();
        let mut causes: HashMap<u64, Event> = HashMap::new();
        let mut below = bus.last_seq() + 1;
        let mut count = 0;
        while count < filter.limit {
            let Some(newest) = bus.last_before(thread, below)? else { break };
            below = newest + 1;
            let from = below.saturating_sub(PAGE).max(1);
            let events = window(thread, bus, from, below)?;
            // Backwards, so that returns are known before their jobs.
            for event in events.iter().rev().filter(|event| event.seq() < below) {
                if filter.tag.is_some() && wants(filter, event) {
                    by_cause.entry(event.seq()).or_default();
                    causes.insert(event.seq(), event.clone());
                }
                if returns.record(event) {
                    continue;
                }
                let reaction = reaction_of(event);
                if let Some((cause, mut record)) = reaction {
                    if let Some(jid) = &record.jid {
                        let of_jid = returns.of(jid);
                        record.outcome = Outcome { minions: record.outcome.minions, ..of_jid };
                    }
                    by_cause.entry(cause).or_default().push(record);
                }
                if let Some(jid) = begun(event.tag()) {
                    returns.forget(jid);
                }
            }
            for skipped in self.skipped.events(from..below) {
                by_cause.entry(skipped).or_default();
            }
            below = from;
            // All reactions to events from here on have been read.
            let read: Vec<u64> = by_cause.range(below..).map(|(cause, _)| *cause).collect();
            for cause in read {
                if causes.contains_key(&cause) {
                    continue;
                }
                match event_at(thread, bus, cause)?.filter(|event| wants(filter, event)) {
                    Some(event) => _ = causes.insert(cause, event),
                    None => _ = by_cause.remove(&cause),
                }
            }
            count = causes.len();
        }
        let entries = by_cause.into_iter().rev().filter_map(|(cause, mut reactions)| {
            let event = causes.remove(&cause)?;
            reactions.reverse();
            let notes = if reactions.is_empty() { self.diagnose(bus, &event, &[]) } else { self.skips(cause) };
            Some(to_value(&event, &reactions, &notes))
        });
        Ok(entries.take(filter.limit).collect())
    }
}

/// Reads all events from `from` to before `below`.
fn window(thread: &MayBlock, bus: &Bus, from: u64, below: u64) -> Result<Vec<Event>, StoreError> {
    let (mut events, mut at) = (Vec::new(), from);
    while at < below {
        // A page of large events holds fewer than requested.
        let page = bus.read(thread, TimeOrSeq::Seq(at), (below - at) as usize)?;
        let Some(last) = page.last() else { break };
        at = last.seq() + 1;
        events.extend(page);
    }
    Ok(events)
}

/// Reads the event of a sequence number; `None` if it is not in the journal.
pub(crate) fn event_at(thread: &MayBlock, bus: &Bus, seq: u64) -> Result<Option<Event>, StoreError> {
    Ok(bus.read(thread, TimeOrSeq::Seq(seq), 1)?.pop().filter(|event| event.seq() == seq))
}

fn wants(filter: &HistoryFilter, event: &Event) -> bool {
    let tag = filter.tag.as_ref().is_none_or(|tag| fnmatch(tag, event.tag()));
    let id =
        || filter.id.as_ref().is_none_or(|id| event.data().get("id").is_some_and(|value| value.to_string() == *id));
    tag && id()
}

fn to_value(event: &Event, reactions: &[ReactionRecord], notes: &[Note]) -> Value {
    let data = event.data();
    let reaction = |record: &ReactionRecord| {
        let mut map = map! {"entry" => record.entry.as_str(), "file" => record.file.as_str()};
        if !record.reaction.is_empty() {
            map.insert("reaction".into(), record.reaction.as_str().into());
        }
        if let Some(jid) = &record.jid {
            map.insert("jid".into(), jid.as_str().into());
        }
        map.insert("outcome".into(), record.outcome.text().into());
        if !record.outcome.failed_states.is_empty() {
            let states = record.outcome.failed_states.iter();
            let state = |(id, state): &(String, FailedState)| Value::from(state.text() + &of_minion(id));
            map.insert("failed_states".into(), states.map(state).collect());
        }
        map.insert("started".into(), record.started.as_str().into());
        if let Some(ended) = &record.outcome.ended {
            map.insert("ended".into(), ended.as_str().into());
        }
        Value::Map(map)
    };
    let note = |note: &Note| {
        let mut map = map! {"entry" => &*note.entry};
        map.extend(note.file.as_ref().map(|file| ("file".into(), (&**file).into())));
        map.insert("outcome".into(), format!("no reaction: {}", note.message).into());
        Value::Map(map)
    };
    let mut map = map! {"seq" => event.seq(), "tag" => event.tag(), "time" => stamp(&data)};
    map.extend(data.get("id").map(|id| ("id".into(), id.clone())));
    map.insert("reactions".into(), reactions.iter().map(reaction).chain(notes.iter().map(note)).collect());
    map.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_that_wait_for_their_job_are_bounded() {
        let mut returns = Returns::default();
        let body = map! {"return" => true, "success" => true};
        let event = |tag: &str| Event::from_map(tag, &body).unwrap();
        for n in 0..MAX_RETURNS + 5000 {
            assert!(returns.record(&event(&format!("salt/job/{n}/ret/web1"))));
        }
        assert_eq!((returns.by_jid.len(), returns.count), (MAX_RETURNS, MAX_RETURNS));
        assert!(returns.of("0").returned.is_empty());
        let last = (MAX_RETURNS + 4999).to_string();
        assert_eq!(returns.of(&last).returned, [("web1".to_owned(), true)]);
        // Those of jobs that were read leave no trace.
        for n in 0..MAX_RETURNS + 5000 {
            returns.forget(&n.to_string());
        }
        assert!(returns.by_jid.is_empty() && returns.count == 0 && returns.order.len() <= 1024);
        // One job on many minions.
        for n in 0..MAX_RETURNS + 10 {
            returns.record(&event(&format!("salt/job/one/ret/web{n}")));
        }
        assert!(returns.count <= MAX_RETURNS);
    }
}
