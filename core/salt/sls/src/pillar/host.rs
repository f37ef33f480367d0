//! The functions and files available to pillar templates: the minion's grains, the pillar so far, other pillar files.

use std::path::PathBuf;
use std::sync::Arc;

use brine_function::{Args, CallError};
use brine_jinja::{Behaviour, CustomCall, Files, FilesError, Functions, Host, HostedFile, Role};
use brine_system::files;
use brine_value::{Map, Value};

use super::at_path;
use super::tree::find_in;

/// The functions that look up grains and pillar of the minion whose pillar is rendered.
pub(super) struct Lookups {
    /// The host of all other functions, which also returns the names of the two lookup functions.
    pub below: Host,
    pub grains: Arc<Map>,
    /// The pillar before the files.
    pub pillar: Arc<Map>,
}

impl Functions for Lookups {
    fn call(&self, function: &str, args: Args) -> Result<Value, CallError> {
        let argument =
            |index: usize, name: &str| args.keyword.get(name).or_else(|| args.positional.get(index)).cloned();
        let map = match self.role(function) {
            Some(Role::LookUpGrains) => &self.grains,
            Some(Role::LookUpPillar) => &self.pillar,
            _ => return Err(CallError::NotAvailable(function.to_owned())),
        };
        let Some(path) = argument(0, "key") else { return Err(format!("{function} requires a key").into()) };
        // The third positional argument differs between the two functions, so the delimiter is taken only as a keyword.
        let delimiter = args.keyword.get("delimiter").map_or_else(|| ":".to_owned(), ToString::to_string);
        Ok(at_path(map, &path.to_string(), &delimiter, argument(1, "default").unwrap_or_else(|| "".into())))
    }

    fn has(&self, function: &str) -> bool {
        self.role(function).is_some()
    }

    fn has_module(&self, module: &str) -> bool {
        self.below.has_module(module)
    }

    fn behaviour(&self, function: &str) -> Behaviour {
        self.below.behaviour(function)
    }

    fn custom(&self, call: &CustomCall<'_>) -> Option<Result<Value, CallError>> {
        self.below.custom(call)
    }

    fn render(&self, file: &HostedFile) -> Option<Result<Value, CallError>> {
        let data = Some((Arc::clone(&self.grains), Arc::clone(&self.pillar)));
        self.below.render(&HostedFile { data, ..file.clone() })
    }
}

impl Lookups {
    fn role(&self, function: &str) -> Option<Role> {
        let mut roles = [Role::LookUpGrains, Role::LookUpPillar].into_iter();
        roles.find(|role| self.below.name_of(*role) == Some(function))
    }
}

/// The pillar files of an environment.
pub(super) struct Roots(pub Vec<PathBuf>);

impl Files for Roots {
    fn template(&self, path: &str, _saltenv: &str) -> Result<Option<String>, FilesError> {
        Ok(find_in(&self.0, path).map(files::read_to_string).transpose()?)
    }
}
