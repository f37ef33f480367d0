//! The engine: applies events and time to the rules and returns the firings.

mod store;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use brine_value::{FromValue, Map, Value, map};
use indexmap::IndexMap;

use crate::condition::EventView;
use crate::duration::micros;
use crate::firing::{Firing, GroupSize, Occurrence};
use crate::key_state::{KeyState, evaluate, trimmed};
use crate::metrics;
use crate::{Kind, Population, Rule, Rules};

/// The maximum number of keys of a rule; beyond it the least recently used are evicted.
const KEYS: usize = 100_000;
/// The maximum number of events in the context of a firing.
const CONTEXT_EVENTS: usize = 100;
struct Slot {
    state: KeyState,
    touched: u64,
}

/// The rules with their state.
pub struct Engine {
    rules: Rules,
    slots: Vec<HashMap<String, Slot>>,
    due: BTreeSet<(u64, usize, String)>,
    last_seen: u64,
    /// The difference of the wall clock to bus time, in microseconds: positive if the wall clock is ahead.
    wall_offset: i64,
    written_offset: i64,
    changed: HashSet<(usize, String)>,
    removed: Vec<Vec<u8>>,
}

impl Engine {
    /// Sets the difference of the wall clock to bus time, in microseconds.
    pub fn set_wall_offset(&mut self, wall_offset: i64) {
        self.wall_offset = wall_offset;
    }

    /// Returns whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns whether a trigger of a rule matches a tag.
    pub fn wants(&self, tag: &str) -> bool {
        !self.rules.is_empty() && self.rules.set.is_match(tag)
    }

    /// Returns the bus time at which the next timer is due.
    pub fn next_due(&self) -> Option<u64> {
        self.due.first().map(|(due, ..)| *due)
    }

    /// Returns the node groups that rules refer to.
    pub fn groups(&self) -> Vec<String> {
        let group = |rule: &Rule| match &rule.kind {
            Kind::Share { whole: Population::Nodegroup(name), .. } => Some(name.clone()),
            _ => None,
        };
        self.rules.all().iter().filter_map(group).collect()
    }

    /// Applies an event and returns the firings. An event applied before a restart is skipped.
    pub fn event(&mut self, occurrence: Occurrence<'_>, group_size: GroupSize<'_>) -> Vec<Firing> {
        if occurrence.seq <= self.last_seen {
            return Vec::new();
        }
        self.last_seen = occurrence.seq;
        // Timers that became due before the event fire before it.
        let mut firings = self.advance(occurrence.time);
        for (index, trigger) in self.rules.matching(occurrence.tag) {
            let view = EventView { tag: occurrence.tag, data: occurrence.data };
            if self.rules.all()[index].triggers[trigger].conditions.hold(view) {
                firings.extend(self.apply(index, trigger, occurrence, group_size));
            }
        }
        firings
    }

