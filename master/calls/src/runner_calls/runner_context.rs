//! What a runner function is given: the parts of the master, and its caller.

use std::future::Future;
use std::sync::Arc;

use brine_function::{Args, CallError};
use brine_master_custom::HostFunctions;
use brine_master_store::storage::Storage;
use brine_value::{Map, Value, map};
use brine_wire::PublishRequest;

use super::{Caller, RunnerCalls, Services};

/// The context of runner functions.
pub struct RunnerContext {
    /// The parts of the master.
    pub master: Arc<Services>,
    /// The runner and wheel functions.
    pub calls: Arc<RunnerCalls>,
    /// The caller of this function.
    pub caller: Caller,
}

impl RunnerContext {
    /// Publishes a progress event of this call with a message.
    pub fn progress(&self, message: &str) {
        self.progress_event(&map! {"message" => message});
    }

    /// Publishes a progress event of this call: `salt/run/<jid>/progress`.
    pub fn progress_event(&self, data: &Map) {
        let tag = format!("salt/run/{}/progress", self.caller.jid);
        self.wait(self.master.events.fire(&tag, data));
    }

    /// Returns the storage of the master.
    pub fn storage(&self) -> &Storage {
        self.master.storage.get(&self.caller.thread)
    }

    /// Returns the ids of the accepted minions of a target.
    pub fn minions(&self, tgt: Value, tgt_type: String) -> Result<Vec<String>, CallError> {
        let request = PublishRequest { tgt, tgt_type, ..PublishRequest::new("*", "test.ping", &self.caller.user) };
        Ok(self.wait(self.master.facts.targets(&request)).map_err(CallError::execution)?.minions)
    }

    /// Publishes a job, waits for its returns and returns the results by minion; the result of a failed minion is its
    /// error message.
    pub fn publish_and_wait(&self, request: PublishRequest, timeout: Option<f64>) -> Result<Map, CallError> {
        let timeout = timeout.map_or(self.master.config.timeout.seconds(), |seconds| {
            brine_runtime::seconds::within(0.0..=86_400.0, seconds)
        });
        let answers = self.wait(self.master.jobs.publish_and_wait(request, timeout)).map_err(CallError::execution)?;
        let results = answers
            .returned
            .into_iter()
            .map(|(id, mut fields)| (Value::from(id), fields.swap_remove("return").unwrap_or_default()));
        Ok(results.collect())
    }

    /// Returns the execution functions of the master's host.
    pub fn host(&self) -> Result<&dyn HostFunctions, CallError> {
        let host = self.master.functions.as_deref();
        host.ok_or_else(|| CallError::execution("this master was started without execution functions"))
    }

    /// Calls an execution function on the master's host.
    pub fn call_host(&self, function: &str, args: Args) -> Result<Value, CallError> {
        self.host()?.functions(None).call(function, args)
    }

    /// Blocks this thread on a future.
    pub fn wait<F: Future>(&self, future: F) -> F::Output {
        self.caller.thread.wait(future)
    }
}
