//! What went wrong in a template, in Salt's words.

use std::fmt::{self, Write};

use minijinja::{Error, ErrorKind};

use super::cause::cause;
use super::diagnose::Missing;
use super::guard::REFUSED;
use super::import::{Imports, path_of};
use super::limits::{Budget, LimitExceeded};
use super::signatures;
use super::syntax::{Document, SourceMap};

/// How many lines around the culprit are shown on each side.
const AROUND: usize = 5;

/// How an error begins that a function of the host gave.
pub(super) const SALT_FUNCTION: &str = "Problem running salt function in Jinja template: ";

/// How an error begins that tells of something undefined in whole.
pub(super) const UNDEFINED: &str = "Jinja variable ";

/// A template cannot be compiled or rendered.
///
/// Displays as Salt shows it: the message and the line, and below them the lines around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JinjaError {
    /// The name of the template that the error is in: the one that was rendered, or one that it reads.
    pub name: String,
    /// The line in that template, counted from 1.
    pub line: usize,
    /// What is wrong, in one line.
    pub message: String,
    /// The plain cause, where the message names classes of Python.
    pub cause: Option<String>,
    /// The lines around it, the culprit marked.
    pub context: String,
    /// Whether it is in a template that the rendered one reads.
    pub imported: bool,
    /// The limit that the render has exceeded.
    pub limit: Option<LimitExceeded>,
}

impl fmt::Display for JinjaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JinjaError { name, line, context, imported, .. } = self;
        let message = self.summary();
        if *imported {
            write!(f, "{message}\n{name}({line}):\n{context}")
        } else {
            write!(f, "{message}; line {line}\n\n{context}")
        }
    }
}

impl std::error::Error for JinjaError {}

impl JinjaError {
    /// Returns the message with its plain cause, in one line.
    pub fn summary(&self) -> String {
        match &self.cause {
            Some(cause) => format!("{} ({cause})", self.message),
            None => self.message.clone(),
        }
    }

    /// An error about a template as a whole.
    pub(super) fn whole(name: &str, message: String) -> Self {
        let (name, context) = (name.to_owned(), String::new());
        JinjaError { name, line: 1, message, cause: None, context, imported: false, limit: None }
    }

    /// Creates the error of a template, or of one that it imports. `missing` are its lookups that found nothing.
    pub(super) fn new(
        name: &str,
        document: &Document,
        map: &SourceMap,
        error: &Error,
        imports: Option<&Imports>,
        missing: &[Missing],
    ) -> Self {
        let error = innermost(error);
        let engine_name = error.name().unwrap_or(name);
        let place = path_of(engine_name).to_owned();
        let imported = engine_name != name;
        let read = if imported { imports.and_then(|imports| imports.template(engine_name)) } else { None };
        let (document, map, prologue) = match &read {
            Some((read, prologue)) => (&read.document, &read.map, *prologue),
            None => (document, map, 0),
        };
        let is_syntax = matches!(error.kind(), ErrorKind::SyntaxError | ErrorKind::BadEscape);
        let line = match error.range().filter(|_| !is_syntax) {
            Some(range) => document.reported_line(map.source(range.start.saturating_sub(prologue))),
            None => document.reported_line_of(error.line().unwrap_or(1)),
        };
        let (mut message, mut line) = (message(error, imports, missing), line);
        if let Some(name) = undefined_name(&message)
            && let Some((template, at)) = document.imported(name)
        {
            message = format!(
                "{UNDEFINED}the template '{template}' (imported on line {at}) does not export the requested name '{name}'"
            );
        } else if let Some(name) = undefined_name(&message)
            && let Some(parameter) = document.parameter(name, line)
        {
            message = format!("{UNDEFINED}{parameter}");
        }
        if is_syntax && let Some((wrong, at)) = document.error() {
            (message, line) = (format!("Jinja syntax error: {wrong}"), at);
        }
        let context = context(document.source(), line);
        let cause = cause(&message, looked_up(error));
        JinjaError { name: place, line, message, cause, context, imported, limit: None }
    }

    /// The same error, which tells of the limit that this render has exceeded, if it has.
    pub(super) fn limited(mut self, budget: &Budget) -> Self {
        self.limit = budget.exceeded();
        if let Some(limit) = budget.message() {
            let (name, line) = budget.place(&self.name, self.line);
            self.message = format!("render failed: {limit}: {name}, line {line}");
            self.cause = None;
        }
        self
    }
}

