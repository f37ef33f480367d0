//! What a wheel function is given: the keys of the minions, and the services of the master beyond them.

use std::path::PathBuf;
use std::sync::Arc;

use brine_config::Roots;
use brine_function::{Args, CallError, CallResult};
use brine_master_store::keys::KeyStore;
use brine_value::Map;

/// The services of wheel functions: those of a running master, or of `salt-key` when it changes the directories itself.
pub trait WheelHost: Send + Sync {
    /// Publishes an event.
    fn fire(&self, tag: &str, body: &Map);

    /// Replaces the publish key, if `rotate_aes_key` permits it, so that a removed minion cannot decrypt further
    /// publishes.
    fn rotate_key(&self);

    /// Returns the caller for the log: a user, or a reaction.
    fn actor(&self) -> String;

    /// Sets the retcode of the call; without effect without a running master.
    fn set_retcode(&self, _retcode: i64) {}

    /// Returns the options of the master, with its id; empty without a running master.
    fn options(&self) -> Map {
        Map::new()
    }

    /// Returns the directories of the file server by environment; empty without a running master.
    fn file_roots(&self) -> Roots {
        Roots::default()
    }

    /// Returns the directories of the pillar by environment; empty without a running master.
    fn pillar_roots(&self) -> Roots {
        Roots::default()
    }

    /// Returns the directory of the configuration files; `None` without a running master.
    fn config_dir(&self) -> Option<PathBuf> {
        None
    }

    /// Calls a function of a custom wheel module. There are none without a running master.
    fn custom(&self, function: &str, _args: Args) -> CallResult {
        Err(CallError::NotAvailable(function.to_owned()))
    }

    /// Returns the sorted ids of the connected minions; empty without a running master.
    fn connected(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The context of wheel functions.
pub struct WheelContext {
    /// The minions' keys.
    pub keys: Arc<KeyStore>,
    /// Whether the caller is an operator. Reactions do not accept keys of ids with special characters.
    pub attended: bool,
    /// The services of the master.
    pub host: Arc<dyn WheelHost>,
}
