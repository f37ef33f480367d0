//! Addresses and networks, as Python's `ipaddress` reads them.

use std::net::IpAddr;

use brine_value::Value;

/// An address (a network of one) or a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Network {
    address: IpAddr,
    bits: u32,
}

impl Network {
    /// Reads `10.1.2.3`, `10.0.0.0/8`, `10.0.0.0/255.0.0.0` or the same of IPv6. Bits of the address
    /// outside of the network are not allowed, as in Python.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, mask) = match text.split_once('/') {
            Some((address, mask)) => (address, Some(mask)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let width = width(address);
        let bits = match mask {
            None => width,
            Some(digits) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().ok()?,
            Some(mask) => mask_bits(mask, address)?,
        };
        let inside = bits <= width && kept_bits(address, bits) == number(address);
        inside.then_some(Network { address, bits })
    }

    /// Whether a grain, an address or a list of them, has an address in here.
    pub fn holds(self, grain: &Value) -> bool {
        match grain {
            Value::List(items) => items.iter().any(|item| self.holds(item)),
            Value::Str(text) => text.parse().is_ok_and(|address| self.contains(address)),
            _ => false,
        }
    }

    /// The grain that has addresses of this family.
    pub fn grain(self) -> &'static str {
        if self.address.is_ipv4() { "ipv4" } else { "ipv6" }
    }

    fn contains(self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4() && kept_bits(address, self.bits) == number(self.address)
    }
}

fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn kept_bits(address: IpAddr, bits: u32) -> u128 {
    let cut = width(address).saturating_sub(bits);
    number(address).checked_shr(cut).unwrap_or(0).checked_shl(cut).unwrap_or(0)
}

/// The length of `255.0.0.0`, or of `0.255.255.255`, its opposite.
fn mask_bits(mask: &str, address: IpAddr) -> Option<u32> {
    let IpAddr::V4(_) = address else { return None };
    let mask = mask.parse::<std::net::Ipv4Addr>().ok()?.to_bits();
    let is_netmask = |mask: u32| mask.leading_ones() + mask.trailing_zeros() >= 32;
    match mask {
        _ if is_netmask(mask) => Some(mask.leading_ones()),
        _ if is_netmask(!mask) => Some((!mask).leading_ones()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_value::list;

    #[test]
    fn networks_hold_what_python_says() {
        let addresses = list!["127.0.0.1", "10.1.2.3", "::1", "fe80::1", 5, "no address"];
        for (text, holds) in [
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
            assert_eq!(Network::parse(text).map(|network| network.holds(&addresses)), holds, "{text}");
        }
    }
}
