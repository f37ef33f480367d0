//! States of a PostgreSQL server: the modules `postgres_database`, `postgres_user` and so on.

mod cluster;
mod database;
mod extension;
mod language;
mod privilege;
mod role;
mod schema;
mod tablespace;

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, Others, ParamList};
use brine_value::{Map, Value, map};

use super::session::{DbServerArgs, ServerArgs, Session};

/// State functions of the modules `postgres_*`.
pub static FUNCTIONS: &[&Functions<StateContext>] = &[
    &cluster::FUNCTIONS,
    &database::FUNCTIONS,
    &extension::FUNCTIONS,
    &role::GROUP_FUNCTIONS,
    &language::FUNCTIONS,
    &privilege::FUNCTIONS,
    &schema::FUNCTIONS,
    &tablespace::FUNCTIONS,
    &role::FUNCTIONS,
];

/// The arguments of states for the connection to a server; `user` is the account that runs `psql`.
#[derive(Args, Debug, Clone)]
pub struct StateServerArgs {
    /// Account that runs `psql`.
    pub user: Option<String>,
    /// Database of the session; default: `postgres`.
    pub maintenance_db: Option<String>,
    #[args]
    pub server: DbServerArgs,
    /// Role of the session.
    pub db_user: Option<String>,
}

impl StateServerArgs {
    pub(super) fn server(&self) -> ServerArgs {
        self.server.of(self.db_user.clone(), self.maintenance_db.clone())
    }

    pub(super) fn session<'a>(&self, context: &'a StateContext) -> Result<Session<'a>, CallError> {
        self.server().session(&context.call, self.user.clone())
    }
}

/// The arguments of states that remove an item by its name.
#[derive(Args, Debug, Clone)]
pub struct AbsentArgs {
    /// Name of the item to remove.
    pub name: String,
    #[args]
    pub at: StateServerArgs,
    #[keywords(further)]
    _kwargs: Map,
}

/// Returns the result of a change: `success` with the change, or `failure` with the error of the server.
pub(super) fn outcome(
    name: &str,
    result: Result<(), CallError>,
    success: String,
    change: impl Into<Value>,
    failure: &str,
) -> StateReturn {
    match result {
        Ok(()) => StateReturn::ok(name, success).with_changes(map! {name => change.into()}),
        Err(CallError::Execution(reason)) => StateReturn::failed(name, format!("{failure}: {reason}")),
        Err(error) => StateReturn::failed(name, format!("{failure}: {error}")),
    }
}

/// Ensures that an item is absent. `what` is its kind and name for comments, such as `Database shop`.
pub(super) fn removed(
    context: &StateContext,
    name: &str,
    what: &str,
    exists: bool,
    remove: impl FnOnce() -> Result<(), CallError>,
) -> CallResult {
    Ok(if !exists {
        StateReturn::ok(name, format!("{what} is not present, so it cannot be removed"))
    } else if context.test {
        StateReturn::predicted(name, format!("{what} is set to be removed"))
    } else {
        outcome(name, remove(), format!("{what} has been removed"), "Absent", &format!("{what} failed to be removed"))
    }
    .into())
}

/// Describes the further arguments of the states of PostgreSQL.
pub(crate) fn further(params: &mut ParamList) {
    params.others(Others::Unused);
    params.further("db_host", "a string", "Host, or directory of the socket.");
    params.further("db_port", "a string", "Port.");
    params.further("db_user", "a string", "Role of the session.");
    params.further("db_password", "a string", "Password of the role.");
    params.further("maintenance_db", "a string", "Database of the session; `postgres` by default.");
    params.further("user", "a string", "Account that runs `psql`.");
    params.further("runas", "a string", "Without effect: the account is called `user`.");
}
