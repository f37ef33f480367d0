//! What templates on the master reach of the host that it runs on.

use std::sync::Arc;

use brine_function::{Args, CallError};
use brine_ids::Jid;
use brine_job::orchestration::MasterAccess;
use brine_value::{Map, Value};

/// What came of an orchestration.
#[derive(Debug, Clone, PartialEq)]
pub struct Orchestrated {
    /// The results of its states, or errors in words.
    pub value: Value,
    /// 0 if all went well.
    pub retcode: i64,
}

/// Execution functions and grains of the master's host. A master knows no minion's code: who starts it
/// brings them.
pub trait HostFunctions: Send + Sync {
    /// Calls an execution function by its full name.
    fn call(&self, function: &str, args: Args) -> Result<Value, CallError>;

    /// As [`HostFunctions::call`], where `grains` and what looks at them see others than the host's own: those of
    /// the minion whose pillar is rendered.
    fn call_with_grains(&self, grains: &Arc<Map>, function: &str, args: Args) -> Result<Value, CallError>;

    /// Whether there is such a function.
    fn has(&self, function: &str) -> bool;

    /// Runs a function of the state system, such as `state.sls`, as the job of an orchestration: with the
    /// master's file roots and a pillar of the master's own, and states that may ask the master.
    fn orchestrate(
        &self,
        function: &str,
        args: Args,
        jid: &Jid,
        master: Arc<dyn MasterAccess>,
    ) -> Result<Orchestrated, String>;

    /// The host's grains.
    fn grains(&self) -> Arc<Map>;
}
