//! Filters for regular expressions, as Python's `re`.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use fancy_regex::{Regex, RegexBuilder};
use minijinja::value::{Tuple, Value as JinjaValue, ValueKind};
use minijinja::{Environment, Error};
use parking_lot::Mutex;

use super::super::data::{raise, refuse_undefined, type_name};
use super::super::limits;
use super::{Args, Options, by_name, first_and_others};

/// The maximum number of cached patterns.
const KEPT: usize = 256;

/// The maximum size of a compiled pattern and of its cache, in bytes.
const COMPILED: usize = 1 << 20;

static PATTERNS: LazyLock<Mutex<HashMap<String, Arc<Regex>>>> = LazyLock::new(Mutex::default);

pub(super) fn add_to(environment: &mut Environment<'static>) {
    by_name(environment, "regex_replace", &["rgx", "val", "ignorecase", "multiline"], replace);
    by_name(
        environment,
        "regex_search",
        &["rgx", "ignorecase", "multiline"],
        |text: JinjaValue, pattern: String, options: Args| find(&matched(&text)?, &pattern, &options, false),
    );
    by_name(
        environment,
        "regex_match",
        &["rgx", "ignorecase", "multiline"],
        |text: JinjaValue, pattern: String, options: Args| find(&matched(&text)?, &pattern, &options, true),
    );
    environment.add_filter("regex_escape", |text: JinjaValue| {
        refuse_undefined(&text)?;
        let refused = || raise(format_args!("decoding to str: need a bytes-like object, {} found", type_name(&text)));
        super::counted(escape(text.as_str().ok_or_else(refused)?))
    });
    environment.add_test("match", |text: JinjaValue, args: Args| {
        let (pattern, options) = first_and_others("rgx", args)?;
        find(&matched(&text)?, &pattern, &options, true).map(|found| !found.is_none())
    });
}

/// Returns the string to search.
fn matched(text: &JinjaValue) -> Result<String, Error> {
    refuse_undefined(text)?;
    match text.kind() {
        ValueKind::String => {
            let text = text.as_str().unwrap_or_default();
            limits::reserve(text.len()).map(|()| text.to_owned())
        }
        _ => Err(raise(format_args!("expected string or bytes-like object, got '{}'", type_name(text)))),
    }
}

/// Returns the compiled pattern, with the options `ignorecase` and `multiline`, in this order.
fn compile(pattern: &str, options: &Args) -> Result<Arc<Regex>, Error> {
    let options = Options::new(options)?;
    let flags: String = [(0, "ignorecase", 'i'), (1, "multiline", 'm')]
        .iter()
        .filter(|(index, name, _)| options.flag(*index, name, false))
        .map(|(_, _, flag)| *flag)
        .collect();
    let pattern = if flags.is_empty() { pattern.to_owned() } else { format!("(?{flags}){pattern}") };
    if let Some(regex) = PATTERNS.lock().get(&pattern) {
        return Ok(Arc::clone(regex));
    }
    // Python's escape for the end of the text.
    let regex = RegexBuilder::new(&pattern.replace(r"\Z", r"\z"))
        .delegate_size_limit(COMPILED)
        .delegate_dfa_size_limit(COMPILED)
        .build();
    let regex = Arc::new(regex.map_err(raise)?);
    let mut patterns = PATTERNS.lock();
    if patterns.len() >= KEPT {
        patterns.clear();
    }
    patterns.insert(pattern, Arc::clone(&regex));
    Ok(regex)
}

/// Returns the groups of the first match, or the whole match if there are none; `None` without a match.
fn find(text: &str, pattern: &str, options: &Args, at_start: bool) -> Result<JinjaValue, Error> {
    let captures = compile(pattern, options)?.captures(text).map_err(raise)?.map(|captures| {
        let group = |i| captures.get(i).map(|found| (found.start(), found.as_str()));
        (0..captures.len()).map(group).collect::<Vec<_>>()
    });
    let Some(captures) = captures else { return Ok(JinjaValue::from(())) };
    let starts = captures.first().and_then(|whole| *whole).is_some_and(|(start, _)| start == 0);
    if at_start && !starts {
        return Ok(JinjaValue::from(()));
    }
    let groups = if captures.len() > 1 { &captures[1..] } else { &captures[..] };
    let groups = groups.iter().map(|group| group.map_or_else(|| JinjaValue::from(()), |(_, text)| text.into()));
    Ok(JinjaValue::from(Tuple::new(groups.collect())))
}

fn replace(text: JinjaValue, pattern: String, with: String, options: Args) -> Result<String, Error> {
    let (text, template) = (matched(&text)?, template(&with));
    let regex = compile(&pattern, &options)?;
    let (mut out, mut at) = (String::new(), 0);
    for found in regex.captures_iter(text.as_str()) {
        let found = found.map_err(raise)?;
        let Some(whole) = found.get(0) else { continue };
        let before = text.get(at..whole.start()).unwrap_or_default();
        // The replacement consists of the template and the matched groups.
        let groups: usize = found.iter().flatten().map(|group| group.as_str().len()).max().unwrap_or(0);
        let references = template.matches('$').count().saturating_mul(groups);
        let size = before.len().saturating_add(template.len()).saturating_add(references);
        let grows = out.len().saturating_add(size) > out.capacity();
        limits::reserve(if grows { size.max(out.capacity().saturating_mul(2)) } else { size })?;
        out.push_str(before);
        found.expand(&template, &mut out);
        at = whole.end();
    }
    out.push_str(text.get(at..).unwrap_or_default());
    Ok(out)
}

/// Converts Python's group references `\1` and `\g<name>` to `${1}` and `${name}`.
fn template(python: &str) -> String {
    let mut out = String::new();
    let mut chars = python.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek().copied()) {
            ('$', _) => out.push_str("$$"),
            ('\\', Some(digit)) if digit.is_ascii_digit() => {
                out.push_str("${");
                while let Some(digit) = chars.next_if(char::is_ascii_digit) {
                    out.push(digit);
                }
                out.push('}');
            }
            ('\\', Some('g')) => {
                chars.next();
                if chars.next_if_eq(&'<').is_none() {
                    out.push_str("\\g");
                    continue;
                }
                out.push_str("${");
                out.extend(chars.by_ref().take_while(|c| *c != '>'));
                out.push('}');
            }
            ('\\', Some(escaped)) => {
                chars.next();
                match escaped {
                    'n' => out.push('\n'),
                    't' => out.push('\t'),
                    'r' => out.push('\r'),
                    '\\' => out.push('\\'),
                    '$' => out.push_str("\\$$"),
                    other => out.extend(['\\', other]),
                }
            }
            (c, _) => out.push(c),
        }
    }
    out
}

/// Escapes like Python's `re.escape`: only special characters.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if "()[]{}?*+-|^$\\.&~# \t\n\r\u{b}\u{c}".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
