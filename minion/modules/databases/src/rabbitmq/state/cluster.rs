//! `rabbitmq_cluster`: states of the cluster of a node.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallResult, Functions, function, registry};
use brine_value::map;

use super::or_failed;
use crate::rabbitmq::ctl::Ctl;
use crate::rabbitmq::node::{cluster_nodes, join as join_node};

/// State functions of `rabbitmq_cluster`.
pub static FUNCTIONS: Functions<StateContext> = registry!("rabbitmq_cluster", [joined, join]);

/// The arguments of the states.
#[derive(Args)]
pub struct JoinArgs {
    /// Name of the state.
    name: String,
    /// Host of a node of the cluster.
    host: String,
    /// User in the name of that node.
    #[default("rabbit".into())]
    user: String,
    /// Whether the node joins as one that stores its data in memory only.
    ram_node: Option<bool>,
    /// User who runs the command.
    #[default(Some("root".into()))]
    runas: Option<String>,
}

/// Ensure that the node is in the cluster of the node `user@host`.
///
/// SLS Example:
///
///     rabbit@mq1.example.com:
///       rabbitmq_cluster.joined:
///         - host: mq1.example.com
///         - ram_node: False
#[function]
pub fn joined(context: &StateContext, #[args] args: JoinArgs) -> CallResult {
    let JoinArgs { name, host, user, ram_node, runas } = args;
    let ctl = Ctl::new(&context.call, runas);
    let node = format!("{user}@{host}");
    let ensure = || {
        if cluster_nodes(&ctl)?.contains(&node) {
            return Ok(StateReturn::ok(&name, "Already in cluster"));
        }
        let report = if context.test {
            StateReturn::predicted(&name, format!("Node is set to join cluster {node}"))
        } else {
            StateReturn::ok(&name, join_node(&ctl, &node, ram_node.unwrap_or_default())?)
        };
        Ok(report.with_changes(map! {"old" => "", "new" => &node}))
    };
    or_failed(&name, ensure())
}

/// Ensure that the node is in a cluster, as `rabbitmq_cluster.joined`.
///
/// SLS Example:
///
///     rabbit@mq1.example.com:
///       rabbitmq_cluster.join:
///         - host: mq1.example.com
#[function]
pub fn join(context: &StateContext, #[args] args: JoinArgs) -> CallResult {
    joined(context, args)
}
