//! Packages that come as files: `sources` of `pkg.installed`.

use brine_core::function::CallError;
use brine_core::{Map, Value};

use super::encountered;
use super::has_version;
use super::install::{newly, summary};
use crate::modules::pkg::{Doing, Options, Packages, install_files, package_files, trouble};
use crate::states::{StateContext, StateReturn};

/// Installs the files whose packages are not there in their versions.
pub(super) fn install(
    context: &StateContext,
    packages: &dyn Packages,
    name: &str,
    said: &Value,
    options: &Options,
) -> Result<StateReturn, CallError> {
    let before = packages.installed(&context.call, options)?;
    let mut files = package_files(&context.call, packages, said, &context.saltenv)?;
    files.retain(|file| options.reinstall || !has_version(before.get(&file.name), &file.version));
    if files.is_empty() {
        return Ok(StateReturn::ok(name, "All specified packages are already installed"));
    }
    let names: Vec<String> = files.iter().map(|file| file.name.clone()).collect();
    if context.test {
        let changes: Map = names.iter().map(|package| (package.into(), newly("installed"))).collect();
        let comment = format!("The following packages would be installed/updated: {}", names.join(", "));
        return Ok(StateReturn::would(name, comment).with_changes(changes));
    }
    let done =
        install_files(&context.call, packages, &files, options).map_err(|error| encountered("installing", error))?;
    if !done.errors.is_empty() {
        let comment = trouble(packages, Doing::Installing, &done.errors);
        return Ok(StateReturn::failed(name, comment).with_changes(done.changes));
    }
    Ok(StateReturn::ok(name, summary(&names)).with_changes(done.changes))
}
