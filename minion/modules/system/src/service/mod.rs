//! `service`: services of this host, with systemd or with System V scripts.

pub(crate) mod manager;
pub(crate) mod state;
pub(crate) mod systemd;
mod sysv;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use brine_context::{Context, Module};
use brine_function::arguments::refuse;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_text::glob::{fnmatch, is_pattern};
use brine_value::{Map, Value};

use manager::{ServiceOptions, services, units};

pub(super) static MODULE: Module =
    Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], unavailable: Some(unavailable), ..Module::EMPTY };

/// Returns the reason why the module is not available: only services of Linux are supported.
fn unavailable(context: &Context) -> Option<String> {
    let grain = |name: &str| context.grains().get(name).map(Value::to_string).unwrap_or_default();
    (!matches!(grain("kernel").as_str(), "Linux" | "")).then(|| {
        let system = grain("osfinger");
        format!("No service execution module loaded: check support for service management on {system} ")
    })
}

/// Execution functions of `service`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "service",
    [
        start,
        stop,
        restart,
        reload,
        force_reload,
        status,
        available,
        missing,
        enable,
        disable,
        enabled,
        disabled,
        get_all,
        get_enabled,
        get_disabled,
        get_static,
        get_running,
        mask,
        unmask,
        masked,
        show,
        systemctl_reload,
        offline
    ]
);

/// Start a service.
///
/// CLI Example:
///
///     salt '*' service.start <service name>
#[function]
pub fn start(
    context: &Context,
    /// Name of the service, such as `nginx`.
    name: String,
    #[args] how: ServiceOptions,
) -> CallResult {
    Ok(services().act(context, "start", &name, how)?.into())
}

/// Stop a service.
///
/// CLI Example:
///
///     salt '*' service.stop <service name>
#[function]
pub fn stop(
    context: &Context,
    /// Name of the service, such as `nginx`.
    name: String,
    /// Whether the call does not wait until systemd has done its work.
    no_block: Option<bool>,
) -> CallResult {
    Ok(services().act(context, "stop", &name, ServiceOptions { no_block, ..ServiceOptions::default() })?.into())
}

/// Restart a service.
///
/// CLI Example:
///
///     salt '*' service.restart <service name>
#[function]
pub fn restart(
    context: &Context,
    /// Name of the service, such as `nginx`.
    name: String,
    #[args] how: ServiceOptions,
) -> CallResult {
    Ok(services().act(context, "restart", &name, how)?.into())
}

/// Reload the configuration of a service.
///
/// CLI Example:
///
///     salt '*' service.reload <service name>
#[function]
pub fn reload(
    context: &Context,
    /// Name of the service, such as `nginx`.
    name: String,
    #[args] how: ServiceOptions,
) -> CallResult {
    Ok(services().act(context, "reload", &name, how)?.into())
}

/// Reload the configuration of a service, or restart a service that cannot reload.
///
/// CLI Example:
///
///     salt '*' service.force_reload <service name>
#[function]
pub fn force_reload(
    context: &Context,
    /// Name of the service, such as `nginx`.
    name: String,
    /// Whether the call does not wait until systemd has done its work.
    #[default(true)]
    no_block: bool,
    /// Whether the service is unmasked first.
    #[default(false)]
    unmask: bool,
    /// Whether a mask until the next boot is removed first.
    #[default(false)]
    unmask_runtime: bool,
) -> CallResult {
    let how = ServiceOptions { no_block: Some(no_block), unmask, unmask_runtime };
    Ok(services().act(context, "force-reload", &name, how)?.into())
}

/// Return whether a service is running; for a glob, by service.
///
/// CLI Example:
///
///     salt '*' service.status <service name> [service signature]
#[function]
pub fn status(
    context: &Context,
    /// Name of the service, such as `nginx`.
    name: String,
    /// String in the command line by which the process is found.
    sig: Option<String>,
) -> CallResult {
    let services = services();
    if !is_pattern(&name) {
        return Ok(services.is_running(context, &name, sig.as_deref())?.into());
    }
    let mut states = Map::new();
    for service in services.all(context)?.iter().filter(|service| fnmatch(&name, service)) {
        states.insert(service.into(), services.is_running(context, service, None)?.into());
    }
    Ok(states.into())
}

/// Return whether a service exists.
///
/// CLI Example:
///
///     salt '*' service.available sshd
#[function]
pub fn available(
    context: &Context,
    /// Name of the service, such as `nginx`.
    name: String,
) -> CallResult {
    Ok(services().is_available(context, &name)?.into())
}

/// Return whether a service does not exist.
///
/// CLI Example:
///
///     salt '*' service.missing sshd
#[function]
pub fn missing(
    context: &Context,
    /// Name of the service, such as `nginx`.
    name: String,
) -> CallResult {
    Ok((!services().is_available(context, &name)?).into())
}

/// Enable a service at boot.
///
/// CLI Example:
///
///     salt '*' service.enable <service name>
#[function]
pub fn enable(
    context: &Context,
    /// Name of the service, such as `nginx`.
    name: String,
    /// Whether the call does not wait until systemd has done its work.
    no_block: Option<bool>,
    /// Whether the service is unmasked first.
    #[default(false)]
    unmask: bool,
    /// Whether a mask until the next boot is removed first.
    #[default(false)]
    unmask_runtime: bool,
    /// `root` is refused: it is always the system of the minion.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    refuse_root("service.enable", &kwargs)?;
    Ok(services().act(context, "enable", &name, ServiceOptions { no_block, unmask, unmask_runtime })?.into())
}

