//! Parses the reactions of a rendered reactor SLS.
//!
//! All of Salt's forms are accepted: arguments as named items (`- match: web1`), below `args` (a list or a mapping), or
//! below the older `arg` and `kwarg`. Options of the job (`tgt`, `ret`, ...) are items of the same list.

use brine_function::Args;
use brine_target::TargetKind;
use brine_text::nearest::{self, nearest};
use brine_value::{FromValue, Map, Value};
use brine_yaml::Located;
use brine_yaml::untrusted::Placeholders;

use crate::injection_guard;
use crate::order::{Order, ParsedReaction, Requisite};
use crate::reaction::{JOB_OPTIONS, Kind, LocalReaction, Reaction};

/// An invalid reaction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ReactionError {
    /// The line of the rendered text, from 1.
    pub line: usize,
    /// The error, with the expected form.
    pub message: String,
}

/// Parses all reactions of a rendered SLS, in order. An invalid one does not affect the others.
pub(crate) fn read_all(rendered: &Located, placeholders: &Placeholders) -> Vec<Result<ParsedReaction, ReactionError>> {
    let line = |path: &[Value]| rendered.position(path).map_or(1, |position| position.line);
    let ids = match &rendered.value {
        Value::Nil => return Vec::new(),
        Value::Map(ids) => ids,
        other => {
            let got = other.type_name();
            let message = format!("the rendered SLS is invalid: expected a mapping of ids to reactions, got {got}");
            return vec![Err(ReactionError { line: line(&[]), message })];
        }
    };
    let mut reactions = Vec::new();
    for (id, body) in ids {
        let at_id = line(std::slice::from_ref(id));
        match body {
            Value::Map(body) => {
                for (name, arguments) in body {
                    read_one(id, name, arguments, line(&[id.clone(), name.clone()]), placeholders, &mut reactions);
                }
            }
            // A bare `id: runner.x.y`.
            Value::Str(name) => {
                read_one(id, &Value::from(name.as_str()), &Value::Nil, at_id, placeholders, &mut reactions);
            }
            other => {
                let got = other.type_name();
                let message = format!(
                    "the body of '{id}' is invalid: expected `type.module.function:` with a list of arguments below it, got {got}"
                );
                reactions.push(Err(ReactionError { line: at_id, message: placeholders.reveal(&message) }));
            }
        }
    }
    reactions
}

fn read_one(
    id: &Value,
    name: &Value,
    arguments: &Value,
    line: usize,
    placeholders: &Placeholders,
    reactions: &mut Vec<Result<ParsedReaction, ReactionError>>,
) {
    let read = || -> Result<Vec<ParsedReaction>, String> {
        let mut arguments = RawArguments::read(&name.to_string(), arguments)?;
        let (kind, fun) = kind_and_function(&name.to_string(), &mut arguments)?;
        let name = format!("{}.{fun}", kind.as_str());
        let order = arguments.named.shift_remove("order").map(|order| Order::read(&name, &order)).transpose()?;
        let requisites = Requisite::take_all(&name, &mut arguments.named)?;
        let named = take_names(&name, &mut arguments.named)?;
        let one = |arguments: RawArguments, of_names: Option<String>| {
            let reaction = reaction(kind, &name, fun.clone(), arguments, placeholders)?;
            let (order, requisites) = (order, requisites.clone());
            Ok(ParsedReaction { id: id.to_string(), name: of_names, line, reaction, order, requisites })
        };
        if named.is_empty() {
            return Ok(vec![one(arguments, None)?]);
        }
        let with_name = |(of_names, more): (String, Map)| {
            let mut arguments = arguments.clone();
            arguments.named.insert("name".into(), of_names.as_str().into());
            arguments.named.extend(more);
            one(arguments, Some(of_names))
        };
        named.into_iter().map(with_name).collect()
    };
    match read() {
        Ok(written) => reactions.extend(written.into_iter().map(|one| {
            injection_guard::resolve(one, placeholders)
                .map_err(|message| ReactionError { line, message: placeholders.reveal(&message) })
        })),
        Err(message) => reactions.push(Err(ReactionError { line, message: placeholders.reveal(&message) })),
    }
}

