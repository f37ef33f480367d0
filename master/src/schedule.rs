//! The master's schedule: runs runner functions when [`brine_schedule`] says that they are due, and publishes their
//! returns as `__schedule_return`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use brine_function::Args;
use brine_ids::Jid;
use brine_job::Return;
use brine_runtime::supervisor::Background;
use brine_schedule::{Job, Schedule, Surroundings};
use brine_value::{Map, Value, map};
use jiff::{SignedDuration, Zoned};
use parking_lot::Mutex;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::runner_calls::{RunnerCalls, Services};

/// The tag of the return of a scheduled job.
pub(crate) const RETURN: &str = "__schedule_return";
/// The user of scheduled calls.
const USER: &str = "schedule";
/// The interval at which the schedule is polled.
const INTERVAL: Duration = Duration::from_secs(1);
/// The retcode of a job that failed.
const FAILED: i64 = 254;

/// The number of running calls of each job, by name.
type Running = Arc<Mutex<HashMap<String, u64>>>;

/// Runs the schedule until `shutdown`. Jobs are tasks of `background`.
pub(crate) async fn run(calls: Arc<RunnerCalls>, background: Background, shutdown: CancellationToken) {
    let mut schedule = Schedule::new(calls.services.config.schedule.clone());
    let running = Running::default();
    let none = Map::new();
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shutdown.cancelled() => return,
        }
        let count = |name: &str| running.lock().get(name).copied().unwrap_or(0);
        let around = Surroundings { pillar: &none, grains: &none, running: &count };
        let tick = SignedDuration::try_from(INTERVAL).unwrap_or(SignedDuration::ZERO);
        for job in schedule.turn(brine_clock::now().datetime(), tick, &around) {
            if job.dry_run {
                tracing::info!(job = job.name, fun = job.function, "scheduled job skipped: it has 'dry_run'");
                continue;
            }
            *running.lock().entry(job.name.clone()).or_default() += 1;
            let (calls, running) = (Arc::clone(&calls), Arc::clone(&running));
            background.spawn("scheduled job", async move {
                run_job(&calls, &job).await;
                running.lock().entry(job.name).and_modify(|count| *count = count.saturating_sub(1));
            });
        }
    }
}

/// Runs a job and publishes its return.
async fn run_job(calls: &Arc<RunnerCalls>, job: &Job) {
    let services = &calls.services;
    let jid = Jid::new();
    tracing::info!(job = job.name, fun = job.function, %jid, "scheduled job started");
    let args = Args { positional: job.args.clone(), keyword: job.kwargs.clone() };
    let (on_thread, function, call) = (Arc::clone(calls), job.function.clone(), jid.clone());
    let ran = services.executors.jobs.run(move |thread| on_thread.call_runner(&function, args, &call, USER, thread));
    let Ok(outcome) = ran.await else {
        tracing::error!(job = job.name, %jid, "scheduled job panicked: this is a defect, please report it");
        return;
    };
    let load = return_of(services.id.as_str(), job, &jid, outcome, &brine_clock::now());
    let returners = job.returners_with(&brine_config::opts::modules::schedule_returner(&services.config.opts));
    if !returners.is_empty() && load.get("success").is_some_and(Value::is_truthy) {
        let (on_thread, load, job) = (Arc::clone(services), load.clone(), job.clone());
        let returned = returners.clone();
        _ = services.executors.disk.run(move |_| store_return(&on_thread, &returned, &job, load)).await;
    }
    if let Some(event) = job.told_return(load, !returners.is_empty()) {
        services.events.fire(RETURN, &event).await;
    }
}

/// Returns the return of a job from its result.
fn return_of(id: &str, job: &Job, jid: &Jid, outcome: Result<Value, String>, now: &Zoned) -> Map {
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

/// Stores a return with returners.
fn store_return(services: &Services, names: &[String], job: &Job, load: Map) {
    let jid = load.get("jid").map(ToString::to_string).unwrap_or_default();
    let job_return = match Return::from_map(load) {
        Ok(job_return) => job_return,
        Err(error) => return tracing::error!(%jid, %error, "return of a scheduled job is invalid"),
    };
    let options = brine_returners::Options::new(&services.config.opts, None);
    let options = options.for_job(job.return_config.as_deref(), &job.return_kwargs);
    for name in names {
        let result = brine_returners::open(name, &options).and_then(|returner| returner.returner(&job_return));
        if let Err(error) = result {
            brine_job::metrics::RETURNS_LOST.add(1);
            tracing::error!(returner = name, %jid, %error, "storing a return failed");
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
    fn a_return_has_the_result_or_the_error_of_the_job() {
        let job = job(map! {"function" => "test.arg", "args" => list![1], "kwargs" => map! {"a" => 2}});
        let (jid, now) = (Jid::new(), brine_clock::now());
        let mut load = return_of("m_master", &job, &jid, Ok("done".into()), &now);
        load.shift_remove("pid");
        let expected = map! {
            "cmd" => "_return", "id" => "m_master", "fun" => "test.arg", "fun_args" => list![1, map! {"a" => 2}],
            "schedule" => "often", "jid" => &jid, "return" => "done", "retcode" => 0, "success" => true,
        };
        assert_eq!(load, expected);
        let failed = return_of("m_master", &job, &jid, Err("why".into()), &now);
        let fields = ["return", "retcode", "success"].map(|name| failed.get(name).cloned().unwrap());
        assert_eq!(fields, ["why".into(), FAILED.into(), false.into()]);
    }

    #[test]
    fn return_job_decides_about_the_event() {
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
