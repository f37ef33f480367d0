//! The settings of a syndic: those of the local master, and those of the minion under whose id it connects upstream.

use std::path::PathBuf;
use std::sync::Arc;

use brine_agent::channel::{Address, ChannelError};
use brine_config::{MasterConfig, MinionConfig};
use brine_context::{SetupError, minion_id};
use brine_ids::MinionId;
use brine_runtime::executors::ExecutorError;
use brine_system::files::FileError;

/// The error that stops a syndic.
#[derive(Debug, thiserror::Error)]
pub enum SyndicError {
    /// No upstream master is configured.
    #[error("option 'syndic_master' is missing: set it to the address of the upstream master")]
    NoMaster,
    /// An option has a value that is not supported.
    #[error("option 'syndic_mode': expected 'sync' or 'cluster', got '{0}'")]
    BadMode(String),
    /// The id of the syndic is invalid.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A key cannot be used.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// A file or directory cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The start panicked.
    #[error(transparent)]
    Executor(#[from] ExecutorError),
    /// An essential task has ended.
    #[error("the syndic stops: one of its tasks failed, see the log")]
    TaskFailed,
}

/// The events that a syndic forwards (`syndic_mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// All events and returns.
    Sync,
    /// Only events and returns of jobs of the upstream masters.
    Cluster,
}

/// The settings of a syndic.
#[derive(Debug)]
pub struct Settings {
    /// The id, shared with the minion of this host.
    pub(crate) id: MinionId,
    pub(crate) master: MasterConfig,
    pub(crate) minion: Arc<MinionConfig>,
    /// The upstream masters.
    pub(crate) upstream: Vec<Address>,
    pub(crate) mode: Mode,
    /// The file with the local master's key for command-line tools.
    pub(crate) key_file: PathBuf,
}

impl Settings {
    /// Combines the configurations of the master and the minion of this host, as in Salt: identity and key are the
    /// minion's, everything else is the master's. `key_file` contains the key with which local tools publish.
    ///
    /// # Errors
    /// No upstream master is configured, or the id is invalid.
    pub fn new(master: MasterConfig, mut minion: MinionConfig, key_file: PathBuf) -> Result<Self, SyndicError> {
        // Salt's default value is a placeholder.
        if master.syndic_master.is_empty() || master.syndic_master == ["masterofmasters"] {
            return Err(SyndicError::NoMaster);
        }
        let mode = match master.syndic_mode.as_str() {
            "sync" => Mode::Sync,
            "cluster" => Mode::Cluster,
            other => return Err(SyndicError::BadMode(other.to_owned())),
        };
        let id = minion_id(&minion)?;
        minion.master_port = master.syndic_master_port.unwrap_or(minion.master_port);
        // `publish_port` is the port of the local master, not of the upstream ones.
        minion.publish_port = None;
        if master.syndic_finger.is_some() {
            minion.master_finger.clone_from(&master.syndic_finger);
        }
        minion.set_masters(master.syndic_master.clone());
        let upstream = minion.masters().into_iter().map(|(host, port)| Address { host, port }).collect();
        Ok(Settings { id, master, minion: Arc::new(minion), upstream, mode, key_file })
    }

    /// Returns the directory of the syndic's persistent state.
    pub(crate) fn directory(&self) -> PathBuf {
        self.master.cachedir.join("syndic")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstream_masters_have_their_own_ports() {
        let master = |hosts: &[&str], port| MasterConfig {
            syndic_master: hosts.iter().map(|host| (*host).to_owned()).collect(),
            syndic_master_port: port,
            ..MasterConfig::default()
        };
        let minion = || MinionConfig {
            id: Some("s1".into()),
            master_port: 5506,
            publish_port: Some(5505),
            ..Default::default()
        };
        for (hosts, port, expected) in [
            (&["a"][..], None, "a:5506"),
            (&["a", "b:99"], Some(4506), "a:4506 b:99"),
            (&["a:99", "b"], Some(4506), "a:99 b:4506"),
        ] {
            let settings = Settings::new(master(hosts, port), minion(), PathBuf::new()).unwrap();
            let upstream: Vec<String> = settings.upstream.iter().map(ToString::to_string).collect();
            assert_eq!((upstream.join(" ").as_str(), settings.minion.publish_port), (expected, None));
        }
        for hosts in [&[][..], &["masterofmasters"]] {
            let refused = Settings::new(master(hosts, None), minion(), PathBuf::new());
            assert!(matches!(refused, Err(SyndicError::NoMaster)));
        }
        let wrong = MasterConfig { syndic_mode: "half".into(), ..master(&["a"], None) };
        assert!(matches!(Settings::new(wrong, minion(), PathBuf::new()), Err(SyndicError::BadMode(_))));
    }
}
