//! Custom modules: the files in the directories of each type, and their functions as Python describes them. Modules may
//! also be programs in other languages; see `programs/`.
//!
//! Python is started only for a function that a file may contain: its module is the name of a file, or occurs in quotes
//! in the text of one, as a `__virtualname__` does.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use brine_function::Args;
use brine_value::{Map, Value};
use parking_lot::ReentrantMutex;

use crate::{Call, Files, Lease, Python, PythonError, Services, Settings, Setup, files, programs};

/// The maximum size of a file that is searched for the name of a module, in bytes. A larger file may define any module.
const MAX_SEARCHED: u64 = 1 << 20;
/// The maximum number of cached answers about modules.
const MAX_CANDIDATES: usize = 10_000;
/// The timeout of loading and describing all files.
const DESCRIBE_TIMEOUT: Duration = Duration::from_secs(60);
/// The minimum interval between two checks of the files for changes.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The custom modules of some types.
pub struct Library {
    python: Python,
    directories: Vec<(&'static str, PathBuf)>,
    /// The types whose functions are called by name.
    kinds: &'static [&'static str],
    settings: Settings,
    events: PathBuf,
    // Reentrant: while Python describes its functions, it requests those of Brine.
    state: ReentrantMutex<RefCell<State>>,
}

#[derive(Default)]
struct State {
    /// The Python files and the programs, once the directories have been read.
    files: Option<[Arc<Files>; 2]>,
    /// Whether a file may contain functions of a module, by type and module.
    candidates: HashMap<(&'static str, String), bool>,
    described: Option<Arc<Described>>,
    /// The functions of the package `salt`, by type and module.
    fallbacks: HashMap<(&'static str, Option<String>), Arc<Described>>,
    is_describing: bool,
    /// The time of the last check for changes, and the files found.
    checked: Option<(Instant, Vec<FileStamp>)>,
}

/// The path, modification time and size of a file.
type FileStamp = (PathBuf, Option<SystemTime>, u64);

/// The functions in the files as Python describes them, and the errors of files that cannot be loaded.
#[derive(Debug, Default)]
pub struct Described {
    functions: BTreeMap<String, Vec<(String, String, Map)>>,
    errors: BTreeMap<String, BTreeMap<String, String>>,
    /// The programs that contain functions, by type and module.
    programs: HashMap<(String, String), PathBuf>,
    /// The error, if Python could not describe the files.
    failure: Option<String>,
}

impl Described {
    /// Returns the functions of a type, each as module, name, and a mapping with its parameters and documentation.
    pub fn of(&self, kind: &str) -> &[(String, String, Map)] {
        self.functions.get(kind).map_or(&[], Vec::as_slice)
    }

    fn has(&self, kind: &str, name: &str) -> bool {
        name.split_once('.')
            .is_some_and(|(module, name)| self.of(kind).iter().any(|(m, n, _)| m == module && n == name))
    }

    /// Parses Python's description, and logs the errors of files.
    fn read(answer: &Value, kinds: &[&str]) -> Self {
        let mut described = Described::default();
        for kind in kinds {
            let part = |name: &str| answer.get(kind).and_then(|of| of.get(name)).and_then(Value::as_map).cloned();
            let functions = described.functions.entry((*kind).to_owned()).or_default();
            for (name, about) in part("functions").unwrap_or_default() {
                let name = name.as_str().and_then(|name| name.split_once('.'));
                if let (Some((module, name)), Value::Map(about)) = (name, about) {
                    functions.push((module.to_owned(), name.to_owned(), about));
                }
            }
            for (file, error) in part("errors").unwrap_or_default() {
                let (file, error) = (file.to_string(), error.to_string());
                tracing::warn!(kind, file, error, "a custom module is not loaded");
                described.errors.entry((*kind).to_owned()).or_default().insert(file, error);
            }
        }
        described
    }

    /// Adds the functions of a program, unless a Python file defines the same module. Logs the error of a program that
    /// fails.
    fn add_program(&mut self, kind: &str, path: &Path) {
        let Some(module) = files::stem(path) else { return };
        if self.of(kind).iter().any(|(name, _, _)| name == module) {
            return;
        }
        match programs::describe(path) {
            Ok(listed) => {
                let functions = self.functions.entry(kind.to_owned()).or_default();
                for (name, about) in listed {
                    let about = about.as_map().cloned().unwrap_or_default();
                    functions.push((module.to_owned(), name.to_string(), about));
                }
                self.programs.insert((kind.to_owned(), module.to_owned()), path.to_owned());
            }
            Err(error) => {
                tracing::warn!(kind, file = module, error, "a custom module is not loaded");
                self.errors.entry(kind.to_owned()).or_default().insert(module.to_owned(), error);
            }
        }
    }

    /// Returns the reason why a module that has a file is not available, as Salt's message.
    fn failure(&self, kind: &str, module: &str) -> Option<String> {
        let error = self.errors.get(kind).and_then(|errors| errors.get(module)).or(self.failure.as_ref())?;
        let error = error.strip_prefix("__virtual__ returned False").unwrap_or(error);
        let error = error.trim_start_matches(':').trim_start();
        let reason = if error.is_empty() { String::new() } else { format!(": {error}") };
        Some(format!("'{module}' __virtual__ returned False{reason}"))
    }
}

impl Library {
    /// Returns the directories of a type in order of precedence: those of `module_dirs`, then `more`, then the synced
    /// one.
    pub fn directories(
        kind: &'static str,
        module_dirs: &[String],
        more: &[String],
        synced: &Path,
    ) -> Vec<(&'static str, PathBuf)> {
        let hidden = format!("_{kind}");
        let below = |directory: &String| [Path::new(directory).join(kind), Path::new(directory).join(&hidden)];
        let named = module_dirs.iter().flat_map(below).chain(more.iter().map(PathBuf::from));
        named.chain([synced.join(kind)]).map(|directory| (kind, directory)).collect()
    }

    /// Creates the library of these directories, each with its type. The functions of the types in `kinds` are called
    /// by name. Does not read the directories yet.
    pub fn new(settings: Settings, directories: Vec<(&'static str, PathBuf)>, kinds: &'static [&'static str]) -> Self {
        let python = Python::new(settings.clone());
        let (events, state) = (PathBuf::new(), ReentrantMutex::default());
        Library { python, directories, kinds, settings, events, state }
    }

    /// Sets the socket of the events that functions can subscribe to.
    #[must_use]
    pub fn with_events(self, events: PathBuf) -> Self {
        Library { events, ..self }
    }

    /// Discards the cached file lists, and retires the process: the next call reads the directories and loads all files
    /// again.
    pub fn refresh(&self) {
        let state = self.state.lock();
        let State { is_describing, checked, .. } = state.take();
        *state.borrow_mut() = State { is_describing, checked, ..State::default() };
        self.python.restart();
    }

    /// As [`Library::refresh`], if a file was added, changed or removed. Checks at most once a second.
    pub fn refresh_if_changed(&self) {
        let state = self.state.lock();
        if state.borrow().checked.as_ref().is_some_and(|(when, _)| when.elapsed() < CHECK_INTERVAL) {
            return;
        }
        let files = Files::find_with_programs(&self.directories);
        let now: Vec<FileStamp> =
            files.into_iter().flat_map(|files| files.0).flat_map(|(_, paths)| paths).map(file_stamp).collect();
        let last = state.borrow_mut().checked.replace((Instant::now(), now));
        let is_changed =
            last.is_some_and(|(_, last)| state.borrow().checked.as_ref().is_some_and(|(_, now)| *now != last));
        if is_changed {
            self.refresh();
        }
    }

    /// Whether the Python process is running.
    pub fn is_running(&self) -> bool {
        self.python.is_running()
    }

    /// Returns the Python files of all types.
    pub fn files(&self) -> Arc<Files> {
        let [files, _] = self.files_and_programs();
        files
    }

    fn files_and_programs(&self) -> [Arc<Files>; 2] {
        let state = self.state.lock();
        let mut state = state.borrow_mut();
        state.files.get_or_insert_with(|| Files::find_with_programs(&self.directories).map(Arc::new)).clone()
    }

    /// Whether a file of this type may contain functions of a module, or of any module.
    pub fn may_have(&self, kind: &str, module: Option<&str>) -> bool {
        let [files, programs] = self.files_and_programs();
        let (files, programs) = (files.of(kind), programs.of(kind));
        let Some(module) = module else { return !files.is_empty() || !programs.is_empty() };
        if programs.iter().any(|path| files::stem(path) == Some(module)) {
            return true;
        }
        if files.is_empty() {
            return false;
        }
        let Some(kind) = self.kinds.iter().find(|candidate| **candidate == kind) else { return false };
        let state = self.state.lock();
        let mut state = state.borrow_mut();
        // Templates may ask for any number of modules, so the cache is bounded.
        if state.candidates.len() > MAX_CANDIDATES {
            state.candidates.clear();
        }
        let exists = || files.iter().any(|path| names(path, module));
        *state.candidates.entry((*kind, module.to_owned())).or_insert_with(exists)
    }

    /// Whether a file or program of this type has the name of a module.
    pub fn has_file(&self, kind: &str, module: &str) -> bool {
        let named = |files: &Files| files.of(kind).iter().any(|path| files::stem(path) == Some(module));
        self.files_and_programs().iter().any(|files| named(files))
    }

    /// Whether a custom module of this type has a function with this full name.
    pub fn has(
        &self,
        kind: &str,
        name: &str,
        call_python: impl FnOnce(Call<'_>) -> Result<Value, PythonError>,
    ) -> bool {
        self.may_have(kind, name.split('.').next())
            && self.described(call_python).is_some_and(|all| all.has(kind, name))
    }

    /// Returns the reason why a module of this type is not available although it has a file.
    pub fn failure(
        &self,
        kind: &str,
        module: &str,
        call_python: impl FnOnce(Call<'_>) -> Result<Value, PythonError>,
    ) -> Option<String> {
        if self.may_have(kind, Some(module)) { self.described(call_python)?.failure(kind, module) } else { None }
    }

    /// Returns the description of the files. Calls `call_python` if Python must describe them; `None` while that call is
    /// running.
    pub fn described(
        &self,
        call_python: impl FnOnce(Call<'_>) -> Result<Value, PythonError>,
    ) -> Option<Arc<Described>> {
        let state = self.state.lock();
        if let Some(described) = &state.borrow().described {
            return Some(Arc::clone(described));
        }
        if state.borrow().is_describing {
            return None;
        }
        state.borrow_mut().is_describing = true;
        let answer = if self.kinds.iter().all(|kind| self.files().of(kind).is_empty()) {
            Ok(Value::Nil)
        } else {
            let kinds: Value = self.kinds.iter().map(|kind| Value::from(*kind)).collect();
            let deadline = Some(Instant::now() + DESCRIBE_TIMEOUT);
            call_python(Call { kind: "describe", args: Args::positional([kinds]), deadline, ..Call::default() })
        };
        let mut described = match answer {
            Ok(answer) => Described::read(&answer, self.kinds),
            Err(error) => {
                tracing::error!(%error, "custom modules are not loaded");
                Described { failure: Some(error.to_string()), ..Described::default() }
            }
        };
        let [_, programs] = self.files_and_programs();
        for kind in self.kinds {
            programs.of(kind).iter().for_each(|path| described.add_program(kind, path));
        }
        let described = Arc::new(described);
        let mut state = state.borrow_mut();
        state.is_describing = false;
        state.described = Some(Arc::clone(&described));
        Some(described)
    }

    /// Returns the functions of one type in the package `salt`: those of a module, or of all modules. `None` without
    /// `python_fallback`, and while another description is being made.
    pub fn fallback(
        &self,
        kind: &'static str,
        module: Option<&str>,
        call_python: impl FnOnce(Call<'_>) -> Result<Value, PythonError>,
    ) -> Option<Arc<Described>> {
        if !self.settings.fallback {
            return None;
        }
        let state = self.state.lock();
        let key = (kind, module.map(str::to_owned));
        if let Some(fallback) = state.borrow().fallbacks.get(&key) {
            return Some(Arc::clone(fallback));
        }
        if state.borrow().is_describing {
            return None;
        }
        state.borrow_mut().is_describing = true;
        let args = Args::positional([kind.into(), module.map(Value::from).unwrap_or_default()]);
        let deadline = Some(Instant::now() + DESCRIBE_TIMEOUT);
        let answer = call_python(Call { kind: "fallback", args, deadline, ..Call::default() });
        let mut state = state.borrow_mut();
        state.is_describing = false;
        let answer = answer.inspect_err(|error| tracing::error!(%error, "functions of Salt are not loaded")).ok()?;
        // Templates may ask for any number of modules, so the cache is bounded.
        if state.fallbacks.len() > MAX_CANDIDATES {
            state.fallbacks.clear();
        }
        let described = Arc::new(Described::read(&answer, &[kind]));
        state.fallbacks.insert(key, Arc::clone(&described));
        Some(described)
    }

    /// Whether the package `salt` has a function with this full name and type; always false without `python_fallback`.
    pub fn is_in_package(
        &self,
        kind: &'static str,
        name: &str,
        call_python: impl FnOnce(Call<'_>) -> Result<Value, PythonError>,
    ) -> bool {
        self.fallback(kind, name.split('.').next(), call_python).is_some_and(|all| all.has(kind, name))
    }

    /// Calls a function of a Python module or of a program. `functions` returns the full names of Brine's functions by
    /// type, for a new process.
    ///
    /// # Errors
    /// Those of [`Python::call`].
    pub fn call(
        &self,
        call: Call<'_>,
        functions: impl Fn() -> BTreeMap<&'static str, Vec<String>>,
        services: &dyn Services,
    ) -> Result<Value, PythonError> {
        if let Some(path) = self.program(&call) {
            return programs::call(&path, call, || services.is_cancelled());
        }
        self.python.call(call, || self.setup(functions()), services)
    }

    /// As [`Library::call`], for Python only. Also returns a lease on the process, if the result refers to functions in
    /// it.
    ///
    /// # Errors
    /// Those of [`Python::call`].
    pub fn call_leasing(
        &self,
        call: Call<'_>,
        functions: impl Fn() -> BTreeMap<&'static str, Vec<String>>,
        services: &dyn Services,
    ) -> Result<(Value, Option<Lease>), PythonError> {
        self.python.call_leasing(call, || self.setup(functions()), services)
    }

    /// Calls a function in the process of a lease.
    ///
    /// # Errors
    /// Those of [`Python::call`]; also if the process has ended.
    pub fn call_leased(&self, lease: &Lease, call: Call<'_>, services: &dyn Services) -> Result<Value, PythonError> {
        self.python.call_leased(lease, call, services)
    }

    /// Calls a function in its own process, which ends with the call.
    ///
    /// # Errors
    /// Those of [`Python::call`].
    pub fn call_alone(
        &self,
        call: Call<'_>,
        functions: impl Fn() -> BTreeMap<&'static str, Vec<String>>,
        services: &dyn Services,
    ) -> Result<Value, PythonError> {
        Python::new(self.settings.clone()).call(call, || self.setup(functions()), services)
    }

    fn setup(&self, functions: BTreeMap<&'static str, Vec<String>>) -> Setup {
        // A process for one call must load new files, too.
        let files = (*self.files()).clone();
        Setup { files, functions, fallback: self.settings.fallback, events: self.events.clone() }
    }
}

fn file_stamp(path: PathBuf) -> FileStamp {
    let text = if path.is_dir() { path.join("__init__.py") } else { path.clone() };
    let status = text.metadata().ok();
    let changed = status.as_ref().and_then(|status| status.modified().ok());
    (path, changed, status.map_or(0, |status| status.len()))
}

impl Library {
    /// Returns the program that contains the function of a call, if a program does.
    fn program(&self, call: &Call<'_>) -> Option<PathBuf> {
        let (module, _) = call.function.split_once('.')?;
        let state = self.state.lock();
        let described = state.borrow().described.clone()?;
        described.programs.get(&(call.kind.to_owned(), module.to_owned())).cloned()
    }
}

/// Whether a file may contain functions of a module: by its name, or because its text contains the module's name in
/// quotes.
fn names(path: &Path, module: &str) -> bool {
    let stem = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.split('.').next());
    if stem == Some(module) {
        return true;
    }
    let text = if path.is_dir() { path.join("__init__.py") } else { path.to_owned() };
    if text.extension().is_none_or(|extension| extension != "py")
        || text.metadata().is_ok_and(|status| status.len() > MAX_SEARCHED)
    {
        return true;
    }
    let Ok(text) = std::fs::read_to_string(&text) else { return true };
    text.contains(&format!("'{module}'")) || text.contains(&format!("\"{module}\""))
}