/// Returns the type and function of a reaction: `local.test.ping`, or `local` with `test.ping` among the items.
fn kind_and_function(name: &str, arguments: &mut RawArguments) -> Result<(Kind, String), String> {
    let (word, fun) = match name.split_once('.') {
        Some((word, fun)) => (word, fun.to_owned()),
        None => match arguments.plain.iter().position(|item| item.as_str().is_some_and(|text| text.contains('.'))) {
            Some(at) if Kind::parse(name).is_some() => (name, arguments.plain.remove(at).to_string()),
            _ => (name, String::new()),
        },
    };
    if !fun.contains('.') {
        return Err(format!("'{name}' is not a reaction: write type.module.function, such as local.state.apply"));
    }
    let unknown = || format!("'{word}' in '{name}' is not a type of reaction: expected local, runner, wheel or caller");
    Ok((Kind::parse(word).ok_or_else(unknown)?, fun))
}

/// The items below a function, named and plain.
#[derive(Default, Clone)]
struct RawArguments {
    named: Map,
    plain: Vec<Value>,
}

impl RawArguments {
    fn read(name: &str, arguments: &Value) -> Result<Self, String> {
        let mut raw = RawArguments::default();
        match arguments {
            Value::Nil => {}
            Value::Map(map) => raw.named.clone_from(map),
            Value::List(items) => {
                for item in items {
                    match item {
                        Value::Map(map) => {
                            raw.named.extend(map.iter().map(|(key, value)| (key.clone(), value.clone())));
                        }
                        plain => raw.plain.push(plain.clone()),
                    }
                }
            }
            other => {
                let got = other.type_name();
                return Err(format!(
                    "the body of '{name}' is invalid: expected a list of arguments, such as `- tgt: '*'`, got {got}"
                ));
            }
        }
        Ok(raw)
    }
}

/// Removes `names`: the reaction is repeated for each item, with the arguments of a mapping added.
fn take_names(name: &str, named: &mut Map) -> Result<Vec<(String, Map)>, String> {
    let Some(names) = named.shift_remove("names") else { return Ok(Vec::new()) };
    let invalid = || {
        format!(
            "'names' of '{name}' is invalid: expected a list of names, or of one-key mappings of a name to arguments"
        )
    };
    let one = |item: &Value| match item {
        Value::Map(map) => {
            let (of_names, more) = map.first().filter(|_| map.len() == 1).ok_or_else(invalid)?;
            Ok((of_names.to_string(), RawArguments::read(name, more)?.named))
        }
        Value::List(_) => Err(invalid()),
        scalar => Ok((scalar.to_string(), Map::new())),
    };
    names.as_list().ok_or_else(invalid)?.iter().map(one).collect()
}

fn take<T: FromValue>(name: &str, named: &mut Map, key: &str) -> Result<Option<T>, String> {
    match named.shift_remove(key) {
        None | Some(Value::Nil) => Ok(None),
        Some(value) => T::try_from_value(&value).map(Some).map_err(|error| format!("'{key}' of '{name}': {error}")),
    }
}

