//! Mappings.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use minijinja::value::{Enumerator, Object, Rest, Tuple, Value as JinjaValue, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State};
use parking_lot::RwLock;

use super::super::operators::type_name;
use super::super::value::{from_jinja, pairs, split_kwargs, to_jinja, to_marked, write};
use super::{Mark, hashable, nothing, own, raise, refuse_cycle, take_apart};
use crate::value::{Map, python};

/// A mapping that the template may change.
pub(in super::super) struct Dict(RwLock<Entries>, Mark);

enum Entries {
    /// Its own.
    Own(IndexMap<JinjaValue, JinjaValue>),
    /// Those of a mapping that others hold too, and by place the containers among them that the
    /// template has looked at, and may have changed.
    Shared { map: Arc<Map>, seen: HashMap<usize, JinjaValue> },
}

impl Entries {
    /// Takes out all values that it holds itself.
    fn take(&mut self) -> Vec<JinjaValue> {
        match self {
            Entries::Own(entries) => std::mem::take(entries).into_values().collect(),
            Entries::Shared { seen, .. } => std::mem::take(seen).into_values().collect(),
        }
    }
}

impl Default for Dict {
    fn default() -> Self {
        Dict(RwLock::new(Entries::Own(IndexMap::new())), Mark::default())
    }
}

impl FromIterator<(JinjaValue, JinjaValue)> for Dict {
    fn from_iter<I: IntoIterator<Item = (JinjaValue, JinjaValue)>>(entries: I) -> Self {
        Dict::marked(entries, &Mark::default())
    }
}

impl Drop for Dict {
    fn drop(&mut self) {
        take_apart(self.0.get_mut().take());
    }
}

impl fmt::Debug for Dict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dict of {}", self.len())
    }
}

impl Dict {
    /// A mapping whose entries are converted when they are looked at.
    pub(super) fn shared(map: Arc<Map>, mark: Mark) -> Self {
        Dict(RwLock::new(Entries::Shared { map, seen: HashMap::new() }), mark)
    }

    /// A mapping of these entries, with a mark that is set when it is changed.
    pub(in super::super) fn marked(entries: impl IntoIterator<Item = (JinjaValue, JinjaValue)>, mark: &Mark) -> Self {
        Dict(RwLock::new(Entries::Own(entries.into_iter().collect())), mark.clone())
    }

    /// Takes out all values that it holds itself.
    pub(super) fn take(&self) -> Vec<JinjaValue> {
        self.0.write().take()
    }

    fn len(&self) -> usize {
        match &*self.0.read() {
            Entries::Own(entries) => entries.len(),
            Entries::Shared { map, .. } => map.len(),
        }
    }

    /// Whether there is such a key.
    pub(in super::super) fn contains(&self, key: &JinjaValue) -> Result<bool, Error> {
        hashable(key)?;
        Ok(match &*self.0.read() {
            Entries::Own(entries) => entries.contains_key(key),
            Entries::Shared { map, .. } => map.contains_key(&from_jinja(key)),
        })
    }

