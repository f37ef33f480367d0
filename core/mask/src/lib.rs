//! Masks secrets in what the daemons record: events, journal, job cache, returners and logs.
//!
//! An argument is secret if its name says so (`masked_names`, `unmasked_names`): the name of a keyword, of a parameter
//! that a positional value fills, or of a key in nested data, also in a text that is such data. The functions themselves
//! always get the real values; callers mask copies. Nothing is copied if nothing is secret.

mod names;
mod secrets;
#[cfg(test)]
mod tests;
mod texts;

use std::sync::Arc;

use brine_text::glob::GlobError;
use brine_value::{Map, Value};

use names::Names;
pub use names::{MASKED_NAMES, UNMASKED_NAMES};
pub use secrets::Secrets;

/// The text in place of a secret.
pub const MASK: &str = "**********";

/// The key that marks a mapping of keyword arguments in Salt's wire format.
const KEYWORDS: &str = "__kwarg__";
/// The fields of jobs and returns with arguments in wire format, in the order of the functions if there are several.
const ARGUMENTS: &[&str] = &["arg", "fun_args"];
/// The fields of jobs and returns with options of the caller.
const OPTIONS: &[&str] = &["kwargs", "kwarg", "ret_kwargs", "ret_config", "metadata", "executor_opts", "pillar"];

/// The parameters of functions, by which positional arguments get names.
pub trait Parameters: Send + Sync {
    /// Returns the names of the positional parameters of a function, in order; none if the function is unknown.
    fn positional(&self, function: &str) -> Vec<&'static str>;
}

/// Masks arguments by their names. Clones share the compiled names.
#[derive(Clone)]
pub struct Mask {
    names: Arc<Names>,
    parameters: Option<Arc<dyn Parameters>>,
}

impl Default for Mask {
    /// Returns the mask of the default names.
    fn default() -> Self {
        Mask { names: Arc::new(Names::default()), parameters: None }
    }
}

impl Mask {
    /// Compiles the options `masked_names` and `unmasked_names`.
    ///
    /// # Errors
    /// An invalid glob.
    pub fn new(masked: &[String], unmasked: &[String]) -> Result<Self, GlobError> {
        Ok(Mask { names: Arc::new(Names::new(masked, unmasked)?), parameters: None })
    }

    /// Adds the parameters of functions, so that positional arguments have names.
    #[must_use]
    pub fn with_parameters(self, parameters: Arc<dyn Parameters>) -> Self {
        Mask { parameters: Some(parameters), ..self }
    }

    /// Whether an argument of this name is secret in calls of this function. Functions of the master have the prefix
    /// `runner.` or `wheel.`, as in events.
    pub fn is_secret(&self, function: &str, name: &str) -> bool {
        let own = ["runner.", "wheel."].into_iter().find_map(|prefix| function.strip_prefix(prefix));
        let function = own.unwrap_or(function);
        self.names.is_secret(function, name)
    }

    /// Returns a masked copy of data; `None` if it contains no secret.
    pub fn value(&self, function: &str, value: &Value) -> Option<Value> {
        match value {
            Value::List(items) => self.list(items, |_, item| self.value(function, item)).map(Value::List),
            Value::Map(map) => self.mapping(function, map).map(Value::Map),
            Value::Str(text) => self.holds_secret(function, text).then(|| MASK.into()),
            _ => None,
        }
    }

    /// Whether a text is a mapping with a secret in it.
    fn holds_secret(&self, function: &str, text: &str) -> bool {
        texts::secrets(text, |name| self.is_secret(function, name)).any(|(_, value)| value != MASK)
    }

    /// Returns a masked copy of a mapping; `None` if it contains no secret.
    pub fn mapping(&self, function: &str, map: &Map) -> Option<Map> {
        let mut copy: Option<Map> = None;
        for (index, (name, value)) in map.iter().enumerate() {
            if let Some(masked) = self.named(function, name.as_str(), value) {
                copy.get_or_insert_with(|| map.clone())[index] = masked;
            }
        }
        copy
    }

    /// Returns a masked copy of arguments in wire format; `None` if they contain no secret. Texts such as
    /// `password=x` count as keywords, as they do for minions.
    pub fn arguments(&self, function: &str, arguments: &[Value]) -> Option<Vec<Value>> {
        let has_values = arguments.iter().any(|one| one.get(KEYWORDS).is_none());
        let positional = match &self.parameters {
            Some(parameters) if has_values => parameters.positional(function),
            _ => Vec::new(),
        };
        self.list(arguments, |index, argument| {
            if let Some((name, text)) = argument.as_str().and_then(keyword)
                && (self.is_secret(function, name) || self.holds_secret(function, text))
                && !text.is_empty()
            {
                return Some(format!("{name}={MASK}").into());
            }
            self.named(function, positional.get(index).copied(), argument)
        })
    }