    fn apply(
        &mut self,
        index: usize,
        trigger: usize,
        occurrence: Occurrence<'_>,
        group_size: GroupSize<'_>,
    ) -> Vec<Firing> {
        let view = EventView { tag: occurrence.tag, data: occurrence.data };
        let (time, rule) = (occurrence.time, &self.rules.all()[index]);
        match &rule.kind {
            Kind::Count { by, count, within } => {
                let (Some(key), count, oldest) = (by.key(view), *count, time.saturating_sub(micros(*within))) else {
                    return Vec::new();
                };
                let mut window = match self.remove(index, &key) {
                    Some(KeyState::Window(window)) => window,
                    _ => VecDeque::new(),
                };
                window.push_back((time, trimmed(occurrence.data)));
                // An event exactly `within` ago is no longer in the window.
                window.retain(|(time, _)| *time > oldest);
                if window.len() < count {
                    self.insert(index, &key, KeyState::Window(window), time);
                    return Vec::new();
                }
                let events: Vec<Map> = window.into_iter().map(|(_, data)| data).collect();
                vec![self.firing(index, &key, occurrence, events)]
            }
            Kind::Absent { each, by, within } => {
                if trigger == 1 {
                    if let Some(key) = by.key(view) {
                        self.remove(index, &key);
                    }
                    return Vec::new();
                }
                let due = time + micros(*within);
                let keys: Vec<String> = match each {
                    Some(path) => match path.find(view) {
                        Some(Value::List(all)) => all.iter().map(ToString::to_string).collect(),
                        Some(one) => vec![one.to_string()],
                        None => Vec::new(),
                    },
                    None => by.key(view).into_iter().collect(),
                };
                for key in keys {
                    self.remove(index, &key);
                    let data = trimmed(occurrence.data);
                    self.insert(index, &key, KeyState::Timer { due, seq: occurrence.seq, data }, time);
                }
                Vec::new()
            }
            Kind::Sequence { by, within } => {
                let (Some(key), within, steps) = (by.key(view), micros(*within), rule.triggers.len()) else {
                    return Vec::new();
                };
                let (next, began, mut events) = match self.slot(index, &key) {
                    Some(KeyState::Steps { next, began, events }) if time < began + within => {
                        (*next, *began, events.clone())
                    }
                    _ => (0, time, Vec::new()),
                };
                if trigger == next {
                    events.push(trimmed(occurrence.data));
                    if next + 1 == steps {
                        self.remove(index, &key);
                        return vec![self.firing(index, &key, occurrence, events)];
                    }
                    let began = if next == 0 { time } else { began };
                    self.insert(index, &key, KeyState::Steps { next: next + 1, began, events }, time);
                } else if trigger == 0 {
                    // A repetition of the first event restarts the sequence.
                    let events = vec![trimmed(occurrence.data)];
                    self.insert(index, &key, KeyState::Steps { next: 1, began: time, events }, time);
                }
                Vec::new()
            }
            Kind::Share { by, whole, above, within } => {
                let Some(member) = by.key(view) else { return Vec::new() };
                let whole = match whole {
                    Population::Count(count) => Some(*count),
                    Population::Nodegroup(name) => group_size(name),
                };
                let (above, oldest) = (*above, time.saturating_sub(micros(*within)));
                let mut members = match self.remove(index, "") {
                    Some(KeyState::Members(members)) => members,
                    _ => IndexMap::new(),
                };
                members.insert(member, time);
                members.retain(|_, time| *time > oldest);
                let share = whole.filter(|whole| *whole > 0).map(|whole| members.len() as f64 / whole as f64);
                if share.is_some_and(|share| share > above) {
                    let ids: Vec<String> = members.into_keys().collect();
                    let mut firing = self.firing(index, "", occurrence, Vec::new());
                    firing.context.insert("count".into(), ids.len().into());
                    firing.context.insert("members".into(), ids.into());
                    firing.context.insert("share".into(), share.into());
                    return vec![firing];
                }
                self.insert(index, "", KeyState::Members(members), time);
                Vec::new()
            }
            Kind::Register { by, register } => {
                let Some(key) = by.key(view) else { return Vec::new() };
                let Some(value) = register.value.find(view) else { return Vec::new() };
                let (window, last) = (register.window.map(micros), register.last);
                let mut values = match self.remove(index, &key) {
                    Some(KeyState::Values(values)) => values,
                    _ => VecDeque::new(),
                };
                values.push_back((time, value));
                while values.len() > last {
                    values.pop_front();
                }
                if let Some(window) = window {
                    let oldest = time.saturating_sub(window);
                    values.retain(|(time, _)| *time > oldest);
                }
                self.insert(index, &key, KeyState::Values(values), time);
                self.fire_tests(index, &key, occurrence)
            }
            Kind::When { .. } | Kind::Every { .. } => Vec::new(),
        }
    }

    /// Applies the tests of a register that has changed.
    fn fire_tests(&mut self, register: usize, key: &str, occurrence: Occurrence<'_>) -> Vec<Firing> {
        let Some(value) = self.value(register, key).as_ref().and_then(f64::from_value) else { return Vec::new() };
        let name = &self.rules.all()[register].id;
        let about: Vec<(usize, bool)> = self
            .rules
            .all()
            .iter()
            .enumerate()
            .filter_map(|(index, rule)| match &rule.kind {
                Kind::When { register, test } if register == name => Some((index, test.holds(value))),
                _ => None,
            })
            .collect();
        let mut firings = Vec::new();
        for (index, holds) in about {
            let held = matches!(self.slot(index, key), Some(KeyState::Holds(true)));
            if holds != held {
                self.insert(index, key, KeyState::Holds(holds), occurrence.time);
                if holds {
                    let mut firing = self.firing(index, key, occurrence, Vec::new());
                    firing.context.insert("value".into(), value.into());
                    firings.push(firing);
                }
            }
        }
        firings
    }

