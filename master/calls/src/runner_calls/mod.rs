//! Calls of runner and wheel functions. Each has a jid, an event at its start and one with its result. `call.rs`
//! represents a single call, `running.rs` the running ones; `services.rs` is what functions work with.

mod call;
pub mod custom;
pub mod orchestration;
mod reactor_handle;
mod runner_context;
mod running;
mod services;
mod template_functions;
mod wheel_context;
mod wheel_services;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use brine_event::{STAMP, stamp};
use brine_function::{Args, CallError, Registry};
use brine_ids::Jid;
use brine_job::trim::trim_deep;
use brine_master_custom::{CustomModules, Kind};
use brine_master_facts::pillars::MasterHost;
use brine_master_jobs::checkpoint::Checkpoint;
use brine_master_store::job_events::NOT_CACHED;
use brine_master_store::return_events::ReturnEvents;
use brine_reactor::{Cause, PriorDispatch};
use brine_runtime::executors::{Executor, ExecutorError, MayBlock, Pending};
use brine_value::levels::{self, OLD_LEVELS};
use brine_value::{Map, Value, map};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Notify;

pub use call::{Caller, REACTION, REACTOR};
use call::{NewCall, ORCHESTRATIONS};
pub use reactor_handle::ReactorHandle;
pub use runner_context::RunnerContext;
use running::Running;
pub use services::{MasterModules, Services};
use template_functions::template_host;
pub use wheel_context::{WheelContext, WheelHost};
use wheel_services::WheelServices;

/// Functions that return events of the bus, and whose results are left out of their events.
const EVENT_FUNCTIONS: &[&str] = &["event_bus.since", "event_bus.replay"];

/// Functions that local tools call for each page of the journal. Their calls publish no events: otherwise each page
/// would append two events to the journal that is being read.
const PAGE_FUNCTIONS: &[&str] = &["event_bus.since"];

/// Internal functions of the tools, which are not listed as jobs.
const UNLISTED_FUNCTIONS: &[&str] = &["doc.nearest", "doc.runner", "doc.wheel", "manage.targets"];

/// The prefix of functions that views of the fleet call again and again. Their calls are not listed as jobs, and their
/// results, which would fill the journal, are left out of their events.
const VIEW_FUNCTIONS: &str = "fleet.";

/// The prefix of functions that return data of the job cache. Their large results are not stored in it again.
const JOB_FUNCTIONS: &str = "jobs.";

/// The retcode that Salt uses for an unknown runner function.
const UNKNOWN_RUNNER: i64 = 254;

/// A running call.
pub struct Started {
    /// The job id.
    pub jid: Jid,
    /// The prefix of its events' tags.
    pub tag: String,
    outcome: Result<Pending<Map>, ExecutorError>,
}

impl Started {
    /// Waits for the end of the call. Returns the response to a client, as in Salt.
    pub async fn finish(self) -> Map {
        let result = match self.outcome {
            Ok(pending) => pending.result().await,
            Err(error) => Err(error),
        };
        let data = result.unwrap_or_else(|error| map! {"return" => error.to_string(), "success" => false});
        map! {"tag" => self.tag, "data" => data}
    }
}

/// Calls runner and wheel functions.
pub struct RunnerCalls {
    /// The runner functions.
    pub runners: Registry<RunnerContext>,
    /// The wheel functions.
    pub wheels: Registry<WheelContext>,
    /// The parts of the master.
    pub services: Arc<Services>,
    /// Custom runner and wheel modules, whose functions overlay both registries.
    pub custom: Arc<CustomModules>,
    returns: ReturnEvents,
    running: Running,
    /// Notified when an orchestration begins, so that it is stored in the cluster at once.
    pub orchestration_begun: Notify,
}

/// Returns the position of a parameter of a built-in function.
fn position<C>(registry: &Registry<C>, function: &str, name: &str) -> Option<usize> {
    let (module, of_module) = function.split_once('.')?;
    let function = registry.built_in().find(|function| function.module == module && function.name == of_module)?;
    function.params().iter().position(|param| param.name == name)
}

