//! `mysql`: databases, users, grants and the rest of a MySQL or MariaDB server, with the server's own client program.

mod account;
mod connection;
mod database;
mod grant;
mod plugin;
mod privileges;
mod query;
mod quote;
mod resultset;
mod script;
mod server;
mod session;
pub(crate) mod state;
#[cfg(test)]
mod tests;
mod tokens;
mod user;

use brine_context::{Context, Module};

pub(super) static MODULE: Module = Module {
    functions: &[
        &database::FUNCTIONS,
        &grant::FUNCTIONS,
        &plugin::FUNCTIONS,
        &query::FUNCTIONS,
        &server::FUNCTIONS,
        &user::FUNCTIONS,
    ],
    states: state::FUNCTIONS,
    unavailable: Some(unavailable),
    ..Module::EMPTY
};

fn unavailable(context: &Context) -> Option<String> {
    let reason = "No mysql client installed: install the program mariadb or mysql.";
    session::client(context).is_none().then(|| reason.into())
}
