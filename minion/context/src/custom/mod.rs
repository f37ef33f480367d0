//! People's own modules: Python files that were synced from the master or lie in directories of the configuration, and
//! their functions beside the built-in ones.
//!
//! | file | owns |
//! |---|---|
//! | `mod.rs` | the files, and the condition for asking Python about them |
//! | `describe.rs` | functions as Python describes them |
//! | `call.rs` | calls of functions, grains and `#!py` files |
//! | `returned.rs` | the check of the results of state functions |
//!
//! Python starts only for a function that a file may have: its module is the name of a file, or occurs in quotes in the
//! text of one, as a `__virtualname__` does.

mod call;
mod describe;
mod returned;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use brine_config::MinionConfig;
use brine_function::{Function, Overlay};
use brine_python::{Files, Python, Settings};
use brine_value::Map;
use parking_lot::{Mutex, ReentrantMutex};

use crate::{Context, Minion, StateContext};
use describe::Described;

/// The types of modules that Python loads, with the option that names more directories of theirs.
const KINDS: &[(&str, Option<&str>)] = &[
    ("modules", None),
    ("states", Some("states_dirs")),
    ("utils", Some("utils_dirs")),
    ("grains", Some("grains_dirs")),
];
/// The longest text of a file that is searched for the name of a module; a longer one may have any.
const MOST_SEARCHED: u64 = 1 << 20;

/// People's own modules of a minion.
pub struct CustomModules {
    python: Python,
    directories: Vec<(&'static str, PathBuf)>,
    minion: Weak<Minion>,
    // Reentrant: Python asks for functions while it is asked for its own.
    state: ReentrantMutex<RefCell<State>>,
    /// The options that were passed to Python last.
    opts: Mutex<Vec<PassedOpts>>,
}

#[derive(Default)]
struct State {
    files: Option<Arc<Files>>,
    /// Whether a file may have functions of a module, by type and module.
    candidates: HashMap<(&'static str, String), bool>,
    described: Option<Arc<Described>>,
    is_describing: bool,
}

impl CustomModules {
    /// Creates those of a minion. Nothing is read yet.
    pub fn new(config: &MinionConfig, minion: Weak<Minion>) -> Arc<Self> {
        let settings = Settings::read(&config.python_host).unwrap_or_else(|error| {
            tracing::error!("{error}; using python3");
            Settings::default()
        });
        let synced = extension_modules(config);
        let mut directories = Vec::new();
        for (kind, option) in KINDS {
            let more = match option {
                Some("states_dirs") => &config.states_dirs[..],
                Some("utils_dirs") => &config.utils_dirs[..],
                Some("grains_dirs") => &config.grains_dirs[..],
                _ => &config.module_dirs[..],
            };
            directories.extend(config.module_dirs.iter().map(|directory| (*kind, Path::new(directory).join(kind))));
            directories.extend(more.iter().map(|directory| (*kind, PathBuf::from(directory))));
            directories.push((*kind, synced.join(kind)));
        }
        Arc::new(CustomModules {
            python: Python::new(settings),
            directories,
            minion,
            state: ReentrantMutex::default(),
            opts: Mutex::default(),
        })
    }

    /// Reads the directories anew: the next call of Python loads all files again.
    pub fn refresh(&self) {
        let state = self.state.lock();
        let is_describing = state.borrow().is_describing;
        *state.borrow_mut() = State { is_describing, ..State::default() };
        self.python.restart();
    }

    /// Returns whether the Python process runs.
    pub fn is_running(&self) -> bool {
        self.python.is_running()
    }

    /// Returns the files of a type.
    pub fn files(&self, kind: &str) -> Vec<PathBuf> {
        self.all_files().of(kind).to_vec()
    }

    /// Returns whether a function of this full name is one of these, by type (`modules` or `states`).
    pub fn has(&self, kind: &str, name: &str) -> bool {
        let module = name.split('.').next();
        let is = |full: String| full == name;
        self.may_have(kind, module)
            && self.described().is_some_and(|described| match kind {
                "modules" => described.modules.iter().any(|function| is(function.full_name())),
                _ => described.states.iter().any(|function| is(function.full_name())),
            })
    }

