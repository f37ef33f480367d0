//! Converts the settings of `ip.build_interface` to an interface.

use brine_function::CallError;
use brine_value::{Map, Value};

use super::adapter::{Adapter, Stanza, refused};
use super::bond;
use super::options::{SWITCH, checked, float, integer, is_mac, switch};

const TYPES: &str = "eth|bond|alias|clone|ipsec|dialup|bridge|slave|vlan|pppoe|source";
const FAMILIES: [&str; 2] = ["inet", "inet6"];
/// Options of PPP over Ethernet, and whether they are switches.
const PPPOE: [(&str, bool); 18] = [
    ("user", false),
    ("password", false),
    ("provider", false),
    ("pppoe_iface", false),
    ("noipdefault", true),
    ("usepeerdns", true),
    ("defaultroute", true),
    ("holdoff", false),
    ("maxfail", false),
    ("hide-password", true),
    ("lcp-echo-interval", false),
    ("lcp-echo-failure", false),
    ("connect", false),
    ("noauth", true),
    ("persist", true),
    ("mtu", false),
    ("noaccomp", true),
    ("linkname", false),
];

/// The interface that `ip.build_interface` is called for.
pub(super) struct Desired<'a> {
    /// Name of the interface.
    pub iface: &'a str,
    /// Its type, in lower case.
    pub kind: &'a str,
    /// Whether it is started at boot.
    pub enabled: bool,
    /// Whether this Ubuntu has no `use_carrier` in the mode `active-backup`.
    pub omits_use_carrier: bool,
}

/// Converts settings to an interface.
pub(super) fn adapter(desired: &Desired<'_>, settings: &Map) -> Result<Adapter, CallError> {
    let Desired { iface, kind, enabled, .. } = *desired;
    match kind {
        "slave" => required(settings, "master", "slave interfaces")?,
        "bond" => required(settings, "slaves", "bond interfaces")?,
        "bridge" => required(settings, "ports", "bridge interfaces on Debian or Ubuntu based systems")?,
        "eth" | "vlan" | "pppoe" => {}
        "source" => {
            required(settings, "source", "source interfaces")?;
            let sources = settings.get("source").map(ToString::to_string).into_iter().collect();
            return Ok(Adapter { is_source: true, sources, ..Adapter::default() });
        }
        // As in Salt, the error lists the valid types.
        _ => return Err(refused(iface, kind, TYPES)),
    }
    let mut settings = settings.clone();
    if kind == "slave" {
        settings.insert("proto".into(), "manual".into());
    }
    let hotplug = settings.get("hotplug").is_some_and(Value::is_truthy);
    let mut adapter = Adapter { enabled, hotplug, ..Adapter::default() };
    for family in FAMILIES {
        adapter.families.insert(family.to_owned(), of_kind(desired, &settings)?);
    }
    settings.shift_remove("mode");
    for (name, value) in &settings {
        if let Some(name) = name.as_str() {
            set(&mut adapter, iface, name, value)?;
        }
    }
    for (family, option) in [("inet", "enable_ipv4"), ("inet6", "enable_ipv6")] {
        let off = settings.get(option) == Some(&Value::Bool(false));
        if off || adapter.families.get(family).is_some_and(|stanza| !stanza.named) {
            adapter.families.shift_remove(family);
        }
    }
    Ok(adapter)
}

fn required(settings: &Map, option: &str, of: &str) -> Result<(), CallError> {
    if settings.contains_key(option) {
        return Ok(());
    }
    Err(CallError::Execution(format!("{option} is a required setting for {of}")))
}

/// Returns a stanza with the options of the interface's type.
fn of_kind(desired: &Desired<'_>, settings: &Map) -> Result<Stanza, CallError> {
    let (iface, mut stanza) = (desired.iface, Stanza { named: true, ..Stanza::default() });
    if desired.kind != "bridge" {
        ethtool(&mut stanza, iface, settings)?;
    }
    match desired.kind {
        "bridge" => {
            let options = bridge(iface, settings)?;
            stanza.bridging = options.into_iter().map(|(option, value)| (option.to_owned(), value)).collect();
        }
        "bond" => {
            let options = bond::options(settings, iface, desired.omits_use_carrier)?;
            stanza.bonding = options.into_iter().map(|(option, value)| (option.to_string(), value)).collect();
            stanza.bonding.insert("slaves".to_owned(), settings.get("slaves").cloned().unwrap_or_default());
        }
        "slave" => _ = stanza.options.insert("master".into(), settings.get("master").cloned().unwrap_or_default()),
        "vlan" => _ = stanza.options.insert("vlan_raw_device".into(), raw_device(iface).into()),
        "pppoe" => pppoe(&mut stanza, iface, settings)?,
        _ => stanza.named = false,
    }
    Ok(stanza)
}

/// Returns the name of the device below a VLAN: the name without numbers after dots.
fn raw_device(iface: &str) -> String {
    let mut parts = iface.split('.');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |name, part| name + part.trim_start_matches(|c: char| c.is_ascii_digit()))
}

