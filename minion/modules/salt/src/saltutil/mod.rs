//! `saltutil`: running jobs, and modules of the master. `refresh.rs` refreshes pillar, grains and caches.

pub(crate) mod orchestration;
pub mod refresh;
pub(crate) mod state;

use std::sync::Arc;

use brine_context::jobs::{self, Running, cached_return};
use brine_context::{Context, Job, Room};
use brine_function::{CallError, CallResult, Function, function, registry};
use brine_ids::Jid;
use brine_value::{Map, Value, list, msgpack};
use nix::sys::signal::Signal;

pub(super) static ROOM: Room = Room {
    functions: &[FUNCTIONS, orchestration::FUNCTIONS, refresh::FUNCTIONS],
    states: &[state::FUNCTIONS],
    ..Room::EMPTY
};

/// Execution functions of `saltutil`.
pub static FUNCTIONS: &[Function<Context>] = registry!(
    "saltutil",
    [
        running,
        is_running,
        find_job,
        find_cached_job,
        signal_job,
        term_job,
        kill_job,
        sync_all,
        sync_beacons,
        sync_clouds,
        sync_engines,
        sync_executors,
        sync_grains,
        sync_log_handlers,
        sync_matchers,
        sync_modules,
        sync_output,
        sync_pillar,
        sync_proxymodules,
        sync_renderers,
        sync_resources,
        sync_returners,
        sync_sdb,
        sync_serializers,
        sync_states,
        sync_utils,
        sync_wrapper,
        sync_tops,
        sync_thorium,
        sync_outputters
    ]
);

/// Return the running jobs, except this one.
///
/// CLI Example:
///
///     salt '*' saltutil.running
#[function]
pub fn running(context: &Context) -> CallResult {
    Ok(others(context).into_iter().map(|job| job.told).collect())
}

/// Return the running jobs whose function matches a glob.
///
/// CLI Example:
///
///     salt '*' saltutil.is_running state.highstate
#[function]
pub fn is_running(context: &Context, fun: String) -> CallResult {
    let matching = others(context).into_iter().filter(|job| brine_text::glob::fnmatch(&fun, &job.fun));
    Ok(matching.map(|job| job.told).collect())
}

/// Return a job, if it is running.
///
/// CLI Example:
///
///     salt '*' saltutil.find_job 20261120235852025555
#[function]
pub fn find_job(context: &Context, jid: Value) -> CallResult {
    let jid = jid.to_string();
    let found = jobs::running(&context.minion).into_iter().find(|job| job.jid == jid);
    Ok(found.map(|job| job.told).unwrap_or_default().into())
}

/// Return the return of a job, if it is in this minion's job cache.
///
/// CLI Example:
///
///     salt '*' saltutil.find_cached_job 20261120235852025555
#[function]
pub fn find_cached_job(context: &Context, jid: Value) -> CallResult {
    let jid: Jid = jid.to_string().parse().map_err(CallError::execution)?;
    match std::fs::read(cached_return(&context.minion, jid.as_str())) {
        Ok(packed) => msgpack::unpack(&packed).map_err(CallError::execution),
        Err(_) => Ok(Value::from(format!("Local jobs cache directory has no return for {jid}"))),
    }
}

/// Send a signal to the processes of a job.
///
/// CLI Example:
///
///     salt '*' saltutil.signal_job 20261120235852025555 15
#[function]
pub fn signal_job(context: &Context, jid: Value, sig: i32) -> CallResult {
    signal(context, &jid, sig)
}

/// Terminate a job: send SIGTERM to its processes.
///
/// CLI Example:
///
///     salt '*' saltutil.term_job 20261120235852025555
#[function]
pub fn term_job(context: &Context, jid: Value) -> CallResult {
    signal(context, &jid, Signal::SIGTERM as i32)
}

/// Kill a job: send SIGKILL to its processes.
///
/// CLI Example:
///
///     salt '*' saltutil.kill_job 20261120235852025555
#[function]
pub fn kill_job(context: &Context, jid: Value) -> CallResult {
    signal(context, &jid, Signal::SIGKILL as i32)
}

/// Sync custom modules from the master: an empty result, because functions are part of the minion.
///
/// CLI Example:
///
///     salt '*' saltutil.sync_all
#[function]
pub fn sync_all(_context: &Context, #[keywords] _kwargs: Map) -> CallResult {
    Ok(Value::Map(KINDS.iter().map(|kind| ((*kind).into(), list![])).collect()))
}