impl RunnerCalls {
    /// Creates the registries of these modules. `returns` converts results to events.
    pub fn new(
        services: Services,
        returns: ReturnEvents,
        custom: Arc<CustomModules>,
        modules: MasterModules,
    ) -> Arc<Self> {
        Arc::new_cyclic(|calls| RunnerCalls {
            runners: Registry::new(modules.runners).with_overlay(custom::runners(calls)),
            wheels: Registry::new(modules.wheels).with_overlay(custom::wheels(calls)),
            custom,
            services: Arc::new(services),
            returns,
            running: Running::default(),
            orchestration_begun: Notify::new(),
        })
    }

    /// Returns the running calls: `fun`, `fun_args`, `jid`, `user`, `pid` and `_stamp` of each, oldest first.
    pub fn running(&self) -> Vec<Map> {
        self.running.listed()
    }

    /// Returns at most `limit` of the running calls that are not nested in another call.
    pub fn running_on_their_own(&self, limit: usize) -> Vec<Map> {
        self.running.bodies(limit)
    }

    /// Whether a call is running in this process.
    pub fn is_running(&self, jid: &Jid) -> bool {
        self.running.has(jid)
    }

    /// Returns the call of a top-level orchestration, in the form that [`RunnerCalls::resume`] accepts, and the
    /// progress that it was resumed with.
    pub fn orchestration(&self, jid: &Jid) -> Option<(Map, Option<Arc<Checkpoint>>)> {
        self.running.orchestration(jid)
    }

    /// Ends a call of this process without an event, because another member of the cluster has taken it over.
    pub fn hand_over(&self, jid: &Jid) {
        self.running.hand_over(jid);
    }

    /// Resumes an orchestration of another process. Returns false if the call is invalid.
    pub fn resume(self: &Arc<Self>, jid: Jid, call: &Map, checkpoint: Checkpoint) -> bool {
        let text = |name: &str| call.get(name).and_then(Value::as_str);
        let (Some(function), Some(user)) = (text("fun"), text("user")) else { return false };
        if !function.starts_with(ORCHESTRATIONS) {
            return false;
        }
        let positional = call.get("arg").and_then(Value::as_list).unwrap_or_default().to_vec();
        let keyword = call.get("kwarg").and_then(Value::as_map).cloned().unwrap_or_default();
        let mut call = self.new_call(Kind::Runner, function, Args { positional, keyword }, user, jid);
        call.body.insert("user".into(), user.into());
        call.checkpoint = Some(Arc::new(checkpoint));
        drop(self.start_call(&self.services.executors.jobs, call, true));
        true
    }

    /// Whether a function exists. If it is not built in, custom modules are searched.
    pub fn has(&self, kind: Kind, function: &str) -> bool {
        let is_built_in = match kind {
            Kind::Runner => self.runners.has_built_in(function),
            Kind::Wheel => self.wheels.has_built_in(function),
        };
        is_built_in
            || may_block(|| match kind {
                Kind::Runner => self.runners.get(function).is_some(),
                Kind::Wheel => self.wheels.get(function).is_some(),
            })
    }

    /// Returns the function with the name most similar to an unknown one.
    pub fn nearest(&self, kind: Kind, function: &str) -> Option<String> {
        may_block(|| match kind {
            Kind::Runner => self.runners.nearest(function),
            Kind::Wheel => self.wheels.nearest(function),
        })
    }

