//! The commands that a minion permits to jobs: `cmd_blacklist_glob` and `cmd_whitelist_glob`.
//!
//! As in Salt, they hold for the functions of `cmd` that a job calls itself, and not for commands of states, templates
//! and other functions.

use std::sync::Arc;

use brine_context::Context;
use brine_function::CallError;
use brine_text::glob::Glob;
use brine_value::FromValue;

use super::{CommandArgs, CommandLine};

/// Returns a rendered command and the arguments for it, if the minion permits the command.
///
/// # Errors
/// The command is not permitted, or its template fails.
pub(super) fn permitted(
    context: &Context,
    command: CommandLine,
    mut args: CommandArgs,
) -> Result<(String, CommandArgs), CallError> {
    let command = if args.runs_through_shell(context) { command.for_shell() } else { command };
    let line = args.rendered(context, &command.line)?;
    let words = command.words.map(|words| args.rendered(context, &words)).transpose()?;
    args.cwd = args.cwd.as_deref().map(|cwd| args.rendered(context, cwd)).transpose()?;
    args.template = None;
    check(context, words.as_ref().unwrap_or(&line))?;
    Ok((line, args))
}

/// Returns an error if the minion does not permit a command.
pub(super) fn check(context: &Context, command: &str) -> Result<(), CallError> {
    if context.is_nested {
        return Ok(());
    }
    let matches = |globs: &[Glob]| globs.iter().any(|glob| glob.is_match(command));
    let config = context.config();
    let refused = globs(context, "cmd_blacklist_glob", &config.cmd_blacklist_glob)?;
    let permitted = globs(context, "cmd_whitelist_glob", &config.cmd_whitelist_glob)?;
    let is_refused = matches(&refused) || !permitted.is_empty() && !matches(&permitted);
    if is_refused {
        return Err(CallError::Execution(format!("The shell command \"{command}\" is not permitted")));
    }
    Ok(())
}

/// Returns the globs of an option: those of the configuration, or else of the grains, the pillar, or the options of the
/// master in the pillar.
fn globs(context: &Context, name: &str, configured: &[String]) -> Result<Vec<Glob>, CallError> {
    let (grains, pillar) = (context.minion.grains.get(), Arc::clone(&context.minion.pillar.read()));
    let master = pillar.get("master").and_then(|master| master.get(name));
    let elsewhere = [grains.get(name), pillar.get(name), master];
    let invalid = |got: &dyn std::fmt::Display| {
        CallError::Execution(format!(
            "{name} is invalid, so no command is permitted: expected a list of globs, got {got}"
        ))
    };
    let patterns = match elsewhere.into_iter().flatten().find(|value| value.is_truthy()) {
        Some(value) if configured.is_empty() => {
            Vec::<String>::from_value(value).ok_or_else(|| invalid(&value.type_name()))?
        }
        _ => configured.to_vec(),
    };
    let compiled: Result<_, _> = patterns.iter().map(|pattern| Glob::new(pattern)).collect();
    compiled.map_err(|error| invalid(&error))
}

#[cfg(test)]
mod tests {
    use brine_function::Args;
    use brine_value::{Map, Value, list, map};

    use super::*;
    use crate::testing;

    /// Returns a context with these options in the configuration, or else in the pillar.
    fn context_with(options: &Map, are_configured: bool) -> Context {
        let mut context = testing::context(&[]);
        let minion = Arc::get_mut(&mut context.minion).unwrap();
        if are_configured {
            let config = Arc::make_mut(&mut minion.config);
            let globs = |name: &str| options.get(name).map_or_else(Vec::new, |globs| Vec::from_value(globs).unwrap());
            config.cmd_blacklist_glob = globs("cmd_blacklist_glob");
            config.cmd_whitelist_glob = globs("cmd_whitelist_glob");
        } else {
            minion.set_pillar(options.clone());
        }
        context
    }

    fn run(context: &Context, function: &str, first: Value, keyword: Map) -> Result<Value, String> {
        let args = Args { positional: vec![first], keyword };
        context.call(&format!("cmd.{function}"), args).map_err(CallError::message)
    }

