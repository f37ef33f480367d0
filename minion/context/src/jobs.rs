//! Function calls in a job, and the running jobs of this host.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use brine_event::stamp;
use brine_function::{Args, CallError, Function};
use brine_system::files;
use brine_value::{FromValue, Map, Value, list, map, msgpack};

use crate::{Context, Job, MasterEvent, Minion, executors, suggest};

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The result of the function, or the error message.
    pub value: Value,
    /// 0 for success.
    pub retcode: i64,
    /// Whether the function completed.
    pub success: bool,
    /// The outputter hint of the function.
    pub out: Option<&'static str>,
}

impl Outcome {
    /// Returns the `success` of a return: as in Salt, a job with another retcode than 0 has failed, also one whose function
    /// completed.
    pub fn is_success(&self) -> bool {
        self.success && self.retcode == 0
    }
}

/// Calls a function in a job.
pub fn call(context: &Context, fun: &str, args: Args) -> Outcome {
    let out = context.minion.functions.get(fun).and_then(|function| function.out);
    context.set_retcode(0);
    let signature = || context.minion.functions.get(fun).map(Function::signature).unwrap_or_default();
    match executors::call(context, fun, args) {
        Ok(value) => {
            let set = context.job.retcode.load(Ordering::Relaxed);
            let retcode = if set == 0 && reports_failure(&value) { 1 } else { set };
            Outcome { value, retcode, success: true, out }
        }
        Err(error) => {
            if let (CallError::Exception(_), true) = (&error, context.minion.upstream.has_master())
                && let Err(error) = context.minion.upstream.fire_master(exception_event())
            {
                tracing::warn!(jid = context.job.jid, %error, "publishing the event of an exception failed");
            }
            let text = match &error {
                CallError::Arguments { .. } => {
                    format!("{error}\n\nUsage: {}\nsys.doc {fun} returns the documentation.", signature())
                }
                CallError::NotAvailable(name) => suggest::not_available(&context.minion, name),
                _ => error.to_string(),
            };
            let text = context.minion.mask.secrets(fun, &context.job.arg).scrub(&text);
            Outcome { value: text.into(), retcode: 1, success: false, out: Some("nested") }
        }
    }
}

/// Whether the job or the configuration names executors, which may accept functions that do not exist.
pub fn has_executors(context: &Context) -> bool {
    executors::are_configured(context)
}

/// Whether a mapping reports a failure by a false, null or empty `result` or `success`.
fn reports_failure(value: &Value) -> bool {
    let fails = |key| value.as_map().and_then(|map| map.get(key)).is_some_and(|value| !value.is_truthy());
    fails("result") || fails("success")
}

/// Returns the event about an exception of a function.
pub fn exception_event() -> MasterEvent {
    const MESSAGE: &str = "The minion function caused an exception";
    MasterEvent::new("_salt_error", map! {"message" => MESSAGE, "args" => list![MESSAGE], "_stamp" => stamp()})
}

/// The fields of Salt's publishes and of its scheduled jobs. `id` is the minion that has published the job (`peer`), as
/// signing policies check it.
const PUBLISHED: [&str; 17] = [
    "fun",
    "jid",
    "pid",
    "tgt",
    "tgt_type",
    "user",
    "ret",
    "arg",
    "id",
    "metadata",
    "schedule",
    "fun_args",
    "ret_config",
    "ret_kwargs",
    "module_executors",
    "executor_opts",
    "master_id",
];

/// Adds the fields of the publish, as `__pub_*`, for functions that accept every keyword.
pub fn add_publish_keywords(context: &Context, fun: &str, args: &mut Args) {
    if !context.minion.functions.get(fun).is_some_and(Function::takes_keywords) {
        return;
    }
    if context.job.load.contains_key("tgt_type") {
        // Brine's minions have no resources: a job always targets the minion itself.
        let none = Value::List(Vec::new());
        args.keyword.insert("__pub_minion_is_target".into(), true.into());
        args.keyword.insert("__pub_pure_resource_target".into(), false.into());
        args.keyword.insert("__pub_resource_targets".into(), none);
    }
    for name in PUBLISHED {
        if let Some(value) = context.job.load.get(name) {
            args.keyword.insert(format!("__pub_{name}").into(), value.clone());
        }
    }
}

/// The field of a proc file with the job's master, as `host:port`.
pub const MASTER: &str = "master";

/// The file below `proc/` of a running job, from which a `salt-call` reads the jobs of the daemon.
pub struct ProcFile(Option<PathBuf>);

impl ProcFile {
    /// Writes the file; it is removed on drop.
    pub fn write(minion: &Minion, job: &Job) -> Self {
        let path = proc_dir(minion).join(&job.jid);
        let mut fields = describe(minion, job);
        // After a crash the return is sent to the master that has published the job.
        let master = minion.config.masters().into_iter().next();
        fields.insert(MASTER.into(), master.map(|(host, port)| format!("{host}:{port}")).into());
        let packed = msgpack::pack_map(&fields);
        // Not flushed: it is meaningless after a power failure.
        let written =
            files::create_private_dir(proc_dir(minion)).and_then(|()| files::write_soon(&path, &packed, 0o600));
        match written {
            Ok(()) => ProcFile(Some(path)),
            Err(error) => {
                tracing::warn!(jid = job.jid, %error, "writing the proc file of a job failed");
                ProcFile(None)
            }
        }
    }
}

