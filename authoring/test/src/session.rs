//! A run of all test files below paths: in parallel, with snapshots.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use brine_context::Modules;
use brine_jinja::coverage::Coverage;
use brine_value::{Map, Value};
use parking_lot::Mutex;

use crate::coverage::{self, CoveredFile};
use crate::discover::{self, Found};
use crate::expect::Failed;
use crate::format::{Given, TestFile};
use crate::host::Library;
use crate::run::{self, Done, Outcome, Place};
use crate::saltcheck::Tests;
use crate::{saltcheck, snapshot};

/// The settings of a run.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Directories and test files.
    pub paths: Vec<PathBuf>,
    /// The root of all state trees, if it is not that of each file.
    pub root: Option<PathBuf>,
    /// Only tests whose `file: name` has this text.
    pub filter: Option<String>,
    /// Whether snapshots are written.
    pub update: bool,
    /// Whether the rendered lines and branches are counted.
    pub coverage: bool,
    /// The number of threads; that of the processors if it is 0.
    pub threads: usize,
}

/// One test in a report.
#[derive(Debug, Clone)]
pub struct Case {
    /// The test file, as in messages.
    pub file: PathBuf,
    /// The name.
    pub name: String,
    /// The line in the file; 0 if it is unknown.
    pub line: usize,
    /// The result.
    pub done: Done,
}

/// The results of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// The tests in order.
    pub cases: Vec<Case>,
    /// Files that cannot be read, and their errors.
    pub broken: Vec<String>,
    /// The paths of snapshots that were written.
    pub written: Vec<PathBuf>,
    /// The roots that were taken for want of a `top.sls`, of tests that failed because a file of the tree is absent.
    pub guessed_roots: BTreeSet<PathBuf>,
    /// The rendered lines and branches of the files below the roots of the tests, if they were counted.
    pub coverage: Option<Vec<CoveredFile>>,
    /// The time of the run.
    pub time: Duration,
}

impl Report {
    /// Returns the number of tests that passed, failed, and were skipped.
    pub fn counts(&self) -> (usize, usize, usize) {
        let count = |is: fn(&Outcome) -> bool| self.cases.iter().filter(|case| is(&case.done.outcome)).count();
        (
            count(|outcome| matches!(outcome, Outcome::Passed)),
            count(|outcome| matches!(outcome, Outcome::Failed(_))),
            count(|outcome| matches!(outcome, Outcome::Skipped(_))),
        )
    }

    /// Returns the exit status: 2 with files that cannot be read, 1 with failures, else 0.
    pub fn status(&self) -> u8 {
        match (self.broken.is_empty(), self.counts().1) {
            (false, _) => 2,
            (true, 0) => 0,
            (true, _) => 1,
        }
    }
}

/// What runs tests: the functions of all Salt modules.
pub struct Session {
    library: Arc<Library>,
}

/// A file with its tests.
struct Loaded {
    found: Found,
    content: Content,
    /// The stored snapshots.
    stored: Map,
}

enum Content {
    Own(Box<TestFile>),
    Saltcheck(Tests, Box<Given>),
}

impl Loaded {
    fn names(&self) -> Vec<(String, usize)> {
        match &self.content {
            Content::Own(file) => file.tests.iter().map(|test| (test.name.clone(), test.line)).collect(),
            Content::Saltcheck(tests, _) => tests.tests.iter().map(|(name, _)| (name.clone(), 0)).collect(),
        }
    }
}

impl Session {
    /// Creates a session with these modules.
    pub fn new(modules: Modules) -> Self {
        Session { library: Library::new(modules) }
    }

    fn load(&self, settings: &Settings, broken: &mut Vec<String>) -> Vec<Loaded> {
        let root = settings.root.as_ref().and_then(|root| std::fs::canonicalize(root).ok());
        let files = discover::find(&settings.paths, root.as_deref()).unwrap_or_else(|errors| {
            broken.extend(errors);
            Vec::new()
        });
        let mut loaded = Vec::new();
        for entry in files {
            match self.load_file(&entry) {
                Ok((content, stored)) => loaded.push(Loaded { found: entry, content, stored }),
                Err(errors) => broken.extend(errors),
            }
        }
        loaded
    }

