//! Jobs in batches: a few minions at a time, all under one job id.

use std::collections::VecDeque;
use std::process::ExitCode;

use brine_function::Args;
use brine_job::{Return, batch_size};
use brine_value::{Map, Value, map};
use brine_wire::PublishRequest;
use tokio::time::Instant;

use super::super::client::user;
use super::super::common::Shower;
use super::arguments::Arguments;
use super::batch_state::{BatchState, Stage};
use super::job::{Ended, Job};
use super::shown::show_together;
use super::{NO_MATCH, NOBODY, NOTHING_RETURNED};
use crate::ui::{print_plain, print_plain_error};

/// The longest pause after a return (`--batch-wait`), in seconds.
const LONGEST_WAIT: f64 = 86_400.0;

/// Why a batch asks no more minions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Halt {
    Failhard,
    Stop,
}

impl Halt {
    fn reason(self) -> &'static str {
        match self {
            Halt::Failhard => "failhard",
            Halt::Stop => "stop",
        }
    }
}

/// Runs a job on all minions of the target that answer a ping, a few at a time.
pub(super) async fn run(
    job: &Job<'_>,
    arguments: &Arguments,
    request: PublishRequest,
    wanted: &str,
    shower: Shower,
) -> anyhow::Result<ExitCode> {
    batch_size(wanted, 1).map_err(anyhow::Error::msg)?;
    let mut output = Output { shower, fixed: arguments.fixed, returns: Map::new() };
    let ping = PublishRequest { fun: "test.ping".into(), arg: Vec::new(), ret: String::new(), ..request.clone() };
    let Present { mut waiting, down, matched } = present(job, ping).await?;
    if waiting.is_empty() {
        if !matched {
            print_plain(NO_MATCH);
            output.line("No minions matched the target.");
        }
        print_plain_error(NOTHING_RETURNED);
        return Ok(ExitCode::from(NOBODY));
    }
    let size = batch_size(wanted, waiting.len()).map_err(anyhow::Error::msg)?;
    let wait = arguments.batch_wait.filter(|wait| wait.is_finite()).unwrap_or(0.0).clamp(0.0, LONGEST_WAIT);
    let mut state = BatchState::new(&request, waiting.make_contiguous(), size, wait, arguments.failhard, job.times);
    let jid = state.jid().clone();
    let mut events = job.client.events_of(&["salt/job/", &state.tag("stop")]).await?;
    state.tell(job.client, Stage::New).await;
    for id in &down {
        output.line(format_args!("Minion {id} did not respond. No job will be sent."));
    }
    let (mut worst, mut halted) = (0, None);
    let mut watch = job.watch(&mut events).until(state.tag("stop"));
    // A minion that is through leaves its place to the next one, when the pause between them is over.
    let (mut active, mut pauses) = (0_usize, VecDeque::new());
    // As in Salt, the next minions are asked, which is shown, before the return that made room for them is shown.
    let mut unshown: Option<Box<Return>> = None;
    while halted.is_none() {
        while pauses.front().is_some_and(|over| *over <= Instant::now()) {
            pauses.pop_front();
        }
        let room = size.saturating_sub(active + pauses.len()).min(waiting.len());
        if room > 0 {
            let now: Vec<String> = waiting.drain(..room).collect();
            output.line(format_args!("\nExecuting run on {}\n", Value::from(now.clone())));
            let request = PublishRequest {
                tgt: now.iter().map(String::as_str).collect(),
                tgt_type: "list".into(),
                jid: Some(jid.clone()),
                user: user(),
                ..request.clone()
            };
            let published = job.client.publish(request).await?;
            active += published.minions.len();
            watch.add(&jid, &published.minions);
            state.asked(&published.minions);
            state.tell(job.client, Stage::Progress).await;
            // Those whose keys have gone meanwhile.
            for id in now.iter().filter(|id| !published.minions.contains(id)) {
                not_returned(&mut state, id);
            }
        }
        if let Some(one) = unshown.take() {
            output.show(&one)?;
        }
        let next = pauses.front().copied().filter(|_| !waiting.is_empty());
        match watch.next_until(next).await? {
            None if waiting.is_empty() => break,
            None | Some(Ended::Late) => continue,
            Some(Ended::Interrupted) => return Ok(super::interrupted(&jid)),
            Some(Ended::Stopped) => {
                halted = Some(Halt::Stop);
                break;
            }
            Some(Ended::Returned(one)) => {
                state.returned(&one);
                worst = worst.max(one.retcode());
                halted = (arguments.failhard && one.retcode() != 0).then_some(Halt::Failhard);
                unshown = Some(one);
            }
            Some(Ended::Missing(id)) => not_returned(&mut state, &id),
        }
        active = active.saturating_sub(1);
        if wait > 0.0 {
            pauses.push_back(Instant::now() + brine_runtime::seconds::within(0.0..=86_400.0, wait));
        }
        state.tell(job.client, Stage::Progress).await;
    }
    if let Some(one) = unshown.take() {
        output.show(&one)?;
    }
    if let Some(halt) = halted {
        state.halt(halt.reason());
        tracing::error!("Batch run stopped due to {}", halt.reason());
    }
    state.tell(job.client, if halted.is_some() { Stage::Halted } else { Stage::Complete }).await;
    output.finish(&request, u8::try_from(worst).unwrap_or(1))
}

