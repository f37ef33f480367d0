//! What an engine gets from its daemon.

use brine_value::Map;
use futures::future::BoxFuture;

use crate::PublishError;

/// The daemon of an engine, which publishes its events.
pub trait Publisher: Send + Sync {
    /// Returns the id of the daemon.
    fn id(&self) -> &str;

    /// Returns the maximum size of an event, in bytes.
    fn max_event_size(&self) -> usize;

    /// Publishes an event.
    ///
    /// # Errors
    /// The event is not accepted.
    fn publish(&self, tag: String, data: Map) -> BoxFuture<'_, Result<(), PublishError>>;
}
