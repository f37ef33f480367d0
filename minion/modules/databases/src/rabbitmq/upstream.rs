//! Upstreams of federated exchanges and queues of a RabbitMQ server.

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_value::json::to_json;
use brine_value::{Map, Value, map};

use super::ctl::{Ctl, field};

/// Execution functions of `rabbitmq` for upstreams.
pub static FUNCTIONS: Functions<Context> =
    registry!("rabbitmq", [list_upstreams, upstream_exists, set_upstream, delete_upstream]);

/// The component of the parameters that are upstreams.
const COMPONENT: &str = "federation-upstream";

/// The arguments of functions that set an upstream.
#[derive(Args, Debug, Clone)]
pub struct UpstreamArgs {
    /// Name of the upstream.
    pub name: String,
    /// AMQP URI of the other server, or a list of URIs.
    pub uri: Value,
    /// Maximum number of messages on the link that are not acknowledged; by default 1000.
    pub prefetch_count: Option<i64>,
    /// Seconds until the connection is tried again.
    pub reconnect_delay: Option<i64>,
    /// When messages are acknowledged: `on-confirm` (the default), `on-publish` or `no-ack`.
    pub ack_mode: Option<String>,
    /// Whether the user IDs in messages of the other server are trusted.
    pub trust_user_id: Option<bool>,
    /// Name of the exchange on the other server; by default that of the federated exchange.
    pub exchange: Option<String>,
    /// Maximum number of links that a message may pass; by default 1.
    pub max_hops: Option<i64>,
    /// Milliseconds after which the queue on the other server is deleted while the connection is lost.
    pub expires: Option<i64>,
    /// Milliseconds after which messages in that queue expire.
    pub message_ttl: Option<i64>,
    /// The argument `x-ha-policy` of that queue, for old servers.
    pub ha_policy: Option<String>,
    /// Name of the queue on the other server; by default that of the federated queue.
    pub queue: Option<String>,
    /// Account that runs `rabbitmqctl`.
    pub runas: Option<String>,
}

/// Return the upstreams of the virtual host `/` by name, each with its settings as JSON.
///
/// CLI Example:
///
///     salt '*' rabbitmq.list_upstreams
#[function]
pub fn list_upstreams(
    context: &Context,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    Ok(upstreams(&Ctl::new(context, runas))?.into())
}

/// Return whether an upstream exists.
///
/// CLI Example:
///
///     salt '*' rabbitmq.upstream_exists rabbit_upstream
#[function]
pub fn upstream_exists(
    context: &Context,
    /// Name of the item: the user, virtual host, queue, plugin, policy or upstream.
    name: String,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    Ok(upstreams(&Ctl::new(context, runas))?.contains_key(name.as_str()).into())
}

/// Set an upstream of federated exchanges and queues. The plugin `rabbitmq_federation` must be enabled.
///
/// CLI Example:
///
///     salt '*' rabbitmq.set_upstream upstream_name uri=amqp://hostname ack_mode=on-confirm max_hops=1
#[function]
pub fn set_upstream(context: &Context, #[args] upstream: UpstreamArgs) -> CallResult {
    upstream.set(&Ctl::new(context, upstream.runas.clone()))?;
    Ok(true.into())
}

/// Delete an upstream.
///
/// CLI Example:
///
///     salt '*' rabbitmq.delete_upstream upstream_name
#[function]
pub fn delete_upstream(
    context: &Context,
    /// Name of the item: the user, virtual host, queue, plugin, policy or upstream.
    name: String,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    delete(&Ctl::new(context, runas), &name)?;
    Ok(true.into())
}

impl UpstreamArgs {
    /// Returns the settings of the upstream by their names in the server.
    pub(super) fn settings(&self) -> Map {
        let mut settings = map! {
            "uri" => self.uri.clone(),
            "prefetch-count" => self.prefetch_count,
            "reconnect-delay" => self.reconnect_delay,
            "ack-mode" => self.ack_mode.clone(),
            "trust-user-id" => self.trust_user_id,
            "exchange" => self.exchange.clone(),
            "max-hops" => self.max_hops,
            "expires" => self.expires,
            "message-ttl" => self.message_ttl,
            "ha-policy" => self.ha_policy.clone(),
            "queue" => self.queue.clone(),
        };
        settings.retain(|_, value| value.is_truthy());
        settings
    }

    /// Sets the upstream.
    pub(super) fn set(&self, ctl: &Ctl) -> Result<(), CallError> {
        let settings = to_json(&self.settings().into());
        // `rabbitmqctl` reads parameters from its arguments only: a password in the URI is visible in the list of processes
        // while it runs.
        let result = ctl.run_secret(&["set_parameter", COMPONENT, &argument(&self.name)?, &settings]);
        let hide = |error: CallError| {
            let uris = match &self.uri {
                Value::List(uris) => uris.as_slice(),
                uri => std::slice::from_ref(uri),
            };
            let replace = |text: String, uri: &str| text.replace(uri, &without_password(uri));
            let uris = uris.iter().filter_map(Value::as_str).filter(|uri| !uri.is_empty());
            CallError::Execution(uris.fold(error.message(), replace))
        };
        result.map(|_| ()).map_err(hide)
    }
}

/// Returns the upstreams of the virtual host `/` by name, each with its settings as JSON.
pub(super) fn upstreams(ctl: &Ctl) -> Result<Map, CallError> {
    let mut upstreams = Map::new();
    for row in ctl.list("list_parameters", &[])? {
        if field(&row, "component")? == COMPONENT {
            upstreams.insert(field(&row, "name")?.into(), field(&row, "value")?.into());
        }
    }
    Ok(upstreams)
}

/// Deletes an upstream.
pub(super) fn delete(ctl: &Ctl, name: &str) -> Result<(), CallError> {
    ctl.run(&["clear_parameter", COMPONENT, &argument(name)?]).map(|_| ())
}

/// Returns a URI with `***` in place of its password.
pub(super) fn without_password(uri: &str) -> String {
    let masked_uri = || {
        let start = uri.find("://")? + 3;
        let authority = uri[start..].split(['/', '?', '#']).next()?;
        let (login, _) = authority.rsplit_once('@')?;
        let (user, _) = login.split_once(':')?;
        Some(format!("{}{user}:***{}", &uri[..start], &uri[start + login.len()..]))
    };
    masked_uri().unwrap_or_else(|| uri.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_in_uris_are_hidden() {
        for (uri, expected) in [
            ("amqp://u:p@h/v", "amqp://u:***@h/v"),
            ("amqps://u:p@q:r@h:5671?verify=verify_peer", "amqps://u:***@h:5671?verify=verify_peer"),
            ("amqp://u@h", "amqp://u@h"),
            ("amqp://h/a:b@c", "amqp://h/a:b@c"),
            ("bogus", "bogus"),
            ("", ""),
        ] {
            assert_eq!(without_password(uri), expected, "{uri}");
        }
    }
}
