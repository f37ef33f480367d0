//! Events in, firings out.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use brine_value::{FromValue, Map, Value, map, msgpack};
use indexmap::IndexMap;

use super::cell::{Cell, reading, small};
use super::condition::Seen;
use super::{Kind, Rule, Rules, Whole};
use crate::clock::micros;
use crate::metrics;

/// How many keys of a rule are remembered: beyond them those untouched for longest leave.
const KEYS: usize = 100_000;
/// How many events a firing tells at most.
const TOLD: usize = 100;
/// The store's key of the last event that was seen.
const LAST_SEEN: &[u8] = b"\0seq";
/// The store's key of how far the wall clock is ahead of bus time, in microseconds: times are stored in bus time.
const AHEAD: &[u8] = b"\0ahead";
/// By how many microseconds the clocks may differ before stored times are moved.
const CLOSE: u64 = 1_000_000;

/// An event, as the engine is told of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment<'a> {
    pub seq: u64,
    pub tag: &'a str,
    pub data: &'a Map,
    /// When it happened, in bus time.
    pub time: u64,
}

/// A rule that has come true.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Firing {
    pub rule: String,
    pub react: Vec<String>,
    /// The event that made it true; a tag of its own if it was time that did.
    pub tag: String,
    pub data: Map,
    /// The number of the event behind it, 0 if there is none.
    pub seq: u64,
    /// What templates see beside `tag` and `data`.
    pub context: Map,
}

/// How large the node group of a name is.
pub(crate) type GroupSize<'a> = &'a dyn Fn(&str) -> Option<usize>;

struct Slot {
    cell: Cell,
    touched: u64,
}

/// The rules with what they remember.
pub(crate) struct Engine {
    rules: Rules,
    slots: Vec<HashMap<String, Slot>>,
    due: BTreeSet<(u64, usize, String)>,
    last_seen: u64,
    /// How far the wall clock is ahead of bus time, in microseconds.
    ahead: i64,
    written_ahead: i64,
    changed: HashSet<(usize, String)>,
    gone: Vec<Vec<u8>>,
}

/// The store's key of what is remembered for one key of a rule.
fn store_key(rule: &str, key: &str) -> Vec<u8> {
    format!("{rule}\0{key}").into_bytes()
}

impl Engine {
    /// Creates an engine with what was kept by an earlier one. What belongs to rules that are no more, or have changed,
    /// is dropped.
    ///
    /// `now` is the bus time, and `ahead` how far the wall clock is ahead of it, in microseconds. Kept times are moved
    /// from the bus time of the earlier process to this one's. No event is then later than now, and no timer has more
    /// time left than its whole period.
    pub fn new(rules: Rules, kept: &[(Vec<u8>, Vec<u8>)], now: u64, ahead: i64) -> Self {
        let slots = rules.all().iter().map(|_| HashMap::new()).collect();
        let (due, changed, gone) = (BTreeSet::new(), HashSet::new(), Vec::new());
        let mut engine = Engine { rules, slots, due, last_seen: 0, ahead, written_ahead: ahead, changed, gone };
        // Without it the earlier engine was of this process.
        let before = kept.iter().find(|(key, _)| key == AHEAD);
        let before = before.and_then(|(_, packed)| packed.as_slice().try_into().ok()).map_or(ahead, i64::from_be_bytes);
        let shift = if before.abs_diff(ahead) < CLOSE { 0 } else { before.saturating_sub(ahead) };
        for (key, packed) in kept {
            if key == LAST_SEEN {
                engine.last_seen = packed.as_slice().try_into().map_or(0, u64::from_be_bytes);
            } else if key != AHEAD && engine.restore(key, packed, shift, now).is_none() {
                engine.gone.push(key.clone());
            }
        }
        for place in 0..engine.rules.all().len() {
            if let Kind::Every { pause } = engine.rules.all()[place].kind
                && engine.slots[place].is_empty()
            {
                engine.put(place, "", Cell::Due(now + micros(pause)), now);
            }
        }
        engine
    }

    /// Sets how far the wall clock is ahead of bus time, in microseconds.
    pub fn set_ahead(&mut self, ahead: i64) {
        self.ahead = ahead;
    }

