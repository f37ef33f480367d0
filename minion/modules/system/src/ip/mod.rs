//! `ip`: network interfaces of Debian's ifupdown: starting and stopping them, and their routes.

mod routes;

use std::path::PathBuf;

use brine_context::programs::run;
use brine_context::{Context, Room};
use brine_function::{CallError, CallResult, Function, function, registry};
use brine_value::{Map, Value};

use routes::Files;

pub(super) static ROOM: Room = Room { functions: &[FUNCTIONS], ..Room::EMPTY };

/// Execution functions of `ip`.
pub static FUNCTIONS: &[Function<Context>] = registry!("ip", [up, down, get_bond, get_routes, build_routes]);

/// Longest accepted name of an interface. The kernel's own limit is 15; aliases (`eth0:backup`) add a label.
const LONGEST_NAME: usize = 32;

/// Start a network interface. Interfaces of the types `slave` and `source` are left alone.
///
/// CLI Example:
///
///     salt '*' ip.up eth0 eth
#[function]
pub fn up(context: &Context, iface: String, iface_type: String) -> CallResult {
    switch(context, "ifup", &iface, &iface_type)
}

/// Stop a network interface. Interfaces of the types `slave` and `source` are left alone.
///
/// CLI Example:
///
///     salt '*' ip.down eth0 eth
#[function]
pub fn down(context: &Context, iface: String, iface_type: String) -> CallResult {
    switch(context, "ifdown", &iface, &iface_type)
}

/// Return the lines of a bond's file in `/etc/modprobe.d`, or an empty string if there is none.
///
/// CLI Example:
///
///     salt '*' ip.get_bond bond0
#[function]
pub fn get_bond(context: &Context, iface: String) -> CallResult {
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
pub fn get_routes(context: &Context, iface: String) -> CallResult {
    debian(context)?;
    host().routes(interface(&iface)?)
}

/// Write the scripts that add and delete the routes of an interface, and return their lines.
///
/// routes
///     A list of mappings with `ipaddr`, `netmask`, `gateway`, `metric` and `name`, a comment.
///
/// test
///     Whether to return the lines without writing them.
///
/// CLI Example:
///
///     salt '*' ip.build_routes eth0 routes='[{ipaddr: 10.2.0.0, netmask: 16, gateway: 10.1.0.1}]'
#[function]
pub fn build_routes(
    context: &Context,
    iface: String,
    #[default(false)] test: bool,
    #[keywords] settings: Map,
) -> CallResult {
    debian(context)?;
    host().build_routes(interface(&iface)?, &settings, test)
}

fn host() -> Files {
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
    if name.len() <= LONGEST_NAME && name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(allowed)
    {
        return Ok(name);
    }
    let rule = "letters, digits and ._-: that start with a letter or digit";
    Err(CallError::Execution(format!("the interface name is invalid: expected up to {LONGEST_NAME} {rule}")))
}

#[cfg(test)]
mod tests {
    use brine_value::map;

    use super::*;
    use crate::testing::{Scripted, context_with};

    #[test]
    fn interfaces_are_switched_unless_another_controls_them() {
        let programs = Scripted::new("$ ifup eth0\n| started\n$ ifdown eth0\n| stopped\n");
        let context = context_with(map! {"os_family" => "Debian"}, programs.clone());
        assert_eq!(up(&context, "eth0".into(), "eth".into()).unwrap(), "started".into());
        assert_eq!(down(&context, "eth0".into(), "eth".into()).unwrap(), "stopped".into());
        assert_eq!(programs.ran(), "ifup eth0\nifdown eth0");
        for kind in ["slave", "source"] {
            assert_eq!(up(&context, "eth1".into(), kind.into()).unwrap(), Value::default(), "{kind}");
        }
        assert_eq!(programs.ran(), "");
        let other = context_with(map! {"os_family" => "RedHat"}, programs);
        assert!(up(&other, "eth0".into(), "eth".into()).is_err());
    }

    #[test]
    fn interface_names_cannot_escape() {
        for name in ["eth0", "bond0.12", "eth0:1", "br-lan"] {
            assert_eq!(interface(name).unwrap(), name);
        }
        let long = "e".repeat(LONGEST_NAME + 1);
        for name in ["", "-a", "../x", "a/b", "a b", "a\nb", "$(id)", "a\"", ".hidden", &long] {
            assert!(interface(name).is_err(), "{name:?}");
        }
    }
}
