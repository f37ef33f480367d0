//! Jobs on their way through a minion: called, watched, returned.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use brine_event::stamp;
use brine_function::{Args, CallError};
use brine_runtime::executors::Executor;
use brine_system::files;
use brine_value::{FromValue, Map, Value, list, map, msgpack};
use tokio_util::sync::CancellationToken;

use crate::context::{Context, Job, MasterEvent, Minion};

/// The number of returns that are cached (`saltutil.find_cached_job`).
const KEPT_RETURNS: usize = 1000;
/// How often older ones are removed.
const TIDY: Duration = Duration::from_secs(600);

/// What came of one call.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What the function returned, or why it did not, in words.
    pub value: Value,
    /// 0 if all went well.
    pub retcode: i64,
    /// Whether the function ran to its end.
    pub success: bool,
    /// The outputter that the function asks for.
    pub out: Option<&'static str>,
}

/// Calls a function in a job.
pub fn call(context: &Context, fun: &str, args: Args) -> Outcome {
    let out = context.minion.functions.get(fun).and_then(|function| function.out);
    context.set_retcode(0);
    let doc = || context.minion.functions.get(fun).map(brine_function::Function::docstring).unwrap_or_default();
    match context.call(fun, args) {
        Ok(value) => {
            let set = context.job.retcode.load(Ordering::Relaxed);
            let retcode = if set == 0 && says_failed(&value) { 1 } else { set };
            Outcome { value, retcode, success: true, out }
        }
        Err(error) => {
            if let (CallError::Exception(_), true) = (&error, context.minion.upstream.has_master())
                && let Err(error) = context.minion.upstream.fire_master(exception_event())
            {
                tracing::warn!(jid = context.job.jid, error, "the event of an exception could not be fired");
            }
            let text = match &error {
                CallError::Arguments { .. } => format!("{error}\n\n{}", doc()),
                CallError::NotAvailable(name) => crate::suggest::not_available(&context.minion, name),
                _ => error.to_string(),
            };
            Outcome { value: text.into(), retcode: 1, success: false, out: Some("nested") }
        }
    }
}

/// A mapping that says itself that it is no success.
fn says_failed(value: &Value) -> bool {
    let says = |key| value.get(key).is_some_and(|word| *word == Value::Bool(false));
    says("result") || says("success")
}

/// Runs a published job to its end on this thread: the load to return to the master.
pub fn run(minion: &Arc<Minion>, job: &Arc<Job>) -> Map {
    minion.jobs.lock().insert(job.jid.clone(), Arc::clone(job));
    let context = Context::new(Arc::clone(minion), Arc::clone(job));
    if job.load.get("start_event").is_some_and(Value::is_truthy) {
        tell_start(&context);
    }
    let mut load = if let Some(Value::List(functions)) = job.load.get("fun") {
        run_several(&context, functions)
    } else {
        let mut args = Args::from_wire(&job.arg);
        add_publish_keywords(&context, &job.fun, &mut args);
        let outcome = call(&context, &job.fun, args);
        let mut load = map! {
            "fun" => &job.fun,
            "fun_args" => job.arg.clone(),
            "return" => outcome.value,
            "retcode" => outcome.retcode,
            "success" => outcome.success,
        };
        if let Some(out) = outcome.out {
            load.insert("out".into(), out.into());
        }
        load
    };
    load.insert("cmd".into(), "_return".into());
    load.insert("jid".into(), job.jid.as_str().into());
    load.insert("id".into(), minion.id.as_str().into());
    for name in ["user", "metadata"] {
        if let Some(value) = job.load.get(name).filter(|value| value.is_truthy()) {
            load.insert(name.into(), value.clone());
        }
    }
    minion.jobs.lock().shift_remove(&job.jid);
    let retcode = load.get("retcode").map(ToString::to_string).unwrap_or_default();
    tracing::info!(jid = job.jid, fun = job.fun, retcode, "job finished");
    load
}

