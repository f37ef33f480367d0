//! Arguments that a state function accepts as `**kwargs`, and that neither it nor the state engine knows: misspelt
//! ones, and words of other systems. Functions without `**kwargs` refuse them, as in Salt.

#[cfg(test)]
mod tests;
mod words;

use brine_context::{Context, StateContext};
use brine_function::{Function, Others, Param, ParamKind};
use brine_sls::compile::{Chunk, RequisiteKind};
use brine_sls::lines;
use brine_text::nearest::{nearest, nearest_within};
use brine_value::Value;

use crate::own_args::{OWN_ARGS, is_own};
use crate::source::written;

/// Returns a message about each argument of a state that its function accepts without knowing it.
pub(crate) fn messages(context: &Context, function: &Function<StateContext>, chunk: &Chunk) -> Vec<String> {
    let full = format!("{}.{}", chunk.state, chunk.fun);
    let Some(others) = function.others() else { return Vec::new() };
    if context.minion.custom.has("states", &full) {
        return Vec::new();
    }
    if others == Others::Any {
        return misspelt_requisites(context, &full, chunk);
    }
    let watching = context.minion.states.get(&format!("{}.mod_watch", chunk.state));
    let named = |function: &Function<StateContext>| {
        function.params().iter().filter(|param| param.is_named()).map(|param| param.name)
    };
    let further = further(function);
    let names: Vec<&'static str> =
        named(function).chain(further.iter().copied()).chain(watching.into_iter().flat_map(named)).collect();
    let fills_template = others == Others::Variables && chunk.args.get("template").is_some_and(Value::is_truthy);
    let mut messages = Vec::new();
    for name in chunk.args.keys().filter_map(Value::as_str) {
        if is_of_engine(name) || names.contains(&name) || takes(&further, name) {
            continue;
        }
        let hint = hint(name, &names);
        // With a template, further arguments are its variables: only what is surely meant otherwise is reported.
        if fills_template && !hint.as_ref().is_some_and(|hint| hint.is_sure(name)) {
            continue;
        }
        let place = place(context, chunk, name).map(|place| format!(" ({place})")).unwrap_or_default();
        let hint = hint.map_or_else(|| "it has no effect".to_owned(), |hint| hint.text());
        messages.push(format!("unknown argument '{name}' of {full}{place}: {hint}"));
    }
    messages
}

/// Returns a message about each argument that can only be a misspelt requisite, of a function that accepts any argument.
fn misspelt_requisites(context: &Context, full: &str, chunk: &Chunk) -> Vec<String> {
    let meant = |name: &str| {
        let kinds = RequisiteKind::ALL.into_iter().map(RequisiteKind::name).filter(|kind| kind.len() > 5);
        nearest_within(name, kinds, 1).filter(|_| !is_of_engine(name))
    };
    // The value of a requisite is a list of mappings.
    let is_requisite = |value: &Value| value.as_list().is_some_and(|all| all.iter().any(|one| one.as_map().is_some()));
    let messages = chunk.args.iter().filter(|(_, value)| is_requisite(value)).filter_map(|(name, _)| {
        let name = name.as_str()?;
        let near = meant(name)?;
        let place = place(context, chunk, name).map(|place| format!(" ({place})")).unwrap_or_default();
        Some(format!("unknown argument '{name}' of {full}{place}: did you mean '{near}'?"))
    });
    messages.collect()
}

/// Whether neither a state function nor the state engine knows an argument. Functions that accept any know all.
pub fn is_unknown_argument(context: &Context, function: &str, name: &Value) -> bool {
    let (Some(name), Some(state_function)) = (name.as_str(), context.minion.states.get(function)) else { return false };
    !is_known_argument(state_function, name) && !context.minion.custom.has("states", function)
}

/// Returns what is wrong with an argument that neither a state function with these parameters nor the state engine knows;
/// `None` if it is known. `watching` are the parameters of `mod_watch`, and `fills_template` says that the state has the
/// argument `template`.
pub fn unknown_argument(params: &[Param], watching: &[Param], fills_template: bool, name: &str) -> Option<String> {
    let further: Vec<&'static str> = params.iter().filter(|param| param.is_further()).map(|param| param.name).collect();
    let named = params.iter().chain(watching).filter(|param| param.is_named()).map(|param| param.name);
    let names: Vec<&'static str> = named.chain(further.iter().copied()).collect();
    if is_of_engine(name) || names.contains(&name) || takes(&further, name) {
        return None;
    }
    let others = params.iter().find_map(|param| match param.kind {
        ParamKind::Keywords(others) => Some(others),
        _ => None,
    });
    if others == Some(Others::Any) {
        return None;
    }
    let hint = hint(name, &names);
    if others == Some(Others::Variables) && fills_template && !hint.as_ref().is_some_and(|hint| hint.is_sure(name)) {
        return None;
    }
    Some(hint.map_or_else(
        || if others.is_some() { "it has no effect".to_owned() } else { "the function refuses it".to_owned() },
        |hint| hint.text(),
    ))
}

