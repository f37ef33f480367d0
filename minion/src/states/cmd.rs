//! `cmd`: commands as states.

use brine_core::function::CallError;
use brine_core::{Map, Value, functions, map};

use super::{StateContext, StateReturn};
use crate::modules::cmd;

functions! {
    module "cmd", context StateContext;

    /// Runs a command. `creates`, `onlyif` and `unless` keep it from running when there is nothing to do.
    fn run(context, name: String, **kwargs) {
        if context.test {
            let comment = format!("Command \"{name}\" would have been executed");
            return Ok(StateReturn::would(&name, comment).with_changes(map! {"cmd" => &name}).into());
        }
        if let Some(cwd) = kwargs.get("cwd").and_then(Value::as_str).filter(|cwd| !std::path::Path::new(cwd).is_dir()) {
            return Ok(StateReturn::failed(&name, format!("Desired working directory \"{cwd}\" is not available")).into());
        }
        match cmd::execute(&context.call, &name, &kwargs) {
            Ok(output) => {
                let changes = map! {"pid" => output.pid, "retcode" => output.retcode, "stdout" => &output.stdout, "stderr" => &output.stderr};
                let good = kwargs.get("success_retcodes").and_then(Value::as_list).unwrap_or_default();
                let success = output.retcode == 0 || good.contains(&output.retcode.into());
                let mut done = StateReturn::ok(&name, format!("Command \"{name}\" run")).with_changes(changes);
                done.result = Some(success);
                if kwargs.get("stateful").is_some_and(Value::is_truthy) {
                    return Ok(stateful(done, &output.stdout).into());
                }
                Ok(done.into())
            }
            Err(CallError::Execution(message)) => Ok(StateReturn::failed(&name, message).into()),
            Err(error) => Err(error),
        }
    }

    /// Runs a command only when something watched has changed.
    fn wait(_context, name: String, **_kwargs) {
        Ok(StateReturn::ok(&name, "").into())
    }

    /// What is done when something watched has changed: the command runs.
    fn mod_watch(context, name: String, **kwargs) {
        let mut kwargs = kwargs;
        kwargs.shift_remove("sfun");
        run(context, name, kwargs)
    }
}

/// Reads what a stateful command says of itself: its last line is JSON, or words such as `changed=yes`.
fn stateful(mut done: StateReturn, stdout: &str) -> StateReturn {
    let last = stdout.lines().last().unwrap_or_default().trim();
    let said: Option<Map> = match brine_core::value::json::from_json(last) {
        Ok(Value::Map(said)) => Some(said),
        _ => crate::process::split(last).and_then(|words| {
            words.iter().map(|word| word.split_once('=').map(|(key, value)| (key.into(), value.into()))).collect()
        }),
    };
    let Some(mut said) = said.filter(|said| !said.is_empty()) else {
        done.comment = "Failed parsing script output! Stdout must be JSON or a line of name=value pairs.".into();
        done.result = Some(false);
        return done;
    };
    let changed = said
        .shift_remove("changed")
        .is_some_and(|word| matches!(word.to_string().to_lowercase().as_str(), "true" | "yes" | "1"));
    if let Some(comment) = said.shift_remove("comment") {
        done.comment = comment.to_string();
    }
    if changed {
        done.changes.extend(said);
    } else {
        done.changes = Map::new();
    }
    done
}
