//! Lists.

use std::fmt;
use std::sync::Arc;

use brine_value::python;
use minijinja::value::{Enumerator, Object, ObjectRepr, Value as JinjaValue, from_args};
use minijinja::{Error, ErrorKind, State};
use parking_lot::{RwLock, RwLockWriteGuard};

use super::convert::{from_jinja, split_kwargs};
use super::print::write;
use super::{Origin, drop_iteratively, nothing, raise, refuse_cycle, to_mutable};
use crate::limits;

/// A list that the template may change.
#[derive(Default)]
pub(crate) struct List(RwLock<Vec<JinjaValue>>, Origin);

impl FromIterator<JinjaValue> for List {
    fn from_iter<I: IntoIterator<Item = JinjaValue>>(items: I) -> Self {
        List::of(items, &Origin::default())
    }
}

impl Drop for List {
    fn drop(&mut self) {
        drop_iteratively(std::mem::take(self.0.get_mut()));
    }
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "List of {}", self.0.read().len())
    }
}

impl List {
    /// Creates a list inside of a container of this origin.
    pub(crate) fn of(items: impl IntoIterator<Item = JinjaValue>, origin: &Origin) -> Self {
        List(RwLock::new(items.into_iter().collect()), origin.clone())
    }

    pub(super) fn items(&self) -> Vec<JinjaValue> {
        self.0.read().clone()
    }

    /// Takes all items.
    pub(super) fn take(&self) -> Vec<JinjaValue> {
        std::mem::take(&mut *self.0.write())
    }

    /// Locks the items for a change, and records the change.
    fn change(&self) -> RwLockWriteGuard<'_, Vec<JinjaValue>> {
        self.1.note_change();
        self.0.write()
    }
}

/// Returns the position of Python's index, which counts from the end if negative.
pub(super) fn resolve_index(length: usize, index: i64) -> Option<usize> {
    let from_start = if index < 0 { index.checked_add(i64::try_from(length).ok()?)? } else { index };
    usize::try_from(from_start).ok()
}

impl Object for List {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &JinjaValue) -> Option<JinjaValue> {
        let items = self.0.read();
        items.get(resolve_index(items.len(), key.as_i64()?)?).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(limits::walk_items(self.items()))
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.0.read().len())
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
        match method {
            "append" | "extend" | "clear" => limits::check()?,
            // These methods read or move all items.
            _ => limits::reserve_values(self.0.read().len())?,
        }
        // Items are compared on a copy: one may be the compared value itself, which locks the list.
        let find = |item: &JinjaValue| {
            let absent = || raise(format_args!("{} is not in list", python::repr(&from_jinja(item))));
            self.items().iter().position(|have| have == item).ok_or_else(absent)
        };
        match method {
            "append" => {
                let (item,): (JinjaValue,) = from_args(args)?;
                let item = to_mutable(&item);
                refuse_cycle(self, &item)?;
                self.change().push(item);
                nothing()
            }
            "extend" => {
                let (items,): (JinjaValue,) = from_args(args)?;
                if items.downcast_object::<List>().is_some_and(|other| Arc::ptr_eq(&other, self)) {
                    // The list extended by itself: its items are copied under the lock.
                    let count = self.0.read().len();
                    limits::reserve_values(count.saturating_mul(2))?;
                    self.change().extend_from_within(..count);
                    return nothing();
                }
                // Memory for the items, and for the growth of the list.
                limits::reserve_values(items.len().unwrap_or_default().saturating_mul(2))?;
                let items: Vec<_> = items.try_iter()?.map(|item| to_mutable(&item)).collect();
                items.iter().try_for_each(|item| refuse_cycle(self, item))?;
                limits::check()?;
                self.change().extend(items);
                nothing()
            }
            "insert" => {
                let (index, item): (i64, JinjaValue) = from_args(args)?;
                let item = to_mutable(&item);
                refuse_cycle(self, &item)?;
                let mut items = self.change();
                let at = resolve_index(items.len(), index).unwrap_or(0).min(items.len());
                items.insert(at, item);
                nothing()
            }
            "pop" => {
                let (index,): (Option<i64>,) = from_args(args)?;
                let mut items = self.change();
                let at = resolve_index(items.len(), index.unwrap_or(-1)).filter(|at| *at < items.len());
                let outside = if items.is_empty() { "pop from empty list" } else { "pop index out of range" };
                at.map(|at| items.remove(at)).ok_or_else(|| raise(outside))
            }
            "remove" => {
                let (item,): (JinjaValue,) = from_args(args)?;
                let at = find(&item).map_err(|_| raise("list.remove(x): x not in list"))?;
                self.change().remove(at);
                nothing()
            }
            "index" => {
                let (item,): (JinjaValue,) = from_args(args)?;
                find(&item).map(JinjaValue::from)
            }
            "reverse" => {
                self.change().reverse();
                nothing()
            }
            "sort" => {
                let (_, keyword) = split_kwargs(args)?;
                let mut items = self.items();
                items.sort();
                if keyword.iter().any(|(name, value)| name == "reverse" && value.is_true()) {
                    items.reverse();
                }
                *self.change() = items;
                nothing()
            }
            "clear" => {
                self.change().clear();
                nothing()
            }
            _ => Err(Error::from(ErrorKind::UnknownMethod)),
        }
    }
}