/// The name that a message says is undefined.
fn undefined_name(message: &str) -> Option<&str> {
    message.strip_prefix(UNDEFINED)?.strip_prefix('\'')?.strip_suffix("' is undefined")
}

/// Whether a template has failed of something undefined.
pub(super) fn is_undefined(error: &Error) -> bool {
    let error = innermost(error);
    error.kind() == ErrorKind::UndefinedError || error.detail().is_some_and(|detail| detail.contains("` is undefined"))
}

/// The error inside of those that say in which included template it was.
fn innermost(error: &Error) -> &Error {
    let mut error = error;
    while matches!(error.kind(), ErrorKind::BadInclude | ErrorKind::EvalBlock) {
        match std::error::Error::source(error).and_then(|source| source.downcast_ref::<Error>()) {
            Some(source) => error = source,
            None => break,
        }
    }
    error
}

fn message(error: &Error, imports: Option<&Imports>, missing: &[Missing]) -> String {
    let detail = error.detail().unwrap_or_default();
    if detail.starts_with(SALT_FUNCTION) || detail.starts_with(UNDEFINED) || detail.starts_with(REFUSED) {
        return detail.to_owned();
    }
    if detail.starts_with("can only assign to namespaces") {
        return "Jinja syntax error: cannot assign attribute on non-namespace object".to_owned();
    }
    // Many kinds of errors say in the end that an expression was undefined.
    if let Some(expression) = detail.split("` is undefined").next().filter(|before| before.len() < detail.len()) {
        let expression = expression.rsplit_once('`').map_or(expression, |(_, expression)| expression);
        return undefined(expression, missing);
    }
    if detail == "value of type undefined is not callable"
        && let Some(called) = culprit(error).and_then(|text| text.split('(').next())
    {
        return undefined(called, missing);
    }
    if matches!(error.kind(), ErrorKind::TooManyArguments | ErrorKind::MissingArgument)
        && let Some(refused) = culprit(error).and_then(signatures::refused)
    {
        return format!("Jinja error: {refused}");
    }
    let quoted = |name: &str| format!("'{name}'");
    let first_word = || detail.split_whitespace().next().unwrap_or_default();
    let named = |prefix: &str| detail.strip_prefix(prefix).and_then(|rest| rest.split_whitespace().next());
    // Such as `map('nope')`.
    let given = || culprit(error)?.split('\'').nth(1);
    match error.kind() {
        ErrorKind::UndefinedError if let Some(told) = culprit(error).and_then(|text| of_filter(error, text)) => {
            format!("{UNDEFINED}{told}")
        }
        ErrorKind::UndefinedError => {
            let expression = culprit(error).unwrap_or("?");
            undefined(super::formatting::culprit(error, expression).unwrap_or(expression), missing)
        }
        ErrorKind::UnknownFunction => format!("{UNDEFINED}{} is undefined", quoted(first_word())),
        ErrorKind::UnknownMethod => {
            let method = detail.rsplit_once("named ").map_or(detail, |(_, name)| name);
            let object = match detail.split_whitespace().next() {
                Some("map") => "dict object",
                Some("string") => "str object",
                Some("sequence") => "list object",
                Some("number") => "int object",
                Some("bool") => "bool object",
                Some("none") => {
                    return format!("{UNDEFINED}'None' has no attribute {}", quoted(method.trim_matches('`')));
                }
                Some(other) => other,
                None => "object",
            };
            format!("{UNDEFINED}'{object}' has no attribute {}", quoted(method.trim_matches('`')))
        }
        ErrorKind::UnknownFilter => {
            format!(
                "Jinja syntax error: No filter named {}.",
                quoted(named("filter ").or_else(given).unwrap_or_default())
            )
        }
        ErrorKind::UnknownTest => {
            format!("Jinja syntax error: No test named {}.", quoted(named("test ").or_else(given).unwrap_or_default()))
        }
        ErrorKind::SyntaxError => match named("unknown statement ") {
            Some(tag) => format!("Jinja syntax error: Encountered unknown tag {}.", quoted(tag)),
            None => format!("Jinja syntax error: {}", syntax(detail)),
        },
        ErrorKind::BadEscape => "Jinja syntax error: a text has an escape that is not known".to_owned(),
        ErrorKind::TemplateNotFound => {
            if detail.starts_with("tried to include one of multiple templates") {
                let names: Vec<&str> = detail.split('\'').skip(1).step_by(2).map(own_name).collect();
                return format!("Jinja error: none of the templates given were found: {}", names.join(", "));
            }
            let missing = imports.and_then(Imports::missing);
            format!("Jinja error: {}", missing.as_deref().unwrap_or(detail))
        }
        _ if detail.starts_with("unable to calculate") && detail.ends_with(" / 0") => {
            "Jinja error: division by zero".to_owned()
        }
        _ if detail.starts_with("sequence of wrong length") => format!("Jinja error: {}", unpacking(detail)),
        _ if detail.starts_with("tried to use ") => format!("Jinja error: {}", operands(detail)),
        _ if detail == "cannot super outside of block" => format!("{UNDEFINED}'super' is undefined"),
        _ if detail == "filter name is required" => "Jinja syntax error: map requires a filter argument".to_owned(),
        _ if detail.ends_with(" is not iterable") && culprit(error).is_some_and(|call| call.starts_with(".join(")) => {
            "Jinja error: can only join an iterable".to_owned()
        }
        _ if detail == "range has too many elements" => {
            "Jinja error: Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).".to_owned()
        }
        _ if detail.starts_with("missing an argument for format spec") => {
            "Jinja error: not enough arguments for format string".to_owned()
        }
        _ if detail == "format argument must be a mapping" => "Jinja error: format requires a mapping".to_owned(),
        _ if detail.ends_with(" is not iterable") && !detail.contains('\'') => {
            let kind = detail.trim_end_matches(" is not iterable");
            format!("Jinja error: '{}' object is not iterable", python_type(kind))
        }
        _ if let Some(kind) =
            detail.strip_prefix("value of type ").and_then(|rest| rest.strip_suffix(" is not callable")) =>
        {
            format!("Jinja error: '{}' object is not callable", python_type(kind))
        }
        kind if detail.is_empty() => format!("Jinja error: {kind}"),
        _ => format!("Jinja error: {detail}"),
    }
}

