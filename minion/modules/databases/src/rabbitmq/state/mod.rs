//! States of a RabbitMQ server: the modules `rabbitmq_user`, `rabbitmq_vhost` and so on, one file each.

mod cluster;
mod plugin;
mod policy;
#[cfg(test)]
mod tests;
mod upstream;
mod user;
mod vhost;

use brine_context::{StateContext, StateReturn};
use brine_function::{CallError, CallResult, Functions};

/// State functions of the modules `rabbitmq_*`.
pub static FUNCTIONS: &[&Functions<StateContext>] = &[
    &cluster::FUNCTIONS,
    &plugin::FUNCTIONS,
    &policy::FUNCTIONS,
    &upstream::FUNCTIONS,
    &user::FUNCTIONS,
    &vhost::FUNCTIONS,
];

/// Returns the result of a state; for an error, a failure with its message.
fn or_failed(name: &str, result: Result<StateReturn, CallError>) -> CallResult {
    Ok(result.unwrap_or_else(|error| StateReturn::failed(name, error.message())).into())
}

/// Returns the result of a state as [`or_failed`], with `Error: ` before the message of an error.
fn or_error(name: &str, result: Result<StateReturn, CallError>) -> CallResult {
    let failed = |error: CallError| StateReturn::failed(name, format!("Error: {}", error.message()));
    Ok(result.unwrap_or_else(failed).into())
}
