//! The membership of a master in a cluster (option `cluster`), if this build supports it: connects the crate
//! `brine-cluster` to the parts of this master.

#[cfg(not(feature = "cluster"))]
mod absent;
#[cfg(feature = "cluster")]
mod keys;
#[cfg(feature = "cluster")]
mod member;
mod successor;

#[cfg(not(feature = "cluster"))]
pub(crate) use absent::{Membership, connect, settings};
#[cfg(feature = "cluster")]
pub(crate) use member::{Membership, connect, settings};
pub(crate) use successor::follow_members;

/// The name of the option.
const OPTION: &str = "cluster";