    #[test]
    fn commands_of_jobs_must_pass_both_lists() {
        for (options, command, is_permitted) in [
            (map! {}, "echo a", true),
            (map! {"cmd_blacklist_glob" => list!["rm *"]}, "echo a", true),
            (map! {"cmd_blacklist_glob" => list!["rm *", "echo *"]}, "echo a", false),
            (map! {"cmd_blacklist_glob" => "echo *"}, "echo a", false),
            (map! {"cmd_blacklist_glob" => list!["echo"]}, "echo a", true),
            (map! {"cmd_blacklist_glob" => list!["*;*"]}, "echo a\n; echo b", false),
            (map! {"cmd_whitelist_glob" => list!["ls*"]}, "echo a", false),
            (map! {"cmd_whitelist_glob" => list!["ls*", "echo ?"]}, "echo a", true),
            (map! {"cmd_whitelist_glob" => list!["echo *"], "cmd_blacklist_glob" => list!["*a"]}, "echo a", false),
            (map! {"cmd_whitelist_glob" => list![]}, "echo a", true),
        ] {
            for are_configured in [true, false] {
                let context = context_with(&options, are_configured);
                let result = run(&context, "run", command.into(), map! {});
                assert_eq!(result.is_ok(), is_permitted, "{options:?} {command}: {result:?}");
            }
        }
        let context = context_with(&map! {"cmd_blacklist_glob" => map! {"a" => 1}}, false);
        let error = run(&context, "run", "echo a".into(), map! {}).unwrap_err();
        assert_eq!(
            error,
            "cmd_blacklist_glob is invalid, so no command is permitted: expected a list of globs, got dict"
        );
    }

    #[test]
    fn the_rendered_command_is_checked_also_that_of_a_list() {
        let context = context_with(&map! {"cmd_blacklist_glob" => list!["*echo *"]}, true);
        for command in ["{{ 'echo' }} a".into(), list!["{{ 'echo' }} a"], list!["{{ 'echo' }}", "a"]] {
            let result = run(&context, "run", command, map! {"template" => "jinja"});
            assert!(result.as_ref().is_err_and(|error| error.ends_with("is not permitted")), "{result:?}");
        }
    }

    #[test]
    fn every_function_of_a_job_is_checked() {
        let context = context_with(&map! {"cmd_whitelist_glob" => list!["true"]}, true);
        let words = || list!["echo", "a b"];
        for (function, first, keyword, refused) in [
            ("run", "echo a".into(), map! {}, "echo a"),
            ("run", words(), map! {}, "echo a b"),
            ("run", "echo a".into(), map! {"bg" => true}, "echo a"),
            ("run", "echo {{ 1 + 1 }}".into(), map! {"template" => "jinja"}, "echo 2"),
            ("shell", "echo a".into(), map! {}, "echo a"),
            ("run_bg", "echo a".into(), map! {}, "echo a"),
            ("run_stdout", "echo a".into(), map! {}, "echo a"),
            ("run_stderr", "echo a".into(), map! {}, "echo a"),
            ("run_all", "echo a".into(), map! {}, "echo a"),
            ("retcode", "echo a".into(), map! {}, "echo a"),
        ] {
            let error = run(&context, function, first, keyword).unwrap_err();
            assert_eq!(error, format!("The shell command \"{refused}\" is not permitted"), "{function}");
        }
        let script = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(script.path(), "echo a\n").unwrap();
        let path = || Value::from(script.path().display().to_string());
        for (function, first, keyword) in [
            ("script", path(), map! {}),
            ("script_retcode", path(), map! {"args" => "x"}),
            ("exec_code", "sh".into(), map! {"code" => "echo a"}),
            ("exec_code_all", "sh".into(), map! {"code" => "echo a"}),
        ] {
            let error = run(&context, function, first, keyword).unwrap_err();
            assert!(error.contains("is not permitted"), "{function}: {error}");
        }
        assert_eq!(run(&context, "retcode", "true".into(), map! {}), Ok(0.into()));
        // Functions, templates and states.
        let args = || Args::positional(["echo a".into()]);
        assert_eq!(context.call_nested("cmd.run", args()), Ok("a".into()));
        assert_eq!(context.for_template().call("cmd.run", args()), Ok("a".into()));
    }
}
