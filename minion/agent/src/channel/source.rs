//! The address and port of this host from which a minion connects to its masters. Masters' names are resolved to
//! addresses of the same family.

use std::net::{IpAddr, SocketAddr};

use brine_config::MinionConfig;

/// Returns the source of connections with this port; `None` for the system's choice. An address or interface that
/// cannot be used is logged.
pub(super) fn source_address(config: &MinionConfig, port: u16) -> Option<SocketAddr> {
    let text = |option: &Option<String>| option.clone().filter(|text| !text.is_empty());
    let address = match (text(&config.source_address), text(&config.source_interface_name)) {
        (Some(address), _) => address
            .parse::<IpAddr>()
            .inspect_err(|error| tracing::error!(address, %error, "option 'source_address' is invalid: it is not used"))
            .ok(),
        (None, Some(interface)) => {
            let address = address_of(&interface, config.ipv6.unwrap_or(false));
            if address.is_none() {
                tracing::error!(
                    interface,
                    "option 'source_interface_name': the interface has no address; it is not used"
                );
            }
            address
        }
        (None, None) => None,
    };
    match (address, config.ipv6) {
        (Some(address), _) => Some(SocketAddr::new(address, port)),
        (None, None) if port == 0 => None,
        (None, Some(true)) => Some(SocketAddr::new(IpAddr::from([0u16; 8]), port)),
        (None, _) => Some(SocketAddr::new(IpAddr::from([0u8; 4]), port)),
    }
}

/// Returns the first address of a network interface: IPv4 before IPv6, or with `ipv6` the other way round.
fn address_of(interface: &str, ipv6: bool) -> Option<IpAddr> {
    let all = nix::ifaddrs::getifaddrs().ok()?.filter(|one| one.interface_name == interface);
    let addresses = all.filter_map(|one| {
        let address = one.address?;
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
    });
    addresses.min_by_key(|address| address.is_ipv6() != ipv6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_an_address_an_interface_or_a_port() {
        for (address, interface, port, ipv6, expected) in [
            (None, None, 0, None, None),
            (None, None, 5000, None, Some("0.0.0.0:5000")),
            (Some("127.0.0.2"), None, 0, None, Some("127.0.0.2:0")),
            (Some("::1"), Some("lo"), 7, None, Some("[::1]:7")),
            (None, Some("lo"), 0, None, Some("127.0.0.1:0")),
            (None, Some("no-such-interface"), 0, None, None),
            (Some("no address"), None, 0, None, None),
            (None, None, 0, Some(true), Some("[::]:0")),
            (None, None, 5000, Some(true), Some("[::]:5000")),
            (None, None, 0, Some(false), Some("0.0.0.0:0")),
            (None, Some("lo"), 0, Some(false), Some("127.0.0.1:0")),
            (Some("127.0.0.2"), None, 0, Some(true), Some("127.0.0.2:0")),
        ] {
            let config = MinionConfig {
                source_address: address.map(str::to_owned),
                source_interface_name: interface.map(str::to_owned),
                ipv6,
                ..MinionConfig::default()
            };
            assert_eq!(
                source_address(&config, port).map(|source| source.to_string()).as_deref(),
                expected,
                "{address:?} {interface:?} {ipv6:?}"
            );
        }
    }
}
