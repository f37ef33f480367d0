//! The renderer `stateconf`: settings of an SLS that its own template and including SLS files can use, ids that are
//! local to their SLS, and states in the order in which they are written.
//!
//! A first pass renders the text above a line like `# --- end of state config ---` and takes the arguments of
//! `stateconf.set` states as variables for the second pass, which renders the whole file. Arguments that an including
//! SLS sets for such a state below `extend` take precedence, so [`Settings`] live as long as a run. The behaviour is
//! Salt's.

mod order;
mod rename;
#[cfg(test)]
mod tests;

use std::str::FromStr;
use std::sync::LazyLock;

use brine_value::{Map, Value, map};
use indexmap::IndexMap;
use parking_lot::Mutex;
use regex::Regex;

use super::RenderError;

/// The line that ends the part of a file with its settings.
static END: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"#\s*-+\s*end of state config\s*-+").ok());

/// The state whose arguments are settings.
const FUNCTION: &str = "stateconf.set";
const MODULE: &str = "stateconf";
const START: &str = ".start";
const GOAL: &str = ".goal";

/// The requisites of a state on others.
const REQUIRE: [&str; 5] = ["require", "watch", "listen", "onchanges", "onfail"];

/// The options of the renderer: `#!stateconf [-Gosp] [DATA RENDERER . TEMPLATE RENDERER]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Options {
    /// Whether a state `.goal` that requires all others is added.
    goal: bool,
    /// Whether each state requires the one before it.
    order: bool,
    /// Whether a state `.start` is added that the first state requires.
    start: bool,
    /// Whether the input is data.
    pub data: bool,
    /// The renderer of the template's text.
    pub parser: String,
    /// The renderer of the template.
    pub template: String,
}

impl FromStr for Options {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut options = Options {
            goal: true,
            order: false,
            start: false,
            data: false,
            parser: "yaml".to_owned(),
            template: "jinja".to_owned(),
        };
        let mut words = text.split_whitespace().peekable();
        while let Some(flags) = words.peek().and_then(|word| word.strip_prefix('-')).filter(|flags| !flags.is_empty()) {
            for flag in flags.chars() {
                match flag {
                    'G' => options.goal = false,
                    'o' => options.order = true,
                    's' => options.start = true,
                    'p' => options.data = true,
                    _ => return Err(()),
                }
            }
            words.next();
        }
        // Brine's renderers have no options of their own, so only the names count: `yaml . jinja`.
        let rest: Vec<&str> = words.collect();
        if rest.is_empty() {
            return Ok(options);
        }
        let mut parts = rest.split(|word| *word == ".");
        let mut name = || parts.next().and_then(|words| words.first()).map(|name| (*name).to_owned()).ok_or(());
        (options.parser, options.template) = (name()?, name()?);
        Ok(options)
    }
}

/// The settings that the SLS files of a run have set so far.
#[derive(Debug, Default)]
pub struct Settings(Mutex<Collected>);

#[derive(Debug, Default)]
struct Collected {
    /// The arguments of `stateconf.set` states, by id.
    set: IndexMap<Value, Map>,
    /// The arguments of `stateconf.set` states below `extend`, by id.
    extended: IndexMap<Value, Map>,
    /// The requisites below `extend`.
    requisites: order::Extended,
}

impl Settings {
    /// Returns the variables for the template of an SLS: all settings by id, the SLS's own ones without its name as a
    /// prefix.
    pub(super) fn variables(&self, sls: &str) -> Map {
        let prefix = format!("{sls}::");
        let short = |id: &Value| match id.as_str().and_then(|id| id.strip_prefix(&prefix)) {
            Some(local) => local.into(),
            None => id.clone(),
        };
        self.0.lock().set.iter().map(|(id, args)| (short(id), args.clone().into())).collect()
    }

    /// Collects the settings in rendered data.
    fn extract(&self, data: &Map) {
        let mut collected = self.0.lock();
        for (id, states) in data {
            match states {
                Value::Map(extended) if id.as_str() == Some("extend") => {
                    for (id, states) in extended {
                        if let Some(args) = settings_of(states) {
                            collected.extended.entry(id.clone()).or_default().extend(args);
                        }
                    }
                }
                _ => {
                    let Some(args) = settings_of(states) else { continue };
                    let Collected { set, extended, .. } = &mut *collected;
                    let own = set.entry(id.clone()).or_default();
                    own.extend(args);
                    if let Some(extended) = extended.get_mut(id) {
                        for requisite in REQUIRE {
                            if let Some(Value::List(others)) = extended.get_mut(requisite) {
                                others.extend(own.get(requisite).and_then(Value::as_list).unwrap_or_default().to_vec());
                            }
                        }
                        own.extend(extended.clone());
                    }
                }
            }
        }
    }
}

