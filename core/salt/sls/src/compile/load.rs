//! Rendering of SLS files and their includes, each once.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::error::Error;

use brine_text::glob::{fnmatch, is_pattern};
use brine_text::nearest::nearest;
use brine_value::{Map, Value};

use crate::render::{Explained, RenderError};
use crate::{includes, lines, top};

use super::high::{HighData, Part, merge_states, not_a_mapping};

/// The error of an SLS file that is not rendered. Its message has Salt's wording.
#[derive(Debug, thiserror::Error)]
pub enum SlsError {
    /// The file server does not answer, or the file cannot be read.
    #[error(transparent)]
    Unreadable(Box<dyn Error + Send + Sync>),
    /// The file is invalid.
    #[error("{error}{advice}")]
    Render {
        /// The error.
        error: Box<RenderError>,
        /// The lines about its place and cause that follow it; may be empty.
        advice: String,
    },
}

impl From<RenderError> for SlsError {
    fn from(error: RenderError) -> Self {
        SlsError::Render { error: Box::new(error), advice: String::new() }
    }
}

impl From<Explained> for SlsError {
    fn from(explained: Explained) -> Self {
        SlsError::Render { advice: explained.advice(), error: Box::new(explained.error) }
    }
}

/// The source of rendered SLS files.
pub trait SlsSource {
    /// Returns the data of an SLS, or `None` if the environment has no such SLS.
    ///
    /// # Errors
    ///
    /// The SLS cannot be read or rendered.
    fn render(&self, sls: &str, saltenv: &str) -> Result<Option<Value>, SlsError>;

    /// Whether an environment of this name exists.
    ///
    /// # Errors
    ///
    /// The environments cannot be listed.
    fn has_environment(&self, saltenv: &str) -> Result<bool, SlsError>;

    /// Returns the names of all SLS files of an environment, sorted. Called only to match patterns: there may be many
    /// thousands.
    fn available(&self, saltenv: &str) -> Vec<String>;

    /// Whether states without an `order` run in the order of their definition: the option `state_auto_order`.
    fn auto_order(&self) -> bool {
        true
    }

    /// Returns where an environment's files come from, for messages: its directories.
    fn searched(&self, _saltenv: &str) -> String {
        "the file server".to_owned()
    }

    /// Returns the path and the text of an SLS as it is written, for messages.
    fn written(&self, _sls: &str, _saltenv: &str) -> Option<(String, String)> {
        None
    }

    /// Whether an SLS is the `init.sls` of a directory: relative includes start there.
    fn is_init(&self, sls: &str, saltenv: &str) -> bool;
}

/// The environment name in an include that may match any loaded environment.
const ANY_ENVIRONMENT: &str = "_xenv";

/// Loads SLS files, by environment and in order, with all their includes. Names may be globs. Returns the data and the
/// errors.
pub fn load(source: &impl SlsSource, sls_names: &[(String, Vec<String>)]) -> (HighData, Vec<String>) {
    let mut loader = Loader {
        source,
        wanted: sls_names.iter().map(|(saltenv, _)| saltenv.clone()).collect(),
        environments: HashMap::new(),
        available: HashMap::new(),
        rendered: HashSet::new(),
        high: HighData::new(),
        errors: Vec::new(),
        level: 0,
    };
    for (saltenv, names) in sls_names {
        for name in names {
            match loader.matching(name, saltenv) {
                Err(error) => loader.errors.push(error),
                Ok(None) => {
                    loader.errors.push(format!("No matching salt environment for environment '{saltenv}' found"));
                    loader.top(name, name, saltenv);
                }
                Ok(Some(files)) => files.iter().for_each(|sls| loader.top(name, sls, saltenv)),
            }
        }
    }
    (loader.high, loader.errors)
}

struct Loader<'a, S> {
    source: &'a S,
    /// The requested environments.
    wanted: Vec<String>,
    environments: HashMap<String, bool>,
    available: HashMap<String, Vec<String>>,
    /// The rendered SLS files, each once: environment and name.
    rendered: HashSet<(String, String)>,
    high: HighData,
    errors: Vec<String>,
    /// The number of SLS files that are being rendered, each included by the one before.
    level: usize,
}

