//! The views that `keys()`, `values()` and `items()` return.

use std::fmt;
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr, Tuple, Value as JinjaValue};

use super::convert::pairs;
use super::is_ordered;
use super::print::write;
use crate::limits;

/// A view of a mapping: an immutable list that prints its kind.
#[derive(Debug)]
pub(crate) struct View {
    name: &'static str,
    items: Vec<JinjaValue>,
}

impl View {
    /// Returns the view of a mapping for a method; `None` if the method returns none.
    pub(crate) fn of(map: &JinjaValue, method: &str) -> Option<JinjaValue> {
        let ordered = is_ordered(map);
        let named = |plain, of_ordered| if ordered { of_ordered } else { plain };
        let view = match method {
            "keys" => View { name: named("dict_keys", "odict_keys"), items: pairs(map).map(|(key, _)| key).collect() },
            "values" => {
                View { name: named("dict_values", "odict_values"), items: pairs(map).map(|(_, value)| value).collect() }
            }
            "items" => {
                let items = pairs(map).map(|(key, value)| JinjaValue::from(Tuple::from([key, value])));
                View { name: named("dict_items", "odict_items"), items: items.collect() }
            }
            _ => return None,
        };
        Some(JinjaValue::from_object(view))
    }

    /// Returns Python's name for the view.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }
}

impl Object for View {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(limits::walk_items(self.items.clone()))
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.items.len())
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(&JinjaValue::from_dyn_object(Arc::clone(self)), f)
    }
}
