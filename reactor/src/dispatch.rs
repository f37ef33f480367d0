//! Where reactions go.

use std::future::Future;
use std::sync::Arc;

use brine_value::{Map, map};

use crate::peek::DEPTH;
use crate::reaction::Reaction;
use crate::recover::HandedOver;

/// What led to a reaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The event's number.
    pub seq: u64,
    /// The event's tag.
    pub tag: Arc<str>,
    /// How many reactions lie between the event and the first cause of all, this one counted.
    pub depth: u64,
    /// The entry's pattern, or the rule's id.
    pub entry: Arc<str>,
    /// The SLS file.
    pub file: Arc<str>,
    /// Which reaction of the file, such as `minion_add: wheel.key.accept`.
    pub reaction: Arc<str>,
    /// Set if this reaction had been handed over before the master was restarted.
    pub before: Option<HandedOver>,
}

impl Cause {
    /// What the events that a reaction leads to say of it. Together the fields are its idempotency key.
    pub fn fields(&self) -> Map {
        let mut fields = self.short_fields();
        fields.extend(map! {"_entry" => &*self.entry, "_reaction" => &*self.reaction});
        fields
    }

    /// The same for events that have their job's id beside them.
    pub fn short_fields(&self) -> Map {
        map! {"_cause" => self.seq, DEPTH => self.depth, "_sls" => &*self.file}
    }
}

/// The result of a reaction that was dispatched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dispatched {
    /// The job was published, or the call has ended.
    Done,
    /// The target of the job matches no accepted minion: nothing was published.
    NoMinion {
        /// The target, with its type.
        target: String,
    },
}

/// Why a reaction was not handed over, or failed at once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DispatchError {
    /// What went wrong, and what to do.
    pub message: String,
    /// Whether it may pass: worth another try in a moment.
    pub passing: bool,
}

impl DispatchError {
    /// An error that stays.
    pub fn lasting(message: impl Into<String>) -> Self {
        DispatchError { message: message.into(), passing: false }
    }

    /// An error that may pass.
    pub fn passing(message: impl Into<String>) -> Self {
        DispatchError { message: message.into(), passing: true }
    }
}

/// Where reactions go.
pub trait Dispatch: Send + Sync + 'static {
    /// Says what is wrong with a reaction that cannot be done at all: an unknown function.
    fn check(&self, reaction: &Reaction) -> Result<(), DispatchError>;

    /// Does a reaction: publishes the job, or calls the function and waits for its end. A reaction that
    /// was handed over before is known by `cause.before`, and must not be done twice.
    fn dispatch(
        &self,
        reaction: Reaction,
        cause: Cause,
    ) -> impl Future<Output = Result<Dispatched, DispatchError>> + Send;
}
