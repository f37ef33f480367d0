//! What states ask of the master when they run on it: `salt-run state.orchestrate`.
//!
//! The states are those of the minion's crate, the master is another one's: this is what they say to each other.

use std::time::Duration;

use brine_function::Args;
use brine_ids::Jid;
use brine_value::{Map, Value};
use brine_wire::PublishRequest;

/// A job whose returns are waited for.
#[derive(Debug, Clone)]
pub struct Ask {
    /// What is published.
    pub request: PublishRequest,
    /// How long minions may be silent until they are asked whether they still work; nothing for the master's
    /// `timeout`.
    pub timeout: Option<Duration>,
    /// How many minions work at a time: a number, or a part such as `25%`.
    pub batch: Option<String>,
    /// With a batch: no further minions after one that failed.
    pub failhard: bool,
    /// Only so many minions of the target, chosen by chance.
    pub subset: Option<usize>,
}

impl Ask {
    /// A job for all minions of a target at once.
    pub fn new(request: PublishRequest) -> Self {
        Ask { request, timeout: None, batch: None, failhard: false, subset: None }
    }
}

/// What came of a job on one minion.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The minion.
    pub id: String,
    /// The job.
    pub jid: Jid,
    /// Its return as the master's bus has it: `return`, `retcode`, `out`, ...; nothing if it did not return.
    pub returned: Option<Map>,
}

/// What came of a runner or wheel function.
#[derive(Debug, Clone, PartialEq)]
pub struct Called {
    /// The call's id.
    pub jid: Jid,
    /// What the function gave, or why it gave nothing.
    pub value: Value,
    /// Whether it did what it was asked to.
    pub success: bool,
}

/// The master that an orchestration runs on. All of it waits: it is for threads that may.
pub trait MasterAccess: Send + Sync {
    /// Publishes a job and waits until each of its minions has returned or does not say that it still works.
    /// The error is one sentence.
    fn ask(&self, ask: Ask) -> Result<Vec<Answer>, String>;

    /// Calls a runner function.
    fn runner(&self, function: &str, args: Args) -> Called;

    /// Calls a wheel function.
    fn wheel(&self, function: &str, args: Args) -> Called;

    /// Shows the events from now on to `seen` until that says that it has enough, or the time is up. Says which.
    fn follow(&self, timeout: Duration, seen: &mut dyn FnMut(&str, &Map) -> bool) -> Result<bool, String>;

    /// Fires an event of the orchestration's own: `salt/run/<jid>/<what>`.
    fn tell(&self, what: &str, body: Map);
}
