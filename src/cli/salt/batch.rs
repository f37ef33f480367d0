//! Jobs in batches: a few minions at a time, all under one job id.

use std::process::ExitCode;

use brine_client::job::{Occurrence, Run, TargetResponses};
use brine_context::Mask;
use brine_function::Args;
use brine_job::{Action, Batch, Driver, Return, batch_size};
use brine_value::{Map, Value, map};
use brine_wire::PublishRequest;
use tokio::time::Instant;

use super::super::client::user;
use super::super::common::ResultPrinter;
use super::arguments::Arguments;
use super::batch_state::{BatchState, Stage};
use super::job::Job;
use super::plan::Planning;
use super::return_display::show_together;
use super::{NO_MATCH, NO_MINION, NOTHING_RETURNED};
use crate::ui::{print_plain, print_plain_error};

/// The maximum of `--batch-wait`, in seconds.
const MAX_WAIT: f64 = 86_400.0;

/// Runs a job in batches on the minions of the target that answer a ping. `mask` is for the events of the batch.
pub(super) async fn run(
    job: &Job<'_>,
    arguments: &Arguments,
    request: PublishRequest,
    size: &str,
    mask: &Mask,
    mut output: Output,
) -> anyhow::Result<ExitCode> {
    batch_size(size, 1)?;
    let TargetResponses { minions, down, matched, .. } = job.ping_target(&request).await?;
    if minions.is_empty() {
        if !matched {
            print_plain(NO_MATCH);
            output.line("No minions matched the target.");
        }
        print_plain_error(NOTHING_RETURNED);
        return Ok(ExitCode::from(NO_MINION));
    }
    let size = batch_size(size, minions.len())?;
    let wait = arguments.batch_wait.filter(|wait| wait.is_finite()).unwrap_or(0.0).clamp(0.0, MAX_WAIT);
    let mut state = BatchState::new(&request, &minions, size, wait, arguments.failhard, job.times, mask);
    let jid = state.jid().clone();
    if let Some(planning) = &mut output.planning {
        planning.set_jid(&jid);
        for id in &down {
            planning.silent(id);
        }
    }
    let mut link = job.client.link(&[&state.tag("stop")]).await?;
    state.publish_stage(job.client, Stage::New).await;
    for id in &down {
        output.line(format_args!("Minion {id} did not respond. No job will be sent."));
    }
    let batch =
        Batch { size, wait: brine_runtime::seconds::within(0.0..=MAX_WAIT, wait), failhard: arguments.failhard };
    let driver = Driver::in_batches(jid.clone(), &user(), minions, batch, job.times, Instant::now());
    let mut run = Run::new(&mut link, driver, Some(state.tag("stop")));
    // A minion that does not answer has failed, as in a job without batches.
    let silent = i64::from(!arguments.statuses.is_salt());
    let mut worst = if down.is_empty() { 0 } else { silent };
    // As in Salt, the next publish is shown before the return that made room for it.
    let mut unshown: Option<Box<Return>> = None;
    loop {
        match run.driver.next(Instant::now()) {
            Action::Publish(ids) => {
                output.line(format_args!("\nExecuting run on {}\n", Value::from(ids.clone())));
                let (published, gone) = run.publish(&request, ids).await?;
                state.published(&published.minions);
                state.publish_stage(job.client, Stage::Progress).await;
                // Their keys have been deleted in the meantime.
                for id in &gone {
                    output.missing(id);
                    not_returned(&mut state, id);
                    worst = worst.max(silent);
                }
                if let Some(one) = unshown.take() {
                    output.show(&one)?;
                }
            }
            Action::Ask(request) => run.ask(*request).await?,
            Action::Missing(ids) => {
                for id in &ids {
                    output.missing(id);
                    not_returned(&mut state, id);
                    worst = worst.max(silent);
                }
                state.publish_stage(job.client, Stage::Progress).await;
            }
            Action::Wait(until) => {
                if let Some(one) = unshown.take() {
                    output.show(&one)?;
                }
                match run.wait(until).await? {
                    Occurrence::Returned(one) => {
                        state.returned(&one);
                        worst = worst.max(one.retcode());
                        for error in one.return_errors() {
                            print_plain_error(format_args!("{}: the result is not stored: {error}", one.id()));
                            worst = worst.max(silent);
                        }
                        unshown = Some(one);
                        state.publish_stage(job.client, Stage::Progress).await;
                    }
                    Occurrence::Stopped => run.driver.halt("stop".to_owned()),
                    Occurrence::Interrupted => return Ok(super::interrupted(&jid)),
                    Occurrence::Wake => {}
                }
            }
            Action::End => break,
        }
    }
    if let Some(one) = unshown.take() {
        output.show(&one)?;
    }
    let halted = run.driver.halted();
    if let Some(halt) = halted {
        state.halt(halt.reason());
        tracing::error!("Batch run stopped due to {}", halt.reason());
    }
    state.publish_stage(job.client, if halted.is_some() { Stage::Halted } else { Stage::Complete }).await;
    if let Some(planning) = output.planning.take() {
        return planning.finish(job, arguments, output.printer).await;
    }
    output.finish(&request, u8::try_from(worst).unwrap_or(1))
}

