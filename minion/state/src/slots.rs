//! Slots: arguments that are replaced by the result of a function call when the state runs.
//!
//! `__slot__:salt:mod.fun(a, k=v).path.to.value ~ text` becomes the value at the path of the call's result, with the
//! text appended. Slots are replaced in arguments, in the values of their mappings, in the items of their lists, and in
//! the values of mappings in these.

use brine_context::Context;
use brine_function::{Args, CallError};
use brine_value::{Map, Value};

const MARK: &str = "__slot__:salt:";

/// Replaces the slots in the arguments of a chunk.
pub(super) fn fill(context: &Context, args: &mut Args) -> Result<(), CallError> {
    for value in args.keyword.values_mut().chain(&mut args.positional) {
        fill_values(context, value)?;
        if let Value::List(items) = value {
            items.iter_mut().try_for_each(|item| fill_values(context, item))?;
        }
    }
    Ok(())
}

/// Replaces a value, or the values of a mapping.
fn fill_values(context: &Context, value: &mut Value) -> Result<(), CallError> {
    fill_value(context, value)?;
    let Value::Map(map) = value else { return Ok(()) };
    map.values_mut().try_for_each(|inner| fill_value(context, inner))
}

fn fill_value(context: &Context, value: &mut Value) -> Result<(), CallError> {
    if let Some(written) = value.as_str().and_then(|text| text.strip_prefix(MARK))
        && let Some(filled) = filled(context, written)?
    {
        *value = filled;
    }
    Ok(())
}

/// Returns the value of a slot. An invalid slot, or one with an unknown function, is left unchanged.
fn filled(context: &Context, written: &str) -> Result<Option<Value>, CallError> {
    let Some((call, rest)) = split_call(written) else { return Ok(None) };
    let Some((fun, args)) = call.split_once('(') else { return Ok(None) };
    let fun = fun.trim();
    if context.minion.functions.get(fun).is_none() {
        tracing::warn!(fun, "the function of a slot does not exist");
        return Ok(None);
    }
    let mut value = context.call_nested(fun, arguments(args))?;
    let (path, text) = rest.split_once('~').map_or((rest, None), |(path, text)| (path, Some(unquoted(text.trim()))));
    for key in path.trim().trim_start_matches('.').split('.').filter(|key| !key.is_empty()) {
        value = value.get(key).cloned().unwrap_or_default();
    }
    Ok(Some(match text {
        Some(text) => format!("{value}{text}").into(),
        None => value,
    }))
}

/// Returns a string without its quotes.
fn unquoted(text: &str) -> &str {
    let inside = |quote| text.strip_prefix(quote).and_then(|rest: &str| rest.strip_suffix(quote));
    inside('\'').or_else(|| inside('"')).unwrap_or(text)
}

/// Splits the call, without its closing bracket, from the rest.
fn split_call(written: &str) -> Option<(&str, &str)> {
    let (mut depth, mut quote) = (0, None);
    for (at, c) in written.char_indices() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => quote = Some(c),
            ('(', None) => depth += 1,
            (')', None) => {
                depth -= 1;
                if depth == 0 {
                    return Some((&written[..at], &written[at + 1..]));
                }
            }
            _ => {}
        }
    }
    None
}

/// Parses comma-separated arguments as YAML. Blanks outside of quotes and brackets are ignored.
fn arguments(text: &str) -> Args {
    let mut args = Args::default();
    for written in split_commas(text) {
        let read = |text: &str| brine_yaml::load(text).unwrap_or_else(|_| text.into());
        match written.split_once('=').filter(|(name, _)| name.chars().all(|c| c == '_' || c.is_alphanumeric())) {
            Some((name, value)) => _ = args.keyword.insert(name.into(), read(value)),
            None => args.positional.push(read(&written)),
        }
    }
    args
}

fn split_commas(text: &str) -> Vec<String> {
    let (mut words, mut word, mut depth, mut quote) = (Vec::new(), String::new(), 0, None);
    for c in text.chars() {
        match (c, quote) {
            (c, Some(open)) => {
                quote = (c != open).then_some(open);
                word.push(c);
            }
            ('"' | '\'', None) => {
                quote = Some(c);
                word.push(c);
            }
            (',', None) if depth == 0 => words.push(std::mem::take(&mut word)),
            (c, None) if c.is_whitespace() && depth == 0 => {}
            (c, None) => {
                depth += i32::from("([{".contains(c)) - i32::from(")]}".contains(c));
                word.push(c);
            }
        }
    }
    if !word.is_empty() || !words.is_empty() {
        words.push(word);
    }
    words
}

/// Returns whether an argument contains a slot, so that most chunks need not be copied.
pub(super) fn are_in(args: &Map) -> bool {
    let is_slot = |value: &Value| value.as_str().is_some_and(|text| text.starts_with(MARK));
    let has_slots = |value: &Value| is_slot(value) || value.as_map().is_some_and(|map| map.values().any(is_slot));
    args.values().any(|value| has_slots(value) || value.as_list().is_some_and(|items| items.iter().any(has_slots)))
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;
    use crate::testing;

    #[test]
    fn slots_become_the_results_of_their_calls() {
        let context = testing::context(&[]);
        for (written, value) in [
            ("__slot__:salt:test.echo(a b)", Value::from("ab")),
            ("__slot__:salt:test.echo('a, b')", "a, b".into()),
            ("__slot__:salt:test.echo(text=7) ~ /x", "7/x".into()),
            ("__slot__:salt:test.echo('a ') ~ 'b'", "a b".into()),
            ("__slot__:salt:test.arg(1, k={a: [2]}).kwargs.k", map! {"a" => list![2]}.into()),
            ("__slot__:salt:no.such(1)", "__slot__:salt:no.such(1)".into()),
            ("__slot__:other", "__slot__:other".into()),
            // Values in a slot are no commands.
            ("__slot__:salt:cmd.run('echo $HOME|cat')", "$HOME|cat".into()),
        ] {
            let args = |value: &Value| {
                map! {"w" => map! {"y" => value.clone()}, "x" => list![value.clone(), map! {"y" => value.clone()}],
                "z" => value.clone()}
            };
            let filled = args(&value);
            let mut args = Args::keyword(args(&written.into()));
            assert_eq!(are_in(&args.keyword), written.starts_with(MARK), "{written}");
            fill(&context, &mut args).unwrap();
            assert_eq!(args.keyword, filled, "{written}");
        }
    }
}
