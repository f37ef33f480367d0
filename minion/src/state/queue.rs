//! One state run at a time on a minion.

use std::sync::Arc;
use std::time::Duration;

use super::Options;
use crate::context::{Context, Job};

/// How often a run that waits looks whether it may start.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Waits for, refuses or ignores another state run, as the options say. A refusal is in Salt's words.
pub fn only_run(context: &Context, options: &Options) -> Result<(), Vec<String>> {
    if options.concurrent {
        return Ok(());
    }
    loop {
        let others = before(context);
        if others.is_empty() {
            return Ok(());
        }
        if !options.queue {
            return Err(others.iter().map(|job| told(job)).collect());
        }
        if context.job.cancel.is_cancelled() {
            return Err(vec!["The job was ended while it waited for another state run".into()]);
        }
        // A run ends on its own thread, which knows nothing of those that wait.
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// The state runs under way that began before this job: of two, the later one gives way.
fn before(context: &Context) -> Vec<Arc<Job>> {
    let jobs = context.minion.jobs.lock();
    jobs.values().filter(|job| job.jid < context.job.jid && is_state_run(&job.fun)).cloned().collect()
}

fn told(job: &Job) -> String {
    let started = job.jid.parse::<brine_core::Jid>().map(|jid| jid.start_time()).unwrap_or_default();
    format!(
        "The function \"{}\" is running as PID {} and was started at {started} with jid {}",
        job.fun, job.pid, job.jid
    )
}

/// Whether a function changes the host by states: those that only show do not.
fn is_state_run(fun: &str) -> bool {
    matches!(
        fun,
        "state.apply"
            | "state.sls"
            | "state.sls_id"
            | "state.highstate"
            | "state.single"
            | "state.high"
            | "state.low"
            | "state.top"
            | "state.template"
            | "state.template_str"
    )
}
