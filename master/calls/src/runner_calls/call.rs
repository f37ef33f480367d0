//! One call of a runner or wheel function, and its caller.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use brine_function::Args;
use brine_ids::Jid;
use brine_mask::{MASK, Mask, Secrets};
use brine_master_custom::Kind;
use brine_master_jobs::checkpoint::Checkpoint;
use brine_runtime::executors::MayBlock;
use brine_value::levels::{self, TooDeep};
use brine_value::{Map, Value, map};

/// The prefix of long-running functions that publish jobs.
pub(super) const ORCHESTRATIONS: &str = "state.";

/// The user of reactions in events.
pub const REACTOR: &str = "Reactor";

/// The field of an orchestration's call that marks it as part of a reaction, which the reactor of another member
/// repeats.
pub const REACTION: &str = "reaction";

/// A call that has been announced by its `new` event.
pub(super) struct NewCall {
    pub kind: Kind,
    pub function: String,
    pub args: Args,
    pub jid: Jid,
    pub tag: String,
    pub user: String,
    /// The fields that all of its events share, with masked arguments.
    pub body: Map,
    /// Why its arguments are refused: no event can have them.
    pub refused: Option<TooDeep>,
    /// The secrets among its arguments.
    pub secrets: Secrets,
    /// Whether its result is a secret.
    pub has_secret_result: bool,
    /// The fields that identify its cause.
    pub cause: Map,
    /// Whether the caller has the master's own key.
    pub has_master_key: bool,
    /// Whether it is part of another call.
    pub is_nested: bool,
    /// The progress of a resumed orchestration, in a cluster.
    pub checkpoint: Option<Arc<Checkpoint>>,
}

impl NewCall {
    pub fn new(mask: &Mask, kind: Kind, function: &str, args: Args, user: &str, jid: Jid) -> Self {
        let (_, prefix) = kind.labels();
        let tag = kind.tag(&jid);
        let fun_args = args.to_wire();
        let name = format!("{prefix}.{function}");
        let secrets = mask.secrets(&name, &fun_args);
        let mut fun_args = mask.arguments(&name, &fun_args).unwrap_or(fun_args);
        // As in Salt, keyword arguments of these functions are not marked.
        if let Some(Value::Map(keywords)) = fun_args.last_mut().filter(|_| !args.keyword.is_empty()) {
            keywords.shift_remove("__kwarg__");
        }
        let body = map! {"fun" => name, "fun_args" => fun_args, "jid" => &jid};
        NewCall {
            kind,
            function: function.to_owned(),
            args,
            jid,
            tag,
            user: user.to_owned(),
            refused: levels::check(&body).err(),
            body,
            secrets,
            has_secret_result: false,
            cause: Map::new(),
            has_master_key: false,
            is_nested: false,
            checkpoint: None,
        }
    }

    /// Returns a message without the secrets of the call.
    pub fn scrub(&self, message: &str) -> String {
        self.secrets.scrub(message)
    }

    /// Returns the result as it is recorded; `None` if it is recorded as it is.
    pub fn recorded_result(&self, result: &Value) -> Option<Value> {
        if self.has_secret_result {
            return Some(MASK.into());
        }
        if self.secrets.is_empty() { None } else { self.secrets.scrub_value(result) }
    }

    pub fn is_orchestration(&self) -> bool {
        self.kind == Kind::Runner && self.function.starts_with(ORCHESTRATIONS)
    }
}

/// The caller of a runner or wheel function.
#[derive(Clone)]
pub struct Caller {
    /// The job id of the call.
    pub jid: Jid,
    /// The user.
    pub user: String,
    /// The fields that identify the cause, for events of the call; empty unless a reaction made the call.
    pub cause: Map,
    /// The thread of the call.
    pub thread: MayBlock,
    /// Whether the caller presented the master's own key, and so may do everything.
    pub has_master_key: bool,
    /// The retcode that the function has set as `__context__["retcode"]`; 0 means success.
    pub retcode: Arc<AtomicI64>,
}

impl Caller {
    /// Creates the caller of one call.
    pub fn new(jid: Jid, user: String, cause: Map, thread: MayBlock) -> Self {
        Caller { jid, user, cause, thread, has_master_key: false, retcode: Arc::default() }
    }

    /// Adds the cause to an event of the function.
    pub fn mark(&self, body: &mut Map) {
        if !self.cause.is_empty() {
            body.extend(self.cause.clone());
            body.insert("_jid".into(), (&self.jid).into());
        }
    }
}

#[cfg(test)]
mod tests {
    use brine_value::levels::MAX_LEVELS;
    use brine_value::list;

    use super::*;

    #[test]
    fn a_call_records_no_secret_arguments_and_no_copies_of_them() {
        let args = Args { positional: vec!["a".into()], keyword: map! {"password" => "MARKER-4711", "name" => "b"} };
        let call = NewCall::new(&Mask::default(), Kind::Runner, "test.arg", args, "root", Jid::new());
        assert_eq!(call.args.keyword["password"], "MARKER-4711".into(), "the function gets the value");
        let recorded = list!["a", map! {"password" => MASK, "name" => "b"}];
        assert_eq!(call.body["fun_args"], recorded);
        assert_eq!(call.scrub("password=MARKER-4711 is wrong"), format!("password={MASK} is wrong"));
        assert_eq!(call.recorded_result(&list!["x MARKER-4711"]), Some(list![format!("x {MASK}")]));
        assert_eq!(call.recorded_result(&list!["x"]), None);
        let call = NewCall { has_secret_result: true, ..call };
        assert_eq!(call.recorded_result(&true.into()), Some(MASK.into()));
    }

    #[test]
    fn arguments_that_nest_too_deep_for_an_event_are_refused() {
        for (levels, refused) in [(MAX_LEVELS - 2, None), (MAX_LEVELS - 1, Some(TooDeep))] {
            let args = Args { positional: vec!["a/b".into(), levels::nested(levels)], keyword: Map::new() };
            let call = NewCall::new(&Mask::default(), Kind::Runner, "event.send", args, "root", Jid::new());
            assert_eq!(call.refused, refused, "{levels}");
        }
    }
}
