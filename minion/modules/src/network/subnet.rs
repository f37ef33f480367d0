//! Networks: an address and how many of its bits they all share.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Subnet {
    ip: IpAddr,
    length: u32,
}

impl Subnet {
    /// The network in which an address is.
    pub(super) fn new(ip: IpAddr, length: u32) -> Self {
        Subnet { ip, length }
    }

    fn ones(&self) -> u128 {
        let of = |bits: u32, all: u128| all.checked_shl(bits - self.length).unwrap_or(0) & all;
        if self.ip.is_ipv4() { of(32, u128::from(u32::MAX)) } else { of(128, u128::MAX) }
    }

    fn like(&self, number: u128) -> IpAddr {
        match self.ip {
            IpAddr::V4(_) => Ipv4Addr::from(u32::try_from(number).unwrap_or(u32::MAX)).into(),
            IpAddr::V6(_) => Ipv6Addr::from(number).into(),
        }
    }

    /// The mask.
    pub(super) fn mask(&self) -> IpAddr {
        self.like(self.ones())
    }

    /// The first address.
    pub(super) fn first(&self) -> IpAddr {
        self.like(number(self.ip) & self.ones())
    }

    /// The last address.
    pub(super) fn last(&self) -> IpAddr {
        let all = if self.ip.is_ipv4() { u128::from(u32::MAX) } else { u128::MAX };
        self.like(number(self.ip) | (all ^ self.ones()))
    }

    /// How many bits its addresses share.
    pub(super) fn length(&self) -> u32 {
        self.length
    }

    /// How many addresses it has. One with all of IPv6 has one more than can be told.
    pub(super) fn size(&self) -> i128 {
        let bits = if self.ip.is_ipv4() { 32 } else { 128 };
        1i128.checked_shl(bits - self.length).filter(|size| *size > 0).unwrap_or(i128::MAX)
    }

    /// Whether an address is in it.
    pub(super) fn holds(&self, ip: IpAddr) -> bool {
        ip.is_ipv4() == self.ip.is_ipv4() && Subnet { ip, ..*self }.first() == self.first()
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first(), self.length)
    }
}

impl FromStr for Subnet {
    type Err = ();

    /// `address`, `address/length` or `address/mask`.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (ip, mask) = text.split_once('/').map_or((text, None), |(ip, mask)| (ip, Some(mask)));
        let ip: IpAddr = ip.trim().parse().map_err(|_| ())?;
        let bits = if ip.is_ipv4() { 32 } else { 128 };
        let length = match mask.map(str::trim) {
            None => bits,
            Some(mask) => match (mask.parse::<u32>(), mask.parse::<Ipv4Addr>()) {
                (Ok(length), _) => length,
                (_, Ok(mask)) if u32::from(mask).leading_ones() + u32::from(mask).trailing_zeros() == 32 => {
                    u32::from(mask).leading_ones()
                }
                _ => return Err(()),
            },
        };
        if length <= bits { Ok(Subnet { ip, length }) } else { Err(()) }
    }
}

fn number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u32::from(ip).into(),
        IpAddr::V6(ip) => ip.into(),
    }
}

/// Whether nobody outside can reach it by this address.
pub(super) fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.is_private() || v4.is_loopback() || v4.is_link_local(),
        IpAddr::V6(v6) => {
            v6.segments()[0] & 0xfe00 == 0xfc00 || v6.is_loopback() || v6.segments()[0] & 0xffc0 == 0xfe80
        }
    }
}

/// The name under which the name service has an address.
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