/// Sync `_beacons`, as `sync_all`.
///
/// CLI Example:
///
///     salt '*' saltutil.sync_beacons
#[function]
pub fn sync_beacons(_context: &Context, #[keywords] _kwargs: Map) -> CallResult {
    Ok(list![])
}

/// Sync `_clouds`, as `sync_all`.
///
/// CLI Example:
///
///     salt '*' saltutil.sync_clouds
#[function]
pub fn sync_clouds(_context: &Context, #[keywords] _kwargs: Map) -> CallResult {
    Ok(list![])
}

/// Sync `_engines`, as `sync_all`.
///
/// CLI Example:
///
///     salt '*' saltutil.sync_engines
#[function]
pub fn sync_engines(_context: &Context, #[keywords] _kwargs: Map) -> CallResult {
    Ok(list![])
}

/// Sync `_executors`, as `sync_all`.
///
/// CLI Example:
///
///     salt '*' saltutil.sync_executors
#[function]
pub fn sync_executors(_context: &Context, #[keywords] _kwargs: Map) -> CallResult {
    Ok(list![])
}

/// Sync `_grains`, as `sync_all`.
///
/// CLI Example:
///
///     salt '*' saltutil.sync_grains
#[function]
pub fn sync_grains(_context: &Context, #[keywords] _kwargs: Map) -> CallResult {
    Ok(list![])
}

/// Sync `_log_handlers`, as `sync_all`.
///
/// CLI Example:
///
///     salt '*' saltutil.sync_log_handlers
#[function]
pub fn sync_log_handlers(_context: &Context, #[keywords] _kwargs: Map) -> CallResult {
    Ok(list![])
}

/// Sync `_matchers`, as `sync_all`.
///
/// CLI Example:
///
///     salt '*' saltutil.sync_matchers
#[function]
pub fn sync_matchers(_context: &Context, #[keywords] _kwargs: Map) -> CallResult {
    Ok(list![])
}

/// Sync `_modules`, as `sync_all`.
///
/// CLI Example:
///
///     salt '*' saltutil.sync_modules
#[function]
pub fn sync_modules(_context: &Context, #[keywords] _kwargs: Map) -> CallResult {
    Ok(list![])
}

/// Sync `_output`, as `sync_all`.
///
/// CLI Example:
///
///     salt '*' saltutil.sync_output
#[function]
pub fn sync_output(_context: &Context, #[keywords] _kwargs: Map) -> CallResult {
    Ok(list![])
}

/// Sync `_pillar`, as `sync_all`.
///
/// CLI Example:
///
///     salt '*' saltutil.sync_pillar
#[function]
pub fn sync_pillar(_context: &Context, #[keywords] _kwargs: Map) -> CallResult {
    Ok(list![])
}

/// Sync `_proxymodules`, as `sync_all`.
///
/// CLI Example:
///
///     salt '*' saltutil.sync_proxymodules
#[function]
pub fn sync_proxymodules(_context: &Context, #[keywords] _kwargs: Map) -> CallResult {
    Ok(list![])
}

/// Sync `_renderers`, as `sync_all`.
///
/// CLI Example:
///
///     salt '*' saltutil.sync_renderers
#[function]
pub fn sync_renderers(_context: &Context, #[keywords] _kwargs: Map) -> CallResult {
    Ok(list![])
}

/// Sync `_resources`, as `sync_all`.
///
/// CLI Example:
///
///     salt '*' saltutil.sync_resources
#[function]
pub fn sync_resources(_context: &Context, #[keywords] _kwargs: Map) -> CallResult {
    Ok(list![])
}

/// Sync `_returners`, as `sync_all`.
///
/// CLI Example:
///
///     salt '*' saltutil.sync_returners
#[function]
pub fn sync_returners(_context: &Context, #[keywords] _kwargs: Map) -> CallResult {
    Ok(list![])
}

/// Sync `_sdb`, as `sync_all`.
///
/// CLI Example:
///
///     salt '*' saltutil.sync_sdb
#[function]
pub fn sync_sdb(_context: &Context, #[keywords] _kwargs: Map) -> CallResult {
    Ok(list![])
}

/// Sync `_serializers`, as `sync_all`.
///
/// CLI Example:
///
///     salt '*' saltutil.sync_serializers
#[function]
pub fn sync_serializers(_context: &Context, #[keywords] _kwargs: Map) -> CallResult {
    Ok(list![])
}

/// Sync `_states`, as `sync_all`.
///
/// CLI Example:
///
///     salt '*' saltutil.sync_states
#[function]
pub fn sync_states(_context: &Context, #[keywords] _kwargs: Map) -> CallResult {
    Ok(list![])
}