/// Removes `args`, `arg` and `kwarg` from the named items.
fn nested_args(name: &str, named: &mut Map, placeholders: &Placeholders) -> Result<Option<Args>, String> {
    let arg: Option<Vec<Value>> = take(name, named, "arg")?;
    let kwarg: Option<Map> = take(name, named, "kwarg")?;
    // The keys of a whole mapping from the event are names of arguments. A single name is refused later.
    let name_of = |(key, value): (Value, Value)| {
        let is_whole = key.as_str().is_some_and(|key| placeholders.is_key_of_whole(key));
        let key = if is_whole { placeholders.resolve(key).map_err(|error| error.to_string())? } else { key };
        Ok((key, value))
    };
    let kwarg: Option<Map> =
        kwarg.map(|kwarg| kwarg.into_iter().map(name_of).collect::<Result<_, String>>()).transpose()?;
    let args = match named.shift_remove("args") {
        None | Some(Value::Nil) => None,
        Some(Value::Map(map)) => Some(Args::keyword(map)),
        Some(Value::List(items)) => {
            let mut args = Args::default();
            for item in items {
                match item {
                    // One-key mappings in the list are named arguments, as everywhere in SLS.
                    Value::Map(map) if map.len() == 1 => args.keyword.extend(map),
                    Value::Map(map) if map.values().any(Value::is_nil) => {
                        let names = map.keys().map(|name| placeholders.reveal(&name.to_string())).collect::<Vec<_>>();
                        return Err(format!(
                            "'{name}' has an item with several names below 'args', of which one is empty: {}: indent the \
                             lines that belong below it",
                            names.join(", ")
                        ));
                    }
                    other => args.positional.push(other),
                }
            }
            Some(args)
        }
        Some(one) => Some(Args::positional([one])),
    };
    if args.is_some() && (arg.is_some() || kwarg.is_some()) {
        return Err(format!("'{name}' has its arguments both below 'args' and below 'arg' or 'kwarg': keep one"));
    }
    if arg.is_none() && kwarg.is_none() {
        return Ok(args);
    }
    Ok(Some(Args { positional: arg.unwrap_or_default(), keyword: kwarg.unwrap_or_default() }))
}

fn reaction(
    kind: Kind,
    name: &str,
    fun: String,
    arguments: RawArguments,
    placeholders: &Placeholders,
) -> Result<Reaction, String> {
    Ok(match kind {
        Kind::Local => Reaction::Local(local(name, fun, arguments, placeholders)?),
        Kind::Runner => Reaction::Runner { fun, args: call_args(name, arguments, placeholders)? },
        Kind::Wheel => Reaction::Wheel { fun, args: call_args(name, arguments, placeholders)? },
        Kind::Caller => Reaction::Caller { fun, args: call_args(name, arguments, placeholders)? },
    })
}

fn local(
    name: &str,
    fun: String,
    mut arguments: RawArguments,
    placeholders: &Placeholders,
) -> Result<LocalReaction, String> {
    let named = &mut arguments.named;
    let tgt = named.shift_remove("tgt").filter(|tgt| !tgt.is_nil());
    let tgt = tgt.ok_or_else(|| format!("'{name}' needs a target: add `- tgt: '*'` or another one"))?;
    let tgt_type = take(name, named, "tgt_type")?;
    let tgt_type = tgt_type.or(take(name, named, "expr_form")?).unwrap_or_else(|| "glob".to_owned());
    let is_word = tgt_type.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    if let Some(error) = tgt_type.parse::<TargetKind>().err().filter(|_| is_word) {
        let near = nearest(&tgt_type, TargetKind::ALL.iter().map(|kind| kind.name()));
        let near = nearest::hint(near);
        return Err(format!("'tgt_type' of '{name}' is invalid: {error}{near}"));
    }
    let ret = take::<Vec<String>>(name, named, "ret")?.unwrap_or_default().join(",");
    let options = JOB_OPTIONS.iter().filter_map(|name| Some(((*name).into(), named.shift_remove(*name)?))).collect();
    // As the reactor does not wait for returns, the timeouts of a waiting client are ignored.
    named.shift_remove("timeout");
    named.shift_remove("gather_job_timeout");
    let args = call_args(name, arguments, placeholders)?;
    Ok(LocalReaction { fun, tgt, tgt_type, args, ret, options })
}

fn call_args(name: &str, mut arguments: RawArguments, placeholders: &Placeholders) -> Result<Args, String> {
    let mut args = nested_args(name, &mut arguments.named, placeholders)?.unwrap_or_default();
    args.positional.extend(arguments.plain);
    args.keyword.extend(arguments.named);
    Ok(args)
}
