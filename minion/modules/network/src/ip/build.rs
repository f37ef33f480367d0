//! Functions that build interfaces, bonds and the global network settings.

use std::time::Duration;

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, function};
use brine_host::process::cancelled_within;
use brine_host::programs::which;
use brine_system::files;
use brine_value::{Map, Value};

use super::options::switch;
use super::settings::{Desired, adapter};
use super::{bond, debian, host, interface, interfaces};

/// The delay between stopping and starting the network, as in Salt.
const RESTART_DELAY: Duration = Duration::from_secs(2);

/// Return the lines of a network interface, or an empty list if the files have no such interface.
///
/// CLI Example:
///
///     salt '*' ip.get_interface eth0
#[function]
pub fn get_interface(
    context: &Context,
    /// Name of the interface.
    iface: String,
) -> CallResult {
    ifupdown(context)?;
    host().interface(interface(&iface)?)
}

/// Write a network interface to `/etc/network/interfaces`, and return its lines. Packages that its type needs are
/// installed.
///
/// CLI Example:
///
///     salt '*' ip.build_interface eth0 eth True proto=static ipaddr=10.0.0.2 netmask=24 gateway=10.0.0.1
#[function]
pub fn build_interface(
    context: &Context,
    /// Name of the interface.
    iface: String,
    /// `eth`, `bond`, `bridge`, `slave`, `vlan`, `pppoe` or `source`.
    iface_type: String,
    /// Whether the interface is started at boot.
    enabled: Value,
    /// Options of the interface, such as `proto`, `ipaddr`, `netmask` and `gateway`; `ipv6` before the name makes one
    /// of IPv6. `filename` names a file below `/etc/network/interfaces.d`. With `test=True` nothing is written.
    #[keywords]
    settings: Map,
) -> CallResult {
    ifupdown(context)?;
    let (iface, kind) = (interface(&iface)?, iface_type.to_lowercase());
    let desired = Desired {
        iface,
        kind: &kind,
        enabled: enabled.is_truthy(),
        omits_use_carrier: ubuntu(context).is_some_and(|release| release >= 16),
    };
    let adapter = adapter(&desired, &settings)?;
    if is_test(&settings) {
        return Ok(interfaces::lines(&adapter.text(iface)?));
    }
    match kind.as_str() {
        "vlan" => installed(context, "vlan")?,
        "bridge" => installed(context, "bridge-utils")?,
        "pppoe" => installed(context, "ppp")?,
        _ => {}
    }
    let filename = settings.get("filename").map(ToString::to_string);
    let peer = match kind.as_str() {
        "pppoe" => Some((host().peer(iface, &adapter)?, interfaces::peer_text(iface, &adapter)?)),
        _ => None,
    };
    let written = host().write_interface(iface, adapter, filename.as_deref())?;
    if let Some((path, text)) = peer {
        // The file contains a password.
        files::rewrite(path, text.as_bytes(), 0o600).map_err(CallError::execution)?;
    }
    Ok(written)
}

/// Write the options of a bond to `/etc/modprobe.d`, load the module `bonding` of the kernel, install `ifenslave`, and
/// return the lines.
///
/// CLI Example:
///
///     salt '*' ip.build_bond bond0 mode=balance-alb
#[function]
pub fn build_bond(
    context: &Context,
    /// Name of the interface.
    iface: String,
    /// `mode` and its options, such as `miimon`. With `test=True` nothing is changed.
    #[keywords]
    settings: Map,
) -> CallResult {
    ifupdown(context)?;
    let iface = interface(&iface)?;
    let omits_use_carrier = ubuntu(context).is_some_and(|release| release >= 16);
    let options = bond::options(&settings, iface, omits_use_carrier)?;
    if is_test(&settings) {
        return Ok(bond::text(iface, &options)?.split_inclusive('\n').collect());
    }
    let written = host().write_bond(iface, &options)?;
    context.call("kmod.load", Args::positional(["bonding".into()]))?;
    installed(context, "ifenslave")?;
    Ok(written)
}

/// Return the global network settings: whether the network is configured at boot, the name of the host, its domain, and
/// the domains to search.
///
/// CLI Example:
///
///     salt '*' ip.get_network_settings
#[function]
pub fn get_network_settings(context: &Context) -> CallResult {
    ifupdown(context)?;
    let mut global = host().global()?;
    if by_services(context) {
        let on = service(context, "available", "networking")? && service(context, "status", "networking")?;
        if on { "yes" } else { "no" }.clone_into(&mut global.networking);
        global.search.clear();
    }
    Ok(global.lines())
}

