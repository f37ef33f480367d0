//! One call of a runner or wheel function, and its caller.

use std::sync::Arc;

use brine_function::Args;
use brine_ids::Jid;
use brine_runtime::executors::MayBlock;
use brine_value::{Map, Value, map};

use crate::jobs::checkpoint::Checkpoint;

/// The prefix of long-running functions that publish jobs.
pub(super) const ORCHESTRATIONS: &str = "state.";

/// The field of an orchestration's call that marks it as part of a reaction, which the reactor of another member
/// repeats.
pub(crate) const REACTION: &str = "reaction";

/// The registry of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The registry of runner functions, called by `salt-run`.
    Runner,
    /// The registry of wheel functions, which manage the master.
    Wheel,
}

impl Kind {
    /// Returns the name of the registry.
    pub fn name(self) -> &'static str {
        self.labels().1
    }

    /// Returns the prefix of the tags of a call's events.
    pub(crate) fn tag(self, jid: &Jid) -> String {
        format!("salt/{}/{jid}", self.labels().0)
    }

    /// Returns the name of the registry in tags, and in function names.
    pub(super) fn labels(self) -> (&'static str, &'static str) {
        match self {
            Kind::Runner => ("run", "runner"),
            Kind::Wheel => ("wheel", "wheel"),
        }
    }
}

/// A call that has been announced by its `new` event.
pub(super) struct NewCall {
    pub kind: Kind,
    pub function: String,
    pub args: Args,
    pub jid: Jid,
    pub tag: String,
    pub user: String,
    /// The fields that all of its events share.
    pub body: Map,
    /// The fields that identify its cause.
    pub cause: Map,
    /// Whether it is part of another call.
    pub is_nested: bool,
    /// The progress of a resumed orchestration, in a cluster.
    pub checkpoint: Option<Arc<Checkpoint>>,
}

impl NewCall {
    pub fn new(kind: Kind, function: &str, args: Args, user: &str, jid: Jid) -> Self {
        let (_, prefix) = kind.labels();
        let tag = kind.tag(&jid);
        let keywords = (!args.keyword.is_empty()).then(|| args.keyword.clone().into());
        let fun_args: Vec<Value> = args.positional.iter().cloned().chain(keywords).collect();
        let body = map! {"fun" => format!("{prefix}.{function}"), "fun_args" => fun_args, "jid" => &jid};
        let (function, user) = (function.to_owned(), user.to_owned());
        NewCall { kind, function, args, jid, tag, user, body, cause: Map::new(), is_nested: false, checkpoint: None }
    }

    pub fn is_orchestration(&self) -> bool {
        self.kind == Kind::Runner && self.function.starts_with(ORCHESTRATIONS)
    }
}

/// The caller of a runner or wheel function.
#[derive(Clone)]
pub(crate) struct Caller {
    /// The job id of the call.
    pub jid: Jid,
    /// The user.
    pub user: String,
    /// The fields that identify the cause, for events of the call; empty unless a reaction made the call.
    pub cause: Map,
    /// The thread of the call.
    pub thread: MayBlock,
}

impl Caller {
    /// Adds the cause to an event of the function.
    pub fn mark(&self, body: &mut Map) {
        if !self.cause.is_empty() {
            body.extend(self.cause.clone());
            body.insert("_jid".into(), (&self.jid).into());
        }
    }
}
