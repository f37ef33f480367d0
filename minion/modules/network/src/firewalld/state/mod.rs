//! `firewalld`: states of zones and services of firewalld.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};

/// State functions of `firewalld`.
pub static FUNCTIONS: Functions<StateContext> = registry!("firewalld", [present, service]);

/// The arguments of `firewalld.present`. Lists that are not given are left unchanged; others are added to the current
/// ones of the zone, or replace them with `prune_...`.
#[derive(Debug, brine_function::Args)]
pub struct PresentArgs {
    /// The name of the zone.
    name: String,
    /// The ICMP types that are blocked.
    #[default]
    block_icmp: Vec<String>,
    /// Whether blocks of other ICMP types are removed.
    #[default(false)]
    prune_block_icmp: bool,
    /// Whether it is the default zone.
    #[default]
    default: Value,
    /// Whether masquerading is enabled.
    masquerade: Option<bool>,
    /// The allowed ports, such as `443/tcp`.
    #[default]
    ports: Vec<String>,
    /// Whether other ports are removed.
    #[default(false)]
    prune_ports: bool,
    /// The port forwardings, such as `22:2222:tcp` or `22:22:tcp:10.0.0.1`.
    #[default]
    port_fwd: Vec<String>,
    /// Whether other port forwardings are removed.
    #[default(false)]
    prune_port_fwd: bool,
    /// The allowed services.
    #[default]
    services: Vec<String>,
    /// Whether other services are removed.
    #[default(false)]
    prune_services: bool,
    /// The interfaces of the zone.
    #[default]
    interfaces: Vec<String>,
    /// Whether other interfaces are removed.
    #[default(false)]
    prune_interfaces: bool,
    /// The sources of the zone: addresses and networks.
    #[default]
    sources: Vec<String>,
    /// Whether other sources are removed.
    #[default(false)]
    prune_sources: bool,
    /// The rich rules.
    #[default]
    rich_rules: Vec<String>,
    /// Whether other rich rules are removed.
    #[default(false)]
    prune_rich_rules: bool,
}

/// Ensure that a zone is present and has these settings.
///
/// SLS Example:
///
///     public:
///       firewalld.present:
///         - services:
///           - ssh
///           - https
///         - ports:
///           - 8080/tcp
///         - prune_ports: True
#[function]
pub fn present(context: &StateContext, #[args] zone: PresentArgs) -> CallResult {
    let name = zone.name.clone();
    let changes = match configured(context, zone) {
        Ok(changes) => changes,
        Err(error) => return Ok(StateReturn::failed(&name, message(error)).into()),
    };
    finished(context, &name, changes)
}

/// Ensure that a service is present and has exactly these ports and protocols.
///
/// SLS Example:
///
///     app:
///       firewalld.service:
///         - ports:
///           - 8080/tcp
///           - 8443/tcp
#[function]
pub fn service(
    context: &StateContext,
    /// Name of the service.
    name: String,
    /// Ports of the service, such as `8080/tcp`; other ones are removed.
    #[default]
    ports: Vec<String>,
    /// Protocols of the service; other ones are removed.
    #[default]
    protocols: Vec<String>,
) -> CallResult {
    let configured = || -> Result<Map, CallError> {
        let mut changes = Map::new();
        let firewall = Firewall { context, is_new: !strings(&call(context, "get_services", [])?).contains(&name) };
        if firewall.is_new {
            changes.insert("service".into(), map! {"old" => Value::Nil, "new" => name.as_str()}.into());
            firewall.change("new_service", [name.as_str().into(), false.into()])?;
        }
        for (key, desired, kind) in [("ports", ports, "port"), ("protocols", protocols, "protocol")] {
            let current = strings(&firewall.read(&format!("get_service_{kind}s"), &name)?);
            let missing: Vec<&String> = desired.iter().filter(|one| !current.contains(one)).collect();
            let surplus: Vec<&String> = current.iter().filter(|one| !desired.contains(one)).collect();
            for (action, list) in [("add", &missing), ("remove", &surplus)] {
                for one in list {
                    firewall
                        .change(&format!("{action}_service_{kind}"), [name.as_str().into(), one.as_str().into()])?;
                }
            }
            if !missing.is_empty() || !surplus.is_empty() {
                changes.insert(key.into(), map! {"old" => current.clone(), "new" => desired.clone()}.into());
            }
        }
        Ok(changes)
    };
    match configured() {
        Ok(changes) => finished(context, &name, changes),
        Err(error) => Ok(StateReturn::failed(&name, message(error)).into()),
    }
}

