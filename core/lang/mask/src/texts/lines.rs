//! Secrets in lines `name: value` and `name=value`: block YAML, HTTP headers, files of settings, forms.

use std::borrow::Cow;

use super::flow::{decoded, end_of_quotes, is_flow, is_option};
use super::{Secret, next_pair};

/// An entry of a line.
#[derive(Debug, Clone, Copy)]
struct Entry<'a> {
    /// The position of the name in its line.
    column: usize,
    name: &'a str,
    /// The position of the value in the line.
    value: usize,
    /// Whether a colon precedes the value, which may then continue on the next lines.
    is_yaml: bool,
}

/// Returns the secret values of a text, in order.
pub(super) fn values(text: &str, is_secret: impl Fn(&str) -> bool) -> impl Iterator<Item = Secret<'_>> {
    let mut at = 0;
    // The rest of a form.
    let mut form = 0..0;
    std::iter::from_fn(move || {
        loop {
            if let Some(secret) = next_pair(text, &mut form, &is_secret) {
                return Some(secret);
            }
            if at >= text.len() {
                return None;
            }
            let begin = at;
            let line = line_at(text, begin);
            at = begin + line.len() + 1;
            let content = line.trim_end();
            let Some(entry) = entry(content) else { continue };
            let value = &content[entry.value..];
            let is_secret_name = is_secret(entry.name);
            if !entry.is_yaml {
                if is_secret_name && !value.is_empty() && !is_option(value) {
                    return Some(Secret { name: Some(entry.name), range: begin + entry.value..begin + content.len() });
                }
                if value.contains('&') && !value.contains(char::is_whitespace) {
                    form = begin + entry.column..begin + content.len();
                }
                continue;
            }
            if (!is_secret_name && !is_flow(value)) || is_option(value) {
                continue;
            }
            let end = end_of_value(text, begin, content.len(), &entry);
            let start = if value.is_empty() { (begin + line.len() + 1).min(end) } else { begin + entry.value };
            let range = start..end;
            at = if end > begin + content.len() { end + 1 } else { at };
            let holds_secret = |text: &str| super::flow::entries(text, &is_secret).any(|one| !one.is_option());
            if range.is_empty() || !(is_secret_name || holds_secret(&text[range.clone()])) {
                continue;
            }
            return Some(Secret { name: is_secret_name.then_some(entry.name), range });
        }
    })
}

/// Returns the line that begins here, without its end.
fn line_at(text: &str, begin: usize) -> &str {
    let rest = &text[begin..];
    &rest[..rest.find('\n').unwrap_or(rest.len())]
}

/// Returns the end of a value: the lines below that are indented further belong to it, and the items of a list.
fn end_of_value(text: &str, begin: usize, length: usize, entry: &Entry<'_>) -> usize {
    let mut end = begin + length;
    let mut at = begin + line_at(text, begin).len() + 1;
    while at < text.len() {
        let line = line_at(text, at);
        let content = line.trim_end();
        let indent = line.len() - line.trim_start().len();
        let is_item = entry.value == length && indent == entry.column && content[indent..].starts_with("- ");
        if !content.is_empty() && indent <= entry.column && !is_item {
            break;
        }
        if !content.is_empty() {
            end = at + content.len();
        }
        at += line.len() + 1;
    }
    end
}

/// Parses a line.
fn entry(line: &str) -> Option<Entry<'_>> {
    let mut column = line.len() - line.trim_start().len();
    for prefix in ["- ", "export "] {
        while let Some(rest) = line[column..].strip_prefix(prefix) {
            column = line.len() - rest.trim_start().len();
        }
    }
    let rest = &line[column..];
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
    let (name, behind) = if let Some(quote) = quote {
        let end = end_of_quotes(&rest[1..], quote)?;
        (&rest[1..=end], &rest[end + 2..])
    } else {
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        rest.split_at(rest.find(|c| !is_name(c)).unwrap_or(rest.len()))
    };
    let sign = behind.trim_start_matches([' ', '\t']);
    let is_yaml = sign.starts_with(':');
    let value = sign.strip_prefix([':', '='])?;
    if name.is_empty() || (is_yaml && !(value.is_empty() || value.starts_with([' ', '\t']))) {
        return None;
    }
    Some(Entry { column, name, value: line.len() - value.trim_start().len(), is_yaml })
}

/// Returns the parts of a value that are secrets: its lines, and of entries below it those with a secret name.
pub(super) fn parts(value: &str, is_secret: impl Fn(&str) -> bool) -> impl Iterator<Item = Cow<'_, str>> {
    // A text with an indicator (`|`) has no entries.
    let is_scalar = value.starts_with(['|', '>']) && value.contains('\n');
    let has_entries = !is_scalar && (value.contains('\n') || value.trim_start().starts_with("- "));
    value.lines().skip(usize::from(is_scalar)).filter_map(move |line| {
        let line = line.trim();
        if is_scalar {
            return (!line.is_empty()).then_some(line.into());
        }
        let line = line.strip_prefix("- ").unwrap_or(line).trim_start();
        match entry(line).filter(|entry| has_entries && entry.is_yaml) {
            Some(entry) => (is_secret(entry.name) && entry.value < line.len()).then(|| unquoted(&line[entry.value..])),
            None => (!line.is_empty()).then(|| unquoted(line)),
        }
    })
}

fn unquoted(value: &str) -> Cow<'_, str> {
    match value.chars().next() {
        Some(quote @ ('"' | '\'')) if value.len() > 1 && value.ends_with(quote) => {
            decoded(&value[1..value.len() - 1], Some(quote))
        }
        _ => value.into(),
    }
}