/// Several functions, one argument list each: their returns by name.
fn run_several(context: &Context, functions: &[Value]) -> Map {
    let (mut values, mut retcodes, mut successes) = (Map::new(), Map::new(), Map::new());
    for (i, fun) in functions.iter().enumerate() {
        let name = fun.to_string();
        let list = context.job.arg.get(i).and_then(Value::as_list).unwrap_or_default();
        let outcome = call(context, &name, Args::from_wire(list));
        values.insert(fun.clone(), outcome.value);
        retcodes.insert(fun.clone(), outcome.retcode.into());
        successes.insert(fun.clone(), outcome.success.into());
    }
    map! {"fun" => functions.to_vec(), "fun_args" => context.job.arg.clone(), "return" => values, "retcode" => retcodes, "success" => successes}
}

/// Tells the master that a job begins, if it was published with `start_event`.
fn tell_start(context: &Context) {
    let (minion, job) = (&context.minion, &context.job);
    let names = ["tgt", "tgt_type", "user"];
    let mut data = map! {"fun" => &job.fun, "id" => &minion.id, "jid" => &job.jid};
    data.extend(names.iter().filter_map(|name| Some(((*name).into(), job.load.get(*name)?.clone()))));
    let event = MasterEvent::new(&format!("salt/job/{}/start/{}", job.jid, minion.id), data);
    if let Err(error) = minion.upstream.fire_master(event) {
        tracing::warn!(jid = job.jid, error, "the event of a job's start could not be fired");
    }
}

/// What tells the master that a function ended in a way that nobody has foreseen.
pub(crate) fn exception_event() -> MasterEvent {
    const MESSAGE: &str = "The minion function caused an exception";
    MasterEvent::new("_salt_error", map! {"message" => MESSAGE, "args" => list![MESSAGE], "_stamp" => stamp()})
}

/// Functions that take every keyword see what they were published with, as `__pub_*`.
pub fn add_publish_keywords(context: &Context, fun: &str, args: &mut Args) {
    use brine_function::ParamKind;
    let takes = context
        .minion
        .functions
        .get(fun)
        .is_some_and(|function| function.params.iter().any(|param| matches!(param.kind, ParamKind::Keywords)));
    if !takes {
        return;
    }
    if context.job.load.contains_key("tgt_type") {
        // Brine's minions have no resources: a job is always for the minion itself.
        let none = Value::List(Vec::new());
        args.keyword.insert("__pub_minion_is_target".into(), true.into());
        args.keyword.insert("__pub_pure_resource_target".into(), false.into());
        args.keyword.insert("__pub_resource_targets".into(), none);
    }
    for name in ["fun", "jid", "pid", "tgt", "tgt_type", "user", "ret", "arg"] {
        if let Some(value) = context.job.load.get(name) {
            args.keyword.insert(format!("__pub_{name}").into(), value.clone());
        }
    }
}

/// The file below `proc/` that stands for a job as long as it runs: a `salt-call` beside the minion sees it there.
pub struct ProcFile(Option<PathBuf>);

impl ProcFile {
    /// Writes it; it is removed when this is dropped.
    pub fn write(minion: &Minion, job: &Job) -> Self {
        let path = proc_dir(minion).join(&job.jid);
        let packed = msgpack::pack_map(&describe(job));
        // It means nothing once the power has failed.
        let written =
            files::create_private_dir(proc_dir(minion)).and_then(|()| files::write_soon(&path, &packed, 0o600));
        match written {
            Ok(()) => ProcFile(Some(path)),
            Err(error) => {
                tracing::warn!(jid = job.jid, %error, "a job has no proc file");
                ProcFile(None)
            }
        }
    }
}

impl Drop for ProcFile {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // Who cleaned the folder has done it already.
            _ = std::fs::remove_file(path);
        }
    }
}

/// A job that runs on this host, in this process or in another one.
#[derive(Debug, Clone, PartialEq)]
pub struct Running {
    /// The job id.
    pub jid: String,
    /// The function.
    pub fun: String,
    /// The process.
    pub pid: u32,
    /// All that `saltutil.running` tells.
    pub told: Map,
}

/// All jobs that run on this host: those of this process, and those of a `salt-call` or a minion beside it.
pub fn running(minion: &Minion) -> Vec<Running> {
    let of = |told: Map| {
        let text = |name: &str| told.get(name).map(ToString::to_string);
        let pid = told.get("pid").and_then(u32::from_value)?;
        Some(Running { jid: text("jid")?, fun: text("fun")?, pid, told })
    };
    let own = minion.jobs.lock().values().filter_map(|job| of(describe(job))).collect::<Vec<_>>();
    let files = std::fs::read_dir(proc_dir(minion)).into_iter().flatten().flatten();
    let beside = files.filter_map(|file| {
        let told = msgpack::unpack_map(&std::fs::read(file.path()).ok()?).ok();
        let job = told.and_then(of).filter(|job| job.pid != std::process::id())?;
        if has_ended(job.pid) {
            // What was killed has left its file.
            _ = std::fs::remove_file(file.path());
            return None;
        }
        Some(job)
    });
    own.into_iter().chain(beside).collect()
}

