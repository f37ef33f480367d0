//! Queues of a RabbitMQ server.

use brine_context::Context;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_value::{Map, Value};

use super::ctl::{Ctl, text};

/// Execution functions of `rabbitmq` for queues.
pub static FUNCTIONS: Functions<Context> = registry!("rabbitmq", [list_queues, list_queues_vhost]);

/// Return the queues of the virtual host `/`.
///
/// CLI Example:
///
///     salt '*' rabbitmq.list_queues rabbitmq name messages consumers
#[function]
pub fn list_queues(
    context: &Context,
    /// User that the program runs as.
    runas: Option<String>,
    /// Columns, such as `name`, `messages` and `consumers`. The queues are listed by the first one; the others are a
    /// list of texts. By default: the number of messages by name.
    #[rest]
    args: Vec<Value>,
) -> CallResult {
    queues(&Ctl::new(context, runas), None, &args)
}

/// Return the queues of a virtual host, as `rabbitmq.list_queues`.
///
/// CLI Example:
///
///     salt '*' rabbitmq.list_queues_vhost myvhost rabbitmq name messages consumers
#[function]
pub fn list_queues_vhost(
    context: &Context,
    /// Virtual host.
    vhost: String,
    /// User that the program runs as.
    runas: Option<String>,
    /// Columns, such as `name`, `messages` and `consumers`; by default the number of messages by name.
    #[rest]
    args: Vec<Value>,
) -> CallResult {
    queues(&Ctl::new(context, runas), Some(&vhost), &args)
}

fn queues(ctl: &Ctl, vhost: Option<&str>, columns: &[Value]) -> CallResult {
    let vhost = vhost.map(argument).transpose()?;
    let columns = columns.iter().map(|column| argument(&text(column))).collect::<Result<Vec<_>, CallError>>()?;
    let mut words = vhost.as_deref().map_or_else(Vec::new, |vhost| vec!["-p", vhost]);
    words.extend(columns.iter().map(String::as_str));
    let queue = |row: Map| {
        let mut values = row.values().map(text);
        let first = values.next().unwrap_or_default();
        let others: Vec<String> = values.collect();
        (first.into(), if others.is_empty() { "".into() } else { Value::from(others) })
    };
    Ok(ctl.list("list_queues", &words)?.into_iter().map(queue).collect::<Map>().into())
}
