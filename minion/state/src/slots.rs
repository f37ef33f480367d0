//! Slots: arguments that are replaced by the result of a function call when the state runs.
//!
//! `__slot__:salt:mod.fun(a, k=v).path.to.value ~ text` becomes the value at the path of the call's result; if that is a
//! string, the text is appended. The arguments of the call are texts, also `7`, `no` and `[a, b]`. Slots are replaced in arguments, in the values of their mappings, in the items of their lists, and in
//! the values of mappings in these.

use std::str::CharIndices;

use brine_context::Context;
use brine_function::{Args, CallError};
use brine_value::{Map, Value};

const MARK: &str = "__slot__:salt:";

/// Replaces the slots in the arguments of a state, or of a function of its conditions.
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

/// Replaces a value that is a slot.
pub(super) fn fill_value(context: &Context, value: &mut Value) -> Result<(), CallError> {
    if let Some(written) = value.as_str().and_then(|text| text.strip_prefix(MARK))
        && let Some(filled) = filled(context, written)?
    {
        *value = filled;
    }
    Ok(())
}

/// Returns the value of a slot. An invalid slot, or one with an unknown function, is left unchanged.
fn filled(context: &Context, written: &str) -> Result<Option<Value>, CallError> {
    let Some(Call { fun, args, rest }) = Call::parse(written)? else {
        tracing::warn!(slot = written, "a slot is not a call such as mod.fun(a, name=b): it stays as it is");
        return Ok(None);
    };
    if context.minion.functions.get(&fun).is_none() {
        tracing::warn!(slot = written, fun, "the function of a slot does not exist: the slot stays as it is");
        return Ok(None);
    }
    let mut value = context.call_nested(&fun, args)?;
    let (path, text) = rest.split_once('~').map_or((rest, None), |(path, text)| (path, Some(unquoted(text.trim()))));
    if let Some((_, path)) = path.split_once('.') {
        value = brine_yaml::traverse(&value, path.trim(), ".").cloned().unwrap_or_default();
    }
    Ok(Some(match (value, text) {
        (Value::Str(value), Some(text)) => format!("{value}{text}").into(),
        (value, Some(text)) => {
            let kind = value.type_name();
            tracing::error!(slot = written, kind, text, "the result of a slot is no string: the text is not appended");
            value
        }
        (value, None) => value,
    }))
}

/// Returns a string without its quotes.
fn unquoted(text: &str) -> &str {
    let inside = |quote| text.strip_prefix(quote).and_then(|rest: &str| rest.strip_suffix(quote));
    inside('\'').or_else(|| inside('"')).unwrap_or(text)
}

/// A call as a slot spells it, and what follows its closing bracket.
#[derive(Debug, PartialEq)]
struct Call<'a> {
    fun: String,
    /// Its arguments, all of them texts.
    args: Args,
    rest: &'a str,
}

impl<'a> Call<'a> {
    /// Reads a call in the words of a shell, as Salt does: blanks outside of quotes are left out, words beside each other
    /// are one, `#` begins a comment. Brackets in arguments have to match. Quoted signs are text. Returns `None` for what
    /// is no call, an error for a quote or an escape without its end.
    fn parse(written: &'a str) -> Result<Option<Self>, CallError> {
        let mut chars = written.char_indices();
        let (mut fun, mut args) = (None, Args::default());
        let (mut word, mut is_quoted, mut name, mut closing) = (String::new(), false, String::new(), Vec::new());
        while let Some((at, c)) = chars.next() {
            match c {
                ' ' | '\t' | '\r' | '\n' => {}
                '#' => _ = chars.find(|(_, c)| *c == '\n'),
                '\\' => word.push(chars.next().ok_or_else(|| unfinished(written, c))?.1),
                '"' | '\'' => {
                    add_quoted(&mut word, &mut chars, c).ok_or_else(|| unfinished(written, c))?;
                    is_quoted = true;
                }
                '(' if fun.is_none() => {
                    if word.is_empty() {
                        return Ok(None);
                    }
                    fun = Some(std::mem::take(&mut word));
                }
                _ if fun.is_none() => word.push(c),
                ',' | ')' if closing.is_empty() => {
                    let (text, is_given) = (std::mem::take(&mut word), std::mem::take(&mut is_quoted));
                    match std::mem::take(&mut name) {
                        name if !name.is_empty() => _ = args.keyword.insert(name.into(), text.into()),
                        _ if is_given || !text.is_empty() => args.positional.push(text.into()),
                        _ => {}
                    }
                    if c == ')' {
                        let rest = &written[at + 1..];
                        return Ok(fun.map(|fun| Call { fun, args, rest }));
                    }
                }
                '=' if closing.is_empty() => name = std::mem::take(&mut word),
                '(' | '[' | '{' => {
                    word.push(c);
                    closing.push(if c == '(' {
                        ')'
                    } else if c == '[' {
                        ']'
                    } else {
                        '}'
                    });
                }
                ')' | ']' | '}' if closing.pop() != Some(c) => return Ok(None),
                _ => word.push(c),
            }
        }
        Ok(None)
    }
}

