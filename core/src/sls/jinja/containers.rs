//! Lists and mappings that a template changes in place, as Python's do.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use minijinja::value::{
    Enumerator, Object, ObjectRepr, Rest, Tuple, Value as JinjaValue, ValueKind, ValueOrKwargs, from_args,
};
use minijinja::{Environment, Error, ErrorKind, State};
use parking_lot::RwLock;

use super::value::{from_jinja, pairs, split_kwargs, to_jinja, write};
use crate::value::{Map, python};

/// The functions that rewritten literals and assignments call.
pub(super) fn add_to(environment: &mut Environment<'static>) {
    environment.add_function("__list__", |items: JinjaValue| own(&items));
    environment.add_function("__dict__", |map: JinjaValue| -> Result<JinjaValue, Error> {
        map.try_iter()?.try_for_each(|key| hashable(&key))?;
        Ok(own(&map))
    });
    environment.add_function("__own__", |value: JinjaValue| own(&value));
    for name in ["dict", "odict"] {
        environment.add_function(name, |args: Rest<ValueOrKwargs>| -> Result<JinjaValue, Error> {
            let dict = Dict::default();
            dict.update(&args.into_values())?;
            Ok(JinjaValue::from_object(dict))
        });
    }
}

/// A value that may change in place: what minijinja's own operators and filters made is copied into a
/// [`List`] or [`Dict`], all else is given back.
pub(super) fn own(value: &JinjaValue) -> JinjaValue {
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable
            if !value.is_tuple()
                && value.downcast_object_ref::<List>().is_none()
                && value.downcast_object_ref::<View>().is_none() =>
        {
            match value.try_iter() {
                Ok(items) => JinjaValue::from_object(items.collect::<List>()),
                Err(_) => value.clone(),
            }
        }
        ValueKind::Map if is_plain_map(value) => JinjaValue::from_object(pairs(value).collect::<Dict>()),
        _ => value.clone(),
    }
}

/// Whether this is a mapping of minijinja's own, with no meaning but its entries.
pub(super) fn is_plain_map(value: &JinjaValue) -> bool {
    value.downcast_object_ref::<IndexMap<JinjaValue, JinjaValue>>().is_some()
}

fn nothing() -> Result<JinjaValue, Error> {
    Ok(JinjaValue::from(()))
}

/// An error as Python words it.
fn raise(message: impl fmt::Display) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.to_string())
}

/// Refuses keys that could change, as Python does. It also keeps a mapping from being hashed while it
/// is being written.
fn hashable(key: &JinjaValue) -> Result<(), Error> {
    match key.kind() {
        ValueKind::Seq if key.is_tuple() => key.try_iter()?.try_for_each(|item| hashable(&item)),
        ValueKind::Seq | ValueKind::Iterable => Err(raise("unhashable type: 'list'")),
        ValueKind::Map => Err(raise("unhashable type: 'dict'")),
        _ => Ok(()),
    }
}

/// Refuses to put a container into itself: nothing that walks along data could end.
fn refuse_cycle<T>(outer: &Arc<T>, value: &JinjaValue) -> Result<(), Error> {
    let mut open = vec![value.clone()];
    let mut seen = std::collections::HashSet::new();
    while let Some(value) = open.pop() {
        let children: Vec<JinjaValue> = if let Some(list) = value.downcast_object::<List>() {
            if !seen.insert(Arc::as_ptr(&list).cast::<()>()) {
                continue;
            }
            list.items()
        } else if let Some(dict) = value.downcast_object::<Dict>() {
            if !seen.insert(Arc::as_ptr(&dict).cast::<()>()) {
                continue;
            }
            dict.changeable()
        } else if value.is_tuple() {
            value.try_iter()?.collect()
        } else {
            continue;
        };
        if seen.contains(&Arc::as_ptr(outer).cast::<()>()) {
            return Err(raise("a container cannot be put into itself"));
        }
        open.extend(children);
    }
    Ok(())
}