    /// Returns an argument of a call by its name, also if it is given by position to a built-in function.
    pub fn argument<'a>(&self, kind: Kind, function: &str, args: &'a Args, name: &str) -> Option<&'a Value> {
        let position = || match kind {
            Kind::Runner => position(&self.runners, function, name),
            Kind::Wheel => position(&self.wheels, function, name),
        };
        args.keyword.get(name).or_else(|| args.positional.get(position()?))
    }

    /// Returns whether a module has runner or wheel functions.
    pub fn has_module(&self, module: &str) -> bool {
        may_block(|| self.runners.has_module(module) || self.wheels.has_module(module))
    }

    /// Returns the template host with the functions of the master.
    pub fn template_host(self: &Arc<Self>) -> MasterHost {
        let calls = Arc::clone(self);
        Arc::new(move |thread: &MayBlock| template_host(&calls, thread))
    }

    fn runner_context(self: &Arc<Self>, caller: Caller) -> RunnerContext {
        RunnerContext { master: Arc::clone(&self.services), calls: Arc::clone(self), caller }
    }

    /// Returns the context of a wheel function; its thread may block.
    pub fn wheel_context(self: &Arc<Self>, caller: Caller) -> WheelContext {
        let keys = Arc::clone(&self.services.storage.get(&caller.thread).keys);
        let attended = caller.user != REACTOR;
        WheelContext { keys, attended, host: Arc::new(WheelServices { calls: Arc::clone(self), caller }) }
    }

    /// Calls a function on this thread, without publishing events.
    pub fn call_function(
        self: &Arc<Self>,
        kind: Kind,
        function: &str,
        args: Args,
        caller: Caller,
    ) -> Result<Value, CallError> {
        match kind {
            Kind::Runner => self.runners.call(&self.runner_context(caller), function, args),
            Kind::Wheel => self.wheels.call(&self.wheel_context(caller), function, args),
        }
    }

    fn new_call(&self, kind: Kind, function: &str, args: Args, user: &str, jid: Jid) -> NewCall {
        let has_secret_result = match kind {
            Kind::Runner => self.runners.has_secret_result(function),
            Kind::Wheel => self.wheels.has_secret_result(function),
        };
        NewCall { has_secret_result, ..NewCall::new(&self.services.mask, kind, function, args, user, jid) }
    }

    /// Starts a call on an executor and publishes its `new` event.
    pub async fn start(self: &Arc<Self>, kind: Kind, function: &str, args: Args, user: &str, cause: &Map) -> Started {
        let call = self.new_call(kind, function, args, user, Jid::new());
        let call = self.publish_new(NewCall { cause: cause.clone(), ..call }, cause).await;
        self.start_call(&self.services.executors.jobs, call, true)
    }

    /// Starts a runner function that a minion calls, on an executor of its own: an orchestration may be waiting for that
    /// minion.
    pub async fn start_for_peer(self: &Arc<Self>, function: &str, args: Args, user: &str) -> Started {
        let call = self.new_call(Kind::Runner, function, args, user, Jid::new());
        let call = self.publish_new(call, &Map::new()).await;
        self.start_call(&self.services.executors.peers, call, true)
    }

    /// Starts a runner function that the REST API calls on its own behalf. It does not wait for the functions of others.
    pub async fn start_for_api(self: &Arc<Self>, function: &str, args: Args, user: &str) -> Started {
        let call = self.new_call(Kind::Runner, function, args, user, Jid::new());
        if PAGE_FUNCTIONS.contains(&function) {
            return self.start_call(&self.services.executors.disk, call, false);
        }
        let call = self.publish_new(call, &Map::new()).await;
        self.start_call(&self.services.executors.logins, call, true)
    }

    /// Starts a call of a client that has the master's key, and that may have chosen the jid. Reads of the journal
    /// publish no events.
    pub async fn start_for_tool(
        self: &Arc<Self>,
        kind: Kind,
        function: &str,
        args: Args,
        user: &str,
        jid: Option<Jid>,
    ) -> Started {
        let call = self.new_call(kind, function, args, user, jid.unwrap_or_default());
        let call = NewCall { has_master_key: true, ..call };
        if kind == Kind::Runner && PAGE_FUNCTIONS.contains(&function) {
            return self.start_call(&self.services.executors.jobs, call, false);
        }
        let call = self.publish_new(call, &Map::new()).await;
        self.start_call(&self.services.executors.jobs, call, true)
    }

    fn start_call(self: &Arc<Self>, executor: &Executor, call: NewCall, has_events: bool) -> Started {
        let (jid, tag, function, calls) = (call.jid.clone(), call.tag.clone(), call.function.clone(), Arc::clone(self));
        let outcome = executor.start(move |may_block| {
            let (mut body, is_elsewhere) = calls.call(&call, may_block);
            if has_events && !is_elsewhere {
                may_block.wait(calls.publish_return(&call, &body));
            }
            // The response to a client has a timestamp, like the event.
            body.insert(STAMP.into(), stamp().into());
            body
        });
        if let Err(error) = &outcome {
            tracing::error!(%jid, function, %error, "starting a call failed");
        }
        Started { jid, tag, outcome }
    }

    /// Makes a call nested in another one, such as an orchestration, on the same thread. Returns the jid and the
    /// response to a client, with the result as it is recorded: the results of states are recorded, too.
    pub fn call_within(self: &Arc<Self>, kind: Kind, function: &str, args: Args, caller: &Caller) -> (Jid, Map) {
        let call = self.new_call(kind, function, args, &caller.user, Jid::new());
        let call = NewCall { cause: caller.cause.clone(), is_nested: true, ..call };
        let call = caller.thread.wait(self.publish_new(call, &caller.cause));
        let (mut body, _) = self.call(&call, &caller.thread);
        caller.thread.wait(self.publish_return(&call, &body));
        if let Some(recorded) = body.get("return").and_then(|result| call.recorded_result(result)) {
            body.insert("return".into(), recorded);
        }
        body.insert(STAMP.into(), stamp().into());
        (call.jid, map! {"tag" => call.tag, "data" => body})
    }

    /// Makes a call for a reaction on this thread. Returns its result.
    pub async fn call_for_reaction(self: &Arc<Self>, kind: Kind, function: &str, args: Args, cause: &Cause) -> Map {
        // A call that is repeated after a restart keeps its jid.
        let jid = cause.prior.as_ref().map_or_else(Jid::new, |PriorDispatch { jid, .. }| jid.clone());
        let call = self.new_call(kind, function, args, REACTOR, jid);
        let call = self.publish_new(NewCall { cause: cause.short_fields(), ..call }, &cause.fields()).await;
        // The reactor's workers run on dedicated threads.
        let thread = MayBlock::on_dedicated_thread(Handle::current());
        let (body, is_elsewhere) = tokio::task::block_in_place(|| self.call(&call, &thread));
        if !is_elsewhere {
            self.publish_return(&call, &body).await;
        }
        body
    }

    /// Publishes the `new` event of a call, with the fields of its cause.
    async fn publish_new(&self, mut call: NewCall, cause: &Map) -> NewCall {
        if call.kind == Kind::Runner && !self.has(call.kind, &call.function) {
            // As in Salt, only the end of such a call is published.
            call.body.insert("fun".into(), call.function.as_str().into());
            call.body.insert("retcode".into(), UNKNOWN_RUNNER.into());
        } else {
            call.body.insert("user".into(), call.user.as_str().into());
            let mut new = call.body.clone();
            new.extend(cause.clone());
            if call.refused.is_some() {
                trim_deep(&mut new);
            }
            self.services.events.fire(&format!("{}/new", call.tag), &new).await;
        }
        call
    }

    /// Publishes the result of a call. Secrets and returned events are left out: events would grow without bound
    /// otherwise. A result that exceeds `max_event_size` is trimmed. The caller receives the full result either way.
    async fn publish_return(&self, call: &NewCall, body: &Map) {
        let tag = &format!("{}/ret", call.tag);
        let mut body = Cow::Borrowed(body);
        if EVENT_FUNCTIONS.contains(&call.function.as_str())
            && let Some(Value::List(events)) = body.get("return")
        {
            let text = format!("{} events", events.len());
            body.to_mut().insert("return".into(), text.into());
        }
        if let Some(recorded) = body.get("return").and_then(|result| call.recorded_result(result)) {
            body.to_mut().insert("return".into(), recorded);
        }
        let is_view = call.kind == Kind::Runner && call.function.starts_with(VIEW_FUNCTIONS);
        if is_view && body.get("success").is_some_and(Value::is_truthy) {
            body.to_mut().insert("return".into(), "a view of the fleet".into());
        }
        if is_view || UNLISTED_FUNCTIONS.contains(&call.function.as_str()) {
            body.to_mut().insert(NOT_CACHED.into(), true.into());
        }
        let is_cached = match call.kind {
            Kind::Runner => self.services.config.runner_returns && !call.function.starts_with(JOB_FUNCTIONS),
            Kind::Wheel => true,
        };
        let body = self.returns.event_of_call(tag, &call.jid, body, is_cached).await;
        if let Err(error) = self.services.events.fire_job(tag, &body).await {
            tracing::error!(tag, %error, "publishing an event failed");
        }
    }

    /// Calls a runner function on this thread, without events. Returns its result as it is recorded, without secrets, or
    /// the error as a message.
    pub fn call_runner(
        self: &Arc<Self>,
        function: &str,
        args: Args,
        jid: &Jid,
        user: &str,
        thread: &MayBlock,
    ) -> Result<Value, String> {
        let caller = Caller::new(jid.clone(), user.to_owned(), Map::new(), thread.clone());
        let call = self.new_call(Kind::Runner, function, args.clone(), user, jid.clone());
        let result = self.call_function(Kind::Runner, function, args, caller);
        result.map(|result| call.recorded_result(&result).unwrap_or(result)).map_err(|error| {
            let text = call.scrub(&failure_text(Kind::Runner.labels().1, function, &error));
            tracing::warn!(function, error = call.scrub(&error.to_string()), "runner or wheel call failed");
            text
        })
    }

    /// Makes a call on this thread, which may block. Returns the body of its return, and whether another member of the
    /// cluster has taken over the call.
    fn call(self: &Arc<Self>, call: &NewCall, thread: &MayBlock) -> (Map, bool) {
        let NewCall { kind, function, args, .. } = call;
        let (jid, user, cause) = (call.jid.clone(), call.user.clone(), call.cause.clone());
        let caller = Caller { has_master_key: call.has_master_key, ..Caller::new(jid, user, cause, thread.clone()) };
        let retcode = Arc::clone(&caller.retcode);
        let out = match kind {
            Kind::Runner => self.runners.get(function).and_then(|function| function.out),
            Kind::Wheel => None,
        };
        let running = self.running.enter(call);
        if call.is_orchestration() {
            self.orchestration_begun.notify_one();
        }
        let result = match call.refused {
            Some(reason) => Err(CallError::Execution(format!("the arguments are refused: {reason}"))),
            None => self.call_function(*kind, function, args.clone(), caller),
        };
        let result = result.and_then(|value| {
            // Custom modules may return anything; the reply must be readable.
            if !levels::is_deeper(&value, OLD_LEVELS) {
                return Ok(value);
            }
            Err(CallError::Execution(format!("the result is refused: it nests deeper than {OLD_LEVELS} levels")))
        });
        let is_elsewhere = running.end();
        let success = result.as_ref().is_ok_and(|value| is_success(value, retcode.load(Ordering::Relaxed)));
        let mut body = call.body.clone();
        if matches!(result, Err(CallError::Execution(_) | CallError::Exception(_))) {
            body.insert("retcode".into(), 1.into());
        }
        let value = result.unwrap_or_else(|error| {
            tracing::warn!(function, error = call.scrub(&error.to_string()), "runner or wheel call failed");
            let text = call.scrub(&failure_text(kind.labels().1, function, &error));
            let is_misuse = matches!(error, CallError::Arguments { .. } | CallError::Invocation { .. });
            let doc =
                self.runners.get(function).filter(|_| *kind == Kind::Runner && call.cause.is_empty() && is_misuse);
            match doc {
                Some(function) => with_usage(&text, &function.full_name(), &function.signature()).into(),
                None => text.into(),
            }
        });
        body.extend(call.cause.clone());
        body.insert("return".into(), value);
        body.insert("success".into(), success.into());
        if let Some(out) = out {
            body.insert("outputter".into(), out.into());
        }
        (body, is_elsewhere)
    }
}

