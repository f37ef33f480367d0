//! `pkg.group_installed`: the packages of a group.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, function};
use brine_value::{Map, Value};

use crate::pkg::dnf::groups;
use crate::pkg::{Desired, Operation, Options, error_message, install, packages};

/// Ensure that the mandatory and default packages of a group are installed. With dnf and yum.
///
/// Accepts the arguments of `pkg.install`.
///
/// SLS Example:
///
///     Development Tools:
///       pkg.group_installed:
///         - include:
///           - rpm-build
///         - skip:
///           - subversion
#[function]
pub fn group_installed(
    context: &StateContext,
    /// Name of the group.
    name: String,
    /// Packages of the group that are not installed, as a list.
    #[default]
    skip: Value,
    /// Optional packages of the group that are installed, too, as a list.
    #[default]
    include: Value,
    #[keywords(crate::pkg::further)] kwargs: Map,
) -> CallResult {
    if !groups::are_available(&context.call) {
        return Ok(StateReturn::failed(&name, "pkg.group_install not available for this platform").into());
    }
    let packages = packages(&context.call)?;
    let list = |option: &str, value: &Value| match value {
        Value::Nil => Ok(Vec::new()),
        Value::List(items) => Ok(items.iter().map(ToString::to_string).collect::<Vec<String>>()),
        _ => Err(format!("{option} must be formatted as a list")),
    };
    let (skip, include) = match list("skip", &skip).and_then(|skip| Ok((skip, list("include", &include)?))) {
        Ok(both) => both,
        Err(comment) => return Ok(StateReturn::failed(&name, comment).into()),
    };
    let options = Options::read(&kwargs);
    let mut asked = kwargs;
    asked.insert("name".into(), name.as_str().into());
    let diff = match context.call.call("pkg.group_diff", Args::keyword(asked)) {
        Ok(diff) => diff,
        Err(CallError::Execution(error)) => {
            let comment = format!("An error was encountered while installing/updating group '{name}': {error}.");
            return Ok(StateReturn::failed(&name, comment).into());
        }
        Err(error) => return Err(error),
    };
    let of = |kind: &str, state: &str| {
        let members = diff.get(kind).and_then(|kind| kind.get(state)).and_then(Value::as_list).unwrap_or_default();
        members.iter().map(ToString::to_string).collect::<Vec<String>>()
    };
    let mandatory = [of("mandatory", "installed"), of("mandatory", "not installed")].concat();
    let conflicts: Vec<&str> = mandatory.iter().filter(|package| skip.contains(package)).map(String::as_str).collect();
    if !conflicts.is_empty() {
        let comment = format!("The following mandatory packages cannot be skipped: {}", conflicts.join(", "));
        return Ok(StateReturn::failed(&name, comment).into());
    }
    let required = [of("mandatory", "not installed"), include].concat();
    let defaults = of("default", "not installed").into_iter().filter(|package| !skip.contains(package));
    let targets: Vec<Desired> = required.iter().cloned().chain(defaults).map(|package| (package, None)).collect();
    if targets.is_empty() {
        return Ok(StateReturn::ok(&name, format!("Group '{name}' is already installed")).into());
    }
    let is_partial = ["mandatory", "default", "optional"].iter().any(|kind| !of(kind, "installed").is_empty());
    if context.test {
        let comment = if is_partial { "is partially installed and will be updated" } else { "will be installed" };
        return Ok(StateReturn::predicted(&name, format!("Group '{name}' {comment}")).into());
    }
    let outcome = install(&context.call, packages, &targets, &options)?;
    if !outcome.errors.is_empty() {
        let comment = error_message(packages, Operation::Installing, &outcome.errors);
        return Ok(StateReturn::failed(&name, comment).with_changes(outcome.changes).into());
    }
    // As by dnf itself, default packages that no repository has are no failure.
    let installed = packages.installed(&context.call, &options)?;
    let missing: Vec<&str> =
        required.iter().filter(|package| !installed.contains_key(*package)).map(String::as_str).collect();
    if !missing.is_empty() {
        let comment = format!("Failed to install the following packages: {}", missing.join(", "));
        return Ok(StateReturn::failed(&name, comment).with_changes(outcome.changes).into());
    }
    let what = if is_partial { "updated" } else { "installed" };
    Ok(StateReturn::ok(&name, format!("Group '{name}' was {what}")).with_changes(outcome.changes).into())
}
