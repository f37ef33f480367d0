//! States of packages that are not installed.

use brine_context::{StateContext, StateReturn};
use brine_function::CallError;
use brine_value::map;

use super::failed_to_begin;
use crate::pkg::{Desired, Operation, Options, Packages, Versions, error_message, remove, satisfies};

pub(super) fn without(
    context: &StateContext,
    packages: &dyn Packages,
    name: &str,
    desired: &[Desired],
    purge: bool,
    options: &Options,
) -> Result<StateReturn, CallError> {
    let before = packages.installed(&context.call, options)?;
    let left = if purge { packages.removed_with_configuration(&context.call)? } else { Versions::new() };
    let mut targets: Vec<String> = Vec::new();
    for (package, version) in desired {
        let is_there = match (before.get(package), version) {
            (Some(have), Some(version)) => satisfies(&context.call, packages, have, version, options.ignore_epoch)?,
            (have, _) => have.is_some(),
        };
        if is_there || left.contains_key(package) {
            targets.push(package.clone());
        }
    }
    targets.sort();
    let (participle, verb, doing) =
        if purge { ("purged", "purge", "purging") } else { ("removed", "remove", "removing") };
    if targets.is_empty() {
        let is_versioned = desired.iter().any(|(package, version)| version.is_some() && before.contains_key(package));
        let comment = match (purge, is_versioned) {
            (true, _) => "None of the targeted packages are installed or partially installed",
            (_, true) => "All specified packages (matching specified versions) are already absent",
            _ => "All specified packages are already absent",
        };
        return Ok(StateReturn::ok(name, comment));
    }
    if context.test {
        let changes =
            targets.iter().map(|package| (package.into(), map! {"old" => "", "new" => participle}.into())).collect();
        let comment = format!("The following packages will be {participle}: {}.", targets.join(", "));
        return Ok(StateReturn::predicted(name, comment).with_changes(changes));
    }
    let names: Vec<Desired> = targets.iter().map(|package| (package.clone(), None)).collect();
    let work =
        remove(&context.call, packages, &names, purge, options).map_err(|error| failed_to_begin(doing, error))?;
    if !work.errors.is_empty() {
        let comment = error_message(packages, Operation::Removing, &work.errors);
        return Ok(StateReturn::failed(name, comment).with_changes(work.changes));
    }
    let after = packages.installed(&context.call, options)?;
    let failed: Vec<&str> = targets.iter().filter(|package| after.contains_key(*package)).map(String::as_str).collect();
    if !failed.is_empty() {
        let comment = format!("The following packages failed to {verb}: {}.", failed.join(", "));
        return Ok(StateReturn::failed(name, comment).with_changes(work.changes));
    }
    let mut absent: Vec<&str> = desired
        .iter()
        .map(|(package, _)| package.as_str())
        .filter(|package| !targets.iter().any(|target| target == package))
        .collect();
    absent.sort_unstable();
    let comment = if absent.is_empty() {
        format!("All targeted packages were {participle}.")
    } else {
        format!(
            "The following packages were not installed: {} The following packages were {participle}: {}.",
            absent.join(", "),
            targets.join(", ")
        )
    };
    Ok(StateReturn::ok(name, comment).with_changes(work.changes))
}
