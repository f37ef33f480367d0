//! `postgres_initdb`: data directories.

use brine_context::{StateContext, StateReturn};
use brine_function::{CallResult, Functions, function, registry};
use brine_value::Map;

use super::outcome;
use crate::postgres::cluster::{InitArgs, create, is_data_directory};

/// State functions of `postgres_initdb`.
pub static FUNCTIONS: Functions<StateContext> = registry!("postgres_initdb", [present]);

/// Ensure that a directory is a data directory.
///
/// SLS Example:
///
///     /var/lib/pgsql/16/data:
///       postgres_initdb.present:
///         - auth: scram-sha-256
///         - user: postgres
///         - encoding: UTF8
///         - checksums: True
///         - runas: postgres
#[function]
pub fn present(
    context: &StateContext,
    /// Path of the data directory.
    name: String,
    #[args] args: InitArgs,
    #[keywords(crate::postgres::state::further)] _kwargs: Map,
) -> CallResult {
    if is_data_directory(&name) {
        return Ok(StateReturn::ok(&name, format!("Postgres data directory {name} is already present")).into());
    }
    if context.test {
        let comment = format!("Postgres data directory {name} is set to be initialized");
        return Ok(StateReturn::predicted(&name, comment).into());
    }
    let result = create(&context.call, &name, &args);
    let success = format!("Postgres data directory {name} has been initialized");
    let failure = format!("Postgres data directory {name} initialization failed");
    Ok(outcome(&name, result, success, "Present", &failure).into())
}
