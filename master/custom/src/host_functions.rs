//! The execution functions of the master's host, for templates and orchestrations on the master.

use std::sync::Arc;

use brine_function::{Args, CallError};
use brine_ids::Jid;
use brine_jinja::Functions;
use brine_job::orchestration::MasterAccess;
use brine_value::{Map, Value};

/// The result of an orchestration or another run of the state system.
#[derive(Debug, Clone, PartialEq)]
pub struct Orchestrated {
    /// The results of the states, or a list of errors.
    pub value: Value,
    /// The retcode; 0 means success.
    pub retcode: i64,
}

/// A call of a function on hosts of the roster over ssh.
#[derive(Debug, Clone)]
pub struct SshCall {
    /// The target.
    pub tgt: Value,
    /// The type of the target, by Salt's names.
    pub tgt_type: String,
    /// The function, or a raw shell command.
    pub fun: String,
    /// The arguments in their wire format.
    pub arg: Vec<Value>,
    /// Whether `fun` is a raw shell command.
    pub is_raw: bool,
    /// The timeout of connecting, in seconds; `None` for the configured one.
    pub timeout: Option<u64>,
    /// The user under whom returns are published.
    pub user: String,
}

/// Execution functions and grains of the master's host. The master does not depend on the minion's code, so the program
/// that starts it provides the implementation.
pub trait HostFunctions: Send + Sync {
    /// Returns the execution functions, for templates. With the grains of a minion they are those of the minion whose pillar
    /// is rendered.
    fn functions(&self, grains: Option<Arc<Map>>) -> Arc<dyn Functions>;

    /// Returns the full names of the built-in execution functions.
    fn names(&self) -> Vec<String>;

    /// Returns the names of the positional parameters of a built-in execution function, in order; none if it is unknown.
    fn positional_parameters(&self, function: &str) -> Vec<&'static str>;

    /// Copies custom modules of these types from the file server to `extension_modules`. The arguments are those of
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
    ) -> Result<Orchestrated, CallError>;

    /// Calls a function on hosts of the roster over ssh. Returns their returns by id: `fun`, `fun_args`, `id`, `jid`,
    /// `retcode`, `return`. Blocks.
    ///
    /// # Errors
    /// The roster or the target is invalid.
    fn call_by_ssh(&self, call: &SshCall) -> Result<Map, CallError>;

    /// Returns the host's grains.
    fn grains(&self) -> Arc<Map>;
}
