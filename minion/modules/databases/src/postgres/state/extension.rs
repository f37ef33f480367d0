//! `postgres_extension`: extensions of a database.

use brine_context::{StateContext, StateReturn};
use brine_function::{CallResult, Functions, function, registry};
use brine_value::Map;

use super::{StateServerArgs, outcome, removed};
use crate::postgres::extension::{Desired, Status, create, installed, remove};

/// State functions of `postgres_extension`.
pub static FUNCTIONS: Functions<StateContext> = registry!("postgres_extension", [present, absent]);

/// Ensure that an extension is installed, in this schema and at least in this version.
///
/// SLS Example:
///
///     pg_stat_statements:
///       postgres_extension.present:
///         - maintenance_db: app
#[function]
pub fn present(
    context: &StateContext,
    /// Name of the extension.
    name: String,
    /// Whether an extension that exists is no error.
    if_not_exists: Option<bool>,
    /// Schema of the objects of the extension.
    schema: Option<String>,
    /// Version of the extension.
    ext_version: Option<String>,
    /// Version of the objects that a new extension takes over.
    from_version: Option<String>,
    #[args] at: StateServerArgs,
    #[keywords(crate::postgres::state::further)] _kwargs: Map,
) -> CallResult {
    let session = at.session(context)?;
    let status = Status::read(&session, &name, ext_version.as_deref(), schema.as_deref())?;
    let (verb, participle) = match status {
        Status { is_installed: false, .. } => ("install", "installed"),
        Status { is_older: false, is_elsewhere: false, .. } => {
            return Ok(StateReturn::ok(&name, format!("Extension {name} is already present")).into());
        }
        _ => ("upgrade", "upgraded"),
    };
    if context.test {
        return Ok(StateReturn::predicted(&name, format!("Extension {name} is set to be {participle}")).into());
    }
    let desired = Desired { if_not_exists: if_not_exists.unwrap_or(true), schema, ext_version, from_version };
    let result = create(&session, &name, &desired);
    let change = if verb == "install" { "Installed" } else { "Upgraded" };
    let success = format!("The extension {name} has been {participle}");
    Ok(outcome(&name, result, success, change, &format!("Failed to {verb} extension {name}")).into())
}

/// Ensure that an extension is not installed; dependent objects are removed, too, unless `restrict` is set or `cascade`
/// is false.
///
/// SLS Example:
///
///     hstore:
///       postgres_extension.absent:
///         - maintenance_db: app
#[function]
pub fn absent(
    context: &StateContext,
    /// Name of the extension.
    name: String,
    /// Whether an extension that does not exist is no error.
    if_exists: Option<bool>,
    /// Whether the extension stays if others depend on it.
    restrict: Option<bool>,
    /// Whether dependent objects are removed, too; true by default.
    cascade: Option<bool>,
    #[args] at: StateServerArgs,
    #[keywords(crate::postgres::state::further)] _kwargs: Map,
) -> CallResult {
    let session = at.session(context)?;
    let exists = installed(&session)?.contains_key(&*name);
    removed(context, &name, &format!("Extension {name}"), exists, || {
        remove(&session, &name, if_exists.unwrap_or(false), restrict.unwrap_or(false), cascade.unwrap_or(true))
    })
}
