//! Shared by the modules of firewalls: IP versions, lists of options, results of states.

use brine_context::StateReturn;
use brine_value::{Value, map};

/// A version of the Internet Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IpVersion {
    V4,
    V6,
}

impl IpVersion {
    /// Parses the names that Salt's `family` has for it.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "ipv4" | "ip4" => Some(IpVersion::V4),
            "ipv6" | "ip6" => Some(IpVersion::V6),
            _ => None,
        }
    }
}

/// Splits a list, or a string at commas.
pub(crate) fn listed(value: &Value) -> Vec<String> {
    match value {
        Value::List(names) => names.iter().map(ToString::to_string).collect(),
        names => names.to_string().split(',').map(str::to_owned).collect(),
    }
}

/// Returns the result of a state that has changed something, with Salt's changes.
pub(crate) fn done(name: &str, message: String) -> StateReturn {
    StateReturn::ok(name, message).with_changes(map! {"locale" => name})
}
