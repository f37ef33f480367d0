//! Jobs in batches: a few minions at a time.

use std::collections::VecDeque;
use std::process::ExitCode;

use brine_core::function::Args;
use brine_core::jid::Jid;
use brine_core::job::batch_size;
use brine_core::wire::{Call, PublishRequest};
use brine_core::{Value, map};
use tokio::time::Instant;

use super::super::client::user;
use super::super::common::Shower;
use super::arguments::Arguments;
use super::batch_state::{BatchState, Stage};
use super::job::{Ended, Job};
use super::{NO_MATCH, NOBODY};
use crate::ui::print_plain;

/// Runs a job on all minions of the target that answer a ping, a few at a time.
pub(super) async fn run(
    job: &Job<'_>,
    arguments: &Arguments,
    request: PublishRequest,
    wanted: &str,
    mut shower: Shower,
) -> anyhow::Result<ExitCode> {
    batch_size(wanted, 1).map_err(anyhow::Error::msg)?;
    let ping = PublishRequest { fun: "test.ping".into(), arg: Vec::new(), ret: String::new(), ..request.clone() };
    let Some(mut waiting) = present(job, ping).await? else {
        print_plain(format_args!("{NO_MATCH}\nNo minions matched the target."));
        return Ok(ExitCode::from(NOBODY));
    };
    let size = batch_size(wanted, waiting.len()).map_err(anyhow::Error::msg)?;
    let (mut worst, mut stopped) = (0, false);
    let wait = arguments.batch_wait.unwrap_or(0.0);
    let mut state = BatchState::new(&request, waiting.make_contiguous(), size, wait, arguments.failhard, job.times);
    state.tell(job.client, Stage::New).await;
    let mut events = job.client.events("salt/job/").await?;
    let mut watch = job.watch(&mut events);
    // A minion that is through leaves its place to the next one, when the pause between them is over.
    let (mut active, mut pauses) = (0_usize, VecDeque::new());
    let mut last_jid = None;
    loop {
        while pauses.front().is_some_and(|over| *over <= Instant::now()) {
            pauses.pop_front();
        }
        let room = size.saturating_sub(active + pauses.len()).min(waiting.len());
        if room > 0 && !stopped {
            let now: Vec<String> = waiting.drain(..room).collect();
            if !arguments.fixed {
                let names = Value::from(now.clone());
                print_plain(format_args!("\nExecuting run on {names}\n"));
            }
            let request = PublishRequest {
                tgt: now.iter().map(String::as_str).collect(),
                tgt_type: "list".into(),
                user: user(),
                ..request.clone()
            };
            let published = job.client.publish(request).await?;
            let Some(jid) = published.jid else { continue };
            active += published.minions.len();
            watch.add(&jid, &published.minions);
            last_jid = Some(jid);
            state.asked(&published.minions);
            state.tell(job.client, Stage::Progress).await;
        }
        let next = pauses.front().copied().filter(|_| !waiting.is_empty() && !stopped);
        match watch.next_until(next).await? {
            None => break,
            Some(Ended::Late) => continue,
            Some(Ended::Interrupted) => {
                return Ok(last_jid.map_or(ExitCode::FAILURE, |jid| super::interrupted(&jid)));
            }
            Some(Ended::Returned(one)) => {
                state.returned(&one);
                worst = worst.max(one.retcode());
                stopped |= arguments.failhard && one.retcode() != 0;
                let out = one.map().get("out").and_then(Value::as_str).unwrap_or("nested");
                show(&mut shower, arguments, one.id().as_str(), one.value(), one.retcode(), one.jid(), out)?;
            }
            Some(Ended::Missing(id)) => {
                state.missing(&id);
                print_plain(format_args!("Minion {id} did not respond. No job will be sent."));
            }
        }
        active -= 1;
        if wait > 0.0 {
            pauses.push_back(Instant::now() + brine_core::seconds::within(0.0..=86_400.0, wait));
        }
        state.tell(job.client, Stage::Progress).await;
    }
    if stopped {
        state.halt();
    }
    state.tell(job.client, if stopped { Stage::Halted } else { Stage::Complete }).await;
    if stopped {
        tracing::error!("Batch run stopped due to failhard");
    }
    Ok(ExitCode::from(u8::try_from(worst).unwrap_or(1)))
}

/// Hands a job in batches over to the master, which runs it by itself.
pub(super) async fn hand_over(
    job: &Job<'_>,
    arguments: &Arguments,
    request: PublishRequest,
    size: &str,
) -> anyhow::Result<ExitCode> {
    batch_size(size, 1).map_err(anyhow::Error::msg)?;
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
    let args = Args::keyword(keyword);
    let call = Call { fun: "batch.start".into(), args, key: None, user: user(), asynchronous: false };
    let answer = job.client.runner(call).await?;
    let started = answer.get("data").and_then(|data| data.get("return")).cloned().unwrap_or_default();
    if started.as_map().is_none() {
        anyhow::bail!("{started}");
    }
    for id in started.get("missing").and_then(Value::as_list).unwrap_or_default() {
        print_plain(format_args!("Minion {id} did not respond. No job will be sent."));
    }
    match started.get("jid").and_then(Value::as_str) {
        Some(jid) => print_plain(format_args!("Executed batch command with job ID: {jid}")),
        None => print_plain("No minions matched the target."),
    }
    Ok(ExitCode::SUCCESS)
}

fn show(
    shower: &mut Shower,
    arguments: &Arguments,
    id: &str,
    value: &Value,
    retcode: i64,
    jid: &Jid,
    out: &str,
) -> anyhow::Result<()> {
    if arguments.fixed {
        return shower.show(&map! {id => value.clone()}.into(), out);
    }
    if out == "highstate" {
        print_plain(format_args!("jid:\n    {jid}"));
        shower.show(&map! {id => value.clone()}.into(), out)?;
        print_plain(format_args!("retcode:\n    {retcode}"));
        return Ok(());
    }
    shower.show(&map! {"jid" => jid, id => value.clone(), "retcode" => retcode}.into(), out)
}

/// Who of the target answers a ping, sorted; nothing if nobody matches.
async fn present(job: &Job<'_>, ping: PublishRequest) -> anyhow::Result<Option<VecDeque<String>>> {
    let mut events = job.client.events("salt/job/").await?;
    let published = job.client.publish(ping).await?;
    let Some(jid) = published.jid else { return Ok(None) };
    let mut there = Vec::new();
    let mut watch = job.watch(&mut events);
    watch.add(&jid, &published.minions);
    while let Some(ended) = watch.next().await? {
        match ended {
            Ended::Returned(one) => there.push(one.id().to_string()),
            Ended::Missing(id) => print_plain(format_args!("Minion {id} did not respond. No job will be sent.")),
            Ended::Late => {}
            Ended::Interrupted => break,
        }
    }
    there.sort();
    Ok(Some(there.into()))
}