/// Adds the rest of a quoted text. A backslash escapes itself and the quote, and is text before others; `None` if the
/// quote does not end.
fn add_quoted(word: &mut String, chars: &mut CharIndices<'_>, quote: char) -> Option<()> {
    loop {
        match chars.next()?.1 {
            c if c == quote => return Some(()),
            '\\' => {
                let escaped = chars.next()?.1;
                if escaped != '\\' && escaped != quote {
                    word.push('\\');
                }
                word.push(escaped);
            }
            c => word.push(c),
        }
    }
}

fn unfinished(written: &str, sign: char) -> CallError {
    CallError::execution(format!("the slot '{MARK}{written}' has a {sign} without its end"))
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
            ("__slot__:salt:test.arg(1, k={a: [2]}).kwargs.k", "{a:[2]}".into()),
            ("__slot__:salt:test.arg(1, 0644, no).args", list!["1", "0644", "no"]),
            ("__slot__:salt:test.arg(1, 0644, no).args.1", "0644".into()),
            ("__slot__:salt:test.arg(a).args ~ /x", list!["a"]),
            ("__slot__:salt:test.echo(a)b", "a".into()),
            ("__slot__:salt:test.arg(a).no.such", Value::Nil),
            ("__slot__:salt:test.echo(a", "__slot__:salt:test.echo(a".into()),
            ("__slot__:salt:test.echo(a#b)", "__slot__:salt:test.echo(a#b)".into()),
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

    #[test]
    fn calls_are_read_as_salt_reads_them() {
        let call = |args: &[&str], keyword: &[(&str, &str)]| {
            let positional = args.iter().map(|arg| Value::from(*arg)).collect();
            let keyword = keyword.iter().map(|(name, value)| (Value::from(*name), Value::from(*value))).collect();
            Some(Args { positional, keyword })
        };
        for (written, args) in [
            ("f()", call(&[], &[])),
            ("f( )", call(&[], &[])),
            ("f(a b)", call(&["ab"], &[])),
            ("f('a, b')", call(&["a, b"], &[])),
            ("f(text=7)", call(&[], &[("text", "7")])),
            ("f(text=)", call(&[], &[("text", "")])),
            ("f(k= ' v ')", call(&[], &[("k", " v ")])),
            ("f('x'='y')", call(&[], &[("x", "y")])),
            ("f(a=b=c)", call(&[], &[("b", "c")])),
            ("f(=a)", call(&["a"], &[])),
            ("f(x=[a=b])", call(&[], &[("x", "[a=b]")])),
            ("f([a, b], {c: d})", call(&["[a,b]", "{c:d}"], &[])),
            ("f((a,b))", call(&["(a,b)"], &[])),
            ("f(a,)", call(&["a"], &[])),
            ("f(,a,,b)", call(&["a", "b"], &[])),
            ("f('a'\"b\")", call(&["ab"], &[])),
            ("f('it\\'s')", call(&["it's"], &[])),
            ("f(\"a\\nb\")", call(&["a\\nb"], &[])),
            ("f(a\\,b)", call(&["a,b"], &[])),
            ("f(a#b\n)", call(&["a"], &[])),
            ("f(salt://x/y.txt)", call(&["salt://x/y.txt"], &[])),
            ("f(日本)", call(&["日本"], &[])),
            ("f('(')", call(&["("], &[])),
            ("f('', a)", call(&["", "a"], &[])),
            ("f([a)", None),
            ("f(a]", None),
            ("f(a", None),
            ("(a)", None),
            ("f", None),
        ] {
            let read = Call::parse(written).unwrap();
            assert!(read.as_ref().is_none_or(|call| call.fun == "f"), "{written}");
            assert_eq!(read.map(|call| call.args), args, "{written}");
        }
        for unfinished in ["f('a", "f(\"a\\", "f(a\\"] {
            assert!(Call::parse(unfinished).unwrap_err().to_string().contains("without its end"), "{unfinished}");
        }
    }
}