    fn load_file(&self, entry: &Found) -> Result<(Content, Map), Vec<String>> {
        let path = entry.shown.display();
        if entry.is_saltcheck {
            let given = Given::default();
            let tests = Tests::read(&self.library, &entry.path, &entry.root, &given);
            let tests = tests.map_err(|error| vec![format!("{path}: {error}")])?;
            return Ok((Content::Saltcheck(tests, Box::new(given)), Map::new()));
        }
        let file = TestFile::read(&entry.path).map_err(|errors| {
            errors.iter().map(|error| format!("{path}:{}: {}", error.line, error.message)).collect::<Vec<_>>()
        })?;
        let stored = snapshot::read(&entry.path).map_err(|error| vec![error])?;
        Ok((Content::Own(Box::new(file)), stored))
    }

    /// Returns the names of the tests, each with its file.
    pub fn list(&self, settings: &Settings) -> (Vec<(PathBuf, String)>, Vec<String>) {
        let mut broken = Vec::new();
        let loaded = self.load(settings, &mut broken);
        let all = loaded.iter().flat_map(|file| {
            file.names().into_iter().map(|(name, _)| (file.found.shown.clone(), name)).collect::<Vec<_>>()
        });
        (all.filter(|(file, name)| is_wanted(settings, file, name)).collect(), broken)
    }

    /// Runs the tests.
    pub fn run(&self, settings: &Settings) -> Report {
        let start = Instant::now();
        let mut report = Report::default();
        let loaded = self.load(settings, &mut report.broken);
        let jobs: Vec<(usize, usize, String, usize)> = loaded
            .iter()
            .enumerate()
            .flat_map(|(file, loaded)| {
                let names = loaded.names().into_iter().enumerate();
                names.map(|(test, (name, line))| (file, test, name, line)).collect::<Vec<_>>()
            })
            .filter(|(file, _, name, _)| is_wanted(settings, &loaded[*file].found.shown, name))
            .collect();
        let coverage = settings.coverage.then(Coverage::new);
        let results = self.run_jobs(settings, &loaded, &jobs, coverage.as_ref());
        report.coverage = coverage.map(|coverage| {
            let roots: Vec<&Path> = loaded.iter().map(|file| file.found.root.as_path()).collect();
            coverage::of_trees(&roots, &coverage)
        });
        let mut snapshots: HashMap<usize, Map> = HashMap::new();
        for ((file, _, name, line), result) in jobs.into_iter().zip(results) {
            if let Some(data) = &result.snapshot {
                snapshots.entry(file).or_default().insert(name.as_str().into(), data.clone());
            }
            let root = &loaded[file].found.root;
            let is_guessed = settings.root.is_none() && !root.join("top.sls").is_file();
            if is_guessed && lacks_a_file(&result.outcome) {
                report.guessed_roots.insert(root.clone());
            }
            report.cases.push(Case { file: loaded[file].found.shown.clone(), name, line, done: result });
        }
        if settings.update {
            update(settings, &loaded, snapshots, &mut report);
        }
        report.time = start.elapsed();
        report
    }

