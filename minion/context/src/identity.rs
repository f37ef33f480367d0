//! The id of a minion, and errors of its creation.

use brine_config::MinionConfig;
use brine_ids::MinionId;
use brine_system::files::{self, FileError};

/// The file below `pki_dir` with the public key of the master.
pub const MASTER_KEY: &str = "minion_master.pub";

/// The error of creating a minion.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The id in the configuration is invalid.
    #[error("option 'id': {0}")]
    Id(#[from] brine_ids::InvalidMinionId),
    /// The file `minion_id` cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The repositories of the file server are invalid.
    #[error(transparent)]
    Gitfs(#[from] brine_fileserver::GitError),
    /// A file with more options (`localconfig`) cannot be used.
    #[error(transparent)]
    Config(#[from] brine_config::ConfigError),
}

/// Returns the id in the configuration, or in `minion_id` in its directory, or the host's name.
pub fn minion_id(config: &MinionConfig) -> Result<MinionId, SetupError> {
    if let Some(id) = &config.id {
        return Ok(id.parse()?);
    }
    if let Some(id) = files::read_if_exists(config.config_dir.join("minion_id"))? {
        return Ok(id.trim().parse()?);
    }
    let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    Ok(name.unwrap_or_else(|| "localhost".into()).parse()?)
}