impl<S: SlsSource> Loader<'_, S> {
    fn has_environment(&mut self, saltenv: &str) -> Result<bool, String> {
        Ok(match self.environments.entry(saltenv.to_owned()) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                let exists = self.source.has_environment(saltenv).map_err(|error| error.to_string())?;
                *entry.insert(exists)
            }
        })
    }

    fn available(&mut self, saltenv: &str) -> &[String] {
        self.available.entry(saltenv.to_owned()).or_insert_with(|| self.source.available(saltenv))
    }

    /// Returns the SLS files of an environment that match a name or glob. A name without a match is returned unchanged:
    /// rendering it reports that it is missing.
    fn matching(&mut self, name: &str, saltenv: &str) -> Result<Option<Vec<String>>, String> {
        if !self.has_environment(saltenv)? {
            return Ok(None);
        }
        let mut matches: Vec<String> = Vec::new();
        if is_pattern(name) {
            matches.extend(self.available(saltenv).iter().filter(|sls| fnmatch(name, sls)).cloned());
        }
        if matches.is_empty() {
            matches.push(name.to_owned());
        }
        Ok(Some(matches))
    }

    /// Loads a requested SLS.
    fn top(&mut self, requested: &str, sls: &str, saltenv: &str) {
        if self.was_rendered(sls, saltenv) {
            return;
        }
        let Some(part) = self.render(sls, saltenv) else {
            let missing = self.missing(sls, saltenv);
            return self.errors.push(format!("No matching sls found for '{requested}' in env '{saltenv}'{missing}"));
        };
        let mut errors = Vec::new();
        self.high.merge(part, &mut errors);
        self.errors.append(&mut errors);
    }

    /// Returns the lines that follow the message about a missing SLS: where it was searched, and the nearest name.
    fn missing(&mut self, sls: &str, saltenv: &str) -> String {
        // Another message says that there is no such environment.
        if !self.has_environment(saltenv).unwrap_or(true) {
            return String::new();
        }
        if let Some(name) = sls.strip_suffix(".sls") {
            return format!("\n  hint: the name of an SLS has no '.sls' at its end: write '{name}'");
        }
        let [file, init] = top::candidates(sls);
        let searched = self.source.searched(saltenv);
        let sls = &sls.replace('/', ".");
        let names = self.available(saltenv);
        let last = sls.rsplit('.').next().unwrap_or_default();
        let near = nearest(sls, names)
            .filter(|_| sls.len() > 2)
            .or_else(|| names.iter().find(|name| name.rsplit('.').next() == Some(last)));
        let near = near.map(|near| format!("; did you mean '{near}'?")).unwrap_or_default();
        format!("\n  hint: neither {file} nor {init} is in {searched}{near}")
    }

    /// Returns the line with the place of an include, if it is known.
    fn included_at(&self, by: &str, name: &str) -> String {
        match self.wanted.iter().find_map(|saltenv| self.source.written(by, saltenv)) {
            Some((path, text)) => {
                let line = lines::of_item(&text, name).map(|line| format!(":{line}")).unwrap_or_default();
                format!("\n  --> {path}{line}")
            }
            None => format!("\n  hint: '{by}' includes it"),
        }
    }

    fn was_rendered(&self, sls: &str, saltenv: &str) -> bool {
        self.rendered.contains(&(saltenv.to_owned(), sls.to_owned()))
    }

    /// Returns the data of an SLS and its includes, or `None` if there is no such SLS.
    fn render(&mut self, sls: &str, saltenv: &str) -> Option<Part> {
        let data = match self.source.render(sls, saltenv) {
            Ok(data) => data?,
            Err(error) => {
                self.errors.push(if matches!(&error, SlsError::Render { error, .. } if error.is_of_composer()) {
                    format!("Rendering SLS {sls} failed, render error: {error}")
                } else {
                    format!("Rendering SLS '{saltenv}:{sls}' failed: {error}")
                });
                Value::Nil
            }
        };
        self.rendered.insert((saltenv.to_owned(), sls.to_owned()));
        let mut data = match data {
            Value::Map(data) => data,
            data if data.is_truthy() => {
                self.errors.extend(not_a_mapping(sls, &data));
                return Some(Part::default());
            }
            _ => return Some(Part::default()),
        };
        let includes = match data.get("include") {
            None => Vec::new(),
            Some(Value::List(items)) => {
                let items = items.clone();
                data.shift_remove("include");
                items
            }
            // The value is kept, and reported once more as a state.
            Some(_) => {
                self.errors.push(format!("Include Declaration in SLS {sls} is not formed as a list"));
                Vec::new()
            }
        };
        let mut part = Part::read(data, sls, saltenv, &mut self.errors);
        for item in &includes {
            match self.resolve(item, sls, saltenv) {
                Ok((names, env)) => names.iter().for_each(|name| self.include(name, &env, sls, &mut part)),
                Err(error) => self.errors.push(error),
            }
        }
        if self.source.auto_order() {
            self.high.number(&mut part.states);
        }
        Some(part)
    }

    /// Merges an included SLS into the part that includes it.
    fn include(&mut self, sls: &str, saltenv: &str, included_by: &str, part: &mut Part) {
        if self.was_rendered(sls, saltenv) {
            return;
        }
        if self.level == includes::MAX_LEVELS {
            return self.errors.push(includes::too_deep(sls, included_by));
        }
        let count = self.errors.len();
        self.level += 1;
        let included = self.render(sls, saltenv);
        self.level -= 1;
        let Some(mut included) = included else {
            let missing = format!("{}{}", self.included_at(included_by, sls), self.missing(sls, saltenv));
            return self.errors.push(format!(
                "Specified SLS {sls} in saltenv {saltenv} is not available on the salt master or through a configured fileserver{missing}"
            ));
        };
        for body in included.states.values_mut().filter_map(Value::as_map_mut) {
            match body.get_mut("__sls_included_from__") {
                Some(Value::List(from)) => from.push(included_by.into()),
                _ => _ = body.insert("__sls_included_from__".into(), brine_value::list![included_by]),
            }
        }
        part.extend.append(&mut included.extend);
        part.exclude.append(&mut included.exclude);
        // Errors inside the include follow the errors of merging the two.
        let mut inside = self.errors.split_off(count);
        merge_states(&mut part.states, included.states, &mut self.errors);
        self.errors.append(&mut inside);
    }

    /// Returns the names of the SLS files that an item of an `include` list refers to, and their environment.
    fn resolve(&mut self, item: &Value, sls: &str, saltenv: &str) -> Result<(Vec<String>, String), String> {
        let (environment, name) = match item.as_map().and_then(Map::last) {
            Some((environment, name)) => (environment.to_string(), name.to_string()),
            None => (saltenv.to_owned(), item.to_string()),
        };
        if environment != ANY_ENVIRONMENT && !self.has_environment(&environment)? {
            return Err(format!(
                "Nonexistent saltenv '{environment}' found in include of '{name}' within SLS '{saltenv}:{sls}'"
            ));
        }
        let name = self.absolute(&name, sls, saltenv)?;
        let candidates = if environment == ANY_ENVIRONMENT { self.wanted.clone() } else { vec![environment.clone()] };
        let mut having = Vec::new();
        for candidate in &candidates {
            let taken_as_is = environment != ANY_ENVIRONMENT && self.wanted.contains(candidate);
            if taken_as_is || self.available(candidate).iter().any(|sls| fnmatch(&name, sls)) {
                having.push(candidate.clone());
            }
        }
        let env = match &having[..] {
            [one] => one.clone(),
            several if several.iter().any(|env| env == saltenv) => saltenv.to_owned(),
            [] => {
                let missing = self.missing(&name, candidates.first().map_or(saltenv, String::as_str));
                return Err(format!(
                    "Unknown include: Specified SLS {environment}: {name} is not available on the salt master in saltenv(s): {} {}{missing}",
                    candidates.join(", "),
                    self.included_at(
                        sls,
                        &item.as_map().and_then(Map::last).map_or(item, |(_, name)| name).to_string()
                    )
                ));
            }
            several => {
                return Err(format!(
                    "Ambiguous include: Specified SLS {environment}: {name} is available on the salt master in multiple available saltenvs: {}",
                    several.join(", ")
                ));
            }
        };
        let names = self.matching(&name, &env)?.unwrap_or_else(|| vec![name]);
        Ok((names, env))
    }

    /// Resolves a relative name: one leading dot is the including file's own package, each further one its parent.
    fn absolute(&self, name: &str, sls: &str, saltenv: &str) -> Result<String, String> {
        let rest = name.trim_start_matches('.');
        let up = name.len() - rest.len();
        if up == 0 {
            return Ok(name.to_owned());
        }
        let mut package: Vec<&str> = sls.split('.').collect();
        if self.source.is_init(sls, saltenv) {
            package.push("init");
        }
        if up > package.len() {
            return Err(format!(
                "Attempted relative include of '{name}' within SLS '{saltenv}:{sls}' goes beyond top level package "
            ));
        }
        package.truncate(package.len() - up);
        // The dots alone name the package itself, its `init.sls`.
        package.extend((!rest.is_empty()).then_some(rest));
        Ok(package.join("."))
    }
}
