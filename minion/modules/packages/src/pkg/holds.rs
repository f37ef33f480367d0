//! `pkg` functions that hold packages at their versions.

use brine_context::Context;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};

use super::apt::{debian, selections};
use super::manager::{Locks, Packages, packages};
use super::options::Options;
use super::requested;

/// Execution functions of `pkg`.
pub static FUNCTIONS: Functions<Context> = registry!("pkg", [get_selections, list_holds, hold, unhold]);

/// Return packages by dpkg's selection state: `install`, `hold`, `deinstall`, `purge`.
///
/// CLI Example:
///
///     salt '*' pkg.get_selections 'python-*'
#[function]
pub fn get_selections(
    context: &Context,
    /// Glob of the names; all by default.
    pattern: Option<String>,
    /// State of the selections, such as `hold`.
    state: Option<String>,
) -> CallResult {
    debian(context, "get_selections")?;
    let mut selections = selections(context, pattern.as_deref().unwrap_or("*"))?;
    if let Some(state) = state {
        let names = selections.shift_remove(&state).unwrap_or_default();
        return Ok(map! {state => names}.into());
    }
    Ok(selections.into_iter().map(|(state, names)| (state.into(), names.into())).collect::<Map>().into())
}

/// Return the packages held by dnf or zypper, with `full` with their versions. `pattern` is without effect: all locks are
/// read.
///
/// CLI Example:
///
///     salt '*' pkg.list_holds full=False
#[function]
pub fn list_holds(
    context: &Context,
    /// Whether versions are returned, too.
    #[default(true)]
    full: bool,
    /// `root`: directory of another system whose locks are read.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let packages = packages(context)?;
    Ok(locks(packages, "pkg.list_holds")?.list_holds(context, full, &Options::read(&kwargs))?.into())
}

/// Hold packages at their current versions.
///
/// CLI Example:
///
///     salt '*' pkg.hold <package name>
#[function]
pub fn hold(
    context: &Context,
    /// Name of the package.
    name: Option<String>,
    /// Packages, or mappings of packages to versions, in the place of `name`.
    #[default]
    pkgs: Value,
    /// Options of the package manager, as in the state `pkg.installed`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    set(context, name.as_deref(), &pkgs, true, &kwargs)
}

/// Release held packages.
///
/// CLI Example:
///
///     salt '*' pkg.unhold <package name>
#[function]
pub fn unhold(
    context: &Context,
    /// Name of the package.
    name: Option<String>,
    /// Packages, or mappings of packages to versions, in the place of `name`.
    #[default]
    pkgs: Value,
    /// Options of the package manager, as in the state `pkg.installed`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    set(context, name.as_deref(), &pkgs, false, &kwargs)
}

/// Returns the locks of a package manager, or the error of a function that needs them.
fn locks<'p>(packages: &'p dyn Packages, function: &str) -> Result<&'p dyn Locks, CallError> {
    packages.locks().ok_or_else(|| CallError::NotAvailable(function.to_owned()))
}

fn set(context: &Context, name: Option<&str>, pkgs: &Value, hold: bool, kwargs: &Map) -> Result<Value, CallError> {
    let packages = packages(context)?;
    let locks = locks(packages, if hold { "pkg.hold" } else { "pkg.unhold" })?;
    let desired = requested(name, pkgs, None)?;
    if desired.is_empty() {
        return Err(CallError::Execution("One of name, pkgs, or sources must be specified.".into()));
    }
    Ok(locks.set(context, &desired, hold, &Options::read(kwargs))?.into())
}

/// Result for a package that was held or released.
pub struct HoldResult {
    result: Value,
    comment: String,
    changes: Map,
}

impl HoldResult {
    /// Returns the result without a change.
    pub fn nothing(comment: String) -> Self {
        HoldResult { result: true.into(), comment, changes: Map::new() }
    }

    /// Returns the result of test mode for a pending change.
    pub fn would(comment: String) -> Self {
        HoldResult { result: Value::Nil, comment, changes: Map::new() }
    }

    /// Returns the result of a change.
    pub fn done(comment: String, changes: Map) -> Self {
        HoldResult { result: true.into(), comment, changes }
    }

    /// Returns the result of a failure.
    pub fn failed(comment: String) -> Self {
        HoldResult { result: false.into(), comment, changes: Map::new() }
    }

    /// Returns the mapping that is reported for this package.
    pub fn of(self, name: &str) -> Map {
        map! {"name" => name, "changes" => self.changes, "result" => self.result, "comment" => self.comment}
    }
}
