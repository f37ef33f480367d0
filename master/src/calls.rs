//! Calls of runner and wheel functions: each has a job id, an event when it starts and one with what
//! came of it.

use std::borrow::Cow;
use std::sync::Arc;

use brine_event::{STAMP, stamp};
use brine_function::{Args, CallError};
use brine_ids::Jid;
use brine_reactor::{Cause, HandedOver};
use brine_runtime::executors::{ExecutorError, MayBlock, Pending};
use brine_value::{Map, Value, map};
use tokio::runtime::Handle;

use crate::Shared;
use crate::job_cache::NOT_KEPT;
use crate::runner::RunnerContext;

/// Functions whose return is events of the bus.
const ABOUT_EVENTS: &[&str] = &["event_bus.since", "event_bus.replay"];

/// Functions that the tools call for themselves: they are no jobs to be listed.
const NO_JOBS: &[&str] = &["doc.nearest", "doc.runner", "doc.wheel", "manage.targets"];

/// The module whose functions return what the job cache has: large results of these are not kept whole once more.
const ABOUT_JOBS: &str = "jobs.";

/// Salt's retcode of a runner function that is not there.
const UNKNOWN_RUNNER: i64 = 254;

/// Which registry a function is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `salt-run`'s functions.
    Runner,
    /// The functions that change the master.
    Wheel,
}

impl Kind {
    /// The word in tags and in front of function names: tag part, function prefix.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Kind::Runner => ("run", "runner"),
            Kind::Wheel => ("wheel", "wheel"),
        }
    }
}

/// A call that is under way.
pub struct Started {
    /// Its job id.
    pub jid: Jid,
    /// What its events' tags start with.
    pub tag: String,
    outcome: Result<Pending<Map>, ExecutorError>,
}

impl Started {
    /// Waits for the end of the call: the answer to a client, as Salt gives it.
    pub async fn finish(self) -> Map {
        let result = match self.outcome {
            Ok(pending) => pending.result().await,
            Err(error) => Err(error),
        };
        let data = result.unwrap_or_else(|error| map! {"return" => error.to_string(), "success" => false});
        map! {"tag" => self.tag, "data" => data}
    }
}

impl Shared {
    /// Whether there is such a function.
    pub fn has_call(&self, kind: Kind, function: &str) -> bool {
        match kind {
            Kind::Runner => self.runners.get(function).is_some(),
            Kind::Wheel => self.wheels.get(function).is_some(),
        }
    }

    /// Starts a call. The event that says so has been fired when this returns.
    pub async fn start_call(
        self: &Arc<Self>,
        kind: Kind,
        function: &str,
        args: Args,
        user: &str,
        caused: &Map,
    ) -> Started {
        let call = NewCall::new(kind, function, args, user, Jid::new());
        let call = self.announce(NewCall { caused: caused.clone(), ..call }, caused).await;
        let (jid, tag, shared) = (call.jid.clone(), call.tag.clone(), Arc::clone(self));
        let outcome = self.executors.jobs.start(move |may_block| {
            let mut body = shared.call(&call, may_block);
            may_block.wait(shared.fire_return(&call, &body));
            // The event has the bus's stamp; the answer to a client has one, too.
            body.insert(STAMP.into(), stamp().into());
            body
        });
        if let Err(error) = &outcome {
            tracing::error!(%jid, function, %error, "a call was refused");
        }
        Started { jid, tag, outcome }
    }

    /// Makes a call for another one, such as an orchestration, on its thread: the job id, and the answer to a client.
    pub(crate) fn call_within(self: &Arc<Self>, kind: Kind, function: &str, args: Args, caller: &Caller) -> (Jid, Map) {
        let call = NewCall::new(kind, function, args, &caller.user, Jid::new());
        let call = NewCall { caused: caller.caused.clone(), ..call };
        let call = caller.thread.wait(self.announce(call, &caller.caused));
        let mut body = self.call(&call, &caller.thread);
        caller.thread.wait(self.fire_return(&call, &body));
        body.insert(STAMP.into(), stamp().into());
        (call.jid, map! {"tag" => call.tag, "data" => body})
    }

    /// Makes a call for the reactor, on this thread: what came of it.
    pub(crate) async fn call_for(self: &Arc<Self>, kind: Kind, function: &str, args: Args, cause: &Cause) -> Map {
        // What is done again after a restart keeps its id.
        let jid = cause.before.as_ref().map_or_else(Jid::new, |HandedOver { jid, .. }| jid.clone());
        let call = NewCall::new(kind, function, args, crate::reactions::USER, jid);
        let call = self.announce(NewCall { caused: cause.short_fields(), ..call }, &cause.fields()).await;
        // The reactor's workers are threads of their own.
        let thread = MayBlock::own_thread(Handle::current());
        let body = tokio::task::block_in_place(|| self.call(&call, &thread));
        self.fire_return(&call, &body).await;
        body
    }

    /// Fires the event that says that there is a call, with these fields about its cause.
    async fn announce(&self, mut call: NewCall, cause: &Map) -> NewCall {
        if call.kind == Kind::Runner && !self.has_call(call.kind, &call.function) {
            // Salt tells only the end of it.
            call.body.insert("fun".into(), call.function.as_str().into());
            call.body.insert("retcode".into(), UNKNOWN_RUNNER.into());
        } else {
            call.body.insert("user".into(), call.user.as_str().into());
            let mut new = call.body.clone();
            new.extend(cause.clone());
            self.fire(&format!("{}/new", call.tag), &new).await;
        }
        call
    }

