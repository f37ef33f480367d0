//! The test files of states: `.tst` files in the directory `saltcheck-tests` (`saltcheck_test_location`) next to or
//! below the file of a state.

use brine_context::Context;
use brine_function::{Args, CallError};
use brine_value::{Value, map};
use indexmap::{IndexMap, IndexSet};

/// The test files of an environment, and the selection to run.
pub(super) struct Suite<'a> {
    context: &'a Context,
    saltenv: String,
    /// The directory of test files, relative to that of a state.
    location: String,
    /// All files with tests in the environment.
    files: Vec<String>,
    chosen: IndexSet<String>,
    /// The states that have a directory with tests.
    pub(super) found: Vec<String>,
}

impl<'a> Suite<'a> {
    /// Lists the test files of an environment.
    pub(super) fn open(context: &'a Context, saltenv: &str) -> Result<Self, CallError> {
        let files = context.minion.files.list(saltenv).map_err(CallError::execution)?;
        let files =
            files.into_iter().filter(|path| path.rsplit_once('.').is_some_and(|(_, ending)| ending == "tst")).collect();
        let location = brine_config::opts::modules::saltcheck_test_location(&context.opts());
        let location = location.trim_matches('/').to_owned();
        let (chosen, found) = (IndexSet::new(), Vec::new());
        Ok(Suite { context, saltenv: saltenv.to_owned(), location, files, chosen, found })
    }

    /// Selects the tests of a state and of the states that it includes: files with the name of a state, or with `all`,
    /// every file in their directories. A name that is no state is that of a test file.
    pub(super) fn add(&mut self, state: &str, all: bool) {
        for name in self.states(state) {
            let parts: Vec<&str> = name.split('.').collect();
            let (first, last) = (parts.first().copied().unwrap_or_default(), parts.last().copied().unwrap_or_default());
            let above = parts.get(..parts.len().saturating_sub(1)).unwrap_or_default().join("/");
            let below = |directory: &str, rest: &str| {
                let parts = [directory, self.location.as_str(), rest];
                parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
            };
            let directories =
                [parts.join("/"), above.clone(), first.to_owned()].map(|directory| below(&directory, "") + "/");
            let between = parts.get(1..parts.len().saturating_sub(1)).unwrap_or_default().join("/");
            let file = format!("{last}.tst");
            let nested = if between.is_empty() { file.clone() } else { format!("{between}/{file}") };
            let named = [below(&parts.join("/"), "init.tst"), below(&above, &file), below(first, &nested)];
            let there: Vec<&String> = self
                .files
                .iter()
                .filter(|path| directories.iter().any(|directory| path.starts_with(directory)))
                .collect();
            if there.is_empty() {
                continue;
            }
            let is_wanted = |path: &&&String| all || named.contains(path);
            self.chosen.extend(there.iter().filter(is_wanted).map(|path| (*path).clone()));
            if !self.found.contains(&name) {
                self.found.push(name);
            }
        }
    }

    /// Returns a state with the states that it includes, in order; the name alone if there is no such state.
    fn states(&self, state: &str) -> IndexSet<String> {
        let base = state.replace('.', "/");
        let [one, other] = [format!("{base}.sls"), format!("{base}/init.sls")];
        let listed = self.context.minion.files.list(&self.saltenv).unwrap_or_default();
        if !listed.iter().any(|path| *path == one || *path == other) {
            return [state.to_owned()].into();
        }
        let keyword = map! {"saltenv" => self.saltenv.as_str(), "test" => true};
        let low = self.context.call("state.show_low_sls", Args { positional: vec![state.into()], keyword });
        match low {
            Ok(Value::List(chunks)) if chunks.iter().all(|chunk| chunk.as_map().is_some()) => {
                chunks.iter().filter_map(|chunk| chunk.get("__sls__").map(ToString::to_string)).collect()
            }
            Ok(errors) => {
                tracing::error!(state, %errors, "a state with tests cannot be compiled");
                IndexSet::new()
            }
            Err(error) => {
                tracing::error!(state, %error, "a state with tests cannot be compiled");
                IndexSet::new()
            }
        }
    }

    /// Renders the selected files, and returns their tests by name. The selection is cleared.
    pub(super) fn load(&mut self, context: &Context) -> Result<IndexMap<String, Value>, CallError> {
        let mut tests = IndexMap::new();
        for file in std::mem::take(&mut self.chosen) {
            let keyword = map! {"saltenv" => self.saltenv.as_str()};
            let path = Value::from(format!("salt://{file}"));
            match context.call("slsutil.renderer", Args { positional: vec![path], keyword })? {
                Value::Map(rendered) => tests.extend(rendered.into_iter().map(|(name, test)| (name.to_string(), test))),
                other => return Err(CallError::execution(format!("{file}: expected a mapping of tests, got {other}"))),
            }
        }
        Ok(tests)
    }
}
