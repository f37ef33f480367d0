//! `postgres`: databases, roles, privileges and the rest of a PostgreSQL server, with `psql`.

mod cluster;
mod database;
mod extension;
mod password;
mod privilege;
mod role;
mod schema;
mod session;
pub(crate) mod state;
#[cfg(test)]
mod tests;

use brine_context::{Context, Module};
use brine_function::{CallResult, Functions, function, registry};

use session::{Bin, LoginArgs, ServerArgs, done};

pub(super) static MODULE: Module = Module {
    functions: &[
        &FUNCTIONS,
        &cluster::FUNCTIONS,
        &database::FUNCTIONS,
        &extension::FUNCTIONS,
        &privilege::FUNCTIONS,
        &role::FUNCTIONS,
        &schema::FUNCTIONS,
    ],
    states: state::FUNCTIONS,
    unavailable: Some(unavailable),
    ..Module::EMPTY
};

fn unavailable(context: &Context) -> Option<String> {
    let reason = "Unable to load postgres module.  Make sure `postgres.bins_dir` is set.";
    (!Bin::Psql.is_installed(context)).then(|| reason.into())
}

/// Execution functions of `postgres` about the server itself.
pub static FUNCTIONS: Functions<Context> = registry!("postgres", [version, psql_query, owner_to]);

/// Return the version of a PostgreSQL server.
///
/// CLI Example:
///
///     salt '*' postgres.version
#[function]
pub fn version(
    context: &Context,
    #[args] server: ServerArgs,
    /// Account that runs `psql`; that of the server by default.
    runas: Option<String>,
) -> CallResult {
    let rows = server.session(context, runas)?.query("SELECT current_setting('server_version') AS version")?;
    Ok(rows.first().and_then(|row| row.get("version")).cloned().unwrap_or_default())
}

/// Return the rows of a query, each with its columns as text; `write` for a query that changes data, such as
/// `WITH updated AS (UPDATE ... RETURNING ...) SELECT * FROM updated`.
///
/// CLI Example:
///
///     salt '*' postgres.psql_query 'select * from pg_stat_activity'
#[function]
pub fn psql_query(
    context: &Context,
    /// Statement to run.
    query: String,
    #[args] server: ServerArgs,
    /// Account that runs `psql`; that of the server by default.
    runas: Option<String>,
    /// Whether the statement may change data.
    #[default(false)]
    write: bool,
) -> CallResult {
    let session = server.session(context, runas)?;
    let rows = if write { session.query_and_write(&query)? } else { session.query(&query)? };
    Ok(rows.into_iter().map(brine_value::Value::from).collect::<Vec<_>>().into())
}

/// Make a role the owner of a database and of the schemas, relations and routines in it, except those of the server and
/// of extensions.
///
/// CLI Example:
///
///     salt '*' postgres.owner_to 'dbname' 'username'
#[function]
pub fn owner_to(
    context: &Context,
    /// Name of the database.
    dbname: String,
    /// Name of the new owner.
    ownername: String,
    #[args] login: LoginArgs,
) -> CallResult {
    done(database::change_owner_of_all(&login.session(context, Some(dbname.clone()))?, &dbname, &ownername))
}