/// Change the global network settings, and return them.
///
/// CLI Example:
///
///     salt '*' ip.build_network_settings enabled=True hostname=web1.example.com
#[function]
pub fn build_network_settings(
    context: &Context,
    /// `enabled`: whether interfaces are configured at boot; `hostname`, whose domain becomes that of
    /// `/etc/resolv.conf`; `search`: domains to search. With `test=True` nothing is written.
    #[keywords]
    settings: Map,
) -> CallResult {
    ifupdown(context)?;
    let files = host();
    let old = files.global()?;
    let new = old.with(&settings)?;
    if is_test(&settings) {
        return Ok(new.lines());
    }
    files.check_resolv(&old, &new)?;
    if by_services(context) {
        let operation = if new.networking == "yes" { "enable" } else { "disable" };
        for name in ["NetworkManager", "networking"] {
            if service(context, "available", name)? {
                service(context, operation, name)?;
            }
        }
    } else {
        files.write_networking(&new.networking)?;
    }
    if (&old.domain, &old.search) != (&new.domain, &new.search) {
        files.write_resolv(&old, &new)?;
    }
    Ok(new.lines())
}

/// Apply the global network settings: stop and start the network. Connections of this host are interrupted.
///
/// CLI Example:
///
///     salt '*' ip.apply_network_settings
#[function]
pub fn apply_network_settings(
    context: &Context,
    /// With `apply_hostname=True` and `hostname` the host gets that name. With `require_reboot=True` the network is not
    /// restarted.
    #[keywords]
    settings: Map,
) -> CallResult {
    ifupdown(context)?;
    let is_set = |name: &str| settings.get(name).and_then(switch) == Some(true);
    if is_test(&settings) {
        return Ok(true.into());
    }
    let mut named = true;
    if is_set("apply_hostname") {
        named = if let Some(name) = settings.get("hostname") {
            context.call("network.mod_hostname", Args::positional([name.clone()]))?.is_truthy()
        } else {
            tracing::warn!("the host name is not applied: apply_hostname is set, but hostname is not");
            false
        };
    }
    if is_set("require_reboot") {
        tracing::warn!("the network settings take effect when this host is restarted: require_reboot is set");
        return Ok(named.into());
    }
    let stopped = service(context, "stop", "networking")?;
    if cancelled_within(&context.job.cancel, RESTART_DELAY) {
        // The network must not stay down.
        service(context, "start", "networking")?;
        return Err(CallError::Execution("the job was cancelled".into()));
    }
    let started = service(context, "start", "networking")?;
    Ok((named && stopped && started).into())
}

/// Checks that the network of this host is configured by Debian's ifupdown.
fn ifupdown(context: &Context) -> Result<(), CallError> {
    debian(context)?;
    if which("netplan").is_some() && host().root.join("etc/netplan").is_dir() {
        return Err(CallError::Execution(
            "the network of this host is configured by netplan: change the files in /etc/netplan".into(),
        ));
    }
    Ok(())
}

fn is_test(settings: &Map) -> bool {
    settings.get("test").is_some_and(Value::is_truthy)
}

/// Returns the major release of Ubuntu; `None` on other systems.
fn ubuntu(context: &Context) -> Option<u32> {
    let grains = context.grains();
    let grain = |name: &str| grains.get(name).map(ToString::to_string).unwrap_or_default();
    if grain("os") != "Ubuntu" {
        return None;
    }
    grain("osrelease").split('.').next()?.parse().ok()
}

/// Whether the network is enabled at boot by its service instead of `/etc/default/networking`.
fn by_services(context: &Context) -> bool {
    ubuntu(context).is_some_and(|release| release >= 12)
}

fn service(context: &Context, operation: &str, name: &str) -> Result<bool, CallError> {
    Ok(context.call(&format!("service.{operation}"), Args::positional([name.into()]))?.is_truthy())
}

/// Installs a package unless it is installed.
fn installed(context: &Context, package: &str) -> Result<(), CallError> {
    let name = || Args::positional([package.into()]);
    if !context.call("pkg.version", name())?.is_truthy() {
        context.call("pkg.install", name())?;
    }
    Ok(())
}
