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
use brine_function::{Args, CallError, CallResult, Function};
use brine_value::{Value, map};

use super::session::{ServerArgs, Session};

/// State functions of the modules `postgres_*`.
pub static FUNCTIONS: &[&[Function<StateContext>]] = &[
    cluster::FUNCTIONS,
    database::FUNCTIONS,
    extension::FUNCTIONS,
    role::GROUP_FUNCTIONS,
    language::FUNCTIONS,
    privilege::FUNCTIONS,
    schema::FUNCTIONS,
    tablespace::FUNCTIONS,
    role::FUNCTIONS,
];

/// How a state reaches the server; `user` is the account that runs `psql`.
#[derive(Args, Debug, Clone)]
pub struct StateServerArgs {
    /// Account that runs `psql`.
    #[default]
    pub user: Option<String>,
    /// Database of the session; default: `postgres`.
    #[default]
    pub maintenance_db: Option<String>,
    /// Password of the role.
    #[default]
    pub db_password: Option<String>,
    /// Host, or directory of the socket.
    #[default]
    pub db_host: Option<String>,
    /// Port.
    #[default]
    pub db_port: Value,
    /// Role of the session.
    #[default]
    pub db_user: Option<String>,
}

impl StateServerArgs {
    pub(super) fn server(&self) -> ServerArgs {
        ServerArgs {
            user: self.db_user.clone(),
            host: self.db_host.clone(),
            port: self.db_port.clone(),
            maintenance_db: self.maintenance_db.clone(),
            password: self.db_password.clone(),
        }
    }

    pub(super) fn session<'a>(&self, context: &'a StateContext) -> Result<Session<'a>, CallError> {
        self.server().session(&context.call, self.user.clone())
    }
}

/// Returns what a change has come to: `success` with the change, or `failure` with what the server said.
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

/// Removes something that exists: `what` is its kind and name, such as `Database shop`.
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
        StateReturn::would(name, format!("{what} is set to be removed"))
    } else {
        outcome(name, remove(), format!("{what} has been removed"), "Absent", &format!("{what} failed to be removed"))
    }
    .into())
}
