//! Builds a rule of nftables from options.

use brine_value::{Map, Value};

use super::family::Family;
use crate::firewalls::listed;

/// Arguments that are no matches: those of a state or job, and `match`, which names a module of iptables.
const IGNORED: [&str; 8] = ["name", "chain", "save", "table", "position", "comment", "match", "test"];

/// Builds a rule. The error names options that would be lost: the rule would match more than its author wrote.
pub(super) fn build(mut options: Map, family: Family) -> Result<String, String> {
    options.retain(|name, _| name.as_str().is_some_and(|name| !IGNORED.contains(&name) && !name.starts_with("__")));
    if let Some(target) = options.shift_remove("target") {
        options.insert("jump".into(), target);
    }
    let protocol = text(&mut options, "proto");
    let mut parts: Vec<String> = Vec::new();
    for (name, key) in [("if", "iifname"), ("of", "oifname")] {
        parts.extend(text(&mut options, name).map(|interface| format!("meta {key} {interface}")));
    }
    let state = text(&mut options, "state");
    parts.extend(text(&mut options, "connstate").or(state).map(|states| format!("ct state {{ {states} }}")));
    let mut has_protocol = protocol.is_none();
    for (name, key) in [("icmp-type", "icmp type"), ("icmpv6-type", "icmpv6 type")] {
        let kinds = text(&mut options, name);
        has_protocol |= kinds.is_some();
        parts.extend(kinds.map(|kinds| format!("{key} {{ {kinds} }}")));
    }
    parts.extend(text(&mut options, "pkttype").map(|kinds| format!("meta pkttype {{ {kinds} }}")));
    if options.shift_remove("counter").is_some() {
        parts.push("counter".into());
    }
    for (name, other) in [("saddr", "source"), ("daddr", "destination")] {
        let second = text(&mut options, other);
        let address = text(&mut options, name).or(second);
        parts.extend(address.map(|address| {
            let (header, kind) = family.header(&address);
            format!("{header} {name} {kind}{address}")
        }));
    }
    let mut ports = Vec::new();
    for field in ["dport", "sport"] {
        ports.extend(text(&mut options, field).map(|port| (field, port.replace(':', "-"))));
    }
    for (name, field) in [("dports", "dport"), ("sports", "sport")] {
        ports.extend(options.shift_remove(name).map(|value| (field, descending(&value))));
    }
    has_protocol |= !ports.is_empty();
    if let Some(protocol) = protocol.as_ref().filter(|_| !has_protocol) {
        parts.push(format!("meta l4proto {protocol}"));
    }
    let protocol = protocol.map(|protocol| format!("{protocol} ")).unwrap_or_default();
    parts.extend(ports.into_iter().map(|(field, ports)| format!("{protocol}{field} {{ {ports} }}")));
    for (name, prefix) in [
        ("jump", ""),
        ("j", ""),
        ("redirect-to", "redirect to "),
        ("to-port", "redirect to "),
        ("to-ports", "redirect to "),
        ("to-source", ""),
        ("to-destination", ""),
        ("reject-with", "reject with "),
    ] {
        parts.extend(text(&mut options, name).map(|value| format!("{prefix}{value}")));
    }
    if options.is_empty() {
        return Ok(parts.join(" "));
    }
    let names: Vec<String> = options.keys().map(ToString::to_string).collect();
    Err(format!("nftables rules have no option {}: correct it, or remove it", names.join(", ")))
}

/// Removes an option, and returns its value; a list is joined by commas. An empty one is none.
fn text(options: &mut Map, name: &str) -> Option<String> {
    options
        .shift_remove(name)
        .filter(|value| !value.is_nil())
        .map(|value| listed(&value).join(","))
        .filter(|text| !text.is_empty())
}

/// Formats ports from high to low, as Salt does; ranges and names stay in their order.
fn descending(value: &Value) -> String {
    let words: Vec<String> = listed(value).iter().map(|port| port.trim().replace(':', "-")).collect();
    let Ok(mut ports) = words.iter().map(|port| port.parse::<u16>()).collect::<Result<Vec<_>, _>>() else {
        return words.join(", ");
    };
    ports.sort_unstable_by(|one, other| other.cmp(one));
    ports.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
