//! Custom outputters (`_output`): the function `output(data)` of `NAME.py` formats results for `--out=NAME`.
//!
//! Python is only started if a file may define the outputter or, with `python_fallback`, for an outputter of the
//! package `salt`.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use brine_config::MinionConfig;
use brine_config::opts::{master, shared};
use brine_function::Args;
use brine_jinja::{CustomCall, Functions};
use brine_master_custom::HostFunctions;
use brine_value::{Map, Value, map};

use super::host::{MasterHost, custom_module_options};
use crate::output::Outputter;

/// The type of these custom modules.
const KIND: &str = "output";

/// The custom outputters of a configuration.
pub struct CustomOutputters {
    /// The minion that runs them and its options; `None` if there cannot be any.
    minion: Option<(MinionConfig, Map)>,
    opts: Map,
    host: OnceLock<Arc<dyn Functions>>,
}

impl CustomOutputters {
    /// Creates the custom outputters for the `opts` of a master or minion. Checks which directories exist, and reads no
    /// file.
    pub fn new(config: &Map, color: bool) -> Self {
        let synced = shared::extension_modules(config).unwrap_or_else(|| master::cachedir(config).join("extmods"));
        let below = |directory: String| ["output", "_output"].map(|name| Path::new(&directory).join(name));
        let mut directories = [synced.join(KIND)]
            .into_iter()
            .chain(shared::module_dirs(config).into_iter().flat_map(below))
            .chain(shared::outputter_dirs(config).into_iter().map(PathBuf::from));
        let may_have_any = shared::python_fallback(config) || directories.any(|directory| directory.is_dir());
        let minion = || {
            let mut options = custom_module_options(config);
            options.insert("extension_modules".into(), synced.clone().into());
            let loaded = MinionConfig::load(Path::new("/nonexistent"), &options);
            let loaded = loaded.inspect_err(|error| tracing::warn!(%error, "loading custom outputters failed"));
            Some((loaded.ok()?.config, options))
        };
        let minion = if may_have_any { minion() } else { None };
        let mut opts = if minion.is_some() { config.clone() } else { Map::new() };
        opts.insert("color".into(), color.into());
        CustomOutputters { minion, opts, host: OnceLock::new() }
    }

    /// Returns a value formatted by a custom outputter; `None` if there is none of this name, or it fails, which is
    /// logged.
    pub fn display(&self, name: &str, value: &Value, retcode: i64) -> Option<String> {
        let (config, options) = self.minion.as_ref()?;
        let is_package = config.python_fallback && name.parse::<Outputter>().is_err();
        if !is_package && !brine_context::custom::has_file(config, KIND, name) {
            return None;
        }
        let host =
            self.host.get_or_init(|| MasterHost::with_options(options.clone(), self.opts.clone()).functions(None));
        let args = || Args { positional: vec![value.clone()], keyword: map! {"_retcode" => retcode} };
        let function = format!("{name}.output");
        match host.custom(&CustomCall { kind: KIND, function: &function, args: &args, opts: Map::new() })? {
            Ok(text) => Some(text.to_string().trim_end().to_owned()),
            Err(error) => {
                tracing::error!(outputter = name, %error, "a custom outputter failed");
                None
            }
        }
    }
}
