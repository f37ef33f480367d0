//! `salt`: publishes jobs to minions and shows their returns.
//!
//! `arguments/` parses the command line, `job.rs` queries the minions of a target, `return_display/` shows and
//! counts returns, `docs.rs` shows documentation, `batch.rs` runs batches, `choice.rs` selects minions of a target,
//! `plan.rs` plans jobs and applies plans.

mod arguments;
mod batch;
mod batch_state;
mod choice;
mod docs;
mod job;
mod plan;
mod return_display;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use arguments::Arguments;
pub(super) use arguments::{SimpleTargets, TargetOptions};
use brine_auth::FIND_JOB;
use brine_client::job::{Outcome, Run};
use brine_config::MasterConfig;
use brine_function::arguments::{parse, parse_value};
use brine_ids::Jid;
use brine_job::Times;
use brine_target::TargetKind;
use brine_text::nearest::nearest;
use brine_value::{Map, Value};
use brine_wire::PublishRequest;
use clap::CommandFactory;
use job::Job;
use plan::Planning;
use return_display::ReturnDisplay;

use super::broken_values;
use super::client::{ClientError, user, without_master};
use super::common::{ResultPrinter, mask};
use super::exit_status::FailureStatus;
use super::plan_file;
use super::runtime;
use super::usage;
use crate::ui::{print_plain, print_plain_error, symptoms};

const NAME: &str = "salt";
pub const USAGE: &str = "salt [options] '<target>' <function> [arguments]";
/// Salt's exit status for a command line without target or function.
const INCOMPLETE: u8 = 42;
/// Salt's exit status when no minion matched or returned.
const NO_MINION: u8 = 2;
/// The exit status of other failures.
const FAILURE: u8 = 1;
/// The default of `--batch-safe-size`.
const BATCH_SAFE_SIZE: &str = "8";

/// Returns the options.
pub fn options() -> clap::Command {
    Arguments::command()
}

/// Runs the tool.
pub fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let mut arguments: Arguments = match usage::parse_with_stdin(NAME, USAGE, Arguments::command, words)? {
        Ok(arguments) => arguments,
        Err(status) => return Ok(status),
    };
    if let Err(message) = arguments.target.check().and_then(|()| arguments.check_choice()) {
        return Ok(usage::error(NAME, USAGE, &message));
    }
    if arguments.config_dump {
        return dump(&arguments);
    }
    if arguments.apply.is_none()
        && let Err(status) = complete(&mut arguments)
    {
        return Ok(status);
    }
    let config = arguments.common.start_with_master(&Map::new())?;
    arguments.show_jid |= config.show_jid;
    arguments.hide_timeout |= !config.show_timeout;
    arguments.summary |= config.cli_summary;
    let statuses = FailureStatus::new(config.salt_exit_status);
    arguments.statuses = statuses;
    arguments.plan_approval = config.plan_approval;
    if arguments.plan.is_some() {
        // A plan is one document.
        (arguments.fixed, arguments.progress) = (true, false);
    }
    let mut opts = config.opts.clone();
    if arguments.output_diff {
        opts.insert("state_output_diff".into(), true.into());
    }
    let printer = arguments.output.printer(&opts)?;
    let mut request = match &arguments.apply {
        Some(path) => {
            let Some(request) = plan::request(&plan_file::read(path)?) else {
                print_plain_error("the plan changes nothing: no job is published");
                return Ok(ExitCode::SUCCESS);
            };
            request
        }
        None => match request(&arguments) {
            Ok(request) => request,
            Err(message) => {
                print_plain_error(&message);
                return Ok(ExitCode::from(INCOMPLETE));
            }
        },
    };
    let planning = match arguments.plan.is_some().then(|| Planning::of(&mut request)).transpose() {
        Ok(planning) => planning,
        Err(message) => return Ok(usage::error(NAME, USAGE, &message)),
    };
    if request.tgt_type == TargetKind::Nodegroup.name()
        && let Some(group) = request.tgt.as_str().filter(|group| !config.nodegroups.contains_key(*group))
    {
        let file = arguments.common.config_file("master");
        print_plain(format_args!("Node group {group} unavailable in {}", file.display()));
        if let Some(near) = nearest(group, config.nodegroups.keys().map(ToString::to_string)) {
            print_plain_error(format_args!("unknown node group '{group}': did you mean '{near}'?"));
        }
        return Ok(statuses.of(NO_MINION));
    }
    let runtime = runtime::current_thread()?;
    let is_followed = !arguments.asynchronous;
    let result = runtime::block_on(&runtime, dispatch(&config, arguments, request, planning, printer));
    match result.map_err(anyhow::Error::downcast::<ClientError>) {
        Ok(status) => Ok(status),
        Err(Ok(error @ ClientError::NoMaster(_))) => {
            tracing::error!("{}", std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default());
            print_plain(&error);
            print_plain_error(without_master(&config));
            // Salt's exit status with --async is 1.
            Ok(if is_followed { statuses.of(FAILURE) } else { ExitCode::FAILURE })
        }
        Err(Ok(error @ ClientError::Denied(_))) => {
            print_plain(&error);
            symptoms::note(&error.to_string());
            Ok(statuses.of(FAILURE))
        }
        Err(Ok(error @ ClientError::NoEvents { .. })) => {
            print_plain_error(format_args!("ERROR: {error}"));
            Ok(statuses.of(FAILURE))
        }
        Err(Ok(error)) => {
            print_plain_error(format_args!("ERROR: {error}"));
            Ok(ExitCode::from(NO_MINION))
        }
        Err(Err(error)) => Err(error),
    }
}

