//! The master's schedule: runner functions that run by themselves.
//!
//! When they run is told by [`brine_schedule`]. What one returns is the event `__schedule_return`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use brine_function::Args;
use brine_ids::Jid;
use brine_job::Return;
use brine_schedule::{Job, Schedule, Surroundings};
use brine_value::{Map, Value, map};
use jiff::{SignedDuration, Zoned};
use parking_lot::Mutex;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::Shared;

/// The event that carries what a scheduled job returned.
pub(crate) const RETURN: &str = "__schedule_return";
/// Whose calls these are.
const USER: &str = "schedule";
/// The time between two looks at the schedule.
const TICK: Duration = Duration::from_secs(1);
/// The retcode of a job that could not be run to its end.
const FAILED: i64 = 254;

/// How many of each job run, by name.
type Running = Arc<Mutex<HashMap<String, u64>>>;

/// Runs what is due, until `shutdown`.
pub(crate) async fn run(shared: Arc<Shared>, shutdown: CancellationToken) {
    let mut schedule = Schedule::new(shared.config.schedule.clone());
    let running = Running::default();
    let none = Map::new();
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shutdown.cancelled() => return,
        }
        let count = |name: &str| running.lock().get(name).copied().unwrap_or(0);
        let around = Surroundings { pillar: &none, grains: &none, running: &count };
        let tick = SignedDuration::try_from(TICK).unwrap_or(SignedDuration::ZERO);
        for job in schedule.turn(Zoned::now().datetime(), tick, &around) {
            if job.dry_run {
                tracing::info!(job = job.name, fun = job.function, "a scheduled job would run, but has 'dry_run'");
                continue;
            }
            *running.lock().entry(job.name.clone()).or_default() += 1;
            let (shared, running) = (Arc::clone(&shared), Arc::clone(&running));
            let background = shared.background.clone();
            background.spawn("scheduled job", async move {
                start(&shared, &job).await;
                running.lock().entry(job.name).and_modify(|count| *count = count.saturating_sub(1));
            });
        }
    }
}

/// Runs a job to its end, and tells what it returned.
async fn start(shared: &Arc<Shared>, job: &Job) {
    let jid = Jid::new();
    tracing::info!(job = job.name, fun = job.function, %jid, "a scheduled job");
    let args = Args { positional: job.args.clone(), keyword: job.kwargs.clone() };
    let (on_thread, function, call) = (Arc::clone(shared), job.function.clone(), jid.clone());
    let ran = shared.executors.jobs.run(move |thread| on_thread.call_runner(&function, args, &call, USER, thread));
    let Ok(outcome) = ran.await else {
        tracing::error!(job = job.name, %jid, "a scheduled job has ended in a way that nobody has foreseen");
        return;
    };
    let load = told(shared.id.as_str(), job, &jid, outcome, &Zoned::now());
    let returners = returners(shared, job);
    if !returners.is_empty() && load.get("success").is_some_and(Value::is_truthy) {
        let (on_thread, load, job) = (Arc::clone(shared), load.clone(), job.clone());
        let returned = returners.clone();
        _ = shared.executors.disk.run(move |_| return_beside(&on_thread, &returned, &job, load)).await;
    }
    if let Some(event) = job.told_return(load, !returners.is_empty()) {
        shared.fire(RETURN, &event).await;
    }
}

/// The return of a job: what came of it, or why nothing did.
fn told(id: &str, job: &Job, jid: &Jid, outcome: Result<Value, String>, now: &Zoned) -> Map {
    let success = outcome.is_ok();
    let mut load = map! {
        "cmd" => "_return",
        "id" => id,
        "fun" => &job.function,
        "fun_args" => job.fun_args(),
        "schedule" => &job.name,
        "jid" => jid,
        "pid" => std::process::id(),
        "return" => outcome.unwrap_or_else(Value::from),
        "retcode" => if success { 0 } else { FAILED },
        "success" => success,
    };
    if let Some(metadata) = job.metadata_at(now) {
        load.insert("metadata".into(), metadata.into());
    }
    load
}

fn returners(shared: &Shared, job: &Job) -> Vec<String> {
    job.returners_with(shared.config.opts.get("schedule_returner"))
}

/// Hands a return to returners.
fn return_beside(shared: &Shared, names: &[String], job: &Job, load: Map) {
    let jid = load.get("jid").map(ToString::to_string).unwrap_or_default();
    let job_return = match Return::from_map(load) {
        Ok(job_return) => job_return,
        Err(error) => return tracing::error!(%jid, %error, "the return of a scheduled job cannot be stored"),
    };
    let options = brine_returners::Options::new(&shared.config.opts, None);
    let options = options.for_job(job.return_config.as_deref(), &job.return_kwargs);
    for name in names {
        let result = brine_returners::open(name, &options).and_then(|returner| returner.returner(&job_return));
        if let Err(error) = result {
            brine_job::metrics::RETURNS_LOST.add(1);
            tracing::error!(returner = name, %jid, %error, "a return could not be stored");
        }
    }
}

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::*;

    fn job(options: Map) -> Job {
        Job::read("often", &options.into()).unwrap()
    }

    #[test]
    fn a_return_says_what_came_of_the_job() {
        let job = job(map! {"function" => "test.arg", "args" => list![1], "kwargs" => map! {"a" => 2}});
        let (jid, now) = (Jid::new(), Zoned::now());
        let mut load = told("m_master", &job, &jid, Ok("done".into()), &now);
        load.shift_remove("pid");
        let expected = map! {
            "cmd" => "_return", "id" => "m_master", "fun" => "test.arg", "fun_args" => list![1, map! {"a" => 2}],
            "schedule" => "often", "jid" => &jid, "return" => "done", "retcode" => 0, "success" => true,
        };
        assert_eq!(load, expected);
        let failed = told("m_master", &job, &jid, Err("why".into()), &now);
        let fields = ["return", "retcode", "success"].map(|name| failed.get(name).cloned().unwrap());
        assert_eq!(fields, ["why".into(), FAILED.into(), false.into()]);
    }

    #[test]
    fn the_event_is_as_asked() {
        for (option, is_returned, jid) in [
            (Value::Bool(true), false, Some("req")),
            ("nocache".into(), false, Some("nocache")),
            (true.into(), true, Some("1")),
            (false.into(), false, None),
        ] {
            let job = job(map! {"function" => "f", "return_job" => option.clone()});
            let event = job.told_return(map! {"jid" => "1"}, is_returned);
            assert_eq!(event.and_then(|event| event.get("jid").map(ToString::to_string)).as_deref(), jid, "{option}");
        }
    }
}