/// Drops values one by one. Left to itself Rust would drop what is inside by calling itself, and a chain
/// of lists that a loop has made is deeper than any stack.
fn take_apart(values: Vec<JinjaValue>) {
    let mut open = values;
    while let Some(value) = open.pop() {
        if let Some(list) = value.downcast_object::<List>() {
            drop(value);
            if Arc::strong_count(&list) == 1 {
                open.append(&mut list.0.write());
            }
        } else if let Some(dict) = value.downcast_object::<Dict>() {
            drop(value);
            if Arc::strong_count(&dict) == 1 {
                open.extend(dict.0.write().take());
            }
        }
    }
}

impl Drop for Dict {
    fn drop(&mut self) {
        take_apart(self.0.get_mut().take());
    }
}

impl Drop for List {
    fn drop(&mut self) {
        take_apart(std::mem::take(self.0.get_mut()));
    }
}

/// A mapping that the template may change.
pub(super) struct Dict(RwLock<Entries>);

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
        Dict(RwLock::new(Entries::Own(IndexMap::new())))
    }
}

impl FromIterator<(JinjaValue, JinjaValue)> for Dict {
    fn from_iter<I: IntoIterator<Item = (JinjaValue, JinjaValue)>>(entries: I) -> Self {
        Dict(RwLock::new(Entries::Own(entries.into_iter().collect())))
    }
}

impl fmt::Debug for Dict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dict of {}", self.len())
    }
}

impl Dict {
    /// A mapping whose entries are converted when they are looked at.
    pub(super) fn shared(map: Arc<Map>) -> Self {
        Dict(RwLock::new(Entries::Shared { map, seen: HashMap::new() }))
    }

    fn len(&self) -> usize {
        match &*self.0.read() {
            Entries::Own(entries) => entries.len(),
            Entries::Shared { map, .. } => map.len(),
        }
    }

    /// Whether there is such a key.
    pub(super) fn contains(&self, key: &JinjaValue) -> Result<bool, Error> {
        hashable(key)?;
        Ok(match &*self.0.read() {
            Entries::Own(entries) => entries.contains_key(key),
            Entries::Shared { map, .. } => map.contains_key(&from_jinja(key)),
        })
    }

