//! Reactions: jobs for minions, and calls of runner, wheel and execution functions.

use brine_function::Args;
use brine_value::{Map, Value};

/// A reaction.
#[derive(Debug, Clone, PartialEq)]
pub enum Reaction {
    /// A job for minions.
    Local(LocalReaction),
    /// A call of a runner function.
    Runner {
        /// The function, such as `jobs.list_jobs`.
        fun: String,
        /// Its arguments.
        args: Args,
    },
    /// A call of a wheel function.
    Wheel {
        /// The function, such as `key.accept`.
        fun: String,
        /// Its arguments.
        args: Args,
    },
    /// A call of an execution function on the minion whose reactor this is.
    Caller {
        /// The function, such as `test.ping`.
        fun: String,
        /// Its arguments.
        args: Args,
    },
}

/// The options that a reaction of the type `local` may give its job, beside the target and the returners; all others are
/// arguments of the function.
pub(crate) const JOB_OPTIONS: [&str; 5] = ["metadata", "ret_config", "ret_kwargs", "module_executors", "executor_opts"];

/// A job for minions.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalReaction {
    /// The function, such as `state.highstate`.
    pub fun: String,
    /// The target.
    pub tgt: Value,
    /// The type of the target, such as `glob`.
    pub tgt_type: String,
    /// The function's arguments.
    pub args: Args,
    /// Returners that minions also return to, separated by commas.
    pub ret: String,
    /// Further options of the job: those of [`JOB_OPTIONS`].
    pub options: Map,
}

impl Reaction {
    /// Returns the full name, such as `local.state.highstate`.
    pub fn name(&self) -> String {
        format!("{}.{}", self.kind().as_str(), self.fun())
    }

    /// Returns the function, such as `state.highstate`.
    pub fn fun(&self) -> &str {
        match self {
            Reaction::Local(local) => &local.fun,
            Reaction::Runner { fun, .. } | Reaction::Wheel { fun, .. } | Reaction::Caller { fun, .. } => fun,
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Reaction::Local(_) => Kind::Local,
            Reaction::Runner { .. } => Kind::Runner,
            Reaction::Wheel { .. } => Kind::Wheel,
            Reaction::Caller { .. } => Kind::Caller,
        }
    }

    /// Returns the target and arguments for display.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        if let Reaction::Local(local) = self {
            map.insert("tgt".into(), local.tgt.clone());
            map.insert("tgt_type".into(), local.tgt_type.as_str().into());
            if !local.ret.is_empty() {
                map.insert("ret".into(), local.ret.as_str().into());
            }
            map.extend(local.options.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        let args = match self {
            Reaction::Local(local) => &local.args,
            Reaction::Runner { args, .. } | Reaction::Wheel { args, .. } | Reaction::Caller { args, .. } => args,
        };
        if !args.positional.is_empty() {
            map.insert("arg".into(), args.positional.clone().into());
        }
        if !args.keyword.is_empty() {
            map.insert("kwarg".into(), args.keyword.clone().into());
        }
        map.into()
    }
}

/// The type of a reaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Local,
    Runner,
    Wheel,
    Caller,
}

impl Kind {
    /// Parses the word in front of a function; `cmd` is an old name of `local`.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "local" | "cmd" => Kind::Local,
            "runner" => Kind::Runner,
            "wheel" => Kind::Wheel,
            "caller" => Kind::Caller,
            _ => return None,
        })
    }

    /// Returns the name of the type.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Local => "local",
            Kind::Runner => "runner",
            Kind::Wheel => "wheel",
            Kind::Caller => "caller",
        }
    }
}
