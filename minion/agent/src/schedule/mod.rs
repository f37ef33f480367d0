//! The minion's schedule.
//!
//! [`brine_schedule`] decides which jobs are due, and runs them with [`MinionSchedule`]. The return of a job is published
//! on the minion's own bus as `__schedule_return`, and forwarded to the master. `manage/` answers the execution module
//! `schedule`.

mod manage;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use brine_bus::Bus;
use brine_config::Number;
use brine_context::jobs::ProcFile;
use brine_context::schedule::{GRAINS, MINE};
use brine_context::{Job, Minion};
use brine_function::Args;
use brine_runtime::polling::PollInterval;
use brine_schedule::{Run, Schedule, ScheduleContext, ScheduleHost};
use brine_value::{Map, Value, list, map};
use jiff::Zoned;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub(crate) use self::manage::{Answer, answer};
use crate::jobs;
use crate::leader::Leader;
use crate::pool::{JobPool, PoolError};
use crate::spool::Spool;
pub(crate) use brine_schedule::RETURN;

/// The maximum number of concurrent updates of the mine, as in Salt.
const MINE_MAX_RUNNING: u64 = 2;

/// Schedules the minion's own jobs: updates of the mine, now and every `mine_interval`, and collections of the grains every
/// `grains_refresh_every`.
pub(crate) fn add_own_jobs(minion: &Minion) {
    let config = &minion.config;
    let mut schedule = minion.schedule.lock();
    // A schedule saved by a Salt minion has the jobs with their options at that time.
    for name in [MINE, GRAINS] {
        schedule.config_mut().shift_remove(name);
    }
    if config.mine_enabled {
        let minutes = if config.mine_interval.is_zero() { Number::of(1) } else { config.mine_interval };
        let job = map! {
            "function" => "mine.update", "minutes" => minutes, "jid_include" => true,
            "maxrunning" => MINE_MAX_RUNNING, "run_on_start" => true, "return_job" => config.mine_return_job,
            "enabled" => true, "name" => MINE,
        };
        schedule.config_mut().insert(MINE.into(), job.into());
    }
    if config.grains_refresh_every > 0 {
        let job = map! {
            "function" => "event.fire", "args" => list![map! {"force_refresh" => false}, "grains_refresh"],
            "minutes" => config.grains_refresh_every, "jid_include" => true, "maxrunning" => 1, "run_on_start" => false,
            "return_job" => false, "enabled" => true, "name" => GRAINS,
        };
        schedule.config_mut().insert(GRAINS.into(), job.into());
    }
}

/// The schedule of a minion, as a host of [`brine_schedule::run`].
pub(crate) struct MinionSchedule {
    pub leader: Leader,
    /// The threads of jobs.
    pub pool: Arc<JobPool>,
    /// The returns that wait for returners.
    pub spool: Arc<Spool>,
    /// The minion's own bus.
    pub bus: Bus,
}

/// Runs due jobs every `loop_interval`, once the minion is ready, or at once with `scheduler_before_connect`.
pub(crate) async fn run(host: Arc<MinionSchedule>, ready: watch::Receiver<bool>, shutdown: CancellationToken) {
    let minion = host.leader.minion();
    let every = minion.config.loop_interval.pause();
    if let Some(ticks) = PollInterval::begin(minion.config.scheduler_before_connect, ready, every, shutdown).await {
        brine_schedule::run(host, ticks).await;
    }
}

/// Calls a function with the schedule, and with the data of this minion that the schedule depends on.
fn with_schedule<T>(minion: &Minion, ask: impl FnOnce(&mut Schedule, &ScheduleContext<'_>) -> T) -> T {
    let (pillar, grains) = (Arc::clone(&minion.pillar.read()), minion.grains.get());
    let running = |name: &str| {
        let is = |job: &&Arc<Job>| job.load.get("schedule").and_then(Value::as_str) == Some(name);
        minion.jobs.lock().values().filter(is).count() as u64
    };
    ask(&mut minion.schedule.lock(), &ScheduleContext { pillar: &pillar, grains: &grains, running: &running })
}

impl ScheduleHost for MinionSchedule {
    type Error = PoolError;

    fn now(&self) -> Zoned {
        brine_clock::now()
    }

    fn with_schedule<T>(&self, ask: impl FnOnce(&mut Schedule, &ScheduleContext<'_>) -> T) -> T {
        with_schedule(&self.leader.minion(), ask)
    }

    fn start(self: &Arc<Self>, run: Run) -> impl Future<Output = Result<Option<Map>, PoolError>> + Send + 'static {
        let (jid, scheduled) = (&run.jid, &run.job);
        let args = Args { positional: scheduled.args.clone(), keyword: scheduled.kwargs.clone() };
        let minion = self.leader.minion();
        let mut load = map! {
            "id" => &minion.id, "fun" => &scheduled.function, "fun_args" => scheduled.fun_args(),
            "schedule" => &scheduled.name, "jid" => jid, "pid" => std::process::id(),
        };
        if let Some(metadata) = scheduled.metadata_at(&brine_clock::now()) {
            load.insert("metadata".into(), metadata.into());
        }
        let is_held = AtomicBool::new(true);
        let job = Arc::new(Job { load, is_held, ..Job::local(jid, &scheduled.function, &args) });
        // Recorded before it has a thread, so that the next poll of the schedule counts it.
        minion.jobs.lock().insert(job.jid.clone(), Arc::clone(&job));
        let (on_thread, running, spool) = (Arc::clone(&minion), Arc::clone(&job), Arc::clone(&self.spool));
        let started = self.pool.start(&job.fun, move || {
            let _proc_file = ProcFile::write(&on_thread, &running);
            let (mut load, has_completed) = jobs::run_completed(&on_thread, &running);
            // As in Salt, a scheduled function that completes is a success, whatever its retcode is.
            load.insert("success".into(), has_completed.into());
            let opts = &on_thread.config.opts;
            let returners = brine_config::opts::modules::schedule_returner(opts);
            let event = run.complete(load, &brine_clock::now(), &returners, |names, load| {
                let mut load = load.clone();
                load.extend(on_thread.mask.arguments_of(&load));
                spool.store(&on_thread, &names.join(","), load);
            });
            event.map(|mut load| {
                load.extend(on_thread.mask.record(&load));
                load
            })
        });
        async move {
            let ended = match started {
                Ok(running) => running.result().await,
                Err(error) => Err(error),
            };
            ended.inspect_err(|_| _ = minion.jobs.lock().shift_remove(&job.jid))
        }
    }

    async fn publish(&self, event: Map) {
        if let Err(error) = self.bus.fire(RETURN, &event).await {
            tracing::error!(%error, "publishing the return of a scheduled job failed");
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.pool.spawn(task);
    }
}

#[cfg(test)]
mod tests;