/// What is said of what a filter gave that is undefined.
fn of_filter(error: &Error, filter: &str) -> Option<String> {
    let before = error.template_source()?.get(..error.range()?.start)?;
    before.trim_end().strip_suffix('|')?;
    match filter {
        "first" | "last" => Some(format!("No {filter} item, sequence was empty.")),
        _ => {
            let name = filter.strip_prefix("attr(")?.split('\'').nth(1)?;
            Some(format!("'dict object' has no attribute '{name}'"))
        }
    }
}

/// The path of a template in a text that shows its name for minijinja.
fn own_name(shown: &str) -> &str {
    shown.split_once("\\x00").map_or(shown, |(path, _)| path)
}

/// What Jinja says of a tag that ends too soon.
fn syntax(detail: &str) -> String {
    match detail {
        "unexpected end of block" => "Expected an expression, got 'end of statement block'".to_owned(),
        "unexpected end of variable block" => "Expected an expression, got 'end of print statement'".to_owned(),
        other => match other.strip_prefix("unexpected `").and_then(|rest| rest.split_once('`')) {
            Some((found, expected)) => match expected.strip_prefix(", expected `") {
                Some(expected) => format!("expected token '{}', got '{found}'", expected.trim_end_matches('`')),
                None => format!("unexpected '{found}'"),
            },
            None => other.to_owned(),
        },
    }
}

/// What Python says of a sequence that has not as many items as there are names for them.
fn unpacking(detail: &str) -> String {
    let mut numbers = detail.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse::<usize>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(expected), Some(got)) if got < expected => {
            format!("not enough values to unpack (expected {expected}, got {got})")
        }
        (Some(expected), _) => format!("too many values to unpack (expected {expected})"),
        _ => detail.to_owned(),
    }
}

/// What Python says of operands that do not go together.
fn operands(detail: &str) -> String {
    let words: Vec<&str> = detail.split_whitespace().collect();
    let ["tried", "to", "use", sign, "operator", "on", "unsupported", "types", left, "and", right] = words[..] else {
        return detail.to_owned();
    };
    // Which kind of number is not told; nearly always it is a whole one.
    let (left, right) = (python_type(left), python_type(right));
    match (sign, left) {
        ("+", "str" | "list") => format!("can only concatenate {left} (not \"{right}\") to {left}"),
        _ => format!("unsupported operand type(s) for {sign}: '{left}' and '{right}'"),
    }
}

