//! The id of a minion, and errors of its creation.

use std::path::PathBuf;

use brine_config::MinionConfig;
use brine_ids::{MinionId, with_domain};
use brine_system::files::{self, FileError};
use brine_value::Value;

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
    if let Some(id) = known_id(config)? {
        return Ok(id);
    }
    let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    id_of_name(config, &name.unwrap_or_else(|| "localhost".into()))
}

/// Returns the id in the configuration, or, with `minion_id_caching`, in `minion_id` in its directory.
pub fn known_id(config: &MinionConfig) -> Result<Option<MinionId>, SetupError> {
    if let Some(id) = &config.id {
        return Ok(Some(with_domain(id, &config.append_domain).parse()?));
    }
    if !config.minion_id_caching {
        return Ok(None);
    }
    let stored = files::read_if_exists(id_file(config))?.unwrap_or_default();
    // As in Salt: the first line, without a byte order mark. `localhost` identifies no host.
    let id = stored.lines().next().unwrap_or_default().trim().trim_start_matches('\u{feff}');
    Ok(if ["", "localhost"].contains(&id) { None } else { Some(with_domain(id, &config.append_domain).parse()?) })
}

/// Stores a generated id, which [`known_id`] returns from then on. Blocks.
///
/// # Errors
/// The file cannot be written.
pub fn store_id(config: &MinionConfig, id: &MinionId) -> Result<(), FileError> {
    files::write_atomic(id_file(config), id.as_str().as_bytes(), 0o644)
}

fn id_file(config: &MinionConfig) -> PathBuf {
    config.config_dir.join("minion_id")
}

/// Returns the id of a host with this name, by `minion_id_lowercase`, `minion_id_remove_domain` and `append_domain`.
pub fn id_of_name(config: &MinionConfig, name: &str) -> Result<MinionId, SetupError> {
    Ok(with_domain(&of_host(config, name), &config.append_domain).parse()?)
}

/// Applies `minion_id_lowercase` and `minion_id_remove_domain` to a host name.
fn of_host(config: &MinionConfig, name: &str) -> String {
    let name = if config.minion_id_lowercase { name.to_lowercase() } else { name.to_owned() };
    let host = match &config.minion_id_remove_domain {
        Value::Bool(true) => name.split('.').next(),
        Value::Str(domain) if !domain.is_empty() => {
            let start = name.len().checked_sub(domain.len() + 1);
            let ends = |start: &usize| {
                let end = name.get(*start..).and_then(|end| end.strip_prefix('.'));
                end.is_some_and(|end| end.eq_ignore_ascii_case(domain))
            };
            start.filter(ends).and_then(|start| name.get(..start))
        }
        _ => None,
    };
    host.filter(|host| !host.is_empty()).unwrap_or(&name).to_owned()
}

#[cfg(test)]
mod tests;