    /// Returns the fields of a job or return that contain secrets, masked. The name of the function is the field `fun`.
    pub fn record(&self, record: &Map) -> Map {
        let mut changed = Map::new();
        let functions = record.get("fun");
        let function = functions.and_then(Value::as_str).unwrap_or_default();
        for name in ARGUMENTS {
            let Some(Value::List(arguments)) = record.get(*name).filter(|value| value.is_truthy()) else { continue };
            let masked = match functions {
                Some(Value::List(functions)) => self.list(arguments, |index, own| match own {
                    Value::List(own) => {
                        let function = functions.get(index).and_then(Value::as_str).unwrap_or_default();
                        self.arguments(function, own).map(Value::List)
                    }
                    other => self.value("", other),
                }),
                _ => self.arguments(function, arguments),
            };
            changed.extend(masked.map(|masked| ((*name).into(), masked.into())));
        }
        for name in OPTIONS {
            let masked = record.get(*name).and_then(|value| self.named(function, Some(name), value));
            changed.extend(masked.map(|masked| ((*name).into(), masked)));
        }
        changed
    }

    /// Returns the fields as [`Mask::record`], without the options of returners, which need them.
    pub fn arguments_of(&self, record: &Map) -> Map {
        let mut changed = self.record(record);
        changed.retain(|name, _| !matches!(name.as_str(), Some("ret_kwargs" | "ret_config")));
        changed
    }

    /// Returns the secrets among arguments in wire format, to remove them from messages and results.
    pub fn secrets(&self, function: &str, arguments: &[Value]) -> Secrets {
        let mut secrets = Secrets::default();
        let positional = self.parameters.as_ref().map(|parameters| parameters.positional(function));
        for (index, argument) in arguments.iter().enumerate() {
            let name = positional.as_ref().and_then(|names| names.get(index).copied());
            match argument.as_str().and_then(keyword) {
                Some((name, text)) if self.is_secret(function, name) => secrets.add(name, &text.into()),
                keyword => {
                    if let Some((_, text)) = keyword {
                        self.collect(function, None, &text.into(), &mut secrets);
                    }
                    self.collect(function, name, argument, &mut secrets);
                }
            }
        }
        secrets
    }

    fn collect(&self, function: &str, name: Option<&str>, value: &Value, secrets: &mut Secrets) {
        match value {
            Value::Map(map) => {
                map.iter().for_each(|(name, value)| self.collect(function, name.as_str(), value, secrets));
            }
            // The items of a list have its name.
            Value::List(items) => items.iter().for_each(|item| self.collect(function, name, item, secrets)),
            Value::Nil | Value::Bool(_) => {}
            leaf => {
                let of_text = |text| texts::secrets(text, |name| self.is_secret(function, name));
                leaf.as_str().into_iter().flat_map(of_text).for_each(|(name, value)| secrets.add(name, &value.into()));
                if let Some(name) = name.filter(|name| self.is_secret(function, name)) {
                    secrets.add(name, leaf);
                }
            }
        }
    }

    /// Returns what is recorded of a value with this name; `None` for the value itself. Booleans and nulls are options,
    /// not secrets.
    fn named(&self, function: &str, name: Option<&str>, value: &Value) -> Option<Value> {
        let is_option = matches!(value, Value::Nil | Value::Bool(_)) || value.as_str().is_some_and(|s| s == MASK);
        if !is_option && name.is_some_and(|name| self.is_secret(function, name)) {
            return value.is_truthy().then(|| MASK.into());
        }
        self.value(function, value)
    }

    fn list(&self, items: &[Value], masked: impl Fn(usize, &Value) -> Option<Value>) -> Option<Vec<Value>> {
        let mut copy: Option<Vec<Value>> = None;
        for (index, item) in items.iter().enumerate() {
            if let Some(masked) = masked(index, item) {
                copy.get_or_insert_with(|| items.to_vec())[index] = masked;
            }
        }
        copy
    }
}

/// Whether data contains a masked value.
pub fn is_masked(value: &Value) -> bool {
    match value {
        Value::Str(text) => text == MASK || keyword(text).is_some_and(|(_, text)| text == MASK),
        Value::List(items) => items.iter().any(is_masked),
        Value::Map(map) => map.values().any(is_masked),
        _ => false,
    }
}

/// Splits `name=text`.
fn keyword(argument: &str) -> Option<(&str, &str)> {
    let (name, text) = argument.split_once('=')?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-'));
    is_name.then_some((name, text))
}