    fn restore(&mut self, key: &[u8], packed: &[u8], shift: i64, now: u64) -> Option<()> {
        let (id, key) = std::str::from_utf8(key).ok()?.split_once('\0')?;
        let value = msgpack::unpack(packed).ok()?;
        let place = self.rules.all().iter().position(|rule| rule.id == id)?;
        if value.get("rule")?.as_str()? != self.rules.all()[place].fingerprint {
            return None;
        }
        let mut cell = Cell::from_value(value.get("cell")?)?;
        let period = match &self.rules.all()[place].kind {
            Kind::Absent { within: period, .. } | Kind::Every { pause: period } => micros(*period),
            _ => 0,
        };
        cell.move_times(
            |time| time.saturating_add_signed(shift).min(now),
            |due| due.saturating_add_signed(shift).min(now + period),
        );
        if shift != 0 {
            self.changed.insert((place, key.to_owned()));
        }
        if let Cell::Timer { due, .. } | Cell::Due(due) = cell {
            self.due.insert((due, place, key.to_owned()));
        }
        self.slots[place].insert(key.to_owned(), Slot { cell, touched: 0 });
        Some(())
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Whether a rule looks at events of this tag.
    pub fn wants(&self, tag: &str) -> bool {
        !self.rules.is_empty() && self.rules.set.is_match(tag)
    }

    /// Returns the bus time at which the next timer is due.
    pub fn next_due(&self) -> Option<u64> {
        self.due.first().map(|(due, ..)| *due)
    }

    /// Returns the node groups whose sizes rules ask for.
    pub fn groups(&self) -> Vec<String> {
        let group = |rule: &Rule| match &rule.kind {
            Kind::Share { whole: Whole::Nodegroup(name), .. } => Some(name.clone()),
            _ => None,
        };
        self.rules.all().iter().filter_map(group).collect()
    }

    /// Looks at an event. One that was seen before a restart is passed over.
    pub fn event(&mut self, moment: Moment<'_>, group_size: GroupSize<'_>) -> Vec<Firing> {
        if moment.seq <= self.last_seen {
            return Vec::new();
        }
        self.last_seen = moment.seq;
        // What became due before the event happened comes before it.
        let mut firings = self.tick(moment.time);
        for (place, trigger) in self.rules.matching(moment.tag) {
            let seen = Seen { tag: moment.tag, data: moment.data };
            if self.rules.all()[place].triggers[trigger].conditions.hold(seen) {
                firings.extend(self.look(place, trigger, moment, group_size));
            }
        }
        firings
    }

    fn look(&mut self, place: usize, trigger: usize, moment: Moment<'_>, group_size: GroupSize<'_>) -> Vec<Firing> {
        let seen = Seen { tag: moment.tag, data: moment.data };
        let (time, rule) = (moment.time, &self.rules.all()[place]);
        match &rule.kind {
            Kind::Count { by, count, within } => {
                let (Some(key), count, oldest) = (by.key(seen), *count, time.saturating_sub(micros(*within))) else {
                    return Vec::new();
                };
                let mut window = match self.take(place, &key) {
                    Some(Cell::Window(window)) => window,
                    _ => VecDeque::new(),
                };
                window.push_back((time, small(moment.data)));
                // An event exactly so long ago is outside.
                window.retain(|(time, _)| *time > oldest);
                if window.len() < count {
                    self.put(place, &key, Cell::Window(window), time);
                    return Vec::new();
                }
                let events: Vec<Map> = window.into_iter().map(|(_, data)| data).collect();
                vec![self.firing(place, &key, moment, events)]
            }
            Kind::Absent { each, by, within } => {
                if trigger == 1 {
                    if let Some(key) = by.key(seen) {
                        self.take(place, &key);
                    }
                    return Vec::new();
                }
                let due = time + micros(*within);
                let keys: Vec<String> = match each {
                    Some(path) => match path.find(seen) {
                        Some(Value::List(all)) => all.iter().map(ToString::to_string).collect(),
                        Some(one) => vec![one.to_string()],
                        None => Vec::new(),
                    },
                    None => by.key(seen).into_iter().collect(),
                };
                for key in keys {
                    self.take(place, &key);
                    let data = small(moment.data);
                    self.put(place, &key, Cell::Timer { due, seq: moment.seq, data }, time);
                }
                Vec::new()
            }
            Kind::Sequence { by, within } => {
                let (Some(key), within, steps) = (by.key(seen), micros(*within), rule.triggers.len()) else {
                    return Vec::new();
                };
                let (next, began, mut events) = match self.slot(place, &key) {
                    Some(Cell::Steps { next, began, events }) if time < began + within => {
                        (*next, *began, events.clone())
                    }
                    _ => (0, time, Vec::new()),
                };
                if trigger == next {
                    events.push(small(moment.data));
                    if next + 1 == steps {
                        self.take(place, &key);
                        return vec![self.firing(place, &key, moment, events)];
                    }
                    let began = if next == 0 { time } else { began };
                    self.put(place, &key, Cell::Steps { next: next + 1, began, events }, time);
                } else if trigger == 0 {
                    // The first one again: it starts anew.
                    let events = vec![small(moment.data)];
                    self.put(place, &key, Cell::Steps { next: 1, began: time, events }, time);
                }
                Vec::new()
            }
            Kind::Share { by, whole, above, within } => {
                let Some(member) = by.key(seen) else { return Vec::new() };
                let whole = match whole {
                    Whole::Count(count) => Some(*count),
                    Whole::Nodegroup(name) => group_size(name),
                };
                let (above, oldest) = (*above, time.saturating_sub(micros(*within)));
                let mut members = match self.take(place, "") {
                    Some(Cell::Members(members)) => members,
                    _ => IndexMap::new(),
                };
                members.insert(member, time);
                members.retain(|_, time| *time > oldest);
                let share = whole.filter(|whole| *whole > 0).map(|whole| members.len() as f64 / whole as f64);
                if share.is_some_and(|share| share > above) {
                    let ids: Vec<String> = members.into_keys().collect();
                    let mut firing = self.firing(place, "", moment, Vec::new());
                    firing.context.insert("count".into(), ids.len().into());
                    firing.context.insert("members".into(), ids.into());
                    firing.context.insert("share".into(), share.into());
                    return vec![firing];
                }
                self.put(place, "", Cell::Members(members), time);
                Vec::new()
            }
            Kind::Register { by, register } => {
                let Some(key) = by.key(seen) else { return Vec::new() };
                let Some(value) = register.value.find(seen) else { return Vec::new() };
                let (window, last) = (register.window.map(micros), register.last);
                let mut values = match self.take(place, &key) {
                    Some(Cell::Values(values)) => values,
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
                self.put(place, &key, Cell::Values(values), time);
                self.test(place, &key, moment)
            }
            Kind::When { .. } | Kind::Every { .. } => Vec::new(),
        }
    }

    /// The rules about a register that has changed.
    fn test(&mut self, register: usize, key: &str, moment: Moment<'_>) -> Vec<Firing> {
        let Some(value) = self.value(register, key).as_ref().and_then(f64::from_value) else { return Vec::new() };
        let name = &self.rules.all()[register].id;
        let about: Vec<(usize, bool)> = self
            .rules
            .all()
            .iter()
            .enumerate()
            .filter_map(|(place, rule)| match &rule.kind {
                Kind::When { register, test } if register == name => Some((place, test.holds(value))),
                _ => None,
            })
            .collect();
        let mut firings = Vec::new();
        for (place, holds) in about {
            let held = matches!(self.slot(place, key), Some(Cell::Holds(true)));
            if holds != held {
                self.put(place, key, Cell::Holds(holds), moment.time);
                if holds {
                    let mut firing = self.firing(place, key, moment, Vec::new());
                    firing.context.insert("value".into(), value.into());
                    firings.push(firing);
                }
            }
        }
        firings
    }

    /// What is due at this time.
    pub fn tick(&mut self, now: u64) -> Vec<Firing> {
        let mut firings = Vec::new();
        while let Some((due, place, key)) = self.due.first().filter(|(due, ..)| *due <= now).cloned() {
            let rule = &self.rules.all()[place];
            let (id, tag) = (rule.id.clone(), format!("salt/reactor/rule/{}", rule.id));
            let pause = match rule.kind {
                Kind::Every { pause } => Some(micros(pause)),
                _ => None,
            };
            let (seq, mut data) = match self.take(place, &key) {
                Some(Cell::Timer { seq, data, .. }) => (seq, data),
                _ => (0, Map::new()),
            };
            if let Some(pause) = pause {
                // Turns that were missed are not made up for.
                let missed = now.saturating_sub(due) / pause;
                self.put(place, "", Cell::Due(due + pause * (missed + 1)), now);
            }
            data.insert("rule".into(), id.into());
            data.insert("key".into(), key.as_str().into());
            let moment = Moment { seq, tag: &tag, data: &data, time: due };
            firings.push(self.firing(place, &key, moment, Vec::new()));
        }
        firings
    }

    fn firing(&self, place: usize, key: &str, moment: Moment<'_>, mut events: Vec<Map>) -> Firing {
        let rule = &self.rules.all()[place];
        let count = events.len();
        if events.len() > TOLD {
            events.drain(..events.len() - TOLD);
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
            tag: moment.tag.to_owned(),
            data: moment.data.clone(),
            seq: moment.seq,
            context,
        }
    }

    fn value(&self, place: usize, key: &str) -> Option<Value> {
        match (&self.rules.all()[place].kind, self.slot(place, key)) {
            (Kind::Register { register, .. }, Some(Cell::Values(values))) => Some(reading(register, values)),
            _ => None,
        }
    }

    /// The readings of all registers: of one key (and of those without keys), or of all keys.
    pub fn registers(&self, of_key: Option<&str>) -> Map {
        let mut told = Map::new();
        for (place, rule) in self.rules.all().iter().enumerate() {
            let Kind::Register { by, .. } = &rule.kind else { continue };
            let plain = by.0.is_empty();
            let reading = match of_key {
                _ if plain => self.value(place, "").unwrap_or_default(),
                Some(key) => self.value(place, key).unwrap_or_default(),
                None => {
                    let keys = self.slots[place].keys();
                    Value::Map(keys.map(|key| (key.into(), self.value(place, key).unwrap_or_default())).collect())
                }
            };
            told.insert(rule.id.as_str().into(), reading);
        }
        told
    }

    /// The timers that run: the rule, its key, and when they are due.
    pub fn timers(&self) -> Vec<(String, String, u64)> {
        self.due.iter().map(|(due, place, key)| (self.rules.all()[*place].id.clone(), key.clone(), *due)).collect()
    }

    pub(super) fn slot(&self, place: usize, key: &str) -> Option<&Cell> {
        self.slots[place].get(key).map(|slot| &slot.cell)
    }

    fn take(&mut self, place: usize, key: &str) -> Option<Cell> {
        let slot = self.slots[place].remove(key)?;
        if let Cell::Timer { due, .. } | Cell::Due(due) = slot.cell {
            self.due.remove(&(due, place, key.to_owned()));
        }
        self.changed.insert((place, key.to_owned()));
        Some(slot.cell)
    }

    fn put(&mut self, place: usize, key: &str, cell: Cell, now: u64) {
        if self.slots[place].len() >= KEYS && !self.slots[place].contains_key(key) {
            self.make_room(place);
        }
        if let Cell::Timer { due, .. } | Cell::Due(due) = cell {
            self.due.insert((due, place, key.to_owned()));
        }
        self.slots[place].insert(key.to_owned(), Slot { cell, touched: now });
        self.changed.insert((place, key.to_owned()));
    }

    /// A tenth of the keys leaves at once, those untouched for longest: one by one would look at all each time.
    fn make_room(&mut self, place: usize) {
        let mut touched: Vec<(u64, String)> =
            self.slots[place].iter().map(|(key, slot)| (slot.touched, key.clone())).collect();
        touched.sort_unstable();
        let leaving = touched.len() / 10 + 1;
        for (_, key) in touched.into_iter().take(leaving) {
            self.take(place, &key);
        }
        metrics::RULE_KEYS_FORGOTTEN.add(leaving as u64);
        tracing::warn!(
            rule = self.rules.all()[place].id,
            leaving,
            "a rule has too many keys: the oldest are forgotten"
        );
    }

    /// All that is remembered, as pairs for the store.
    pub fn kept(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        // For an engine of the same process: its bus time is the same.
        let mut pairs = vec![(LAST_SEEN.to_vec(), self.last_seen.to_be_bytes().to_vec())];
        for (place, keys) in self.slots.iter().enumerate() {
            pairs.extend(keys.iter().map(|(key, slot)| self.pair(place, key, slot)));
        }
        pairs
    }

    fn pair(&self, place: usize, key: &str, slot: &Slot) -> (Vec<u8>, Vec<u8>) {
        let rule = &self.rules.all()[place];
        let value = map! {"rule" => rule.fingerprint.as_str(), "cell" => slot.cell.to_value()};
        (store_key(&rule.id, key), msgpack::pack_map(&value))
    }

    /// What has changed since this was last asked, as pairs for the store: no value means it is gone.
    pub fn changes(&mut self) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let has_jumped = !self.rules.is_empty() && self.ahead.abs_diff(self.written_ahead) >= CLOSE;
        if self.changed.is_empty() && self.gone.is_empty() && !has_jumped {
            return Vec::new();
        }
        self.written_ahead = self.ahead;
        let mut pairs: Vec<_> = std::mem::take(&mut self.gone).into_iter().map(|key| (key, None)).collect();
        for (place, key) in std::mem::take(&mut self.changed) {
            pairs.push(match self.slots[place].get(&key) {
                Some(slot) => {
                    let (key, packed) = self.pair(place, &key, slot);
                    (key, Some(packed))
                }
                None => (store_key(&self.rules.all()[place].id, &key), None),
            });
        }
        pairs.push((LAST_SEEN.to_vec(), Some(self.last_seen.to_be_bytes().to_vec())));
        pairs.push((AHEAD.to_vec(), Some(self.ahead.to_be_bytes().to_vec())));
        pairs
    }
}
