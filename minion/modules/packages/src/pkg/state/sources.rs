//! Packages from files: `sources` of `pkg.installed`.

use brine_context::{StateContext, StateReturn};
use brine_function::CallError;
use brine_value::{Map, Value};

use super::install::{newly, summary};
use super::{failed_to_begin, has_version};
use crate::pkg::{Operation, Options, Packages, error_message, install_files, named_files, package_files};

/// Installs the files whose packages are not installed in their versions.
pub(super) fn install(
    context: &StateContext,
    packages: &dyn Packages,
    name: &str,
    sources: &Value,
    options: &Options,
) -> Result<StateReturn, CallError> {
    let before = packages.installed(&context.call, options)?;
    let named = named_files(sources)?;
    // In test mode, a file is only read if its package is installed: an earlier state may create the others.
    let is_new = |package: &str| !before.contains_key(package);
    let looked_at = named.iter().filter(|(package, _)| !context.test || !is_new(package)).cloned().collect();
    let mut files = package_files(&context.call, packages, looked_at, &context.saltenv)?;
    files.retain(|file| options.reinstall || !has_version(before.get(&file.name), &file.version));
    let is_to_do = |package: &str| files.iter().any(|file| file.name == package) || (context.test && is_new(package));
    let names: Vec<String> = named.into_iter().map(|(package, _)| package).filter(|name| is_to_do(name)).collect();
    if names.is_empty() {
        return Ok(StateReturn::ok(name, "All specified packages are already installed"));
    }
    if context.test {
        let changes: Map = names.iter().map(|package| (package.into(), newly("installed"))).collect();
        let comment = format!("The following packages would be installed/updated: {}", names.join(", "));
        return Ok(StateReturn::predicted(name, comment).with_changes(changes));
    }
    let outcome = install_files(&context.call, packages, &files, options)
        .map_err(|error| failed_to_begin("installing", error))?;
    if !outcome.errors.is_empty() {
        let comment = error_message(packages, Operation::Installing, &outcome.errors);
        return Ok(StateReturn::failed(name, comment).with_changes(outcome.changes));
    }
    Ok(StateReturn::ok(name, summary(&names)).with_changes(outcome.changes))
}
