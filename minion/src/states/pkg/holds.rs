//! Packages that keep their versions.

use brine_core::function::CallError;
use brine_core::{Map, Value};

use super::Wanted;
use crate::modules::pkg::selections;
use crate::states::{StateContext, StateReturn};

/// Holds or releases one package: whether that worked, and what is told of it.
fn select(
    context: &StateContext,
    function: &str,
    package: &str,
    changes: &mut Map,
) -> Result<(bool, String), CallError> {
    let args = brine_core::function::Args::positional([package.into()]);
    let done = context.call.call(function, args)?;
    changes.extend(done.as_map().cloned().unwrap_or_default());
    let one = done.get(package).cloned().unwrap_or_default();
    let comment = one.get("comment").map(ToString::to_string).unwrap_or_default();
    Ok((one.get("result").is_some_and(Value::is_truthy), comment))
}

fn holds(context: &StateContext) -> Result<Vec<String>, CallError> {
    Ok(selections(&context.call, "*")?.shift_remove("hold").unwrap_or_default())
}

/// The state of a run that held or released packages.
fn selected(name: &str, good: bool, comments: &[String], changes: Map) -> StateReturn {
    let comment = if comments.is_empty() { "No changes made".to_owned() } else { comments.join("\n") };
    StateReturn { result: Some(good), ..StateReturn::ok(name, comment) }.with_changes(changes)
}

pub(super) fn hold(
    context: &StateContext,
    name: &str,
    wanted: &[Wanted],
    replace: bool,
) -> Result<StateReturn, CallError> {
    let held = holds(context)?;
    let (mut good, mut comments, mut changes) = (true, Vec::new(), Map::new());
    for (package, version) in wanted.iter().filter(|(package, _)| !held.contains(package)) {
        if context.test {
            let version = version.as_ref().map(|version| format!(" (version = {version})")).unwrap_or_default();
            comments.push(format!("The following package would be held: {package}{version}"));
            continue;
        }
        let (done, _) = select(context, "pkg.hold", package, &mut changes)?;
        good &= done;
        let how = if done { "is now being held" } else { "was not held" };
        comments.push(format!("Package {package} {how}"));
    }
    if replace {
        let others = |package: &str| !wanted.iter().any(|(wanted, _)| wanted == package);
        let more = unhold(context, name, others)?;
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
    name: &str,
    is_meant: impl Fn(&str) -> bool,
) -> Result<StateReturn, CallError> {
    let (mut good, mut comments, mut changes) = (true, Vec::new(), Map::new());
    for package in holds(context)?.iter().filter(|package| is_meant(package)) {
        if context.test {
            comments.push(format!("The following package would be unheld: {package}"));
            continue;
        }
        let (done, comment) = select(context, "pkg.unhold", package, &mut changes)?;
        good &= done;
        comments.push(comment);
    }
    Ok(selected(name, good, &comments, changes))
}
