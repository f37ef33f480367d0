//! Ensures that a minion has one state run at a time; `brine_context::state_queue` owns the files.

use std::sync::Arc;
use std::time::Duration;

use brine_context::Context;
use brine_context::state_queue::{self, QueuedRun, StateQueueError, Ticket};

use crate::options::Options;

/// The polling interval of a waiting run.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The turn of a state run: no other one runs until it is dropped.
#[derive(Debug, Default)]
pub struct Turn {
    /// `None` for runs beside others.
    _ticket: Option<Arc<Ticket>>,
}

/// Waits for, refuses or ignores other state runs, as the options require. A refusal is in Salt's wording.
pub fn only_run(context: &Context, options: &Options) -> Result<Turn, Vec<String>> {
    // As in Salt, orchestrations of one master run beside each other.
    if options.concurrent || context.job.master.is_some() {
        return Ok(Turn::default());
    }
    let failed = |error: StateQueueError| {
        vec![format!("The state run is refused: {error}. With concurrent=True it runs beside other state runs.")]
    };
    let (cachedir, job) = (&context.config().cachedir, &context.job);
    let ticket = Ticket::take(cachedir, &job.state_ticket, &job.queued_run()).map_err(failed)?;
    let mut waits = false;
    loop {
        let others = ticket.ahead().map_err(failed)?;
        if others.is_empty() {
            return Ok(Turn { _ticket: Some(ticket) });
        }
        // As in Salt a job is not refused because of itself: by ssh it may come to one host under several ids.
        let of_others: Vec<&QueuedRun> = others.iter().filter(|run| run.jid != context.job.jid).collect();
        if !waits && !of_others.is_empty() && !options.queue.admits(of_others.len()) {
            return Err(of_others.into_iter().map(describe).collect());
        }
        waits = true;
        if context.job.cancel.is_cancelled() {
            return Err(vec!["The job was ended while it waited for another state run".into()]);
        }
        // A run ends on its own thread or in its own process, which cannot notify the waiting ones.
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Returns a message on each state run of another job, running or waiting.
pub fn other_runs(context: &Context) -> Result<Vec<String>, StateQueueError> {
    Ok(state_queue::other_runs(&context.config().cachedir, &context.job.state_ticket)?.iter().map(describe).collect())
}

fn describe(run: &QueuedRun) -> String {
    let started = run.jid.parse::<brine_ids::Jid>().map(|jid| jid.start_time()).unwrap_or_default();
    format!(
        "The function \"{}\" is running as PID {} and was started at {started} with jid {}",
        run.fun, run.pid, run.jid
    )
}
