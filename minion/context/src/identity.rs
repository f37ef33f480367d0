//! The id of a minion, and errors of its creation.

use brine_config::MinionConfig;
use brine_ids::MinionId;
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
    if let Some(id) = &config.id {
        return Ok(id.parse()?);
    }
    if let Some(id) = files::read_if_exists(config.config_dir.join("minion_id"))? {
        return Ok(id.trim().parse()?);
    }
    let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    Ok(of_host(config, &name.unwrap_or_else(|| "localhost".into())).parse()?)
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
mod tests {
    use brine_value::map;

    use super::*;

    #[test]
    fn the_host_name_becomes_the_id_as_in_salt() {
        for (name, lower, domain, id) in [
            ("Web1.Example.com", false, Value::Bool(false), "Web1.Example.com"),
            ("Web1.Example.com", true, Value::Bool(false), "web1.example.com"),
            ("Web1.Example.com", false, Value::Bool(true), "Web1"),
            ("Web1.Example.com", false, "example.com".into(), "Web1"),
            ("web1.eu.example.com", true, "example.com".into(), "web1.eu"),
            ("web1.example.com", false, "other.com".into(), "web1.example.com"),
            ("web1example.com", false, "example.com".into(), "web1example.com"),
            ("example.com", false, "example.com".into(), "example.com"),
            ("w\u{e9}b.example.com", false, "example.com".into(), "w\u{e9}b"),
            ("web1", false, Value::Bool(true), "web1"),
            ("web1", false, "".into(), "web1"),
        ] {
            let given = map! {"minion_id_lowercase" => lower, "minion_id_remove_domain" => domain.clone()};
            let config = MinionConfig::load(std::path::Path::new("/nonexistent"), &given).unwrap().config;
            assert_eq!(of_host(&config, name), id, "{name} {lower} {domain}");
        }
    }
}
