//! Filters for regular expressions, as Python's `re`.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use brine_text::python_regex::{IGNORECASE, MULTILINE, Regex, Template, escape};
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

/// Compiled patterns by their text and flags.
type Patterns = HashMap<(String, u32), Arc<Regex>>;

static PATTERNS: LazyLock<Mutex<Patterns>> = LazyLock::new(Mutex::default);

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
        find(&matched(&text)?, &pattern, &options, true).map(|captures| !captures.is_none())
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
    let flags = [(0, "ignorecase", IGNORECASE), (1, "multiline", MULTILINE)]
        .iter()
        .filter(|(index, name, _)| options.flag(*index, name, false))
        .fold(0, |all, (.., flag)| all | flag);
    let key = (pattern.to_owned(), flags);
    if let Some(regex) = PATTERNS.lock().get(&key) {
        return Ok(Arc::clone(regex));
    }
    let regex = Arc::new(Regex::bounded(pattern, flags, COMPILED).map_err(raise)?);
    let mut patterns = PATTERNS.lock();
    if patterns.len() >= KEPT {
        patterns.clear();
    }
    patterns.insert(key, Arc::clone(&regex));
    Ok(regex)
}

/// Returns the groups of the first match, or the whole match if there are none; `None` without a match.
fn find(text: &str, pattern: &str, options: &Args, at_start: bool) -> Result<JinjaValue, Error> {
    let regex = compile(pattern, options)?;
    let captures = if at_start { regex.captures_at_start(text) } else { regex.captures(text) };
    let Some(captures) = captures.map_err(raise)? else { return Ok(JinjaValue::from(())) };
    let captures: Vec<_> = (0..captures.len()).map(|i| captures.get(i).map(|group| group.as_str())).collect();
    let groups = if captures.len() > 1 { &captures[1..] } else { &captures[..] };
    let groups = groups.iter().map(|group| group.map_or_else(|| JinjaValue::from(()), Into::into));
    Ok(JinjaValue::from(Tuple::new(groups.collect())))
}

fn replace(text: JinjaValue, pattern: String, with: String, options: Args) -> Result<String, Error> {
    let text = matched(&text)?;
    let regex = compile(&pattern, &options)?;
    let template = Template::new(&regex, &with).map_err(raise)?;
    let (mut out, mut at) = (String::new(), 0);
    for captures in regex.captures_iter(text.as_str()) {
        let captures = captures.map_err(raise)?;
        let Some(whole) = captures.get(0) else { continue };
        let before = text.get(at..whole.start()).unwrap_or_default();
        let size = before.len().saturating_add(template.size(&captures));
        let grows = out.len().saturating_add(size) > out.capacity();
        limits::reserve(if grows { size.max(out.capacity().saturating_mul(2)) } else { size })?;
        out.push_str(before);
        template.expand(&captures, &mut out);
        at = whole.end();
    }
    out.push_str(text.get(at..).unwrap_or_default());
    Ok(out)
}
