//! Calls of Python functions: starts a process when one is needed, and answers the requests of running functions to
//! Brine.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use brine_function::{Args, CallError, CallResult};
use brine_value::{Map, Value, map};
use parking_lot::Mutex;

use crate::leases::Lease;
use crate::process::{Frames, Process};
use crate::running::Running;
use crate::{Files, PythonError, Settings};

/// The interval at which a waiting call checks whether its job was cancelled.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The time that a cancelled function has to end. After that, its process is retired.
const GRACE_PERIOD: Duration = Duration::from_secs(3);
/// The maximum depth of nested calls: Python calls Brine, which calls Python.
const MAX_NESTED: u32 = 16;

thread_local! {
    static NESTED: Cell<u32> = const { Cell::new(0) };
}

/// The services that Brine provides to a running function.
pub trait Services {
    /// Calls a function of Brine of this kind: `modules`, `states` or `utils`.
    fn call(&self, kind: &str, function: &str, args: Args) -> CallResult;
    /// Whether the job of the function was cancelled.
    fn is_cancelled(&self) -> bool;
    /// Sets the retcode of the call: the function has set `__context__["retcode"]`.
    fn set_retcode(&self, _retcode: i64) {}
}

/// The data that a process receives before its first call.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// The files of each kind.
    pub files: Files,
    /// The full names of Brine's functions, by kind.
    pub functions: BTreeMap<&'static str, Vec<String>>,
    /// Whether functions that Brine lacks are taken from the package `salt` (`python_fallback`).
    pub fallback: bool,
    /// The socket on which the daemon publishes its events.
    pub events: PathBuf,
}

/// One call.
#[derive(Debug, Clone, Default)]
pub struct Call<'a> {
    /// The kind of the function: `modules`, `states`, `grains`, `py` or `describe`.
    pub kind: &'a str,
    /// The full name of the function.
    pub function: &'a str,
    /// The arguments of the function.
    pub args: Args,
    /// The mappings that the function sees as `__opts__`, `__grains__` and `__pillar__`, by these names without
    /// underscores.
    pub data: Vec<(&'static str, Arc<Map>)>,
    /// The time at which the call is cancelled.
    pub deadline: Option<Instant>,
}

/// A Python interpreter, whose process is started at the first call.
pub struct Python {
    settings: Settings,
    running: Mutex<Option<Arc<Running>>>,
    next_call: AtomicU64,
}

impl Python {
    /// Creates an interpreter without a process.
    pub fn new(settings: Settings) -> Self {
        Python { settings, running: Mutex::default(), next_call: AtomicU64::new(1) }
    }

    /// Retires the process: the next call starts a new one, which loads all files again. Running calls end in the old
    /// process.
    pub fn restart(&self) {
        if let Some(running) = self.running.lock().take() {
            running.process.retire();
        }
    }

    /// Whether a process that accepts calls is running.
    pub fn is_running(&self) -> bool {
        self.running.lock().as_ref().is_some_and(|running| running.process.is_open())
    }

    /// Calls a function and returns its result. Calls `setup` only if a process must be started.
    ///
    /// # Errors
    ///
    /// If Python cannot be started, the function raises an exception, the process ends, or the call is cancelled.
    pub fn call(&self, call: Call, setup: impl Fn() -> Setup, services: &dyn Services) -> Result<Value, PythonError> {
        self.call_leasing(call, setup, services).map(|(value, _)| value)
    }

    /// As [`Python::call`]. Also returns a lease on the process, if the result refers to functions in it.
    ///
    /// # Errors
    ///
    /// Those of [`Python::call`].
    pub fn call_leasing(
        &self,
        call: Call,
        setup: impl Fn() -> Setup,
        services: &dyn Services,
    ) -> Result<(Value, Option<Lease>), PythonError> {
        nested(|| {
            let id = self.next_call.fetch_add(1, Ordering::Relaxed);
            let (sender, frames) = channel();
            let running = self.current(id, sender, setup)?;
            let value = self.run(&running, (id, &frames), call, services);
            // While the call is registered, the process is not idle.
            let lease = value.as_ref().ok().and_then(|value| Lease::of(&running, value));
            running.process.remove(id);
            Ok((value?, lease))
        })
    }

    /// Calls a function in the process of a lease.
    ///
    /// # Errors
    ///
    /// Those of [`Python::call`]; also if the process has ended.
    pub fn call_leased(&self, lease: &Lease, call: Call, services: &dyn Services) -> Result<Value, PythonError> {
        nested(|| {
            let id = self.next_call.fetch_add(1, Ordering::Relaxed);
            let (sender, frames) = channel();
            let running = lease.running();
            if !running.process.register_leased(id, sender)? {
                return Err(PythonError::Ended("before it".into()));
            }
            let value = self.run(running, (id, &frames), call, services);
            running.process.remove(id);
            value
        })
    }

    /// Registers a call in the running process, or in a new one.
    fn current(&self, id: u64, frames: Frames, setup: impl Fn() -> Setup) -> Result<Arc<Running>, PythonError> {
        let mut current = self.running.lock();
        if let Some(running) = &*current
            && running.process.register(id, frames.clone())?
        {
            return Ok(Arc::clone(running));
        }
        let process = Process::start(&self.settings)?;
        process.register(id, frames)?;
        process.send(&setup_frame(setup()))?;
        let running = Arc::new(Running::new(process));
        *current = Some(Arc::clone(&running));
        Ok(running)
    }

