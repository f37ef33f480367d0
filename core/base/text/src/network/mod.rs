//! IP addresses and networks with the semantics of Python's `ipaddress`.

use std::net::{IpAddr, Ipv4Addr};

pub use ipnet::IpNet;

/// Parses an address with an optional mask, like Python's `ip_interface`. The mask is a prefix length or, for IPv4, a
/// netmask or its complement. An address without a mask is a network of one address.
pub fn interface(text: &str) -> Option<IpNet> {
    let Some((address, mask)) = text.split_once('/') else { return text.parse::<IpAddr>().ok().map(IpNet::from) };
    let address: IpAddr = address.parse().ok()?;
    let length = match address {
        _ if !mask.is_empty() && mask.bytes().all(|byte| byte.is_ascii_digit()) => mask.parse().ok()?,
        IpAddr::V4(_) => length_of(mask)?,
        IpAddr::V6(_) => return None,
    };
    IpNet::new(address, length).ok()
}

/// Parses a network like Python's `ip_network`: the address must have no host bits set.
pub fn network(text: &str) -> Option<IpNet> {
    interface(text).filter(|interface| interface.addr() == interface.network())
}

/// Whether an address is private, link-local or loopback.
pub fn is_private(address: IpAddr) -> bool {
    let of_network = match address {
        IpAddr::V4(address) => address.is_private(),
        IpAddr::V6(address) => address.is_unique_local(),
    };
    of_network || address.is_loopback() || is_link_local(address)
}

/// Whether an address is link-local.
pub fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// Returns the prefix length of a netmask `255.0.0.0`, or of its complement `0.255.255.255`.
fn length_of(mask: &str) -> Option<u8> {
    let mask: Ipv4Addr = mask.parse().ok()?;
    [mask, !mask].into_iter().find_map(|mask| ipnet::ipv4_mask_to_prefix(mask).ok())
}

#[cfg(test)]
mod tests;