    /// Publishes the result of a call. Events that are about events would grow without end, and a result that exceeds
    /// `max_event_size` is trimmed: the caller has it in any case.
    async fn fire_return(&self, call: &NewCall, body: &Map) {
        let tag = &format!("{}/ret", call.tag);
        let mut body = Cow::Borrowed(body);
        if ABOUT_EVENTS.contains(&call.function.as_str())
            && let Some(Value::List(events)) = body.get("return")
        {
            let text = format!("{} events", events.len());
            body.to_mut().insert("return".into(), text.into());
        }
        if NO_JOBS.contains(&call.function.as_str()) {
            body.to_mut().insert(NOT_KEPT.into(), true.into());
        }
        let is_kept = match call.kind {
            Kind::Runner => self.config.runner_returns && !call.function.starts_with(ABOUT_JOBS),
            Kind::Wheel => true,
        };
        let body = self.event_of_call(tag, &call.jid, body, is_kept).await;
        if let Err(error) = self.fire_job(tag, &body).await {
            tracing::error!(tag, %error, "an event could not be fired");
        }
    }

    /// Calls a runner function on this thread, without events of the call: what it returned, or why it did not.
    pub(crate) fn call_runner(
        self: &Arc<Self>,
        function: &str,
        args: Args,
        jid: &Jid,
        user: &str,
        thread: &MayBlock,
    ) -> Result<Value, String> {
        let caller = Caller { jid: jid.clone(), user: user.to_owned(), caused: Map::new(), thread: thread.clone() };
        let called = self.runners.call(&RunnerContext { master: Arc::clone(self), caller }, function, args);
        called.map_err(|error| {
            tracing::warn!(function, %error, "a call on the master failed");
            failure_text(Kind::Runner.words().1, function, &error)
        })
    }

    /// Makes a call on this thread, which may block: the body of its return.
    fn call(self: &Arc<Self>, call: &NewCall, thread: &MayBlock) -> Map {
        let NewCall { kind, function, args, .. } = call;
        let (jid, user, caused) = (call.jid.clone(), call.user.clone(), call.caused.clone());
        let caller = Caller { jid, user, caused, thread: thread.clone() };
        let (result, out) = match kind {
            Kind::Runner => {
                let out = self.runners.get(function).and_then(|function| function.out);
                let context = RunnerContext { master: Arc::clone(self), caller };
                (self.runners.call(&context, function, args.clone()), out)
            }
            Kind::Wheel => (self.wheels.call(&self.wheel_context(caller), function, args.clone()), None),
        };
        let success = result.as_ref().is_ok_and(is_success);
        let mut body = call.body.clone();
        if matches!(result, Err(CallError::Execution(_) | CallError::Exception(_))) {
            body.insert("retcode".into(), 1.into());
        }
        let value = result.unwrap_or_else(|error| {
            tracing::warn!(function, %error, "a call on the master failed");
            let text = failure_text(kind.words().1, function, &error);
            let is_misuse = matches!(error, CallError::Arguments { .. } | CallError::Invocation { .. });
            let doc =
                self.runners.get(function).filter(|_| *kind == Kind::Runner && call.caused.is_empty() && is_misuse);
            match doc {
                Some(function) => with_usage(&text, &function.docstring()).into(),
                None => text.into(),
            }
        });
        body.extend(call.caused.clone());
        body.insert("return".into(), value);
        body.insert("success".into(), success.into());
        if let Some(out) = out {
            body.insert("outputter".into(), out.into());
        }
        body
    }
}

/// A call that has been announced.
struct NewCall {
    kind: Kind,
    function: String,
    args: Args,
    jid: Jid,
    tag: String,
    user: String,
    /// What its events have in common.
    body: Map,
    caused: Map,
}

impl NewCall {
    fn new(kind: Kind, function: &str, args: Args, user: &str, jid: Jid) -> Self {
        let (tag_word, prefix) = kind.words();
        let tag = format!("salt/{tag_word}/{jid}");
        let keywords = (!args.keyword.is_empty()).then(|| args.keyword.clone().into());
        let fun_args: Vec<Value> = args.positional.iter().cloned().chain(keywords).collect();
        let body = map! {"fun" => format!("{prefix}.{function}"), "fun_args" => fun_args, "jid" => &jid};
        let (function, user) = (function.to_owned(), user.to_owned());
        NewCall { kind, function, args, jid, tag, user, body, caused: Map::new() }
    }
}

/// Who a function of the master is called for.
#[derive(Clone)]
pub(crate) struct Caller {
    /// The call's own job id.
    pub jid: Jid,
    /// Who asked.
    pub user: String,
    /// What the events that the call fires say of the reaction that it is; nothing if it is none.
    pub caused: Map,
    /// The thread of the call.
    pub thread: MayBlock,
}

impl Caller {
    /// Adds to an event that the function fires what led to it.
    pub fn mark(&self, body: &mut Map) {
        if !self.caused.is_empty() {
            body.extend(self.caused.clone());
            body.insert("_jid".into(), (&self.jid).into());
        }
    }
}

/// Whether a value does not say itself that it is a failure, as that of an orchestration does.
fn is_success(value: &Value) -> bool {
    !(value.get("data").is_some() && value.get("retcode").is_some_and(Value::is_truthy))
}

/// Returns the sentence about a call whose arguments do not fit, with the function's documentation, as Salt prints them.
fn with_usage(sentence: &str, doc: &str) -> String {
    let lines = doc.lines().map(|line| format!("\n    {line}").trim_end_matches(' ').to_owned());
    format!("\n{sentence}\n\nUsage:\n{}", lines.collect::<String>())
}

/// What is said of a call that failed, in Salt's words.
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
