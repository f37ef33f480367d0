//! Jinja as Salt's users write it, on minijinja: strict about what is undefined, Python's methods and
//! Python's way to print, lists and mappings that change in place, `salt['mod.fun'](...)`.
//!
//! `value.rs` carries data in and out, `host.rs` is what templates can reach, `filters.rs` has what
//! Salt adds, `error.rs` says what went wrong in Salt's words.

mod error;
mod filters;
mod host;
mod value;

use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value as JinjaValue;
use minijinja::{Environment, UndefinedBehavior};

pub use error::JinjaError;
pub use host::{Host, NoHost};

use crate::value::{Map, Value};

/// A template, compiled once and rendered often.
pub struct Template {
    name: String,
    source: Arc<str>,
    environment: Environment<'static>,
    /// Whether it reads other templates: these come from the host, anew with each render.
    imports: bool,
}

/// The variables of a template. Large mappings that are shared with others are not copied: what a
/// template looks at is converted when it does.
#[derive(Debug, Clone, Default)]
pub struct Context {
    variables: Vec<(String, JinjaValue)>,
    saltenv: String,
}

impl Context {
    /// Without variables, in this environment.
    pub fn new(saltenv: &str) -> Self {
        Context { variables: Vec::new(), saltenv: saltenv.to_owned() }
    }

    /// Sets a variable.
    pub fn set(&mut self, name: &str, value: &Value) -> &mut Self {
        self.variables.push((name.to_owned(), value::to_jinja(value)));
        self
    }

    /// Sets several variables.
    pub fn set_all(&mut self, variables: &Map) -> &mut Self {
        for (name, value) in variables {
            self.set(&name.to_string(), value);
        }
        self
    }

    /// Sets a variable to a mapping that others hold too. Templates cannot change it.
    pub fn set_shared(&mut self, name: &str, map: Arc<Map>) -> &mut Self {
        self.variables.push((name.to_owned(), JinjaValue::from_object(value::SharedMap(map))));
        self
    }
}

impl std::fmt::Debug for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Template").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Template {
    /// Compiles a template. `name` is what errors call it.
    pub fn compile(name: &str, source: &str) -> Result<Self, JinjaError> {
        let mut environment = environment();
        environment
            .add_template_owned(name.to_owned(), source.to_owned())
            .map_err(|error| JinjaError::new(name, source, &error))?;
        let imports = ["import", "include", "extends"].iter().any(|word| source.contains(word));
        Ok(Template { name: name.to_owned(), source: source.into(), environment, imports })
    }

    /// Renders with these variables. `salt` reaches the host's functions, imports its files.
    pub fn render(&self, context: &Context, host: &Arc<dyn Host>) -> Result<String, JinjaError> {
        let failed = |error: minijinja::Error| JinjaError::new(&self.name, &self.source, &error);
        let salt = JinjaValue::from_object(host::Salt(Arc::clone(host)));
        let all = context.variables.iter().map(|(name, value)| (name.as_str(), value.clone()));
        let own = [("salt", salt.clone()), ("saltenv", JinjaValue::from(context.saltenv.as_str()))];
        let variables = JinjaValue::from_pairs(own.into_iter().chain(all));
        if !self.imports {
            return self
                .environment
                .get_template(&self.name)
                .and_then(|template| template.render(variables))
                .map_err(failed);
        }
        let mut environment = self.environment.clone();
        let (host, saltenv) = (Arc::clone(host), context.saltenv.clone());
        environment.set_loader(move |path| {
            let failed = |error| minijinja::Error::new(minijinja::ErrorKind::InvalidOperation, error);
            host.template(path, &saltenv).map_err(failed)
        });
        environment.add_global("salt", salt);
        for (name, value) in &context.variables {
            if matches!(name.as_str(), "grains" | "pillar" | "opts") {
                environment.add_global(name.clone(), value.clone());
            }
        }
        environment.get_template(&self.name).and_then(|template| template.render(variables)).map_err(failed)
    }
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    // The only part of a syntax that can fail to build is its delimiters, and these are the usual ones.
    if let Ok(syntax) = SyntaxConfig::builder().keep_trailing_newline(true).build() {
        environment.set_syntax(syntax);
    }
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_formatter(value::format);
    environment.set_debug(true);
    filters::add_to(&mut environment);
    environment
}

#[cfg(test)]
mod tests;
