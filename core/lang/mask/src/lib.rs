//! Masks secrets in what the daemons record: events, journal, job cache, returners and logs.
//!
//! An argument is secret if its name says so (`masked_names`, `unmasked_names`): the name of a keyword, of a parameter
//! that a positional value fills, or of a key in nested data, also in a text that contains such data. Arguments for another
//! function, such as `job_args`, have the names of its parameters. The functions themselves always get the real values;
//! callers mask copies. Nothing is copied if nothing is secret.

mod names;
mod secrets;
#[cfg(test)]
mod tests;
mod texts;

use std::sync::Arc;

use brine_function::Args;
use brine_function::carriers::{Carrier, value};
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

/// The parameters of functions, by which positional arguments get names, and the functions that call others.
pub trait Parameters: Send + Sync {
    /// Returns the names of the positional parameters of a function, in order; none if the function is unknown.
    fn positional(&self, function: &str) -> Vec<&'static str>;

    /// Returns how the arguments of a function name another one; `None` if they do not.
    fn carrier(&self, function: &str) -> Option<&'static Carrier>;
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
            Value::Str(text) => self.text(function, text).map(Value::from),
            _ => None,
        }
    }

    fn text(&self, function: &str, text: &str) -> Option<String> {
        texts::masked(text, |name| self.is_secret(function, name))
    }

    /// Returns a masked copy of a mapping; `None` if it contains no secret.
    pub fn mapping(&self, function: &str, map: &Map) -> Option<Map> {
        self.keywords(function, None, map)
    }

    fn keywords(&self, function: &str, inner: Option<&Inner>, map: &Map) -> Option<Map> {
        let mut copy: Option<Map> = None;
        for (index, (name, value)) in map.iter().enumerate() {
            if let Some(masked) = self.argument(function, inner, (name.as_str(), None), value) {
                copy.get_or_insert_with(|| map.clone())[index] = masked;
            }
        }
        copy
    }

    /// Returns a masked copy of arguments in wire format; `None` if they contain no secret. Texts such as
    /// `password=x` count as keywords, as they do for minions.
    pub fn arguments(&self, function: &str, arguments: &[Value]) -> Option<Vec<Value>> {
        let has_values = arguments.iter().any(|one| one.get(KEYWORDS).is_none());
        let positional = if has_values { self.positional(function) } else { Vec::new() };
        let inner = self.inner(function, arguments);
        self.list(arguments, |index, argument| {
            let masked = match argument {
                Value::Str(text) => keyword(text).and_then(|(name, text)| {
                    let masked = self.argument(function, inner.as_ref(), (Some(name), None), &text.into())?;
                    Some(format!("{name}={masked}").into())
                }),
                Value::Map(map) if map.contains_key(KEYWORDS) => {
                    return self.keywords(function, inner.as_ref(), map).map(Value::Map);
                }
                _ => None,
            };
            let own = (positional.get(index).copied(), Some(index));
            masked.or_else(|| self.argument(function, inner.as_ref(), own, argument))
        })
    }

    /// Returns a masked copy of the lists of arguments of several functions; `None` if they contain no secret.
    fn arguments_of_each(&self, functions: &[Value], arguments: &[Value]) -> Option<Vec<Value>> {
        self.list(arguments, |index, own| match own {
            Value::List(own) => self.arguments(name_at(functions, index), own).map(Value::List),
            other => self.value("", other),
        })
    }

    fn positional(&self, function: &str) -> Vec<&'static str> {
        self.parameters.as_ref().map(|parameters| parameters.positional(function)).unwrap_or_default()
    }

    /// Returns a masked copy of an argument with this name or position; `None` if it contains no secret.
    fn argument(&self, function: &str, inner: Option<&Inner>, at: At<'_>, value: &Value) -> Option<Value> {
        let masked = inner.and_then(|inner| match inner.part(at)? {
            Part::List => match value {
                Value::List(items) if !inner.functions.is_empty() => {
                    self.arguments_of_each(&inner.functions, items).map(Value::List)
                }
                Value::List(items) => self.arguments(&inner.function, items).map(Value::List),
                // A text of a list, whose items have no names.
                Value::Str(text) if text.contains('[') => {
                    let is_secret = |name: &&str| self.is_secret(&inner.function, name);
                    self.positional(&inner.function).iter().any(is_secret).then(|| MASK.into())
                }
                one => self.arguments(&inner.function, std::slice::from_ref(one)).map(Value::List),
            },
            Part::Keywords => self.value(&inner.function, value),
            Part::Keyword => self.named(&inner.function, at.0, value),
            Part::Positional(index) => {
                self.named(&inner.function, self.positional(&inner.function).get(index).copied(), value)
            }
        });
        masked.or_else(|| self.named(function, at.0, value))
    }

    /// Returns the fields of a job or return that contain secrets, masked. The name of the function is the field `fun`.
    pub fn record(&self, record: &Map) -> Map {
        let mut changed = Map::new();
        let functions = record.get("fun");
        let function = functions.and_then(Value::as_str).unwrap_or_default();
        for name in ARGUMENTS {
            let Some(Value::List(arguments)) = record.get(*name).filter(|value| value.is_truthy()) else { continue };
            let masked = match functions {
                Some(Value::List(functions)) => self.arguments_of_each(functions, arguments),
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

    /// Returns the function, or the functions, that the arguments of another one name.
    fn inner(&self, function: &str, arguments: &[Value]) -> Option<Inner> {
        let carrier = self.parameters.as_ref()?.carrier(function)?;
        let args = Args::from_wire(arguments);
        let function = format!("{}{}", carrier.prefix(), carrier.function_in(&args)?);
        let functions = value(&args, carrier.function).and_then(Value::as_list).map_or_else(Vec::new, <[_]>::to_vec);
        Some(Inner { carrier, function, functions })
    }

    /// Returns the secrets among arguments in wire format, to remove them from messages and results.
    pub fn secrets(&self, function: &str, arguments: &[Value]) -> Secrets {
        let mut secrets = Secrets::default();
        let (positional, inner) = (self.positional(function), self.inner(function, arguments));
        for (index, argument) in arguments.iter().enumerate() {
            match argument {
                Value::Map(map) if map.contains_key(KEYWORDS) => {
                    for (name, value) in map {
                        self.collect_argument(function, inner.as_ref(), (name.as_str(), None), value, &mut secrets);
                    }
                }
                _ => {
                    let keyword = argument.as_str().and_then(keyword);
                    if let Some((name, text)) = keyword {
                        let at = (Some(name), None);
                        self.collect_argument(function, inner.as_ref(), at, &text.into(), &mut secrets);
                    }
                    if keyword.is_some_and(|(name, _)| self.is_secret(function, name)) {
                        // It is no value, but may have several lines.
                        self.collect(function, None, argument, &mut secrets);
                    } else {
                        let at = (positional.get(index).copied(), Some(index));
                        self.collect_argument(function, inner.as_ref(), at, argument, &mut secrets);
                    }
                }
            }
        }
        secrets
    }

    fn collect_argument(
        &self,
        function: &str,
        inner: Option<&Inner>,
        at: At<'_>,
        value: &Value,
        secrets: &mut Secrets,
    ) {
        if let Some((inner, part)) = inner.and_then(|inner| Some((inner, inner.part(at)?))) {
            let function = inner.function.as_str();
            match (part, value) {
                (Part::List, Value::List(lists)) if !inner.functions.is_empty() => {
                    for (index, own) in lists.iter().enumerate() {
                        let own = own.as_list().unwrap_or(std::slice::from_ref(own));
                        secrets.extend(self.secrets(name_at(&inner.functions, index), own));
                    }
                }
                (Part::List, Value::List(items)) => secrets.extend(self.secrets(function, items)),
                (Part::List | Part::Keywords, value) => self.collect(function, None, value, secrets),
                (Part::Keyword, value) => self.collect(function, at.0, value, secrets),
                (Part::Positional(index), value) => {
                    self.collect(function, self.positional(function).get(index).copied(), value, secrets);
                }
            }
        }
        self.collect(function, at.0, value, secrets);
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
                leaf.as_str().into_iter().flat_map(of_text).for_each(|secret| secrets.add_found(secret));
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

/// Returns the name of one of several functions; no name if there is none.
fn name_at(functions: &[Value], index: usize) -> &str {
    functions.get(index).and_then(Value::as_str).unwrap_or_default()
}

/// The name and the position of an argument, as far as it has them.
type At<'a> = (Option<&'a str>, Option<usize>);

/// The function that the arguments of another one name.
struct Inner {
    carrier: &'static Carrier,
    function: String,
    /// The names of several functions, each with a list of arguments; empty if there is one.
    functions: Vec<Value>,
}

/// The role of an argument for the inner function.
enum Part {
    /// Its positional arguments.
    List,
    /// Its keyword arguments.
    Keywords,
    /// One of its keyword arguments.
    Keyword,
    /// Its positional argument at this index.
    Positional(usize),
}

impl Inner {
    fn part(&self, (name, position): At<'_>) -> Option<Part> {
        let is = |parameter: Option<(&str, Option<usize>)>| {
            parameter.is_some_and(|(own, at)| name == Some(own) || (at.is_some() && at == position))
        };
        if is(self.carrier.list) {
            return Some(Part::List);
        }
        if is(self.carrier.keywords) {
            return Some(Part::Keywords);
        }
        match position {
            None => name.filter(|name| !self.carrier.owns(name)).map(|_| Part::Keyword),
            Some(position) => position.checked_sub(self.carrier.rest?).map(Part::Positional),
        }
    }
}

/// Whether data contains a masked value.
pub fn is_masked(value: &Value) -> bool {
    match value {
        Value::Str(text) => texts::is_masked(text),
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
