//! Mappings that templates share.

use std::fmt;
use std::sync::Arc;

use brine_value::{Map, Value};
use minijinja::value::Value as JinjaValue;

use super::convert::{from_jinja, to_jinja};
use super::{Dict, List, Origin};

/// A mapping that several templates read: each sees the changes of those before it. An entry is converted when a
/// template reads it.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use brine_value::map;
/// use brine_jinja::{Context, Host, Template, Tree};
///
/// let tree = Tree::new(Arc::new(map! {"web" => map! {"port" => 80}}));
/// let mut context = Context::new("base");
/// context.set_tree("pillar", &tree);
/// Template::compile("one", "{% do pillar.web.update({'port': 81}) %}").unwrap().render(&context, &Host::new()).unwrap();
/// assert_eq!(*tree.now(), map! {"web" => map! {"port" => 81}});
/// ```
#[derive(Clone)]
pub struct Tree {
    map: Arc<Map>,
    root: Arc<Dict>,
    origin: Origin,
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tree of {}", self.map.len())
    }
}

impl Tree {
    /// Creates a tree from a mapping, which itself does not change.
    pub fn new(map: Arc<Map>) -> Self {
        Self::of(map, Origin::shared(false))
    }

    /// Creates a tree like [`Tree::new`], with `OrderedDict`s inside: as in a pillar that the minion compiles itself.
    pub fn ordered(map: Arc<Map>) -> Self {
        Self::of(map, Origin::shared(true))
    }

    fn of(map: Arc<Map>, origin: Origin) -> Self {
        Tree { root: Arc::new(Dict::shared(Arc::clone(&map), origin.clone())), map, origin }
    }

    /// Returns whether the tree was created from this mapping: the same allocation.
    pub fn is_of(&self, map: &Arc<Map>) -> bool {
        Arc::ptr_eq(&self.map, map)
    }

    /// Returns whether a template has changed something.
    pub fn is_changed(&self) -> bool {
        self.origin.is_changed()
    }

    /// Returns the mapping with the changes of templates.
    pub fn now(&self) -> Arc<Map> {
        if !self.is_changed() {
            return Arc::clone(&self.map);
        }
        match from_jinja(&self.value()) {
            Value::Map(map) => Arc::new(map),
            _ => Arc::clone(&self.map),
        }
    }

    /// Returns the mapping for templates.
    pub(crate) fn value(&self) -> JinjaValue {
        JinjaValue::from_dyn_object(Arc::clone(&self.root))
    }

    /// Returns the value at a path, shared with the tree instead of copied.
    pub(crate) fn at(&self, path: &str, delimiter: &str) -> Option<JinjaValue> {
        if !self.is_changed() {
            // In an unchanged tree, a scalar is found without converting its containers.
            let entry = brine_yaml::entry_at(&self.map, path, delimiter)?;
            if entry.as_list().is_none() && entry.as_map().is_none() {
                return Some(to_jinja(entry));
            }
        }
        if delimiter.is_empty() {
            return step(self.value(), path);
        }
        path.split(delimiter).try_fold(self.value(), step)
    }
}

/// Takes a step of [`brine_yaml::traverse`] in data that templates may have changed.
fn step(value: JinjaValue, key: &str) -> Option<JinjaValue> {
    if let Some(dict) = value.downcast_object::<Dict>() {
        return entry(&dict, key);
    }
    let items = value.downcast_object::<List>()?.items();
    let mut maps = items.iter().filter_map(JinjaValue::downcast_object::<Dict>);
    let Ok(index) = key.trim().parse::<i64>() else { return maps.find_map(|map| map.lookup(&key.into())) };
    maps.find_map(|map| map.lookup(&index.into()))
        .or_else(|| items.get(super::list::resolve_index(items.len(), index)?).cloned())
}

fn entry(dict: &Arc<Dict>, key: &str) -> Option<JinjaValue> {
    let typed = || match brine_yaml::load(key).ok()? {
        Value::Str(_) | Value::List(_) | Value::Map(_) => None,
        typed => dict.lookup(&to_jinja(&typed)),
    };
    dict.lookup(&key.into()).or_else(typed)
}
