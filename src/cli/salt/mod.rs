//! `salt`: jobs for minions, and what came of them.
//!
//! `arguments.rs` reads the line, `job.rs` publishes and waits, `batch.rs` does so a few minions at a
//! time.

mod arguments;
mod batch;
mod batch_state;
mod job;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use arguments::Arguments;
use brine_core::jid::Jid;
use brine_core::job::Times;
use brine_core::sls::arguments::parse;
use brine_core::wire::PublishRequest;
use brine_core::{Map, Value, map};
use clap::CommandFactory;
use job::{Ended, Job};

use super::client::{ClientError, MasterClient, user};
use super::common::Shower;
use super::usage;
use crate::output::no_return;
use crate::ui::{print_plain, print_plain_error};

const NAME: &str = "salt";
const USAGE: &str = "salt [options] '<target>' <function> [arguments]";
/// Salt's exit status for a line that lacks target or function.
const INCOMPLETE: u8 = 42;
/// Salt's exit status when nobody matched or returned.
const NOBODY: u8 = 2;

/// Runs the tool.
pub fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let mut arguments: Arguments = match usage::parse(NAME, USAGE, Arguments::command(), words) {
        Ok(arguments) => arguments,
        Err(status) => return Ok(status),
    };
    if arguments.words.is_empty() {
        print_plain(usage::help(NAME, USAGE, Arguments::command()));
        print_plain_error("Cannot execute command without defining a target.");
        return Ok(ExitCode::from(INCOMPLETE));
    }
    if arguments.args_stdin {
        let more = std::io::read_to_string(std::io::stdin()).context("cannot read the arguments")?;
        arguments.words.extend(more.lines().map(str::to_owned));
    }
    if arguments.doc && arguments.words.len() < 2 {
        arguments.words.push(String::new());
    }
    if arguments.words.len() < 2 && !arguments.preview_target {
        print_plain_error("Incomplete options passed.");
        return Ok(ExitCode::from(INCOMPLETE));
    }
    let config = arguments.common.start_with_master(&Map::new())?;
    let shower = arguments.output.shower(&config.opts)?;
    let request = match request(&arguments) {
        Ok(request) => request,
        Err(message) => return Ok(usage::error(NAME, USAGE, &message)),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let client = MasterClient::new(&config)?;
        let timeout = arguments.timeout.map_or(config.timeout, |seconds| u64::try_from(seconds).unwrap_or(0));
        let [timeout, gather] = [timeout, config.gather_job_timeout].map(Duration::from_secs);
        let job = Job { client: &client, times: Times { timeout, gather } };
        if arguments.preview_target {
            return preview(&job, request, shower).await;
        }
        match arguments.batch.clone() {
            Some(size) if arguments.asynchronous => batch::hand_over(&job, &arguments, request, &size).await,
            Some(size) => batch::run(&job, &arguments, request, &size, shower).await,
            None => one_job(&job, &arguments, request, shower).await,
        }
    });
    match result.map_err(anyhow::Error::downcast::<ClientError>) {
        Ok(status) => Ok(status),
        Err(Ok(error @ ClientError::NoMaster(_))) => {
            tracing::error!("{}", std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default());
            print_plain(&error);
            Ok(ExitCode::SUCCESS)
        }
        Err(Ok(error)) => {
            print_plain_error(format_args!("ERROR: {error}"));
            Ok(ExitCode::from(NOBODY))
        }
        Err(Err(error)) => Err(error),
    }
}

/// The job that the line asks for.
fn request(arguments: &Arguments) -> Result<PublishRequest, String> {
    let (tgt, tgt_type) = arguments.target.read(&arguments.words[0]);
    let (fun, arg) = if arguments.doc {
        let words: Vec<Value> = arguments.words[1..].iter().filter(|word| !word.is_empty()).map(Value::from).collect();
        (Value::from("sys.doc"), words)
    } else {
        arguments.functions()?
    };
    let mut kwargs = Map::new();
    if let Some(delimiter) = &arguments.target.delimiter {
        kwargs.insert("delimiter".into(), delimiter.into());
    }
    for (name, value) in [
        ("ret_config", &arguments.return_config),
        ("ret_kwargs", &arguments.return_kwargs),
        ("metadata", &arguments.metadata),
    ] {
        if let Some(value) = value {
            kwargs.insert(name.into(), brine_core::sls::arguments::parse_value(value));
        }
    }
    let ret = arguments.r#return.clone().unwrap_or_default();
    Ok(PublishRequest { tgt, tgt_type, fun, arg, ret, jid: None, key: None, user: user(), kwargs })
}

async fn preview(job: &Job<'_>, request: PublishRequest, mut shower: Shower) -> anyhow::Result<ExitCode> {
    let call = brine_core::wire::Call {
        fun: "manage.targets".into(),
        args: brine_core::function::Args::positional([request.tgt, request.tgt_type.into()]),
        key: None,
        user: user(),
        asynchronous: false,
    };
    let answer = job.client.runner(call).await?;
    let minions = answer.get("data").and_then(|data| data.get("return")).cloned().unwrap_or_default();
    shower.show(&minions, "nested")?;
    Ok(ExitCode::SUCCESS)
}

const NO_MATCH: &str = "No minions matched the target. No command was sent, no jid was assigned.";

