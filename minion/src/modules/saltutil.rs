//! `saltutil`: the minion's own affairs: jobs that run, pillar and grains to look at again.

use std::sync::Arc;

use brine_core::function::CallError;
use brine_core::value::msgpack;
use brine_core::{Jid, Map, Value, functions, list};
use nix::sys::signal::Signal;

use crate::context::{Context, Job};
use crate::jobs::{cached_return, describe};

functions! {
    module "saltutil", context Context;

    /// The jobs that run now, this one aside.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.running
    fn running(context) {
        Ok(others(context).iter().map(|job| describe(job)).collect())
    }

    /// The jobs that run now and call a function that matches.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.is_running state.highstate
    fn is_running(context, fun: String) {
        let matching = others(context).into_iter().filter(|job| brine_core::glob::fnmatch(&fun, &job.fun));
        Ok(matching.map(|job| describe(&job)).collect())
    }

    /// One job, if it runs.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.find_job 20261120235852025555
    fn find_job(context, jid: Value) {
        Ok(find(context, &jid).map(|job| describe(&job)).unwrap_or_default().into())
    }

    /// What a job returned, if this minion still has it.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.find_cached_job 20261120235852025555
    fn find_cached_job(context, jid: Value) {
        let jid: Jid = jid.to_string().parse().map_err(CallError::execution)?;
        match std::fs::read(cached_return(&context.minion, jid.as_str())) {
            Ok(packed) => msgpack::unpack(&packed).map_err(CallError::execution),
            Err(_) => Ok(Value::from(format!("Local jobs cache directory has no return for {jid}"))),
        }
    }

    /// Sends a signal to a job: its processes and their children.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.signal_job 20261120235852025555 15
    fn signal_job(context, jid: Value, sig: i32) {
        signal(context, &jid, sig)
    }

    /// Ends a job: its processes and their children get a SIGTERM.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.term_job 20261120235852025555
    fn term_job(context, jid: Value) {
        signal(context, &jid, Signal::SIGTERM as i32)
    }

    /// Ends a job at once: its processes and their children get a SIGKILL.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.kill_job 20261120235852025555
    fn kill_job(context, jid: Value) {
        signal(context, &jid, Signal::SIGKILL as i32)
    }

    /// Asks for the pillar again.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.refresh_pillar
    fn refresh_pillar(context) {
        let config = context.config();
        let fresh = context.minion.upstream.pillar(config.saltenv.as_deref(), config.pillarenv.as_deref(), &Map::new());
        *context.minion.pillar.write() = Arc::new(fresh.map_err(CallError::Execution)?);
        Ok(Value::Bool(true))
    }

    /// Looks at the host again.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.refresh_grains
    fn refresh_grains(context) {
        *context.minion.grains.write() = Arc::new(crate::grains::collect(context.config(), &context.minion.id));
        refresh_pillar(context)
    }

    /// Nothing to do: functions are part of the minion.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.refresh_modules
    fn refresh_modules(_context) {
        Ok(Value::Bool(true))
    }

    /// What was brought over from the master's `_modules` and its like: nothing, functions are part of the
    /// minion.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.sync_all
    fn sync_all(_context) {
        let kinds = ["beacons", "clouds", "engines", "executors", "grains", "log_handlers", "matchers", "modules", "output",
            "proxymodules", "renderers", "returners", "sdb", "serializers", "states", "thorium", "tops", "utils", "wrapper"];
        Ok(Value::Map(kinds.into_iter().map(|kind| (kind.into(), list![])).collect()))
    }
}

fn others(context: &Context) -> Vec<Arc<Job>> {
    let jobs = context.minion.jobs.lock();
    jobs.values().filter(|job| job.jid != context.job.jid).cloned().collect()
}

fn find(context: &Context, jid: &Value) -> Option<Arc<Job>> {
    context.minion.jobs.lock().get(&jid.to_string()).cloned()
}

/// What ends a job ends it whether it is in a command or in a function of ours.
fn signal(context: &Context, jid: &Value, sig: i32) -> Result<Value, CallError> {
    let signal = Signal::try_from(sig).map_err(|_| CallError::Execution(format!("there is no signal {sig}")))?;
    let Some(job) = find(context, jid) else { return Ok("".into()) };
    let groups = job.children.signal(signal);
    if matches!(signal, Signal::SIGTERM | Signal::SIGKILL | Signal::SIGINT | Signal::SIGQUIT) {
        job.cancel.cancel();
    }
    tracing::info!(jid = job.jid, %signal, groups, "a job is signalled");
    Ok(format!("Signal {sig} sent to job {} at pid {}", job.jid, job.pid).into())
}
