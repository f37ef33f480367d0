//! `firewalld`: zones and services of firewalld, with `firewall-cmd`.

mod services;
pub(crate) mod state;
mod zones;

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Function, function, registry};
use brine_value::{Map, Value};

pub(super) static MODULE: Module = Module {
    functions: &[FUNCTIONS, services::FUNCTIONS, zones::FUNCTIONS],
    states: &[state::FUNCTIONS],
    ..Module::EMPTY
};

/// Execution functions of `firewalld`.
pub static FUNCTIONS: &[Function<Context>] = registry!(
    "firewalld",
    [
        version,
        reload_rules,
        default_zone,
        set_default_zone,
        list_zones,
        get_zones,
        get_icmp_types,
        list_all,
        make_permanent
    ]
);

/// Return the version of firewalld.
///
/// CLI Example:
///
///     salt '*' firewalld.version
#[function]
pub fn version(context: &Context) -> CallResult {
    Command::new("--version", None, false).run(context)
}

/// Load the permanent configuration, which replaces the rules that are in effect.
///
/// CLI Example:
///
///     salt '*' firewalld.reload_rules
#[function]
pub fn reload_rules(context: &Context) -> CallResult {
    Command::new("--reload", None, false).run(context)
}

/// Return the default zone.
///
/// CLI Example:
///
///     salt '*' firewalld.default_zone
#[function]
pub fn default_zone(context: &Context) -> CallResult {
    Command::new("--get-default-zone", None, false).run(context)
}

/// Set the default zone.
///
/// CLI Example:
///
///     salt '*' firewalld.set_default_zone damian
#[function]
pub fn set_default_zone(context: &Context, zone: String) -> CallResult {
    Command::new(&format!("--set-default-zone={zone}"), None, false).run(context)
}

/// Return all zones with their settings.
///
/// CLI Example:
///
///     salt '*' firewalld.list_zones
#[function]
pub fn list_zones(context: &Context, #[default(true)] permanent: bool) -> CallResult {
    Ok(settings(&Command::new("--list-all-zones", None, permanent).output(context)?).into())
}

/// Return the names of all zones.
///
/// CLI Example:
///
///     salt '*' firewalld.get_zones
#[function]
pub fn get_zones(context: &Context, #[default(true)] permanent: bool) -> CallResult {
    Command::new("--get-zones", None, permanent).words(context)
}

/// Return the names of all ICMP types.
///
/// CLI Example:
///
///     salt '*' firewalld.get_icmp_types
#[function]
pub fn get_icmp_types(context: &Context, #[default(true)] permanent: bool) -> CallResult {
    Command::new("--get-icmptypes", None, permanent).words(context)
}

/// Return the settings of a zone, or of the default zone.
///
/// CLI Example:
///
///     salt '*' firewalld.list_all
///     salt '*' firewalld.list_all my_zone
#[function]
pub fn list_all(context: &Context, zone: Option<String>, #[default(true)] permanent: bool) -> CallResult {
    Ok(settings(&Command::new("--list-all", zone.as_deref(), permanent).output(context)?).into())
}

/// Make the rules that are in effect permanent.
///
/// CLI Example:
///
///     salt '*' firewalld.make_permanent
#[function]
pub fn make_permanent(context: &Context) -> CallResult {
    Command::new("--runtime-to-permanent", None, false).run(context)
}

/// A command line of `firewall-cmd`. Values are passed as `--option=value`, so that none is parsed as an option.
struct Command(Vec<String>);

impl Command {
    /// Creates a command line with an option, on a zone or the default one, and on the permanent or the runtime
    /// configuration.
    fn new(option: &str, zone: Option<&str>, permanent: bool) -> Self {
        let mut words = vec!["firewall-cmd".to_owned()];
        words.extend(zone.filter(|zone| !zone.is_empty()).map(|zone| format!("--zone={zone}")));
        words.push(option.to_owned());
        words.extend(permanent.then(|| "--permanent".to_owned()));
        Command(words)
    }

    fn output(&self, context: &Context) -> Result<String, CallError> {
        let output = run(context, &self.0, &[("LC_ALL", "C")])?;
        if output.retcode != 0 {
            let message = if output.stderr.is_empty() { output.stdout } else { output.stderr };
            return Err(CallError::Execution(format!("firewall-cmd failed: {message}")));
        }
        Ok(output.stdout)
    }

    fn run(&self, context: &Context) -> CallResult {
        Ok(self.output(context)?.into())
    }

    fn words(&self, context: &Context) -> CallResult {
        Ok(self.output(context)?.split_whitespace().collect())
    }

    fn lines(&self, context: &Context) -> CallResult {
        Ok(self.output(context)?.lines().collect())
    }
}

