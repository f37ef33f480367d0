//! The master's schedule: jobs are runner functions, and their returns are published as `__schedule_return`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use brine_function::Args;
use brine_runtime::executors::MayBlock;
use brine_runtime::polling::Ticks;
use brine_runtime::supervisor::Background;
use brine_schedule::{Host, RETURN, Run, Schedule, Surroundings};
use brine_value::{Map, Value, map};
use jiff::Zoned;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::cluster;
use crate::runner_calls::RunnerCalls;
/// The user of scheduled calls.
const USER: &str = "schedule";
/// The interval at which the schedule is polled.
const INTERVAL: Duration = Duration::from_secs(1);

/// The schedule of the master, as a host of [`brine_schedule::run`].
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
    brine_schedule::run(host, Ticks::new(INTERVAL, shutdown)).await;
}

impl Host for MasterSchedule {
    fn now(&self) -> Zoned {
        brine_clock::now()
    }

    fn with_schedule<T>(&self, ask: impl FnOnce(&mut Schedule, &Surroundings<'_>) -> T) -> T {
        let running = |name: &str| self.running.lock().get(name).copied().unwrap_or(0);
        let none = Map::new();
        ask(&mut self.schedule.lock(), &Surroundings { pillar: &none, grains: &none, running: &running })
    }

    fn start(self: &Arc<Self>, run: Run) -> impl Future<Output = Result<Option<Map>, String>> + Send + 'static {
        let name = run.job.name.clone();
        let is_here = cluster::is_leader(&self.calls.services.gate);
        *self.running.lock().entry(name.clone()).or_default() += 1;
        let (calls, running) = (Arc::clone(&self.calls), Arc::clone(&self.running));
        async move {
            if !is_here {
                running.lock().entry(name).and_modify(|count| *count = count.saturating_sub(1));
                return Ok(None);
            }
            let on_thread = Arc::clone(&calls);
            let ran = calls.services.executors.jobs.run(move |thread| returned(&on_thread, &run, thread)).await;
            running.lock().entry(name).and_modify(|count| *count = count.saturating_sub(1));
            ran.map_err(|error| error.to_string())
        }
    }

    async fn publish(&self, event: Map) {
        self.calls.services.events.fire(RETURN, &event).await;
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.background.spawn("scheduled job", task);
    }
}

/// Calls the function of a job, and returns the event of its return.
fn returned(calls: &Arc<RunnerCalls>, run: &Run, thread: &MayBlock) -> Option<Map> {
    let (services, job) = (&calls.services, &run.job);
    let args = Args { positional: job.args.clone(), keyword: job.kwargs.clone() };
    let outcome = calls.call_runner(&job.function, args, &run.jid, USER, thread);
    let load = return_of(services.id.as_str(), run, outcome);
    let opts = &services.config.opts;
    let returners = brine_config::opts::modules::schedule_returner(opts);
    run.complete(load, &brine_clock::now(), &returners, |names, load| {
        brine_returners::store_in(&names.join(","), opts, &Arc::default(), load);
    })
}

/// Returns the return of a call from its result.
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
mod tests {
    use brine_ids::Jid;
    use brine_schedule::{FAILED, Job};
    use brine_value::list;

    use super::*;

    #[test]
    fn a_return_has_the_result_or_the_error_of_the_job() {
        let options = map! {"function" => "test.arg", "args" => list![1], "kwargs" => map! {"a" => 2}};
        let run = Run { job: Job::read("often", &options.into()).unwrap(), jid: Jid::new() };
        let told = |outcome: Result<Value, String>| {
            let load = return_of("m_master", &run, outcome);
            let mut event = run.complete(load, &brine_clock::now(), &[], |_, _| {}).unwrap();
            event.shift_remove("pid");
            event
        };
        let expected = map! {
            "cmd" => "_return", "id" => "m_master", "fun" => "test.arg", "fun_args" => list![1, map! {"a" => 2}],
            "schedule" => "often", "jid" => "req", "return" => "done", "retcode" => 0, "success" => true,
        };
        assert_eq!(told(Ok("done".into())), expected);
        let failed = told(Err("why".into()));
        let fields = ["return", "retcode", "success"].map(|name| failed.get(name).cloned().unwrap());
        assert_eq!(fields, ["why".into(), FAILED.into(), false.into()]);
    }
}
