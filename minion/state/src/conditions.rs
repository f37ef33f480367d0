//! `global_state_conditions`, `onlyif`, `unless` and `creates` decide whether a state runs, `check_cmd` whether it
//! succeeded.

use std::path::Path;
use std::sync::atomic::Ordering;

use brine_context::{Context, MinionFacts};
use brine_function::{Args, CallError};
use brine_sls::compile::Chunk;
use brine_target::{DEFAULT_DELIMITER, Match, Target, TargetFacts, TargetKind};
use brine_value::{Map, Value};

use crate::slots;

/// Arguments of a state that also apply to the commands of its conditions; as in Salt, `umask` is for the state alone.
const COMMAND_ARGS: [&str; 8] = ["cwd", "root", "runas", "env", "prepend_path", "timeout", "success_retcodes", "shell"];

/// The result of one condition.
struct ConditionResult {
    comment: String,
    skip: bool,
}

impl ConditionResult {
    fn of(skip: bool, comment: &str) -> Self {
        ConditionResult { comment: comment.to_owned(), skip }
    }
}

/// The result of an entry of `onlyif` or `unless`.
enum Entry {
    /// Success or failure.
    Was(bool),
    /// It is a mapping without `fun`: the state runs.
    NoFunction,
    /// It is neither a command nor a mapping: the state runs.
    BadType,
}

/// Returns the comment of a state that its conditions skip; `None` if the state runs. An error is an exception of the
/// state.
pub(super) fn skipped(context: &Context, chunk: &Chunk) -> Result<Option<String>, CallError> {
    let mut said = Vec::new();
    if let Some(condition) = chunk.args.get("onlyif") {
        said.push(onlyif(context, chunk, condition)?);
    }
    if let Some(condition) = chunk.args.get("unless") {
        said.push(unless(context, chunk, condition)?);
    }
    if let Some(paths) = chunk.args.get("creates") {
        said.push(creates(paths)?);
    }
    if !said.iter().any(|said| said.skip) {
        return Ok(None);
    }
    let comments: Vec<String> = said.into_iter().map(|said| said.comment).collect();
    Ok(Some(comments.join("\n")))
}

/// Whether `global_state_conditions` permits a state: if it has targets for the state, one of them must match this
/// minion. An invalid target matches no minion.
pub(super) fn permits(context: &Context, chunk: &Chunk) -> bool {
    let full = format!("{}.{}", chunk.state, chunk.fun);
    let applies = |name: &Value| name.as_str().is_some_and(|name| ["*", &full, &chunk.state].contains(&name));
    let entries = context.config().global_state_conditions.iter().filter(|(name, _)| applies(name));
    let mut targets = entries
        .flat_map(|(_, conditions)| match conditions {
            Value::Str(_) => std::slice::from_ref(conditions),
            conditions => conditions.as_list().unwrap_or_default(),
        })
        .peekable();
    if targets.peek().is_none() {
        return true;
    }
    let facts = MinionFacts::of(context);
    targets.any(|target| matches(context, &facts, target))
}

fn matches(context: &Context, facts: &MinionFacts, target: &Value) -> bool {
    let kind = TargetKind::Compound;
    if let Some(matched) = facts.custom_match(kind.name(), target, DEFAULT_DELIMITER) {
        return matched == Match::Yes;
    }
    match Target::parse(kind, target.clone(), DEFAULT_DELIMITER, &context.config().nodegroups) {
        Ok(target) => target.matches(facts),
        Err(error) => {
            tracing::error!(%target, %error, "a target of the option 'global_state_conditions' is invalid");
            false
        }
    }
}

/// Evaluates `onlyif`: the state runs if all entries succeed.
fn onlyif(context: &Context, chunk: &Chunk, condition: &Value) -> Result<ConditionResult, CallError> {
    for entry in entries("onlyif", condition)? {
        match outcome(context, chunk, "onlyif", entry)? {
            Entry::Was(true) => {}
            Entry::Was(false) => return Ok(ConditionResult::of(true, "onlyif condition is false")),
            Entry::NoFunction => {
                return Ok(ConditionResult::of(false, &format!("no `fun` argument in onlyif: {entry}")));
            }
            Entry::BadType => return Ok(ConditionResult::of(false, "onlyif execution failed, bad type passed")),
        }
    }
    Ok(ConditionResult::of(false, "onlyif condition is true"))
}

/// Evaluates `unless`: the state is skipped only if all entries succeed.
fn unless(context: &Context, chunk: &Chunk, condition: &Value) -> Result<ConditionResult, CallError> {
    let mut said = ConditionResult::of(false, "");
    for entry in entries("unless", condition)? {
        match outcome(context, chunk, "unless", entry)? {
            Entry::Was(true) => said = ConditionResult::of(true, "unless condition is true"),
            Entry::Was(false) => return Ok(ConditionResult::of(false, "unless condition is false")),
            // What the entry before it has decided holds.
            Entry::NoFunction => {
                return Ok(ConditionResult::of(said.skip, &format!("no `fun` argument in unless: {entry}")));
            }
            Entry::BadType => said = ConditionResult::of(false, "unless condition is false, bad type passed"),
        }
    }
    Ok(said)
}

