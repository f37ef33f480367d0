//! Virtual hosts of a RabbitMQ server, and the permissions of users in them.

use brine_context::Context;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_value::map;

use super::ctl::{Ctl, field, pattern};
use super::user::rows_by;

/// Execution functions of `rabbitmq` for virtual hosts.
pub static FUNCTIONS: Functions<Context> =
    registry!("rabbitmq", [list_vhosts, vhost_exists, add_vhost, delete_vhost, set_permissions, list_permissions]);

/// Return the names of the virtual hosts.
///
/// CLI Example:
///
///     salt '*' rabbitmq.list_vhosts
#[function]
pub fn list_vhosts(
    context: &Context,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    Ok(vhosts(&Ctl::new(context, runas))?.into())
}

/// Return whether a virtual host exists.
///
/// CLI Example:
///
///     salt '*' rabbitmq.vhost_exists rabbit_host
#[function]
pub fn vhost_exists(
    context: &Context,
    /// Name of the item: the user, virtual host, queue, plugin, policy or upstream.
    name: String,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    Ok(vhosts(&Ctl::new(context, runas))?.contains(&name).into())
}

/// Add a virtual host.
///
/// CLI Example:
///
///     salt '*' rabbitmq.add_vhost '<vhost_name>'
#[function]
pub fn add_vhost(
    context: &Context,
    /// Virtual host.
    vhost: String,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    Ok(map! {"Added" => add(&Ctl::new(context, runas), &vhost)?}.into())
}

/// Delete a virtual host, with its queues and exchanges.
///
/// CLI Example:
///
///     salt '*' rabbitmq.delete_vhost '<vhost_name>'
#[function]
pub fn delete_vhost(
    context: &Context,
    /// Virtual host.
    vhost: String,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    Ok(map! {"Deleted" => delete(&Ctl::new(context, runas), &vhost)?}.into())
}

/// Set the permissions of a user in a virtual host.
///
/// CLI Example:
///
///     salt '*' rabbitmq.set_permissions myvhost myuser
#[function]
pub fn set_permissions(
    context: &Context,
    /// Virtual host.
    vhost: String,
    /// Name of the user.
    user: String,
    /// Regular expressions of the names of the queues and exchanges that the user may configure, write to and read
    /// from; an empty one matches none.
    #[default(".*".into())]
    conf: String,
    /// Regular expressions of the names of the queues and exchanges that the user may configure, write to and read
    /// from; an empty one matches none.
    #[default(".*".into())]
    write: String,
    /// Regular expressions of the names of the queues and exchanges that the user may configure, write to and read
    /// from; an empty one matches none.
    #[default(".*".into())]
    read: String,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    let messages = permit(&Ctl::new(context, runas), &vhost, &user, [&conf, &write, &read])?;
    Ok(map! {"Permissions Set" => messages}.into())
}

/// Return the permissions in a virtual host by user: the regular expressions `configure`, `write` and `read`.
///
/// CLI Example:
///
///     salt '*' rabbitmq.list_permissions /myvhost
#[function]
pub fn list_permissions(
    context: &Context,
    /// Virtual host.
    vhost: String,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    let rows = Ctl::new(context, runas).list("list_permissions", &["-p", &argument(&vhost)?])?;
    Ok(rows_by("user", rows)?.into())
}

/// Returns the names of the virtual hosts.
pub(super) fn vhosts(ctl: &Ctl) -> Result<Vec<String>, CallError> {
    ctl.list("list_vhosts", &[])?.iter().map(|row| field(row, "name")).collect()
}

/// Adds a virtual host and returns the messages of the server.
pub(super) fn add(ctl: &Ctl, vhost: &str) -> Result<String, CallError> {
    ctl.run(&["add_vhost", &argument(vhost)?])
}

/// Deletes a virtual host and returns the messages of the server.
pub(super) fn delete(ctl: &Ctl, vhost: &str) -> Result<String, CallError> {
    ctl.run(&["delete_vhost", &argument(vhost)?])
}

/// Sets the permissions of a user, `configure`, `write` and `read`, and returns the messages of the server.
pub(super) fn permit(ctl: &Ctl, vhost: &str, user: &str, permissions: [&str; 3]) -> Result<String, CallError> {
    let [configure, write, read] = permissions;
    let (vhost, user) = (argument(vhost)?, argument(user)?);
    ctl.run(&["set_permissions", "-p", &vhost, &user, pattern(configure)?, pattern(write)?, pattern(read)?])
}
