//! `cmd`: commands as states.

use brine_core::function::{Args, CallError};
use brine_core::{Map, Value, functions, map};

use super::{StateContext, StateReturn};
use crate::modules::cmd;
use crate::process::Output;

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
        Ok(ran(&name, &format!("Command \"{name}\" run"), &kwargs, cmd::execute(&context.call, &name, &kwargs))?.into())
    }

    /// Runs a script from `salt://`, with `args` behind it.
    fn script(context, name: String, source: Option<String> = None, args: Value = Value::Nil, **kwargs) {
        if context.test {
            return Ok(StateReturn::would(&name, format!("Command '{name}' would have been executed")).into());
        }
        if let Some(cwd) = kwargs.get("cwd").and_then(Value::as_str).filter(|cwd| !std::path::Path::new(cwd).is_dir()) {
            return Ok(StateReturn::failed(&name, format!("Desired working directory \"{cwd}\" is not available")).into());
        }
        // Without a source, the name is one, and may have the arguments behind it.
        let (source, args) = match (source, name.split_once(' ')) {
            (Some(source), _) => (source, args),
            (None, Some((source, rest))) if !args.is_truthy() => (source.to_owned(), rest.into()),
            (None, _) => (name.clone(), args),
        };
        let content = match cmd::script_content(&context.call, &source, &context.saltenv, &kwargs) {
            Ok(Some(content)) => content,
            Ok(None) => {
                let changes = map! {"pid" => 0, "retcode" => 1, "stdout" => "", "stderr" => "", "cache_error" => true};
                let comment = format!("Unable to cache script {source} from saltenv '{}'", context.saltenv);
                return Ok(StateReturn::failed(&name, comment).with_changes(changes).into());
            }
            Err(error) => return Ok(StateReturn::failed(&name, error.to_string()).into()),
        };
        let output = cmd::run_script(&context.call, &content, &args, &kwargs);
        Ok(ran(&name, &format!("Command '{name}' run"), &kwargs, output)?.into())
    }

    /// Runs a script only when something watched has changed.
    fn wait_script(_context, name: String, **_kwargs) {
        Ok(StateReturn::ok(&name, "").into())
    }

    /// Runs a command only when something watched has changed.
    fn wait(_context, name: String, **_kwargs) {
        Ok(StateReturn::ok(&name, "").into())
    }

    /// What is done when something watched has changed: the command runs.
    fn mod_watch(context, name: String, **kwargs) {
        let mut kwargs = kwargs;
        let sfun = kwargs.shift_remove("sfun").map(|sfun| sfun.to_string()).unwrap_or_default();
        if matches!(sfun.as_str(), "script" | "wait_script") {
            kwargs.insert("name".into(), name.into());
            return context.call.minion.states.call(context, "cmd.script", Args::keyword(kwargs));
        }
        run(context, name, kwargs)
    }
}

/// What a command that ran, or could not, comes to.
fn ran(name: &str, comment: &str, kwargs: &Map, output: Result<Output, CallError>) -> Result<StateReturn, CallError> {
    let output = match output {
        Ok(output) => output,
        Err(CallError::Execution(message)) => return Ok(StateReturn::failed(name, message)),
        Err(error) => return Err(error),
    };
    let hidden = kwargs.get("hide_output").is_some_and(Value::is_truthy);
    let show = |text: &str| if hidden { String::new() } else { text.to_owned() };
    let changes = map! {
        "pid" => output.pid, "retcode" => output.retcode, "stdout" => show(&output.stdout), "stderr" => show(&output.stderr),
    };
    let mut done = StateReturn::ok(name, comment).with_changes(changes);
    done.result = Some(output.retcode == 0);
    if kwargs.get("stateful").is_some_and(Value::is_truthy) {
        return Ok(stateful(done, &output.stdout));
    }
    Ok(done)
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
        .get("changed")
        .is_some_and(|word| matches!(word.to_string().to_lowercase().as_str(), "true" | "yes" | "1"));
    if let Some(comment) = said.shift_remove("comment") {
        done.comment = comment.to_string();
    }
    if changed {
        // What the command says of itself comes first, as in Salt.
        said.extend(std::mem::take(&mut done.changes));
        done.changes = said;
    } else {
        done.changes = Map::new();
    }
    done
}