    /// Fires the timers that are due at this bus time.
    pub fn advance(&mut self, now: u64) -> Vec<Firing> {
        let mut firings = Vec::new();
        while let Some((due, index, key)) = self.due.first().filter(|(due, ..)| *due <= now).cloned() {
            let rule = &self.rules.all()[index];
            let (id, tag) = (rule.id.clone(), format!("salt/reactor/rule/{}", rule.id));
            let pause = match rule.kind {
                Kind::Every { pause } => Some(micros(pause)),
                _ => None,
            };
            let (seq, mut data) = match self.remove(index, &key) {
                Some(KeyState::Timer { seq, data, .. }) => (seq, data),
                _ => (0, Map::new()),
            };
            if let Some(pause) = pause {
                // Missed intervals are skipped.
                let missed = now.saturating_sub(due) / pause;
                self.insert(index, "", KeyState::Due(due + pause * (missed + 1)), now);
            }
            data.insert("rule".into(), id.into());
            data.insert("key".into(), key.as_str().into());
            let occurrence = Occurrence { seq, tag: &tag, data: &data, time: due };
            firings.push(self.firing(index, &key, occurrence, Vec::new()));
        }
        firings
    }

    fn firing(&self, index: usize, key: &str, occurrence: Occurrence<'_>, mut events: Vec<Map>) -> Firing {
        let rule = &self.rules.all()[index];
        let count = events.len();
        if events.len() > CONTEXT_EVENTS {
            events.drain(..events.len() - CONTEXT_EVENTS);
        }
        let context = map! {
            "rule" => rule.id.as_str(),
            "key" => key,
            "count" => count,
            "events" => events.into_iter().collect::<Value>(),
            "registers" => self.registers(Some(key)),
        };
        Firing {
            rule: rule.id.clone(),
            react: rule.react.clone(),
            tag: occurrence.tag.to_owned(),
            data: occurrence.data.clone(),
            seq: occurrence.seq,
            context,
        }
    }

    fn value(&self, index: usize, key: &str) -> Option<Value> {
        match (&self.rules.all()[index].kind, self.slot(index, key)) {
            (Kind::Register { register, .. }, Some(KeyState::Values(values))) => Some(evaluate(register, values)),
            _ => None,
        }
    }

    /// Returns the values of all registers: of one key (and of registers without keys), or of all keys.
    pub fn registers(&self, of_key: Option<&str>) -> Map {
        let mut registers = Map::new();
        for (index, rule) in self.rules.all().iter().enumerate() {
            let Kind::Register { by, .. } = &rule.kind else { continue };
            let plain = by.0.is_empty();
            let value = match of_key {
                _ if plain => self.value(index, "").unwrap_or_default(),
                Some(key) => self.value(index, key).unwrap_or_default(),
                None => {
                    let keys = self.slots[index].keys();
                    Value::Map(keys.map(|key| (key.into(), self.value(index, key).unwrap_or_default())).collect())
                }
            };
            registers.insert(rule.id.as_str().into(), value);
        }
        registers
    }

    /// Returns the running timers: rule, key, and due time in bus time.
    pub fn timers(&self) -> Vec<(String, String, u64)> {
        self.due.iter().map(|(due, index, key)| (self.rules.all()[*index].id.clone(), key.clone(), *due)).collect()
    }

    pub(super) fn slot(&self, index: usize, key: &str) -> Option<&KeyState> {
        self.slots[index].get(key).map(|slot| &slot.state)
    }

    fn remove(&mut self, index: usize, key: &str) -> Option<KeyState> {
        let slot = self.slots[index].remove(key)?;
        if let KeyState::Timer { due, .. } | KeyState::Due(due) = slot.state {
            self.due.remove(&(due, index, key.to_owned()));
        }
        self.changed.insert((index, key.to_owned()));
        Some(slot.state)
    }

    fn insert(&mut self, index: usize, key: &str, state: KeyState, now: u64) {
        if self.slots[index].len() >= KEYS && !self.slots[index].contains_key(key) {
            self.evict(index);
        }
        if let KeyState::Timer { due, .. } | KeyState::Due(due) = state {
            self.due.insert((due, index, key.to_owned()));
        }
        self.slots[index].insert(key.to_owned(), Slot { state, touched: now });
        self.changed.insert((index, key.to_owned()));
    }

    /// Evicts the least recently used tenth of the keys: a single one would cost as much.
    fn evict(&mut self, index: usize) {
        let mut touched: Vec<(u64, String)> =
            self.slots[index].iter().map(|(key, slot)| (slot.touched, key.clone())).collect();
        touched.sort_unstable();
        let evicted = touched.len() / 10 + 1;
        for (_, key) in touched.into_iter().take(evicted) {
            self.remove(index, &key);
        }
        metrics::RULE_KEYS_FORGOTTEN.add(evicted as u64);
        tracing::warn!(
            rule = self.rules.all()[index].id,
            evicted,
            "rule has too many keys: the least recently used are evicted"
        );
    }

    /// Returns the sequence number of the last event.
    pub fn last_seen(&self) -> u64 {
        self.last_seen
    }
}
