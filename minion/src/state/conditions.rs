//! `onlyif`, `unless`, `creates`: whether a state runs at all.

use std::path::Path;

use brine_core::function::{Args, CallError};
use brine_core::sls::compile::Chunk;
use brine_core::{Map, Value};

use crate::context::Context;
use crate::modules::cmd;

/// Why a state is not run, if its conditions say so.
pub(super) fn skipped(context: &Context, chunk: &Chunk) -> Result<Option<&'static str>, CallError> {
    if let Some(condition) = chunk.args.get("onlyif") {
        for entry in entries(condition) {
            if !holds(context, chunk, entry)? {
                return Ok(Some("onlyif condition is false"));
            }
        }
    }
    if let Some(condition) = chunk.args.get("unless") {
        let mut all = true;
        for entry in entries(condition) {
            all &= holds(context, chunk, entry)?;
        }
        if all {
            return Ok(Some("unless condition is true"));
        }
    }
    match chunk.args.get("creates") {
        Some(Value::Str(path)) if Path::new(path).exists() => Ok(Some("creates")),
        Some(Value::List(paths)) if paths.iter().all(|path| Path::new(&path.to_string()).exists()) => {
            Ok(Some("All files in creates exist"))
        }
        _ => Ok(None),
    }
}

/// What is said of a state that `creates` skips for one path.
pub(super) fn comment(reason: &str, chunk: &Chunk) -> String {
    match (reason, chunk.args.get("creates")) {
        ("creates", Some(path)) => format!("{path} exists"),
        _ => reason.to_owned(),
    }
}

/// Whether all commands of `check_cmd` succeed.
pub(super) fn check_cmd(context: &Context, chunk: &Chunk) -> Result<Option<bool>, CallError> {
    // That state lets the command look at its draft.
    if chunk.state == "file" && chunk.fun == "managed" {
        return Ok(None);
    }
    let Some(commands) = chunk.args.get("check_cmd") else { return Ok(None) };
    for command in entries(commands) {
        if !holds(context, chunk, command)? {
            return Ok(Some(false));
        }
    }
    Ok(Some(true))
}

fn entries(condition: &Value) -> &[Value] {
    match condition {
        Value::List(entries) => entries,
        one => std::slice::from_ref(one),
    }
}

/// A text is a shell command, a mapping with `fun` a call.
fn holds(context: &Context, chunk: &Chunk, entry: &Value) -> Result<bool, CallError> {
    match entry {
        Value::Str(command) => {
            let options = ["cwd", "root", "runas", "env", "umask", "timeout", "success_retcodes", "shell"];
            let kwargs: Map = options
                .iter()
                .filter_map(|name| chunk.args.get(*name).map(|value| (Value::from(*name), value.clone())))
                .collect();
            cmd::succeeds(context, command, &kwargs)
        }
        Value::Map(call) => {
            let Some(fun) = call.get("fun").and_then(Value::as_str) else { return Ok(true) };
            let positional = call.get("args").and_then(Value::as_list).unwrap_or_default().to_vec();
            let keyword = call.iter().filter(|(key, _)| !matches!(key.as_str(), Some("fun" | "args" | "get_return")));
            let args = Args { positional, keyword: keyword.map(|(key, value)| (key.clone(), value.clone())).collect() };
            let before = context.job.retcode.load(std::sync::atomic::Ordering::Relaxed);
            context.set_retcode(0);
            let value = context.call(fun, args)?;
            let set = context.job.retcode.load(std::sync::atomic::Ordering::Relaxed);
            context.set_retcode(before);
            let value = match call.get("get_return").and_then(Value::as_str) {
                Some(path) => brine_core::target::traverse(&value, path, ":").cloned().unwrap_or_default(),
                None => value,
            };
            Ok(set == 0 && value.is_truthy())
        }
        _ => Ok(true),
    }
}
