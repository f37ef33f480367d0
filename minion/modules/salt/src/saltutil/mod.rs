//! `saltutil`: running jobs. `refresh/` refreshes pillar, grains and caches, `sync.rs` copies custom modules from the
//! file server.

pub(crate) mod orchestration;
pub mod refresh;
pub(crate) mod state;
pub mod sync;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use brine_context::jobs::{self, Running, cached_return};
use brine_context::{Context, Job, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_ids::Jid;
use brine_system::user_files;
use brine_value::{Map, Value, msgpack};
use nix::sys::signal::Signal;

pub(super) static MODULE: Module = Module {
    functions: &[&FUNCTIONS, &orchestration::FUNCTIONS, &refresh::FUNCTIONS, &sync::FUNCTIONS],
    states: &[&state::FUNCTIONS],
    ..Module::EMPTY
};

/// Execution functions of `saltutil`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "saltutil",
    [
        running,
        is_running,
        find_job,
        find_cached_job,
        signal_job,
        term_job,
        term_all_jobs,
        kill_job,
        kill_all_jobs,
        mmodule,
        regen_keys,
        update
    ]
);

/// Return the running jobs, except this one.
///
/// CLI Example:
///
///     salt '*' saltutil.running
#[function]
pub fn running(context: &Context) -> CallResult {
    Ok(other_jobs(context).into_iter().map(|job| job.fields).collect())
}

/// Return the running jobs whose function matches a glob.
///
/// CLI Example:
///
///     salt '*' saltutil.is_running state.highstate
#[function]
pub fn is_running(
    context: &Context,
    /// Name of the function.
    fun: String,
) -> CallResult {
    let matching = other_jobs(context).into_iter().filter(|job| brine_text::glob::fnmatch(&fun, &job.fun));
    Ok(matching.map(|job| job.fields).collect())
}

/// Return a job, if it is running, or waits because of `process_count_max`: then with `queued`.
///
/// CLI Example:
///
///     salt '*' saltutil.find_job 20261120235852025555
#[function]
pub fn find_job(
    context: &Context,
    /// Id of the job.
    jid: Value,
) -> CallResult {
    let jid = jid.to_string();
    let jobs = jobs::held(&context.minion).into_iter().chain(jobs::running(&context.minion));
    let job = jobs.into_iter().find(|job| job.jid == jid);
    Ok(job.map(|job| job.fields).unwrap_or_default().into())
}

/// Return the return of a job, if it is in this minion's job cache.
///
/// CLI Example:
///
///     salt '*' saltutil.find_cached_job 20261120235852025555
#[function]
pub fn find_cached_job(
    context: &Context,
    /// Id of the job.
    jid: Value,
) -> CallResult {
    let jid: Jid = jid.to_string().parse().map_err(CallError::execution)?;
    match std::fs::read(cached_return(&context.minion, jid.as_str())) {
        // A power failure may leave an empty file.
        Ok(packed) if !packed.is_empty() => msgpack::unpack(&packed).map_err(CallError::execution),
        _ => Ok(Value::from(format!("Local jobs cache directory has no return for {jid}"))),
    }
}

/// Send a signal to the processes of a job.
///
/// CLI Example:
///
///     salt '*' saltutil.signal_job 20261120235852025555 15
#[function]
pub fn signal_job(
    context: &Context,
    /// Id of the job.
    jid: Value,
    /// Number of the signal.
    sig: i32,
) -> CallResult {
    signal(context, &jid, sig)
}

/// Terminate a job: send SIGTERM to its processes.
///
/// CLI Example:
///
///     salt '*' saltutil.term_job 20261120235852025555
#[function]
pub fn term_job(
    context: &Context,
    /// Id of the job.
    jid: Value,
) -> CallResult {
    signal(context, &jid, Signal::SIGTERM as i32)
}

/// Kill a job: send SIGKILL to its processes.
///
/// CLI Example:
///
///     salt '*' saltutil.kill_job 20261120235852025555
#[function]
pub fn kill_job(
    context: &Context,
    /// Id of the job.
    jid: Value,
) -> CallResult {
    signal(context, &jid, Signal::SIGKILL as i32)
}

