//! One call of a runner or wheel function, and its caller.

use std::sync::Arc;

use brine_function::Args;
use brine_ids::Jid;
use brine_runtime::executors::MayBlock;
use brine_value::{Map, Value, map};

use crate::jobs::checkpoint::Checkpoint;

/// The prefix of functions that run for long and lead to jobs.
pub(super) const ORCHESTRATIONS: &str = "state.";

/// The field of the call of an orchestration: whether a reaction has made it, which is repeated elsewhere by the reactor.
pub(crate) const REACTION: &str = "reaction";

/// The registry of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `salt-run`'s functions.
    Runner,
    /// The functions that manage the master.
    Wheel,
}

impl Kind {
    /// Returns the name of the registry.
    pub fn name(self) -> &'static str {
        self.words().1
    }

    /// Returns the prefix of the tags of a call's events.
    pub(crate) fn tag(self, jid: &Jid) -> String {
        format!("salt/{}/{jid}", self.words().0)
    }

    /// Returns the word in tags, and the prefix of function names.
    pub(super) fn words(self) -> (&'static str, &'static str) {
        match self {
            Kind::Runner => ("run", "runner"),
            Kind::Wheel => ("wheel", "wheel"),
        }
    }
}

/// A call whose `new` event is published.
pub(super) struct NewCall {
    pub kind: Kind,
    pub function: String,
    pub args: Args,
    pub jid: Jid,
    pub tag: String,
    pub user: String,
    /// The fields of all its events.
    pub body: Map,
    /// The fields of its cause.
    pub cause: Map,
    /// Whether it is part of another call.
    pub is_nested: bool,
    /// The progress of a resumed orchestration.
    pub checkpoint: Option<Arc<Checkpoint>>,
}

impl NewCall {
    pub fn new(kind: Kind, function: &str, args: Args, user: &str, jid: Jid) -> Self {
        let (_, prefix) = kind.words();
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
    /// The fields of the cause, for events of the call; empty unless it is a reaction.
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