    /// Returns why a module of this type (`modules` or `states`) is not there although it has a file, if so.
    pub fn failure(&self, kind: &str, module: &str) -> Option<String> {
        if !self.may_have(kind, Some(module)) {
            return None;
        }
        self.described()?.failure(kind, module)
    }

    fn all_files(&self) -> Arc<Files> {
        let state = self.state.lock();
        let mut state = state.borrow_mut();
        Arc::clone(state.files.get_or_insert_with(|| Arc::new(Files::find(&self.directories))))
    }

    /// Returns whether a file of this type may have functions of a module.
    fn may_have(&self, kind: &str, module: Option<&str>) -> bool {
        let files = self.all_files();
        let files = files.of(kind);
        let (Some(module), false) = (module, files.is_empty()) else { return !files.is_empty() };
        let Some((kind, _)) = KINDS.iter().find(|(known, _)| *known == kind) else { return false };
        let state = self.state.lock();
        let mut state = state.borrow_mut();
        let found = || files.iter().any(|path| names(path, module));
        // A template could ask for any number of modules.
        if state.candidates.len() > 10_000 {
            state.candidates.clear();
        }
        *state.candidates.entry((*kind, module.to_owned())).or_insert_with(found)
    }

    /// Returns the description of the files; `None` while Python is asked for it.
    fn described(&self) -> Option<Arc<Described>> {
        let state = self.state.lock();
        if let Some(described) = &state.borrow().described {
            return Some(Arc::clone(described));
        }
        if state.borrow().is_describing {
            return None;
        }
        let minion = self.minion.upgrade()?;
        state.borrow_mut().is_describing = true;
        let described = Arc::new(self.describe(&minion));
        let mut state = state.borrow_mut();
        state.is_describing = false;
        state.described = Some(Arc::clone(&described));
        Some(described)
    }
}

/// Options as functions see them: those of a run or, empty, of the configuration; the `test` of the call; both together.
type PassedOpts = (Arc<Map>, bool, Arc<Map>);

/// Returns the error of the option `python_host`, if it is invalid.
pub fn check(config: &MinionConfig) -> Option<String> {
    Settings::read(&config.python_host).err()
}

/// Returns the directory of the modules that are synced from the master.
pub fn extension_modules(config: &MinionConfig) -> PathBuf {
    config.extension_modules.clone().unwrap_or_else(|| config.cachedir.join("extmods"))
}

/// Returns whether a file may have functions of a module: by its name, or as its text has the module's in quotes.
fn names(path: &Path, module: &str) -> bool {
    let stem = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.split('.').next());
    if stem == Some(module) {
        return true;
    }
    let text = if path.is_dir() { path.join("__init__.py") } else { path.to_owned() };
    if text.extension().is_none_or(|extension| extension != "py")
        || text.metadata().is_ok_and(|status| status.len() > MOST_SEARCHED)
    {
        return true;
    }
    let Ok(text) = std::fs::read_to_string(&text) else { return true };
    text.contains(&format!("'{module}'")) || text.contains(&format!("\"{module}\""))
}

/// The execution functions of people's own modules.
pub struct CustomFunctions(pub Arc<CustomModules>);

impl Overlay<Context> for CustomFunctions {
    fn functions(&self, module: Option<&str>) -> Vec<&'static Function<Context>> {
        self.0.may_have("modules", module).then(|| self.0.described()).flatten().map_or_else(Vec::new, |described| {
            described.modules.iter().copied().filter(|one| module.is_none_or(|module| one.module == module)).collect()
        })
    }
}

/// The state functions of people's own modules.
pub struct CustomStates(pub Arc<CustomModules>);

impl Overlay<StateContext> for CustomStates {
    fn functions(&self, module: Option<&str>) -> Vec<&'static Function<StateContext>> {
        self.0.may_have("states", module).then(|| self.0.described()).flatten().map_or_else(Vec::new, |described| {
            described.states.iter().copied().filter(|one| module.is_none_or(|module| one.module == module)).collect()
        })
    }
}

/// Errors of files by type and name.
type Errors = BTreeMap<String, BTreeMap<String, String>>;