/// Shows the master's configuration.
fn dump(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let config = arguments.common.start_with_master(&Map::new())?;
    let mut opts = config.opts;
    opts.sort_by_key(|name, _| name.to_string());
    arguments.output.printer(&Map::new())?.show(&opts.into(), "yaml")?;
    Ok(ExitCode::SUCCESS)
}

/// Applies implied options; the error is the exit status of an incomplete command line.
fn complete(arguments: &mut Arguments) -> Result<(), ExitCode> {
    let words = &mut arguments.words;
    if words.len() < 2 && !arguments.doc && !arguments.preview_target {
        print_plain(usage::help(NAME, USAGE, Arguments::command()));
    }
    if arguments.doc {
        if words.is_empty() {
            words.push("*".to_owned());
        }
        if words.get(1).is_none_or(|fun| fun != docs::FUNCTION) {
            words.insert(1, docs::FUNCTION.to_owned());
        }
        if words.len() > 3 {
            return Err(usage::error(NAME, USAGE, "You can only get documentation for one method at one time."));
        }
    }
    let missing = match (words.len(), arguments.preview_target) {
        (0, _) => "Cannot execute command without defining a target.",
        (1, false) => "Incomplete options passed.",
        _ => return Ok(()),
    };
    print_plain_error(format_args!("\n{missing}\n"));
    Err(ExitCode::from(INCOMPLETE))
}

/// Runs the command in the mode of its options.
async fn dispatch(
    config: &MasterConfig,
    mut arguments: Arguments,
    mut request: PublishRequest,
    planning: Option<Planning>,
    printer: ResultPrinter,
) -> anyhow::Result<ExitCode> {
    let client = arguments.credentials.client(config).await?;
    let timeout = arguments.timeout.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0);
    let timeout = timeout.map_or_else(|| config.timeout.seconds(), Duration::from_secs);
    let gather = config.gather_job_timeout.seconds();
    let job = Job { client: &client, times: Times { timeout, gather, find_job: FIND_JOB } };
    // What protects minions from the job applies beside all other options.
    if arguments.preview_target {
        return choice::preview(&job, request, printer).await;
    }
    if arguments.subset > 0 {
        let subset = usize::try_from(arguments.subset)?;
        request = choice::subset(&job, request, subset).await?;
    }
    match arguments.batch.clone() {
        Some(size) if arguments.asynchronous => return batch::start_on_master(&job, &arguments, request, &size).await,
        Some(size) => {
            let output = batch::Output::new(&arguments, planning, printer);
            return Box::pin(batch::run(&job, &arguments, request, &size, &mask(config)?, output)).await;
        }
        None => {}
    }
    if arguments.batch_safe_limit > 1 {
        let matched = choice::matched(&job, &request).await?.len();
        if i64::try_from(matched).is_ok_and(|matched| matched >= arguments.batch_safe_limit) {
            let notice = "\nNOTICE: Too many minions targeted, switching to batch execution.";
            // A single document must not be preceded by other output.
            if arguments.fixed {
                print_plain_error(notice);
            } else {
                print_plain(notice);
            }
            let size = arguments.batch_safe_size.take().unwrap_or_else(|| BATCH_SAFE_SIZE.to_owned());
            if arguments.asynchronous {
                return batch::start_on_master(&job, &arguments, request, &size).await;
            }
            let output = batch::Output::new(&arguments, planning, printer);
            return Box::pin(batch::run(&job, &arguments, request, &size, &mask(config)?, output)).await;
        }
    }
    Box::pin(one_job(&job, &arguments, request, planning, printer)).await
}

