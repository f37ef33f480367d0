//! `ip`: network interfaces of Debian's ifupdown: their files, bonds and routes, starting and stopping them, and the
//! global network settings.
//!
//! `options` validates the options of interfaces, `adapter` renders interfaces, `parse` parses their files, `settings`
//! converts the arguments of `ip.build_interface`; `interfaces`, `routes` and `global` write files.

mod adapter;
mod bond;
mod build;
mod global;
mod interfaces;
mod options;
mod parse;
mod routes;
mod settings;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value};

use routes::Files;

#[cfg(test)]
pub(crate) use tests::with_root;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `ip`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "ip",
    [
        up,
        down,
        get_bond,
        get_routes,
        build_routes,
        build::build_bond,
        build::build_interface,
        build::get_interface,
        build::get_network_settings,
        build::build_network_settings,
        build::apply_network_settings
    ]
);

/// Longest accepted name of an interface. The kernel's own limit is 15; aliases (`eth0:backup`) add a label.
const MAX_NAME_LENGTH: usize = 32;

/// Start a network interface. Interfaces of the types `slave` and `source` are left alone.
///
/// CLI Example:
///
///     salt '*' ip.up eth0 eth
#[function]
pub fn up(
    context: &Context,
    /// Name of the interface.
    iface: String,
    /// Type of the interface.
    iface_type: String,
) -> CallResult {
    switch(context, "ifup", &iface, &iface_type)
}

/// Stop a network interface. Interfaces of the types `slave` and `source` are left alone.
///
/// CLI Example:
///
///     salt '*' ip.down eth0 eth
#[function]
pub fn down(
    context: &Context,
    /// Name of the interface.
    iface: String,
    /// Type of the interface.
    iface_type: String,
) -> CallResult {
    switch(context, "ifdown", &iface, &iface_type)
}

/// Return the lines of a bond's file in `/etc/modprobe.d`, or an empty string if there is none.
///
/// CLI Example:
///
///     salt '*' ip.get_bond bond0
#[function]
pub fn get_bond(
    context: &Context,
    /// Name of the interface.
    iface: String,
) -> CallResult {
    debian(context)?;
    host().bond(interface(&iface)?)
}

/// Return the lines of the scripts that add and delete the routes of an interface, or an empty string if there are
/// none.
///
/// CLI Example:
///
///     salt '*' ip.get_routes eth0
#[function]
pub fn get_routes(
    context: &Context,
    /// Name of the interface.
    iface: String,
) -> CallResult {
    debian(context)?;
    host().routes(interface(&iface)?)
}

/// Write the scripts that add and delete the routes of an interface, and return their lines.
///
/// routes
///     A list of mappings with `ipaddr`, `netmask`, `gateway`, `metric` and `name`, a comment.
///
/// CLI Example:
///
///     salt '*' ip.build_routes eth0 routes='[{ipaddr: 10.2.0.0, netmask: 16, gateway: 10.1.0.1}]'
#[function]
pub fn build_routes(
    context: &Context,
    /// Name of the interface.
    iface: String,
    /// Whether to return the lines without writing them.
    #[default(false)]
    test: bool,
    /// Options of the interface.
    #[keywords]
    settings: Map,
) -> CallResult {
    debian(context)?;
    host().build_routes(interface(&iface)?, &settings, test)
}

fn host() -> Files {
    #[cfg(test)]
    if let Some(root) = tests::root() {
        return Files { root };
    }
    Files { root: PathBuf::from("/") }
}

fn debian(context: &Context) -> Result<(), CallError> {
    if context.os_family() == "Debian" {
        return Ok(());
    }
    Err(CallError::Execution("The debian_ip module could not be loaded: unsupported OS family".into()))
}

fn switch(context: &Context, program: &str, iface: &str, iface_type: &str) -> CallResult {
    debian(context)?;
    let iface = interface(iface)?;
    if ["slave", "source"].contains(&iface_type) {
        return Ok(Value::default());
    }
    let output = run(context, &[program.to_owned(), iface.to_owned()], &[])?;
    context.set_retcode(output.retcode);
    let parts = [output.stdout.trim_end(), output.stderr.trim_end()];
    Ok(parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n").into())
}

/// Checks the name of an interface, which becomes a part of file names, scripts and command lines.
fn interface(name: &str) -> Result<&str, CallError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-:".contains(c);
    if name.len() <= MAX_NAME_LENGTH
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(allowed)
    {
        return Ok(name);
    }
    let rule = "letters, digits and ._-: that start with a letter or digit";
    Err(CallError::Execution(format!("the interface name is invalid: expected up to {MAX_NAME_LENGTH} {rule}")))
}
