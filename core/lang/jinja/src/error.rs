//! Errors of templates, in Salt's wording.

use std::fmt::{self, Write};

use minijinja::{Error, ErrorKind};

use super::cause::cause;
use super::diagnose::Missing;
use super::import::{Imports, path_of};
use super::limits::{Budget, LimitExceeded};
use super::messages::{REFUSED, SALT_FUNCTION, UNDEFINED, no_function};
use super::signatures;
use super::syntax::{Document, SourceMap};

/// The number of lines shown before and after the failed one.
const AROUND: usize = 5;

/// The engine's error for a call of an undefined value.
const UNDEFINED_CALL: &str = "value of type undefined is not callable";

/// The error of compiling or rendering a template.
///
/// Displays as in Salt: the message and the line, followed by the surrounding lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JinjaError {
    /// The name of the failed template: the rendered one, or one that it imports or includes.
    pub name: String,
    /// The line in that template, counted from 1.
    pub line: usize,
    /// The message, on one line.
    pub message: String,
    /// The cause in plain words, if the message names classes of Python.
    pub cause: Option<String>,
    /// The surrounding lines, with the failed one marked.
    pub context: String,
    /// Whether the failed template is not the rendered one, but one that it imports or includes.
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

    /// Creates an error about a template as a whole.
    pub(super) fn whole(name: &str, message: String) -> Self {
        let (name, context) = (name.to_owned(), String::new());
        JinjaError { name, line: 1, message, cause: None, context, imported: false, limit: None }
    }

    /// Creates the error of a template, or of one that it imports. `missing` are its failed lookups.
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
        let path = path_of(engine_name).to_owned();
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
        JinjaError { name: path, line, message, cause, context, imported, limit: None }
    }

    /// Returns the same error with the limit that this render has exceeded, if any.
    pub(super) fn limited(mut self, budget: &Budget) -> Self {
        self.limit = budget.exceeded();
        if let Some(limit) = budget.message() {
            let (name, line) = budget.location(&self.name, self.line);
            self.message = format!("render failed: {limit}: {name}, line {line}");
            self.cause = None;
        }
        self
    }
}

/// Returns the undefined name in a message.
fn undefined_name(message: &str) -> Option<&str> {
    message.strip_prefix(UNDEFINED)?.strip_prefix('\'')?.strip_suffix("' is undefined")
}

/// Whether a template has failed with an undefined value.
pub(super) fn is_undefined(error: &Error) -> bool {
    let error = innermost(error);
    let is_named = |detail: &str| detail.contains("` is undefined") || detail == UNDEFINED_CALL;
    error.kind() == ErrorKind::UndefinedError || error.detail().is_some_and(is_named)
}