/// What Python calls what minijinja calls so. A number is most often a whole one.
fn python_type(kind: &str) -> &'static str {
    match kind {
        "string" => "str",
        "number" => "int",
        "sequence" => "list",
        "map" => "dict",
        "none" => "NoneType",
        "bool" => "bool",
        "bytes" => "bytes",
        "undefined" => "Undefined",
        _ => "object",
    }
}

/// A function of the host that is not there.
pub(super) fn missing_function(name: &str) -> Error {
    Error::new(ErrorKind::UndefinedError, no_function(name))
}

/// A function that a module of the host does not have.
pub(super) fn missing_in_module(name: &str) -> Error {
    Error::new(
        ErrorKind::UndefinedError,
        format!("{UNDEFINED}'salt.loader.lazy.LoadedMod object' has no attribute '{name}'"),
    )
}

fn no_function(name: &str) -> String {
    format!("{UNDEFINED}'salt.utils.templates.AliasedLoader object' has no attribute '{name}'")
}

/// The expression that looked up what is missing.
fn looked_up(error: &Error) -> Option<&str> {
    let named = error.detail().and_then(|detail| detail.split_once("` is undefined")).map(|(before, _)| before);
    named.map(|before| before.rsplit_once('`').map_or(before, |(_, expression)| expression)).or_else(|| culprit(error))
}

/// The text of the expression that the error is about.
fn culprit(error: &Error) -> Option<&str> {
    let text = error.template_source()?.get(error.range()?).map(unguarded);
    text.filter(|text| !text.is_empty() && !text.contains('\n'))
}

/// An expression without the guard that it is printed through.
fn unguarded(expression: &str) -> &str {
    let expression = expression.trim();
    let inside = expression.strip_prefix("__guard__((").and_then(|rest| rest.rsplit_once("), "));
    inside.map_or(expression, |(inside, _)| inside.trim())
}

/// What is said of a path of names of which the last is not there.
fn undefined(expression: &str, missing: &[Missing]) -> String {
    let expression = expression.trim();
    let unquote = |text: &str| text.trim_matches(['\'', '"']).to_owned();
    let item = expression.strip_suffix(']').and_then(|rest| rest.rsplit_once('['));
    let (parent, name) = match item.or_else(|| expression.rsplit_once('.')) {
        Some((parent, name)) => (parent, unquote(name)),
        None => return format!("{UNDEFINED}'{expression}' is undefined"),
    };
    match parent {
        "salt" => no_function(&name),
        // These are no plain mappings in Salt.
        "opts" => format!("{UNDEFINED}'salt.utils.optsdict.OptsDict object' has no attribute '{name}'"),
        "grains" | "pillar" => {
            format!("{UNDEFINED}'salt.utils.optsdict.DictProxy object' has no attribute '{name}'")
        }
        _ if let Some(missing) = missing.iter().rfind(|missing| missing.is(&name)).or(missing.last()) => {
            missing.refused().unwrap_or_else(|| format!("{UNDEFINED}{}", missing.message()))
        }
        _ if item.is_some_and(|(_, index)| index.parse::<i64>().is_ok()) => {
            format!("{UNDEFINED}list object has no element {name}")
        }
        // Its type is not known here, but what lacks something is nearly always a mapping.
        _ => format!("{UNDEFINED}'dict object' has no attribute '{name}'"),
    }
}

fn context(source: &str, line: usize) -> String {
    let lines: Vec<&str> = source.lines().collect();
    let first = line.saturating_sub(AROUND + 1);
    let last = (line + AROUND).min(lines.len());
    let mut out = String::from("---\n");
    // Writing into a `String` cannot fail.
    if first > 0 {
        _ = writeln!(out, "[...]");
    }
    for (i, text) in lines.iter().enumerate().take(last).skip(first) {
        let mark = if i + 1 == line { "    <======================" } else { "" };
        _ = writeln!(out, "{text}{mark}");
    }
    if last < lines.len() {
        _ = writeln!(out, "[...]");
    }
    out.push_str("---");
    out
}