/// Loads the changes unless in test mode, and returns the result of the state.
fn finished(context: &StateContext, name: &str, changes: Map) -> CallResult {
    if changes.is_empty() {
        return Ok(StateReturn::ok(name, format!("'{name}' is already in the desired state.")).into());
    }
    if context.test {
        let report = StateReturn::predicted(name, format!("Configuration for '{name}' will change."));
        return Ok(report.with_changes(changes).into());
    }
    call(context, "reload_rules", [])?;
    Ok(StateReturn::ok(name, format!("'{name}' was configured.")).with_changes(changes).into())
}

fn message(error: CallError) -> String {
    match error {
        CallError::Execution(message) => format!("Error: {message}"),
        other => format!("Error: {other}"),
    }
}

fn call<const N: usize>(context: &StateContext, function: &str, args: [Value; N]) -> CallResult {
    context.call.call(&format!("firewalld.{function}"), Args::positional(args))
}

fn strings(value: &Value) -> Vec<String> {
    value.as_list().unwrap_or_default().iter().map(ToString::to_string).collect()
}

/// Access of a state to the firewall. In test mode, a zone or service that does not exist yet has no settings, and
/// changes are not made.
struct Firewall<'a> {
    context: &'a StateContext,
    is_new: bool,
}

impl Firewall<'_> {
    /// Returns a setting of a zone or service; null in test mode if it does not exist yet.
    fn read(&self, function: &str, name: &str) -> CallResult {
        if self.is_new && self.context.test {
            return Ok(Value::Nil);
        }
        call(self.context, function, [name.into()])
    }

    fn change<const N: usize>(&self, function: &str, args: [Value; N]) -> Result<(), CallError> {
        if !self.context.test {
            call(self.context, function, args)?;
        }
        Ok(())
    }

    /// Adds missing items to a list of a zone; `prune` removes all others.
    fn list(
        &self,
        changes: &mut Map,
        zone: &str,
        (key, list, add, remove): (&str, &str, &str, &str),
        (desired, prune): (Vec<String>, bool),
    ) -> Result<(), CallError> {
        if desired.is_empty() && !prune {
            return Ok(());
        }
        let current = strings(&self.read(list, zone)?);
        let missing: Vec<String> = desired.iter().filter(|one| !current.contains(one)).cloned().collect();
        let surplus: Vec<String> = current.iter().filter(|one| prune && !desired.contains(one)).cloned().collect();
        for (function, items) in [(add, &missing), (remove, &surplus)] {
            for item in items {
                // The functions on services take the service before the zone.
                let args: [Value; 2] = match key {
                    "services" => [item.as_str().into(), zone.into()],
                    _ => [zone.into(), item.as_str().into()],
                };
                self.change(function, args)?;
            }
        }
        if !missing.is_empty() || !surplus.is_empty() {
            // Without pruning, the current items stay.
            let new = if prune { desired } else { current.iter().cloned().chain(missing).collect() };
            changes.insert(key.into(), map! {"old" => current, "new" => new}.into());
        }
        Ok(())
    }
}