/// Whether the `**kwargs` of a function accept an argument that they know, or any.
fn accepts(function: &Function<StateContext>, name: &str) -> bool {
    function.others().is_some_and(|others| others == Others::Any || takes(&further(function), name))
}

/// Returns the arguments that a function takes as `**kwargs` and knows.
fn further(function: &Function<StateContext>) -> Vec<&'static str> {
    function.params().iter().filter(|param| param.is_further()).map(|param| param.name).collect()
}

/// Whether one of these names is the name; one that ends in `*` stands for all with that start.
fn takes(further: &[&str], name: &str) -> bool {
    further.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => *pattern == name,
    })
}

/// Whether a state function or the state engine knows an argument, or the function accepts any.
pub fn is_known_argument(function: &Function<StateContext>, name: &str) -> bool {
    let is_declared = function.params().iter().any(|param| param.is_named() && param.name == name);
    is_declared || is_of_engine(name) || accepts(function, name)
}

/// Keys of a chunk that are no arguments of its function.
const ENGINE: [&str; 6] = ["state", "fun", "names", "provider", "beacon", "beacon_data"];

/// Whether an argument is for the state engine.
fn is_of_engine(name: &str) -> bool {
    name.starts_with("__") || ENGINE.contains(&name) || is_own(name) || RequisiteKind::parse(name).is_some()
}

/// What is meant by an unknown argument.
enum Hint {
    /// A misspelt argument.
    Near(String),
    /// What takes the place of a word of another system.
    Instead(&'static str),
    /// Another name of an argument.
    Other(&'static str),
}

impl Hint {
    fn text(&self) -> String {
        match self {
            Hint::Near(name) => format!("did you mean '{name}'?"),
            Hint::Instead(advice) => (*advice).to_owned(),
            Hint::Other(name) => format!("the argument is called '{name}'"),
        }
    }

    /// Whether no variable of a template is called like this: not the plural or singular of an argument.
    fn is_sure(&self, written: &str) -> bool {
        match self {
            Hint::Near(name) => written.len() > 5 && written.trim_end_matches('s') != name.trim_end_matches('s'),
            Hint::Instead(_) => words::is_of_ansible(written),
            Hint::Other(_) => false,
        }
    }
}

fn hint(name: &str, names: &[&'static str]) -> Option<Hint> {
    if let Some(advice) = words::instead_of(name) {
        return Some(Hint::Instead(advice));
    }
    if let Some(other) = words::other_name(name).filter(|other| names.contains(other)) {
        return Some(Hint::Other(other));
    }
    if name.len() < 3 {
        return None;
    }
    let kinds = RequisiteKind::ALL.into_iter().map(RequisiteKind::name);
    nearest(name, names.iter().copied().chain(OWN_ARGS.iter().map(|(name, _)| *name)).chain(kinds))
        .map(|near| Hint::Near(near.into()))
}

/// Returns the sentence that Brine adds to Salt's error about an argument of a function that refuses it.
pub(crate) fn advice(name: &str, params: &[Param]) -> Option<String> {
    let names: Vec<&'static str> = params.iter().filter(|param| param.is_named()).map(|param| param.name).collect();
    hint(name, &names).map(|hint| match hint {
        Hint::Near(name) => format!("Did you mean '{name}'?"),
        Hint::Instead(advice) => format!("Instead of '{name}': {advice}."),
        Hint::Other(name) => format!("Did you mean '{name}'?"),
    })
}

/// Returns the file and line of an argument, as `web/init.sls:4`; the file alone if the line is unknown.
fn place(context: &Context, chunk: &Chunk, name: &str) -> Option<String> {
    let saltenv = if chunk.saltenv.is_empty() { "base" } else { &chunk.saltenv };
    let (path, text) = written(context, &chunk.sls, saltenv)?;
    let line = lines::of_argument(&text, &chunk.id, name);
    Some(line.map_or_else(|| path.clone(), |line| format!("{path}:{line}")))
}
