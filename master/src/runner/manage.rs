//! `manage`: which minions are up.

use std::time::Duration;

use brine_function::{CallError, functions};
use brine_value::{Value, map};
use brine_wire::PublishRequest;

use super::RunnerContext;

functions! {
    module "manage", context RunnerContext;

    /// The minions that answer a ping, and those that do not.
    ///
    /// CLI Example:
    ///
    ///     salt-run manage.status
    fn status(context, tgt: Value = "*".into(), tgt_type: String = "glob".into(), timeout: Option<f64> = None) {
        let (up, down) = ping(context, tgt, tgt_type, timeout)?;
        Ok(map! {"up" => up, "down" => down}.into())
    }

    /// The minions that answer a ping.
    ///
    /// CLI Example:
    ///
    ///     salt-run manage.up
    fn up(context, tgt: Value = "*".into(), tgt_type: String = "glob".into(), timeout: Option<f64> = None) {
        ping(context, tgt, tgt_type, timeout).map(|(up, _)| up.into())
    }

    /// The minions that do not answer a ping.
    ///
    /// CLI Example:
    ///
    ///     salt-run manage.down
    fn down(context, tgt: Value = "*".into(), tgt_type: String = "glob".into(), timeout: Option<f64> = None) {
        ping(context, tgt, tgt_type, timeout).map(|(_, down)| down.into())
    }

    /// The minions that a target means, without asking any.
    ///
    /// CLI Example:
    ///
    ///     salt-run manage.targets 'web*'
    fn targets(context, tgt: Value = "*".into(), tgt_type: String = "glob".into()) {
        let request = PublishRequest { tgt, tgt_type, ..PublishRequest::new("*", "test.ping", &context.caller.user) };
        Ok(context.wait(context.master.targets(&request)).map_err(CallError::execution)?.0.into())
    }
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
        brine_runtime::seconds::within(0.0..=86_400.0, seconds)
    });
    let request = PublishRequest { tgt, tgt_type, ..PublishRequest::new("*", "test.ping", &context.caller.user) };
    let answers = context.wait(master.ask(request, timeout)).map_err(CallError::execution)?;
    let mut up: Vec<_> = answers.returned.into_iter().map(|(id, _)| id).collect();
    up.sort();
    Ok((up, answers.missing))
}
