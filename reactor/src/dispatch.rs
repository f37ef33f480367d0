//! The trait that carries reactions out, and the cause that is recorded with each.

use std::sync::Arc;

use brine_ids::Jid;
use brine_value::{Map, map};
use futures::future::BoxFuture;

use crate::reaction::Reaction;
use crate::recovery::PriorDispatch;
use crate::routing_fields::DEPTH;

/// The cause of a reaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The sequence number of the event.
    pub seq: u64,
    /// The event's tag.
    pub tag: Arc<str>,
    /// The number of reactions from the first cause to this one, inclusive.
    pub depth: u64,
    /// The entry's pattern, or the rule's id.
    pub entry: Arc<str>,
    /// The SLS file.
    pub file: Arc<str>,
    /// The reaction's label within the file, such as `minion_add: wheel.key.accept`.
    pub reaction: Arc<str>,
    /// The dispatch of the same reaction before the restart, if there was one.
    pub prior: Option<PriorDispatch>,
    /// The job id to dispatch a job under that may not be recorded, or may have been dispatched without a record: minions
    /// run it once. `None` for a new one.
    pub jid: Option<Jid>,
}

impl Cause {
    /// Returns the fields that identify the reaction in the events of its job. Together they are its idempotency key.
    pub fn fields(&self) -> Map {
        let mut fields = self.short_fields();
        fields.extend(map! {"_entry" => &*self.entry, "_reaction" => &*self.reaction});
        fields
    }

    /// Returns the fields of the cause for events that carry their job id.
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

/// The error of a reaction that was not dispatched, or failed at once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DispatchError {
    /// The error, and what to do.
    pub message: String,
    /// Whether a retry may succeed.
    pub is_transient: bool,
}

impl DispatchError {
    /// Creates an error that is not retried.
    pub fn permanent(message: impl Into<String>) -> Self {
        DispatchError { message: message.into(), is_transient: false }
    }

    /// Creates an error that is retried.
    pub fn transient(message: impl Into<String>) -> Self {
        DispatchError { message: message.into(), is_transient: true }
    }
}

/// Carries out reactions.
pub trait Dispatch: Send + Sync + 'static {
    /// Validates a reaction without carrying it out.
    ///
    /// # Errors
    /// The reaction can never succeed, for example because its function is unknown.
    fn check(&self, reaction: &Reaction) -> Result<(), DispatchError>;

    /// Carries out a reaction: publishes the job, or calls the function and waits for its end. A reaction with
    /// `cause.prior` was dispatched before the restart and must not run twice.
    fn dispatch(&self, reaction: Reaction, cause: Cause) -> BoxFuture<'_, Result<Dispatched, DispatchError>>;
}
