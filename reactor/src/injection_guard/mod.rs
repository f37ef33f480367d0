//! Guards reactions against injection: untrusted text from an event is data, never structure.
//!
//! An SLS is parsed with placeholders for that text, so that it cannot choose types, functions or names of arguments.
//! Here the placeholders of one reaction are replaced. In targets and names of keys the text must be literal: no
//! wildcard, separator or operator. That holds for encoded text as well, since quoting ends at the YAML.

use brine_function::arguments::keyword_name;
use brine_target::TargetKind;
use brine_value::{Map, Value};
use brine_yaml::untrusted::{Part, Placeholders};

use crate::order::ParsedReaction;
use crate::reaction::Reaction;

/// Functions whose first argument is a target.
const TARGET_FIRST: [&str; 6] =
    ["cache.grains", "cache.pillar", "cache.mine", "mine.get", "publish.publish", "salt.execute"];

/// Functions that call a wheel function.
const CALL_WHEEL: [&str; 2] = ["saltutil.wheel", "salt.wheel"];

/// The variables of a reactor SLS.
pub(crate) const VARIABLES: brine_jinja::Variables = brine_jinja::Variables {
    trusted: &["opts", "grains", "pillar", "sls", "slspath", "tplfile", "tpldir"],
    untrusted: &["data", "tag", "rule", "key", "count", "events", "members", "share", "value", "registers"],
    from_minions: &["mine", "cache", "jobs", "publish", "saltutil", "event"],
    change_first: &["defaults.merge", "defaults.update", "slsutil.update"],
};

/// Replaces the placeholders in a reaction.
///
/// # Errors
/// Text from the event where none is allowed, or that is not literal.
pub(crate) fn resolve(mut written: ParsedReaction, placeholders: &Placeholders) -> Result<ParsedReaction, String> {
    if placeholders.is_empty() {
        return Ok(written);
    }
    written.id = placeholders.reveal(&written.id);
    written.name = written.name.map(|name| placeholders.reveal(&name));
    for requisite in &mut written.requisites {
        requisite.reveal(placeholders);
    }
    written.reaction = reaction(written.reaction, placeholders)?;
    Ok(written)
}

fn reaction(mut reaction: Reaction, placeholders: &Placeholders) -> Result<Reaction, String> {
    let name = placeholders.reveal(&reaction.name());
    trusted(placeholders, reaction.fun(), "a function")?;
    let is_wheel = matches!(reaction, Reaction::Wheel { .. });
    let is_local = matches!(reaction, Reaction::Local(_));
    let args = match &mut reaction {
        Reaction::Local(local) => {
            trusted(placeholders, &local.tgt_type, "a type of target")?;
            targets(placeholders, &local.tgt_type, &local.tgt, &name)?;
            local.tgt = resolved(placeholders, std::mem::take(&mut local.tgt))?;
            local.ret = placeholders.reveal(&local.ret);
            local.options = options(std::mem::take(&mut local.options), placeholders)?;
            (&local.fun, &mut local.args)
        }
        Reaction::Runner { fun, args } | Reaction::Wheel { fun, args } | Reaction::Caller { fun, args } => {
            (&*fun, args)
        }
    };
    let (fun, args) = args;
    for key in args.keyword.keys().filter_map(Value::as_str) {
        trusted(placeholders, key, "the name of an argument")?;
    }
    let passed_on = args.keyword.get("arg").map(|arg| arg.as_list().unwrap_or(std::slice::from_ref(arg)));
    let is_passed_on = is_local || TARGET_FIRST.contains(&fun.as_str());
    let positional = if is_passed_on { &args.positional[..] } else { &[] };
    for value in positional.iter().chain(passed_on.unwrap_or_default()) {
        check_positional(placeholders, value)?;
    }
    if is_wheel && fun.starts_with("key.") || CALL_WHEEL.contains(&fun.as_str()) {
        for value in args.positional.iter().chain(args.keyword.values()) {
            keys(placeholders, value, &name)?;
        }
    }
    if !is_wheel {
        target_arguments(placeholders, fun, &args.positional, &args.keyword, &name)?;
    }
    let positional = std::mem::take(&mut args.positional);
    args.positional = positional.into_iter().map(|value| resolved(placeholders, value)).collect::<Result<_, _>>()?;
    let keyword = placeholders.resolve_map(std::mem::take(&mut args.keyword));
    args.keyword = keyword.map_err(|error| error.to_string())?;
    Ok(reaction)
}