/// Sync `_utils`, as `sync_all`.
///
/// CLI Example:
///
///     salt '*' saltutil.sync_utils
#[function]
pub fn sync_utils(_context: &Context, #[keywords] _kwargs: Map) -> CallResult {
    Ok(list![])
}

/// Sync `_wrapper`, as `sync_all`.
///
/// CLI Example:
///
///     salt '*' saltutil.sync_wrapper
#[function]
pub fn sync_wrapper(_context: &Context, #[keywords] _kwargs: Map) -> CallResult {
    Ok(list![])
}

/// Sync `_tops`, as `sync_all`.
///
/// CLI Example:
///
///     salt '*' saltutil.sync_tops
#[function]
pub fn sync_tops(_context: &Context, #[keywords] _kwargs: Map) -> CallResult {
    Ok(list![])
}

/// Sync `_thorium`, as `sync_all`.
///
/// CLI Example:
///
///     salt '*' saltutil.sync_thorium
#[function]
pub fn sync_thorium(_context: &Context, #[keywords] _kwargs: Map) -> CallResult {
    Ok(list![])
}

/// Sync `_output`, as `sync_output`.
///
/// CLI Example:
///
///     salt '*' saltutil.sync_outputters
#[function]
pub fn sync_outputters(_context: &Context, #[keywords] _kwargs: Map) -> CallResult {
    Ok(list![])
}

/// Types of modules that Salt syncs from a master.
const KINDS: &[&str] = &[
    "beacons",
    "clouds",
    "engines",
    "executors",
    "grains",
    "log_handlers",
    "matchers",
    "modules",
    "output",
    "proxymodules",
    "renderers",
    "resources",
    "returners",
    "sdb",
    "serializers",
    "states",
    "thorium",
    "utils",
];

fn others(context: &Context) -> Vec<Running> {
    let mut jobs = jobs::running(&context.minion);
    jobs.retain(|job| job.jid != context.job.jid);
    jobs
}

fn find(context: &Context, jid: &Value) -> Option<Arc<Job>> {
    context.minion.jobs.lock().get(&jid.to_string()).cloned()
}

/// Sends a signal to a job, whether it runs a command or a function.
fn signal(context: &Context, jid: &Value, sig: i32) -> Result<Value, CallError> {
    let signal = Signal::try_from(sig).map_err(|_| CallError::Execution(format!("unknown signal {sig}")))?;
    let Some(job) = find(context, jid) else { return Ok("".into()) };
    let groups = job.children.signal(signal);
    if matches!(signal, Signal::SIGTERM | Signal::SIGKILL | Signal::SIGINT | Signal::SIGQUIT) {
        job.cancel.cancel();
    }
    tracing::info!(jid = job.jid, %signal, groups, "sending a signal to a job");
    Ok(format!("Signal {sig} sent to job {} at pid {}", job.jid, job.pid).into())
}

#[cfg(test)]
mod tests {
    use brine_function::Args;
    use brine_value::map;

    use super::*;
    use crate::testing;

    #[test]
    fn sync_functions_return_nothing() {
        let context = testing::context(&[]);
        let all = context.call("saltutil.sync_all", Args::default()).unwrap();
        assert_eq!((all.get("modules"), all.get("grains")), (Some(&list![]), Some(&list![])));
        let one = Args::keyword(map! {"saltenv" => "base"});
        assert_eq!(context.call("saltutil.sync_modules", one), Ok(list![]));
    }

    #[test]
    fn running_jobs_are_found_and_killed() {
        let context = testing::context(&[]);
        let other = Job::local(&Jid::new(), "test.sleep", &Args::positional([600.into()]));
        let jid = Value::from(other.jid.as_str());
        let other = Arc::new(other);
        context.minion.jobs.lock().insert(other.jid.clone(), Arc::clone(&other));
        let call = |fun: &str, arg: Value| context.call(&format!("saltutil.{fun}"), Args::positional([arg])).unwrap();
        assert_eq!(context.call("saltutil.running", Args::default()).unwrap().as_list().unwrap().len(), 1);
        assert_eq!(call("is_running", "test.*".into()).as_list().unwrap().len(), 1);
        assert_eq!(call("is_running", "state.*".into()), list![]);
        assert_eq!(call("find_job", jid.clone()).get("fun"), Some(&"test.sleep".into()));
        assert_eq!(call("find_job", "20000101000000000000".into()), Value::map());
        assert_eq!(call("term_job", jid), format!("Signal 15 sent to job {} at pid {}", other.jid, other.pid).into());
        assert!(other.cancel.is_cancelled());
        assert_eq!(call("kill_job", "20000101000000000000".into()), "".into());
    }
}
