//! States of held packages.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError};
use brine_value::{Map, Value, map};

use crate::pkg::{Desired, Locks, Options, Packages};

/// Holds or releases one package, and returns whether that succeeded, with its report.
fn select(
    context: &StateContext,
    function: &str,
    (package, version): &Desired,
    changes: &mut Map,
) -> Result<(bool, String), CallError> {
    let one: Value = match version {
        Some(version) => map! {package => version}.into(),
        None => package.into(),
    };
    let args = Args::keyword(map! {"pkgs" => vec![one]});
    let result = context.call.call(function, args)?;
    changes.extend(result.as_map().cloned().unwrap_or_default());
    let one = result.get(package).cloned().unwrap_or_default();
    let comment = one.get("comment").map(ToString::to_string).unwrap_or_default();
    Ok((one.get("result").is_some_and(Value::is_truthy), comment))
}

/// Returns the locks of the package manager, or the failure if it has none.
fn locks<'p>(packages: &'p dyn Packages, name: &str) -> Result<&'p dyn Locks, Box<StateReturn>> {
    packages.locks().ok_or_else(|| {
        Box::new(StateReturn::failed(
            name,
            "No any function to get the list of held packages available.\nCheck if the package manager supports package \
             locking.",
        ))
    })
}

/// Returns the result of a run that held or released packages.
fn selected(name: &str, good: bool, comments: &[String], changes: Map) -> StateReturn {
    let comment = if comments.is_empty() { "No changes made".to_owned() } else { comments.join("\n") };
    StateReturn { result: Some(good), ..StateReturn::ok(name, comment) }.with_changes(changes)
}

pub(super) fn hold(
    context: &StateContext,
    packages: &dyn Packages,
    name: &str,
    desired: &[Desired],
    replace: bool,
) -> Result<StateReturn, CallError> {
    let locks = match locks(packages, name) {
        Ok(locks) => locks,
        Err(failed) => return Ok(*failed),
    };
    let held = locks.held(&context.call, &Options::default())?;
    let (mut good, mut comments, mut changes) = (true, Vec::new(), Map::new());
    for one in desired {
        let (package, version) = one;
        let lock = held.iter().find(|(held, _)| held == package);
        if lock.is_some_and(|(_, held)| !locks.by_version() || held == version) {
            continue;
        }
        if context.test {
            let version = version.as_ref().map(|version| format!(" (version = {version})")).unwrap_or_default();
            let what = if lock.is_some() { "package's hold rule would be updated" } else { "package would be held" };
            comments.push(format!("The following {what}: {package}{version}"));
            continue;
        }
        let released = match lock {
            Some(_) => select(context, "pkg.unhold", &(package.clone(), None), &mut Map::new())?.0,
            None => false,
        };
        let (has_succeeded, _) = select(context, "pkg.hold", one, &mut changes)?;
        good &= has_succeeded;
        let how = match (has_succeeded, released) {
            (true, true) => "was updated with hold rule",
            (true, false) => "is now being held",
            (false, _) => "was not held",
        };
        comments.push(format!("Package {package} {how}"));
    }
    if replace {
        let others = |package: &str| !desired.iter().any(|(name, _)| name == package);
        let more = unhold(context, packages, name, others)?;
        good &= more.result == Some(true);
        if !more.changes.is_empty() || context.test && more.comment != "No changes made" {
            comments.push(more.comment);
        }
        changes.extend(more.changes);
    }
    Ok(selected(name, good, &comments, changes))
}

pub(super) fn unhold(
    context: &StateContext,
    packages: &dyn Packages,
    name: &str,
    is_match: impl Fn(&str) -> bool,
) -> Result<StateReturn, CallError> {
    let locks = match locks(packages, name) {
        Ok(locks) => locks,
        Err(failed) => return Ok(*failed),
    };
    let (mut good, mut comments, mut changes) = (true, Vec::new(), Map::new());
    let mut held = locks.held(&context.call, &Options::default())?;
    held.dedup_by(|a, b| a.0 == b.0);
    for (package, _) in held.into_iter().filter(|(package, _)| is_match(package)) {
        if context.test {
            comments.push(format!("The following package would be unheld: {package}"));
            continue;
        }
        let (has_succeeded, comment) = select(context, "pkg.unhold", &(package, None), &mut changes)?;
        good &= has_succeeded;
        comments.push(comment);
    }
    Ok(selected(name, good, &comments, changes))
}