/// Terminate all running jobs except this one: send SIGTERM to their processes.
///
/// CLI Example:
///
///     salt '*' saltutil.term_all_jobs
#[function]
pub fn term_all_jobs(context: &Context) -> CallResult {
    signal_all(context, Signal::SIGTERM)
}

/// Kill all running jobs except this one: send SIGKILL to their processes.
///
/// CLI Example:
///
///     salt '*' saltutil.kill_all_jobs
#[function]
pub fn kill_all_jobs(context: &Context) -> CallResult {
    signal_all(context, Signal::SIGKILL)
}

/// Call an execution function with the synced custom modules. The environment has no effect, because the modules of all
/// environments are synced together.
///
/// CLI Example:
///
///     salt '*' saltutil.mmodule base test.ping
#[function]
pub fn mmodule(
    context: &Context,
    /// Environment of the file server.
    saltenv: String,
    /// Name of the function.
    fun: String,
    /// Arguments of the function.
    #[rest]
    args: Vec<Value>,
    /// Keyword arguments of the function.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    tracing::debug!(saltenv, fun, "calling a function for saltutil.mmodule");
    let keyword =
        kwargs.into_iter().filter(|(key, _)| !key.as_str().is_some_and(|key| key.starts_with("__"))).collect();
    context.call(&fun, Args { positional: args, keyword })
}

/// Remove this minion's key pair and the stored key of its master. The next start generates a new pair, which must be
/// accepted on the master: delete the old key there.
///
/// CLI Example:
///
///     salt '*' saltutil.regen_keys
#[function]
pub fn regen_keys(context: &Context) -> CallResult {
    // Remove only these files: in an orchestration, the directory is the master's.
    for name in ["minion.pem", "minion.pub", "minion_master.pub"] {
        let path = context.config().pki_dir.join(name);
        match user_files::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(CallError::Execution(format!("removing {} failed: {error}", path.display())));
            }
            _ => {}
        }
    }
    Ok(Value::Nil)
}

fn signal_all(context: &Context, sig: Signal) -> CallResult {
    other_jobs(context).into_iter().map(|job| signal(context, &job.jid.into(), sig as i32)).collect()
}

fn other_jobs(context: &Context) -> Vec<Running> {
    let mut jobs = jobs::running(&context.minion);
    jobs.retain(|job| job.jid != context.job.jid);
    jobs
}

fn find(context: &Context, jid: &Value) -> Option<Arc<Job>> {
    context.minion.jobs.lock().get(&jid.to_string()).cloned()
}

/// Sends a signal to a job, whether it runs a command or a function. One that waits for a thread does not begin.
fn signal(context: &Context, jid: &Value, sig: i32) -> Result<Value, CallError> {
    let signal = Signal::try_from(sig).map_err(|_| CallError::Execution(format!("unknown signal {sig}")))?;
    let Some(job) = find(context, jid) else { return Ok("".into()) };
    let groups = job.children.signal(signal);
    if matches!(signal, Signal::SIGTERM | Signal::SIGKILL | Signal::SIGINT | Signal::SIGQUIT) {
        job.cancel.cancel();
    }
    tracing::info!(jid = job.jid, %signal, groups, "sending a signal to a job");
    let pid = if job.is_held.load(Ordering::Relaxed) { 0 } else { job.pid };
    Ok(format!("Signal {sig} sent to job {} at pid {pid}", job.jid).into())
}

/// Refused: it upgrades Salt by esky. `brine.upgrade` upgrades Brine.
///
/// CLI Example:
///
///     salt '*' saltutil.update
#[function]
pub fn update(
    _context: &Context,
    /// Version that Salt would be upgraded to.
    version: Option<String>,
) -> CallResult {
    _ = version;
    Err(CallError::execution(
        "saltutil.update is not supported, as it upgrades Salt by esky: brine.upgrade upgrades the program of a minion, and \
         the runner brine.upgrade those of a fleet",
    ))
}

#[cfg(test)]
mod tests;
