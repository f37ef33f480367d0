//! The execution functions and grains of the master's own host, for templates on the master.

use std::sync::{Arc, OnceLock};

use brine_core::config::{MasterConfig, MinionConfig};
use brine_core::function::Args;
use brine_core::{Jid, Map, Value, map};
use brine_master::HostFunctions;
use brine_minion::context::{Context, Job, Minion};
use brine_minion::daemon::masterless;

/// A minion without a master, made when a template first wants something of it.
pub struct OwnHost {
    config: Map,
    minion: OnceLock<Result<Arc<Minion>, String>>,
}

impl OwnHost {
    /// The host of a master with this configuration.
    pub fn new(config: &MasterConfig) -> Self {
        let mut given = map! {
            "id" => config.id.clone(),
            "root_dir" => config.root_dir.clone(),
            "cachedir" => config.cachedir.join("host"),
            "pki_dir" => config.pki_dir.clone(),
            "sock_dir" => config.sock_dir.clone(),
            "file_client" => "local",
            "file_roots" => config.file_roots.clone(),
        };
        // The master renders pillar itself: its own host has none.
        given.insert("pillar_roots".into(), map! {"base" => Vec::<Value>::new()}.into());
        OwnHost { config: given, minion: OnceLock::new() }
    }

    fn minion(&self) -> Result<&Arc<Minion>, String> {
        let made = self.minion.get_or_init(|| {
            let nowhere = std::path::Path::new("/nonexistent");
            let loaded = MinionConfig::load(nowhere, &self.config).map_err(|error| error.to_string())?;
            masterless(loaded.config).map_err(|error| error.to_string())
        });
        made.as_ref().map_err(Clone::clone)
    }
}

impl HostFunctions for OwnHost {
    fn call(&self, function: &str, args: Args) -> Result<Value, String> {
        let minion = Arc::clone(self.minion()?);
        let job = Arc::new(Job::local(&Jid::new(), function, &args));
        let context = Context { minion, job, in_template: true, run_pillar: None };
        context.call(function, args).map_err(|error| error.to_string())
    }

    fn has(&self, function: &str) -> bool {
        brine_minion::modules::has(function)
    }

    fn grains(&self) -> Arc<Map> {
        match self.minion() {
            Ok(minion) => Arc::clone(&minion.grains.read()),
            Err(error) => {
                tracing::error!(error, "the grains of the master's host cannot be collected");
                Arc::default()
            }
        }
    }
}
