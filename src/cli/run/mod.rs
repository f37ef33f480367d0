//! `salt-run`: calls runner functions in the master. Only `state.event` runs in the tool itself.

mod docs;
mod lookups;
mod plan;
mod progress;
mod state_event;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use brine_config::MasterConfig;
use brine_function::CallError;
use brine_function::arguments::parse;
use brine_ids::Jid;
use brine_value::{FromValue, Value};
use brine_wire::Call;
use clap::{CommandFactory, Parser};

use super::broken_values;
use super::client::{ClientError, user, without_master};
use super::common::CallOptions;
use super::credentials::Credentials;
use super::exit_status::FailureStatus;
use super::plan_file::PLAN_FILE;
use super::privileges;
use super::runtime;
use super::usage;
use crate::ui::{print_plain, print_plain_error};
use plan::Planning;
use progress::Progress;

const NAME: &str = "salt-run";
pub const USAGE: &str = "salt-run [options] <function> [arguments]";
const NO_CREDENTIALS: u8 = 2;
/// The function that reads the journal; its calls have no events.
const JOURNAL: &str = "event_bus.since";
/// Functions whose result is also a progress event.
const STATES: &[&str] = &["state.orchestrate_single", "state.orchestrate_high"];
/// Functions whose result lists the errors that the reactions to an event would have.
const DRY_RUNS: &[&str] = &["reactor.test", "reactor.dry_run"];
const FAILURE: u8 = 1;
/// The end of the master's message about an invalid job id, before the form of one.
const INVALID_JID: &str = " is not a job id: ";
/// The beginnings of the master's messages about invalid arguments.
const INVALID_KEYWORDS: &str = "The following keyword arguments are not valid";
const INVALID_ARGUMENTS: &str = "\nPassed invalid arguments: ";

/// Call a runner function in the master.
#[derive(Parser, Debug)]
#[command(
    after_help = "Examples:\n  salt-run manage.status                        which minions are up\n  salt-run jobs.list_jobs                       which jobs were published\n  salt-run state.event --follow                 the event bus, one readable line an event\n  salt-run state.event --follow --since 10m     the same, beginning ten minutes ago\n  salt-run state.event pretty=True              the event bus as Salt prints it\n  salt-run state.event 'my/*' --since 100       as JSON, from event 100 on\n  salt-run reactor.explain 120                  the causes and effects of event 120\n  salt-run --plan state.orchestrate deploy      what the steps of an orchestration would change\n  salt-run --apply plan.brine                   apply exactly this plan\n  salt-run event.send my/tag '{a: 1}'           publish an event"
)]
struct Arguments {
    /// Print the tag of the call and do not wait
    #[arg(long = "async")]
    asynchronous: bool,
    /// The job id of the call (default: a new one)
    #[arg(long, value_name = "JID")]
    jid: Option<String>,
    /// Accepted for compatibility with Salt; has no effect
    #[arg(short, long, value_name = "SECONDS", value_parser = usage::integer)]
    timeout: Option<i64>,
    /// For state.event: print one readable line for each event; with POINT the older form of --since
    #[arg(long, value_name = "POINT", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    follow: Option<String>,
    /// For state.event: begin at a sequence number, a time, or a time span ago (10m)
    #[arg(long, value_name = "POINT")]
    since: Option<String>,
    /// For reactor.test: use the event of the journal with this sequence number
    #[arg(long, value_name = "N", value_parser = usage::integer)]
    from_seq: Option<i64>,
    /// Plan an orchestration: run it in test mode, show for each step the minions that would change in the same way as
    /// one group, and keep the plan in FILE (default: plan.brine)
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = PLAN_FILE)]
    plan: Option<PathBuf>,
    /// Apply the plan of an orchestration: minions that would no longer change exactly as planned run nothing
    #[arg(long, value_name = "FILE", conflicts_with = "plan")]
    apply: Option<PathBuf>,
    /// Show the documentation of functions
    #[arg(short, long = "doc", alias = "documentation")]
    doc: bool,
    /// Do not show the result
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    call: CallOptions,
    #[command(flatten)]
    credentials: Credentials,
    #[arg(hide = true)]
    words: Vec<String>,
}

/// Returns the options.
pub fn options() -> clap::Command {
    Arguments::command()
}

