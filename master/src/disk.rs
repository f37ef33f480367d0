//! The parts of the master that wait for a disk. Async code reaches them through `Shared::disk`, which runs a closure on
//! the executor `disk`; code on threads that may block shows its `MayBlock`.

use std::sync::Arc;

use brine_core::fileserver;
use brine_returners::Returner;

use crate::keys::KeyStore;
use crate::mine::Mines;
use crate::minion_data::MinionData;

/// What waits for a disk.
pub(crate) struct Disk {
    pub keys: Arc<KeyStore>,
    pub files: fileserver::Roots,
    pub minion_data: MinionData,
    pub mines: Mines,
    pub job_cache: Arc<dyn Returner>,
}

impl Disk {
    /// The minions that have joined.
    pub fn accepted(&self) -> Vec<String> {
        match self.keys.list(crate::keys::KeyState::Accepted) {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::error!(%error, "listing the accepted keys failed");
                Vec::new()
            }
        }
    }
}