    fn run_jobs(
        &self,
        settings: &Settings,
        loaded: &[Loaded],
        jobs: &[(usize, usize, String, usize)],
        coverage: Option<&Coverage>,
    ) -> Vec<Done> {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = if settings.threads == 0 { processors } else { settings.threads };
        let results: Vec<Mutex<Option<Done>>> = jobs.iter().map(|_| Mutex::default()).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            let _counted = coverage.map(Coverage::enter);
            while let Some((index, (file, test, ..))) =
                Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|index| Some((index, jobs.get(index)?)))
            {
                let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    self.run_one(settings, &loaded[*file], *test)
                }));
                *results[index].lock() =
                    Some(result.unwrap_or_else(|_| failed("the test panicked: this is a defect of brine")));
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..threads.min(jobs.len()) {
                // Templates may nest as deep as on the threads of jobs.
                _ = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
            }
        });
        results
            .into_iter()
            .map(|result| result.into_inner().unwrap_or_else(|| failed("the test was not run")))
            .collect()
    }

    fn run_one(&self, settings: &Settings, loaded: &Loaded, index: usize) -> Done {
        let Found { path, root, .. } = &loaded.found;
        match &loaded.content {
            Content::Own(file) => {
                let stored = (!settings.update).then_some(&loaded.stored);
                let place = Place { path, root, stored };
                file.tests
                    .get(index)
                    .map_or_else(|| failed("there is no such test"), |test| run::run(&self.library, test, &place))
            }
            Content::Saltcheck(tests, given) => saltcheck::run(&self.library, tests, index, root, given),
        }
    }

    /// Returns the newest time of change of all files that tests may read: those below the roots of their trees.
    pub fn changed(&self, settings: &Settings) -> Option<std::time::SystemTime> {
        let mut ignored = Vec::new();
        let roots: Vec<PathBuf> = self.load(settings, &mut ignored).into_iter().map(|file| file.found.root).collect();
        let all = roots.iter().chain(&settings.paths);
        let mut seen: Vec<&PathBuf> = Vec::new();
        all.filter_map(|path| {
            if seen.contains(&path) {
                return None;
            }
            seen.push(path);
            newest(path, 0)
        })
        .max()
    }
}

/// The size of the stack of a thread.
const STACK: usize = 16 << 20;
/// The maximum depth of directories that are watched.
const MAX_DEPTH: usize = 32;

fn newest(path: &Path, depth: usize) -> Option<std::time::SystemTime> {
    let own = std::fs::metadata(path).ok()?;
    let modified = own.modified().ok();
    if !own.is_dir() || depth > MAX_DEPTH {
        return modified;
    }
    let entries = std::fs::read_dir(path).ok()?.flatten();
    let visible = entries.filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'));
    visible.filter_map(|entry| newest(&entry.path(), depth + 1)).chain(modified).max()
}

fn failed(message: &str) -> Done {
    Done { outcome: Outcome::Failed(vec![Failed::new(message)]), time: Duration::ZERO, snapshot: None }
}

/// Returns whether a test failed because an SLS or a `salt://` file does not exist, by the messages of the compiler and of
/// the file client.
fn lacks_a_file(outcome: &Outcome) -> bool {
    let Outcome::Failed(failures) = outcome else { return false };
    let absent = ["No matching sls found", "not found in saltenv"];
    failures.iter().any(|failed| absent.iter().any(|text| failed.message.contains(text)))
}

fn is_wanted(settings: &Settings, file: &Path, name: &str) -> bool {
    settings.filter.as_ref().is_none_or(|filter| format!("{}: {name}", file.display()).contains(filter))
}

/// Writes the snapshots of the tests that ran; those of filtered ones stay.
fn update(settings: &Settings, loaded: &[Loaded], mut snapshots: HashMap<usize, Map>, report: &mut Report) {
    for (index, file) in loaded.iter().enumerate() {
        let Content::Own(own) = &file.content else { continue };
        let taken = snapshots.remove(&index).unwrap_or_default();
        let mut all = Map::new();
        for test in own.tests.iter().filter(|test| test.expect.snapshot) {
            let name = Value::from(test.name.as_str());
            let is_kept = !is_wanted(settings, &file.found.shown, &test.name) || test.skip.is_some();
            let previous = is_kept.then(|| file.stored.get(&name)).flatten();
            if let Some(data) = taken.get(&name).or(previous) {
                all.insert(name, data.clone());
            }
        }
        match snapshot::write(&file.found.path, &all) {
            Ok(true) => report.written.push(snapshot::path(&file.found.shown)),
            Ok(false) => {}
            Err(error) => report.broken.push(error),
        }
    }
}
