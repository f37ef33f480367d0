//! The minion's schedule.
//!
//! [`brine_schedule`] decides which jobs are due, and runs them with [`MinionSchedule`]. The return of a job is published
//! on the minion's own bus as `__schedule_return`, and forwarded to the master. `manage.rs` answers the execution module
//! `schedule`.

mod manage;

use std::sync::Arc;
use std::time::Duration;

use brine_bus::Bus;
use brine_context::jobs::ProcFile;
use brine_context::schedule::{GRAINS, MINE};
use brine_context::{Job, Minion};
use brine_function::Args;
use brine_runtime::polling::PollInterval;
use brine_schedule::{Host, Run, Schedule, ScheduleContext};
use brine_value::{Map, Value, list, map};
use jiff::Zoned;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub(crate) use self::manage::{Answer, answer};
use crate::daemon::Leader;
use crate::jobs;
use crate::pool::JobPool;
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
        schedule.own_mut().shift_remove(name);
    }
    if config.mine_enabled {
        let job = map! {
            "function" => "mine.update", "minutes" => config.mine_interval.max(1), "jid_include" => true,
            "maxrunning" => MINE_MAX_RUNNING, "run_on_start" => true, "return_job" => config.mine_return_job,
            "enabled" => true, "name" => MINE,
        };
        schedule.own_mut().insert(MINE.into(), job.into());
    }
    if config.grains_refresh_every > 0 {
        let job = map! {
            "function" => "event.fire", "args" => list![map! {"force_refresh" => false}, "grains_refresh"],
            "minutes" => config.grains_refresh_every, "jid_include" => true, "maxrunning" => 1, "run_on_start" => false,
            "return_job" => false, "enabled" => true, "name" => GRAINS,
        };
        schedule.own_mut().insert(GRAINS.into(), job.into());
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
    let every = Duration::from_secs(minion.config.loop_interval.max(1));
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

impl Host for MinionSchedule {
    fn now(&self) -> Zoned {
        brine_clock::now()
    }

    fn with_schedule<T>(&self, ask: impl FnOnce(&mut Schedule, &ScheduleContext<'_>) -> T) -> T {
        with_schedule(&self.leader.minion(), ask)
    }

    fn start(self: &Arc<Self>, run: Run) -> impl Future<Output = Result<Option<Map>, String>> + Send + 'static {
        let (jid, scheduled) = (&run.jid, &run.job);
        let args = Args { positional: scheduled.args.clone(), keyword: scheduled.kwargs.clone() };
        let pid = std::process::id();
        let load = map! {"fun" => &scheduled.function, "jid" => jid, "schedule" => &scheduled.name, "pid" => pid};
        let job = Arc::new(Job { load, ..Job::local(jid, &scheduled.function, &args) });
        // Recorded before it has a thread, so that the next poll of the schedule counts it.
        let minion = self.leader.minion();
        minion.jobs.lock().insert(job.jid.clone(), Arc::clone(&job));
        let (on_thread, running, spool) = (Arc::clone(&minion), Arc::clone(&job), Arc::clone(&self.spool));
        let started = self.pool.start(&job.fun, move || {
            let _proc_file = ProcFile::write(&on_thread, &running);
            let load = jobs::run(&on_thread, &running);
            let opts = &on_thread.config.opts;
            let returners = brine_config::opts::modules::schedule_returner(opts);
            run.complete(load, &brine_clock::now(), &returners, |names, load| {
                spool.store(&on_thread, &names.join(","), load.clone());
            })
        });
        async move {
            let ended = match started {
                Ok(running) => running.result().await,
                Err(error) => Err(error),
            };
            ended.map_err(|error| {
                minion.jobs.lock().shift_remove(&job.jid);
                error.to_string()
            })
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
mod tests {
    use brine_bus::{BusLimits, Filter, Start};
    use brine_config::MinionConfig;
    use brine_schedule::FAILED;
    use brine_value::list;
    use jiff::SignedDuration;
    use jiff::civil::DateTime;
    use parking_lot::Mutex;

    use super::*;
    use crate::testing;

    fn job(options: Map) -> brine_schedule::Job {
        brine_schedule::Job::read("mine", &options.into()).unwrap()
    }

    pub(super) fn due(minion: &Minion, now: DateTime, tick: SignedDuration) -> Vec<brine_schedule::Job> {
        with_schedule(minion, |schedule, context| schedule.due_jobs(now, tick, context))
    }

    /// Runs a job and returns its event on the minion's own bus.
    async fn ran(options: Map) -> Map {
        let minion = testing::minion(&[]);
        let bus = Bus::in_memory(BusLimits::default());
        let mut events = bus.subscribe(Filter::prefix(RETURN), Start::Now).unwrap();
        let pool = Arc::new(JobPool::new(&minion.config));
        let spool = Arc::new(Spool::unused());
        let host = Arc::new(MinionSchedule { leader: Leader::only(&minion), pool, spool, bus });
        brine_schedule::start(&host, job(options));
        assert_eq!(with_schedule(&minion, |_, context| (context.running)("mine")), 1);
        let mut report = events.recv().await.unwrap().data();
        assert!(minion.jobs.lock().is_empty());
        report.retain(|name, _| !matches!(name.as_str(), Some("_seq" | "_stamp" | "pid")));
        report
    }

    #[tokio::test]
    async fn a_job_runs_and_its_return_is_published() {
        let options = map! {"function" => "test.arg", "args" => list![1], "kwargs" => map! {"a" => 2}};
        let mut report = ran(options).await;
        // `test.arg` returns every keyword, also those of the publish.
        report.shift_remove("return");
        let expected = map! {
            "fun" => "test.arg", "fun_args" => list![1, map! {"a" => 2}], "retcode" => 0, "success" => true,
            "cmd" => "_return", "jid" => "req", "id" => "test-minion", "schedule" => "mine",
        };
        assert_eq!(report, expected);
        let report = ran(map! {"function" => "no.such", "return_job" => "nocache"}).await;
        let (value, retcode) = ("'no.such' is not available.", FAILED);
        assert_eq!((report.get("return"), report.get("retcode")), (Some(&value.into()), Some(&retcode.into())));
        assert_eq!((report.get("jid"), report.get("success")), (Some(&"nocache".into()), Some(&false.into())));
    }

    /// A minion with these options and the default schedule.
    fn minion_with_mine(config: MinionConfig) -> Arc<Minion> {
        let mut minion = testing::minion(&[]);
        Arc::get_mut(&mut minion).unwrap().config = Arc::new(config);
        add_own_jobs(&minion);
        minion
    }

    #[test]
    fn mine_is_updated_at_start_and_every_interval() {
        let minion = minion_with_mine(MinionConfig { mine_interval: 2, ..MinionConfig::default() });
        let at = |time: &str| {
            let due = due(&minion, time.parse().unwrap(), SignedDuration::from_secs(1));
            due.into_iter().map(|job| job.function).collect::<Vec<_>>()
        };
        for (time, runs) in [
            ("2026-11-22T12:00:00", true),
            ("2026-11-22T12:00:01", false),
            ("2026-11-22T12:01:59", false),
            ("2026-11-22T12:02:00", true),
            ("2026-11-22T12:03:59", false),
            ("2026-11-22T12:04:00", true),
        ] {
            assert_eq!(at(time), if runs { vec!["mine.update"] } else { vec![] }, "{time}");
        }
        let shown = minion.schedule.lock().own().get(MINE).cloned().unwrap();
        for (option, value) in [
            ("function", Value::from("mine.update")),
            ("minutes", 2.into()),
            ("jid_include", true.into()),
            ("maxrunning", 2.into()),
            ("run_on_start", true.into()),
            ("return_job", false.into()),
        ] {
            assert_eq!(shown.get(option), Some(&value), "{option}");
        }
    }

    #[test]
    fn mine_is_updated_at_once_when_the_pillar_changes_its_functions() {
        let minion = minion_with_mine(MinionConfig::default());
        let at = |time: &str| due(&minion, time.parse().unwrap(), SignedDuration::from_secs(1)).len();
        let ping = || map! {"mine_functions" => map! {"test.ping" => list![]}};
        assert_eq!((at("2026-11-22T12:00:00"), at("2026-11-22T12:00:01")), (1, 0));
        minion.set_pillar(ping());
        assert_eq!((at("2026-11-22T12:00:02"), at("2026-11-22T12:00:03")), (1, 0));
        let mut other = ping();
        other.insert("x".into(), 1.into());
        minion.set_pillar(other);
        assert_eq!(at("2026-11-22T12:00:04"), 0);
        minion.set_pillar(Map::new());
        assert_eq!(at("2026-11-22T12:00:05"), 1);
    }

    #[test]
    fn grains_are_collected_every_interval() {
        let minion =
            minion_with_mine(MinionConfig { grains_refresh_every: 10, mine_enabled: false, ..MinionConfig::default() });
        let due = |time: &str| due(&minion, time.parse().unwrap(), SignedDuration::from_secs(1));
        for (time, runs) in [
            ("2026-11-22T12:00:00", false),
            ("2026-11-22T12:09:59", false),
            ("2026-11-22T12:10:00", true),
            ("2026-11-22T12:20:00", true),
        ] {
            let functions: Vec<_> = due(time).into_iter().map(|job| job.function).collect();
            assert_eq!(functions, if runs { vec!["event.fire"] } else { vec![] }, "{time}");
        }
        let saved = minion.schedule.lock().own().clone();
        let mut without = minion_with_mine(MinionConfig::default());
        Arc::get_mut(&mut without).unwrap().schedule = Arc::new(Mutex::new(Schedule::new(saved)));
        add_own_jobs(&without);
        assert!(!without.schedule.lock().own().contains_key(GRAINS), "grains_refresh_every is 0");
    }

    #[test]
    fn mine_enabled_false_removes_the_job() {
        let minion = minion_with_mine(MinionConfig::default());
        let mut without = minion_with_mine(MinionConfig { mine_enabled: false, ..MinionConfig::default() });
        assert!(!without.schedule.lock().own().contains_key(MINE));
        let saved = minion.schedule.lock().own().clone();
        Arc::get_mut(&mut without).unwrap().schedule = Arc::new(Mutex::new(Schedule::new(saved)));
        add_own_jobs(&without);
        assert!(!without.schedule.lock().own().contains_key(MINE));
    }

    #[test]
    fn jobs_of_the_pillar_run_too() {
        let minion = testing::minion(&[]);
        let ping = map! {"function" => "test.ping", "seconds" => 5};
        *minion.pillar.write() = Arc::new(map! {"schedule" => map! {"often" => ping}});
        let at = |time: &str| due(&minion, time.parse().unwrap(), SignedDuration::from_secs(1)).len();
        assert_eq!((at("2026-11-21T12:00:00"), at("2026-11-21T12:00:01"), at("2026-11-21T12:00:05")), (1, 0, 1));
    }
}
