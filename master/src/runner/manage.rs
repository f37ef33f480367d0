//! `manage`: which minions are up.

use std::time::Duration;

use brine_core::function::{CallError, CallResult, Function, function, registry};
use brine_core::wire::PublishRequest;
use brine_core::{Value, map};

use super::RunnerContext;

/// Runner functions of `manage`.
pub static FUNCTIONS: &[Function<RunnerContext>] = registry!("manage", [status, up, down, targets]);

/// The minions that answer a ping, and those that do not.
///
/// CLI Example:
///
///     salt-run manage.status
#[function]
pub fn status(
    context: &RunnerContext,
    #[default("*".into())] tgt: Value,
    #[default("glob".into())] tgt_type: String,
    #[default] timeout: Option<f64>,
) -> CallResult {
    let (up, down) = ping(context, tgt, tgt_type, timeout)?;
    Ok(map! {"up" => up, "down" => down}.into())
}

/// The minions that answer a ping.
///
/// CLI Example:
///
///     salt-run manage.up
#[function]
pub fn up(
    context: &RunnerContext,
    #[default("*".into())] tgt: Value,
    #[default("glob".into())] tgt_type: String,
    #[default] timeout: Option<f64>,
) -> CallResult {
    ping(context, tgt, tgt_type, timeout).map(|(up, _)| up.into())
}

/// The minions that do not answer a ping.
///
/// CLI Example:
///
///     salt-run manage.down
#[function]
pub fn down(
    context: &RunnerContext,
    #[default("*".into())] tgt: Value,
    #[default("glob".into())] tgt_type: String,
    #[default] timeout: Option<f64>,
) -> CallResult {
    ping(context, tgt, tgt_type, timeout).map(|(_, down)| down.into())
}

/// The minions that a target means, without asking any.
///
/// CLI Example:
///
///     salt-run manage.targets 'web*'
#[function]
pub fn targets(
    context: &RunnerContext,
    #[default("*".into())] tgt: Value,
    #[default("glob".into())] tgt_type: String,
) -> CallResult {
    let request = PublishRequest { tgt, tgt_type, ..PublishRequest::new("*", "test.ping", &context.caller.user) };
    Ok(context.wait(context.master.targets(&request)).map_err(CallError::execution)?.0.into())
}

/// Pings, and says who answered and who did not, both sorted.
fn ping(
    context: &RunnerContext,
    tgt: Value,
    tgt_type: String,
    timeout: Option<f64>,
) -> Result<(Vec<String>, Vec<String>), CallError> {
    let master = &context.master;
    let timeout = timeout.map_or(Duration::from_secs(master.config.timeout), |seconds| {
        brine_core::seconds::within(0.0..=86_400.0, seconds)
    });
    let request = PublishRequest { tgt, tgt_type, ..PublishRequest::new("*", "test.ping", &context.caller.user) };
    let answers = context.wait(master.ask(request, timeout)).map_err(CallError::execution)?;
    let mut up: Vec<_> = answers.returned.into_iter().map(|(id, _)| id).collect();
    up.sort();
    Ok((up, answers.missing))
}