/// Returns the job of the command line.
fn request(arguments: &Arguments) -> Result<PublishRequest, String> {
    let target = arguments.words.first().map_or("*", String::as_str);
    let (tgt, tgt_type) = arguments.target.read(target);
    let (fun, arg) = arguments.functions()?;
    let mut kwargs = Map::new();
    if let Some(delimiter) = &arguments.target.delimiter {
        kwargs.insert("delimiter".into(), delimiter.into());
    }
    // As in Salt, this name is passed as a string.
    kwargs.extend(arguments.return_config.as_ref().map(|prefix| ("ret_config".into(), prefix.into())));
    for (name, value) in [
        ("ret_kwargs", &arguments.return_kwargs),
        ("metadata", &arguments.metadata),
        ("module_executors", &arguments.module_executors),
        ("executor_opts", &arguments.executor_opts),
    ] {
        kwargs.extend(value.as_ref().map(|value| (name.into(), parse_value(value))));
    }
    if arguments.start_event {
        kwargs.insert("start_event".into(), true.into());
    }
    let ret = arguments.r#return.clone().unwrap_or_default();
    Ok(PublishRequest { tgt, tgt_type, fun, arg, ret, jid: None, key: None, proof: None, user: user(), kwargs })
}

const NO_MATCH: &str = "No minions matched the target. No command was sent, no jid was assigned.";
const NOTHING_RETURNED: &str = "ERROR: No return received";

async fn one_job(
    job: &Job<'_>,
    arguments: &Arguments,
    request: PublishRequest,
    planning: Option<Planning>,
    printer: ResultPrinter,
) -> anyhow::Result<ExitCode> {
    // Subscribed before the publish: no event of the job is missed. Users who may not read events can use `--async`.
    let is_followed = !arguments.asynchronous || arguments.fixed;
    let mut link = if is_followed { Some(job.client.link(&[]).await?) } else { None };
    let published = match job.client.publish(request.clone()).await {
        Ok(published) => published,
        // For example an invalid target: as in Salt it matches no minion.
        Err(error @ ClientError::Refused(_)) if arguments.apply.is_none() => {
            print_plain(NO_MATCH);
            return Err(error.into());
        }
        Err(error) => return Err(error.into()),
    };
    let mut display = ReturnDisplay::new(arguments, &request, planning, printer);
    let Some(jid) = published.jid.clone() else {
        print_plain(NO_MATCH);
        if !is_followed {
            print_plain("Executed command with job ID: 0");
            choice::hint(job, &request).await;
            return Ok(arguments.statuses.of(NO_MINION));
        }
        display.nothing()?;
        print_plain_error(NOTHING_RETURNED);
        choice::hint(job, &request).await;
        return Ok(ExitCode::from(NO_MINION));
    };
    let Some(link) = &mut link else {
        print_plain(format_args!("Executed command with job ID: {jid}"));
        return Ok(ExitCode::SUCCESS);
    };
    if arguments.fixed {
        // A single document must not be preceded by other output.
    } else if arguments.verbose {
        print_plain(format_args!("Executing job with jid {jid}\n{}\n", "-".repeat(43)));
    } else if arguments.show_jid {
        print_plain(format_args!("jid: {jid}"));
    }
    display.expect(&jid, published.minions.len() + published.missing.len())?;
    let mut run = Run::of_published(link, &jid, &user(), &published, job.times);
    while let Some(outcome) = run.next().await? {
        match outcome {
            Outcome::Returned(one) => display.returned(&one)?,
            Outcome::Missing(id) => display.missing(&id, &jid, &published)?,
            Outcome::Interrupted => return Ok(interrupted(&jid)),
        }
    }
    for id in run.unknown(&published.missing) {
        display.missing(&id, &jid, &published)?;
    }
    match display.into_planning() {
        Ok((planning, printer)) => planning.finish(job, arguments, printer).await,
        Err(display) => display.finish(),
    }
}

fn interrupted(jid: &Jid) -> ExitCode {
    print_plain_error(format_args!(
        "\nExiting gracefully on Ctrl-c\nThis job's jid is: {jid}\nThe minions may not have all finished running and any remaining minions will return upon completion. To look up the return data for this job later, run the following command:\n\nsalt-run jobs.lookup_jid {jid}"
    ));
    ExitCode::FAILURE
}

/// Returns positional and keyword arguments in their wire format.
pub(super) fn wire_args(words: &[String], no_parse: &[String]) -> Vec<Value> {
    broken_values::report(words);
    parse(words, no_parse).to_wire()
}
