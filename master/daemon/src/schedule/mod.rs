//! The master's schedule: jobs are runner functions, and their returns are published as `__schedule_return`.
//!
//! In a cluster every member has the schedule, and the leader runs a job once it has claimed the occurrence: the time of the
//! last one is a value of the cluster, `schedule.<job>`. A member that does not lead waits for a while, in case that the
//! leader has died.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use brine_function::Args;
use brine_master_calls::RunnerCalls;
use brine_master_store::shared::{self, Shared, SharedError};
use brine_runtime::executors::{ExecutorError, MayBlock};
use brine_runtime::polling::PollInterval;
use brine_runtime::supervisor::Background;
use brine_schedule::{RETURN, Run, Schedule, ScheduleContext, ScheduleHost, Timing};
use brine_value::{Map, Value, map};
use jiff::Zoned;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
/// The user of scheduled calls.
const USER: &str = "schedule";
/// The interval at which the schedule is polled.
const INTERVAL: Duration = Duration::from_secs(1);
/// The time in seconds within which due times of different members count as the same occurrence of a job with a clock
/// time: members poll at different moments, and their clocks differ.
const SAME_OCCURRENCE: f64 = 5.0;
/// The part of its interval that has to pass between two occurrences of a job: polls are not exact.
const MIN_INTERVAL_PART: f64 = 0.75;
/// If the last occurrence is further in the future than this, in seconds, it was recorded by a wrong clock and is
/// ignored.
const MAX_AHEAD: f64 = 3600.0;

/// The schedule of the master, for [`brine_schedule::run`].
struct MasterSchedule {
    calls: Arc<RunnerCalls>,
    background: Background,
    schedule: Mutex<Schedule>,
    /// The number of running calls of each job, by name.
    running: Arc<Mutex<HashMap<String, u64>>>,
}

/// Runs the schedule until `shutdown`. Jobs are tasks of `background`.
pub(crate) async fn run(calls: Arc<RunnerCalls>, background: Background, shutdown: CancellationToken) {
    let schedule = Mutex::new(Schedule::new(calls.services.config.schedule.clone()));
    let host = Arc::new(MasterSchedule { calls, background, schedule, running: Arc::default() });
    brine_schedule::run(host, PollInterval::new(INTERVAL, shutdown)).await;
}

impl ScheduleHost for MasterSchedule {
    type Error = ExecutorError;

    fn now(&self) -> Zoned {
        brine_clock::now()
    }

    fn with_schedule<T>(&self, ask: impl FnOnce(&mut Schedule, &ScheduleContext<'_>) -> T) -> T {
        let running = |name: &str| self.running.lock().get(name).copied().unwrap_or(0);
        let none = Map::new();
        ask(&mut self.schedule.lock(), &ScheduleContext { pillar: &none, grains: &none, running: &running })
    }

    fn start(self: &Arc<Self>, run: Run) -> impl Future<Output = Result<Option<Map>, ExecutorError>> + Send + 'static {
        let name = run.job.name.clone();
        let due = now();
        *self.running.lock().entry(name.clone()).or_default() += 1;
        let (calls, running) = (Arc::clone(&self.calls), Arc::clone(&self.running));
        async move {
            let services = &calls.services;
            let is_here = match &services.cluster {
                Some(shared) => is_claimed(shared, || shared::is_leader(&services.gate), &run, due).await,
                None => true,
            };
            if !is_here {
                running.lock().entry(name).and_modify(|count| *count = count.saturating_sub(1));
                return Ok(None);
            }
            let on_thread = Arc::clone(&calls);
            let ran = calls.services.executors.jobs.run(move |thread| returned(&on_thread, &run, thread)).await;
            running.lock().entry(name).and_modify(|count| *count = count.saturating_sub(1));
            ran
        }
    }

    async fn publish(&self, event: Map) {
        self.calls.services.events.fire(RETURN, &event).await;
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.background.spawn("scheduled job", task);
    }
}

/// Returns the time in seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Whether an occurrence that is due at `due` is new, if the last one was at `last`.
fn is_new(timing: &Timing, last: Option<f64>, due: f64) -> bool {
    let gap = match timing {
        Timing::Every(interval) => interval.as_secs_f64() * MIN_INTERVAL_PART,
        _ => SAME_OCCURRENCE,
    };
    last.is_none_or(|last| due - last >= gap || last - due > MAX_AHEAD)
}

/// Whether this member runs an occurrence of a job: it leads, or becomes the leader soon, and no other member has run
/// it.
async fn is_claimed(shared: &Shared, leads: impl Fn() -> bool, run: &Run, due: f64) -> bool {
    let waiting = Instant::now();
    while !leads() {
        // By then a dead leader has been replaced.
        if waiting.elapsed() > shared.lease() * 3 {
            return false;
        }
        tokio::time::sleep(shared.lease() / 10).await;
    }
    let key = format!("schedule.{}", brine_digest::hex(brine_digest::Digest::Sha256.of(&run.job.name)));
    let claimed = async {
        let entry = shared.get(&key).await?;
        let last = entry.as_ref().and_then(|stored| std::str::from_utf8(&stored.value).ok()?.parse().ok());
        if !is_new(&run.job.timing, last, due) {
            return Ok(false);
        }
        let revision = entry.map_or(0, |stored| stored.revision);
        match shared.put(&key, due.to_string().as_bytes(), revision).await {
            Ok(_) => Ok(true),
            Err(SharedError::Changed) => Ok(false),
            Err(error) => Err(error),
        }
    };
    match claimed.await {
        Ok(is_claimed) => is_claimed,
        // The leader continues without the servers.
        Err(error) => {
            tracing::warn!(job = run.job.name, %error, "claiming a scheduled job in the cluster failed: it runs on this master");
            leads()
        }
    }
}

/// Calls the function of a job, and returns the body of the event with its return.
fn returned(calls: &Arc<RunnerCalls>, run: &Run, thread: &MayBlock) -> Option<Map> {
    let (services, job) = (&calls.services, &run.job);
    let args = Args { positional: job.args.clone(), keyword: job.kwargs.clone() };
    let outcome = calls.call_runner(&job.function, args, &run.jid, USER, thread);
    let load = return_of(services.id.as_str(), run, outcome);
    let opts = &services.config.opts;
    let returners = brine_config::opts::modules::schedule_returner(opts);
    let event = run.complete(load, &brine_clock::now(), &returners, |names, load| {
        let mut load = load.clone();
        load.extend(services.mask.arguments_of(&load));
        brine_returners::store_in(&names.join(","), opts, &Arc::default(), &load);
    });
    event.map(|mut load| {
        load.extend(services.mask.record(&load));
        load
    })
}

/// Builds the return of a call from its result.
fn return_of(id: &str, run: &Run, outcome: Result<Value, String>) -> Map {
    map! {
        "cmd" => "_return",
        "id" => id,
        "fun" => &run.job.function,
        "jid" => &run.jid,
        "retcode" => 0,
        "success" => outcome.is_ok(),
        "return" => outcome.unwrap_or_else(Value::from),
    }
}

#[cfg(test)]
mod tests;