    /// Sends a registered call and waits for its result.
    fn run(
        &self,
        running: &Running,
        (id, frames): (u64, &Receiver<Result<Map, String>>),
        call: Call,
        services: &dyn Services,
    ) -> Result<Value, PythonError> {
        let mut frame = map! {
            "op" => "call", "id" => id, "kind" => call.kind, "fun" => call.function,
            "args" => call.args.positional, "kwargs" => call.args.keyword,
        };
        let process = &running.process;
        // Locked until the call is sent, so that concurrent calls do not evict the data that this one refers to.
        let mut sent = running.sent.lock();
        let mut numbers = Map::new();
        for (name, data) in &call.data {
            numbers.insert((*name).into(), sent.share(process, data)?.into());
        }
        frame.insert("with".into(), numbers.into());
        process.send(&frame)?;
        drop(sent);
        self.wait(id, process, frames, call.deadline, services)
    }

    /// Waits for the result of a call, and answers the requests of its function.
    fn wait(
        &self,
        id: u64,
        process: &Arc<Process>,
        frames: &Receiver<Result<Map, String>>,
        mut deadline: Option<Instant>,
        services: &dyn Services,
    ) -> Result<Value, PythonError> {
        let mut cancelled = None;
        loop {
            // Checked before each frame, so that a function that sends requests continuously is cancelled, too.
            let is_over = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            match cancelled {
                Some(reason) if is_over => {
                    self.retire(process);
                    return Err(PythonError::Cancelled(reason));
                }
                None if is_over || services.is_cancelled() => {
                    cancelled = Some(if is_over { "its deadline has passed" } else { "its job was ended" });
                    deadline = Some(Instant::now() + GRACE_PERIOD);
                    process.send(&map! {"op" => "cancel", "id" => id})?;
                }
                Some(_) | None => {}
            }
            let frame = match frames.recv_timeout(POLL_INTERVAL) {
                Ok(Ok(frame)) => frame,
                Ok(Err(reason)) => return Err(PythonError::Ended(reason)),
                Err(RecvTimeoutError::Disconnected) => return Err(PythonError::Ended("without a status".into())),
                Err(RecvTimeoutError::Timeout) => continue,
            };
            let field = |name: &str| frame.get(name).map(ToString::to_string).unwrap_or_default();
            match (field("op").as_str(), cancelled) {
                ("ask", _) => process.send(&answer(&frame, services))?,
                (_, Some(reason)) => return Err(PythonError::Cancelled(reason)),
                ("result", None) => {
                    if let Some(retcode) = frame.get("retcode").and_then(Value::as_i64).filter(|retcode| *retcode != 0)
                    {
                        services.set_retcode(retcode);
                    }
                    return Ok(frame.get("value").cloned().unwrap_or_default());
                }
                _ => {
                    tracing::debug!(class = field("class"), "{}", field("traceback"));
                    return Err(PythonError::Raised { class: field("class"), message: field("message") });
                }
            }
        }
    }

    /// Retires a process in which a function hangs.
    fn retire(&self, process: &Arc<Process>) {
        process.retire();
        let mut running = self.running.lock();
        if running.as_ref().is_some_and(|running| Arc::ptr_eq(&running.process, process)) {
            *running = None;
        }
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        self.restart();
    }
}

/// Runs a call, unless too many calls are nested.
fn nested<R>(run: impl FnOnce() -> Result<R, PythonError>) -> Result<R, PythonError> {
    let nested = NESTED.get();
    if nested >= MAX_NESTED {
        return Err(PythonError::Limit(format!("{MAX_NESTED} calls of Python are nested")));
    }
    NESTED.set(nested + 1);
    let result = run();
    NESTED.set(nested);
    result
}

fn setup_frame(setup: Setup) -> Map {
    let path = |path: &PathBuf| Value::from(path.to_string_lossy().into_owned());
    let files: Map =
        setup.files.0.iter().map(|(kind, paths)| ((*kind).into(), paths.iter().map(path).collect::<Value>())).collect();
    let functions: Map = setup
        .functions
        .into_iter()
        .map(|(kind, names)| (kind.into(), names.into_iter().map(Value::from).collect::<Value>()))
        .collect();
    let events = path(&setup.events);
    map! {"op" => "setup", "files" => files, "functions" => functions, "fallback" => setup.fallback, "events" => events}
}

/// Calls the function of Brine that a frame requests, and returns the reply.
fn answer(frame: &Map, services: &dyn Services) -> Map {
    let text = |name: &str| frame.get(name).map(ToString::to_string).unwrap_or_default();
    let args = Args {
        positional: frame.get("args").and_then(Value::as_list).unwrap_or_default().to_vec(),
        keyword: frame.get("kwargs").and_then(Value::as_map).cloned().unwrap_or_default(),
    };
    let mut answer = map! {
        "op" => "answer",
        "id" => frame.get("id").cloned().unwrap_or_default(),
        "seq" => frame.get("seq").cloned().unwrap_or_default(),
    };
    match services.call(&text("kind"), &text("fun"), args) {
        Ok(value) => {
            answer.insert("value".into(), value);
        }
        Err(error) => {
            let class = match &error {
                CallError::Arguments { .. } | CallError::Invocation { .. } => "SaltInvocationError",
                CallError::NotAvailable(_) => "CommandNotFoundError",
                CallError::Execution(_) | CallError::Exception(_) => "CommandExecutionError",
            };
            answer.insert("class".into(), class.into());
            answer.insert("error".into(), error.message().into());
        }
    }
    answer
}
