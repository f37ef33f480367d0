//! `mysql_grants`: privileges of users.

use brine_context::{StateContext, StateReturn};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value};

use super::{or_failed, outcome};
use crate::mysql::connection::ConnectionArgs;
use crate::mysql::grant::{GrantArgs, Request};
use crate::mysql::session::Session;

/// State functions of `mysql_grants`.
pub static FUNCTIONS: Functions<StateContext> = registry!("mysql_grants", [present, absent]);

/// Ensure that a user has privileges on an object. With `revoke_first`, other privileges are removed: unless the user
/// has exactly these, all privileges on the object are revoked first, so that for a short time the desired ones are
/// missing, too. `ssl_option` is a list of requirements for logins of the user.
///
/// SLS Example:
///
///     app_on_its_database:
///       mysql_grants.present:
///         - grant: select,insert,update,delete
///         - database: app.*
///         - user: app
///         - host: localhost
#[function]
pub fn present(
    context: &StateContext,
    /// Name of the state.
    name: String,
    #[args] args: GrantArgs,
    /// Whether all privileges on the object are revoked first, unless the user has exactly these.
    #[default(false)]
    revoke_first: bool,
    /// Requirements for logins of the user, as a list.
    #[default]
    ssl_option: Value,
    #[args] connection: ConnectionArgs,
    #[keywords(crate::mysql::state::further)] _kwargs: Map,
) -> CallResult {
    let GrantArgs { grant, database, user, host, .. } = &args;
    with_request(context, &name, &args, &connection, |request, session| {
        let exists = if revoke_first { request.is_exact(session)? } else { request.is_granted(session)? };
        if exists {
            let comment = format!("Grant {grant} on {database} to {user}@{host} is already present");
            return Ok(StateReturn::ok(&name, comment));
        }
        if context.test {
            return Ok(StateReturn::predicted(&name, format!("MySQL grant {name} is set to be created")));
        }
        let revoked = if revoke_first { request.revoke_all(session) } else { Ok(()) };
        let result = revoked.and_then(|()| request.grant(session, &ssl_option));
        let success = format!("Grant {grant} on {database} to {user}@{host} has been added");
        let failure = format!("Failed to execute: \"GRANT {grant} ON {database} TO {user}@{host}\"");
        Ok(outcome(&name, result, success, "Present", failure))
    })
}

/// Ensure that a user does not have privileges on an object.
///
/// SLS Example:
///
///     app_may_not_drop:
///       mysql_grants.absent:
///         - grant: drop
///         - database: app.*
///         - user: app
#[function]
pub fn absent(
    context: &StateContext,
    /// Name of the state.
    name: String,
    #[args] args: GrantArgs,
    #[args] connection: ConnectionArgs,
    #[keywords(crate::mysql::state::further)] _kwargs: Map,
) -> CallResult {
    let GrantArgs { grant, database, user, host, .. } = &args;
    with_request(context, &name, &args, &connection, |request, session| {
        if !request.is_granted(session)? {
            let comment =
                format!("Grant {grant} on {database} to {user}@{host} is not present, so it cannot be revoked");
            return Ok(StateReturn::ok(&name, comment));
        }
        if context.test {
            return Ok(StateReturn::predicted(&name, format!("MySQL grant {name} is set to be revoked")));
        }
        let success = format!("Grant {grant} on {database} for {user}@{host} has been revoked");
        let failure = format!("Unable to revoke grant {grant} on {database} for {user}@{host}");
        Ok(outcome(&name, request.revoke(session), success, "Absent", failure))
    })
}

/// Runs a state with a request and a session; an error of either, or of the state, fails the state.
fn with_request(
    context: &StateContext,
    name: &str,
    args: &GrantArgs,
    connection: &ConnectionArgs,
    ensure: impl FnOnce(&Request, &Session) -> Result<StateReturn, CallError>,
) -> CallResult {
    let attempt = || ensure(&Request::new(args)?, &connection.session(&context.call)?);
    or_failed(name, attempt())
}
