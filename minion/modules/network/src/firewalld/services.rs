//! `firewalld`: services, and the services that zones allow.

use brine_context::Context;
use brine_function::{CallError, CallResult, Functions, function, registry};

use super::Command;
use super::zones::change_permanent;

/// Execution functions of `firewalld`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "firewalld",
    [
        get_services,
        list_services,
        add_service,
        remove_service,
        new_service,
        delete_service,
        get_service_ports,
        add_service_port,
        remove_service_port,
        get_service_protocols,
        add_service_protocol,
        remove_service_protocol
    ]
);

/// Return the names of all services.
///
/// CLI Example:
///
///     salt '*' firewalld.get_services
#[function]
pub fn get_services(
    context: &Context,
    /// Whether the change is permanent; otherwise it lasts until the next reload.
    #[default(true)]
    permanent: bool,
) -> CallResult {
    Command::new("--get-services", None, permanent).words(context)
}

/// Return the services of a zone, or of the default zone.
///
/// CLI Example:
///
///     salt '*' firewalld.list_services my_zone
#[function]
pub fn list_services(
    context: &Context,
    /// Name of the zone; the default zone by default.
    zone: Option<String>,
    /// Whether the change is permanent; otherwise it lasts until the next reload.
    #[default(true)]
    permanent: bool,
) -> CallResult {
    Command::new("--list-services", zone.as_deref(), permanent).words(context)
}

/// Allow a service in a zone, or in the default zone.
///
/// CLI Example:
///
///     salt '*' firewalld.add_service ssh my_zone
#[function]
pub fn add_service(
    context: &Context,
    /// Name of the service.
    service: String,
    /// Name of the zone; the default zone by default.
    zone: Option<String>,
    /// Whether the change is permanent; otherwise it lasts until the next reload.
    #[default(true)]
    permanent: bool,
) -> CallResult {
    Command::new(&format!("--add-service={service}"), zone.as_deref(), permanent).run(context)
}

/// Remove a service from a zone, or from the default zone.
///
/// CLI Example:
///
///     salt '*' firewalld.remove_service ssh my_zone
#[function]
pub fn remove_service(
    context: &Context,
    /// Name of the service.
    service: String,
    /// Name of the zone; the default zone by default.
    zone: Option<String>,
    /// Whether the change is permanent; otherwise it lasts until the next reload.
    #[default(true)]
    permanent: bool,
) -> CallResult {
    Command::new(&format!("--remove-service={service}"), zone.as_deref(), permanent).run(context)
}

/// Add a service to the permanent configuration, and unless `restart` is False, load it.
///
/// CLI Example:
///
///     salt '*' firewalld.new_service my_service
#[function]
pub fn new_service(
    context: &Context,
    /// Name of the service.
    name: String,
    /// Whether firewalld is reloaded afterwards.
    #[default(true)]
    restart: bool,
) -> CallResult {
    change_permanent(context, &format!("--new-service={name}"), restart)
}

/// Delete a service of the permanent configuration, and unless `restart` is False, load it.
///
/// CLI Example:
///
///     salt '*' firewalld.delete_service my_service
#[function]
pub fn delete_service(
    context: &Context,
    /// Name of the service.
    name: String,
    /// Whether firewalld is reloaded afterwards.
    #[default(true)]
    restart: bool,
) -> CallResult {
    change_permanent(context, &format!("--delete-service={name}"), restart)
}

/// Return the ports of a service.
///
/// CLI Example:
///
///     salt '*' firewalld.get_service_ports zone
#[function]
pub fn get_service_ports(
    context: &Context,
    /// Name of the service.
    service: String,
) -> CallResult {
    of_service(&service, "--get-ports").words(context)
}

/// Add a port to a service.
///
/// CLI Example:
///
///     salt '*' firewalld.add_service_port zone 80
#[function]
pub fn add_service_port(
    context: &Context,
    /// Name of the service.
    service: String,
    /// Port, or range of ports, such as `8080/tcp`.
    port: String,
) -> CallResult {
    require_service(context, &service)?;
    of_service(&service, &format!("--add-port={port}")).run(context)
}

/// Remove a port from a service.
///
/// CLI Example:
///
///     salt '*' firewalld.remove_service_port zone 80
#[function]
pub fn remove_service_port(
    context: &Context,
    /// Name of the service.
    service: String,
    /// Port, or range of ports, such as `8080/tcp`.
    port: String,
) -> CallResult {
    require_service(context, &service)?;
    of_service(&service, &format!("--remove-port={port}")).run(context)
}

/// Return the protocols of a service.
///
/// CLI Example:
///
///     salt '*' firewalld.get_service_protocols zone
#[function]
pub fn get_service_protocols(
    context: &Context,
    /// Name of the service.
    service: String,
) -> CallResult {
    of_service(&service, "--get-protocols").words(context)
}

/// Add a protocol to a service.
///
/// CLI Example:
///
///     salt '*' firewalld.add_service_protocol zone ssh
#[function]
pub fn add_service_protocol(
    context: &Context,
    /// Name of the service.
    service: String,
    /// Protocol, such as `gre`.
    protocol: String,
) -> CallResult {
    of_service(&service, &format!("--add-protocol={protocol}")).run(context)
}

/// Remove a protocol from a service.
///
/// CLI Example:
///
///     salt '*' firewalld.remove_service_protocol zone ssh
#[function]
pub fn remove_service_protocol(
    context: &Context,
    /// Name of the service.
    service: String,
    /// Protocol, such as `gre`.
    protocol: String,
) -> CallResult {
    of_service(&service, &format!("--remove-protocol={protocol}")).run(context)
}

/// Creates a command line on a service of the permanent configuration.
fn of_service(service: &str, option: &str) -> Command {
    let mut command = Command::new(option, None, true);
    command.0.insert(1, format!("--service={service}"));
    command
}

/// Fails if there is no such service.
fn require_service(context: &Context, service: &str) -> Result<(), CallError> {
    let services = get_services(context, true)?;
    if services.as_list().is_some_and(|services| services.contains(&service.into())) {
        return Ok(());
    }
    Err(CallError::Execution("The service does not exist.".into()))
}
