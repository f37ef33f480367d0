//! The minion's schedule.
//!
//! [`brine_schedule`] decides which jobs are due. The return of a job is published on the minion's own bus as
//! `__schedule_return`, and forwarded to the master. `manage.rs` answers the execution module `schedule`.

mod manage;

use std::sync::Arc;
use std::time::Duration;

use brine_bus::Bus;
use brine_context::jobs::ProcFile;
use brine_context::schedule::MINE;
use brine_context::{Job, Minion};
use brine_function::Args;
use brine_ids::Jid;
use brine_returners::store_in;
use brine_schedule::{ReturnJob, Surroundings};
use brine_value::{Map, Value, map};
use jiff::civil::DateTime;
use jiff::{SignedDuration, Zoned};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub(crate) use self::manage::{Answer, answer};
use crate::jobs;
use crate::polling::Ticks;
use crate::pool::JobPool;

/// The tag of the event with the return of a scheduled job on the minion's own bus.
pub(crate) const RETURN: &str = "__schedule_return";
/// The maximum number of concurrent updates of the mine, as in Salt.
const MINE_MAX_RUNNING: u64 = 2;
/// The retcode of a job that did not complete.
const FAILED: i64 = 254;

/// Schedules updates of the mine, now and every `mine_interval`.
pub(crate) fn add_mine(minion: &Minion) {
    let config = &minion.config;
    let mut schedule = minion.schedule.lock();
    // A schedule saved by a Salt minion has the job with its options at that time.
    schedule.own_mut().shift_remove(MINE);
    if config.mine_enabled {
        let job = map! {
            "function" => "mine.update", "minutes" => config.mine_interval.max(1), "jid_include" => true,
            "maxrunning" => MINE_MAX_RUNNING, "run_on_start" => true, "return_job" => config.mine_return_job,
            "enabled" => true, "name" => MINE,
        };
        schedule.own_mut().insert(MINE.into(), job.into());
    }
}

/// Runs due jobs every `loop_interval`, once the minion is ready, or at once with `scheduler_before_connect`.
pub(crate) async fn run(
    minion: Arc<Minion>,
    pool: Arc<JobPool>,
    bus: Bus,
    ready: watch::Receiver<bool>,
    shutdown: CancellationToken,
) {
    let (config, every) = (&minion.config, Duration::from_secs(minion.config.loop_interval.max(1)));
    let Some(mut ticks) = Ticks::begin(config.scheduler_before_connect, ready, every, shutdown).await else { return };
    while ticks.next().await {
        let tick = SignedDuration::try_from(every).unwrap_or(SignedDuration::from_secs(1));
        for job in due(&minion, brine_clock::now().datetime(), tick) {
            start(&minion, &pool, &bus, job);
        }
    }
}

fn due(minion: &Minion, now: DateTime, tick: SignedDuration) -> Vec<brine_schedule::Job> {
    around(minion, |around| minion.schedule.lock().turn(now, tick, around))
}

