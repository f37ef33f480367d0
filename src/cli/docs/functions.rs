//! The reference of functions in Markdown: a section a function, with its signature, text, arguments and example. The
//! pages of docs/reference are made of the same sections, by tests/docs.

use std::fmt::Write as _;

use brine_function::{Function, Others, Param, ParamKind};
use brine_value::{Value, json};

use super::tables::{code, row, table};

/// A kind of functions.
pub struct Kind {
    /// Directory of its pages below docs/reference, and name of its index.
    pub directory: &'static str,
    /// Title of its index.
    pub title: &'static str,
    /// Introduction of its index.
    pub about: &'static str,
    /// Title of the page of a module.
    pub one: &'static str,
    /// Language of the examples.
    pub language: &'static str,
    /// Whether the index lists names alone.
    pub is_large: bool,
}

/// The execution functions.
pub const EXECUTION: Kind = Kind {
    directory: "modules",
    title: "Execution functions",
    about: "Execution functions do one thing on a minion, now: `salt '*' test.ping`, `salt-call test.ping`, and \
            `salt['test.ping']()` in templates. `salt-call sys.doc FUNCTION` prints the same text.\n\n\
            The other kinds have an index of their own: [state functions](states.md), [runner functions](runners.md), \
            [wheel functions](wheel.md).",
    one: "Execution functions of",
    language: "shell",
    is_large: true,
};

/// The state functions.
pub const STATES: Kind = Kind {
    directory: "states",
    title: "State functions",
    about: "State functions are named in SLS files: `pkg.installed` ensures that a package is installed, and does nothing \
            if it is. `salt-call sys.state_doc FUNCTION` prints the same text.",
    one: "State functions of",
    language: "yaml",
    is_large: false,
};

/// The runner functions.
pub const RUNNERS: Kind = Kind {
    directory: "runners",
    title: "Runner functions",
    about: "Runner functions run on the master: `salt-run FUNCTION`, and as reactions. `salt-run -d FUNCTION` prints the \
            same text.",
    one: "Runner functions of",
    language: "shell",
    is_large: false,
};

/// The wheel functions.
pub const WHEEL: Kind = Kind {
    directory: "wheel",
    title: "Wheel functions",
    about: "Wheel functions change the master itself: its keys, configuration and files. They are called by the REST API, \
            by `salt.wheel` in orchestrations, and as reactions.",
    one: "Wheel functions of",
    language: "shell",
    is_large: false,
};

/// Returns the anchor of a heading, as GitHub, mdBook and MkDocs make it.
pub fn anchor(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect::<String>().to_lowercase()
}

/// Returns the first paragraph of the documentation.
pub fn summary<C>(function: &Function<C>) -> String {
    let (about, _) = function.about_and_examples();
    markdown(&about.split("\n\n").next().unwrap_or_default().replace('\n', " "))
}

/// Returns the section of a function: its signature, text, arguments and examples.
pub fn section<C>(kind: &Kind, function: &Function<C>) -> String {
    let (about, examples) = function.about_and_examples();
    let mut text = format!("## {}\n\n", function.full_name());
    if kind.directory != STATES.directory {
        _ = write!(text, "`{}`\n\n", function.signature());
    }
    _ = write!(text, "{}\n\n", paragraphs(about));
    let rows: Vec<String> =
        function.parameter_groups().into_iter().filter(|group| is_shown(group)).map(arguments).collect();
    if !rows.is_empty() {
        _ = writeln!(text, "{}", table(&["argument", "type", "default", "meaning"], rows));
    }
    if let Some((_, example)) = examples.split_once("\n\n") {
        _ = write!(text, "```{}\n{}\n```\n", kind.language, unindented(example));
    }
    text
}

/// What a state with a template does with arguments that it does not know.
const VARIABLES: &str = "With `template`, variables of the template, beside those of `context`.";

/// Whether parameters have a row: all but `*args` and `**kwargs` that the function does not use.
fn is_shown(group: &[Param]) -> bool {
    group.iter().all(|param| !is_unused(param) || matches!(param.kind, ParamKind::Keywords(Others::Variables)))
}

/// Returns the row of a parameter, or of keywords with the same documentation.
fn arguments(group: &'static [Param]) -> String {
    let Some(param) = group.first() else { return String::new() };
    let name = param.name.trim_start_matches('_');
    let (name, kind, default) = match param.kind {
        ParamKind::Required => (code(name), param.expected, "required".to_owned()),
        ParamKind::Optional(_) | ParamKind::Given(_) => {
            (code(name), param.expected, code(&written(&param.default().unwrap_or_default())))
        }
        ParamKind::Further => {
            let names: Vec<String> = group.iter().map(|param| code(param.name)).collect();
            (names.join(", "), param.expected, String::new())
        }
        ParamKind::Rest => (code(&format!("*{name}")), "any number of values", String::new()),
        ParamKind::Keywords(_) => (code(&format!("**{name}")), "further arguments", String::new()),
    };
    let doc = if matches!(param.kind, ParamKind::Keywords(Others::Variables)) { VARIABLES } else { param.doc };
    row(&[&name, kind, &default, &markdown(&in_one_line(doc))])
}

/// Returns a default as it is written in YAML; empty for none.
fn written(value: &Value) -> String {
    match value {
        Value::Nil => String::new(),
        Value::Str(text) if text.is_empty() => "''".into(),
        Value::Str(text) => text.clone(),
        Value::Bool(flag) => if *flag { "True" } else { "False" }.into(),
        other => json::to_json(other),
    }
}

fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns text in which nothing outside of code is taken for HTML.
fn markdown(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let part = |(index, part): (usize, &str)| if index % 2 == 0 { part.replace('<', "\\<") } else { part.to_owned() };
    parts.map(part).collect::<Vec<_>>().join("`")
}

/// Returns paragraphs; indented ones are code.
fn paragraphs(text: &str) -> String {
    let one = |paragraph: &str| {
        if paragraph.starts_with("    ") || paragraph.starts_with("- ") {
            paragraph.to_owned()
        } else {
            markdown(paragraph)
        }
    };
    text.split("\n\n").map(one).collect::<Vec<_>>().join("\n\n")
}

/// Returns an example without its indentation.
pub fn unindented(text: &str) -> String {
    let lines = text.trim_end().lines().map(|line| line.strip_prefix("    ").unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether the function does not use what it takes as `*args` or `**kwargs`.
pub fn is_unused(param: &Param) -> bool {
    match param.kind {
        ParamKind::Keywords(Others::Unused | Others::Variables) => true,
        ParamKind::Keywords(Others::Any) | ParamKind::Rest => param.name.starts_with('_'),
        _ => false,
    }
}
