//! `rabbitmq_vhost`: states of virtual hosts.

use brine_context::{StateContext, StateReturn};
use brine_function::{CallResult, Functions, function, registry};
use brine_value::map;

use super::or_failed;
use crate::rabbitmq::ctl::Ctl;
use crate::rabbitmq::vhost::{add, delete, vhosts};

/// State functions of `rabbitmq_vhost`.
pub static FUNCTIONS: Functions<StateContext> = registry!("rabbitmq_vhost", [present, absent]);

/// Ensure that a virtual host exists.
///
/// SLS Example:
///
///     app:
///       rabbitmq_vhost.present: []
#[function]
pub fn present(
    context: &StateContext,
    /// Name of the virtual host.
    name: String,
) -> CallResult {
    let ctl = Ctl::new(&context.call, None);
    let ensure = || {
        if vhosts(&ctl)?.contains(&name) {
            return Ok(StateReturn::ok(&name, format!("Virtual Host '{name}' already exists.")));
        }
        let report = if context.test {
            StateReturn::predicted(&name, format!("Virtual Host '{name}' will be created."))
        } else {
            StateReturn::ok(&name, add(&ctl, &name)?)
        };
        Ok(report.with_changes(map! {"old" => "", "new" => &name}))
    };
    or_failed(&name, ensure())
}

/// Ensure that a virtual host does not exist.
///
/// SLS Example:
///
///     oldapp:
///       rabbitmq_vhost.absent: []
#[function]
pub fn absent(
    context: &StateContext,
    /// Name of the virtual host.
    name: String,
) -> CallResult {
    let ctl = Ctl::new(&context.call, None);
    let ensure = || {
        if !vhosts(&ctl)?.contains(&name) {
            return Ok(StateReturn::ok(&name, format!("Virtual Host '{name}' is not present.")));
        }
        let report = if context.test {
            StateReturn::predicted(&name, format!("Virtual Host '{name}' will be removed."))
        } else {
            StateReturn::ok(&name, delete(&ctl, &name)?)
        };
        Ok(report.with_changes(map! {"new" => "", "old" => &name}))
    };
    or_failed(&name, ensure())
}
