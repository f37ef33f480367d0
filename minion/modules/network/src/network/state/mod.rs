//! `network`: states of interfaces, their routes and the global network settings, by the functions of `ip`.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use brine_context::{Context, StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_modules_files::file::unified_lines;
use brine_system::files;
use brine_value::{Map, Value};
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

/// State functions of `network`.
pub static FUNCTIONS: Functions<StateContext> = registry!("network", [managed, routes, system]);

/// Returns the reason why the states of `network` are unavailable on this host; `None` if they are available.
pub(super) fn unavailable(context: &Context) -> Option<String> {
    (context.os_family() != "Debian").then(|| "ip module could not be loaded".into())
}

/// Ensure that a network interface is configured, and up if it is enabled.
///
/// SLS Example:
///
///     eth0:
///       network.managed:
///         - type: eth
///         - enabled: True
///         - proto: static
///         - ipaddr: 10.0.0.10
///         - netmask: 255.255.255.0
///         - gateway: 10.0.0.1
///         - dns:
///           - 10.0.0.2
///
///     eth1:
///       network.managed:
///         - type: eth
///         - enabled: True
///         - proto: dhcp
#[function]
pub fn managed(
    context: &StateContext,
    /// Name of the interface.
    name: String,
    /// Type: `eth`, `bond`, `vlan`, `bridge`, `slave`, `source` and others.
    #[default("eth".into())]
    r#type: String,
    /// Whether the interface is up, now and at boot.
    #[default(true.into())]
    enabled: Value,
    /// Options of the interface, as of the execution function `ip.build_interface`: `proto`, `ipaddr`, `netmask`,
    /// `gateway`, `dns`, `mtu` and others. With `noifupdown` it is neither started nor stopped.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let mut settings = with_test(context, kwargs);
    let mut report = StateReturn::ok(&name, format!("Interface {name} is up to date."));
    if let Some(addr) = settings.shift_remove("addr") {
        let own = settings.contains_key("hwaddr");
        let outcome = if own {
            "it has been ignored in favor of 'hwaddr'."
        } else {
            "its value has been assigned to 'hwaddr' instead."
        };
        settings.entry("hwaddr".into()).or_insert(addr);
        let warning = format!("'addr' is not a valid argument name, {outcome} Correct the SLS file.");
        report.more.insert("warnings".into(), Value::List(vec![warning.into()]));
    }
    let enabled = enabled.is_truthy();
    let result = configure(context, &name, &r#type, enabled, &settings, &mut report);
    Ok(match result {
        Ok(()) => report,
        // Changes made before the failure are reported, too.
        Err(error) => StateReturn { result: Some(false), comment: error.message(), ..report },
    }
    .into())
}

fn configure(
    context: &StateContext,
    name: &str,
    kind: &str,
    enabled: bool,
    settings: &Map,
    report: &mut StateReturn,
) -> Result<(), CallError> {
    let call = |function: &str, args: Args| context.call.call(function, args);
    let named = || Args::positional([name.into()]);
    let is_test = settings.get("test").is_some_and(Value::is_truthy);
    let old = call("ip.get_interface", named())?;
    let positional = vec![name.into(), kind.into(), enabled.into()];
    let new = call("ip.build_interface", Args { positional, keyword: settings.clone() })?;
    let what = ("Interface", "interface", "Added network interface.".to_owned());
    compare(report, is_test, name, what, &old, &new);
    // Entries that include other files are neither started nor stopped.
    if kind == "source" {
        return Ok(());
    }
    if kind == "bond" {
        let old = call("ip.get_bond", named())?;
        let new = call("ip.build_bond", Args { positional: vec![name.into()], keyword: settings.clone() })?;
        compare(report, is_test, name, ("Bond interface", "bond", format!("Added bond {name}.")), &old, &new);
    }
    if is_test {
        return Ok(());
    }
    let was_up = is_up(name);
    let switch = |function: &str| call(function, Args::positional([name.into(), kind.into()]));
    let keeps = settings.contains_key("noifupdown");
    let status = match (enabled, was_up) {
        _ if keeps => None,
        (true, true) if report.changes.is_empty() => None,
        (true, true) => {
            switch("ip.down")?;
            switch("ip.up")?;
            Some("restart to validate")
        }
        (true, false) => {
            switch("ip.up")?;
            Some("is up")
        }
        (false, true) => {
            switch("ip.down")?;
            Some("down")
        }
        (false, false) => None,
    };
    if let Some(status) = status {
        report.changes.insert("status".into(), format!("Interface {name} {status}").into());
    }
    if kind == "bond" && !keeps {
        enslave(context, name, settings.get("slaves"), report)?;
    }
    if !(enabled && was_up) {
        // Grains contain the addresses. A failure to refresh them is ignored.
        _ = call("saltutil.refresh_grains", Args::default());
    }
    Ok(())
}

/// Adds the missing slaves to a bond.
fn enslave(
    context: &StateContext,
    name: &str,
    slaves: Option<&Value>,
    report: &mut StateReturn,
) -> Result<(), CallError> {
    let present = files::read_if_exists(format!("/sys/class/net/{name}/bonding/slaves")).unwrap_or_default();
    let present = present.unwrap_or_default();
    let present: BTreeSet<&str> = present.split_whitespace().collect();
    let slaves: BTreeSet<String> = match slaves {
        Some(Value::List(slaves)) => slaves.iter().map(ToString::to_string).collect(),
        Some(slaves) => slaves.to_string().split_whitespace().map(str::to_owned).collect(),
        None => BTreeSet::new(),
    };
    let missing: Vec<String> = slaves.into_iter().filter(|slave| !present.contains(slave.as_str())).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if context.call.minion.programs.find("ifenslave").is_some() {
        let mut words = vec!["ifenslave".to_owned(), name.to_owned()];
        for slave in &missing {
            words.push(brine_host::programs::argument(slave)?);
        }
        brine_context::programs::run(&context.call, &words, &[])?;
    } else {
        tracing::error!(bond = name, "slaves cannot be added: the program ifenslave is not installed");
    }
    let text = format!("Added slaves '{}' to master '{name}'", missing.join(" "));
    report.changes.insert("enslave".into(), text.into());
    Ok(())
}

/// Ensure that a network interface has these static routes. The network is restarted when they change.
///
/// SLS Example:
///
///     eth0:
///       network.routes:
///         - routes:
///           - name: office
///             ipaddr: 192.168.10.0
///             netmask: 255.255.255.0
///             gateway: 10.0.0.254
#[function]
pub fn routes(
    context: &StateContext,
    /// Name of the interface.
    name: String,
    /// `routes`: a list of mappings with `ipaddr`, `netmask` and `gateway`, as of the execution function
    /// `ip.build_routes`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let settings = with_test(context, kwargs);
    let mut report = StateReturn::ok(&name, format!("Interface {name} routes are up to date."));
    let mut apply = || -> Result<(), CallError> {
        let old = context.call.call("ip.get_routes", Args::positional([name.as_str().into()]))?;
        let args = Args { positional: vec![name.as_str().into()], keyword: settings.clone() };
        let new = context.call.call("ip.build_routes", args)?;
        let is_test = settings.get("test").is_some_and(Value::is_truthy);
        if old == new {
            return Ok(());
        }
        let is_new = !old.is_truthy();
        if is_test {
            report.result = None;
            report.comment = if is_new {
                format!("Interface {name} routes are set to be added.")
            } else {
                format!("Interface {name} routes are set to be updated:\n{}", difference(&old, &new))
            };
            return Ok(());
        }
        let word = if is_new { "added" } else { "updated" };
        report.comment = format!("Interface {name} routes {word}.");
        let change = if is_new { format!("Added interface {name} routes.") } else { difference(&old, &new) };
        report.changes.insert("network_routes".into(), change.into());
        context.call.call("ip.apply_network_settings", Args::keyword(settings.clone())).map(|_| ())
    };
    let result = apply();
    Ok(finished(result, report))
}

/// Ensure that the global network settings are these. The network is restarted when they change.
///
/// SLS Example:
///
///     global_settings:
///       network.system:
///         - enabled: True
///         - hostname: web1.example.com
///         - gateway: 10.0.0.1
#[function]
pub fn system(
    context: &StateContext,
    /// Name of the state.
    name: String,
    /// Settings, as of the execution functions `ip.build_network_settings` and `ip.apply_network_settings`: `enabled`,
    /// `hostname`, `gateway`, `nozeroconf`, `require_reboot` and others.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let mut settings = kwargs;
    settings.insert("test".into(), context.test.into());
    let mut report = StateReturn::ok(&name, "Global network settings are up to date.");
    let mut apply = || -> Result<(), CallError> {
        let old = context.call.call("ip.get_network_settings", Args::default())?;
        let new = context.call.call("ip.build_network_settings", Args::keyword(settings.clone()))?;
        if old == new {
            return Ok(());
        }
        let is_new = !old.is_truthy();
        if context.test {
            report.result = None;
            report.comment = if is_new {
                "Global network settings are set to be added.".to_owned()
            } else {
                format!("Global network settings are set to be updated:\n{}", difference(&old, &new))
            };
            return Ok(());
        }
        let change = if is_new { "Added global network settings.".to_owned() } else { difference(&old, &new) };
        report.changes.insert("network_settings".into(), change.into());
        context.call.call("ip.apply_network_settings", Args::keyword(settings.clone())).map(|_| ())
    };
    let result = apply();
    Ok(finished(result, report))
}

fn finished(result: Result<(), CallError>, report: StateReturn) -> Value {
    match result {
        Ok(()) => report.into(),
        Err(error) => StateReturn { result: Some(false), comment: error.message(), ..report }.into(),
    }
}

/// Reports the addition of an interface or a bond, or its differences.
fn compare(
    report: &mut StateReturn,
    is_test: bool,
    name: &str,
    (what, key, added): (&str, &str, String),
    old: &Value,
    new: &Value,
) {
    if old == new {
        return;
    }
    let is_new = !old.is_truthy() && new.is_truthy();
    if is_test {
        report.result = None;
        report.comment = if is_new {
            format!("{what} {name} is set to be added.")
        } else {
            format!("{what} {name} is set to be updated:\n{}", difference(old, new))
        };
    } else {
        report.comment = format!("{what} {name} {}.", if is_new { "added" } else { "updated" });
        let change = if is_new { added } else { difference(old, new) };
        report.changes.insert(key.into(), change.into());
    }
}

/// Returns the difference of two lists of lines, as Salt joins it: with a line end after each line and its own.
fn difference(old: &Value, new: &Value) -> String {
    let lines = |value: &Value| -> Vec<String> {
        value.as_list().unwrap_or_default().iter().map(|line| format!("{line}\n")).collect()
    };
    let (old, new) = (lines(old), lines(new));
    let old: Vec<&str> = old.iter().map(String::as_str).collect();
    let new: Vec<&str> = new.iter().map(String::as_str).collect();
    let mut text = unified_lines(&old, &new);
    text.pop();
    text
}

fn with_test(context: &StateContext, mut kwargs: Map) -> Map {
    kwargs.entry("test".into()).or_insert_with(|| context.test.into());
    kwargs
}

/// Whether an interface of this name, or with an address of this label, is up.
fn is_up(name: &str) -> bool {
    let mut interfaces = getifaddrs().into_iter().flatten();
    interfaces.any(|one| one.interface_name == name && one.flags.contains(InterfaceFlags::IFF_UP))
}
