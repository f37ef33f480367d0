//! The state of an engine in the store: pairs of a rule and one of its keys, the last event, and the wall offset.

use std::collections::{BTreeSet, HashMap, HashSet};

use brine_value::{map, msgpack};

use super::{Engine, Slot};
use crate::duration::micros;
use crate::key_state::KeyState;
use crate::{Kind, Rules};

/// The store's key of the sequence number of the last event.
const LAST_SEEN: &[u8] = b"\0seq";
/// The store's key of the wall offset: stored times are bus time.
const WALL_OFFSET: &[u8] = b"\0ahead";
/// The change of the wall offset, in microseconds, from which stored times are moved.
const JUMP: u64 = 1_000_000;

/// Returns the store's key of one key of a rule.
fn store_key(rule: &str, key: &str) -> Vec<u8> {
    format!("{rule}\0{key}").into_bytes()
}

impl Engine {
    /// Creates an engine from the stored state of an earlier one. The state of removed and changed rules is dropped.
    ///
    /// `now` is the bus time, and `wall_offset` the difference of the wall clock to it, in microseconds. Stored times
    /// are converted from the bus time of the earlier process to that of this one. Events are then at `now` or earlier,
    /// and timers are due within their period.
    pub fn new(rules: Rules, rows: &[(Vec<u8>, Vec<u8>)], now: u64, wall_offset: i64) -> Self {
        let slots = rules.all().iter().map(|_| HashMap::new()).collect();
        let (due, changed, removed) = (BTreeSet::new(), HashSet::new(), Vec::new());
        let mut engine =
            Engine { rules, slots, due, last_seen: 0, wall_offset, written_offset: wall_offset, changed, removed };
        // Missing if the earlier engine belonged to the same process.
        let before = rows.iter().find(|(key, _)| key == WALL_OFFSET);
        let before =
            before.and_then(|(_, packed)| packed.as_slice().try_into().ok()).map_or(wall_offset, i64::from_be_bytes);
        let shift = if before.abs_diff(wall_offset) < JUMP { 0 } else { before.saturating_sub(wall_offset) };
        for (key, packed) in rows {
            if key == LAST_SEEN {
                engine.last_seen = packed.as_slice().try_into().map_or(0, u64::from_be_bytes);
            } else if key != WALL_OFFSET && engine.restore(key, packed, shift, now).is_none() {
                engine.removed.push(key.clone());
            }
        }
        for index in 0..engine.rules.all().len() {
            if let Kind::Every { pause } = engine.rules.all()[index].kind
                && engine.slots[index].is_empty()
            {
                engine.insert(index, "", KeyState::Due(now + micros(pause)), now);
            }
        }
        engine
    }

    fn restore(&mut self, key: &[u8], packed: &[u8], shift: i64, now: u64) -> Option<()> {
        let (id, key) = std::str::from_utf8(key).ok()?.split_once('\0')?;
        let value = msgpack::unpack(packed).ok()?;
        let index = self.rules.all().iter().position(|rule| rule.id == id)?;
        if value.get("rule")?.as_str()? != self.rules.all()[index].fingerprint {
            return None;
        }
        let mut state = KeyState::from_value(value.get("cell")?)?;
        let period = match &self.rules.all()[index].kind {
            Kind::Absent { within: period, .. } | Kind::Every { pause: period } => micros(*period),
            _ => 0,
        };
        state.move_times(
            |time| time.saturating_add_signed(shift).min(now),
            |due| due.saturating_add_signed(shift).min(now + period),
        );
        if shift != 0 {
            self.changed.insert((index, key.to_owned()));
        }
        if let KeyState::Timer { due, .. } | KeyState::Due(due) = state {
            self.due.insert((due, index, key.to_owned()));
        }
        self.slots[index].insert(key.to_owned(), Slot { state, touched: 0 });
        Some(())
    }

    /// Returns the whole state, with the wall offset, for an engine of another process.
    pub fn snapshot(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut pairs = self.state();
        pairs.push((WALL_OFFSET.to_vec(), self.wall_offset.to_be_bytes().to_vec()));
        pairs
    }

    /// Replaces the state by the [snapshot](Self::snapshot) of an engine on another bus, whose sequence numbers differ.
    pub fn adopt(&mut self, snapshot: &[(Vec<u8>, Vec<u8>)], now: u64) {
        let before: Vec<Vec<u8>> =
            self.state().into_iter().map(|(key, _)| key).filter(|key| key != LAST_SEEN).collect();
        let rules = std::mem::replace(&mut self.rules, Rules::parse(&[]).0);
        let mut engine = Engine::new(rules, snapshot, now, self.wall_offset);
        engine.last_seen = self.last_seen;
        for (index, keys) in engine.slots.iter().enumerate() {
            engine.changed.extend(keys.keys().map(|key| (index, key.clone())));
        }
        let keys: HashSet<Vec<u8>> = engine.state().into_iter().map(|(key, _)| key).collect();
        // Only the previous keys are removed: rejected keys of the snapshot were never in the store of this engine.
        engine.removed = before.into_iter().filter(|key| !keys.contains(key)).collect();
        engine.removed.append(&mut self.removed);
        *self = engine;
    }

    /// Returns the whole state, as pairs for [`Engine::new`].
    pub fn state(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        // Without the wall offset: the next engine belongs to the same process.
        let mut pairs = vec![(LAST_SEEN.to_vec(), self.last_seen.to_be_bytes().to_vec())];
        for (index, keys) in self.slots.iter().enumerate() {
            pairs.extend(keys.iter().map(|(key, slot)| self.pair(index, key, slot)));
        }
        pairs
    }

    fn pair(&self, index: usize, key: &str, slot: &Slot) -> (Vec<u8>, Vec<u8>) {
        let rule = &self.rules.all()[index];
        let value = map! {"rule" => rule.fingerprint.as_str(), "cell" => slot.state.to_value()};
        (store_key(&rule.id, key), msgpack::pack_map(&value))
    }

    /// Returns the changes since the last call, as pairs for the store; a key without a value is removed.
    pub fn changes(&mut self) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let has_jumped = !self.rules.is_empty() && self.wall_offset.abs_diff(self.written_offset) >= JUMP;
        if self.changed.is_empty() && self.removed.is_empty() && !has_jumped {
            return Vec::new();
        }
        self.written_offset = self.wall_offset;
        let mut pairs: Vec<_> = std::mem::take(&mut self.removed).into_iter().map(|key| (key, None)).collect();
        for (index, key) in std::mem::take(&mut self.changed) {
            pairs.push(match self.slots[index].get(&key) {
                Some(slot) => {
                    let (key, packed) = self.pair(index, &key, slot);
                    (key, Some(packed))
                }
                None => (store_key(&self.rules.all()[index].id, &key), None),
            });
        }
        pairs.push((LAST_SEEN.to_vec(), Some(self.last_seen.to_be_bytes().to_vec())));
        pairs.push((WALL_OFFSET.to_vec(), Some(self.wall_offset.to_be_bytes().to_vec())));
        pairs
    }
}
