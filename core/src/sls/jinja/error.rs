//! What went wrong in a template, in Salt's words.

use std::fmt::Write;

use minijinja::{Error, ErrorKind};

/// How many lines around the culprit are shown on each side.
const AROUND: usize = 5;

/// A template cannot be compiled or rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}; line {line}\n\n{context}")]
pub struct JinjaError {
    /// The template's name.
    pub name: String,
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
    /// The lines around it, the culprit marked.
    pub context: String,
}

impl JinjaError {
    pub(super) fn new(name: &str, source: &str, error: &Error) -> Self {
        let line = error.line().unwrap_or(1);
        let culprit = error.range().and_then(|range| source.get(range)).map(str::trim);
        let detail = error.detail().unwrap_or_default();
        let in_this = error.name().is_none_or(|other| other == name);
        let message = match error.kind() {
            ErrorKind::UndefinedError => match culprit.filter(|_| in_this) {
                Some(text) if !text.is_empty() && !text.contains('\n') => undefined(text),
                _ => format!("Jinja variable is undefined: {detail}"),
            },
            ErrorKind::SyntaxError | ErrorKind::UnknownFilter | ErrorKind::UnknownTest | ErrorKind::UnknownBlock => {
                format!("Jinja syntax error: {}", if detail.is_empty() { error.to_string() } else { detail.to_owned() })
            }
            ErrorKind::InvalidOperation if detail.starts_with("Problem running salt function") => detail.to_owned(),
            _ => format!("Jinja error: {}", if detail.is_empty() { error.to_string() } else { detail.to_owned() }),
        };
        let context = context(source, line);
        JinjaError { name: error.name().unwrap_or(name).to_owned(), line, message, context }
    }
}

/// What is said of a path of names of which the last is not there.
fn undefined(expression: &str) -> String {
    let last = expression.rsplit_once(['.', '[']).map(|(rest, last)| (rest, last.trim_matches(['\'', '"', ']'])));
    match last {
        Some((_, attribute)) => format!("Jinja variable 'dict object' has no attribute '{attribute}'"),
        None => format!("Jinja variable '{expression}' is undefined"),
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