    pub(super) fn lookup(&self, key: &JinjaValue) -> Option<JinjaValue> {
        let index = match &*self.0.read() {
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
        match &mut *self.0.write() {
            Entries::Own(entries) => entries.get(key).cloned(),
            Entries::Shared { map, seen } => {
                let (_, value) = map.get_index(index)?;
                Some(seen.entry(index).or_insert_with(|| to_marked(value, &self.1)).clone())
            }
        }
    }

    /// The values through which a template could reach back to this mapping.
    pub(super) fn changeable(&self) -> Vec<JinjaValue> {
        match &*self.0.read() {
            Entries::Own(entries) => entries.values().cloned().collect(),
            Entries::Shared { seen, .. } => seen.values().cloned().collect(),
        }
    }

    fn keys(&self) -> Vec<JinjaValue> {
        match &*self.0.read() {
            Entries::Own(entries) => entries.keys().cloned().collect(),
            Entries::Shared { map, .. } => map.keys().map(to_jinja).collect(),
        }
    }

    /// Changes the entries: what was shared becomes its own first.
    fn change<T>(&self, change: impl FnOnce(&mut IndexMap<JinjaValue, JinjaValue>) -> T) -> T {
        self.1.set();
        let mut entries = self.0.write();
        if let Entries::Shared { map, seen } = &mut *entries {
            let own = map.iter().enumerate().map(|(index, (key, value))| {
                let value = seen.remove(&index).unwrap_or_else(|| to_marked(value, &self.1));
                (to_jinja(key), value)
            });
            *entries = Entries::Own(own.collect());
        }
        match &mut *entries {
            Entries::Own(own) => change(own),
            // It was made its own just now.
            Entries::Shared { .. } => change(&mut IndexMap::new()),
        }
    }

    /// The new entries that the arguments of `update` or `dict` give.
    fn given(args: &[JinjaValue]) -> Result<Vec<(JinjaValue, JinjaValue)>, Error> {
        let (positional, keyword) = split_kwargs(args)?;
        let mut given = Vec::new();
        for other in &positional {
            if other.kind() == ValueKind::Map {
                given.extend(pairs(other));
                continue;
            }
            if matches!(other.kind(), ValueKind::None | ValueKind::Bool | ValueKind::Number) {
                return Err(raise(format_args!("'{}' object is not iterable", type_name(other))));
            }
            for (place, pair) in items(other)?.into_iter().enumerate() {
                if !matches!(pair.kind(), ValueKind::Seq | ValueKind::Iterable | ValueKind::String) {
                    let message = "cannot convert dictionary update sequence element";
                    return Err(raise(format_args!("{message} #{place} to a sequence")));
                }
                let Ok([key, value]) = <[JinjaValue; 2]>::try_from(items(&pair)?) else {
                    let length = items(&pair)?.len();
                    let message = format!("dictionary update sequence element #{place} has length {length}");
                    return Err(raise(format_args!("{message}; 2 is required")));
                };
                given.push((key, value));
            }
        }
        given.extend(keyword.into_iter().map(|(name, value)| (JinjaValue::from(name), value)));
        for (key, value) in &mut given {
            hashable(key)?;
            *value = own(value);
        }
        Ok(given)
    }

    /// Takes over the entries of a mapping. Mappings inside stay the ones they are, for who holds them.
    pub(in super::super) fn overlay(&self, map: &Map) {
        for (key, value) in map {
            let key = to_jinja(key);
            let inner = self.lookup(&key).and_then(|inner| inner.downcast_object::<Dict>());
            match (inner, value.as_map()) {
                (Some(inner), Some(map)) => inner.overlay(map),
                _ => _ = self.change(|entries| entries.insert(key, to_jinja(value))),
            }
        }
    }

    pub(super) fn update(&self, args: &[JinjaValue]) -> Result<(), Error> {
        let given = Self::given(args)?;
        self.change(|entries| entries.extend(given));
        Ok(())
    }
}

/// The items of a sequence, or the letters of a text.
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
        Enumerator::Values(self.keys())
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.len())
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(&JinjaValue::from_dyn_object(Arc::clone(self)), f, 0)
    }

    fn call_method(
        self: &Arc<Self>,
        _: &mut State<'_, '_>,
        method: &str,
        args: &[JinjaValue],
    ) -> Result<JinjaValue, Error> {
        match method {
            "update" => {
                let given = Self::given(args)?;
                given.iter().try_for_each(|(_, value)| refuse_cycle(self, value))?;
                self.change(|entries| entries.extend(given));
                nothing()
            }
            "setdefault" => {
                let (key, default): (JinjaValue, Option<JinjaValue>) = from_args(args)?;
                hashable(&key)?;
                let default = own(&default.unwrap_or_else(|| JinjaValue::from(())));
                refuse_cycle(self, &default)?;
                Ok(self.change(|entries| entries.entry(key).or_insert(default).clone()))
            }
            "pop" => {
                // A default of None is one, too.
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
