//! The interfaces of `/etc/network/interfaces`: their data, and its rendering.

use std::collections::BTreeMap;
use std::fmt::Write;

use brine_function::CallError;
use brine_value::{Map, Value};
use indexmap::IndexMap;

/// Interfaces by name, in the order of the file.
pub(super) type Adapters = IndexMap<String, Adapter>;

/// An interface.
#[derive(Debug, Clone, Default)]
pub(super) struct Adapter {
    /// Whether it is started at boot: `auto`.
    pub enabled: bool,
    /// Whether it is started when it appears: `allow-hotplug`.
    pub hotplug: bool,
    /// Its stanzas by address family: `inet`, `inet6`.
    pub families: IndexMap<String, Stanza>,
    /// Paths of included files, for the entry `source`.
    pub sources: Vec<String>,
    /// Whether this call defines it with the interface type `source`.
    pub is_source: bool,
}

/// The options of an interface in one address family.
#[derive(Debug, Clone, Default)]
pub(super) struct Stanza {
    /// Whether the settings or the type of the interface select this family; other families are omitted.
    pub named: bool,
    /// Options, with underscores in their names.
    pub options: Map,
    /// Options of the device (ethtool), by their names in the file.
    pub ethtool: BTreeMap<String, Value>,
    /// Options of a bond, without the prefix `bond-`.
    pub bonding: BTreeMap<String, Value>,
    /// Options of a bridge, without the prefix `bridge_`.
    pub bridging: BTreeMap<String, Value>,
}

/// The options that are rendered, in this order.
const RENDERED_OPTIONS: &[&str] = &[
    "autoconf",
    "privext",
    "dhcp",
    "hwaddress",
    "hwaddr",
    "vlan_raw_device",
    "address",
    "addresses",
    "netmask",
    "metric",
    "gateway",
    "pointopoint",
    "scope",
    "hostname",
    "media",
    "leasehours",
    "leasetime",
    "vendor",
    "client",
    "bootfile",
    "server",
    "mode",
    "endpoint",
    "dstaddr",
    "local",
    "ttl",
    "mtu",
    "provider",
    "unit",
    "options",
    "master",
    "dns_nameservers",
    "wireless_mode",
    "wpa_ap_scan",
    "wpa_conf",
    "wpa_driver",
    "wpa_group",
    "wpa_key_mgmt",
    "wpa_pairwise",
    "wpa_proto",
    "wpa_psk",
    "wpa_roam",
    "wpa_ssid",
    "accept_ra",
    "up_cmds",
    "down_cmds",
    "pre_up_cmds",
    "post_up_cmds",
    "pre_down_cmds",
    "post_down_cmds",
];

impl Adapter {
    /// Whether the file defines the interface, not only starts it (`auto`, `allow-hotplug`).
    pub fn is_defined(&self) -> bool {
        !self.families.is_empty() || !self.sources.is_empty()
    }

    /// Returns the lines of the interface.
    pub fn text(&self, name: &str) -> Result<String, CallError> {
        let mut text = String::new();
        for (on, word) in [(self.enabled, "auto"), (self.hotplug, "allow-hotplug")] {
            if on {
                push(&mut text, format_args!("{word} {name}"));
            }
        }
        for family in ["inet", "inet6"] {
            if let Some(stanza) = self.families.get(family) {
                stanza.push(&mut text, name, family)?;
            }
        }
        Ok(text)
    }

    /// Returns the `source` lines.
    pub fn source_text(&self, name: &str) -> Result<String, CallError> {
        let mut text = String::new();
        for source in &self.sources {
            one_line(name, "source", source)?;
            push(&mut text, format_args!("\nsource {source}"));
        }
        Ok(text)
    }
}

impl Stanza {
    fn push(&self, text: &mut String, name: &str, family: &str) -> Result<(), CallError> {
        let Some(proto) = self.options.get("proto").filter(|proto| proto.is_truthy()) else { return Ok(()) };
        push(text, format_args!("iface {name} {family} {}", one_line(name, "proto", &proto.to_string())?));
        for option in RENDERED_OPTIONS {
            let Some(value) = self.options.get(*option).filter(|value| value.is_truthy()) else { continue };
            let word = match *option {
                "addresses" => "address".to_owned(),
                "hwaddr" => "hwaddress".to_owned(),
                "master" => "bond-master".to_owned(),
                "accept_ra" => "accept_ra".to_owned(),
                other => other.strip_suffix("_cmds").unwrap_or(other).replace('_', "-"),
            };
            let values = match (items(value), *option) {
                (Some(items), "dns_nameservers") => vec![items.join(" ")],
                (Some(items), _) => items,
                (None, _) => vec![value.to_string()],
            };
            for value in values {
                push(text, format_args!("    {word} {}", one_line(name, option, &value)?));
            }
        }
        for (prefix, options) in [("", &self.ethtool), ("bond-", &self.bonding), ("bridge_", &self.bridging)] {
            for (option, value) in options {
                let value = match value {
                    Value::Str(value) => value.clone(),
                    // Numbers are omitted, as in Salt.
                    other => match items(other) {
                        Some(items) => items.join(" "),
                        None => continue,
                    },
                };
                push(text, format_args!("    {prefix}{option} {}", one_line(name, option, &value)?));
            }
        }
        Ok(())
    }
}

/// Returns the items of a list, or the keys of a mapping.
fn items(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::List(items) => Some(items.iter().map(ToString::to_string).collect()),
        Value::Map(map) => Some(map.keys().map(ToString::to_string).collect()),
        _ => None,
    }
}

fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    _ = writeln!(text, "{line}");
}

/// Checks that a value has no line break, after which it could inject an option or a command.
pub(super) fn one_line<'a>(iface: &str, option: &str, value: &'a str) -> Result<&'a str, CallError> {
    if value.chars().any(|c| c.is_control() && c != '\t') {
        return Err(refused(iface, option, "one line of text"));
    }
    Ok(value)
}

/// Returns the error of an option, in Salt's wording.
pub(super) fn refused(iface: &str, option: &str, expected: &str) -> CallError {
    CallError::Execution(format!("Invalid option -- Interface: {iface}, Option: {option}, Expected: [{expected}]"))
}
