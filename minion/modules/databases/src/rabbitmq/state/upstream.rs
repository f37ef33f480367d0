//! `rabbitmq_upstream`: states of upstreams of federated exchanges and queues.

use brine_context::{StateContext, StateReturn};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::json::{from_json, to_json};
use brine_value::{Map, Value, map};

use super::or_error;
use crate::rabbitmq::ctl::Ctl;
use crate::rabbitmq::upstream::{UpstreamArgs, delete, upstreams, without_password};

/// State functions of `rabbitmq_upstream`.
pub static FUNCTIONS: Functions<StateContext> = registry!("rabbitmq_upstream", [present, absent]);

/// Ensure that an upstream exists with these settings. The plugin `rabbitmq_federation` must be enabled.
///
/// SLS Example:
///
///     site_b:
///       rabbitmq_upstream.present:
///         - uri: amqp://federation:secret@mq-b.example.com
///         - ack_mode: on-confirm
#[function]
pub fn present(context: &StateContext, #[args] upstream: UpstreamArgs) -> CallResult {
    let name = &upstream.name;
    let ctl = Ctl::new(&context.call, upstream.runas.clone());
    let ensure = || {
        // Numbers as the server's JSON has them.
        let settings = parsed(name, &to_json(&upstream.settings().into()))?;
        let (changes, action) = match upstreams(&ctl)?.get(name.as_str()).and_then(Value::as_str) {
            None => (map! {"old" => Value::Nil, "new" => shown(settings)}, "create"),
            Some(current) => (difference(parsed(name, current)?, settings), "update"),
        };
        if changes.is_empty() {
            return Ok(StateReturn::ok(name, format!("Upstream \"{name}\" already present as specified.")));
        }
        if context.test {
            return Ok(StateReturn::predicted(name, format!("Upstream \"{name}\" would have been {action}d.")));
        }
        Ok(match upstream.set(&ctl) {
            Ok(()) => StateReturn::ok(name, format!("Upstream \"{name}\" {action}d.")).with_changes(changes),
            Err(error) => StateReturn::failed(name, format!("Error trying to {action} upstream: {}", error.message())),
        })
    };
    or_error(name, ensure())
}

/// Ensure that an upstream does not exist.
///
/// SLS Example:
///
///     site_b:
///       rabbitmq_upstream.absent: []
#[function]
pub fn absent(
    context: &StateContext,
    /// Name of the upstream.
    name: String,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    let ctl = Ctl::new(&context.call, runas);
    let ensure = || {
        if !upstreams(&ctl)?.contains_key(name.as_str()) {
            return Ok(StateReturn::ok(&name, format!("The upstream \"{name}\" is already absent.")));
        }
        if context.test {
            return Ok(StateReturn::predicted(&name, format!("Upstream \"{name}\" would have been deleted.")));
        }
        delete(&ctl, &name)?;
        let changes = map! {"old" => &name, "new" => Value::Nil};
        Ok(StateReturn::ok(&name, format!("Upstream \"{name}\" has been deleted.")).with_changes(changes))
    };
    or_error(&name, ensure())
}

fn parsed(name: &str, json: &str) -> Result<Map, CallError> {
    match from_json(json) {
        Ok(Value::Map(settings)) => Ok(settings),
        _ => {
            Err(CallError::Execution(format!("the settings of upstream '{name}' are invalid: expected a JSON object")))
        }
    }
}

/// Returns the differing settings as `old` and `new`, without those that are empty.
fn difference(old: Map, new: Map) -> Map {
    let without = |from: &Map, other: &Map| -> Map {
        let differs = |(name, value): &(&Value, &Value)| other.get(*name) != Some(*value);
        from.iter().filter(differs).map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let mut changes = map! {"old" => shown(without(&old, &new)), "new" => shown(without(&new, &old))};
    changes.retain(|_, settings| settings.is_truthy());
    changes
}

/// Hides the passwords of URIs: changes are stored with the results of jobs.
fn shown(mut settings: Map) -> Map {
    if let Some(uri) = settings.get_mut("uri") {
        let hide = |uri: &Value| uri.as_str().map_or_else(|| uri.clone(), |uri| without_password(uri).into());
        *uri = match &*uri {
            Value::List(uris) => uris.iter().map(hide).collect(),
            uri => hide(uri),
        };
    }
    settings
}
