//! What functions, arguments, filters and others are, as Markdown.

use brine_authoring_model::{Catalogue, Signature, Tree, grains};
use brine_function::Param;
use brine_jinja::reference::{self, Entry};
use brine_state::OWN_ARGS;

/// The largest number of arguments in the documentation of a function.
const MAX_ARGUMENTS: usize = 40;

/// The requisites, with their documentation; the inverse ones are arguments of the state engine.
const REQUISITES: [(&str, &str); 11] = [
    ("require", "States that must have succeeded before this one runs."),
    ("require_any", "States one of which must have succeeded before this one runs."),
    ("watch", "As `require`; changes of these states also run `mod_watch` of this one, such as a restart."),
    ("watch_any", "As `require_any`; changes of these states also run `mod_watch` of this one."),
    ("onchanges", "This state runs only if one of these states changed something."),
    ("onchanges_any", "This state runs only if one of these states changed something."),
    ("onfail", "This state runs only if one of these states failed."),
    ("onfail_any", "This state runs only if one of these states failed."),
    ("onfail_all", "This state runs only if all of these states failed."),
    ("prereq", "This state runs before these, and only if they would change something."),
    ("listen", "Changes of these states run `mod_watch` of this one at the end of the run."),
];

/// Returns all arguments that the state engine reads, with their documentation.
pub(crate) fn engine_arguments() -> impl Iterator<Item = (&'static str, &'static str)> {
    REQUISITES.into_iter().chain(OWN_ARGS.iter().copied())
}

/// Returns the documentation of an argument that the state engine reads.
pub(crate) fn engine_argument(name: &str) -> Option<&'static str> {
    engine_arguments().find(|(own, _)| *own == name).map(|(_, text)| text)
}

/// The kinds of functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    States,
    Execution,
    Runners,
    Wheel,
}

/// Returns a function of the catalogue, or a custom one of the tree.
pub(crate) fn function<'a>(catalogue: &'a Catalogue, tree: &'a Tree, of: Of, name: &str) -> Option<&'a Signature> {
    let custom = &tree.index().custom;
    let (own, built_in) = match of {
        Of::States => (&custom.states, &catalogue.states),
        Of::Execution => (&custom.execution, &catalogue.execution),
        Of::Runners => (&custom.runners, &catalogue.runners),
        Of::Wheel => (&custom.wheel, &catalogue.wheel),
    };
    own.get(name).or_else(|| built_in.get(name))
}

/// Returns the documentation of a function.
pub(crate) fn of_function(signature: &Signature) -> String {
    let mut text = format!("```text\n{}\n```\n", call(signature));
    if signature.is_custom {
        text.push_str("\nA custom function of this tree.\n");
    }
    let mut lines = signature.doc.trim().lines().peekable();
    let mut is_example = false;
    while let Some(line) = lines.next() {
        if line.starts_with("    ") && !is_example {
            text.push_str("```text\n");
            is_example = true;
        }
        if is_example {
            text.push_str(line.strip_prefix("    ").unwrap_or(line));
            text.push('\n');
            if lines.peek().is_none_or(|next| !next.is_empty() && !next.starts_with("    ")) {
                text.push_str("```\n");
                is_example = false;
            }
            continue;
        }
        text.push_str(line);
        text.push('\n');
    }
    let params: Vec<&Param> = signature.params.iter().filter(|param| is_shown(param)).collect();
    if !params.is_empty() {
        text.push_str("\n---\n");
    }
    for param in params.iter().take(MAX_ARGUMENTS) {
        text.push_str(&format!("\n- `{}`: {}", param.name, summary(param)));
    }
    if params.len() > MAX_ARGUMENTS {
        text.push_str(&format!("\n- and {} more", params.len() - MAX_ARGUMENTS));
    }
    text
}

/// Whether an argument does something.
pub(crate) fn is_shown(param: &Param) -> bool {
    (param.is_named() || param.is_further()) && !param.name.ends_with('*') && !param.doc.starts_with("Without effect")
}

/// Returns the name with the required arguments, and dots for others.
fn call(signature: &Signature) -> String {
    let required = signature.params.iter().filter(|param| param.is_required()).map(|param| param.name);
    let mut arguments: Vec<&str> = required.collect();
    if arguments.len() < signature.params.len() {
        arguments.push("...");
    }
    format!("{}({})", signature.name, arguments.join(", "))
}

/// Returns type, default and meaning of an argument.
pub(crate) fn summary(param: &Param) -> String {
    let mut text = param.expected.to_owned();
    if param.is_required() {
        text.push_str(", required");
    }
    if let Some(default) = param.default().filter(|default| *default != brine_value::Value::Nil) {
        text.push_str(&format!(", `{default}` by default"));
    }
    let doc = param.doc.trim().replace('\n', " ");
    if !doc.is_empty() {
        text.push_str(". ");
        text.push_str(&doc);
    }
    text
}

/// Returns the documentation of an argument of a function.
pub(crate) fn of_argument(signature: Option<&Signature>, name: &str) -> Option<String> {
    let param = signature.and_then(|signature| signature.param(name));
    match (param, signature) {
        (Some(param), Some(signature)) => Some(format!("`{name}` of `{}`: {}", signature.name, summary(param))),
        _ => engine_argument(name).map(|text| format!("`{name}`: {text}")),
    }
}

/// Returns the documentation of an entry of Jinja's reference.
pub(crate) fn of_entry(entries: &'static [Entry], name: &str) -> Option<String> {
    let entry = entries.iter().find(|(syntax, _)| first_word(syntax) == name)?;
    Some(format!("```jinja\n{}\n```\n{}", entry.0.replace('`', ""), entry.1))
}

/// Returns the name of an entry of Jinja's reference.
pub(crate) fn first_word(syntax: &str) -> &str {
    syntax.split(['(', ' ', '`']).next().unwrap_or(syntax)
}

/// Returns the documentation of a variable or function that templates have.
pub(crate) fn of_variable(name: &str) -> Option<String> {
    of_entry(reference::VARIABLES, name).or_else(|| of_entry(reference::GLOBALS, name))
}

/// Returns the documentation of a grain.
pub(crate) fn of_grain(path: &[String]) -> Option<String> {
    let name = path.first()?;
    grains::documentation(name).map(|text| format!("Grain `{}`: {text}", path.join(":")))
}
