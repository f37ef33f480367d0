//! The roster `cache`: the minions whose grains are in the master's cache, at their addresses.

use std::collections::HashMap;
use std::net::IpAddr;

use brine_value::{Map, Value, map};

use super::Fields;

/// Returns the fields of all minions with an address.
pub(super) fn hosts(cached: &HashMap<String, Map>) -> Fields {
    let one = |(id, grains): (&String, &Map)| {
        let host = address(grains)?;
        Some((id.clone(), map! {"host" => host.to_string(), "grains" => grains.clone()}))
    };
    let mut fields: Fields = cached.iter().filter_map(one).collect();
    fields.sort_keys();
    fields
}

/// Returns the address of a minion: the first one, IPv4 before IPv6, that other hosts can reach.
fn address(grains: &Map) -> Option<IpAddr> {
    let of = |name: &str| grains.get(name).and_then(Value::as_list).unwrap_or_default();
    let all = of("ipv4").iter().chain(of("ipv6")).filter_map(|text| text.to_string().parse::<IpAddr>().ok());
    all.into_iter().find(|address| match address {
        IpAddr::V4(v4) => !v4.is_loopback() && !v4.is_link_local(),
        IpAddr::V6(v6) => !v6.is_loopback() && !v6.is_unicast_link_local(),
    })
}

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::*;

    #[test]
    fn addresses_that_others_cannot_reach_are_passed_over() {
        let cached = HashMap::from([
            ("b".to_owned(), map! {"ipv4" => list!["127.0.0.1", "10.0.0.2"], "os" => "Debian"}),
            ("a".to_owned(), map! {"ipv4" => list!["127.0.0.1"], "ipv6" => list!["::1", "fe80::1", "2001:db8::1"]}),
            ("c".to_owned(), map! {"ipv4" => list!["127.0.0.1"]}),
        ]);
        let fields = hosts(&cached);
        let addresses: Vec<String> =
            fields.iter().map(|(id, fields)| format!("{id} {}", fields.get("host").unwrap())).collect();
        assert_eq!(addresses, ["a 2001:db8::1", "b 10.0.0.2"]);
    }
}