fn creates(paths: &Value) -> Result<ConditionResult, CallError> {
    Ok(match paths {
        Value::Str(path) if Path::new(path).exists() => ConditionResult::of(true, &format!("{path} exists")),
        Value::List(paths) => {
            for path in paths {
                if matches!(path, Value::Nil | Value::Float(_) | Value::List(_) | Value::Map(_)) {
                    let type_name = path.type_name();
                    return Err(CallError::execution(format!("creates has an entry that is {type_name}, not a path")));
                }
            }
            if paths.iter().all(|path| Path::new(&path.to_string()).exists()) {
                ConditionResult::of(true, "All files in creates exist")
            } else {
                ConditionResult::of(false, "Creates files not found")
            }
        }
        _ => ConditionResult::of(false, "Creates files not found"),
    })
}

/// Returns whether all commands of `check_cmd` succeed; `None` if there are none. Those of a mapping are its keys.
pub(super) fn check_cmd(context: &Context, commands: &Value) -> Result<Option<bool>, CallError> {
    let commands: Vec<&Value> = match commands {
        Value::List(commands) => commands.iter().collect(),
        Value::Map(commands) => commands.keys().collect(),
        Value::Str(_) => vec![commands],
        odd => return Err(CallError::execution(format!("check_cmd is {}, not a command or a list", odd.type_name()))),
    };
    for command in &commands {
        let command = match command {
            Value::List(_) => Value::clone(command),
            command => command.to_string().into(),
        };
        if !succeeds(context, command, Map::new()).map_err(|error| failed("check_cmd", error))? {
            return Ok(Some(false));
        }
    }
    Ok((!commands.is_empty()).then_some(true))
}

fn entries<'a>(name: &str, condition: &'a Value) -> Result<&'a [Value], CallError> {
    match condition {
        Value::List(entries) if entries.is_empty() => Err(CallError::execution(format!("{name} is an empty list"))),
        Value::List(entries) => Ok(entries),
        one => Ok(std::slice::from_ref(one)),
    }
}

/// Returns the error of a condition whose command is empty.
fn failed(condition: &str, error: CallError) -> CallError {
    match error {
        CallError::Exception(cause) => CallError::Execution(format!("{condition} failed: {cause}")),
        other => other,
    }
}

/// Evaluates an entry: a string is a shell command, a mapping with `fun` a call. If a command cannot be started, the
/// state is skipped; an empty one is an error.
fn outcome(context: &Context, chunk: &Chunk, condition: &str, entry: &Value) -> Result<Entry, CallError> {
    match entry {
        Value::Str(command) => {
            let without: Vec<String> = match chunk.args.get("cmd_opts_exclude") {
                Some(Value::List(names)) => names.iter().map(ToString::to_string).collect(),
                Some(name) => vec![name.to_string()],
                None => Vec::new(),
            };
            let options = COMMAND_ARGS.iter().filter(|name| !without.iter().any(|other| other == *name));
            let options = options.filter_map(|name| Some((Value::from(*name), chunk.args.get(*name)?.clone())));
            match succeeds(context, command.as_str().into(), options.collect()) {
                Ok(was) => Ok(Entry::Was(was)),
                Err(error @ CallError::Exception(_)) => Err(failed(condition, error)),
                Err(_) => Ok(Entry::Was(condition == "unless")),
            }
        }
        Value::Map(call) => match call.get("fun") {
            Some(fun) => function(context, condition, &fun.to_string(), call).map(Entry::Was),
            None => Ok(Entry::NoFunction),
        },
        _ => Ok(Entry::BadType),
    }
}

fn succeeds(context: &Context, command: Value, mut options: Map) -> Result<bool, CallError> {
    options.insert("ignore_retcode".into(), true.into());
    options.insert("python_shell".into(), true.into());
    let args = Args { positional: vec![command], keyword: options };
    Ok(context.call("cmd.retcode", args)? == Value::Int(0))
}

/// Calls a function, and returns whether it succeeded: by its return value, or by the retcode that it sets.
fn function(context: &Context, condition: &str, fun: &str, call: &Map) -> Result<bool, CallError> {
    let positional = match call.get("args") {
        None => Vec::new(),
        Some(Value::List(args)) => args.clone(),
        // As Salt, which takes the items of any sequence.
        Some(Value::Str(args)) => args.chars().map(|arg| arg.to_string().into()).collect(),
        Some(Value::Map(args)) => args.keys().cloned().collect(),
        Some(odd) => {
            let type_name = odd.type_name();
            return Err(CallError::execution(format!(
                "args of {condition} is invalid: expected a list, got {type_name}"
            )));
        }
    };
    let keyword = call.iter().filter(|(key, _)| !matches!(key.as_str(), Some("fun" | "args" | "get_return")));
    let mut args = Args { positional, keyword: keyword.map(|(key, value)| (key.clone(), value.clone())).collect() };
    slots::fill(context, &mut args)?;
    let retcode = &context.job.retcode;
    let before = retcode.swap(0, Ordering::Relaxed);
    let value = context.call_nested(fun, args);
    let set = retcode.swap(before, Ordering::Relaxed);
    let value = match (value?, call.get("get_return").filter(|path| path.is_truthy())) {
        (value, Some(path)) => brine_yaml::traverse(&value, &path.to_string(), ":").cloned().unwrap_or_default(),
        (value, None) => value,
    };
    Ok(if set == 0 { value.is_truthy() } else { false })
}
