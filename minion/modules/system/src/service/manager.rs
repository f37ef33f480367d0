//! The interface of init systems, and the selection of this host's.
//!
//! [`Services`] is implemented by every init system, [`Units`] by systemd while it runs. [`services`] alone selects the
//! implementation.

use std::path::Path;

use brine_context::Context;
use brine_function::{Args, CallError};
use brine_host::programs::which;
use brine_value::Map;

use super::is_program;
use super::systemd::Systemd;
use super::sysv::Scripts;

/// Options of an action on a service; only systemd supports them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
pub struct ServiceOptions {
    /// Whether the call returns without waiting for the action to complete.
    pub no_block: Option<bool>,
    /// Whether the service is unmasked first.
    #[default(false)]
    pub unmask: bool,
    /// Whether a runtime mask of the service is removed first.
    #[default(false)]
    pub unmask_runtime: bool,
}

#[expect(clippy::derivable_impls, reason = "the derived one does not accept the arguments' attribute `#[default]`")]
impl Default for ServiceOptions {
    fn default() -> Self {
        ServiceOptions { no_block: None, unmask: false, unmask_runtime: false }
    }
}

/// The services of a host. Errors are those of the programs that are run.
pub trait Services: Sync {
    /// Whether systemd is installed but not running, as in many containers and during image builds.
    fn is_offline(&self) -> bool {
        false
    }

    /// Returns the interface that only a running systemd provides.
    fn units(&self) -> Option<&dyn Units> {
        None
    }

    /// Whether services can be masked.
    fn can_mask(&self) -> bool;

    /// Whether the service exists.
    fn is_available(&self, context: &Context, name: &str) -> Result<bool, CallError>;

    /// Whether the service is running. Without systemd, `sig` replaces this check: whether a process has that string in
    /// its command line.
    fn is_running(&self, context: &Context, name: &str, sig: Option<&str>) -> Result<bool, CallError>;

    /// Whether the service is enabled at boot.
    fn is_enabled(&self, context: &Context, name: &str) -> Result<bool, CallError>;

    /// Whether the service is disabled at boot.
    fn is_disabled(&self, context: &Context, name: &str) -> Result<bool, CallError>;

    /// Whether the service is masked, permanently or until the next boot.
    fn is_masked(&self, context: &Context, name: &str, runtime: bool) -> Result<bool, CallError>;

    /// Masks or unmasks the service, permanently or until the next boot.
    fn set_mask(&self, context: &Context, name: &str, masked: bool, runtime: bool) -> Result<(), CallError>;

    /// Performs an action on a service, and returns whether it succeeded. Some failures of systemd are errors with its
    /// message.
    fn act(&self, context: &Context, action: &str, name: &str, how: ServiceOptions) -> Result<bool, CallError>;

    /// Returns the names of all services.
    fn all(&self, context: &Context) -> Result<Vec<String>, CallError>;

    /// Returns the names of the services that are enabled at boot.
    fn enabled(&self, context: &Context) -> Result<Vec<String>, CallError>;

    /// Returns the names of the services that are disabled at boot.
    fn disabled(&self, context: &Context) -> Result<Vec<String>, CallError>;
}

/// The units of a running systemd.
pub trait Units {
    /// Returns the names of the static units: other units require them, and they cannot be enabled.
    fn fixed(&self, context: &Context) -> Result<Vec<String>, CallError>;

    /// Returns the names of the running units.
    fn running(&self, context: &Context) -> Result<Vec<String>, CallError>;

    /// Returns the properties of a unit.
    fn show(&self, context: &Context, name: &str) -> Result<Map, CallError>;

    /// Reloads the unit files.
    fn reload(&self, context: &Context) -> Result<(), CallError>;
}

/// Whether systemd runs on this host.
pub fn has_systemd() -> bool {
    Path::new("/run/systemd/system").exists()
}

/// Returns the services of this host.
pub fn services() -> &'static dyn Services {
    if has_systemd() {
        &Systemd
    } else if which("systemctl").is_some_and(|program| is_program(&program)) {
        &Scripts { is_offline: true }
    } else {
        &Scripts { is_offline: false }
    }
}

/// Returns the units of systemd for a function that needs them.
///
/// # Errors
/// systemd does not run on this host.
pub fn units(function: &str) -> Result<&'static dyn Units, CallError> {
    services().units().ok_or_else(|| CallError::NotAvailable(format!("service.{function}")))
}
