//! States of upgraded packages: some, or all.

use brine_context::{StateContext, StateReturn};
use brine_function::CallError;
use brine_value::{Map, Value, map};

use super::{failed_to_begin, has_version, refresh};
use crate::pkg::{
    Desired, Operation, Options, Packages, error_message, error_message_with_changes, install, newer, requested,
    upgrade,
};

/// Packages to upgrade.
pub(super) struct Names {
    /// Their names.
    pub all: Vec<String>,
    /// Whether they were given as a list: then current packages are reported.
    pub is_list: bool,
}

/// Formats a few names, or the number of many.
fn several(names: &[String]) -> Option<String> {
    (names.len() <= 10).then(|| names.join(", "))
}

pub(super) fn newest(
    context: &StateContext,
    packages: &dyn Packages,
    name: &str,
    names: &Names,
    when: Option<bool>,
    options: &Options,
) -> Result<StateReturn, CallError> {
    refresh(context, packages, when, options)?;
    let before = packages.installed(&context.call, options)?;
    let newer = newer(&context.call, packages, &names.all, options)?;
    let unknown: Vec<String> = names
        .all
        .iter()
        .filter(|package| !newer.contains_key(*package) && !before.contains_key(*package))
        .map(|package| format!("No information found for '{package}'."))
        .collect();
    if !unknown.is_empty() {
        return Ok(StateReturn::failed(name, unknown.join(" ")));
    }
    let mut targets: Vec<String> = names.all.iter().filter(|package| newer.contains_key(*package)).cloned().collect();
    targets.sort();
    if targets.is_empty() {
        let comment = match &names.all[..] {
            [one] => format!("Package {one} is already up-to-date"),
            all => {
                let mut sorted = all.to_vec();
                sorted.sort();
                several(&sorted).map_or_else(
                    || format!("All {} packages are up-to-date.", all.len()),
                    |list| format!("All packages are up-to-date ({list})."),
                )
            }
        };
        return Ok(StateReturn::ok(name, comment));
    }
    let mut untouched: Vec<String> =
        names.all.iter().filter(|package| names.is_list && !targets.contains(package)).cloned().collect();
    untouched.sort();
    let version = |package: &String| before.get(package).cloned().unwrap_or_default();
    if context.test {
        let mut comment = format!("The following packages would be installed/upgraded: {}", targets.join(", "));
        if !untouched.is_empty() {
            let report: Vec<String> =
                untouched.iter().map(|package| format!("{package} ({})", version(package))).collect();
            comment += &several(&report).map_or_else(
                || format!("\n{} packages are already up-to-date", report.len()),
                |list| format!("\nThe following packages are already up-to-date: {list}"),
            );
        }
        let mut changes = Map::new();
        for (package, newest) in newer.iter().filter(|(package, _)| targets.contains(package)) {
            let new = packages.predicted_version(&context.call, package, newest, options)?;
            let new = new.unwrap_or_else(|| "installed".to_owned());
            changes.insert(package.into(), map! {"old" => version(package), "new" => new}.into());
        }
        return Ok(StateReturn::predicted(name, comment).with_changes(changes));
    }
    let asked: Vec<Desired> = targets.iter().map(|package| (package.clone(), None)).collect();
    let outcome =
        install(&context.call, packages, &asked, options).map_err(|error| failed_to_begin("installing", error))?;
    if !outcome.errors.is_empty() {
        // As in Salt: the changes are only part of the message.
        let error = CallError::Execution(error_message_with_changes(packages, Operation::Installing, &outcome));
        return Err(failed_to_begin("installing", error));
    }
    let after = packages.installed(&context.call, options)?;
    let is_newest =
        |package: &String| newer.get(package).is_some_and(|version| has_version(after.get(package), version));
    let (good, bad): (Vec<String>, Vec<String>) = targets.into_iter().partition(is_newest);
    let mut comments = Vec::new();
    if !bad.is_empty() {
        comments.push(format!("The following packages failed to update: {}", bad.join(", ")));
    }
    if !good.is_empty() {
        comments.push(format!("The following packages were successfully installed/upgraded: {}", good.join(", ")));
    }
    if !untouched.is_empty() {
        comments.push(several(&untouched).map_or_else(
            || format!("{} packages were already up-to-date ", untouched.len()),
            |list| format!("The following packages were already up-to-date: {list}"),
        ));
    }
    let result = Some(bad.is_empty());
    Ok(StateReturn { result, ..StateReturn::ok(name, comments.join(" ")) }.with_changes(outcome.changes))
}

pub(super) fn upgrade_all(
    context: &StateContext,
    packages: &dyn Packages,
    name: &str,
    pkgs: &Value,
    (refresh, dist): (bool, bool),
    options: &Options,
) -> Result<StateReturn, CallError> {
    if refresh {
        packages.refresh(&context.call, options)?;
    }
    let before = packages.installed(&context.call, options)?;
    let names: Option<Vec<String>> = match pkgs {
        Value::Nil => None,
        pkgs => Some(requested(None, pkgs, None)?.into_iter().map(|(name, _)| name).collect()),
    };
    let mut newer = packages.upgrades(&context.call, true, options)?;
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
        return Ok(StateReturn::predicted(name, "System update will be performed").with_changes(expected));
    }
    let some: Vec<String> = if names.is_some() { newer.keys().cloned().collect() } else { Vec::new() };
    let outcome = upgrade(&context.call, packages, &some, dist, options)?;
    if !outcome.errors.is_empty() {
        let comment = error_message(packages, Operation::Upgrading, &outcome.errors);
        return Ok(StateReturn::failed(name, comment).with_changes(outcome.changes));
    }
    let changed = |package: &str| outcome.changes.contains_key(&Value::from(package));
    let missing: Vec<&str> = some.iter().map(String::as_str).filter(|package| !changed(package)).collect();
    if !missing.is_empty() {
        let comment = format!("The following package(s) failed to update: {}", missing.join(", "));
        return Ok(StateReturn::failed(name, comment).with_changes(outcome.changes));
    }
    Ok(StateReturn::ok(name, "Upgrade ran successfully").with_changes(outcome.changes))
}
