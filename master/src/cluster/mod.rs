//! The membership of a master in a cluster (`cluster:`), if this build has it: the crate `brine-cluster` with the parts of
//! this master behind its interfaces.

#[cfg(not(feature = "cluster"))]
mod absent;
#[cfg(feature = "cluster")]
mod keys;
#[cfg(feature = "cluster")]
mod member;

#[cfg(not(feature = "cluster"))]
pub(crate) use absent::{Membership, connect, settings};
#[cfg(feature = "cluster")]
pub(crate) use member::{Membership, connect, settings};

use std::sync::Arc;

use brine_reactor::Gate;

/// The name of the option.
const OPTION: &str = "cluster";

/// The gate of the reactor; a master without a cluster has none.
pub(crate) type OptionalGate = Option<Arc<dyn Gate>>;

/// Returns whether this master does what only one member of a cluster does.
pub(crate) fn is_leader(gate: &OptionalGate) -> bool {
    gate.as_ref().is_none_or(|gate| gate.is_leader())
}
