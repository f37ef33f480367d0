//! The parts of the master that block on a disk. Async code accesses them through [`Blocking`], which runs a closure on
//! the executor `disk`; code on threads that may block presents its `MayBlock` token.
//!
//! [`Blocking`]: brine_runtime::executors::Blocking

use std::sync::Arc;

use brine_returners::Returner;
use brine_system::files::FileError;

use crate::cache_banks::Banks;
use crate::keys::KeyStore;
use crate::large_returns::LargeReturns;
use crate::mines::Mines;
use crate::minion_data::MinionData;
use crate::queues::Queues;
use crate::sealed_arguments::SealedArguments;

/// The keys, files and tables of a master.
pub(crate) struct Storage {
    pub keys: Arc<KeyStore>,
    pub files: brine_fileserver::Roots,
    pub minion_data: MinionData,
    pub mines: Mines,
    pub queues: Queues,
    /// Data that callers store with `cache.store`.
    pub banks: Banks,
    pub job_cache: Arc<dyn Returner>,
    pub large_returns: LargeReturns,
    pub tokens: brine_auth::TokenStore,
    /// The real arguments of recent jobs that are masked elsewhere.
    pub sealed_arguments: Arc<SealedArguments>,
}

impl Storage {
    /// Returns the ids of the accepted minions.
    ///
    /// # Errors
    /// The keys cannot be listed, for example because too many files are open. That must not be mistaken for a fleet
    /// without minions: jobs would be dropped, and rules about targets would hold for every target.
    pub fn accepted(&self) -> Result<Vec<String>, FileError> {
        let accepted = self.keys.list(crate::keys::KeyState::Accepted);
        accepted.inspect_err(|error| tracing::error!(%error, "listing the accepted keys failed"))
    }
}