/// Refuses `root`: the services of this system would be changed in the place of those below it.
fn refuse_root(function: &str, kwargs: &Map) -> Result<(), CallError> {
    refuse(function, kwargs, &[("root", "it is always the system of the minion; run `systemctl --root` by cmd.run")])
}

/// Disable a service at boot.
///
/// CLI Example:
///
///     salt '*' service.disable <service name>
#[function]
pub fn disable(
    context: &Context,
    /// Name of the service, such as `nginx`.
    name: String,
    /// Whether the call does not wait until systemd has done its work.
    no_block: Option<bool>,
    /// `root` is refused: it is always the system of the minion.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    refuse_root("service.disable", &kwargs)?;
    Ok(services().act(context, "disable", &name, ServiceOptions { no_block, ..ServiceOptions::default() })?.into())
}

/// Return whether a service is enabled at boot.
///
/// CLI Example:
///
///     salt '*' service.enabled <service name>
#[function]
pub fn enabled(
    context: &Context,
    /// Name of the service, such as `nginx`.
    name: String,
    /// `root` is refused: it is always the system of the minion.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    refuse_root("service.enabled", &kwargs)?;
    Ok(services().is_enabled(context, &name)?.into())
}

/// Return whether a service is disabled at boot. Without systemd, only existing services are.
///
/// CLI Example:
///
///     salt '*' service.disabled <service name>
#[function]
pub fn disabled(
    context: &Context,
    /// Name of the service, such as `nginx`.
    name: String,
) -> CallResult {
    Ok(services().is_disabled(context, &name)?.into())
}

/// Return the names of all services, and of other units of systemd with their types.
///
/// CLI Example:
///
///     salt '*' service.get_all
#[function]
pub fn get_all(context: &Context) -> CallResult {
    Ok(services().all(context)?.into())
}

/// Return the names of the services that are enabled at boot.
///
/// CLI Example:
///
///     salt '*' service.get_enabled
#[function]
pub fn get_enabled(context: &Context) -> CallResult {
    Ok(services().enabled(context)?.into())
}

/// Return the names of the services that are disabled at boot.
///
/// CLI Example:
///
///     salt '*' service.get_disabled
#[function]
pub fn get_disabled(context: &Context) -> CallResult {
    Ok(services().disabled(context)?.into())
}

/// Return the names of the static units: other units require them, and they cannot be enabled.
///
/// CLI Example:
///
///     salt '*' service.get_static
#[function]
pub fn get_static(context: &Context) -> CallResult {
    Ok(units("get_static")?.fixed(context)?.into())
}

/// Return the names of the running units.
///
/// CLI Example:
///
///     salt '*' service.get_running
#[function]
pub fn get_running(context: &Context) -> CallResult {
    Ok(units("get_running")?.running(context)?.into())
}

/// Mask a service, so that it cannot be started.
///
/// CLI Example:
///
///     salt '*' service.mask foo
///     salt '*' service.mask foo runtime=True
#[function]
pub fn mask(
    context: &Context,
    /// Name of the service, such as `nginx`.
    name: String,
    /// Whether the mask lasts only until the next boot.
    #[default(false)]
    runtime: bool,
) -> CallResult {
    units("mask")?;
    services().set_mask(context, &name, true, runtime)?;
    Ok(true.into())
}

/// Unmask a service.
///
/// CLI Example:
///
///     salt '*' service.unmask foo
///     salt '*' service.unmask foo runtime=True
#[function]
pub fn unmask(
    context: &Context,
    /// Name of the service, such as `nginx`.
    name: String,
    /// Whether the mask lasts only until the next boot.
    #[default(false)]
    runtime: bool,
) -> CallResult {
    units("unmask")?;
    services().set_mask(context, &name, false, runtime)?;
    Ok(true.into())
}

/// Return whether a service is masked.
///
/// CLI Example:
///
///     salt '*' service.masked foo
///     salt '*' service.masked foo runtime=True
#[function]
pub fn masked(
    context: &Context,
    /// Name of the service, such as `nginx`.
    name: String,
    /// Whether the mask lasts only until the next boot.
    #[default(false)]
    runtime: bool,
) -> CallResult {
    units("masked")?;
    Ok(services().is_masked(context, &name, runtime)?.into())
}

/// Return the properties of a unit of systemd.
///
/// CLI Example:
///
///     salt '*' service.show <service name>
#[function]
pub fn show(
    context: &Context,
    /// Name of the service, such as `nginx`.
    name: String,
) -> CallResult {
    Ok(units("show")?.show(context, &name)?.into())
}

/// Reload the unit files of systemd.
///
/// CLI Example:
///
///     salt '*' service.systemctl_reload
#[function]
pub fn systemctl_reload(context: &Context) -> CallResult {
    units("systemctl_reload")?.reload(context)?;
    Ok(true.into())
}

/// Return whether systemd is installed but not running.
///
/// CLI Example:
///
///     salt '*' service.offline
#[function]
pub fn offline(_context: &Context) -> CallResult {
    Ok(services().is_offline().into())
}

/// Whether a file is executable.
fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|status| status.is_file() && status.permissions().mode() & 0o111 != 0)
}

/// Returns the names in a directory, sorted.
fn names_in(directory: &str) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use brine_function::Args;
    use brine_value::map;

    use crate::testing;

    #[test]
    fn services_below_another_root_are_refused() {
        let context = testing::context(&[]);
        for function in ["service.enable", "service.disable", "service.enabled"] {
            let args = Args { positional: vec!["sshd".into()], keyword: map! {"root" => "/mnt"} };
            let error = context.call(function, args).unwrap_err().to_string();
            assert!(error.contains("the argument 'root' is not supported"), "{function}: {error}");
        }
    }
}
