//! Custom modules of a minion: Python files that were synced from the master or lie in directories of the
//! configuration. Their functions extend and replace the built-in ones.
//!
//! | file | owns |
//! |---|---|
//! | `mod.rs` | the directories, and the functions in the registries |
//! | `call.rs` | calls of functions, grains and `#!py` files |
//! | `serializers.rs` | calls of serializers |
//! | `returned.rs` | the check of the results of state functions |

mod call;
mod returned;
mod serializers;

use std::path::PathBuf;
use std::sync::{Arc, Weak};

use brine_config::MinionConfig;
use brine_function::{Binder, CallResult, Function, Overlay};
use brine_python::{Call, Described, Functions, Library, Settings};
pub use brine_python::{PythonError, warn_if_unused};
use brine_value::{Map, Value};
use parking_lot::Mutex;
pub use serializers::Serialized;

use crate::{Context, Minion, StateContext};

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

/// The custom modules of a minion.
pub struct CustomModules {
    library: Library,
    minion: Weak<Minion>,
    /// The options that were passed to Python last.
    opts: Mutex<Vec<PassedOpts>>,
}

impl CustomModules {
    /// Creates the custom modules of a minion, which receive the events of the socket `events`. Reads nothing yet.
    pub fn new(config: &MinionConfig, events: PathBuf, minion: Weak<Minion>) -> Arc<Self> {
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
        Arc::new(CustomModules { library, minion, opts: Mutex::default() })
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

    fn described(&self) -> Option<Arc<Described>> {
        self.library.described(|call| self.describe(call))
    }

    fn describe(&self, call: Call<'_>) -> Result<Value, PythonError> {
        let minion = self.minion.upgrade().ok_or_else(|| PythonError::Ended("the minion is gone".into()))?;
        self.run(&minion, call)
    }
}

/// Options that are passed to functions: those of a run (empty: of the configuration), the `test` of the call, and both
/// merged.
type PassedOpts = (Arc<Map>, bool, Arc<Map>);

/// Returns whether custom modules of a type or, with `python_fallback`, the package `salt` may contain a module, before
/// a minion starts.
pub fn may_have(config: &MinionConfig, kind: &str, module: &str) -> bool {
    let is_in_package = config.python_fallback && kind != "renderers";
    is_in_package || CustomModules::new(config, PathBuf::new(), Weak::new()).may_have(kind, module)
}

/// Returns whether a file of a type has the name of a module, before a minion starts.
pub fn has_file(config: &MinionConfig, kind: &str, module: &str) -> bool {
    CustomModules::new(config, PathBuf::new(), Weak::new()).has_file(kind, module)
}

/// Logs the types of custom modules that have no effect.
pub fn warn_about_unused(config: &MinionConfig) {
    brine_python::warn_about_unused(&config.module_dirs, &extension_modules(config));
}

/// Returns the error of the option `python_host`, if it is invalid.
pub fn check(config: &MinionConfig) -> Option<String> {
    Settings::read(&config.python_host).err()
}

/// Returns the directory of the modules that are synced from the master.
pub fn extension_modules(config: &MinionConfig) -> PathBuf {
    config.extension_modules.clone().unwrap_or_else(|| config.cachedir.join("extmods"))
}

/// The custom functions of one type, which take precedence over built-in ones of the same names.
struct Custom<C: 'static> {
    modules: Arc<CustomModules>,
    functions: Functions<C>,
    /// The functions of the package `salt` (`python_fallback`).
    fallback: Functions<C>,
}

impl<C> Custom<C> {
    fn new(modules: &Arc<CustomModules>, kind: &'static str, code: fn(&C, &mut Binder) -> CallResult) -> Self {
        let functions = || Functions::new(kind, code);
        Custom { modules: Arc::clone(modules), functions: functions(), fallback: functions() }
    }
}

impl<C> Overlay<C> for Custom<C> {
    fn functions(&self, module: Option<&str>) -> Vec<&'static Function<C>> {
        if !self.modules.library.may_have(self.functions.kind(), module) {
            return Vec::new();
        }
        self.modules.described().map_or_else(Vec::new, |described| self.functions.of(&described, module))
    }

    fn fallback(&self, module: Option<&str>) -> Vec<&'static Function<C>> {
        let (kind, modules) = (self.fallback.kind(), &self.modules);
        let described = modules.library.fallback(kind, module, |call| modules.describe(call));
        described.map_or_else(Vec::new, |described| self.fallback.of(&described, module))
    }
}

/// Returns the custom execution functions.
pub fn functions(modules: &Arc<CustomModules>) -> impl Overlay<Context> + use<> {
    Custom::new(modules, "modules", call::module)
}

/// Returns the custom state functions.
pub fn states(modules: &Arc<CustomModules>) -> impl Overlay<StateContext> + use<> {
    Custom::new(modules, "states", call::state)
}
