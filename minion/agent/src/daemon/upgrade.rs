//! The change of the minion to a new program (`brine.upgrade`), and the trial of that program. `brine_upgrade` has the files
//! and processes; this module knows when the minion may stop, and when a new program has shown that it works.

use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_context::jobs::are_under_way;
use brine_context::{Job, MasterEvent};
use brine_function::Args;
use brine_ids::Jid;
use brine_runtime::executors::ExecutorError;
use brine_upgrade::Daemon;
use brine_value::Value;

use super::{Connected, MinionError};
use crate::jobs;

/// The time for which the return of the job may wait for the master, and the change for the end of other jobs.
const TIMEOUT: Duration = Duration::from_secs(600);
/// The time for which jobs that have begun at the last moment may run on.
const LAST_JOBS_TIMEOUT: Duration = Duration::from_secs(60);
/// The interval of checks, while an upgrade waits.
const INTERVAL: Duration = Duration::from_millis(50);

/// Waits until this process must stop to execute another program: the new one, or after a failed trial the old one.
pub(super) async fn until_change(all: &[Arc<Connected>]) {
    let (Some(daemon), Some(first)) = (brine_upgrade::daemon(), all.first()) else {
        return std::future::pending().await;
    };
    tokio::select! {
        () = daemon.change_is_due() => {}
        reason = daemon.trial_is_late() => fail(first, daemon, reason).await,
        () = prepare_changes(daemon, all, first) => {}
    }
}

/// Waits for prepared programs, until the minion may change to one.
async fn prepare_changes(daemon: &'static Daemon, all: &[Arc<Connected>], first: &Arc<Connected>) {
    loop {
        let jid = daemon.staged().await;
        let changed = match wait_until_idle(all, first, &jid).await {
            Ok(()) => blocking(first, move || daemon.change_to_new().map_err(|error| error.to_string())).await,
            Err(reason) => Ok(Err(reason)),
        };
        let reason = match changed.unwrap_or_else(|error| Err(error.to_string())) {
            Ok(()) => {
                tracing::info!(jid, "the minion changes to its new program");
                return wait_for_jobs(first, LAST_JOBS_TIMEOUT).await;
            }
            Err(reason) => reason,
        };
        tracing::error!(jid, reason, "the upgrade is given up");
        let outcome = blocking(first, move || daemon.abandon(&reason)).await;
        if let Ok(Some(outcome)) = outcome {
            let event = MasterEvent::new(&format!("salt/minion/{}/upgrade", first.id), outcome);
            if let Err(error) = first.fire(&event).await {
                tracing::warn!(%error, "publishing the end of an upgrade failed");
            }
        }
    }
}

/// Waits until a master has the return of this job, and no other job runs. The error is the reason why that does not
/// happen.
async fn wait_until_idle(all: &[Arc<Connected>], first: &Arc<Connected>, jid: &str) -> Result<(), String> {
    let start = Instant::now();
    loop {
        let is_busy = jobs_are_under_way(first).await;
        let is_kept = all.iter().any(|connected| connected.returns.holds(jid));
        if !is_busy && !is_kept {
            return Ok(());
        }
        if start.elapsed() > TIMEOUT {
            let running: Vec<String> =
                first.minion.jobs.lock().values().map(|job| format!("{} ({})", job.jid, job.fun)).collect();
            return Err(if running.is_empty() {
                format!("no master has accepted the return of the job within {TIMEOUT:?}")
            } else {
                format!("jobs still run after {TIMEOUT:?}: {}", running.join(", "))
            });
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Waits for jobs that have begun meanwhile: the stop would end them.
async fn wait_for_jobs(first: &Arc<Connected>, limit: Duration) {
    let start = Instant::now();
    while start.elapsed() < limit && jobs_are_under_way(first).await {
        tokio::time::sleep(INTERVAL).await;
    }
}

async fn jobs_are_under_way(first: &Arc<Connected>) -> bool {
    let minion = Arc::clone(&first.minion);
    blocking(first, move || are_under_way(&minion)).await.unwrap_or(true)
}

/// Ends the trial of this program, if it is on one: with success if it can run a function, and the master answers. The
/// caller has a session, a subscription and a pillar.
pub(super) async fn pass_trial(connected: &Arc<Connected>) -> Result<(), MinionError> {
    let Some(daemon) = brine_upgrade::daemon().filter(|daemon| daemon.is_on_trial()) else { return Ok(()) };
    let passed = match ping(connected).await {
        Ok(()) => blocking(connected, move || daemon.commit().map_err(|error| error.to_string())).await?,
        Err(reason) => Err(reason),
    };
    if let Err(reason) = passed {
        fail(connected, daemon, reason).await;
        // This process ends now.
        std::future::pending::<()>().await;
    }
    Ok(())
}

/// Runs `test.ping` as a job would.
async fn ping(connected: &Arc<Connected>) -> Result<(), String> {
    const PING: &str = "test.ping";
    let minion = Arc::clone(&connected.minion);
    let job = Arc::new(Job::local(&Jid::new(), PING, &Args::default()));
    let running = connected.pool.start(PING, move || jobs::run(&minion, &job)).map_err(|error| error.to_string())?;
    let load = running.result().await.map_err(|error| error.to_string())?;
    match load.get("return") {
        Some(Value::Bool(true)) => Ok(()),
        other => Err(format!("{PING} returned {}", other.map(ToString::to_string).unwrap_or_default())),
    }
}

async fn fail(connected: &Connected, daemon: &'static Daemon, reason: String) {
    if let Err(error) = blocking(connected, move || daemon.fail(&reason)).await {
        tracing::error!(%error, "ending the trial of a program failed");
    }
}

/// Returns the outcome of the last upgrade for the start event.
pub(super) async fn outcome(connected: &Connected) -> Option<Value> {
    let daemon = brine_upgrade::daemon()?;
    blocking(connected, || daemon.outcome()).await.ok().flatten()
}

/// Records that a master knows the outcome.
pub(super) async fn reported(connected: &Connected) {
    let Some(daemon) = brine_upgrade::daemon() else { return };
    if let Err(error) = blocking(connected, || daemon.reported()).await {
        tracing::warn!(%error, "recording that the outcome of an upgrade was reported failed");
    }
}

async fn blocking<T: Send + 'static>(
    connected: &Connected,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ExecutorError> {
    connected.pool.executors().disk.run(move |_| work()).await
}
