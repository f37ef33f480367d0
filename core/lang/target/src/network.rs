//! Targets by IP address or network.

use std::net::IpAddr;

use brine_text::network;
use brine_value::Value;

/// An address (a network of one) or a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Network(network::IpNet);

impl Network {
    /// Parses `10.1.2.3`, `10.0.0.0/8`, `10.0.0.0/255.0.0.0` or the IPv6 equivalents.
    pub fn parse(text: &str) -> Option<Self> {
        network::network(text).map(Network)
    }

    /// Whether a grain, an address or a list of them, contains an address in the network.
    pub fn contains(self, grain: &Value) -> bool {
        match grain {
            Value::List(items) => items.iter().any(|item| self.contains(item)),
            Value::Str(text) => text.parse::<IpAddr>().is_ok_and(|address| self.0.contains(&address)),
            _ => false,
        }
    }

    /// Returns the name of the grain with addresses of this family.
    pub fn grain(self) -> &'static str {
        if self.0.addr().is_ipv4() { "ipv4" } else { "ipv6" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_value::list;

    #[test]
    fn networks_contain_addresses_as_in_python() {
        let addresses = list!["127.0.0.1", "10.1.2.3", "::1", "fe80::1", 5, "no address"];
        for (text, contains) in [
            ("10.1.2.3", Some(true)),
            ("10.1.2.4", Some(false)),
            ("10.0.0.0/8", Some(true)),
            ("10.0.0.0/255.0.0.0", Some(true)),
            ("10.0.0.0/0.255.255.255", Some(true)),
            ("10.1.2.3/32", Some(true)),
            ("10.2.0.0/16", Some(false)),
            ("0.0.0.0/0", Some(true)),
            ("::1", Some(true)),
            ("fe80::/10", Some(true)),
            ("::/0", Some(true)),
            ("fd00::/8", Some(false)),
            ("10.1.2.3/8", None),
            ("fe80::1/64", None),
            ("10.0.0.0/33", None),
            ("10.0.0.0/", None),
            ("10.0.0.0/-1", None),
            ("10.0.0.0/255.0.255.0", None),
            ("fe80::/ffc0::", None),
            ("010.1.2.3", None),
            ("10.1", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(Network::parse(text).map(|network| network.contains(&addresses)), contains, "{text}");
        }
    }
}
