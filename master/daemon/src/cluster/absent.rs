//! Stub for builds without cluster support: the option `cluster` is rejected.

use std::sync::Arc;

use brine_bus::Bus;
use brine_bus::store::{BlockingStore, StoreError};
use brine_config::{InvalidOption, MasterConfig};
use brine_master_access::admission::sessions::Sessions;
use brine_master_facts::Facts;
use brine_master_jobs::Jobs;
use brine_master_store::keys::KeyStore;
use brine_master_store::shared::{OptionalGate, OptionalShared};
use brine_master_store::storage::Storage;
use brine_runtime::executors::{Blocking, Executor};
use brine_runtime::supervisor::Supervisor;

use super::OPTION;
use crate::StartError;

/// The settings of a cluster. Uninhabited in this build.
pub(crate) enum Settings {}

/// The connection to a cluster. Uninhabited in this build.
pub(crate) enum Link {}

/// Rejects the option `cluster` if it is set.
pub(crate) fn settings(config: &MasterConfig) -> Result<Option<Settings>, StartError> {
    if config.cluster.is_empty() {
        return Ok(None);
    }
    let reason = format!("this build has no clusters: {}", brine_config::remedy_of_missing("option", OPTION));
    Err(InvalidOption { option: OPTION, reason }.into())
}

/// Rejects the option `cluster` if it is set, and connects to nothing.
#[allow(clippy::unused_async, reason = "the signature of builds with clusters")]
pub(crate) async fn connect(config: &MasterConfig) -> Result<Option<Arc<Link>>, StartError> {
    settings(config).map(|_| None)
}

/// The membership in a cluster. Uninhabited in this build.
pub(crate) enum Membership {}

impl Membership {
    /// Opens the membership. Never called in this build.
    #[allow(clippy::unused_async, reason = "the signature of builds with clusters")]
    pub async fn open(
        link: Arc<Link>,
        _: (&Arc<Jobs>, &Arc<Sessions>, &Arc<KeyStore>),
        _: (&Arc<Facts>, &Blocking<Storage>),
        _: (&Bus, &BlockingStore, &Executor),
    ) -> Result<Self, StoreError> {
        match *link {}
    }

    /// Returns the gate of the reactor.
    pub fn gate(&self) -> OptionalGate {
        match *self {}
    }

    /// Returns the values that members share.
    pub fn shared(&self) -> OptionalShared {
        match *self {}
    }

    /// Starts the tasks of the membership.
    pub fn start(self, _: &mut Supervisor) {
        match self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_clusters_names_the_package_that_has_them() {
        let mut config = MasterConfig::default();
        assert!(settings(&config).is_ok());
        config.cluster.insert("name".into(), "c1".into());
        let error = settings(&config).err().unwrap().to_string();
        assert!(error.contains("this build has no clusters: install the package brine, or build with"), "{error}");
    }
}
