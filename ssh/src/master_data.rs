//! Answers the requests of a host during a call from local files and pillars. A host receives only the pillar of its
//! own id, and no file outside of `file_roots`.

use std::sync::{Arc, OnceLock};

use brine_config::{MasterConfig, master_template_opts};
use brine_digest::{Digest, hex};
use brine_fileserver::Roots;
use brine_ids::MinionId;
use brine_jinja::Host as Functions;
use brine_master_custom::HostFunctions;
use brine_master_store::file_requests;
use brine_sls::master_tops;
use brine_sls::pillar::{PillarRequest, PillarSource};
use brine_value::{Map, Value, map};
use brine_wire::MinionCommand;

use crate::SshError;

/// The source of files, pillars and options, as configured for the master. All methods block.
pub struct MasterData {
    config: Arc<MasterConfig>,
    files: Roots,
    pillar: PillarSource,
    host: Arc<dyn HostFunctions>,
    /// Listed for the first host that is called.
    modules: OnceLock<Map>,
}

impl MasterData {
    /// Opens the file server of a configuration. `host` has the functions for templates.
    ///
    /// # Errors
    /// File server backends that cannot be used.
    pub fn open(config: Arc<MasterConfig>, host: Arc<dyn HostFunctions>) -> Result<Self, SshError> {
        let config = with_list_nodegroups(config);
        let files =
            brine_master_store::storage::file_roots(&config).map_err(|error| SshError::Config(error.to_string()))?;
        files.update();
        let pillar = PillarSource::new(Arc::new(master_template_opts(&config)));
        Ok(MasterData { config, files, pillar, host, modules: OnceLock::new() })
    }

    /// Returns the custom modules of the file server: their environments (`saltenv`) and the `digest` of all, which is
    /// empty without modules. A host whose digest differs copies them.
    pub(crate) fn modules(&self) -> &Map {
        self.modules.get_or_init(|| modules(&self.files))
    }

    /// Answers a request of this host. Commands that only a minion may send are answered with nil.
    pub(crate) fn answer(&self, id: &MinionId, load: Map) -> Value {
        let command = match MinionCommand::from_map(load) {
            Ok(command) => command,
            Err(error) => {
                tracing::warn!(host = %id, %error, "a request of a host is refused");
                return Value::Nil;
            }
        };
        match command {
            MinionCommand::Pillar {
                mut grains, saltenv, pillarenv, pillar_override, ext, extra_minion_data, ..
            } => {
                grains.insert("id".into(), id.into());
                let grains = Arc::new(grains);
                let request = PillarRequest {
                    id,
                    grains: &grains,
                    saltenv: saltenv.as_deref(),
                    pillarenv: pillarenv.as_deref(),
                    pillar_override: &pillar_override,
                    on_demand: ext.as_ref(),
                    extra_minion_data: &extra_minion_data,
                    functions: Some(self.functions(Some(&grains))),
                };
                self.pillar.render(&request).into()
            }
            MinionCommand::MasterTops { mut opts } => {
                opts.insert("id".into(), id.into());
                master_tops::assigned(&self.config.opts, &opts, &self.functions(None)).into()
            }
            MinionCommand::MasterOpts { env_only } => file_requests::master_opts(&self.config, &self.files, env_only),
            command => file_requests::answer(&self.files, id, command),
        }
    }

    /// Returns the template functions for a host with these grains.
    pub fn functions(&self, grains: Option<&Arc<Map>>) -> Functions {
        Functions::new().with_functions(self.host.functions(grains.cloned()))
    }
}

/// Lists the files below `_modules`, `_states` and the like in all environments.
fn modules(files: &Roots) -> Map {
    let (mut listed, mut environments) = (String::new(), Vec::new());
    for saltenv in files.envs() {
        let own = files.custom_modules(&saltenv);
        for path in &own {
            // A file that cannot be read is reported when the host asks for it.
            let hash = files.hash(path, &saltenv).ok().flatten().unwrap_or_default();
            listed += &format!("{saltenv}/{path}={hash}\n");
        }
        if !own.is_empty() {
            environments.push(saltenv);
        }
    }
    let digest = if listed.is_empty() { String::new() } else { hex(Digest::Sha256.of(listed.as_bytes())) };
    map! {"saltenv" => environments, "digest" => digest}
}

/// Returns the node groups of the configuration, and over them the lists of hosts of `ssh_list_nodegroups`.
pub fn nodegroups(config: &MasterConfig) -> Map {
    let mut groups = config.nodegroups.clone();
    for (name, ids) in &config.ssh_list_nodegroups {
        let ids = match ids {
            Value::List(ids) => ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
            other => other.to_string(),
        };
        groups.insert(name.clone(), format!("L@{ids}").into());
    }
    groups
}

/// Adds the groups of `ssh_list_nodegroups` to the node groups for top files.
fn with_list_nodegroups(config: Arc<MasterConfig>) -> Arc<MasterConfig> {
    if config.ssh_list_nodegroups.is_empty() {
        return config;
    }
    let mut config = Arc::unwrap_or_clone(config);
    config.nodegroups = nodegroups(&config);
    config.opts.insert("nodegroups".into(), config.nodegroups.clone().into());
    Arc::new(config)
}
