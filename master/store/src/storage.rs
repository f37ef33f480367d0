//! The parts of the master that block on a disk. Async code accesses them through [`Blocking`], which runs a closure on
//! the executor `disk`; code on threads that may block presents its `MayBlock` token.
//!
//! [`Blocking`]: brine_runtime::executors::Blocking

use std::sync::Arc;

use brine_config::{InvalidOption, MasterConfig};
use brine_returners::Returner;
use brine_system::files::FileError;

use crate::cache_banks::Banks;
use crate::keys::KeyStore;
use crate::large_returns::LargeReturns;
use crate::mines::Mines;
use crate::minion_data::MinionData;
use crate::plans::Plans;
use crate::queues::Queues;
use crate::sealed_arguments::SealedArguments;

/// The keys, files and tables of a master.
pub struct Storage {
    /// The keys of the minions.
    pub keys: Arc<KeyStore>,
    /// The file server.
    pub files: brine_fileserver::Roots,
    /// Grains and pillars.
    pub minion_data: MinionData,
    /// What minions publish for others.
    pub mines: Mines,
    /// The queues of `queue.*`.
    pub queues: Queues,
    /// Plans that need an approval.
    pub plans: Plans,
    /// Data that callers store with `cache.store`.
    pub banks: Banks,
    /// The job cache.
    pub job_cache: Arc<dyn Returner>,
    /// The space of returns that are too large for an event.
    pub large_returns: LargeReturns,
    /// The tokens of users.
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

/// Opens the file server of a configuration. Blocks: gitfs fetches its repositories.
///
/// # Errors
/// File server backends that cannot be used.
pub fn file_roots(config: &MasterConfig) -> Result<brine_fileserver::Roots, InvalidOption> {
    let options = brine_fileserver::Options {
        ignore_globs: config.file_ignore_glob.clone(),
        ignore_regexes: config.file_ignore_regex.clone(),
        follow_symlinks: config.fileserver_followsymlinks,
        ignore_symlinks: config.fileserver_ignoresymlinks,
    };
    brine_fileserver::configured(config.file_roots.clone(), &options, &config.opts, &config.cachedir)
        .map_err(|error| InvalidOption { option: "gitfs_remotes", reason: error.to_string() })
}
