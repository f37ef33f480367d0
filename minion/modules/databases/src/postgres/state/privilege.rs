//! `postgres_privileges`: privileges on objects, and membership in groups.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallResult, Functions, function, registry};
use brine_value::{Map, Value};

use super::{StateServerArgs, outcome};
use crate::postgres::privilege::Object;

/// State functions of `postgres_privileges`.
pub static FUNCTIONS: Functions<StateContext> = registry!("postgres_privileges", [present, absent]);

/// The arguments of both functions, except `grant_option`.
#[derive(Args)]
pub struct PrivilegeArgs {
    /// Name of the role.
    name: String,
    /// Name of the object; `ALL` for all tables, sequences or functions of the schema.
    object_name: String,
    /// Kind of the object: `table`, `sequence`, `function`, `schema`, `tablespace`, `language`, `database` or `group`.
    object_type: String,
    /// Privileges, as a list.
    #[default]
    privileges: Value,
    /// Schema of a table, sequence or function.
    #[default("public".into())]
    prepend: String,
    #[args]
    at: StateServerArgs,
}

/// Ensure that a role has privileges on an object, or is a member of a group.
///
/// SLS Example:
///
///     reporting_reads_app:
///       postgres_privileges.present:
///         - name: reporting
///         - object_name: ALL
///         - object_type: table
///         - privileges:
///           - SELECT
///         - maintenance_db: app
#[function]
pub fn present(
    context: &StateContext,
    #[args] args: PrivilegeArgs,
    /// Whether the role may grant the privileges to others.
    grant_option: Option<bool>,
    #[keywords(crate::postgres::state::further)] _kwargs: Map,
) -> CallResult {
    let may_grant = grant_option.unwrap_or(false);
    let (name, text) = (&*args.name, args.text());
    let object = Object::new(&args.object_type, &args.object_name, &args.prepend)?;
    let privileges = object.parse_privileges(text.as_deref())?;
    let what = if object.is_group() { &args.object_name } else { text.as_ref().unwrap_or(&args.object_name) };
    let session = args.at.session(context)?;
    if object.are_granted(&session, name, &privileges, may_grant)? {
        return Ok(StateReturn::ok(name, "The requested privilege(s) are already set").into());
    }
    if context.test {
        let comment = format!("The privilege(s): {what} are set to be granted to {name}");
        return Ok(StateReturn::predicted(name, comment).into());
    }
    let result = object.grant(&session, name, &privileges, may_grant);
    let success = format!("The privilege(s): {what} have been granted to {name}");
    Ok(outcome(name, result, success, "Present", &format!("Failed to grant privilege(s): {what} to {name}")).into())
}

/// Ensure that a role does not have privileges on an object, or is not a member of a group.
///
/// SLS Example:
///
///     reporting_may_not_write:
///       postgres_privileges.absent:
///         - name: reporting
///         - object_name: ALL
///         - object_type: table
///         - privileges:
///           - INSERT
///           - UPDATE
///         - maintenance_db: app
#[function]
pub fn absent(
    context: &StateContext,
    #[args] args: PrivilegeArgs,
    #[keywords(crate::postgres::state::further)] _kwargs: Map,
) -> CallResult {
    let (name, text) = (&*args.name, args.text());
    let object = Object::new(&args.object_type, &args.object_name, &args.prepend)?;
    let privileges = object.parse_privileges(text.as_deref())?;
    let what = if object.is_group() { &args.object_name } else { text.as_ref().unwrap_or(&args.object_name) };
    let session = args.at.session(context)?;
    if !object.are_granted(&session, name, &privileges, false)? {
        let comment = "The requested privilege(s) are not set so cannot be revoked";
        return Ok(StateReturn::ok(name, comment).into());
    }
    if context.test {
        let comment = format!("The privilege(s): {what} are set to be revoked from {name}");
        return Ok(StateReturn::predicted(name, comment).into());
    }
    let result = object.revoke(&session, name, &privileges);
    let success = format!("The privilege(s): {what} have been revoked from {name}");
    Ok(outcome(name, result, success, "Absent", &format!("Failed to revoke privilege(s): {what} from {name}")).into())
}

impl PrivilegeArgs {
    /// Returns the privileges as a string separated by commas. They are given as a list, or in that form.
    fn text(&self) -> Option<String> {
        match self.privileges.as_list() {
            Some(list) => Some(list.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")),
            None => self.privileges.is_truthy().then(|| self.privileges.to_string()),
        }
    }
}