/// Records a minion that answered the ping but did not return. Salt does not report it; here a message on stderr does.
fn not_returned(state: &mut BatchState, id: &str) {
    state.missing(id);
    print_plain_error(format_args!("Minion {id} did not return."));
}

/// Starts a batch that is run by the master.
pub(super) async fn start_on_master(
    job: &Job<'_>,
    arguments: &Arguments,
    request: PublishRequest,
    size: &str,
) -> anyhow::Result<ExitCode> {
    batch_size(size, 1)?;
    let keyword = map! {
        "tgt" => request.tgt,
        "fun" => request.fun,
        "arg" => request.arg,
        "tgt_type" => request.tgt_type,
        "ret" => request.ret,
        "kwargs" => request.kwargs,
        "batch" => size,
        "batch_wait" => arguments.batch_wait.unwrap_or(0.0),
        "failhard" => arguments.failhard,
        "timeout" => job.times.timeout.as_secs(),
    };
    let started = job.client.ask_runner("batch.start", Args::keyword(keyword)).await?;
    let Some(jid) = started.get("jid").and_then(Value::as_str) else {
        print_plain(format_args!("{NO_MATCH}\nNo minions matched the target."));
        return Ok(arguments.statuses.of(NO_MINION));
    };
    for id in started.get("missing").and_then(Value::as_list).unwrap_or_default() {
        print_plain(format_args!("Minion {id} did not respond. No job will be sent."));
    }
    print_plain(format_args!("Executed batch command with job ID: {jid}"));
    Ok(ExitCode::SUCCESS)
}

/// The output of a batch: each return as it arrives, or all as one document (`--static`).
pub(super) struct Output {
    printer: ResultPrinter,
    fixed: bool,
    returns: Map,
    /// The plan that the returns belong to.
    planning: Option<Planning>,
}

impl Output {
    pub(super) fn new(arguments: &Arguments, planning: Option<Planning>, printer: ResultPrinter) -> Self {
        Output { printer, fixed: arguments.fixed, returns: Map::new(), planning }
    }

    fn missing(&mut self, id: &str) {
        if let Some(planning) = &mut self.planning {
            planning.silent(id);
        }
    }

    fn line(&self, text: impl std::fmt::Display) {
        if !self.fixed {
            print_plain(text);
        }
    }

    fn show(&mut self, one: &Return) -> anyhow::Result<()> {
        if let Some(planning) = &mut self.planning {
            planning.returned(one.id().as_str(), one.value());
            return Ok(());
        }
        let (id, value) = (one.id().as_str(), one.value().clone());
        if self.fixed {
            self.returns.insert(id.into(), value);
            return Ok(());
        }
        let (jid, retcode) = (one.jid(), one.map().get("retcode").cloned().unwrap_or_else(|| 0.into()));
        let out = one.out().unwrap_or("nested");
        if out == "highstate" && self.printer.is_nested() {
            print_plain(format_args!("retcode:\n    {retcode}\njid:\n    {jid}"));
            return self.printer.show(&map! {id => value}.into(), out);
        }
        self.printer.show(&map! {"retcode" => retcode, "jid" => jid, id => value}.into(), out)
    }

    fn finish(mut self, request: &PublishRequest, worst: u8) -> anyhow::Result<ExitCode> {
        if !self.fixed {
            return Ok(ExitCode::from(worst));
        }
        if self.returns.is_empty() {
            print_plain_error(NOTHING_RETURNED);
            return Ok(ExitCode::from(NO_MINION));
        }
        let is_state = request.fun.as_str().is_some_and(|fun| fun.starts_with("state."));
        show_together(&mut self.printer, self.returns, is_state)?;
        Ok(ExitCode::from(worst))
    }
}
