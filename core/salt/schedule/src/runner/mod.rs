//! Runs due jobs on a minion or a master, from their start to the event with their return.

use std::sync::Arc;

use brine_ids::Jid;
use brine_runtime::polling::PollInterval;
use brine_value::{Map, Value};
use jiff::{SignedDuration, Zoned};

use super::{Job, ReturnJob, Schedule, ScheduleContext};

/// The tag of the event with the return of a scheduled job, on the bus of the daemon that ran it.
pub const RETURN: &str = "__schedule_return";
/// The retcode of a job that failed.
pub const FAILED: i64 = 254;

/// The daemon that runs a schedule.
pub trait ScheduleHost: Send + Sync + Sized + 'static {
    /// The reason why a job did not complete.
    type Error: std::error::Error + Send;

    /// Returns the local time.
    fn now(&self) -> Zoned;

    /// Calls a function with the schedule and its inputs from the daemon.
    fn with_schedule<T>(&self, ask: impl FnOnce(&mut Schedule, &ScheduleContext<'_>) -> T) -> T;

    /// Starts a job. The job counts as running in [`ScheduleContext`] from the return of this function to the end of
    /// the future. The future returns the event of the job's return, as [`Run::complete`] does.
    ///
    /// # Errors
    ///
    /// The job has no thread, or panicked.
    fn start(self: &Arc<Self>, run: Run) -> impl Future<Output = Result<Option<Map>, Self::Error>> + Send + 'static;

    /// Publishes the event of a return with the tag [`RETURN`].
    fn publish(&self, event: Map) -> impl Future<Output = ()> + Send;

    /// Spawns a task that ends with the daemon.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static);
}

/// One run of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The job.
    pub job: Job,
    /// The job id of the run.
    pub jid: Jid,
}

impl Run {
    /// Completes the return of the function: adds the fields of a scheduled job. If the function succeeded, passes it
    /// to `store` for the job's returners and those of the option `schedule_returner`. Returns the event to publish, if
    /// any.
    pub fn complete(
        &self,
        mut load: Map,
        now: &Zoned,
        schedule_returner: &[String],
        store: impl FnOnce(&[String], &Map),
    ) -> Option<Map> {
        let job = &self.job;
        let success = load.get("success").is_some_and(Value::is_truthy);
        // The outputter is removed, as the master selects it for the jobs that it publishes.
        load.shift_remove("out");
        load.insert("fun_args".into(), job.fun_args().into());
        load.insert("schedule".into(), job.name.as_str().into());
        load.insert("pid".into(), std::process::id().into());
        if !success {
            load.insert("retcode".into(), FAILED.into());
        }
        if let Some(metadata) = job.metadata_at(now) {
            load.insert("metadata".into(), metadata.into());
        }
        if let Some(config) = &job.return_config {
            load.insert("ret_config".into(), config.into());
        }
        if !job.return_kwargs.is_empty() {
            load.insert("ret_kwargs".into(), job.return_kwargs.clone().into());
        }
        if !success && job.return_job == ReturnJob::No {
            let error = load.get("return").map(ToString::to_string);
            tracing::warn!(job = job.name, fun = job.function, jid = %self.jid, error, "scheduled job failed");
        }
        let returners = job.returners_with(schedule_returner);
        if success && !returners.is_empty() {
            store(&returners, &load);
        }
        job.outgoing_return(load, !returners.is_empty())
    }
}

/// Starts due jobs at each tick, until the daemon ends.
pub async fn run<H: ScheduleHost>(host: Arc<H>, mut ticks: PollInterval) {
    let interval = SignedDuration::try_from(ticks.interval()).unwrap_or(SignedDuration::from_secs(1));
    while ticks.next().await {
        poll(&host, interval);
    }
}

/// Starts the jobs that are due now; `interval` is the time until the next poll.
fn poll<H: ScheduleHost>(host: &Arc<H>, interval: SignedDuration) {
    let now = host.now().datetime();
    for job in host.with_schedule(|schedule, context| schedule.due_jobs(now, interval, context)) {
        start(host, job);
    }
}

/// Starts a job, and publishes its return when it has ended.
pub fn start<H: ScheduleHost>(host: &Arc<H>, job: Job) {
    let (name, fun) = (job.name.clone(), job.function.clone());
    if job.dry_run {
        tracing::info!(job = name, fun, "scheduled job skipped: it has 'dry_run'");
        return;
    }
    let jid = Jid::new();
    tracing::info!(job = name, fun, %jid, "scheduled job started");
    let running = host.start(Run { job, jid: jid.clone() });
    let publisher = Arc::clone(host);
    host.spawn(async move {
        match running.await {
            Ok(Some(event)) => publisher.publish(event).await,
            Ok(None) => {}
            Err(error) => tracing::error!(job = name, fun, %jid, %error, "scheduled job failed"),
        }
    });
}

#[cfg(test)]
mod tests;
