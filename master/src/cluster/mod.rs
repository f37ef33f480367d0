//! The membership of a master in a cluster (option `cluster`), if this build supports it: connects the crate
//! `brine-cluster` to the parts of this master.

#[cfg(not(feature = "cluster"))]
mod absent;
#[cfg(feature = "cluster")]
mod keys;
#[cfg(feature = "cluster")]
mod member;
mod ownership;
mod successor;

#[cfg(not(feature = "cluster"))]
pub(crate) use absent::{Members, Membership, Shared, SharedError, connect, settings};
#[cfg(feature = "cluster")]
pub(crate) use member::{Members, Membership, Shared, SharedError, connect, settings};

use std::sync::Arc;

use brine_reactor::Gate;

/// The name of the option.
const OPTION: &str = "cluster";

/// The gate of the reactor; a master without a cluster has none.
pub(crate) type OptionalGate = Option<Arc<dyn Gate>>;

/// The values that the members of a cluster share; a master without a cluster has none.
pub(crate) type OptionalShared = Option<Arc<Shared>>;

pub(crate) use ownership::{Owned, Ownership, StoreOutcome};
pub(crate) use successor::follow_members;

/// Whether this master does the work that only one member of a cluster does. Always true without a cluster.
pub(crate) fn is_leader(gate: &OptionalGate) -> bool {
    gate.as_ref().is_none_or(|gate| gate.is_leader())
}