/// Takes the published jobs that a killed minion was running: their files are removed.
pub(crate) fn left_behind(minion: &Minion) -> Vec<Map> {
    let files = std::fs::read_dir(proc_dir(minion)).into_iter().flatten().flatten();
    let left = files.filter_map(|file| {
        let told = std::fs::read(file.path()).ok().and_then(|packed| msgpack::unpack_map(&packed).ok());
        let pid = told.as_ref().and_then(|told| told.get("pid").and_then(u32::from_value));
        // Those of a `salt-call` stay while it runs.
        if pid.is_some_and(|pid| pid != std::process::id() && !has_ended(pid)) {
            return None;
        }
        _ = std::fs::remove_file(file.path());
        told
    });
    // A master waits for those that have a target.
    left.filter(|told| told.get("tgt").is_some_and(|tgt| tgt.is_truthy() && tgt.as_str() != Some("salt-call")))
        .collect()
}

/// Whether a process is gone, or its number is another program's by now.
fn has_ended(pid: u32) -> bool {
    let name = |pid: u32| std::fs::read(format!("/proc/{pid}/comm")).ok();
    name(pid).is_none_or(|other| Some(other) != name(std::process::id()))
}

/// Where running jobs have their files.
pub fn proc_dir(minion: &Minion) -> PathBuf {
    minion.config.cachedir.join("proc")
}

/// Where the return of a job is kept for a while.
pub fn cached_return(minion: &Minion, jid: &str) -> PathBuf {
    minion.config.cachedir.join("minion_jobs").join(jid).join("return")
}

/// Keeps the return of a job: also for the time until the master has it.
pub fn keep_return(minion: &Minion, load: &Map) {
    let Some(jid) = load.get("jid").and_then(Value::as_str) else { return };
    let path = cached_return(minion, jid);
    let folder = path.parent().unwrap_or(&path);
    let kept =
        files::create_private_dir(folder).and_then(|()| files::write_atomic(&path, &msgpack::pack_map(load), 0o600));
    if let Err(error) = kept {
        tracing::warn!(jid, %error, "a return could not be kept");
    }
}

/// Removes the oldest cached returns from time to time, until `shutdown`.
pub(crate) async fn tidy(minion: Arc<Minion>, disk: Executor, shutdown: CancellationToken) {
    loop {
        let folder = minion.config.cachedir.join("minion_jobs");
        if let Err(error) = disk.run(move |_| prune(&folder, KEPT_RETURNS)).await {
            tracing::error!(%error, "removing old cached returns failed");
        }
        tokio::select! {
            () = tokio::time::sleep(TIDY) => {}
            () = shutdown.cancelled() => return,
        }
    }
}

/// Removes all but the newest of these directories. Their names are job ids, which rise with time.
fn prune(folder: &Path, keep: usize) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let old = paths.len().saturating_sub(keep);
    for path in &paths[..old] {
        if let Err(error) = std::fs::remove_dir_all(path) {
            tracing::warn!(path = %path.display(), %error, "removing a cached return failed");
        }
    }
}

/// A running job, as `saltutil.running` tells it.
pub fn describe(job: &Job) -> Map {
    let field = |name: &str| job.load.get(name).cloned().unwrap_or_default();
    map! {
        "fun" => &job.fun,
        "arg" => job.arg.clone(),
        "jid" => job.jid.as_str(),
        "pid" => job.pid,
        "tgt" => field("tgt"),
        "tgt_type" => field("tgt_type"),
        "ret" => field("ret"),
        "user" => field("user"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_cached_returns_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        for jid in ["3", "1", "2"] {
            std::fs::create_dir(folder.path().join(jid)).unwrap();
        }
        prune(folder.path(), 2);
        let left = |jid: &str| folder.path().join(jid).exists();
        assert_eq!((left("1"), left("2"), left("3")), (false, true, true));
    }
}