/// Makes the changes of a zone, unless in test mode, and returns them.
fn configured(context: &StateContext, zone: PresentArgs) -> Result<Map, CallError> {
    let name = zone.name.as_str();
    let mut changes = Map::new();
    let zones = call(context, "get_zones", [])?;
    let firewall = Firewall { context, is_new: !strings(&zones).contains(&zone.name) };
    if firewall.is_new {
        firewall.change("new_zone", [name.into()])?;
        changes.insert(name.into(), map! {"old" => zones, "new" => name}.into());
    }
    let mut blocked = zone.block_icmp;
    if !blocked.is_empty() {
        let types = strings(&call(context, "get_icmp_types", [])?);
        blocked.retain(|icmp| {
            let is_known = types.contains(icmp);
            if !is_known {
                tracing::error!(jid = context.call.job.jid, icmp, "an ICMP type is unknown");
            }
            is_known
        });
    }
    let icmp = ("icmp_types", "list_icmp_block", "block_icmp", "allow_icmp");
    firewall.list(&mut changes, name, icmp, (blocked, zone.prune_block_icmp))?;
    if zone.default.is_truthy() {
        let default = call(context, "default_zone", [])?;
        if default.as_str() != Some(name) {
            firewall.change("set_default_zone", [name.into()])?;
            changes.insert("default".into(), map! {"old" => default, "new" => name}.into());
        }
    }
    if let Some(masquerade) = zone.masquerade {
        let current = firewall.read("get_masquerade", name)?.is_truthy();
        if masquerade != current {
            let (function, verb) =
                if masquerade { ("add_masquerade", "set") } else { ("remove_masquerade", "disabled") };
            firewall.change(function, [name.into()])?;
            let new = format!("Masquerading successfully {verb}.");
            changes.insert("masquerade".into(), map! {"old" => current, "new" => new}.into());
        }
    }
    let ports = ("ports", "list_ports", "add_port", "remove_port");
    firewall.list(&mut changes, name, ports, (zone.ports, zone.prune_ports))?;
    forwarded(&firewall, &mut changes, name, &zone.port_fwd, zone.prune_port_fwd)?;
    let services = ("services", "list_services", "add_service", "remove_service");
    firewall.list(&mut changes, name, services, (zone.services, zone.prune_services))?;
    let interfaces = ("interfaces", "get_interfaces", "add_interface", "remove_interface");
    firewall.list(&mut changes, name, interfaces, (zone.interfaces, zone.prune_interfaces))?;
    let sources = ("sources", "get_sources", "add_source", "remove_source");
    firewall.list(&mut changes, name, sources, (zone.sources, zone.prune_sources))?;
    let rules = zone.rich_rules.iter().map(|rule| normalized(rule)).collect();
    let rich_rules = ("rich_rules", "get_rich_rules", "add_rich_rule", "remove_rich_rule");
    firewall.list(&mut changes, name, rich_rules, (rules, zone.prune_rich_rules))?;
    Ok(changes)
}

/// Adds the missing port forwardings of a zone, and removes the others if they are pruned.
fn forwarded(
    firewall: &Firewall<'_>,
    changes: &mut Map,
    zone: &str,
    desired: &[String],
    prune: bool,
) -> Result<(), CallError> {
    if desired.is_empty() && !prune {
        return Ok(());
    }
    let desired = desired.iter().map(|text| forwarding(text)).collect::<Result<Vec<Value>, _>>()?;
    let current = firewall.read("list_port_fwd", zone)?.as_list().unwrap_or_default().to_vec();
    let same = |a: &Value, b: &Value| {
        a.as_map().is_some_and(|a| a.iter().all(|(name, value)| b.get(&name.to_string()) == Some(value)))
    };
    let missing: Vec<Value> =
        desired.iter().filter(|one| !current.iter().any(|other| same(one, other))).cloned().collect();
    let surplus: Vec<Value> =
        current.iter().filter(|one| prune && !desired.iter().any(|other| same(one, other))).cloned().collect();
    for (function, list) in [("add_port_fwd", &missing), ("remove_port_fwd", &surplus)] {
        for one in list {
            let field = |name: &str| one.get(name).cloned().unwrap_or_default();
            let args = [
                zone.into(),
                field("Source port"),
                field("Destination port"),
                field("Protocol"),
                field("Destination address"),
            ];
            firewall.change(function, args)?;
        }
    }
    if !missing.is_empty() || !surplus.is_empty() {
        let new: Vec<Value> = if prune { desired } else { current.iter().cloned().chain(missing).collect() };
        changes.insert("port_fwd".into(), map! {"old" => current, "new" => new}.into());
    }
    Ok(())
}

/// Parses `22:2222:tcp` or `22:22:tcp:10.0.0.1`.
fn forwarding(text: &str) -> Result<Value, CallError> {
    let mut parts = text.splitn(4, ':');
    let (Some(source), Some(destination), Some(protocol)) = (parts.next(), parts.next(), parts.next()) else {
        let message = format!("port_fwd is invalid: expected such as 22:2222:tcp, got {text}");
        return Err(CallError::Execution(message));
    };
    Ok(map! {
        "Source port" => source, "Destination port" => destination, "Protocol" => protocol,
        "Destination address" => parts.next().unwrap_or_default(),
    }
    .into())
}

/// Quotes the values of a rich rule as firewalld prints them.
fn normalized(rule: &str) -> String {
    let quoted = |word: &str| match word.split_once('=') {
        Some((name, value)) if !value.starts_with('"') && !value.ends_with('"') => {
            let plain = value.strip_prefix('\'').and_then(|value| value.strip_suffix('\'')).unwrap_or(value);
            format!("{name}=\"{plain}\"")
        }
        _ => word.to_owned(),
    };
    rule.split(' ').map(quoted).collect::<Vec<_>>().join(" ").trim_start().to_owned()
}

#[cfg(test)]
mod tests;
