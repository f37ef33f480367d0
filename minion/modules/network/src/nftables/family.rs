//! Address families of nftables.

use brine_function::CallError;

use crate::firewalls::IpVersion;

/// The packets that a table handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Ip,
    Ip6,
    Inet,
    Arp,
    Bridge,
    Netdev,
}

impl Family {
    /// All families, in the order in which they are saved.
    pub(super) const ALL: [Family; 6] =
        [Family::Ip, Family::Ip6, Family::Inet, Family::Arp, Family::Bridge, Family::Netdev];

    /// Parses a family, or one of Salt's names for it.
    pub(super) fn parse(name: &str) -> Result<Self, CallError> {
        if let Some(version) = IpVersion::parse(name) {
            return Ok(if version == IpVersion::V4 { Family::Ip } else { Family::Ip6 });
        }
        Family::ALL.into_iter().find(|family| family.word() == name).ok_or_else(|| {
            CallError::Execution(format!(
                "family '{name}' is invalid: expected ipv4, ipv6, inet, arp, bridge or netdev"
            ))
        })
    }

    /// Returns the name in nft's syntax.
    pub(super) fn word(self) -> &'static str {
        match self {
            Family::Ip => "ip",
            Family::Ip6 => "ip6",
            Family::Inet => "inet",
            Family::Arp => "arp",
            Family::Bridge => "bridge",
            Family::Netdev => "netdev",
        }
    }

    /// Returns the words before and after `saddr` or `daddr` for an address. Families of several protocols have no
    /// addresses of their own.
    pub(super) fn header(self, address: &str) -> (&'static str, &'static str) {
        match self {
            Family::Ip | Family::Ip6 => (self.word(), ""),
            Family::Arp => ("arp", "ip "),
            Family::Inet | Family::Bridge | Family::Netdev if address.contains(':') => ("ip6", ""),
            Family::Inet | Family::Bridge | Family::Netdev => ("ip", ""),
        }
    }
}