/// Runs a closure that may block, on a thread of the runtime as well.
fn may_block<R>(run: impl FnOnce() -> R) -> R {
    let is_shared = Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
    if is_shared { tokio::task::block_in_place(run) } else { run() }
}

/// Whether a result means success: the result of an orchestration contains its own retcode, other functions set one.
fn is_success(value: &Value, retcode: i64) -> bool {
    if value.get("data").is_some() { !value.get("retcode").is_some_and(Value::is_truthy) } else { retcode == 0 }
}

/// Returns the message about invalid arguments, followed by the function's parameters. Salt prints its documentation,
/// below which the message is out of sight.
fn with_usage(sentence: &str, name: &str, signature: &str) -> String {
    format!("\n{sentence}\n\nUsage:\n    {signature}\n\n    salt-run -d {name} prints the documentation.")
}

/// Returns the message of a failed call, as in Salt.
fn failure_text(prefix: &str, function: &str, error: &CallError) -> String {
    match error {
        CallError::NotAvailable(_) => error.to_string(),
        CallError::Arguments { message, .. } | CallError::Invocation { message, .. } => {
            format!("Passed invalid arguments: {message}")
        }
        CallError::Execution(message) | CallError::Exception(message) => {
            format!("Exception occurred in {prefix} {function}: {message}")
        }
    }
}