    fn lookup(&self, key: &JinjaValue) -> Option<JinjaValue> {
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
                Some(seen.entry(index).or_insert_with(|| to_jinja(value)).clone())
            }
        }
    }

    /// The values through which a template could reach back to this mapping.
    fn changeable(&self) -> Vec<JinjaValue> {
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
        let mut entries = self.0.write();
        if let Entries::Shared { map, seen } = &mut *entries {
            let own = map.iter().enumerate().map(|(index, (key, value))| {
                let value = seen.remove(&index).unwrap_or_else(|| to_jinja(value));
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
            for (place, pair) in other.try_iter()?.enumerate() {
                if !matches!(pair.kind(), ValueKind::Seq | ValueKind::Iterable | ValueKind::String) {
                    let message = "cannot convert dictionary update sequence element";
                    return Err(raise(format_args!("{message} #{place} to a sequence")));
                }
                given.push((pair.get_item_by_index(0)?, pair.get_item_by_index(1)?));
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
    pub(super) fn overlay(&self, map: &Map) {
        for (key, value) in map {
            let key = to_jinja(key);
            let inner = self.lookup(&key).and_then(|inner| inner.downcast_object::<Dict>());
            match (inner, value.as_map()) {
                (Some(inner), Some(map)) => inner.overlay(map),
                _ => _ = self.change(|entries| entries.insert(key, to_jinja(value))),
            }
        }
    }

    fn update(&self, args: &[JinjaValue]) -> Result<(), Error> {
        let given = Self::given(args)?;
        self.change(|entries| entries.extend(given));
        Ok(())
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

/// A list that the template may change.
#[derive(Default)]
pub(super) struct List(RwLock<Vec<JinjaValue>>);

impl FromIterator<JinjaValue> for List {
    fn from_iter<I: IntoIterator<Item = JinjaValue>>(items: I) -> Self {
        List(RwLock::new(items.into_iter().collect()))
    }
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "List of {}", self.0.read().len())
    }
}

impl List {
    fn items(&self) -> Vec<JinjaValue> {
        self.0.read().clone()
    }
}

/// Where an index of Python's is: from the end if negative.
fn place(length: usize, index: i64) -> Option<usize> {
    let from_start = if index < 0 { index.checked_add(i64::try_from(length).ok()?)? } else { index };
    usize::try_from(from_start).ok()
}

impl Object for List {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &JinjaValue) -> Option<JinjaValue> {
        let items = self.0.read();
        items.get(place(items.len(), key.as_i64()?)?).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.items())
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.0.read().len())
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
        // Items are compared on a copy: an item may be what is compared with, and is locked then.
        let find = |item: &JinjaValue| {
            let absent = || raise(format_args!("{} is not in list", python::repr(&from_jinja(item))));
            self.items().iter().position(|have| have == item).ok_or_else(absent)
        };
        match method {
            "append" => {
                let (item,): (JinjaValue,) = from_args(args)?;
                let item = own(&item);
                refuse_cycle(self, &item)?;
                self.0.write().push(item);
                nothing()
            }
            "extend" => {
                let (items,): (JinjaValue,) = from_args(args)?;
                let items: Vec<_> = items.try_iter()?.map(|item| own(&item)).collect();
                items.iter().try_for_each(|item| refuse_cycle(self, item))?;
                self.0.write().extend(items);
                nothing()
            }
            "insert" => {
                let (index, item): (i64, JinjaValue) = from_args(args)?;
                let item = own(&item);
                refuse_cycle(self, &item)?;
                let mut items = self.0.write();
                let at = place(items.len(), index).unwrap_or(0).min(items.len());
                items.insert(at, item);
                nothing()
            }
            "pop" => {
                let (index,): (Option<i64>,) = from_args(args)?;
                let mut items = self.0.write();
                let at = place(items.len(), index.unwrap_or(-1)).filter(|at| *at < items.len());
                let outside = if items.is_empty() { "pop from empty list" } else { "pop index out of range" };
                at.map(|at| items.remove(at)).ok_or_else(|| raise(outside))
            }
            "remove" => {
                let (item,): (JinjaValue,) = from_args(args)?;
                let at = find(&item).map_err(|_| raise("list.remove(x): x not in list"))?;
                self.0.write().remove(at);
                nothing()
            }
            "index" => {
                let (item,): (JinjaValue,) = from_args(args)?;
                find(&item).map(JinjaValue::from)
            }
            "reverse" => {
                self.0.write().reverse();
                nothing()
            }
            "sort" => {
                let (_, keyword) = split_kwargs(args)?;
                let mut items = self.items();
                items.sort();
                if keyword.iter().any(|(name, value)| name == "reverse" && value.is_true()) {
                    items.reverse();
                }
                *self.0.write() = items;
                nothing()
            }
            "clear" => {
                self.0.write().clear();
                nothing()
            }
            _ => Err(Error::from(ErrorKind::UnknownMethod)),
        }
    }
}

/// What `keys()`, `values()` and `items()` give: a list that cannot be changed and says what it is.
#[derive(Debug)]
pub(super) struct View {
    name: &'static str,
    items: Vec<JinjaValue>,
}

impl View {
    /// The view of this method on a mapping, if it is a method that gives one.
    pub(super) fn of(map: &JinjaValue, method: &str) -> Option<JinjaValue> {
        let view = match method {
            "keys" => View { name: "dict_keys", items: pairs(map).map(|(key, _)| key).collect() },
            "values" => View { name: "dict_values", items: pairs(map).map(|(_, value)| value).collect() },
            "items" => {
                let items = pairs(map).map(|(key, value)| JinjaValue::from(Tuple::from([key, value])));
                View { name: "dict_items", items: items.collect() }
            }
            _ => return None,
        };
        Some(JinjaValue::from_object(view))
    }

    /// Python's name for it.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }
}

impl Object for View {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.items.clone())
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.items.len())
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(&JinjaValue::from_dyn_object(Arc::clone(self)), f, 0)
    }
}
