use brine_bus::{BusLimits, Filter, Start};
use brine_config::{MinionConfig, Number};
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
    let minion = minion_with_mine(MinionConfig { mine_interval: Number::of(2), ..MinionConfig::default() });
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
    let job = minion.schedule.lock().config().get(MINE).cloned().unwrap();
    for (option, value) in [
        ("function", Value::from("mine.update")),
        ("minutes", 2.into()),
        ("jid_include", true.into()),
        ("maxrunning", 2.into()),
        ("run_on_start", true.into()),
        ("return_job", false.into()),
    ] {
        assert_eq!(job.get(option), Some(&value), "{option}");
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
    let saved = minion.schedule.lock().config().clone();
    let mut without = minion_with_mine(MinionConfig::default());
    Arc::get_mut(&mut without).unwrap().schedule = Arc::new(Mutex::new(Schedule::new(saved)));
    add_own_jobs(&without);
    assert!(!without.schedule.lock().config().contains_key(GRAINS), "grains_refresh_every is 0");
}

#[test]
fn mine_enabled_false_removes_the_job() {
    let minion = minion_with_mine(MinionConfig::default());
    let mut without = minion_with_mine(MinionConfig { mine_enabled: false, ..MinionConfig::default() });
    assert!(!without.schedule.lock().config().contains_key(MINE));
    let saved = minion.schedule.lock().config().clone();
    Arc::get_mut(&mut without).unwrap().schedule = Arc::new(Mutex::new(Schedule::new(saved)));
    add_own_jobs(&without);
    assert!(!without.schedule.lock().config().contains_key(MINE));
}

#[test]
fn jobs_of_the_pillar_run_too() {
    let minion = testing::minion(&[]);
    let ping = map! {"function" => "test.ping", "seconds" => 5};
    *minion.pillar.write() = Arc::new(map! {"schedule" => map! {"often" => ping}});
    let at = |time: &str| due(&minion, time.parse().unwrap(), SignedDuration::from_secs(1)).len();
    assert_eq!((at("2026-11-21T12:00:00"), at("2026-11-21T12:00:01"), at("2026-11-21T12:00:05")), (1, 0, 1));
}
