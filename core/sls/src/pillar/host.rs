//! What templates of pillar files reach: the minion's grains, what pillar there is, other pillar files, and the
//! functions of who renders.

use std::path::PathBuf;
use std::sync::Arc;

use brine_function::{Args, CallError};
use brine_jinja::Host;
use brine_system::files;
use brine_value::{Map, Value};

use super::at_path;
use super::tree::find_in;

pub(super) struct PillarHost {
    pub grains: Arc<Map>,
    /// What there is before the files.
    pub pillar: Arc<Map>,
    pub roots: Vec<PathBuf>,
    pub functions: Option<Arc<dyn Host>>,
}

impl Host for PillarHost {
    fn call(&self, function: &str, args: Args) -> Result<Value, CallError> {
        let given = |place: usize, name: &str| args.keyword.get(name).or_else(|| args.positional.get(place)).cloned();
        let map = match function {
            "grains.get" => &self.grains,
            "pillar.get" => &self.pillar,
            _ => {
                return match &self.functions {
                    Some(functions) => functions.call(function, args),
                    None => Err(CallError::Execution(format!("'{function}' is not available in pillar files"))),
                };
            }
        };
        let Some(path) = given(0, "key") else { return Err(format!("{function} wants a key").into()) };
        // `merge` is the third of one and not of the other; a delimiter is always named.
        let delimiter = args.keyword.get("delimiter").map_or_else(|| ":".to_owned(), ToString::to_string);
        Ok(at_path(map, &path.to_string(), &delimiter, given(1, "default").unwrap_or_else(|| "".into())))
    }

    fn has(&self, function: &str) -> bool {
        matches!(function, "grains.get" | "pillar.get")
            || self.functions.as_ref().is_some_and(|functions| functions.has(function))
    }

    fn template(&self, path: &str, _saltenv: &str) -> Result<Option<String>, String> {
        find_in(&self.roots, path).map(files::read_to_string).transpose().map_err(|error| error.to_string())
    }
}
