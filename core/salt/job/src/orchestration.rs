//! The interface between the state engine and the master, for the states of `salt-run state.orchestrate`.
//!
//! The state engine and the master are in different crates, which these types connect.

use std::time::Duration;

use brine_function::Args;
use brine_ids::Jid;
use brine_value::{Map, Value};
use brine_wire::PublishRequest;

/// A job to publish, and the parameters of the wait for its returns.
#[derive(Debug, Clone)]
pub struct OrchestratedJob {
    /// The request.
    pub request: PublishRequest,
    /// The time after which silent minions are asked whether they still run the job; the master's `timeout` if `None`.
    pub timeout: Option<Duration>,
    /// The number of minions that run the job at the same time: an integer, or a percentage such as `25%`.
    pub batch: Option<String>,
    /// Whether a failed minion stops the batch.
    pub failhard: bool,
    /// The number of randomly selected minions of the target to use.
    pub subset: Option<usize>,
}

impl OrchestratedJob {
    /// Creates a job for all minions of a target, without batches.
    pub fn new(request: PublishRequest) -> Self {
        OrchestratedJob { request, timeout: None, batch: None, failhard: false, subset: None }
    }
}

/// The result of a job on one minion.
#[derive(Debug, Clone, PartialEq)]
pub struct MinionResult {
    /// The minion.
    pub id: String,
    /// The job.
    pub jid: Jid,
    /// The return, as on the master's bus: `return`, `retcode`, `out`, ...; `None` if the minion did not return.
    pub returned: Option<Map>,
    /// Whether the target lists an id without an accepted key. It has failed, also where silent minions are not expected.
    pub is_unknown: bool,
}

/// The result of a runner or wheel function.
#[derive(Debug, Clone, PartialEq)]
pub struct Called {
    /// The job id of the call.
    pub jid: Jid,
    /// The result of the function, or the error message.
    pub value: Value,
    /// Whether the function succeeded.
    pub success: bool,
}

/// What a step of an orchestration does on its minions.
#[derive(Debug, Clone, PartialEq)]
pub enum StepPlan {
    /// It runs.
    Run,
    /// It is planned.
    Plan,
    /// It changes what was planned: the minions by the digest of their changes.
    Apply(Map),
}

/// Why a master does not execute a step of an orchestration.
#[derive(Debug, thiserror::Error)]
pub enum OrchestrationError {
    /// A job is not run to its end.
    #[error("{0}")]
    Job(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The events cannot be followed.
    #[error("{0}")]
    Events(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Another member of the cluster executes it now.
    #[error("another master of the cluster has taken over this orchestration")]
    TakenOver,
}

/// The master that executes an orchestration. All methods block.
pub trait MasterAccess: Send + Sync {
    /// Publishes a job and waits until each of its minions has returned or no longer runs it.
    ///
    /// # Errors
    /// The job is not published, its returns cannot be read, or another master has taken over the orchestration.
    fn ask(&self, ask: OrchestratedJob) -> Result<Vec<MinionResult>, OrchestrationError>;

    /// Calls a runner function.
    fn runner(&self, function: &str, args: Args) -> Called;

    /// Calls a wheel function.
    fn wheel(&self, function: &str, args: Args) -> Called;

    /// Passes events from now on to `seen` until it returns true or the timeout expires. Returns whether it returned
    /// true.
    ///
    /// # Errors
    /// The bus accepts no further subscriber.
    fn follow(&self, timeout: Duration, seen: &mut dyn FnMut(&str, &Map) -> bool) -> Result<bool, OrchestrationError>;

    /// Returns what a step does on its minions, by the name of its state.
    fn step_plan(&self, _name: &str) -> StepPlan {
        StepPlan::Run
    }

    /// Takes the dry runs of a step that is planned.
    fn planned(&self, _name: &str, _results: &[MinionResult]) {}

    /// Returns the stored result of a state by its tag, if an earlier process of this orchestration has executed the
    /// state.
    fn stored_result(&self, _tag: &str) -> Option<Map> {
        None
    }

    /// Stores the result of a state, for a process that resumes this orchestration. Returns false if another process
    /// has already resumed it: then no further state may be executed.
    fn store_result(&self, _tag: &str, _result: &Map) -> bool {
        true
    }

    /// Publishes an event of the orchestration, with the tag `salt/run/<jid>/<what>`.
    fn publish_progress(&self, what: &str, body: Map);
}
