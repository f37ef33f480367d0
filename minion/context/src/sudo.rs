//! The executor `sudo`: it calls the function of a published job as the user of the option `sudo_user`, by `sudo` and
//! `salt-call`.

use std::path::{Path, PathBuf};

use brine_function::{Args, CallError, CallResult};
use brine_host::process::Program;
use brine_host::programs::program as program_of;
use brine_value::{Value, json};

use crate::Context;

/// The name of the executor.
pub(crate) const NAME: &str = "sudo";
/// The program that calls functions.
const TOOL: &str = "salt-call";

/// Returns the user that published jobs run as, if the configuration names one.
pub(crate) fn user(context: &Context) -> Option<&str> {
    // As in Salt, `salt-call` and scheduled jobs run as their own user.
    let is_published = context.job.load.contains_key("tgt_type");
    Some(context.config().sudo_user.as_str()).filter(|user| is_published && !user.is_empty())
}

/// Calls a function as a user.
///
/// # Errors
/// `sudo` is not installed or cannot be started.
pub(crate) fn call(context: &Context, user: &str, fun: &str, args: Args) -> CallResult {
    let program = std::env::current_exe().map_err(CallError::execution)?;
    let words = words(tool(&program), user, &context.config().config_dir);
    // By stdin: command lines are visible to all users of the host, and sudo logs them.
    let call = Program { stdin: Some(lines(fun, args)), ..program_of(&words, &[]) };
    let output = context.run_program(&call).map_err(CallError::execution)?;
    let answer = json::from_json(&output.stdout).ok();
    if let Some(answer) = answer.as_ref().and_then(|answer| answer.get("local"))
        && let Some(value) = answer.get("return")
    {
        context.set_retcode(answer.get("retcode").and_then(Value::as_i64).unwrap_or(0));
        return Ok(value.clone());
    }
    context.set_retcode(output.retcode);
    Ok(output.stderr.into())
}

/// Returns the beginning of a `salt-call` command line: the file of this name beside the program, or else the program
/// itself with this tool as argument.
fn tool(program: &Path) -> Vec<String> {
    let beside: PathBuf = program.with_file_name(TOOL);
    if beside.exists() {
        return vec![beside.display().to_string()];
    }
    vec![program.display().to_string(), TOOL.to_owned()]
}

/// Returns the command, which reads the function and its arguments from stdin.
fn words(tool: Vec<String>, user: &str, directory: &Path) -> Vec<String> {
    // `-n`: without a password prompt, which nobody could answer.
    let mut words = ["sudo", "-n", "-u", user].map(str::to_owned).to_vec();
    words.extend(tool);
    words.extend(["--out=json", "--metadata", "--no-return-event", "--args-stdin", "-c"].map(str::to_owned));
    words.push(directory.display().to_string());
    words
}

/// Returns the function and its arguments, one a line. Arguments are encoded in JSON, so that `salt-call` parses them to
/// the same values.
fn lines(fun: &str, mut args: Args) -> String {
    if matches!(fun, "state.sls" | "state.highstate" | "state.apply") {
        // This job itself counts as a state run.
        args.keyword.insert("concurrent".into(), true.into());
    }
    let positional = args.positional.iter().map(json::to_json);
    let keyword = args.keyword.iter().filter(|(name, _)| !name.as_str().is_some_and(|name| name.starts_with("__pub_")));
    let keyword = keyword.map(|(name, value)| format!("{name}={}", json::to_json(value)));
    let lines = ["--".to_owned(), fun.to_owned()].into_iter().chain(positional).chain(keyword);
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use brine_function::arguments;
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn arguments_are_passed_unchanged() {
        let args = Args {
            positional: vec!["a=b".into(), "5".into(), 5.into(), list!["x y", Value::Nil], "'; id".into()],
            keyword: map! {"saltenv" => "base", "__pub_jid" => "1", "pillar" => map! {"a" => true}},
        };
        let words = words(vec!["salt-call".into()], "deploy", Path::new("/etc/salt"));
        let expected = "sudo -n -u deploy salt-call --out=json --metadata --no-return-event --args-stdin -c /etc/salt";
        assert_eq!(words.join(" "), expected, "no argument is in the command line");
        let lines: Vec<String> = lines("state.apply", args.clone()).lines().map(str::to_owned).collect();
        let (start, words) = lines.split_at(2);
        assert_eq!(start.join(" "), "-- state.apply");
        let read = arguments::parse(words, &[]);
        assert_eq!(read.positional, args.positional);
        let keyword = map! {"saltenv" => "base", "pillar" => map! {"a" => true}, "concurrent" => true};
        assert_eq!(read.keyword, keyword);
    }

    #[test]
    fn the_tool_is_a_file_or_part_of_the_program() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("brine");
        assert_eq!(tool(&program), [program.display().to_string(), TOOL.to_owned()]);
        std::fs::write(directory.path().join(TOOL), "").unwrap();
        assert_eq!(tool(&program), [directory.path().join(TOOL).display().to_string()]);
    }
}
