//! Custom modules of a minion: Python files that were synced from the master or lie in directories of the
//! configuration. Their functions extend and replace the built-in ones.
//!
//! This module owns their directories and descriptions; `custom_calls` calls their functions.

use std::path::PathBuf;
use std::sync::Arc;

use brine_config::MinionConfig;
use brine_python::{Call, Described, Library, Settings, SettingsError};
pub use brine_python::{PythonError, warn_if_unused};
use brine_value::{Map, Value};
use parking_lot::Mutex;

/// Returns the additional directories of a type from the configuration.
type More = fn(&MinionConfig) -> &[String];

/// The types of modules that Python loads, each with the option for additional directories.
const KINDS: &[(&str, More)] = &[
    ("modules", |config| &config.module_dirs),
    ("states", |config| &config.states_dirs),
    ("utils", |config| &config.utils_dirs),
    ("grains", |config| &config.grains_dirs),
    ("pillar", |_| &[]),
    ("tops", |_| &[]),
    ("beacons", |_| &[]),
    ("returners", |config| &config.returner_dirs),
    ("renderers", |_| &[]),
    ("engines", |config| &config.engines_dirs),
    ("auth", |_| &[]),
    ("roster", |_| &[]),
    ("sdb", |_| &[]),
    ("output", |config| &config.outputter_dirs),
    ("executors", |_| &[]),
    ("matchers", |_| &[]),
    ("serializers", |_| &[]),
];

/// The types whose functions are called by name.
const CALLABLE_KINDS: &[&str] = &[
    "modules",
    "states",
    "pillar",
    "tops",
    "beacons",
    "returners",
    "renderers",
    "auth",
    "roster",
    "sdb",
    "output",
    "executors",
    "matchers",
    "serializers",
];

/// Makes a call of Python for the minion, outside of its jobs; returns `None` if the minion is gone.
pub type OutsideJobs = Box<dyn Fn(Call<'_>) -> Option<Result<Value, PythonError>> + Send + Sync>;

/// The custom modules of a minion.
pub struct CustomModules {
    pub(crate) library: Library,
    pub(crate) outside_jobs: OutsideJobs,
    /// The options that were passed to Python last.
    pub(crate) opts: Mutex<Vec<PassedOpts>>,
}

impl CustomModules {
    /// Creates the custom modules of a minion, which receive the events of the socket `events`. Reads nothing yet.
    pub fn new(config: &MinionConfig, events: PathBuf, outside_jobs: OutsideJobs) -> Arc<Self> {
        let settings = Settings::read(&config.python_host).unwrap_or_else(|error| {
            tracing::error!("{error}; using python3");
            Settings::default()
        });
        let settings = Settings { fallback: config.python_fallback, ..settings };
        let synced = extension_modules(config);
        let mut directories = Vec::new();
        for (kind, more) in KINDS {
            directories.extend(Library::directories(kind, &config.module_dirs, more(config), &synced));
        }
        let library = Library::new(settings, directories, CALLABLE_KINDS).with_events(events);
        Arc::new(CustomModules { library, outside_jobs, opts: Mutex::default() })
    }

    /// Creates custom modules that no minion calls: only their files can be listed.
    pub fn without_minion(config: &MinionConfig) -> Arc<Self> {
        Self::new(config, PathBuf::new(), Box::new(|_| None))
    }

    /// Rereads the directories: the next call of Python loads all files again.
    pub fn refresh(&self) {
        self.library.refresh();
    }

    /// Returns whether the Python process runs.
    pub fn is_running(&self) -> bool {
        self.library.is_running()
    }

    /// Returns the files of a type.
    pub fn files(&self, kind: &str) -> Vec<PathBuf> {
        self.library.files().of(kind).to_vec()
    }

    /// Returns whether a file of this type may have functions of a module. Does not start Python.
    pub fn may_have(&self, kind: &str, module: &str) -> bool {
        self.library.may_have(kind, Some(module))
    }

    /// Returns whether a file of this type has the name of a module. Does not start Python.
    pub fn has_file(&self, kind: &str, module: &str) -> bool {
        self.library.has_file(kind, module)
    }

    /// Returns whether a function of this full name is a custom one, by type (`modules` or `states`).
    pub fn has(&self, kind: &str, name: &str) -> bool {
        self.library.has(kind, name, |call| self.describe(call))
    }

    /// Returns whether a function of another type, such as `beacons`, is a custom one or, with `python_fallback`, one
    /// of the package `salt`.
    pub fn has_other(&self, kind: &'static str, name: &str) -> bool {
        self.has(kind, name) || self.library.is_in_package(kind, name, |call| self.describe(call))
    }

    /// Returns the error that keeps a module of this type from being loaded although it has a file; `None` if there is
    /// none.
    pub fn failure(&self, kind: &str, module: &str) -> Option<String> {
        self.library.failure(kind, module, |call| self.describe(call))
    }

    pub(crate) fn described(&self) -> Option<Arc<Described>> {
        self.library.described(|call| self.describe(call))
    }

    pub(crate) fn describe(&self, call: Call<'_>) -> Result<Value, PythonError> {
        (self.outside_jobs)(call).unwrap_or_else(|| Err(PythonError::Ended("the minion is gone".into())))
    }
}

/// The result of a serializer.
#[derive(Debug, Clone, PartialEq)]
pub struct Serialized {
    /// The text or bytes.
    pub content: Value,
    /// Whether the content is binary: nothing may be appended.
    pub is_binary: bool,
}

/// Options that are passed to functions: those of a run (empty: of the configuration), the `test` of the call, and both
/// merged.
pub(crate) type PassedOpts = (Arc<Map>, bool, Arc<Map>);

/// Returns whether custom modules of a type or, with `python_fallback`, the package `salt` may contain a module, before
/// a minion starts.
pub fn may_have(config: &MinionConfig, kind: &str, module: &str) -> bool {
    let is_in_package = config.python_fallback && kind != "renderers";
    is_in_package || CustomModules::without_minion(config).may_have(kind, module)
}

/// Returns whether a file of a type has the name of a module, before a minion starts.
pub fn has_file(config: &MinionConfig, kind: &str, module: &str) -> bool {
    CustomModules::without_minion(config).has_file(kind, module)
}

/// Logs the types of custom modules that have no effect.
pub fn warn_about_unused(config: &MinionConfig) {
    brine_python::warn_about_unused(&config.module_dirs, &extension_modules(config));
}

/// Returns the error of the option `python_host`, if it is invalid.
pub fn check(config: &MinionConfig) -> Option<SettingsError> {
    Settings::read(&config.python_host).err()
}

/// Returns the directory of the modules that are synced from the master.
pub fn extension_modules(config: &MinionConfig) -> PathBuf {
    config.extension_modules.clone().unwrap_or_else(|| config.cachedir.join("extmods"))
}