impl Drop for ProcFile {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // It may have been cleaned up already.
            _ = std::fs::remove_file(path);
        }
    }
}

/// A running job of this host, in this or another process.
#[derive(Debug, Clone, PartialEq)]
pub struct Running {
    /// The job id.
    pub jid: String,
    /// The function.
    pub fun: String,
    /// The process.
    pub pid: u32,
    /// The fields of `saltutil.running`.
    pub fields: Map,
}

/// Returns the jobs of this process that wait for a thread (`process_count_max`), with the fields that Salt adds.
pub fn held(minion: &Minion) -> Vec<Running> {
    let jobs = minion.jobs.lock();
    let held = jobs.values().filter(|job| job.is_held.load(Ordering::Relaxed)).map(|job| {
        let mut fields = describe(minion, job);
        fields.extend(map! {"pid" => 0, "queued" => true, "queue_type" => "job_queue"});
        Running { jid: job.jid.clone(), fun: job.fun.clone(), pid: 0, fields }
    });
    held.collect()
}

/// Returns all running jobs of this host: those of this process, and those of other `salt-call` and minion processes.
pub fn running(minion: &Minion) -> Vec<Running> {
    let of = |fields: Map| {
        let text = |name: &str| fields.get(name).map(ToString::to_string);
        let pid = fields.get("pid").and_then(u32::from_value)?;
        Some(Running { jid: text("jid")?, fun: text("fun")?, pid, fields })
    };
    let has_begun = |job: &&Arc<Job>| !job.is_held.load(Ordering::Relaxed);
    let own =
        minion.jobs.lock().values().filter(has_begun).filter_map(|job| of(describe(minion, job))).collect::<Vec<_>>();
    let files = std::fs::read_dir(proc_dir(minion)).into_iter().flatten().flatten();
    let beside = files.filter_map(|file| {
        let mut fields = msgpack::unpack_map(&std::fs::read(file.path()).ok()?).ok()?;
        fields.shift_remove(MASTER);
        let job = of(fields).filter(|job| job.pid != std::process::id())?;
        if has_ended(job.pid) {
            // A killed process leaves its file.
            _ = std::fs::remove_file(file.path());
            return None;
        }
        Some(job)
    });
    own.into_iter().chain(beside).collect()
}

/// Returns the published jobs that a killed minion was running, and removes their files.
pub fn left_behind(minion: &Minion) -> Vec<Map> {
    let files = std::fs::read_dir(proc_dir(minion)).into_iter().flatten().flatten();
    let left = files.filter_map(|file| {
        let fields = std::fs::read(file.path()).ok().and_then(|packed| msgpack::unpack_map(&packed).ok());
        let pid = fields.as_ref().and_then(|fields| fields.get("pid").and_then(u32::from_value));
        // The files of a `salt-call` stay while it runs.
        if pid.is_some_and(|pid| pid != std::process::id() && !has_ended(pid)) {
            return None;
        }
        _ = std::fs::remove_file(file.path());
        fields
    });
    // A master waits only for jobs with a target.
    left.filter(|fields| fields.get("tgt").is_some_and(|tgt| tgt.is_truthy() && tgt.as_str() != Some("salt-call")))
        .collect()
}

/// Whether jobs of this process run, or have ended and their returns are not queued yet.
pub fn are_under_way(minion: &Minion) -> bool {
    if !minion.jobs.lock().is_empty() {
        return true;
    }
    let files = std::fs::read_dir(proc_dir(minion)).into_iter().flatten().flatten();
    let pid = |path: PathBuf| u32::from_value(msgpack::unpack_map(&std::fs::read(path).ok()?).ok()?.get("pid")?);
    files.filter_map(|file| pid(file.path())).any(|pid| pid == std::process::id())
}

/// Whether a process has ended, or its PID belongs to another program by now.
fn has_ended(pid: u32) -> bool {
    let name = |pid: u32| std::fs::read(format!("/proc/{pid}/comm")).ok();
    name(pid).is_none_or(|other| Some(other) != name(std::process::id()))
}

/// Returns the directory of the files of running jobs.
pub fn proc_dir(minion: &Minion) -> PathBuf {
    minion.config.cachedir.join("proc")
}

/// Returns the path of a cached return.
pub fn cached_return(minion: &Minion, jid: &str) -> PathBuf {
    minion.config.cachedir.join("minion_jobs").join(jid).join("return")
}

/// Returns the fields of a running job for `saltutil.running`, with masked arguments.
pub fn describe(minion: &Minion, job: &Job) -> Map {
    let field = |name: &str| job.load.get(name).cloned().unwrap_or_default();
    let mut fields = map! {
        "fun" => &job.fun,
        "arg" => job.arg.clone(),
        "jid" => job.jid.as_str(),
        "pid" => job.pid,
        "tgt" => field("tgt"),
        "tgt_type" => field("tgt_type"),
        "ret" => field("ret"),
        "user" => field("user"),
    };
    fields.extend(minion.mask.record(&fields));
    fields
}
