//! The variables and limits of a render.

use std::sync::Arc;

use brine_value::{Map, Value};
use minijinja::value::Value as JinjaValue;

use super::data::{Tree, from_jinja, to_jinja};
use super::filters::traverse;
use super::limits::Limits;

/// The variables of a template. In-place changes by a template are visible to the next one that is rendered with the
/// same context, as in Salt.
#[derive(Debug, Clone, Default)]
pub struct Context {
    pub(super) variables: Vec<(String, JinjaValue)>,
    pub(super) saltenv: String,
    pub(super) limits: Limits,
    /// A further name of the variable `salt`.
    pub(super) functions: Option<&'static str>,
}

impl Context {
    /// Creates a context with only the variable `saltenv`.
    pub fn new(saltenv: &str) -> Self {
        Context { variables: Vec::new(), saltenv: saltenv.to_owned(), limits: Limits::default(), functions: None }
    }

    /// Sets the limits of renders with these variables. A render inside of another one shares the limits of that one.
    pub fn set_limits(&mut self, limits: Limits) -> &mut Self {
        self.limits = limits;
        self
    }

    /// Sets a further name of the variable `salt`, such as `__salt__`.
    pub fn set_functions_name(&mut self, name: &'static str) -> &mut Self {
        self.functions = Some(name);
        self
    }

    /// Sets a variable to a mapping that has also the function `traverse(data, path, default=None, delimiter=':')`.
    pub fn set_with_traverse(&mut self, name: &str, map: &Map) -> &mut Self {
        let entries = map.iter().map(|(key, value)| (key.to_string(), to_jinja(value)));
        let traverse = ("traverse".to_owned(), JinjaValue::from_function(traverse));
        // A plain mapping: its functions can be called as methods.
        self.variables.push((name.to_owned(), JinjaValue::from_pairs(entries.chain([traverse]))));
        self
    }

    /// Sets a variable.
    pub fn set(&mut self, name: &str, value: &Value) -> &mut Self {
        self.variables.push((name.to_owned(), to_jinja(value)));
        self
    }

    /// Sets several variables.
    pub fn set_all(&mut self, variables: &Map) -> &mut Self {
        for (name, value) in variables {
            self.set(&name.to_string(), value);
        }
        self
    }

    /// Sets a variable to a shared mapping without copying it: an entry is converted when the template reads it. The
    /// other owners do not see the template's changes.
    pub fn set_shared(&mut self, name: &str, map: Arc<Map>) -> &mut Self {
        self.set_tree(name, &Tree::new(map))
    }

    /// Sets a variable to a mapping whose other readers see the template's changes.
    pub fn set_tree(&mut self, name: &str, tree: &Tree) -> &mut Self {
        self.variables.push((name.to_owned(), tree.value()));
        self
    }

    /// Returns the variables as data, without `grains`, `pillar` and `opts`, and the environment.
    pub fn plain(&self) -> (Map, &str) {
        let plain = self.variables.iter().filter(|(name, _)| !matches!(name.as_str(), "grains" | "pillar" | "opts"));
        (plain.map(|(name, value)| (name.as_str().into(), from_jinja(value))).collect(), &self.saltenv)
    }

    /// Returns the names of the variables.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(|(name, _)| name.as_str())
    }
}