/// Runs the tool.
pub fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let arguments: Arguments = match usage::parse_with_stdin(NAME, USAGE, Arguments::command, follow_joined(words))? {
        Ok(arguments) => arguments,
        Err(status) => return Ok(status),
    };
    if arguments.doc && arguments.words.len() > 1 {
        return Ok(usage::error(NAME, USAGE, "You can only get documentation for one method at one time"));
    }
    let Ok(jid) = arguments.jid.as_deref().map_or_else(|| Ok(Jid::new()), str::parse) else {
        let named = arguments.jid.unwrap_or_default();
        return Ok(usage::error(NAME, USAGE, &format!("'{named}' is not a valid JID")));
    };
    if arguments.doc {
        return docs::run(&arguments);
    }
    if arguments.apply.is_some() && !arguments.words.is_empty() {
        return Ok(usage::error(NAME, USAGE, "--apply takes function and arguments from the plan: leave them out"));
    }
    if arguments.plan.is_some() && arguments.asynchronous {
        return Ok(usage::error(NAME, USAGE, "--plan waits for the dry runs: leave out --async"));
    }
    let applied = arguments.apply.as_deref().map(plan::applying).transpose()?;
    let words = applied.as_ref().map_or(&arguments.words[..], |(fun, _)| std::slice::from_ref(fun));
    let Some((fun, rest)) = words.split_first() else {
        print_plain(usage::help(NAME, USAGE, Arguments::command()));
        return Ok(ExitCode::SUCCESS);
    };
    let config = match arguments.call.common.start_as_user_of_master() {
        Ok(config) => config,
        Err(error) => return privileges::report(NAME, error),
    };
    let statuses = FailureStatus::new(config.salt_exit_status);
    let no_parse = arguments.call.no_parse();
    broken_values::report(rest);
    let mut args = applied.as_ref().map_or_else(|| parse(rest, &no_parse), |(_, args)| args.clone());
    let planning = arguments.plan.as_deref().map(|path| Planning::of(path, fun, &mut args, &jid)).transpose();
    let planning = match planning {
        Ok(planning) => planning,
        Err(message) => return Ok(usage::error(NAME, USAGE, &message)),
    };
    let follows = arguments.follow.as_deref() == Some("");
    let since = arguments.since.or(arguments.follow.filter(|point| !point.is_empty()));
    if (follows || since.is_some()) && fun != "state.event" {
        return Ok(usage::error(NAME, USAGE, "--follow and --since require state.event"));
    }
    args.keyword.extend(since.map(|point| ("since".into(), Value::from(point))));
    args.keyword.extend(arguments.from_seq.map(|seq| ("from_seq".into(), Value::from(seq))));
    let mut printer = arguments.call.output.printer(&config.opts)?;
    let runtime = runtime::current_thread()?;
    let client = match runtime::block_on(&runtime, arguments.credentials.client(&config)) {
        Ok(client) => client,
        Err(error) => return failed(error.into(), &config),
    };
    let original_args = args.clone();
    let answer = runtime::block_on(&runtime, async {
        if fun == "state.event" {
            let colours = arguments.call.output.colours(&config.opts);
            return state_event::run(&client, args, follows, colours).await.map(|()| None);
        }
        let call = Call {
            fun: fun.clone(),
            args,
            key: None,
            proof: None,
            user: user(),
            asynchronous: arguments.asynchronous,
            jid: Some(jid.clone()),
            is_salt: false,
        };
        // As in Salt, progress is not shown for users of `external_auth`.
        let follows = !arguments.asynchronous && !arguments.quiet && client.proof().is_none() && fun != JOURNAL;
        let progress = if follows { Progress::subscribe(&client, &jid).await } else { None };
        let Some(progress) = progress else { return Ok(Some(client.runner(call).await?)) };
        // Salt shows the results of these twice, as a broken return of states and by `nested`.
        let is_result = STATES.contains(&fun.as_str()) && printer.is_highstate();
        let show = |event: &Value, hint: &str| if is_result { Ok(()) } else { printer.show(event, hint) };
        Ok(Some(progress.during(client.runner(call), show).await?))
    });
    let answer = match answer {
        Ok(Some(answer)) => answer,
        Ok(None) => return Ok(ExitCode::SUCCESS),
        Err(error) => return failed(error, &config),
    };
    if arguments.asynchronous {
        let tag = answer.get("tag").map(ToString::to_string).unwrap_or_default();
        tracing::warn!(
            "Running in asynchronous mode. Results of this execution may be collected by attaching to the master event bus or by examining the master job cache, if configured. This execution is running under tag {tag}"
        );
        if !arguments.quiet {
            // For `jid=$(salt-run --async ...)`.
            print_plain(&jid);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let data = answer.get("data");
    let field = |name: &str| data.and_then(|data| data.get(name)).cloned().unwrap_or_default();
    let returned = field("return");
    let retcode = returned.get("data").and(returned.get("retcode")).and_then(i64::from_value);
    if let Some(planning) = planning
        && planning.finish(returned.get("data").unwrap_or(&Value::Nil), &mut printer)?
    {
        return Ok(ExitCode::from(u8::from(retcode != Some(0))));
    }
    // As in Salt, outputters for programs show an orchestration with its retcode.
    let whole = retcode.is_some() && !printer.is_highstate();
    let (value, mut hint) =
        if whole { (returned, "nested".to_owned()) } else { unwrapped(returned, field("outputter")) };
    if STATES.contains(&fun.as_str()) {
        // Salt's progress events of these functions name this outputter.
        "highstate".clone_into(&mut hint);
    }
    let success = field("success").is_truthy();
    if !success && retcode.is_none() {
        let text = value.to_string();
        let is_unknown = text == CallError::NotAvailable(fun.clone()).to_string();
        let keywords = text.strip_prefix(INVALID_ARGUMENTS).filter(|rest| rest.starts_with(INVALID_KEYWORDS));
        if let Some(keywords) = keywords {
            // As in Salt, the documentation goes to stdout and the error to stderr.
            print_plain_error(keywords.lines().next().unwrap_or_default());
        }
        if is_unknown || keywords.is_some() {
            runtime::block_on(
                &runtime,
                docs::show_similar(&client, &config, fun, &text, (!arguments.quiet).then_some(&mut printer)),
            )?;
            return Ok(statuses.of(FAILURE));
        }
        if !arguments.quiet {
            print_plain(&text);
        }
        let is_invalid = text.starts_with(INVALID_ARGUMENTS) || text.contains(INVALID_JID);
        return Ok(if is_invalid { statuses.of(FAILURE) } else { ExitCode::FAILURE });
    }
    if !arguments.quiet {
        printer.show(&value, &hint)?;
    }
    if DRY_RUNS.contains(&fun.as_str()) && value.get("errors").is_some_and(Value::is_truthy) {
        return Ok(ExitCode::FAILURE);
    }
    if let Some(message) = runtime::block_on(&runtime, lookups::unknown(&client, fun, &original_args, &value)) {
        print_plain_error(message);
        return Ok(statuses.of(FAILURE));
    }
    Ok(ExitCode::from(retcode.map_or(0, |code| u8::try_from(code).unwrap_or(1))))
}

/// Joins `--follow` with a following point, so that any other following word remains an argument.
fn follow_joined(words: Vec<OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::with_capacity(words.len());
    for word in words {
        match (joined.last_mut(), word.to_str()) {
            (Some(last), Some(point)) if *last == "--follow" && state_event::is_point(point) => {
                last.push("=");
                last.push(point);
            }
            _ => joined.push(word),
        }
    }
    joined
}

/// Prints the error of a request to the master and returns the exit status.
fn failed(error: anyhow::Error, config: &MasterConfig) -> anyhow::Result<ExitCode> {
    let statuses = FailureStatus::new(config.salt_exit_status);
    Ok(match error.downcast::<ClientError>()? {
        error @ ClientError::Denied(_) => {
            print_plain_error(format_args!("ERROR: {error}"));
            statuses.of(NO_CREDENTIALS)
        }
        error @ ClientError::NoMaster(_) => {
            print_plain_error(&error);
            print_plain_error(without_master(config));
            ExitCode::FAILURE
        }
        error => {
            print_plain_error(format_args!("ERROR: {error}"));
            ExitCode::from(NO_CREDENTIALS)
        }
    })
}

/// Splits a result that names its outputter into data and outputter.
fn unwrapped(value: Value, outputter: Value) -> (Value, String) {
    let hint = |value: &Value| value.as_str().map_or_else(|| "nested".to_owned(), str::to_owned);
    match value {
        Value::Map(map) if map.contains_key("outputter") && map.contains_key("data") => {
            (map.get("data").cloned().unwrap_or_default(), hint(map.get("outputter").unwrap_or(&Value::Nil)))
        }
        value => (value, hint(&outputter)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follow_accepts_a_position_and_no_other_argument() {
        for (words, expected) in [
            (&["state.event", "--follow"][..], &["state.event", "--follow"][..]),
            (&["state.event", "--follow", "300"], &["state.event", "--follow=300"]),
            (&["--follow", "10m", "state.event", "a/*"], &["--follow=10m", "state.event", "a/*"]),
            (&["--follow", "state.event", "a/*"], &["--follow", "state.event", "a/*"]),
            (&["state.event", "--follow", "a/*", "5"], &["state.event", "--follow", "a/*", "5"]),
        ] {
            let words = words.iter().map(OsString::from).collect();
            assert_eq!(follow_joined(words), expected);
        }
    }
}
