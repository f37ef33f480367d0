//! Mappings.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use brine_value::{Map, python};
use indexmap::IndexMap;
use minijinja::value::{Enumerator, Object, Rest, Tuple, Value as JinjaValue, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State};
use parking_lot::RwLock;

use super::convert::{from_jinja, pairs, split_kwargs, to_jinja, to_jinja_of};
use super::print::write;
use super::types::type_name;
use super::{Origin, drop_iteratively, hashable, nothing, raise, refuse_cycle, to_mutable};
use crate::limits;

/// A mapping that the template may change.
pub(crate) struct Dict {
    entries: RwLock<Entries>,
    origin: Origin,
    /// Whether it is Python's `OrderedDict`.
    ordered: bool,
}

enum Entries {
    /// Entries that only this mapping has.
    Own(IndexMap<JinjaValue, JinjaValue>),
    /// Entries of a shared mapping, and by index the containers among them that the template has read and may have
    /// changed.
    Shared { map: Arc<Map>, seen: HashMap<usize, JinjaValue> },
}

impl Entries {
    /// Takes all values, so that they can be dropped one by one.
    fn take(&mut self) -> Vec<JinjaValue> {
        match self {
            Entries::Own(entries) => std::mem::take(entries).into_values().collect(),
            Entries::Shared { seen, .. } => std::mem::take(seen).into_values().collect(),
        }
    }
}

impl Default for Dict {
    fn default() -> Self {
        Dict::new([], false)
    }
}

impl FromIterator<(JinjaValue, JinjaValue)> for Dict {
    fn from_iter<I: IntoIterator<Item = (JinjaValue, JinjaValue)>>(entries: I) -> Self {
        Dict::new(entries, false)
    }
}

impl Drop for Dict {
    fn drop(&mut self) {
        drop_iteratively(self.entries.get_mut().take());
    }
}

impl fmt::Debug for Dict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dict of {}", self.len())
    }
}

impl Dict {
    /// Creates a mapping, Python's `OrderedDict` or `dict`.
    pub(crate) fn new(entries: impl IntoIterator<Item = (JinjaValue, JinjaValue)>, ordered: bool) -> Self {
        let entries = RwLock::new(Entries::Own(entries.into_iter().collect()));
        Dict { entries, origin: Origin::default(), ordered }
    }

    /// Creates a mapping inside of a container of this origin.
    pub(crate) fn of(entries: impl IntoIterator<Item = (JinjaValue, JinjaValue)>, origin: &Origin) -> Self {
        let entries = RwLock::new(Entries::Own(entries.into_iter().collect()));
        Dict { entries, origin: origin.clone(), ordered: origin.ordered }
    }

    /// Creates a `dict` whose entries are converted when they are read.
    pub(super) fn shared(map: Arc<Map>, origin: Origin) -> Self {
        Dict { entries: RwLock::new(Entries::Shared { map, seen: HashMap::new() }), origin, ordered: false }
    }

    /// Whether it is Python's `OrderedDict`.
    pub(crate) fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// Takes all values, so that they can be dropped one by one.
    pub(super) fn take(&self) -> Vec<JinjaValue> {
        self.entries.write().take()
    }

    fn len(&self) -> usize {
        match &*self.entries.read() {
            Entries::Own(entries) => entries.len(),
            Entries::Shared { map, .. } => map.len(),
        }
    }

    /// Returns whether a key exists.
    pub(crate) fn contains(&self, key: &JinjaValue) -> Result<bool, Error> {
        hashable(key)?;
        Ok(match &*self.entries.read() {
            Entries::Own(entries) => entries.contains_key(key),
            Entries::Shared { map, .. } => map.contains_key(&from_jinja(key)),
        })
    }

    pub(super) fn lookup(&self, key: &JinjaValue) -> Option<JinjaValue> {
        let index = match &*self.entries.read() {
            Entries::Own(entries) => return entries.get(key).cloned(),
            Entries::Shared { map, seen } => {
                let index = match key.as_str() {
                    Some(text) => map.get_index_of(text),
                    None => map.get_index_of(&from_jinja(key)),
                }?;
                let (_, value) = map.get_index(index)?;
                if value.as_list().is_none() && value.as_map().is_none() {
                    return Some(to_jinja(value));
                }
                if let Some(value) = seen.get(&index) {
                    return Some(value.clone());
                }
                index
            }
        };
        match &mut *self.entries.write() {
            Entries::Own(entries) => entries.get(key).cloned(),
            Entries::Shared { map, seen } => {
                let (_, value) = map.get_index(index)?;
                Some(seen.entry(index).or_insert_with(|| to_jinja_of(value, &self.origin)).clone())
            }
        }
    }

    /// Returns the values through which a template could reach this mapping again.
    pub(super) fn changeable(&self) -> Vec<JinjaValue> {
        match &*self.entries.read() {
            Entries::Own(entries) => entries.values().cloned().collect(),
            Entries::Shared { seen, .. } => seen.values().cloned().collect(),
        }
    }

    fn keys(&self) -> Vec<JinjaValue> {
        match &*self.entries.read() {
            Entries::Own(entries) => entries.keys().cloned().collect(),
            Entries::Shared { map, .. } => map.keys().map(to_jinja).collect(),
        }
    }

