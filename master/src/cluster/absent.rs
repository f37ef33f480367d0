//! Builds without clusters: the option is refused.

use std::sync::Arc;

use brine_bus::Bus;
use brine_bus::store::{BlockingStore, StoreError};
use brine_config::MasterConfig;
use brine_runtime::executors::Executor;
use brine_runtime::supervisor::Supervisor;

use super::{OPTION, OptionalGate};
use crate::StartError;
use crate::admission::sessions::Sessions;
use crate::jobs::Jobs;
use crate::keys::KeyStore;

/// The settings of a cluster: there are none.
pub(crate) enum Settings {}

/// The connection to a cluster: there is none.
pub(crate) enum Link {}

/// Refuses the option.
pub(crate) fn settings(config: &MasterConfig) -> Result<Option<Settings>, StartError> {
    if config.cluster.is_empty() {
        return Ok(None);
    }
    let reason = "this build has no clusters: build with --features messaging".to_owned();
    Err(StartError::Config { option: OPTION, reason })
}

/// Connects to no cluster.
#[allow(clippy::unused_async, reason = "the signature of builds with clusters")]
pub(crate) async fn connect(config: &MasterConfig) -> Result<Option<Arc<Link>>, StartError> {
    settings(config).map(|_| None)
}

/// The membership: there is none.
pub(crate) enum Membership {}

impl Membership {
    /// Opens no membership.
    #[allow(clippy::unused_async, reason = "the signature of builds with clusters")]
    pub async fn open(
        link: Arc<Link>,
        _: (&Arc<Jobs>, &Arc<Sessions>, &Arc<KeyStore>),
        _: (&Bus, &BlockingStore, &Executor),
    ) -> Result<Self, StoreError> {
        match *link {}
    }

    /// Returns the gate of the reactor.
    pub fn gate(&self) -> OptionalGate {
        match *self {}
    }

    /// Starts the tasks of the membership.
    pub fn start(self, _: &mut Supervisor) {
        match self {}
    }
}