async fn one_job(
    job: &Job<'_>,
    arguments: &Arguments,
    request: PublishRequest,
    mut shower: Shower,
) -> anyhow::Result<ExitCode> {
    // Before the job goes out: nothing that it leads to may be missed.
    let mut events = job.client.events("salt/job/").await?;
    let published = job.client.publish(request).await?;
    let Some(jid) = published.jid.clone() else {
        print_plain(NO_MATCH);
        print_plain_error("ERROR: No return received");
        return Ok(ExitCode::from(NOBODY));
    };
    if arguments.asynchronous {
        print_plain(format_args!("Executed command with job ID: {jid}"));
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.verbose {
        print_plain(format_args!("Executing job with jid {jid}\n{}\n", "-".repeat(43)));
    } else if arguments.show_jid {
        print_plain(format_args!("jid: {jid}"));
    }
    let mut tally = Tally { targeted: published.minions.len() + published.missing.len(), ..Tally::default() };
    let mut all = Map::new();
    let mut show = |shower: &mut Shower, id: &str, value: Value, out: &str| -> anyhow::Result<()> {
        if arguments.fixed {
            all.insert(id.into(), value);
            Ok(())
        } else if arguments.doc {
            show_doc(&value);
            Ok(())
        } else {
            shower.show(&map! {id => value}.into(), out)
        }
    };
    let mut watch = job.watch(&mut events);
    watch.add(&jid, &published.minions);
    let mut hint = String::from("nested");
    while let Some(ended) = watch.next().await? {
        match ended {
            Ended::Returned(one) => {
                tally.returned += 1;
                tally.failed += usize::from(one.retcode() != 0);
                let out = one.map().get("out").and_then(Value::as_str).unwrap_or("nested");
                out.clone_into(&mut hint);
                show(&mut shower, one.id().as_str(), one.value().clone(), out)?;
            }
            Ended::Missing(id) => {
                tally.missing += 1;
                if !arguments.fixed {
                    show_missing(&mut shower, &id, &jid)?;
                }
            }
            Ended::Late => {}
            Ended::Interrupted => return Ok(interrupted(&jid)),
        }
    }
    for id in &published.missing {
        tally.missing += 1;
        if !arguments.fixed {
            show_missing(&mut shower, id, &jid)?;
        }
    }
    if arguments.fixed && !all.is_empty() {
        all.sort_by_key(|id, _| id.to_string());
        shower.show(&all.into(), &hint)?;
    }
    if arguments.summary {
        print_plain(tally.summary());
    }
    Ok(tally.status(arguments.fixed))
}

fn show_missing(shower: &mut Shower, id: &str, jid: &Jid) -> anyhow::Result<()> {
    shower.show(&map! {id => no_return::message(jid.as_str())}.into(), "no_return")
}

/// The documentation of each function, as Salt prints it.
fn show_doc(value: &Value) {
    let Some(docs) = value.as_map() else { return };
    for (fun, doc) in docs {
        let lines: Vec<String> =
            doc.to_string().lines().map(|line| format!("    {line}").trim_end().to_owned()).collect();
        print_plain(format_args!("{fun}:\n\n{}\n", lines.join("\n")));
    }
}

fn interrupted(jid: &Jid) -> ExitCode {
    print_plain_error(format_args!(
        "\nExiting gracefully on Ctrl-c\nThis job's jid is: {jid}\nThe minions may not have all finished running and any remaining minions will return upon completion. To look up the return data for this job later, run the following command:\n\nsalt-run jobs.lookup_jid {jid}"
    ));
    ExitCode::FAILURE
}

/// Who did what.
#[derive(Debug, Default)]
struct Tally {
    targeted: usize,
    returned: usize,
    missing: usize,
    failed: usize,
}

impl Tally {
    fn summary(&self) -> String {
        let line = "-".repeat(43);
        format!(
            "\n\n{line}\nSummary\n{line}\n# of minions targeted: {}\n# of minions returned: {}\n# of minions that did not return: {}\n# of minions with errors: {}\n{line}",
            self.targeted, self.returned, self.missing, self.failed
        )
    }

    fn status(&self, missing_is_fine: bool) -> ExitCode {
        if self.returned == 0 {
            if self.missing == 0 || missing_is_fine {
                print_plain_error("ERROR: No return received");
                return ExitCode::from(NOBODY);
            }
        } else if self.failed == 0 && (self.missing == 0 || missing_is_fine) {
            return ExitCode::SUCCESS;
        }
        print_plain_error("ERROR: Minions returned with non-zero exit code");
        ExitCode::FAILURE
    }
}

/// Positional and keyword arguments in the form of the wire.
fn wire_args(words: &[String], no_parse: &[String]) -> Vec<Value> {
    parse(words, no_parse).to_wire()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_salts() {
        let tally = Tally { targeted: 2, returned: 1, missing: 1, failed: 0 };
        insta::assert_snapshot!(tally.summary().trim_start(), @r"
        -------------------------------------------
        Summary
        -------------------------------------------
        # of minions targeted: 2
        # of minions returned: 1
        # of minions that did not return: 1
        # of minions with errors: 0
        -------------------------------------------
        ");
    }

    #[test]
    fn the_status_comes_from_retcodes_and_missing_returns() {
        let code = |returned, missing, failed, fixed| {
            format!("{:?}", Tally { targeted: 2, returned, missing, failed }.status(fixed))
        };
        let is = |status: ExitCode| format!("{status:?}");
        assert_eq!(code(2, 0, 0, false), is(ExitCode::SUCCESS));
        assert_eq!(code(1, 1, 0, false), is(ExitCode::FAILURE));
        assert_eq!(code(1, 1, 0, true), is(ExitCode::SUCCESS));
        assert_eq!(code(2, 0, 1, false), is(ExitCode::FAILURE));
        assert_eq!(code(0, 2, 0, false), is(ExitCode::FAILURE));
        assert_eq!(code(0, 0, 0, false), is(ExitCode::from(2)));
    }
}
