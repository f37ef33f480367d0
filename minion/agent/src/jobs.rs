//! Runs published jobs, and caches their returns.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use brine_context::jobs::{add_publish_keywords, cached_return};
use brine_context::{Context, Job, MasterEvent, Minion};
use brine_function::Args;
use brine_job::trim;
use brine_runtime::executors::Executor;
use brine_system::files;
use brine_value::levels::MAX_LEVELS;
use brine_value::{Map, Value, map, msgpack};
use tokio_util::sync::CancellationToken;

use crate::blackout;

/// The user of the run of `startup_states`.
pub const STARTUP_USER: &str = "startup_states";
/// The number of returns that are cached (`saltutil.find_cached_job`).
const MAX_CACHED_RETURNS: usize = 1000;
/// The interval at which older returns are removed.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(600);

/// Runs a published job on this thread. Returns the load for the master.
pub fn run(minion: &Arc<Minion>, job: &Arc<Job>) -> Map {
    run_completed(minion, job).0
}

/// Runs a job as [`run`], and also returns whether its function completed.
pub fn run_completed(minion: &Arc<Minion>, job: &Arc<Job>) -> (Map, bool) {
    minion.jobs.lock().insert(job.jid.clone(), Arc::clone(job));
    let was_held = job.is_held.swap(false, Ordering::Relaxed);
    let context = Context::new(Arc::clone(minion), Arc::clone(job));
    if job.load.get("start_event").is_some_and(Value::is_truthy) {
        publish_start(&context);
    }
    let mut has_completed = false;
    let mut load = if was_held && job.cancel.is_cancelled() {
        map! {
            "fun" => job.load.get("fun").cloned().unwrap_or_else(|| job.fun.as_str().into()),
            "fun_args" => job.arg.clone(),
            "return" => "ERROR: the job was ended before it began: it waited because of process_count_max",
            "retcode" => 1,
            "success" => false,
        }
    } else if let Some(Value::List(functions)) = job.load.get("fun") {
        run_several(&context, functions)
    } else {
        let mut args = Args::from_wire(&job.arg);
        add_publish_keywords(&context, &job.fun, &mut args);
        let outcome = blackout::call(&context, &job.fun, args);
        has_completed = outcome.success;
        let mut load = map! {
            "fun" => &job.fun,
            "fun_args" => job.arg.clone(),
            "success" => outcome.is_success(),
            "return" => outcome.value,
            "retcode" => outcome.retcode,
        };
        if let Some(out) = outcome.out {
            load.insert("out".into(), out.into());
        }
        load
    };
    load.insert("cmd".into(), "_return".into());
    load.insert("jid".into(), job.jid.as_str().into());
    load.insert("id".into(), minion.id.as_str().into());
    for name in ["user", "metadata", "master_id"] {
        if let Some(value) = job.load.get(name).filter(|value| value.is_truthy()) {
            load.insert(name.into(), value.clone());
        }
    }
    if job.load.get("user").and_then(Value::as_str) == Some(STARTUP_USER) {
        // No master has published the job: with these fields the return is recorded with it.
        let fields = ["arg", "tgt", "tgt_type"].into_iter();
        load.extend(fields.filter_map(|name| Some((name.into(), job.load.get(name)?.clone()))));
    }
    if trim::refuse_deep(&mut load) {
        tracing::warn!(
            jid = job.jid,
            fun = job.fun,
            "the return nests deeper than {MAX_LEVELS} levels of lists and mappings and is refused"
        );
    }
    // Masters, returners and files get the arguments masked.
    load.extend(minion.mask.record(&load));
    minion.jobs.lock().shift_remove(&job.jid);
    let retcode = load.get("retcode").map(ToString::to_string).unwrap_or_default();
    tracing::info!(jid = job.jid, fun = job.fun, retcode, "job finished");
    (load, has_completed)
}

/// Calls several functions with one argument list each. Returns their results by name.
fn run_several(context: &Context, functions: &[Value]) -> Map {
    let (mut values, mut retcodes, mut successes) = (Map::new(), Map::new(), Map::new());
    for (i, fun) in functions.iter().enumerate() {
        let name = fun.to_string();
        let list = context.job.arg.get(i).and_then(Value::as_list).unwrap_or_default();
        let mut args = Args::from_wire(list);
        add_publish_keywords(context, &name, &mut args);
        let outcome = blackout::call(context, &name, args);
        successes.insert(fun.clone(), outcome.is_success().into());
        retcodes.insert(fun.clone(), outcome.retcode.into());
        values.insert(fun.clone(), outcome.value);
    }
    map! {"fun" => functions.to_vec(), "fun_args" => context.job.arg.clone(), "return" => values, "retcode" => retcodes, "success" => successes}
}

/// Publishes the start of a job to the master, if it was published with `start_event`.
fn publish_start(context: &Context) {
    let (minion, job) = (&context.minion, &context.job);
    let names = ["tgt", "tgt_type", "user"];
    let mut data = map! {"fun" => &job.fun, "id" => &minion.id, "jid" => &job.jid};
    data.extend(names.iter().filter_map(|name| Some(((*name).into(), job.load.get(*name)?.clone()))));
    let event = MasterEvent::new(&format!("salt/job/{}/start/{}", job.jid, minion.id), data);
    if let Err(error) = minion.upstream.fire_master(event) {
        tracing::warn!(jid = job.jid, %error, "publishing the start event of a job failed");
    }
}

/// Caches the return of a job. The file is not flushed: the queue of returns keeps the return until the master has it.
pub fn keep_return(minion: &Minion, load: &Map) {
    let Some(jid) = load.get("jid").and_then(Value::as_str) else { return };
    let path = cached_return(minion, jid);
    let directory = path.parent().unwrap_or(&path);
    let result =
        files::create_private_dir(directory).and_then(|()| files::write_soon(&path, &msgpack::pack_map(load), 0o600));
    if let Err(error) = result {
        tracing::warn!(jid, %error, "caching a return failed");
    }
}

/// Removes the oldest cached returns at an interval, until `shutdown`.
pub(crate) async fn prune_cached_returns(minion: Arc<Minion>, disk: Executor, shutdown: CancellationToken) {
    loop {
        let directory = minion.config.cachedir.join("minion_jobs");
        if let Err(error) = disk.run(move |_| prune(&directory, MAX_CACHED_RETURNS)).await {
            tracing::error!(%error, "removing old cached returns failed");
        }
        tokio::select! {
            () = tokio::time::sleep(CLEANUP_INTERVAL) => {}
            () = shutdown.cancelled() => return,
        }
    }
}

/// Removes all but the newest of these directories. Their names are job ids, which increase with time.
fn prune(directory: &Path, keep: usize) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let old = paths.len().saturating_sub(keep);
    for path in &paths[..old] {
        if let Err(error) = std::fs::remove_dir_all(path) {
            tracing::warn!(path = %path.display(), %error, "removing a cached return failed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_cached_returns_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        for jid in ["3", "1", "2"] {
            std::fs::create_dir(directory.path().join(jid)).unwrap();
        }
        prune(directory.path(), 2);
        let left = |jid: &str| directory.path().join(jid).exists();
        assert_eq!((left("1"), left("2"), left("3")), (false, true, true));
    }
}
