//! `rabbitmq`: users, virtual hosts, policies, plugins and cluster nodes of a RabbitMQ server, with `rabbitmqctl` and
//! `rabbitmq-plugins` of RabbitMQ 3.8 or newer.

mod ctl;
mod node;
mod plugin;
mod policy;
mod queue;
pub(crate) mod state;
#[cfg(test)]
mod tests;
mod upstream;
mod user;
mod vhost;

use brine_context::{Context, Module};

pub(super) static MODULE: Module = Module {
    functions: &[
        &node::FUNCTIONS,
        &plugin::FUNCTIONS,
        &policy::FUNCTIONS,
        &queue::FUNCTIONS,
        &upstream::FUNCTIONS,
        &user::FUNCTIONS,
        &vhost::FUNCTIONS,
    ],
    states: state::FUNCTIONS,
    unavailable: Some(unavailable),
    ..Module::EMPTY
};

fn unavailable(context: &Context) -> Option<String> {
    context.minion.programs.find(ctl::RABBITMQCTL).is_none().then(|| "Command not found: rabbitmqctl".into())
}