/// Salt shows nothing of a minion that answered the ping and does not return; it is said on stderr.
fn not_returned(state: &mut BatchState, id: &str) {
    state.missing(id);
    print_plain_error(format_args!("Minion {id} did not return."));
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
    let started = job.client.ask_runner("batch.start", Args::keyword(keyword)).await?;
    let Some(jid) = started.get("jid").and_then(Value::as_str) else {
        print_plain(format_args!("{NO_MATCH}\nNo minions matched the target."));
        return Ok(ExitCode::SUCCESS);
    };
    for id in started.get("missing").and_then(Value::as_list).unwrap_or_default() {
        print_plain(format_args!("Minion {id} did not respond. No job will be sent."));
    }
    print_plain(format_args!("Executed batch command with job ID: {jid}"));
    Ok(ExitCode::SUCCESS)
}

/// What a batch shows: each return as it comes, or all of them as one document (`--static`).
struct Output {
    shower: Shower,
    fixed: bool,
    returns: Map,
}

impl Output {
    fn line(&self, text: impl std::fmt::Display) {
        if !self.fixed {
            print_plain(text);
        }
    }

    fn show(&mut self, one: &Return) -> anyhow::Result<()> {
        let (id, value) = (one.id().as_str(), one.value().clone());
        if self.fixed {
            self.returns.insert(id.into(), value);
            return Ok(());
        }
        let (jid, retcode) = (one.jid(), one.map().get("retcode").cloned().unwrap_or_else(|| 0.into()));
        let out = one.out().unwrap_or("nested");
        if out == "highstate" && self.shower.is_nested() {
            print_plain(format_args!("retcode:\n    {retcode}\njid:\n    {jid}"));
            return self.shower.show(&map! {id => value}.into(), out);
        }
        self.shower.show(&map! {"retcode" => retcode, "jid" => jid, id => value}.into(), out)
    }

    fn finish(mut self, request: &PublishRequest, worst: u8) -> anyhow::Result<ExitCode> {
        if !self.fixed {
            return Ok(ExitCode::from(worst));
        }
        if self.returns.is_empty() {
            print_plain_error(NOTHING_RETURNED);
            return Ok(ExitCode::from(NOBODY));
        }
        let is_state = request.fun.as_str().is_some_and(|fun| fun.starts_with("state."));
        show_together(&mut self.shower, self.returns, is_state)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The minions of a target.
struct Present {
    /// Those that answer a ping, sorted.
    waiting: VecDeque<String>,
    /// Those that do not.
    down: Vec<String>,
    /// Whether there are any.
    matched: bool,
}

async fn present(job: &Job<'_>, ping: PublishRequest) -> anyhow::Result<Present> {
    let mut events = job.client.events("salt/job/").await?;
    let published = job.client.publish(ping).await?;
    let (mut waiting, mut down) = (Vec::new(), published.missing);
    let matched = published.jid.is_some();
    if let Some(jid) = published.jid {
        let mut watch = job.watch(&mut events);
        watch.add(&jid, &published.minions);
        while let Some(ended) = watch.next().await? {
            match ended {
                Ended::Returned(one) => waiting.push(one.id().to_string()),
                Ended::Missing(id) => down.push(id),
                Ended::Late | Ended::Stopped => {}
                Ended::Interrupted => break,
            }
        }
    }
    waiting.sort();
    down.sort();
    Ok(Present { waiting: waiting.into(), down, matched })
}