    /// Changes the entries; shared ones are copied first.
    fn change<T>(&self, change: impl FnOnce(&mut IndexMap<JinjaValue, JinjaValue>) -> T) -> T {
        self.origin.note_change();
        let mut entries = self.entries.write();
        if let Entries::Shared { map, seen } = &mut *entries {
            let own = map.iter().enumerate().map(|(index, (key, value))| {
                let value = seen.remove(&index).unwrap_or_else(|| to_jinja_of(value, &self.origin));
                (to_jinja(key), value)
            });
            *entries = Entries::Own(own.collect());
        }
        match &mut *entries {
            Entries::Own(own) => change(own),
            // The entries are owned since the match above.
            Entries::Shared { .. } => change(&mut IndexMap::new()),
        }
    }

    /// Returns the entries in the arguments of `update` or `dict`.
    fn arguments(args: &[JinjaValue]) -> Result<Vec<(JinjaValue, JinjaValue)>, Error> {
        let (positional, keyword) = split_kwargs(args)?;
        let mut entries = Vec::new();
        for other in &positional {
            if other.kind() == ValueKind::Map {
                entries.extend(pairs(other));
                continue;
            }
            if matches!(other.kind(), ValueKind::None | ValueKind::Bool | ValueKind::Number) {
                return Err(raise(format_args!("'{}' object is not iterable", type_name(other))));
            }
            for (index, pair) in items(other)?.into_iter().enumerate() {
                if !matches!(pair.kind(), ValueKind::Seq | ValueKind::Iterable | ValueKind::String) {
                    let message = "cannot convert dictionary update sequence element";
                    return Err(raise(format_args!("{message} #{index} to a sequence")));
                }
                let Ok([key, value]) = <[JinjaValue; 2]>::try_from(items(&pair)?) else {
                    let length = items(&pair)?.len();
                    let message = format!("dictionary update sequence element #{index} has length {length}");
                    return Err(raise(format_args!("{message}; 2 is required")));
                };
                entries.push((key, value));
            }
        }
        entries.extend(keyword.into_iter().map(|(name, value)| (JinjaValue::from(name), value)));
        for (key, value) in &mut entries {
            hashable(key)?;
            *value = to_mutable(value);
        }
        Ok(entries)
    }

    /// Takes over the entries of another mapping. Inner mappings keep their identity, unless they lost an entry: then
    /// they were not merged but replaced.
    pub(crate) fn overlay(&self, other: &JinjaValue) {
        for (key, value) in pairs(other) {
            let inner = self.lookup(&key).and_then(|inner| inner.downcast_object::<Dict>());
            match inner {
                Some(inner)
                    if value.kind() == ValueKind::Map
                        && inner
                            .keys()
                            .iter()
                            .all(|key| value.get_item(key).is_ok_and(|item| !item.is_undefined())) =>
                {
                    inner.overlay(&value);
                }
                _ => _ = self.change(|entries| entries.insert(key, value)),
            }
        }
    }

    pub(super) fn update(&self, args: &[JinjaValue]) -> Result<(), Error> {
        let new_entries = Self::arguments(args)?;
        self.change(|entries| entries.extend(new_entries));
        Ok(())
    }
}

/// Returns the items of a sequence, or the characters of a string.
fn items(value: &JinjaValue) -> Result<Vec<JinjaValue>, Error> {
    match value.as_str() {
        Some(text) => Ok(text.chars().map(|c| JinjaValue::from(c.to_string())).collect()),
        None => Ok(value.try_iter()?.collect()),
    }
}

impl Object for Dict {
    fn get_value(self: &Arc<Self>, key: &JinjaValue) -> Option<JinjaValue> {
        hashable(key).ok()?;
        self.lookup(key)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(limits::walk_items(self.keys()))
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.len())
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(&JinjaValue::from_dyn_object(Arc::clone(self)), f)
    }

    fn call_method(
        self: &Arc<Self>,
        _: &mut State<'_, '_>,
        method: &str,
        args: &[JinjaValue],
    ) -> Result<JinjaValue, Error> {
        limits::check()?;
        match method {
            "update" => {
                let new_entries = Self::arguments(args)?;
                new_entries.iter().try_for_each(|(_, value)| refuse_cycle(self, value))?;
                limits::check()?;
                self.change(|entries| entries.extend(new_entries));
                nothing()
            }
            "setdefault" => {
                let (key, default): (JinjaValue, Option<JinjaValue>) = from_args(args)?;
                hashable(&key)?;
                let default = to_mutable(&default.unwrap_or_else(|| JinjaValue::from(())));
                refuse_cycle(self, &default)?;
                Ok(self.change(|entries| entries.entry(key).or_insert(default).clone()))
            }
            "pop" => {
                // A default of None is a default, too.
                let (key, default): (JinjaValue, Rest<JinjaValue>) = from_args(args)?;
                hashable(&key)?;
                let missing = || raise(python::repr(&from_jinja(&key)));
                let default = || default.first().cloned();
                self.change(|entries| entries.shift_remove(&key)).or_else(default).ok_or_else(missing)
            }
            "popitem" => {
                let empty = || raise("'popitem(): dictionary is empty'");
                let (key, value) = self.change(IndexMap::pop).ok_or_else(empty)?;
                Ok(JinjaValue::from(Tuple::from([key, value])))
            }
            "clear" => {
                self.change(IndexMap::clear);
                nothing()
            }
            // `get`, `items`, `keys`, `values`, `copy`: the same for all mappings.
            _ => Err(Error::from(ErrorKind::UnknownMethod)),
        }
    }
}
