//! The execution functions of the master's host, for templates and orchestrations on the master.

use std::sync::Arc;

use brine_function::{Args, CallError};
use brine_ids::Jid;
use brine_jinja::Functions;
use brine_job::orchestration::MasterAccess;
use brine_value::{Map, Value};

/// The result of an orchestration.
#[derive(Debug, Clone, PartialEq)]
pub struct Orchestrated {
    /// The results of its states, or the errors.
    pub value: Value,
    /// 0 for success.
    pub retcode: i64,
}

/// Execution functions and grains of the master's host. The master does not depend on the minion's code: the starting
/// program passes them in.
pub trait HostFunctions: Send + Sync {
    /// Returns the execution functions, for templates. With the grains of a minion they are those of the minion whose pillar
    /// is rendered.
    fn functions(&self, grains: Option<Arc<Map>>) -> Arc<dyn Functions>;

    /// Returns the full names of the built-in execution functions.
    fn names(&self) -> Vec<String>;

    /// Copies people's own modules of these types from the file server to `extension_modules`: the arguments are those of
    /// `saltutil.sync_all`. Returns the new and changed modules by type.
    fn sync(&self, kinds: &[&'static str], args: Args) -> Result<Map, CallError>;

    /// Runs a function of the state system, such as `state.sls`, as the job of an orchestration: with the master's file
    /// roots and its own pillar, and with state functions that can call the master.
    fn orchestrate(
        &self,
        function: &str,
        args: Args,
        jid: &Jid,
        master: Arc<dyn MasterAccess>,
    ) -> Result<Orchestrated, String>;

    /// Returns the host's grains.
    fn grains(&self) -> Arc<Map>;
}
