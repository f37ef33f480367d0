//! Calls of runner and wheel functions: each has a job id, an event when it starts and one with what
//! came of it.

use std::sync::Arc;

use brine_core::event::stamp;
use brine_core::function::{Args, CallError};
use brine_core::{Jid, Map, Value, map};
use brine_reactor::Cause;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::Shared;
use crate::runner::RunnerContext;
use crate::wheel::WheelContext;

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
    outcome: JoinHandle<Map>,
}

impl Started {
    /// Waits for the end of the call: the answer to a client, as Salt gives it.
    pub async fn finish(self) -> Map {
        // The function panicked, which is a defect, or the master stops.
        let lost = |_| map! {"return" => "The call was lost: see the master's log", "success" => false};
        let data = self.outcome.await.unwrap_or_else(lost);
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

    /// Starts a call. The event that says so has been fired when this returns. `cause` is what led to it, if
    /// the reactor did.
    pub async fn start_call(
        self: &Arc<Self>,
        kind: Kind,
        function: &str,
        args: Args,
        user: &str,
        cause: Option<&Cause>,
    ) -> Started {
        let jid = Jid::new();
        let (tag_word, prefix) = kind.words();
        let tag = format!("salt/{tag_word}/{jid}");
        let keywords = (!args.keyword.is_empty()).then(|| args.keyword.clone().into());
        let fun_args: Vec<Value> = args.positional.iter().cloned().chain(keywords).collect();
        if kind == Kind::Runner && !self.has_call(kind, function) {
            return self.unknown_runner(jid, tag, function, fun_args).await;
        }
        let mut body = map! {
            "fun" => format!("{prefix}.{function}"),
            "fun_args" => fun_args,
            "jid" => &jid,
            "user" => user,
        };
        if let Some(cause) = cause {
            body.extend(cause_fields(cause));
        }
        self.fire(&format!("{tag}/new"), &body).await;
        let (shared, function, user) = (Arc::clone(self), function.to_owned(), user.to_owned());
        let (call_jid, ret_tag) = (jid.clone(), format!("{tag}/ret"));
        let outcome = tokio::task::spawn_blocking(move || {
            let runtime = Handle::current();
            let (result, out) = shared.call(kind, &function, args, call_jid, &user, runtime.clone());
            let success = result.is_ok();
            if matches!(result, Err(CallError::Execution(_))) {
                body.insert("retcode".into(), 1.into());
            }
            let value = result.unwrap_or_else(|error| {
                tracing::warn!(function, %error, "a call on the master failed");
                failure_text(prefix, &function, &error).into()
            });
            body.insert("return".into(), value);
            body.insert("success".into(), success.into());
            if let Some(out) = out {
                body.insert("outputter".into(), out.into());
            }
            body.insert("_stamp".into(), stamp().into());
            runtime.block_on(shared.fire(&ret_tag, &body));
            body
        });
        Started { jid, tag, outcome }
    }

    /// A runner function that is not there: Salt tells only the end of it.
    async fn unknown_runner(self: &Arc<Self>, jid: Jid, tag: String, function: &str, fun_args: Vec<Value>) -> Started {
        let text = CallError::NotAvailable(function.to_owned()).to_string();
        tracing::warn!(function, "a call of a runner function that is not there");
        let body = map! {
            "fun" => function,
            "fun_args" => fun_args,
            "jid" => &jid,
            "return" => text,
            "success" => false,
            "retcode" => UNKNOWN_RUNNER,
        };
        self.fire(&format!("{tag}/ret"), &body).await;
        Started { jid, tag, outcome: tokio::spawn(std::future::ready(body)) }
    }

    fn call(
        self: &Arc<Self>,
        kind: Kind,
        function: &str,
        args: Args,
        jid: Jid,
        user: &str,
        runtime: Handle,
    ) -> (Result<Value, CallError>, Option<&'static str>) {
        match kind {
            Kind::Runner => {
                let out = self.runners.get(function).and_then(|function| function.out);
                let context = RunnerContext { master: Arc::clone(self), jid, user: user.to_owned(), runtime };
                (self.runners.call(&context, function, args), out)
            }
            Kind::Wheel => {
                let context: WheelContext = self.wheel_context(runtime);
                (self.wheels.call(&context, function, args), None)
            }
        }
    }
}

/// What events say of the reaction that led to them: the event's number, and the SLS file.
pub(crate) fn cause_fields(cause: &Cause) -> Map {
    map! {"_cause" => cause.seq, "_sls" => cause.file.display().to_string()}
}

/// What is said of a call that failed, in Salt's words.
fn failure_text(prefix: &str, function: &str, error: &CallError) -> String {
    match error {
        CallError::NotAvailable(_) => error.to_string(),
        CallError::Arguments { message, .. } | CallError::Invocation { message, .. } => {
            format!("Passed invalid arguments: {message}")
        }
        CallError::Execution(message) => format!("Exception occurred in {prefix} {function}: {message}"),
    }
}
