//! `firewalld`: states of zones and services of firewalld.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Function, function, registry};
use brine_value::{Map, Value, map};

/// State functions of `firewalld`.
pub static FUNCTIONS: &[Function<StateContext>] = registry!("firewalld", [present, service]);

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
#[function]
pub fn service(
    context: &StateContext,
    name: String,
    #[default] ports: Vec<String>,
    #[default] protocols: Vec<String>,
) -> CallResult {
    let configured = || -> Result<Map, CallError> {
        let mut changes = Map::new();
        let firewall = Firewall { context, is_new: !strings(&call(context, "get_services", [])?).contains(&name) };
        if firewall.is_new {
            changes.insert("service".into(), map! {"old" => Value::Nil, "new" => name.as_str()}.into());
            firewall.change("new_service", [name.as_str().into(), false.into()])?;
        }
        for (key, wanted, kind) in [("ports", ports, "port"), ("protocols", protocols, "protocol")] {
            let current = strings(&firewall.read(&format!("get_service_{kind}s"), &name)?);
            let missing: Vec<&String> = wanted.iter().filter(|one| !current.contains(one)).collect();
            let surplus: Vec<&String> = current.iter().filter(|one| !wanted.contains(one)).collect();
            for (action, list) in [("add", &missing), ("remove", &surplus)] {
                for one in list {
                    firewall
                        .change(&format!("{action}_service_{kind}"), [name.as_str().into(), one.as_str().into()])?;
                }
            }
            if !missing.is_empty() || !surplus.is_empty() {
                changes.insert(key.into(), map! {"old" => current.clone(), "new" => wanted.clone()}.into());
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
        let report = StateReturn::would(name, format!("Configuration for '{name}' will change."));
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
        (wanted, prune): (Vec<String>, bool),
    ) -> Result<(), CallError> {
        if wanted.is_empty() && !prune {
            return Ok(());
        }
        let current = strings(&self.read(list, zone)?);
        let missing: Vec<String> = wanted.iter().filter(|one| !current.contains(one)).cloned().collect();
        let surplus: Vec<String> = current.iter().filter(|one| prune && !wanted.contains(one)).cloned().collect();
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
            let new = if prune { wanted } else { current.iter().cloned().chain(missing).collect() };
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
        let known = strings(&call(context, "get_icmp_types", [])?);
        blocked.retain(|icmp| {
            let is_known = known.contains(icmp);
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
    if let Some(wanted) = zone.masquerade {
        let current = firewall.read("get_masquerade", name)?.is_truthy();
        if wanted != current {
            let (function, verb) = if wanted { ("add_masquerade", "set") } else { ("remove_masquerade", "disabled") };
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
    wanted: &[String],
    prune: bool,
) -> Result<(), CallError> {
    if wanted.is_empty() && !prune {
        return Ok(());
    }
    let wanted = wanted.iter().map(|text| forwarding(text)).collect::<Result<Vec<Value>, _>>()?;
    let current = firewall.read("list_port_fwd", zone)?.as_list().unwrap_or_default().to_vec();
    let same = |a: &Value, b: &Value| {
        a.as_map().is_some_and(|a| a.iter().all(|(name, value)| b.get(&name.to_string()) == Some(value)))
    };
    let missing: Vec<Value> =
        wanted.iter().filter(|one| !current.iter().any(|known| same(one, known))).cloned().collect();
    let surplus: Vec<Value> =
        current.iter().filter(|one| prune && !wanted.iter().any(|known| same(one, known))).cloned().collect();
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
        let new: Vec<Value> = if prune { wanted } else { current.iter().cloned().chain(missing).collect() };
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
mod tests {
    use brine_value::list;

    use super::*;
    use crate::testing::applied;

    const FIREWALL: &str = "
        $ firewall-cmd --get-zones --permanent
        | dmz public
        $ firewall-cmd --get-services --permanent
        | http ssh
        $ firewall-cmd --get-icmptypes --permanent
        | echo-reply echo-request
        $ firewall-cmd --get-default-zone
        | public
        $ firewall-cmd --zone=public --list-icmp-blocks --permanent
        | echo-reply
        $ firewall-cmd --zone=public --list-all --permanent
        | public
        |   masquerade: no
        $ firewall-cmd --zone=public --list-ports --permanent
        | 22/tcp 80/tcp
        $ firewall-cmd --zone=public --list-forward-ports --permanent
        | port=80:proto=tcp:toport=443:toaddr=
        $ firewall-cmd --zone=public --list-services --permanent
        | ssh
        $ firewall-cmd --zone=public --list-rich-rules --permanent
        | rule family=\"ipv4\" accept
        $ firewall-cmd --zone=mine --list-ports --permanent
        |
        $ firewall-cmd --service=http --get-ports --permanent
        | 80/tcp
        $ firewall-cmd --service=http --get-protocols --permanent
        |
        $ firewall-cmd --reload
        | success
    ";

    /// Returns the commands that change something.
    fn changing(ran: &str) -> Vec<String> {
        let changes =
            |line: &&str| ["--add", "--remove", "--new", "--set", "--reload"].iter().any(|word| line.contains(word));
        let short = |line: &str| line.replace("firewall-cmd ", "").replace(" --permanent", "");
        ran.lines().filter(changes).map(short).collect()
    }

    #[test]
    fn missing_zone_settings_are_added() {
        let ok = |commands: &[&str]| -> String {
            let one = |command: &&str| format!("$ firewall-cmd {command} --permanent\n| success\n");
            commands.iter().map(one).collect::<Vec<_>>().concat()
        };
        let public = |key: &str, value: Value, prune: bool| {
            map! {"name" => "public", key => value, format!("prune_{key}") => prune}
        };
        for (keyword, commands, changes) in [
            (public("ports", list!["22/tcp"], false), vec![], map! {}),
            (
                public("ports", list!["22/tcp", "443/tcp"], false),
                vec!["--zone=public --add-port=443/tcp"],
                map! {"ports" => map! {"old" => list!["22/tcp", "80/tcp"], "new" => list!["22/tcp", "80/tcp", "443/tcp"]}},
            ),
            (
                public("ports", list!["22/tcp"], true),
                vec!["--zone=public --remove-port=80/tcp"],
                map! {"ports" => map! {"old" => list!["22/tcp", "80/tcp"], "new" => list!["22/tcp"]}},
            ),
            (
                public("services", list!["http"], true),
                vec!["--zone=public --add-service=http", "--zone=public --remove-service=ssh"],
                map! {"services" => map! {"old" => list!["ssh"], "new" => list!["http"]}},
            ),
            (
                public("block_icmp", list!["echo-request", "nonsense"], false),
                vec!["--zone=public --add-icmp-block=echo-request"],
                map! {"icmp_types" => map! {"old" => list!["echo-reply"], "new" => list!["echo-reply", "echo-request"]}},
            ),
            (public("rich_rules", list!["rule family='ipv4' accept"], true), vec![], map! {}),
            (public("port_fwd", list!["80:443:tcp"], true), vec![], map! {}),
            (
                map! {"name" => "public", "masquerade" => true, "default" => true},
                vec!["--zone=public --add-masquerade"],
                map! {"masquerade" => map! {"old" => false, "new" => "Masquerading successfully set."}},
            ),
            (
                map! {"name" => "mine", "ports" => list!["1/tcp"]},
                vec!["--new-zone=mine", "--reload", "--zone=mine --add-port=1/tcp"],
                map! {
                    "mine" => map! {"old" => list!["dmz", "public"], "new" => "mine"},
                    "ports" => map! {"old" => list![], "new" => list!["1/tcp"]},
                },
            ),
        ] {
            let report = applied("firewalld.present", keyword.clone(), false, &format!("{FIREWALL}{}", ok(&commands)));
            let is_changed = !changes.is_empty();
            let sentence = if is_changed { "was configured." } else { "is already in the desired state." };
            assert_eq!(
                (report.result, report.changes),
                (Some(true), changes.clone().into()),
                "{keyword:?} {}",
                report.comment
            );
            assert!(report.comment.ends_with(sentence), "{}", report.comment);
            let mut expected: Vec<String> = commands.iter().map(|line| (*line).to_owned()).collect();
            expected.extend(is_changed.then(|| "--reload".to_owned()));
            assert_eq!(changing(&report.ran), expected);
            let planned = applied("firewalld.present", keyword, true, FIREWALL);
            assert_eq!((planned.result, planned.changes), ((!is_changed).then_some(true), changes.into()));
            assert!(changing(&planned.ran).is_empty());
        }
    }

    #[test]
    fn services_have_exactly_their_ports() {
        let changed = "$ firewall-cmd --service=http --add-port=81/tcp --permanent\n| success\n\
                       $ firewall-cmd --service=http --remove-port=80/tcp --permanent\n| success\n";
        let report = applied(
            "firewalld.service",
            map! {"name" => "http", "ports" => list!["81/tcp"]},
            false,
            &format!("{FIREWALL}{changed}"),
        );
        assert_eq!((report.result, &*report.comment), (Some(true), "'http' was configured."));
        let same = applied("firewalld.service", map! {"name" => "http", "ports" => list!["80/tcp"]}, false, FIREWALL);
        assert_eq!((same.result, &*same.comment), (Some(true), "'http' is already in the desired state."));
        let new = applied("firewalld.service", map! {"name" => "new", "ports" => list!["1/tcp"]}, true, FIREWALL);
        assert_eq!((new.result, &*new.comment), (None, "Configuration for 'new' will change."));
    }

    #[test]
    fn errors_of_the_firewall_fail_the_state() {
        let down = "$ firewall-cmd --get-zones --permanent\n! FirewallD is not running\n= 252\n";
        let report = applied("firewalld.present", map! {"name" => "public"}, false, down);
        assert_eq!(
            (report.result, &*report.comment),
            (Some(false), "Error: firewall-cmd failed: FirewallD is not running")
        );
        let wrong = applied("firewalld.present", map! {"name" => "public", "port_fwd" => list!["80"]}, false, FIREWALL);
        assert_eq!(wrong.comment, "Error: port_fwd is invalid: expected such as 22:2222:tcp, got 80");
        for (rule, expected) in [
            (
                "rule family='ipv4' source address=10.0.0.0/8 accept",
                "rule family=\"ipv4\" source address=\"10.0.0.0/8\" accept",
            ),
            ("rule protocol value=\"ah\" accept", "rule protocol value=\"ah\" accept"),
        ] {
            assert_eq!(normalized(rule), expected);
        }
    }
}
