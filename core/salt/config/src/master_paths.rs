//! Paths of a master that follow from its options.

use std::path::PathBuf;

use crate::MasterConfig;

impl MasterConfig {
    /// Returns the path of the store: journal, job cache, minion data.
    pub fn store_path(&self) -> PathBuf {
        self.cachedir.join("brine.redb")
    }

    /// Returns the path of the copy of the store that is made for a backup.
    pub fn snapshot_path(&self) -> PathBuf {
        self.cachedir.join("backup.redb")
    }

    /// Returns the directory of the custom modules that are synced from the file server.
    pub fn extension_modules(&self) -> PathBuf {
        self.extension_modules.clone().unwrap_or_else(|| self.cachedir.join("extmods"))
    }
}