#[cfg(test)]
mod tests {
    use brine_core::list;

    use super::*;
    use crate::testing;

    fn story(states: &[(&str, Map)], test: bool) -> String {
        let context = testing::state_context(test, &[("s.sh", "echo script $*; exit 3\n")]);
        let told = states.iter().map(|(fun, args)| {
            let done = context.call.minion.states.call(&context, fun, Args::keyword(args.clone())).unwrap();
            let mut changes = done.get("changes").and_then(Value::as_map).cloned().unwrap();
            changes.shift_remove("pid");
            let changes = brine_core::value::json::to_json(&changes.into());
            format!("{}: {} | {changes}", done.get("result").unwrap(), done.get("comment").unwrap())
        });
        told.collect::<Vec<_>>().join("\n")
    }

    fn states() -> Vec<(&'static str, Map)> {
        vec![
            ("cmd.run", map! {"name" => "echo out; echo err >&2; exit 3"}),
            ("cmd.run", map! {"name" => "exit 3", "success_retcodes" => list![3]}),
            ("cmd.run", map! {"name" => "echo $A", "env" => list![map! {"A" => "1"}], "hide_output" => true}),
            ("cmd.run", map! {"name" => "pwd", "cwd" => "/nope"}),
            ("cmd.run", map! {"name" => "pwd", "runas" => "nobody_here"}),
            ("cmd.run", map! {"name" => "echo changed=yes comment=good", "stateful" => true}),
            ("cmd.run", map! {"name" => r#"echo '{"changed": false, "comment": "same"}'"#, "stateful" => true}),
            ("cmd.run", map! {"name" => "echo words alone", "stateful" => true}),
            ("cmd.wait", map! {"name" => "echo waited"}),
            ("cmd.mod_watch", map! {"name" => "echo waited", "sfun" => "wait"}),
            ("cmd.script", map! {"name" => "salt://s.sh", "args" => "a b"}),
            ("cmd.script", map! {"name" => "other", "source" => "salt://s.sh"}),
            ("cmd.script", map! {"name" => "salt://nope.sh"}),
            ("cmd.mod_watch", map! {"name" => "salt://s.sh x", "sfun" => "wait_script"}),
        ]
    }

    #[test]
    fn commands_are_told_as_salt_tells_them() {
        insta::assert_snapshot!(story(&states(), false), @r#"
        False: Command "echo out; echo err >&2; exit 3" run | {"retcode": 3, "stdout": "out", "stderr": "err"}
        True: Command "exit 3" run | {"retcode": 0, "stdout": "", "stderr": ""}
        True: Command "echo $A" run | {"retcode": 0, "stdout": "", "stderr": ""}
        False: Desired working directory "/nope" is not available | {}
        False: User 'nobody_here' is not available | {}
        True: good | {"changed": "yes", "retcode": 0, "stdout": "changed=yes comment=good", "stderr": ""}
        True: same | {}
        False: Failed parsing script output! Stdout must be JSON or a line of name=value pairs. | {"retcode": 0, "stdout": "words alone", "stderr": ""}
        True:  | {}
        True: Command "echo waited" run | {"retcode": 0, "stdout": "waited", "stderr": ""}
        False: Command 'salt://s.sh' run | {"retcode": 3, "stdout": "script a b", "stderr": ""}
        False: Command 'other' run | {"retcode": 3, "stdout": "script", "stderr": ""}
        False: Unable to cache script salt://nope.sh from saltenv 'base' | {"retcode": 1, "stdout": "", "stderr": "", "cache_error": true}
        False: Command 'salt://s.sh x' run | {"retcode": 3, "stdout": "script x", "stderr": ""}
        "#);
    }

    #[test]
    fn nothing_runs_in_test_mode() {
        let states = [states().remove(0), states().remove(10)];
        insta::assert_snapshot!(story(&states, true), @r#"
        None: Command "echo out; echo err >&2; exit 3" would have been executed | {"cmd": "echo out; echo err >&2; exit 3"}
        None: Command 'salt://s.sh' would have been executed | {}
        "#);
    }
}
