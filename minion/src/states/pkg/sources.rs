//! Packages that come as files: `sources` of `pkg.installed`.

use std::path::Path;

use brine_core::function::CallError;
use brine_core::{Map, Value, map};

use super::install::summary;
use crate::fileclient;
use crate::modules::cmd::Scratch;
use crate::modules::pkg::{Packages, changes, complaints, problem};
use crate::states::{StateContext, StateReturn};

/// The names of the packages and where their files are: a list of mappings, or one.
fn read(sources: &Value) -> Result<Vec<(String, String)>, CallError> {
    let wrong = || CallError::Execution("'sources' is a list of mappings of a package to its file".to_owned());
    let pairs = |map: &Map| map.iter().map(|(name, path)| (name.to_string(), path.to_string())).collect::<Vec<_>>();
    match sources {
        Value::Map(map) => Ok(pairs(map)),
        Value::List(items) => {
            let each = items.iter().map(|item| item.as_map().map(pairs).ok_or_else(wrong));
            Ok(each.collect::<Result<Vec<_>, _>>()?.concat())
        }
        _ => Err(wrong()),
    }
}

/// Installs the files whose packages are not there in their versions.
pub(super) fn install(
    context: &StateContext,
    packages: &dyn Packages,
    name: &str,
    sources: &Value,
) -> Result<StateReturn, CallError> {
    let before = packages.installed(&context.call)?;
    let (mut targets, mut files) = (Vec::new(), Vec::new());
    for (package, source) in read(sources)? {
        let content = fileclient::content(&context.call, &source, &context.saltenv).map_err(CallError::Execution)?;
        let missing = || CallError::Execution(format!("Unable to cache {source}: file not found"));
        let file = Scratch::new(&content.ok_or_else(missing)?, None)?;
        let (found, version) = packages.of_file(&context.call, file.path())?;
        if found != package {
            return Err(CallError::Execution(format!("'{source}' is the package {found} and not {package}")));
        }
        if before.get(&package) != Some(&version) {
            targets.push(package);
            files.push(file);
        }
    }
    if targets.is_empty() {
        return Ok(StateReturn::ok(name, "All specified packages are already installed"));
    }
    if context.test {
        let changes: Map =
            targets.iter().map(|package| (package.into(), map! {"old" => "", "new" => "installed"}.into())).collect();
        let comment = format!("The following packages would be installed/updated: {}", targets.join(", "));
        return Ok(StateReturn::would(name, comment).with_changes(changes));
    }
    let paths: Vec<&Path> = files.iter().map(Scratch::path).collect();
    let output = packages.install_files(&context.call, &paths)?;
    let changed = changes(&before, &packages.installed(&context.call)?);
    if output.retcode != 0 {
        return Ok(StateReturn::failed(name, problem("installing", &[complaints(&output)])).with_changes(changed));
    }
    Ok(StateReturn::ok(name, summary(&targets)).with_changes(changed))
}