/// Returns the arguments of a `stateconf.set` state.
fn settings_of(states: &Value) -> Option<Map> {
    let states = states.as_map()?;
    let args = states.get(MODULE).or_else(|| states.get(FUNCTION))?;
    let pairs = args.as_list()?.iter().filter_map(|arg| arg.as_map()?.first());
    Some(pairs.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// Returns the part of a source with its settings: the text above the end mark, if there is one.
pub(super) fn head(source: &str) -> Option<&str> {
    let end = END.as_ref()?.find(source)?;
    Some(&source[..end.start()])
}

/// Returns the variable `sls_dir` of templates.
pub(super) fn directory(sls: &str) -> String {
    match sls.rsplit_once('.') {
        Some((above, _)) => above.replace('.', "/"),
        None if sls.is_empty() => ".".to_owned(),
        None => sls.to_owned(),
    }
}

/// Processes rendered data: relative names become absolute, states get their order, and settings are collected.
/// `is_head` is true for the first pass.
///
/// # Errors
/// Names that do not exist, or an order that contradicts the requisites.
pub(super) fn process(
    data: Value,
    sls: &str,
    saltenv: &str,
    options: &Options,
    settings: &Settings,
    is_head: bool,
) -> Result<Value, RenderError> {
    let mut data = match data {
        Value::Map(data) => data,
        Value::Nil => Map::new(),
        // The compiler reports the error.
        other => return Ok(other),
    };
    for (_, states) in &mut data {
        if let Value::Str(function) = states {
            *states = map! {function.as_str() => Vec::<Value>::new()}.into();
        }
    }
    rename::includes(&mut data, sls, saltenv)?;
    if !is_head && options.order {
        order::by_position(&mut data, &mut settings.0.lock().requisites)?;
    }
    if options.start {
        add_start(&mut data, sls)?;
    }
    if !is_head && options.goal {
        add_goal(&mut data)?;
    }
    rename::ids(&mut data, sls)?;
    settings.extract(&data);
    Ok(data.into())
}

/// Returns whether a key of an SLS is the id of states.
fn is_id(id: &Value) -> bool {
    id.as_str().is_none_or(|id| !matches!(id, "include" | "exclude" | "extend") && !id.starts_with("__"))
}

/// Returns the state modules of an id with the arguments.
fn functions(states: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let entries = states.as_map().into_iter().flatten();
    entries.filter_map(|(function, args)| Some((function.as_str()?, args))).filter(|(name, _)| !name.starts_with("__"))
}

/// Returns the module of a state function, such as `pkg` of `pkg.installed`.
fn module(function: &str) -> &str {
    function.split('.').next().unwrap_or(function)
}

fn add_start(data: &mut Map, sls: &str) -> Result<(), RenderError> {
    if data.contains_key(START) {
        return Err(failed(format!("the state {START:?} cannot be added: the SLS has one")));
    }
    if data.is_empty() {
        return Ok(());
    }
    let is_own = |states: &Value| states.get("__sls__").is_none_or(|of| of.as_str() == Some(sls));
    let first = data.iter().find(|(id, states)| is_id(id) && is_own(states));
    let Some((id, function)) = first.and_then(|(id, states)| Some((id, functions(states).next()?.0))) else {
        return Err(failed(format!("the state {START:?} cannot be added: the SLS has no state")));
    };
    let required: Value = map! {module(function) => id.clone()}.into();
    let args: Value = map! {"require_in" => vec![required]}.into();
    data.insert(START.into(), map! {FUNCTION => vec![args]}.into());
    Ok(())
}

fn add_goal(data: &mut Map) -> Result<(), RenderError> {
    if data.contains_key(GOAL) {
        return Err(failed(format!("the state {GOAL:?} cannot be added: the SLS has one")));
    }
    let own = data.iter().filter(|(id, states)| is_id(id) && states.get("__sls__").is_none());
    let required: Vec<Value> = own
        .flat_map(|(id, states)| {
            functions(states).map(move |(function, _)| map! {module(function) => id.clone()}.into())
        })
        .collect();
    let args: Value = map! {"require" => required}.into();
    data.insert(GOAL.into(), map! {FUNCTION => vec![args]}.into());
    Ok(())
}

fn failed(message: String) -> RenderError {
    RenderError::Stateconf(message)
}