/// Calls a function with the data of this minion that the schedule needs.
fn around<T>(minion: &Minion, ask: impl FnOnce(&Surroundings<'_>) -> T) -> T {
    let (pillar, grains) = (Arc::clone(&minion.pillar.read()), Arc::clone(&minion.grains.read()));
    let running = |name: &str| {
        let is = |job: &&Arc<Job>| job.load.get("schedule").and_then(Value::as_str) == Some(name);
        minion.jobs.lock().values().filter(is).count() as u64
    };
    ask(&Surroundings { pillar: &pillar, grains: &grains, running: &running })
}

/// Runs a job on a thread of its own, and publishes its return.
pub(crate) fn start(minion: &Arc<Minion>, pool: &JobPool, bus: &Bus, scheduled: brine_schedule::Job) {
    let (name, function) = (scheduled.name.as_str(), scheduled.function.as_str());
    if scheduled.dry_run {
        tracing::info!(job = name, fun = function, "a scheduled job would run, but has 'dry_run'");
        return;
    }
    let jid = Jid::new();
    tracing::info!(job = name, fun = function, %jid, "a scheduled job");
    let args = Args { positional: scheduled.args.clone(), keyword: scheduled.kwargs.clone() };
    let load = map! {"fun" => function, "jid" => &jid, "schedule" => name, "pid" => std::process::id()};
    let job = Arc::new(Job { load, ..Job::local(&jid, function, &args) });
    // Recorded before it has a thread: the next poll of the schedule counts it.
    minion.jobs.lock().insert(job.jid.clone(), Arc::clone(&job));
    let (minion, bus) = (Arc::clone(minion), bus.clone());
    let (on_thread, running) = (Arc::clone(&minion), Arc::clone(&job));
    let started = pool.start(&job.fun, move || {
        let _proc_file = ProcFile::write(&on_thread, &running);
        let load = told(jobs::run(&on_thread, &running), &scheduled, &brine_clock::now());
        if scheduled.return_job == ReturnJob::No && load.get("success") == Some(&Value::Bool(false)) {
            let error = load.get("return").map(ToString::to_string);
            tracing::warn!(job = scheduled.name, fun = scheduled.function, error, "a scheduled job failed");
        }
        let returners =
            scheduled.returners_with(&brine_config::opts::modules::schedule_returner(&on_thread.config.opts));
        if !returners.is_empty() && load.get("success").is_some_and(Value::is_truthy) {
            store_in(&returners.join(","), &on_thread.config.opts, load.clone());
        }
        scheduled.told_return(load, !returners.is_empty())
    });
    pool.spawn(async move {
        let ran = match started {
            Ok(running) => running.result().await,
            Err(error) => Err(error),
        };
        let load = match ran {
            Ok(load) => load,
            Err(error) => {
                minion.jobs.lock().shift_remove(&job.jid);
                tracing::error!(jid = job.jid, fun = job.fun, %error, "scheduled job failed");
                return;
            }
        };
        if let Some(load) = load
            && let Err(error) = bus.fire(RETURN, &load).await
        {
            tracing::error!(jid = job.jid, %error, "publishing the return of a scheduled job failed");
        }
    });
}

/// Converts the return of a published job to that of a scheduled one.
fn told(mut load: Map, job: &brine_schedule::Job, now: &Zoned) -> Map {
    load.shift_remove("out");
    load.insert("fun_args".into(), job.fun_args().into());
    load.insert("schedule".into(), job.name.as_str().into());
    load.insert("pid".into(), std::process::id().into());
    if load.get("success") == Some(&Value::Bool(false)) {
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
    load
}

#[cfg(test)]
mod tests {
    use brine_bus::{BusLimits, Filter, Start};
    use brine_config::MinionConfig;
    use brine_value::list;
    use parking_lot::Mutex;

    use super::*;
    use crate::testing;

    fn job(options: Map) -> brine_schedule::Job {
        brine_schedule::Job::read("mine", &options.into()).unwrap()
    }

    /// Runs a job and returns its event on the minion's own bus.
    async fn ran(options: Map) -> Map {
        let minion = testing::minion(&[]);
        let bus = Bus::in_memory(BusLimits::default());
        let mut events = bus.subscribe(Filter::prefix(RETURN), Start::Now).unwrap();
        let pool = JobPool::new(&minion.config);
        start(&minion, &pool, &bus, job(options));
        assert_eq!(around(&minion, |around| (around.running)("mine")), 1);
        let mut told = events.recv().await.unwrap().data();
        assert!(minion.jobs.lock().is_empty());
        told.retain(|name, _| !matches!(name.as_str(), Some("_seq" | "_stamp" | "pid")));
        told
    }

    #[tokio::test]
    async fn a_job_runs_and_its_return_is_published() {
        let options = map! {"function" => "test.arg", "args" => list![1], "kwargs" => map! {"a" => 2}};
        let mut told = ran(options).await;
        // `test.arg` returns every keyword, also those of the publish.
        told.shift_remove("return");
        let expected = map! {
            "fun" => "test.arg", "fun_args" => list![1, map! {"a" => 2}], "retcode" => 0, "success" => true,
            "cmd" => "_return", "jid" => "req", "id" => "test-minion", "schedule" => "mine",
        };
        assert_eq!(told, expected);
        let told = ran(map! {"function" => "no.such", "return_job" => "nocache"}).await;
        let (value, retcode) = ("'no.such' is not available.", FAILED);
        assert_eq!((told.get("return"), told.get("retcode")), (Some(&value.into()), Some(&retcode.into())));
        assert_eq!((told.get("jid"), told.get("success")), (Some(&"nocache".into()), Some(&false.into())));
    }

    #[test]
    fn the_return_for_the_master_follows_the_options() {
        let load = || map! {"jid" => "1", "out" => "nested", "success" => true, "retcode" => 0};
        let now: Zoned = "2026-11-21T12:00:00+01:00[+01:00]".parse().unwrap();
        let options = map! {"function" => "f", "metadata" => map! {"who" => "me"}, "return_config" => "alt"};
        let told = told(load(), &job(options), &now);
        let metadata = map! {"who" => "me", "_TOS" => "+0100", "_TS" => "Sat Nov 21 12:00:00 2026", "_TT" => "2026 November 21 Sat 11 11"};
        assert_eq!((told.get("metadata"), told.get("out")), (Some(&metadata.into()), None));
        assert_eq!(told.get("ret_config"), Some(&"alt".into()));
        for (return_job, is_returned, jid) in
            [(Value::Bool(true), false, Some("req")), (true.into(), true, Some("1")), (false.into(), false, None)]
        {
            let load = job(map! {"function" => "f", "return_job" => return_job}).told_return(load(), is_returned);
            assert_eq!(load.and_then(|load| load.get("jid").map(ToString::to_string)).as_deref(), jid);
        }
    }

    /// A minion with these options and the default schedule.
    fn minion_with_mine(config: MinionConfig) -> Arc<Minion> {
        let mut minion = testing::minion(&[]);
        Arc::get_mut(&mut minion).unwrap().config = Arc::new(config);
        add_mine(&minion);
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
    fn mine_enabled_false_removes_the_job() {
        let minion = minion_with_mine(MinionConfig::default());
        let mut without = minion_with_mine(MinionConfig { mine_enabled: false, ..MinionConfig::default() });
        assert!(!without.schedule.lock().own().contains_key(MINE));
        let saved = minion.schedule.lock().own().clone();
        Arc::get_mut(&mut without).unwrap().schedule = Mutex::new(brine_schedule::Schedule::new(saved));
        add_mine(&without);
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
