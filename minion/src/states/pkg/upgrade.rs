//! All packages in their newest versions.

use brine_core::function::CallError;
use brine_core::{Map, Value, map};

use crate::modules::pkg::{InstallOptions, Packages, changes, complaints, wanted};
use crate::states::{StateContext, StateReturn};

pub(super) fn all(
    context: &StateContext,
    packages: &dyn Packages,
    name: &str,
    pkgs: &Value,
    refresh: bool,
    dist: bool,
) -> Result<StateReturn, CallError> {
    if refresh {
        packages.refresh(&context.call)?;
    }
    let before = packages.installed(&context.call)?;
    let names: Option<Vec<String>> = match pkgs {
        Value::Nil => None,
        pkgs => Some(wanted(None, pkgs, None)?.into_iter().map(|(name, _)| name).collect()),
    };
    let mut newer = packages.upgrades(&context.call, true)?;
    newer.retain(|package, _| names.as_ref().is_none_or(|names| names.contains(package)));
    if newer.is_empty() {
        return Ok(StateReturn::ok(name, "System is already up-to-date"));
    }
    if context.test {
        let expected: Map = newer
            .iter()
            .map(|(package, new)| {
                let old = before.get(package).cloned().unwrap_or_default();
                (package.into(), map! {"new" => new, "old" => old}.into())
            })
            .collect();
        return Ok(StateReturn::would(name, "System update will be performed").with_changes(expected));
    }
    let output = if names.is_none() {
        packages.upgrade(&context.call, dist)?
    } else {
        let all: Vec<_> = newer.iter().map(|(package, version)| (package.clone(), Some(version.clone()))).collect();
        packages.install(&context.call, &all, &InstallOptions::default())?
    };
    let changed = changes(&before, &packages.installed(&context.call)?);
    if output.retcode != 0 {
        let comment = format!("An error was encountered while updating packages: {}", complaints(&output));
        return Ok(StateReturn::failed(name, comment).with_changes(changed));
    }
    let missing: Vec<&str> =
        newer.keys().map(String::as_str).filter(|package| names.is_some() && !changed.contains_key(*package)).collect();
    if !missing.is_empty() {
        let comment = format!("The following package(s) failed to update: {}", missing.join(", "));
        return Ok(StateReturn::failed(name, comment).with_changes(changed));
    }
    Ok(StateReturn::ok(name, "Upgrade ran successfully").with_changes(changed))
}
