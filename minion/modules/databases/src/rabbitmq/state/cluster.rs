//! `rabbitmq_cluster`: states of the cluster of a node.

use brine_context::{StateContext, StateReturn};
use brine_function::{CallResult, Function, function, registry};
use brine_value::map;

use super::or_failed;
use crate::rabbitmq::ctl::Ctl;
use crate::rabbitmq::node::{cluster_nodes, join as join_node};

/// State functions of `rabbitmq_cluster`.
pub static FUNCTIONS: &[Function<StateContext>] = registry!("rabbitmq_cluster", [joined, join]);

/// Ensure that the node is in the cluster of the node `user@host`; `name` is not used. With `ram_node`, it joins as a node
/// that stores its data in memory only.
#[function]
pub fn joined(
    context: &StateContext,
    name: String,
    host: String,
    #[default("rabbit".into())] user: String,
    ram_node: Option<bool>,
    #[default(Some("root".into()))] runas: Option<String>,
) -> CallResult {
    let ctl = Ctl::new(&context.call, runas);
    let node = format!("{user}@{host}");
    let ensure = || {
        if cluster_nodes(&ctl)?.contains(&node) {
            return Ok(StateReturn::ok(&name, "Already in cluster"));
        }
        let report = if context.test {
            StateReturn::would(&name, format!("Node is set to join cluster {node}"))
        } else {
            StateReturn::ok(&name, join_node(&ctl, &node, ram_node.unwrap_or_default())?)
        };
        Ok(report.with_changes(map! {"old" => "", "new" => &node}))
    };
    or_failed(&name, ensure())
}

/// Ensure that the node is in a cluster, as `rabbitmq_cluster.joined`.
#[function]
pub fn join(
    context: &StateContext,
    name: String,
    host: String,
    #[default("rabbit".into())] user: String,
    ram_node: Option<bool>,
    #[default(Some("root".into()))] runas: Option<String>,
) -> CallResult {
    joined(context, name, host, user, ram_node, runas)
}
