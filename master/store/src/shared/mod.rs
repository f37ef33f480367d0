//! The values that the members of a cluster share, and the ownership of work among them. A master without a cluster has
//! none of them.

#[cfg(not(feature = "cluster"))]
mod absent;
mod ownership;

use std::sync::Arc;

use brine_reactor::Gate;

#[cfg(not(feature = "cluster"))]
pub use absent::{Members, Shared, SharedError};
#[cfg(feature = "cluster")]
pub use brine_cluster::{Members, Shared, SharedError};
pub use ownership::{Owned, Ownership, StoreOutcome};

/// The gate of the reactor; a master without a cluster has none.
pub type OptionalGate = Option<Arc<dyn Gate>>;

/// The values that the members of a cluster share; a master without a cluster has none.
pub type OptionalShared = Option<Arc<Shared>>;

/// Whether this master does the work that only one member of a cluster does. Always true without a cluster.
pub fn is_leader(gate: &OptionalGate) -> bool {
    gate.as_ref().is_none_or(|gate| gate.is_leader())
}