/// Returns the innermost error, without the outer errors that name the including templates.
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
    // Many kinds of errors end with an undefined expression.
    if let Some(expression) = detail.split("` is undefined").next().filter(|before| before.len() < detail.len()) {
        let expression = expression.rsplit_once('`').map_or(expression, |(_, expression)| expression);
        return undefined(expression, missing);
    }
    if detail == UNDEFINED_CALL
        && let Some(called) = culprit(error).and_then(called)
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
    let argument = || culprit(error)?.split(['\'', '"']).nth(1);
    match error.kind() {
        ErrorKind::UndefinedError if let Some(reported) = culprit(error).and_then(|text| of_filter(error, text)) => {
            format!("{UNDEFINED}{reported}")
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
        ErrorKind::UnknownFilter => unknown("filter", named("filter "), argument()),
        ErrorKind::UnknownTest => unknown("test", named("test "), argument()),
        ErrorKind::SyntaxError => match named("unknown statement ") {
            Some(tag) => format!("Jinja syntax error: Encountered unknown tag {}.", quoted(tag)),
            None => format!("Jinja syntax error: {}", syntax(detail)),
        },
        ErrorKind::BadEscape => "Jinja syntax error: a string has an unknown escape".to_owned(),
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

/// Returns the message for an unknown filter or test: one in a condition or its branches, or one that a filter such as
/// `map` was given.
fn unknown(kind: &str, called: Option<&str>, argument: Option<&str>) -> String {
    match called {
        Some(name) => format!("Jinja syntax error: No {kind} named '{name}' found."),
        None => format!("Jinja syntax error: No {kind} named '{}'.", argument.unwrap_or_default()),
    }
}

/// Returns the message for an undefined result of a filter.
fn of_filter(error: &Error, filter: &str) -> Option<String> {
    let before = error.template_source()?.get(..error.range()?.start)?;
    before.trim_end().strip_suffix('|')?;
    match filter {
        "first" | "last" | "random" => Some(format!("No {filter} item, sequence was empty.")),
        _ => {
            let name = filter.strip_prefix("attr(")?.split(['\'', '"']).nth(1)?;
            Some(format!("'dict object' has no attribute '{name}'"))
        }
    }
}

/// Returns the path of a template in a message with its name for minijinja.
fn own_name(name: &str) -> &str {
    name.split_once("\\x00").map_or(name, |(path, _)| path)
}

/// Returns Jinja's message for an incomplete tag.
fn syntax(detail: &str) -> String {
    match detail {
        "unexpected end of block" => "Expected an expression, got 'end of statement block'".to_owned(),
        "unexpected end of variable block" => "Expected an expression, got 'end of print statement'".to_owned(),
        other => match other.strip_prefix("unexpected `").and_then(|rest| rest.split_once('`')) {
            Some((token, expected)) => match expected.strip_prefix(", expected `") {
                Some(expected) => format!("expected token '{}', got '{token}'", expected.trim_end_matches('`')),
                None => format!("unexpected '{token}'"),
            },
            None => other.to_owned(),
        },
    }
}

/// Returns Python's message for unpacking a sequence of the wrong length.
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

/// Returns Python's message for operands of incompatible types.
fn operands(detail: &str) -> String {
    let words: Vec<&str> = detail.split_whitespace().collect();
    let ["tried", "to", "use", sign, "operator", "on", "unsupported", "types", left, "and", right] = words[..] else {
        return detail.to_owned();
    };
    // The kind of number is unknown; usually it is an integer.
    let (left, right) = (python_type(left), python_type(right));
    match (sign, left) {
        ("+", "str" | "list") => format!("can only concatenate {left} (not \"{right}\") to {left}"),
        _ => format!("unsupported operand type(s) for {sign}: '{left}' and '{right}'"),
    }
}

/// Returns Python's name for a type of minijinja. A number is usually an integer.
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

/// Returns the expression whose lookup failed.
fn looked_up(error: &Error) -> Option<&str> {
    let named = error.detail().and_then(|detail| detail.split_once("` is undefined")).map(|(before, _)| before);
    named.map(|before| before.rsplit_once('`').map_or(before, |(_, expression)| expression)).or_else(|| culprit(error))
}

/// Returns the failed expression.
fn culprit(error: &Error) -> Option<&str> {
    let text = error.template_source()?.get(error.range()?).map(unguarded);
    text.filter(|text| !text.is_empty() && !text.contains('\n'))
}

/// Returns the called expression of a call.
fn called(call: &str) -> Option<&str> {
    match call.strip_prefix('(') {
        Some(inner) => inner.rsplit_once(")(").map(|(called, _)| called),
        None => call.split('(').next(),
    }
}

/// Returns an expression without the guard around it.
fn unguarded(expression: &str) -> &str {
    let expression = expression.trim();
    let inside = expression.strip_prefix("__guard__((").and_then(|rest| rest.rsplit_once("), "));
    inside.map_or(expression, |(inside, _)| inside.trim())
}

/// Returns the message for a path of names whose last name is undefined.
fn undefined(expression: &str, missing: &[Missing]) -> String {
    let expression = expression.trim();
    let is_name = expression.chars().all(|c| c == '_' || c.is_alphanumeric());
    let of_filter = |missing: &&Missing| matches!(missing, Missing::Item(_)) || expression.contains('|');
    if let Some(missing) = missing.last().filter(|_| !is_name).filter(of_filter) {
        return format!("{UNDEFINED}{}", missing.message());
    }
    let unquote = |text: &str| text.trim_matches(['\'', '"']).to_owned();
    let item = expression.strip_suffix(']').and_then(|rest| rest.rsplit_once('['));
    let (parent, name) = match item.or_else(|| expression.rsplit_once('.')) {
        Some((parent, name)) => (parent, unquote(name)),
        None => return format!("{UNDEFINED}'{expression}' is undefined"),
    };
    match parent {
        "salt" => no_function(&name),
        // In Salt, the types of these variables are not plain mappings.
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
        // Its type is unknown here, but usually it is a mapping.
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
