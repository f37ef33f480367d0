//! The node of a RabbitMQ server: its status, its application and its cluster.

use brine_context::Context;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_value::{Value, map};

use super::ctl::{Ctl, text};

/// Execution functions of `rabbitmq` for the node.
pub static FUNCTIONS: Functions<Context> =
    registry!("rabbitmq", [status, cluster_status, join_cluster, stop_app, start_app, reset, force_reset]);

/// Return the status of the node as text.
///
/// CLI Example:
///
///     salt '*' rabbitmq.status
#[function]
pub fn status(
    context: &Context,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    Ok(Ctl::new(context, runas).run(&["status"])?.into())
}

/// Return the status of the cluster as text.
///
/// CLI Example:
///
///     salt '*' rabbitmq.cluster_status
#[function]
pub fn cluster_status(
    context: &Context,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    Ok(Ctl::new(context, runas).run(&["cluster_status"])?.into())
}

/// Let the node join the cluster of another node.
///
/// CLI Example:
///
///     salt '*' rabbitmq.join_cluster rabbit.example.com rabbit
#[function]
pub fn join_cluster(
    context: &Context,
    /// Host of the other node.
    host: String,
    /// First part of the name of the other node, before `@`.
    #[default("rabbit".into())]
    user: String,
    /// Whether the node stores its data in memory only.
    ram_node: Option<bool>,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    let messages = join(&Ctl::new(context, runas), &format!("{user}@{host}"), ram_node.unwrap_or_default())?;
    Ok(map! {"Join" => messages}.into())
}

/// Stop the application of the server; its Erlang node keeps running.
///
/// CLI Example:
///
///     salt '*' rabbitmq.stop_app
#[function]
pub fn stop_app(
    context: &Context,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    Ok(Ctl::new(context, runas).run(&["stop_app"])?.into())
}

/// Start the application of the server.
///
/// CLI Example:
///
///     salt '*' rabbitmq.start_app
#[function]
pub fn start_app(
    context: &Context,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    Ok(Ctl::new(context, runas).run(&["start_app"])?.into())
}

/// Remove the node from its cluster and delete all its data. Its application must be stopped.
///
/// CLI Example:
///
///     salt '*' rabbitmq.reset
#[function]
pub fn reset(
    context: &Context,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    Ok(Ctl::new(context, runas).run(&["reset"])?.into())
}

/// Delete all data of the node without telling its cluster. Its application must be stopped.
///
/// CLI Example:
///
///     salt '*' rabbitmq.force_reset
#[function]
pub fn force_reset(
    context: &Context,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    Ok(Ctl::new(context, runas).run(&["force_reset"])?.into())
}

/// Returns the names of the nodes of the cluster.
pub(super) fn cluster_nodes(ctl: &Ctl) -> Result<Vec<String>, CallError> {
    let status = ctl.json("cluster_status", &[])?;
    let nodes = |kind: &str| status.get(kind).and_then(Value::as_list).unwrap_or_default();
    Ok(nodes("disk_nodes").iter().chain(nodes("ram_nodes")).map(text).collect())
}

/// Lets the node join the cluster of another node and returns the messages of the server. The application is started
/// again if that fails.
pub(super) fn join(ctl: &Ctl, node: &str, ram: bool) -> Result<String, CallError> {
    let node = argument(node)?;
    let words: &[&str] = if ram { &["join_cluster", "--ram", &node] } else { &["join_cluster", &node] };
    ctl.run(&["stop_app"])?;
    let joined = ctl.run(words);
    let started = ctl.run(&["start_app"]);
    let messages = joined?;
    started.map(|_| messages)
}