/// Sets an option in the families that it is for and that accept its value.
fn set(adapter: &mut Adapter, iface: &str, name: &str, value: &Value) -> Result<(), CallError> {
    let (option, only) = match (name.strip_prefix("ipv4"), name.strip_prefix("ipv6")) {
        (Some(option), _) => (option, Some("inet")),
        (_, Some(option)) => (option, Some("inet6")),
        _ if ["ipaddr", "address", "ipaddresses", "addresses", "gateway", "proto"].contains(&name) => {
            (name, Some("inet"))
        }
        _ => (name, None),
    };
    if let Some(stanza) = only.and_then(|family| adapter.families.get_mut(family)) {
        stanza.named = true;
    }
    let option = match option {
        "dns" => "dns-nameservers",
        "search" => "dns-search",
        "hwaddr" => "hwaddress",
        "ipaddr" | "addr" => "address",
        "ipaddrs" | "addrs" => "addresses",
        other => other,
    };
    let is_commands =
        ["up_cmds", "pre_up_cmds", "post_up_cmds", "down_cmds", "pre_down_cmds", "post_down_cmds"].contains(&name);
    for (family, stanza) in &mut adapter.families {
        if is_commands {
            stanza.options.insert(name.into(), value.clone());
            continue;
        }
        let (accepted, value) = checked(option, value, family).map_err(|expected| refused(iface, name, expected))?;
        let key = option.replace('-', "_");
        let takes = only.map_or_else(|| !stanza.options.contains_key(key.as_str()), |only| only == family);
        if accepted && takes {
            stanza.options.insert(key.into(), value);
        }
    }
    Ok(())
}

/// Converts a switch to `on` or `off`.
fn on_or_off(iface: &str, option: &str, value: &Value) -> Result<Value, CallError> {
    let on = switch(value).ok_or_else(|| refused(iface, option, SWITCH))?;
    Ok(if on { "on" } else { "off" }.into())
}

fn ethtool(stanza: &mut Stanza, iface: &str, settings: &Map) -> Result<(), CallError> {
    if let Some(value) = settings.get("autoneg") {
        stanza.ethtool.insert("ethernet-autoneg".into(), on_or_off(iface, "autoneg", value)?);
    }
    if let Some(value) = settings.get("duplex") {
        if !value.as_str().is_some_and(|value| ["full", "half"].contains(&value)) {
            return Err(refused(iface, "duplex", "full|half"));
        }
        stanza.ethtool.insert("link-duplex".into(), value.clone());
    }
    if let Some(value) = settings.get("speed") {
        if !["10", "100", "1000", "10000"].contains(&value.to_string().as_str()) {
            return Err(refused(iface, &value.to_string(), "10|100|1000|10000"));
        }
        stanza.ethtool.insert("link-speed".into(), value.clone());
    }
    for option in ["rx", "tx", "sg", "tso", "ufo", "gso", "gro", "lro"] {
        if let Some(value) = settings.get(option) {
            stanza.ethtool.insert(format!("offload-{option}"), on_or_off(iface, option, value)?);
        }
    }
    Ok(())
}

fn bridge(iface: &str, settings: &Map) -> Result<Vec<(&'static str, Value)>, CallError> {
    let mut options = Vec::new();
    if let Some(ports) = settings.get("ports") {
        let ports = match ports {
            Value::List(ports) => ports.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ").into(),
            other => other.clone(),
        };
        options.push(("ports", ports));
    }
    for option in ["ageing", "fd", "gcint", "hello", "maxage"] {
        if let Some(value) = settings.get(option) {
            if float(value) != Ok(true) {
                return Err(refused(iface, option, "float"));
            }
            options.push((option, value.clone()));
        }
    }
    for option in ["bridgeprio", "maxwait"] {
        if let Some(value) = settings.get(option) {
            if !matches!(value, Value::Int(_) | Value::Bool(_)) {
                return Err(refused(iface, option, "integer"));
            }
            options.push((option, value.clone()));
        }
    }
    if let Some(value) = settings.get("hw") {
        // Two digits each, and no dots, unlike other addresses.
        let fits = |text: &str| is_mac(text) && text.len() == 17 && !text.contains('.');
        if !value.as_str().is_some_and(fits) {
            return Err(refused(iface, "hw", "valid MAC address"));
        }
        options.push(("hw", value.clone()));
    }
    for option in ["pathcost", "portprio"] {
        if let Some(value) = settings.get(option) {
            let text = value.as_str().unwrap_or_default();
            let words: Vec<&str> = text.split_whitespace().collect();
            let [port, number] = words[..] else { return Err(refused(iface, option, "interface integer")) };
            if !matches!(integer(&number.into()), Ok(Some(_))) {
                return Err(refused(iface, option, "interface integer"));
            }
            options.push((option, format!("{port} {number}").into()));
        }
    }
    if let Some(value) = settings.get("stp") {
        options.push(("stp", on_or_off(iface, "stp", value)?));
    }
    if let Some(value) = settings.get("waitport") {
        let text = value.as_str().unwrap_or_default();
        let words: Vec<&str> = text.split_whitespace().collect();
        let value = match (value, words.split_first()) {
            (Value::Int(_), _) => value.clone(),
            (_, Some((seconds, ports))) if seconds.bytes().all(|byte| byte.is_ascii_digit()) && !ports.is_empty() => {
                words.join(" ").into()
            }
            _ => return Err(refused(iface, "waitport", "integer [interfaces]")),
        };
        options.push(("waitport", value));
    }
    Ok(options)
}

fn pppoe(stanza: &mut Stanza, iface: &str, settings: &Map) -> Result<(), CallError> {
    if settings.get("provider").is_some_and(|provider| !provider.is_truthy()) {
        return Err(refused(iface, "provider", SWITCH));
    }
    for (option, is_switch) in PPPOE {
        let Some(value) = settings.get(option) else { continue };
        let value = match (is_switch, switch(value)) {
            (false, _) => value.clone(),
            (true, Some(true)) => "True".into(),
            (true, Some(false)) => "False".into(),
            (true, None) => return Err(refused(iface, option, SWITCH)),
        };
        stanza.options.insert(option.into(), value);
    }
    Ok(())
}