/// Parses zones with their settings. Each setting is a list, whose first item is on the line of the setting's name.
fn settings(output: &str) -> Map {
    let mut zones = Map::new();
    let mut zone: Option<(Value, Map)> = None;
    for line in output.lines().filter(|line| !line.trim().is_empty()) {
        if line.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            zones.extend(zone.replace((line.trim_end().into(), Map::new())).map(|(name, about)| (name, about.into())));
            continue;
        }
        let Some((_, about)) = &mut zone else { continue };
        match (line.strip_prefix('\t'), line.split_once(':')) {
            (Some(more), _) => {
                if let Some((_, Value::List(values))) = about.last_mut() {
                    values.push(more.trim().into());
                }
            }
            (None, Some((name, value))) => {
                about.insert(name.trim().into(), Value::List(vec![value.trim().into()]));
            }
            (None, None) => {}
        }
    }
    zones.extend(zone.map(|(name, about)| (name, about.into())));
    zones
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use crate::testing::{Scripted, answers, context_with};

    // As written by firewalld 1.3.3.
    #[test]
    fn zones_are_described_and_changed() {
        let programs = Scripted::new(
            "
            $ firewall-cmd --version
            | 1.3.3
            $ firewall-cmd --get-default-zone
            | public
            $ firewall-cmd --get-zones --permanent
            | block dmz public
            $ firewall-cmd --zone=public --list-all
            | public (active)
            |   target: default
            |   services: dhcpv6-client ssh
            |   ports: \n            |   masquerade: no
            |   rich rules: \n            | \trule family=\"ipv4\" source address=\"10.0.0.0/8\" accept
            | \trule protocol value=\"ah\" accept
            $ firewall-cmd --list-all-zones --permanent
            | dmz
            |   services: ssh
            |
            | public
            |   masquerade: yes
            $ firewall-cmd --zone=public --add-service=http --permanent
            | success
            $ firewall-cmd --remove-service=http
            | success
            $ firewall-cmd --zone=none --list-services --permanent
            ! INVALID_ZONE: get_zone(): none
            = 112
            $ firewall-cmd --new-zone=mine --permanent
            | success
            $ firewall-cmd --reload
            | success
            $ firewall-cmd --zone=public --list-all --permanent
            | public
            |   masquerade: no
            $ firewall-cmd --zone=public --add-masquerade --permanent
            | success
            $ firewall-cmd --zone=public --add-port=443/tcp --permanent
            | success
            $ firewall-cmd --zone=public --add-forward-port=port=80:proto=tcp:toport=443:toaddr= --permanent
            | success
            $ firewall-cmd --zone=public --list-forward-ports --permanent
            | port=80:proto=tcp:toport=443:toaddr=
            $ firewall-cmd --get-icmptypes --permanent
            | echo-reply echo-request
            $ firewall-cmd --zone=public --list-icmp-blocks --permanent
            | echo-reply
            $ firewall-cmd --zone=public --add-icmp-block=echo-request --permanent
            | success
            $ firewall-cmd '--zone=public' '--add-rich-rule=rule x' --permanent
            | success
            $ firewall-cmd --zone=public '--add-rich-rule=rule x' --permanent
            | success
            $ firewall-cmd --get-services --permanent
            | http ssh
            $ firewall-cmd --service=http --add-port=81/tcp --permanent
            | success
            ",
        );
        let context = context_with(map! {}, programs);
        insta::assert_snapshot!(answers(&context, &[
            ("firewalld.version", list![], map! {}),
            ("firewalld.default_zone", list![], map! {}),
            ("firewalld.get_zones", list![], map! {}),
            ("firewalld.list_all", list!["public"], map! {"permanent" => false}),
            ("firewalld.list_zones", list![], map! {}),
            ("firewalld.add_service", list!["http", "public"], map! {}),
            ("firewalld.remove_service", list!["http"], map! {"permanent" => false}),
            ("firewalld.list_services", list!["none"], map! {}),
            ("firewalld.new_zone", list!["mine"], map! {}),
            ("firewalld.get_masquerade", list!["public"], map! {}),
            ("firewalld.add_port", list!["public", "443/tcp"], map! {"force_masquerade" => true}),
            ("firewalld.add_port_fwd", list!["public", 80, 443], map! {}),
            ("firewalld.list_port_fwd", list!["public"], map! {}),
            ("firewalld.block_icmp", list!["public", "echo-request"], map! {}),
            ("firewalld.block_icmp", list!["public", "echo-reply"], map! {}),
            ("firewalld.allow_icmp", list!["public", "nonsense"], map! {}),
            ("firewalld.add_rich_rule", list!["public", "rule x"], map! {}),
            ("firewalld.add_service_port", list!["http", "81/tcp"], map! {}),
            ("firewalld.add_service_port", list!["none", "81/tcp"], map! {}),
        ]), @r#"
        firewalld.version: "1.3.3"
        firewalld.default_zone: "public"
        firewalld.get_zones: ["block", "dmz", "public"]
        firewalld.list_all: {"public (active)": {"target": ["default"], "services": ["dhcpv6-client ssh"], "ports": [""], "masquerade": ["no"], "rich rules": ["", "rule family=\"ipv4\" source address=\"10.0.0.0/8\" accept", "rule protocol value=\"ah\" accept"]}}
        firewalld.list_zones: {"dmz": {"services": ["ssh"]}, "public": {"masquerade": ["yes"]}}
        firewalld.add_service: "success"
        firewalld.remove_service: "success"
        firewalld.list_services: ERROR: firewall-cmd failed: INVALID_ZONE: get_zone(): none
        firewalld.new_zone: "success"
        firewalld.get_masquerade: false
        firewalld.add_port: "success"
        firewalld.add_port_fwd: "success"
        firewalld.list_port_fwd: [{"Source port": "80", "Protocol": "tcp", "Destination port": "443", "Destination address": ""}]
        firewalld.block_icmp: "success"
        firewalld.block_icmp: "success"
        firewalld.allow_icmp: false
        firewalld.add_rich_rule: "success"
        firewalld.add_service_port: "success"
        firewalld.add_service_port: ERROR: The service does not exist.
        "#);
    }
}
