//! Data in templates: Python's types, their conversion and their text.
//!
//! Lists and mappings that a template changes in place, as Python's do, are a [`List`] and a [`Dict`]; further types
//! are [`Range`], the [`View`] of a mapping's keys, and the [`Tree`] that templates share.
//!
//! `convert` owns the conversion from and to plain values, `print` the text of values, `types` the names of their types,
//! `markup` text that is safe in HTML, and `undefined` undefined values.

mod convert;
mod dict;
mod list;
mod markup;
mod print;
mod range;
mod tree;
mod types;
mod undefined;
mod view;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indexmap::IndexMap;
use minijinja::value::{Rest, Value as JinjaValue, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind};

pub(super) use convert::{Keywords, from_jinja, like, pairs, split_args, split_kwargs, to_jinja, to_ordered};
pub(super) use dict::Dict;
pub(super) use list::List;
pub(super) use markup::escape;
pub(super) use print::{double_quoted, format, printed, text};
pub(super) use range::Range;
pub use tree::Tree;
pub(super) use types::{type_name, type_name_in_errors};
pub(super) use undefined::{UndefinedMode, is_lenient, refuse_undefined, refuse_undefined_within};
pub(super) use view::View;

use super::limits;

/// Adds the functions that rewritten literals and assignments call.
pub(super) fn add_to(environment: &mut Environment<'static>) {
    range::add_to(environment);
    environment.add_function("__list__", |items: JinjaValue| limits::check().map(|()| to_mutable(&items)));
    environment.add_function("__dict__", |map: JinjaValue| -> Result<JinjaValue, Error> {
        limits::check()?;
        map.try_iter()?.try_for_each(|key| hashable(&key))?;
        Ok(to_mutable(&map))
    });
    environment.add_function("__own__", |value: JinjaValue| limits::check().map(|()| to_mutable(&value)));
    for (name, ordered) in [("dict", false), ("odict", true)] {
        environment.add_function(name, move |args: Rest<ValueOrKwargs>| -> Result<JinjaValue, Error> {
            let dict = Dict::new([], ordered);
            dict.update(&args.into_values())?;
            Ok(JinjaValue::from_object(dict))
        });
    }
}

/// Returns a value that may change in place: results of minijinja's own operators and filters are copied into a
/// [`List`] or [`Dict`].
pub(super) fn to_mutable(value: &JinjaValue) -> JinjaValue {
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable
            if !value.is_tuple()
                && value.downcast_object_ref::<List>().is_none()
                && value.downcast_object_ref::<Range>().is_none()
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

/// Returns whether a value is a plain mapping of minijinja, not a [`Dict`].
pub(super) fn is_plain_map(value: &JinjaValue) -> bool {
    value.downcast_object_ref::<IndexMap<JinjaValue, JinjaValue>>().is_some()
}

/// Whether a value is Python's `OrderedDict`.
pub(super) fn is_ordered(value: &JinjaValue) -> bool {
    value.downcast_object_ref::<Dict>().is_some_and(Dict::is_ordered)
}

/// The origin of a container, shared by all containers inside of it.
#[derive(Clone, Default)]
pub(super) struct Origin {
    /// Set by a change; `None` if no other template reads the container.
    changed: Option<Arc<AtomicBool>>,
    /// Whether its mappings are Python's `OrderedDict`.
    ordered: bool,
}

impl Origin {
    /// Creates the origin of containers that several templates read.
    fn shared(ordered: bool) -> Self {
        Origin { changed: Some(Arc::default()), ordered }
    }

    /// Creates the origin of containers of one template whose mappings are `OrderedDict`s.
    pub(super) fn ordered() -> Self {
        Origin { changed: None, ordered: true }
    }

    fn note_change(&self) {
        if let Some(changed) = &self.changed {
            changed.store(true, Ordering::Release);
        }
    }

    fn is_changed(&self) -> bool {
        self.changed.as_ref().is_some_and(|changed| changed.load(Ordering::Acquire))
    }
}

fn nothing() -> Result<JinjaValue, Error> {
    Ok(JinjaValue::from(()))
}

/// Returns an error with Python's message.
pub(super) fn raise(message: impl fmt::Display) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.to_string())
}

/// Returns Python's error for mutable keys. This also prevents that a mapping is hashed while it is locked for writing.
fn hashable(key: &JinjaValue) -> Result<(), Error> {
    match key.kind() {
        ValueKind::Seq if key.is_tuple() => key.try_iter()?.try_for_each(|item| hashable(&item)),
        ValueKind::Seq | ValueKind::Iterable => Err(raise("unhashable type: 'list'")),
        ValueKind::Map => Err(raise(format_args!("unhashable type: '{}'", type_name(key)))),
        _ => Ok(()),
    }
}

/// Returns an error if a container would be put into itself: traversals of the data would not end.
fn refuse_cycle<T>(outer: &Arc<T>, value: &JinjaValue) -> Result<(), Error> {
    let mut open = vec![value.clone()];
    let mut seen = std::collections::HashSet::new();
    while let Some(value) = open.pop() {
        limits::work(1)?;
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

/// Drops values one by one. Rust's own drop is recursive, and a chain of lists that a loop builds could overflow the
/// stack.
fn drop_iteratively(values: Vec<JinjaValue>) {
    let mut open = values;
    while let Some(value) = open.pop() {
        if let Some(list) = value.downcast_object::<List>() {
            drop(value);
            if Arc::strong_count(&list) == 1 {
                open.append(&mut list.take());
            }
        } else if let Some(dict) = value.downcast_object::<Dict>() {
            drop(value);
            if Arc::strong_count(&dict) == 1 {
                open.append(&mut dict.take());
            }
        }
    }
}
