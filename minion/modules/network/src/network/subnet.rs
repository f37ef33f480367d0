//! A network: an address and a prefix length.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use brine_text::network::{IpNet, interface};

/// The network of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Subnet(IpNet);

impl Subnet {
    /// Creates the network of an address with a prefix length; if that is too long, the network of this address alone.
    pub(super) fn new(ip: IpAddr, length: u32) -> Self {
        let length = u8::try_from(length).unwrap_or(u8::MAX);
        Subnet(IpNet::new(ip, length).unwrap_or_else(|_| ip.into()))
    }

    /// Returns the mask.
    pub(super) fn mask(&self) -> IpAddr {
        self.0.netmask()
    }

    /// Returns the first address.
    pub(super) fn first(&self) -> IpAddr {
        self.0.network()
    }

    /// Returns the last address.
    pub(super) fn last(&self) -> IpAddr {
        self.0.broadcast()
    }

    /// Returns the prefix length.
    pub(super) fn length(&self) -> u32 {
        self.0.prefix_len().into()
    }

    /// Returns the number of addresses; `i128::MAX` if an IPv6 network has more.
    pub(super) fn size(&self) -> i128 {
        let bits = u32::from(self.0.max_prefix_len()) - self.length();
        1i128.checked_shl(bits).filter(|size| *size > 0).unwrap_or(i128::MAX)
    }

    /// Returns whether an address is in the network.
    pub(super) fn holds(&self, ip: IpAddr) -> bool {
        self.0.contains(&ip)
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.trunc().fmt(f)
    }
}

impl FromStr for Subnet {
    type Err = ();

    /// Parses `address`, `address/length` or `address/mask`.
    fn from_str(text: &str) -> Result<Self, ()> {
        let text: String = text.split('/').map(str::trim).collect::<Vec<_>>().join("/");
        interface(&text).map(Subnet).ok_or(())
    }
}

/// Returns the reverse DNS name of an address.
pub(super) fn reverse(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, c, d] = ip.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        IpAddr::V6(ip) => {
            let digits = format!("{:032x}", u128::from(ip));
            let digits: Vec<String> = digits.chars().rev().map(String::from).collect();
            format!("{}.ip6.arpa", digits.join("."))
        }
    }
}