/// Metadata may come from the event; the other options decide where returns go and how functions run.
fn options(options: Map, placeholders: &Placeholders) -> Result<Map, String> {
    let one = |(name, value): (Value, Value)| {
        if name.as_str() != Some("metadata") {
            each(&value, &mut |text| trusted(placeholders, text, &format!("the option '{name}'")))?;
        }
        Ok((name, resolved(placeholders, value)?))
    };
    options.into_iter().map(one).collect()
}

fn resolved(placeholders: &Placeholders, value: Value) -> Result<Value, String> {
    placeholders.resolve(value).map_err(|error| error.to_string())
}

/// Rejects text from the event where the SLS itself must decide.
fn trusted(placeholders: &Placeholders, text: &str, what: &str) -> Result<(), String> {
    if !placeholders.touches(text) {
        return Ok(());
    }
    match placeholders.parts(text).into_iter().find_map(untrusted) {
        Some((_, tag)) => Err(format!("`{tag}` is invalid: {what} cannot come from the event, write it in the file")),
        None => Ok(()),
    }
}

/// Rejects a positional argument that would become a keyword argument on the minion: a text `name=value` whose name comes
/// from the event, or a mapping that has a name from the event beside `__kwarg__`.
fn check_positional(placeholders: &Placeholders, value: &Value) -> Result<(), String> {
    match value {
        Value::Str(text) if placeholders.touches(text.as_str()) => {
            let parts = placeholders.parts(text.as_str());
            let own_name = matches!(parts.first(), Some(Part::Own(own)) if own.contains('='));
            if own_name || keyword_name(&placeholders.reveal(text.as_str())).is_none() {
                return Ok(());
            }
            trusted(placeholders, text.as_str(), "the name of an argument (text 'name=value')")
        }
        Value::Map(map) => {
            let mut names = map.keys().filter_map(Value::as_str);
            if names.clone().any(|name| placeholders.reveal(name) == "__kwarg__") {
                names.try_for_each(|name| trusted(placeholders, name, "the name of an argument"))?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn untrusted(part: Part<'_>) -> Option<(std::sync::Arc<str>, std::sync::Arc<str>)> {
    match part {
        Part::Untrusted { text, origin } => Some((text, origin.tag)),
        Part::Own(_) => None,
    }
}

/// Checks the targets among the arguments of a function.
fn target_arguments(
    placeholders: &Placeholders,
    fun: &str,
    positional: &[Value],
    keyword: &Map,
    name: &str,
) -> Result<(), String> {
    let named = |key: &str| keyword.get(key).and_then(Value::as_str);
    let kind = named("tgt_type").or_else(|| named("expr_form")).unwrap_or("glob");
    let first = positional.first().filter(|_| TARGET_FIRST.contains(&fun));
    for target in keyword.get("tgt").into_iter().chain(first) {
        trusted(placeholders, kind, "a type of target")?;
        targets(placeholders, kind, target, name)?;
    }
    Ok(())
}

/// Checks the strings of a target.
fn targets(placeholders: &Placeholders, kind: &str, target: &Value, name: &str) -> Result<(), String> {
    // Unknown types are rejected when the job is published.
    let kind: Option<TargetKind> = kind.parse().ok();
    each(target, &mut |text| {
        if !placeholders.touches(text) {
            return Ok(());
        }
        let parts = placeholders.parts(text);
        let written: String =
            parts.iter().filter_map(|part| if let Part::Own(own) = part { Some(*own) } else { None }).collect();
        literal(
            parts,
            "the target",
            name,
            |c| is_special(kind, &written, c),
            |text| {
                kind == Some(TargetKind::Compound) && matches!(text.to_ascii_lowercase().as_str(), "and" | "or" | "not")
            },
        )
    })
}

/// Checks the strings that name keys: globs, separated by commas.
fn keys(placeholders: &Placeholders, value: &Value, name: &str) -> Result<(), String> {
    each(value, &mut |text| {
        if !placeholders.touches(text) {
            return Ok(());
        }
        let parts = placeholders.parts(text);
        let in_brackets = parts.iter().any(|part| matches!(part, Part::Own(own) if own.contains('[')));
        literal(parts, "the names of keys", name, |c| in_brackets || "*?[],".contains(c), |_| false)
    })
}

fn each(value: &Value, check: &mut dyn FnMut(&str) -> Result<(), String>) -> Result<(), String> {
    match value {
        Value::Str(text) => check(text.as_str()),
        Value::List(items) => items.iter().try_for_each(|item| each(item, check)),
        Value::Map(map) => map.iter().try_for_each(|(key, value)| each(key, check).and_then(|()| each(value, check))),
        _ => Ok(()),
    }
}

fn literal(
    parts: Vec<Part<'_>>,
    location: &str,
    name: &str,
    is_special: impl Fn(char) -> bool,
    is_operator: impl Fn(&str) -> bool,
) -> Result<(), String> {
    for (text, tag) in parts.into_iter().filter_map(untrusted) {
        let special = text.chars().find(|c| is_special(*c));
        if let Some(special) = special.filter(|special| is_quoted(&tag, *special)) {
            return Err(format!(
                "`{tag}` is invalid in {location} of '{name}': its text has {special:?}, which is not literal there, and \
                 text of the file within the braces counts as the event's: write it outside of them, as in \
                 `os:{{{{ data.os }}}}`"
            ));
        }
        let offender = special.map(|c| format!("{c:?}"));
        if let Some(offender) = offender.or_else(|| is_operator(&text).then(|| format!("{text:?}"))) {
            return Err(format!(
                "`{tag}` is invalid in {location} of '{name}': the event's text has {offender}, which is not literal \
                 there: check the text in the template, or choose among names in the file"
            ));
        }
    }
    Ok(())
}

/// Whether a quoted text in a tag has this character: it may not be of the event.
fn is_quoted(tag: &str, character: char) -> bool {
    let mut quote = None;
    for c in tag.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) if c == character => return true,
            None if matches!(c, '\'' | '"') => quote = Some(c),
            _ => {}
        }
    }
    false
}

/// Returns whether a character is special in a target of this type. `written` is the trusted text beside it.
fn is_special(kind: Option<TargetKind>, written: &str, c: char) -> bool {
    let is_plain = c.is_alphanumeric() || matches!(c, '_' | '-');
    match kind {
        // Within brackets every character is special.
        _ if written.contains('[') => true,
        Some(TargetKind::Glob) => matches!(c, '*' | '?' | '[' | ']'),
        Some(TargetKind::List) => c == ',' || c.is_whitespace(),
        Some(TargetKind::Grain | TargetKind::Pillar | TargetKind::PillarExact) => {
            matches!(c, '*' | '?' | '[' | ']' | ':')
        }
        Some(TargetKind::Nodegroup) => !(is_plain || c == '.'),
        // A dot matches any character of a regular expression.
        Some(TargetKind::Compound) => !(is_plain || c == '.' && !written.contains('@')),
        Some(TargetKind::IpCidr) => !(c.is_ascii_hexdigit() || matches!(c, '.' | ':')),
        Some(TargetKind::Pcre | TargetKind::GrainPcre | TargetKind::PillarPcre) => {
            !(is_plain || matches!(c, '@' | ' '))
        }
        Some(TargetKind::Range) | None => true,
    }
}

#[cfg(test)]
mod tests;
