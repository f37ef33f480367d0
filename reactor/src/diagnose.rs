//! Explains why an event has no reaction: from the recorded skips, and else from the entries, the rules over time and
//! the state of the reactor.

use std::sync::Arc;

use brine_bus::Bus;
use brine_event::Event;

use crate::Reactor;
use crate::entries::ERROR_TAG;
use crate::event_loop::SUBSCRIBER;
use crate::nearest::nearest;
use crate::routing_fields::RoutingFields;
use crate::skipped::{Reason, Skip};

/// The reason why an event has no reaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    /// The entry's pattern, or the rule's id; empty for all of them.
    pub entry: Arc<str>,
    pub file: Option<Arc<str>>,
    pub message: String,
}

impl Note {
    fn new(entry: &str, message: String) -> Self {
        Note { entry: entry.into(), file: None, message }
    }

    /// Returns the note on one line, with its entry and file.
    pub fn text(&self) -> String {
        let about = match (&self.file, &*self.entry) {
            (Some(file), entry) => format!("{file} ('{entry}')"),
            (None, "") => return format!("no reaction: {}", self.message),
            (None, entry) => format!("'{entry}'"),
        };
        format!("no reaction of {about}: {}", self.message)
    }
}

impl Reactor {
    /// Returns the recorded skips of an event.
    pub(crate) fn skips(&self, seq: u64) -> Vec<Note> {
        let note = |skip: Skip| {
            let message = self.message(seq, &skip.reason);
            Note { entry: skip.entry, file: skip.file, message }
        };
        self.skipped.of(seq).into_iter().map(note).collect()
    }

    /// Returns the reasons why entries and rules other than those in `reacted` have no reaction to an event.
    pub(crate) fn diagnose(&self, bus: &Bus, event: &Event, reacted: &[String]) -> Vec<Note> {
        let mut notes = self.skips(event.seq());
        if self.is_own(event, &RoutingFields::of(event)) {
            let message = "the events of the reactor's own runner and wheel calls start no reactions, as in Salt";
            notes.push(Note::new("", message.to_owned()));
            return notes;
        }
        let has_reacted = |entry: &str| reacted.iter().any(|name| name == entry);
        let matching = self.entries().reacting(event.tag());
        let rules = self.rules.status(event);
        if matching.is_empty() && rules.is_empty() && reacted.is_empty() {
            notes.push(Note::new("", self.unmatched(event.tag())));
        }
        if notes.is_empty() && reacted.is_empty() {
            let message = if self.is_behind(bus, event.seq()) {
                "the event waits for its turn, or its reactions still run (brine_reactor_queue_depth)"
            } else {
                "the entry matches, but no result is recorded: the entry is newer than the event, or the record was \
                 lost in a restart or dropped for newer ones"
            };
            notes.extend(matching.iter().map(|entry| Note::new(&entry.pattern, message.to_owned())));
        }
        notes.extend(rules.into_iter().filter(|(id, _)| !has_reacted(id)).map(|(id, message)| Note::new(&id, message)));
        if !self.is_leader() && notes.iter().all(|note| note.message != OFF) {
            notes.push(Note::new(
                "",
                "the reactor is off now: `salt-run reactor.set_leader True` switches it on".into(),
            ));
        }
        notes
    }

    /// Explains that no pattern matches a tag.
    pub(crate) fn unmatched(&self, tag: &str) -> String {
        let (entries, rules) = (self.entries(), self.rules.patterns());
        if tag == ERROR_TAG && !entries.matching(tag).is_empty() {
            return format!("only an entry that names '{ERROR_TAG}' without wildcards starts reactions to it");
        }
        if entries.is_empty() && rules.is_empty() {
            return "the configuration has neither entries of 'reactor' nor rules over time".to_owned();
        }
        let patterns = entries.all().iter().map(|entry| &*entry.pattern);
        let near = nearest(tag, patterns.chain(rules.iter().map(|(pattern, _)| pattern.as_str())));
        if near.is_empty() {
            return "no pattern matches the tag, and none is similar: see `salt-run reactor.list`".to_owned();
        }
        let suggestions = near.into_iter().map(|pattern| match rules.iter().find(|(other, _)| other == pattern) {
            Some((_, rule)) if !entries.has_pattern(pattern) => format!("'{pattern}' (rule '{rule}')"),
            _ => format!("'{pattern}'"),
        });
        format!("no pattern matches the tag; the nearest: {}", suggestions.collect::<Vec<_>>().join(", "))
    }

    /// Returns whether an event belongs to one of the reactor's own runner or wheel calls. As in Salt, these start no
    /// reactions.
    pub(crate) fn is_own(&self, event: &Event, fields: &RoutingFields) -> bool {
        let is_call = event.tag().starts_with("salt/run/") || event.tag().starts_with("salt/wheel/");
        is_call && fields.user.as_deref() == Some(self.options.user)
    }

    /// Returns whether the reactor's cursor has not passed an event.
    fn is_behind(&self, bus: &Bus, seq: u64) -> bool {
        let last = bus.last_seq();
        let lag = bus.lags().into_iter().find(|(name, _)| name == SUBSCRIBER).map_or(0, |(_, lag)| lag);
        seq > last.saturating_sub(lag)
    }

    fn message(&self, seq: u64, reason: &Reason) -> String {
        match reason {
            Reason::Limited { option, key, until } => {
                format!("{option} leaves events{} out until {}", of_key(key), self.wall_time(*until))
            }
            Reason::Debounced { key, until } => format!(
                "reactor_debounce holds events{} until {}: then the last one has the reaction",
                of_key(key),
                self.wall_time(*until)
            ),
            Reason::Superseded { by } => {
                format!("reactor_debounce: event {by} of the same burst has the reaction in its place")
            }
            Reason::Empty => format!(
                "the file renders to no reaction for this event: its conditions do not hold; \
                 `salt-run reactor.test --from-seq {seq}` shows the text"
            ),
            Reason::NoMinion { reaction, target } => format!(
                "{reaction}: the job was published to nobody, as {target} matches no accepted minion; see `salt-key -L`"
            ),
            Reason::Off => OFF.to_owned(),
            Reason::OtherMaster => "another master of the cluster has carried out the reactions".to_owned(),
        }
    }

    /// Formats a bus time, in microseconds, as a date and time of the wall clock in UTC.
    fn wall_time(&self, time: u64) -> String {
        let micros = time.saturating_add_signed(self.clock.wall_offset()).cast_signed();
        let time = jiff::Timestamp::from_microsecond(micros).unwrap_or_default();
        time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
    }
}

const OFF: &str = "the reactor was off: `salt-run reactor.set_leader True` switches it on";

/// Returns the key of a limit as a suffix of a message: empty, or ` of 'key'`.
fn of_key(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!(" of '{key}'") }
}
