//! Sample minions: the grains and pillar for which templates are rendered that cannot be read without a render.

mod rendered;
mod served;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use brine_function::{Args, CallError};
use brine_jinja::{Behaviour, Functions, Host};
use brine_value::{Map, Value};

pub use rendered::Renders;
pub(crate) use rendered::findings;

/// The largest number of samples.
pub const MAX_SAMPLES: usize = 64;

/// The systems that ship with Brine.
const SYSTEMS: &str = include_str!("systems.yml");

/// Functions of pure modules that read files, which the sample has not.
const READERS: [&str; 9] = [
    "defaults.get",
    "jinja.import_json",
    "jinja.import_yaml",
    "jinja.load_map",
    "slsutil.dir_exists",
    "slsutil.file_exists",
    "slsutil.findup",
    "slsutil.path_exists",
    "slsutil.renderer",
];

/// The text that a function returns whose result is not known: the data have a placeholder in its place.
const UNKNOWN: &str = "\u{F0000}";

/// The error of more than [`MAX_SAMPLES`] samples.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the samples are invalid: expected at most {MAX_SAMPLES} pairs of grains and pillar, got {0}")]
pub struct TooManySamples(usize);

/// A sample minion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The name in findings.
    pub name: String,
    /// The grains.
    pub grains: Map,
    /// The pillar; `None` if it is not known.
    pub pillar: Option<Map>,
    /// Whether the author names it: it is a minion that the tree must work for.
    pub is_named: bool,
}

impl Sample {
    /// Returns the common systems that ship with Brine. Their pillar is not known.
    ///
    /// ```
    /// use brine_lint::samples::Sample;
    ///
    /// let names: Vec<String> = Sample::common().into_iter().map(|sample| sample.name).collect();
    /// assert_eq!(names.join(" "), "Debian Ubuntu RedHat SUSE Arch FreeBSD Windows");
    /// ```
    pub fn common() -> Vec<Self> {
        // A test renders them.
        let data = brine_yaml::load(SYSTEMS).unwrap_or_default();
        let entries = |name: &str| data.get(name).and_then(Value::as_map).cloned().unwrap_or_default();
        let common = entries("common");
        let sample = |(name, own): (Value, Value)| {
            let mut grains = common.clone();
            grains.extend(own.as_map().cloned().unwrap_or_default());
            Sample { name: name.to_string(), grains, pillar: None, is_named: false }
        };
        entries("systems").into_iter().map(sample).collect()
    }

    /// Returns the samples of named files: each grains with each pillar; the common systems if there are no grains.
    ///
    /// # Errors
    /// There are more than [`MAX_SAMPLES`].
    pub fn of_files(grains: &[(String, Value)], pillars: &[(String, Value)]) -> Result<Vec<Self>, TooManySamples> {
        let named: Vec<Self> = grains.iter().flat_map(|(name, data)| of_grains(name, data)).collect();
        let systems = if named.is_empty() { Self::common() } else { named };
        let mut samples = Vec::new();
        for system in &systems {
            if pillars.is_empty() {
                samples.push(system.clone());
            }
            for (name, data) in pillars {
                let pillar = unwrapped(data).as_map().cloned().unwrap_or_default();
                let name = if pillars.len() > 1 { format!("{} with {name}", system.name) } else { system.name.clone() };
                samples.push(Sample { name, pillar: Some(pillar), is_named: true, ..system.clone() });
            }
        }
        if samples.len() > MAX_SAMPLES {
            return Err(TooManySamples(samples.len()));
        }
        Ok(samples)
    }
}

/// Returns data as `salt-call --local --out json` prints them: below `local`.
fn unwrapped(data: &Value) -> &Value {
    let Value::Map(entries) = data else { return data };
    data.get("local").filter(|_| entries.len() == 1).unwrap_or(data)
}

/// Returns the samples of a file with grains: of one minion, or of several as `salt --out json` prints them.
fn of_grains(name: &str, data: &Value) -> Vec<Sample> {
    let data = unwrapped(data);
    let sample = |name: String, grains: &Value| {
        let grains = grains.as_map().cloned().unwrap_or_default();
        Sample { name, grains, pillar: None, is_named: true }
    };
    let Value::Map(entries) = data else { return Vec::new() };
    let are_minions = !entries.is_empty()
        && entries.values().all(|value| value.get("os").is_some() || value.get("osrelease").is_some());
    if are_minions {
        return entries.iter().map(|(id, grains)| sample(id.to_string(), grains)).collect();
    }
    vec![sample(name.to_owned(), data)]
}

/// A sample with what its templates reach.
pub struct Prepared {
    /// The sample.
    pub sample: Sample,
    /// The functions of its minion. Those that are not pure are never called.
    pub host: Host,
    /// The options of its minion.
    pub opts: Arc<Map>,
}

impl Prepared {
    /// Prepares a sample.
    pub fn new(sample: Sample, host: Host, opts: Arc<Map>) -> Self {
        Prepared { sample, host, opts }
    }
}

/// Samples, and which functions may be called for them.
pub struct Samples {
    /// The samples.
    pub all: Vec<Prepared>,
    /// Whether a function only computes with its arguments, the grains and the pillar: module and name.
    pub is_pure: fn(&str, &str) -> bool,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared").field("sample", &self.sample.name).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Samples {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.all.iter().map(|prepared| &prepared.sample.name)).finish()
    }
}

/// The layer of functions that are not called: their results are placeholders.
struct Unknown {
    is_pure: fn(&str, &str) -> bool,
    was_called: Arc<AtomicBool>,
}

impl Functions for Unknown {
    fn call(&self, _function: &str, _args: Args) -> Result<Value, CallError> {
        self.was_called.store(true, Ordering::Relaxed);
        Ok(UNKNOWN.into())
    }

    fn has(&self, function: &str) -> bool {
        let is_known = function.split_once('.').is_some_and(|(module, name)| (self.is_pure)(module, name));
        let reads = ["cp.", "saltcheck.", "state."].iter().any(|module| function.starts_with(module));
        !is_known || reads || READERS.contains(&function)
    }

    fn has_module(&self, _module: &str) -> bool {
        true
    }

    fn behaviour(&self, _function: &str) -> Behaviour {
        Behaviour { undefined: brine_jinja::MayBeUndefined::All, ..Behaviour::default() }
    }
}
