//! The traits for access to the master and to files. Their implementations block on the runtime.

use std::io::Write;
use std::time::Duration;

use brine_value::{Map, Value, map};

use crate::upstream_errors::{FetchError, UpstreamError};

/// Files under `salt://`, from the master or from this host.
pub trait FileClient: Send + Sync {
    /// Returns the content of a file; `None` if the environment has no such file. `path` is without `salt://`.
    fn read(&self, path: &str, saltenv: &str) -> Result<Option<Vec<u8>>, FetchError>;
    /// Writes the content of a file. Returns false if the environment has no such file. After an error, the written
    /// content is incomplete.
    fn fetch(&self, path: &str, saltenv: &str, into: &mut dyn Write) -> Result<bool, FetchError> {
        let Some(content) = self.read(path, saltenv)? else { return Ok(false) };
        let failed = |source| FetchError::Write { path: path.to_owned(), source };
        into.write_all(&content).map(|()| true).map_err(failed)
    }
    /// Returns the hash of a file in hexadecimal, of the server's type (`hash_type`); `None` if the environment has no
    /// such file.
    fn hash(&self, path: &str, saltenv: &str) -> Result<Option<String>, FetchError>;
    /// Returns the mode of a file on the server; `None` if it is unknown.
    fn mode(&self, _path: &str, _saltenv: &str) -> Result<Option<u32>, FetchError> {
        Ok(None)
    }
    /// Returns all files of an environment, sorted.
    fn list(&self, saltenv: &str) -> Result<Vec<String>, FetchError>;
    /// Whether an environment has a file; `None` if only a list of all files could answer this.
    fn holds(&self, _path: &str, _saltenv: &str) -> Option<bool> {
        None
    }
    /// Returns all directories of an environment, sorted.
    fn directories(&self, saltenv: &str) -> Result<Vec<String>, FetchError>;
    /// Returns the empty directories of an environment, sorted.
    fn empty_directories(&self, saltenv: &str) -> Result<Vec<String>, FetchError>;
    /// Returns the symbolic links of an environment and their targets.
    fn links(&self, saltenv: &str) -> Result<Map, FetchError>;
    /// Returns all environments.
    fn environments(&self) -> Result<Vec<String>, FetchError>;
    /// Returns options of the master that states need: `state_top`, `nodegroups`, `renderer`, ...
    fn master_opts(&self) -> Result<Map, FetchError>;
}

/// An event for the master's bus.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MasterEvent {
    /// Its tag.
    pub tag: String,
    /// The field `data` of its body.
    pub data: Value,
    /// Further fields of its body beside `data`, such as the `jid` of a state's event. They override `id`, `tag` and
    /// `cmd`, and replace Salt's `pretag`.
    pub extra_fields: Option<Map>,
    /// The timeout of sending it; `request_timeout` if `None`.
    pub timeout: Option<Duration>,
}

impl MasterEvent {
    /// Creates an event with only data.
    pub fn new(tag: &str, data: impl Into<Value>) -> Self {
        MasterEvent { tag: tag.to_owned(), data: data.into(), ..Self::default() }
    }

    /// Returns the request to the master, with the sender and the body.
    pub fn request(&self, id: &str) -> Map {
        let mut load = map! {"id" => id, "tag" => &self.tag, "data" => self.data.clone(), "cmd" => "_minion_event"};
        load.extend(self.extra_fields.clone().unwrap_or_else(|| map! {"pretag" => Value::Nil}));
        load
    }
}

/// The link to the master, for events and pillar.
pub trait Upstream: Send + Sync {
    /// Whether there is a master. Without one, events of states are dropped and `event.send` publishes locally.
    fn has_master(&self) -> bool;
    /// Whether the mine can be read: with a master, and with `salt-ssh`, which queries the other hosts.
    fn has_mine(&self) -> bool {
        self.has_master()
    }
    /// Publishes an event on the master's bus. Returns when the master has accepted it.
    fn fire_master(&self, event: MasterEvent) -> Result<(), UpstreamError>;
    /// Returns a freshly rendered pillar, with `override_pillar` merged over it.
    fn pillar(
        &self,
        saltenv: Option<&str>,
        pillarenv: Option<&str>,
        override_pillar: &Map,
    ) -> Result<Map, UpstreamError>;
    /// Returns a freshly rendered pillar with a further entry of `ext_pillar`, and `override_pillar` merged over it.
    fn pillar_with(&self, external: &Map, override_pillar: &Map) -> Result<Map, UpstreamError>;
    /// Returns a freshly rendered pillar, even if the master caches pillars.
    fn refreshed_pillar(&self, saltenv: Option<&str>, pillarenv: Option<&str>) -> Result<Map, UpstreamError> {
        self.pillar(saltenv, pillarenv, &Map::new())
    }
    /// Returns the master's publish port, once a session has begun.
    fn publish_port(&self) -> Option<u16> {
        None
    }
    /// Whether functions mask values of the pillar, as with masters of Salt 3008 and later and of Brine.
    fn masks_pillar(&self) -> bool {
        true
    }
    /// Returns the SLS files that `master_tops` assigns to a minion with these options, by environment.
    fn master_tops(&self, opts: Map) -> Result<Map, UpstreamError> {
        match self.ask(brine_value::map! {"cmd" => "_master_tops", "opts" => opts})? {
            Value::Map(assigned) => Ok(assigned),
            _ => Ok(Map::new()),
        }
    }
    /// Sends a command to the master and returns its reply.
    fn ask(&self, load: Map) -> Result<Value, UpstreamError> {
        let command = load.get("cmd").map(ToString::to_string).unwrap_or_default();
        Err(UpstreamError::NoMaster { command, reason: "no master is configured; set the option 'master'" })
    }
}
