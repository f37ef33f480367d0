//! The tests of Salt's module `saltcheck` (`*.tst`), as they are: a function call and assertions about its result. Calls
//! that would touch the host cannot run.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use brine_function::Args;
use brine_value::{Map, Value, map};

use crate::expect::Failed;
use crate::format::Given;
use crate::host::{self, Library, World};
use crate::run::{self, Done, Outcome};

/// The tests of a file, by name.
#[derive(Debug, Clone)]
pub struct Tests {
    /// The tests in order.
    pub tests: Vec<(String, Value)>,
}

impl Tests {
    /// Renders a file of tests.
    ///
    /// # Errors
    /// It cannot be read or rendered, or is not a mapping.
    pub fn read(library: &Arc<Library>, path: &Path, root: &Path, given: &Given) -> Result<Self, String> {
        let roots = run::roots(given, root);
        let below = roots.values().flatten().find_map(|root| path.strip_prefix(root).ok());
        let below = below.ok_or_else(|| format!("{} is not below the roots of its tree", path.display()))?;
        let world = World::open(library, given, &roots).map_err(|error| error.to_string())?;
        let url = Value::from(format!("salt://{}", below.display()));
        let rendered = world.context.call("slsutil.renderer", Args::positional([url]));
        match rendered.map_err(brine_function::CallError::message)? {
            Value::Map(tests) => {
                Ok(Tests { tests: tests.into_iter().map(|(name, test)| (name.to_string(), test)).collect() })
            }
            Value::Nil => Ok(Tests { tests: Vec::new() }),
            other => Err(format!("the file is invalid: expected a mapping of tests, got {}", other.type_name())),
        }
    }
}

/// Runs one test of a file. Tests before it that prepare the host (`saltcheck.state_apply`) are applied to the files of
/// this test first.
pub fn run(library: &Arc<Library>, tests: &Tests, index: usize, root: &Path, given: &Given) -> Done {
    let start = Instant::now();
    let outcome =
        outcome(library, tests, index, root, given).unwrap_or_else(|error| Outcome::Failed(vec![Failed::new(error)]));
    Done { outcome, time: start.elapsed(), snapshot: None }
}

const STATE_APPLY: &str = "saltcheck.state_apply";

fn outcome(library: &Arc<Library>, tests: &Tests, index: usize, root: &Path, given: &Given) -> Result<Outcome, String> {
    let world = World::open(library, given, &run::roots(given, root)).map_err(|error| error.to_string())?;
    let pillar = host::pillar(&world.context, given).map_err(|errors| errors.join("\n"))?;
    *world.context.minion.pillar.write() = pillar;
    let call = |test: &Value| {
        let keyword = map! {"test" => test.clone()};
        world.writing(|| world.context.call("saltcheck.run_test", Args::keyword(keyword)))
    };
    let prepares = |test: &Value| test.get("module_and_function").and_then(Value::as_str) == Some(STATE_APPLY);
    let Some((_, test)) = tests.tests.get(index) else { return Err("there is no such test".to_owned()) };
    for (_, before) in tests.tests.iter().take(index).filter(|(_, before)| prepares(before)) {
        call(before).map_err(brine_function::CallError::message)?;
    }
    let before = world.refused().len();
    let result = call(test).map_err(brine_function::CallError::message)?;
    let refused = world.refused();
    if let Some(reason) = refused.get(before) {
        return Ok(Outcome::Skipped(format!("cannot run without a host: {reason}")));
    }
    let status = |result: &Value| result.get("status").map_or_else(|| result.to_string(), ToString::to_string);
    let all = status(&result);
    if all.starts_with("Pass") {
        return Ok(Outcome::Passed);
    }
    if all.starts_with("Skip") {
        return Ok(Outcome::Skipped("skip".to_owned()));
    }
    let parts = result.as_map().into_iter().flat_map(Map::values).filter(|part| part.as_map().is_some());
    let mut failed: Vec<Failed> = parts.map(status).filter(|status| status != "Pass").map(Failed::new).collect();
    if failed.is_empty() {
        failed.push(Failed::new(all));
    }
    Ok(Outcome::Failed(failed))
}
