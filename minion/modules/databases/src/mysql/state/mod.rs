//! States of a MySQL or MariaDB server: the modules `mysql_database`, `mysql_user`, `mysql_grants` and `mysql_query`.

mod database;
mod grants;
mod query;
mod user;

use brine_context::{StateContext, StateReturn};
use brine_function::{CallError, CallResult, Functions, Others, ParamList};
use brine_value::map;

/// State functions of the modules `mysql_*`.
pub static FUNCTIONS: &[&Functions<StateContext>] =
    &[&database::FUNCTIONS, &grants::FUNCTIONS, &query::FUNCTIONS, &user::FUNCTIONS];

/// Returns the result of a change: `success` with the change, or `failure` with the error of the server.
fn outcome(
    name: &str,
    result: Result<(), CallError>,
    success: impl Into<String>,
    change: &str,
    failure: impl Into<String>,
) -> StateReturn {
    match result {
        Ok(()) => StateReturn::ok(name, success).with_changes(map! {name => change}),
        Err(error) => StateReturn::failed(name, format!("{} ({})", failure.into(), error.message())),
    }
}

/// Returns a failed state for a server that cannot be reached or refuses a query.
fn or_failed(name: &str, result: Result<StateReturn, CallError>) -> CallResult {
    Ok(result.unwrap_or_else(|error| StateReturn::failed(name, error.message())).into())
}

/// Describes the further arguments of the states of MySQL.
pub(crate) fn further(params: &mut ParamList) {
    params.others(Others::Unused);
    params.further("connection_*", "a string", "Without effect: the options of the connection are those above.");
    for name in ["grain", "key"] {
        params.further(name, "a string", "Without effect.");
    }
}
