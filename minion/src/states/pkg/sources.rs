//! Packages that come as files: `sources` of `pkg.installed`.

use brine_core::function::CallError;
use brine_core::{Map, Value, map};

use super::has_version;
use crate::modules::pkg::{Doing, Options, Packages, install_files, package_files, sources, trouble};
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
    let is_there = || StateReturn::ok(name, "All specified packages are already installed");
    if context.test {
        // Without its file, all that is known of a package is its name.
        let mut targets: Vec<String> = sources(said)?.into_iter().map(|(package, _)| package).collect();
        targets.retain(|package| !before.contains_key(package));
        if targets.is_empty() {
            return Ok(is_there());
        }
        let changes: Map =
            targets.iter().map(|package| (package.into(), map! {"old" => "", "new" => "installed"}.into())).collect();
        let comment = format!("The following packages would be installed/updated: {}", targets.join(", "));
        return Ok(StateReturn::would(name, comment).with_changes(changes));
    }
    let mut files = package_files(&context.call, packages, said, &context.saltenv)?;
    files.retain(|file| options.reinstall || !has_version(before.get(&file.name), &file.version));
    if files.is_empty() {
        return Ok(is_there());
    }
    let names = files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>().join(", ");
    let done = match install_files(&context.call, packages, &files, options) {
        Ok(done) => done,
        Err(CallError::Execution(message)) => {
            let comment = format!("An error was encountered while installing package(s): {message}");
            return Ok(StateReturn::failed(name, comment));
        }
        Err(error) => return Err(error),
    };
    if !done.errors.is_empty() {
        let comment = trouble(packages, Doing::Installing, &done.errors);
        return Ok(StateReturn::failed(name, comment).with_changes(done.changes));
    }
    Ok(StateReturn::ok(name, format!("The following packages were installed/updated: {names}"))
        .with_changes(done.changes))
}
