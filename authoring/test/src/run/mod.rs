//! One test: its states are compiled, its files rendered, its event planned, and the results compared.
//!
//! `states.rs` compares low states, `files.rs` content of files and results, `events.rs` reactions.

mod events;
mod files;
mod states;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_sls::compile::Low;
use brine_state::{Options, StateRun};
use brine_value::{Map, Value, map};

use crate::expect::Failed;
use crate::format::{Given, Subject, Test};
use crate::host::{self, Library, Opened, Roots, World};
use crate::snapshot;

/// The result of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It passed.
    Passed,
    /// It was not run.
    Skipped(String),
    /// Expectations failed.
    Failed(Vec<Failed>),
}

/// A test that ran.
#[derive(Debug, Clone)]
pub struct Done {
    /// The result.
    pub outcome: Outcome,
    /// The time that it took.
    pub time: Duration,
    /// The data for the snapshot, if the test has one.
    pub snapshot: Option<Value>,
}

/// The place of a test.
pub struct Place<'a> {
    /// The test file.
    pub path: &'a Path,
    /// The root of its tree.
    pub root: &'a Path,
    /// The stored snapshots of the file; `None` if they are written anew.
    pub stored: Option<&'a Map>,
}

/// What was compiled for a test.
#[derive(Default)]
pub(crate) struct Compiled {
    pub low: Low,
    pub reactions: Vec<Value>,
    pub pillar: Map,
    pub errors: Vec<String>,
}

/// Runs a test.
pub fn run(library: &Arc<Library>, test: &Test, place: &Place<'_>) -> Done {
    let start = Instant::now();
    if let Some(reason) = &test.skip {
        return Done { outcome: Outcome::Skipped(reason.clone()), time: start.elapsed(), snapshot: None };
    }
    let (failed, snapshot) = match examine(library, test, place) {
        Ok(examined) => examined,
        Err(error) => (vec![Failed::new(error)], None),
    };
    let outcome = if failed.is_empty() { Outcome::Passed } else { Outcome::Failed(failed) };
    Done { outcome, time: start.elapsed(), snapshot }
}

/// Returns the roots of a test's SLS files.
pub fn roots(given: &Given, root: &Path) -> Roots {
    given.file_roots.clone().unwrap_or_else(|| [("base".to_owned(), vec![root.to_owned()])].into_iter().collect())
}

fn examine(library: &Arc<Library>, test: &Test, place: &Place<'_>) -> Result<(Vec<Failed>, Option<Value>), String> {
    let roots = roots(&test.given, place.root);
    let mut failed: Vec<Failed> = unknown_mocks(library, test, &roots);
    let world = World::open(library, &test.given, &roots).map_err(|error| error.to_string())?;
    let subject = match &test.subject {
        Some(subject) => subject.clone(),
        None => Subject::Sls(vec![own_sls(place.path, &roots)?]),
    };
    let mut compiled = Compiled::default();
    let run = match host::pillar(&world.context, &test.given) {
        Ok(pillar) => {
            compiled.pillar.clone_from(&pillar);
            let options = Options { saltenv: test.given.saltenv.clone(), test: Some(true), ..Options::default() };
            *world.context.minion.pillar.write() = Arc::clone(&pillar);
            Some(StateRun::with_pillar(&world.context, options, pillar))
        }
        Err(errors) => {
            compiled.errors = errors;
            None
        }
    };
    if let Some(run) = &run {
        match &subject {
            Subject::Sls(names) | Subject::Orchestrate(names) => {
                states::compile(run, &mut compiled, Some(names.clone()));
            }
            Subject::Highstate => states::compile(run, &mut compiled, None),
            Subject::Event { tag, data } => events::plan(&world, &test.given, &mut compiled, tag, data),
        }
    }
    let expect = &test.expect;
    failed.append(&mut states::compare(&compiled, expect));
    if let Some(run) = run.as_ref().filter(|_| compiled.errors.is_empty()) {
        failed.append(&mut files::compare(&world, run, &compiled.low, expect));
    }
    let mut taken = None;
    if expect.snapshot {
        let data = snapshot_of(&world, run.as_ref(), &compiled, &subject);
        if let Some(stored) = place.stored {
            failed.extend(snapshot::compare(stored, &test.name, &data));
        }
        taken = Some(data);
    }
    // An error that the test expects has these messages in it.
    let expected = expect.failure.as_ref().filter(|_| !compiled.errors.is_empty());
    if expected.is_none() {
        let messages: Vec<String> = failed.iter().map(|failed| failed.message.clone()).collect();
        let news = world.refused().into_iter().filter(|message| !messages.iter().any(|other| other.contains(message)));
        failed.extend(news.map(Failed::new));
    }
    failed.extend(world.missed().into_iter().map(Failed::new));
    Ok((failed, taken))
}

/// Returns the mocks whose names are misspelt: neither Brine nor a custom module has such a function.
fn unknown_mocks(library: &Library, test: &Test, roots: &Roots) -> Vec<Failed> {
    let is_custom = |name: &str| {
        let module = name.split('.').next().unwrap_or_default();
        roots.values().flatten().any(|root| root.join(format!("_modules/{module}.py")).is_file())
    };
    let wrong = test.given.mocks.iter().filter_map(|(name, mock)| {
        let near = library.unknown(name).filter(|_| !is_custom(name))?;
        let line = mock.line;
        Some(Failed::new(format!("line {line}: the mock '{name}' is not a function: did you mean '{near}'?")))
    });
    wrong.collect()
}

/// Returns the SLS file with the name of the test file: `nginx/init.test.yml` tests `nginx`.
fn own_sls(path: &Path, roots: &Roots) -> Result<String, String> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let stem = name.split(".test.").next().unwrap_or_default();
    let relative = |root: &PathBuf| {
        let below = path.strip_prefix(root).ok()?.parent()?.join(stem);
        let parts: Vec<&str> = below.iter().filter_map(|part| part.to_str()).collect();
        // Tests below a directory of their own have the paths of the SLS files.
        let parts: Vec<&str> = parts.into_iter().filter(|part| *part != "tests").collect();
        let joined = parts.join("/");
        let is_there = |path: String| root.join(path).is_file();
        if is_there(format!("{joined}.sls")) {
            let name = joined.replace('/', ".");
            return Some(name.strip_suffix(".init").map_or(name.clone(), str::to_owned));
        }
        is_there(format!("{joined}/init.sls")).then(|| joined.replace('/', "."))
    };
    roots.values().flatten().find_map(relative).ok_or_else(|| {
        let searched: Vec<String> = roots.values().flatten().map(|root| root.display().to_string()).collect();
        format!("there is no SLS file with the name of this test file below {}: write `sls: NAME`", searched.join(", "))
    })
}

fn snapshot_of(world: &Opened, run: Option<&StateRun>, compiled: &Compiled, subject: &Subject) -> Value {
    if !compiled.errors.is_empty() {
        return map! {"error" => compiled.errors.clone()}.into();
    }
    if matches!(subject, Subject::Event { .. }) {
        return map! {"reactions" => compiled.reactions.clone()}.into();
    }
    let key = if matches!(subject, Subject::Orchestrate(_)) { "steps" } else { "low" };
    let low: Value = compiled.low.in_order().map(crate::expect::chunk_as_sls).collect();
    let mut data = map! {key => low};
    let content = run.map(|run| files::all(world, run, &compiled.low)).unwrap_or_default();
    if !content.is_empty() {
        data.insert("content".into(), content.into());
    }
    data.into()
}
