//! What a rendered reactor SLS asks for.
//!
//! Both of Salt's forms are read: arguments as named items (`- match: web1`), below `args` (a list or a
//! mapping), or below the older `arg` and `kwarg`.

use brine_core::function::Args;
use brine_core::sls::yaml::Located;
use brine_core::value::FromValue;
use brine_core::{Map, Value};

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Reaction {
    /// A job for minions.
    Local(LocalReaction),
    /// A call of a runner function.
    Runner {
        /// The function, such as `jobs.list_jobs`.
        fun: String,
        /// Its arguments.
        args: Args,
    },
    /// A call of a wheel function.
    Wheel {
        /// The function, such as `key.accept`.
        fun: String,
        /// Its arguments.
        args: Args,
    },
    /// A call of an execution function on the minion whose reactor this is.
    Caller {
        /// The function, such as `test.ping`.
        fun: String,
        /// Its arguments.
        args: Args,
    },
}

/// A job for minions.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalReaction {
    /// The function, such as `state.highstate`.
    pub fun: String,
    /// Which minions.
    pub tgt: Value,
    /// How the target is meant.
    pub tgt_type: String,
    /// The function's arguments.
    pub args: Args,
    /// Returners that minions also return to, separated by commas.
    pub ret: String,
    /// Whatever the user wants to find again with the job.
    pub metadata: Option<Value>,
}

impl Reaction {
    /// The name in reports: `local.state.highstate`.
    pub fn name(&self) -> String {
        match self {
            Reaction::Local(local) => format!("local.{}", local.fun),
            Reaction::Runner { fun, .. } => format!("runner.{fun}"),
            Reaction::Wheel { fun, .. } => format!("wheel.{fun}"),
            Reaction::Caller { fun, .. } => format!("caller.{fun}"),
        }
    }
}

/// A rendered SLS asks for something that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ReactionError {
    /// The line of the rendered text, from 1.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub message: String,
}

/// Reads all reactions of a rendered SLS, in order. What cannot be understood does not keep the others
/// from being read.
pub(crate) fn read_all(rendered: &Located) -> Vec<Result<Reaction, ReactionError>> {
    let error = |path: &[Value], message: String| {
        let line = rendered.position(path).map_or(1, |position| position.line);
        ReactionError { line, message }
    };
    let states = match &rendered.value {
        Value::Nil => return Vec::new(),
        Value::Map(states) => states,
        other => {
            let message = format!(
                "a reactor SLS renders to a mapping of ids to reactions, this renders to {}",
                other.type_name()
            );
            return vec![Err(error(&[], message))];
        }
    };
    let mut reactions = Vec::new();
    for (id, body) in states {
        match body {
            Value::Map(body) => {
                for (name, arguments) in body {
                    let path = [id.clone(), name.clone()];
                    reactions.push(read_one(name, arguments).map_err(|message| error(&path, message)));
                }
            }
            // A bare `id: runner.x.y`.
            Value::Str(name) => {
                let read = read_one(&Value::from(name), &Value::Nil);
                reactions.push(read.map_err(|message| error(std::slice::from_ref(id), message)));
            }
            other => {
                let message = format!(
                    "the body of '{id}' is `type.module.function:` with a list of arguments below it, not of type {}",
                    other.type_name()
                );
                reactions.push(Err(error(std::slice::from_ref(id), message)));
            }
        }
    }
    reactions
}

fn read_one(name: &Value, arguments: &Value) -> Result<Reaction, String> {
    let name = name.to_string();
    let Some((kind, fun)) = name.split_once('.').filter(|(_, fun)| fun.contains('.')) else {
        return Err(format!("'{name}' is not a reaction: write type.module.function, such as local.state.apply"));
    };
    let given = given(&name, arguments)?;
    let fun = fun.to_owned();
    match kind {
        "local" | "cmd" => local(&name, fun, given).map(Reaction::Local),
        "runner" => Ok(Reaction::Runner { fun, args: call_args(&name, given)? }),
        "wheel" => Ok(Reaction::Wheel { fun, args: call_args(&name, given)? }),
        "caller" => Ok(Reaction::Caller { fun, args: call_args(&name, given)? }),
        other => Err(format!("'{other}' in '{name}' is not a type of reaction: local, runner, wheel and caller are")),
    }
}

/// What stands below a function: named items, and plain ones.
#[derive(Default)]
struct Given {
    named: Map,
    plain: Vec<Value>,
}

fn given(name: &str, arguments: &Value) -> Result<Given, String> {
    let mut given = Given::default();
    match arguments {
        Value::Nil => {}
        Value::Map(map) => given.named.clone_from(map),
        Value::List(items) => {
            for item in items {
                match item {
                    Value::Map(map) => given.named.extend(map.iter().map(|(key, value)| (key.clone(), value.clone()))),
                    plain => given.plain.push(plain.clone()),
                }
            }
        }
        other => {
            let got = other.type_name();
            return Err(format!("below '{name}' stands a list of arguments, such as `- tgt: '*'`, not of type {got}"));
        }
    }
    Ok(given)
}

fn take<T: FromValue>(name: &str, named: &mut Map, key: &str) -> Result<Option<T>, String> {
    match named.shift_remove(key) {
        None | Some(Value::Nil) => Ok(None),
        Some(value) => T::try_from_value(&value).map(Some).map_err(|error| format!("'{key}' of '{name}': {error}")),
    }
}

/// `args`, `arg` and `kwarg`, taken out of the named items.
fn nested_args(name: &str, named: &mut Map) -> Result<Option<Args>, String> {
    let arg: Option<Vec<Value>> = take(name, named, "arg")?;
    let kwarg: Option<Map> = take(name, named, "kwarg")?;
    let args = match named.shift_remove("args") {
        None | Some(Value::Nil) => None,
        Some(Value::Map(map)) => Some(Args::keyword(map)),
        Some(Value::List(items)) => {
            // One-key mappings in the list are named arguments, as everywhere in SLS.
            let (mut args, one_key) = (Args::default(), |item: &Value| item.as_map().is_some_and(|map| map.len() == 1));
            for item in items {
                match item {
                    Value::Map(map) if one_key(&Value::Map(map.clone())) => args.keyword.extend(map),
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

fn local(name: &str, fun: String, mut given: Given) -> Result<LocalReaction, String> {
    let named = &mut given.named;
    let tgt = named.shift_remove("tgt").filter(|tgt| !tgt.is_nil());
    let tgt = tgt.ok_or_else(|| format!("'{name}' needs a target: add `- tgt: '*'` or another one"))?;
    let tgt_type =
        take(name, named, "tgt_type")?.or(take(name, named, "expr_form")?).unwrap_or_else(|| "glob".to_owned());
    let ret = take(name, named, "ret")?.unwrap_or_default();
    let metadata = named.shift_remove("metadata");
    // How long somebody would wait: nobody does.
    named.shift_remove("timeout");
    named.shift_remove("gather_job_timeout");
    let mut args = nested_args(name, named)?.unwrap_or_default();
    args.positional.extend(given.plain);
    args.keyword.extend(given.named);
    Ok(LocalReaction { fun, tgt, tgt_type, args, ret, metadata })
}

fn call_args(name: &str, mut given: Given) -> Result<Args, String> {
    let mut args = nested_args(name, &mut given.named)?.unwrap_or_default();
    args.positional.extend(given.plain);
    args.keyword.extend(given.named);
    Ok(args)
}
