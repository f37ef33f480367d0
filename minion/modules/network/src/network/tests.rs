use brine_function::Args;

use super::*;
use crate::testing;

#[test]
fn addresses_are_classified_and_converted() {
    let context = testing::context(&[]);
    let private: Value =
        map! {"network" => "10.0.0.0", "netmask" => "255.0.0.0", "broadcast" => "10.255.255.255"}.into();
    for (fun, args, expected) in [
        ("calc_net", &["10.1.2.3", "255.255.0.0"][..], "10.1.0.0/16".into()),
        ("calc_net", &["10.1.2.3/24"], "10.1.2.0/24".into()),
        ("calc_net", &["2a02:f6e::4e07/64"], "2a02:f6e::/64".into()),
        ("convert_cidr", &["10.0.0.0/8"], private),
        ("ip_in_subnet", &["10.0.0.1", "10.0.0.0/8"], true.into()),
        ("ip_in_subnet", &["11.0.0.1", "10.0.0.0/8"], false.into()),
        ("iphexval", &["10.0.0.1"], "0A000001".into()),
        ("is_private", &["10.0.0.1"], true.into()),
        ("is_loopback", &["::1"], true.into()),
        ("reverse_ip", &["10.0.0.1"], "1.0.0.10.in-addr.arpa".into()),
    ] {
        let positional = args.iter().map(|arg| Value::from(*arg)).collect();
        let actual = context.call(&format!("network.{fun}"), Args { positional, keyword: Map::new() });
        assert_eq!(actual.map_err(|error| error.to_string()), Ok(expected), "{fun} {args:?}");
    }
}

#[test]
fn the_loopback_is_one_of_the_interfaces() {
    let loopback = interfaces_of_host().into_iter().find(|(name, _)| name == "lo");
    // Skipped on a host without a loopback interface.
    if let Some((_, loopback)) = loopback {
        assert_eq!(loopback.to_map().get("hwaddr"), Some(&"00:00:00:00:00:00".into()));
    }
    let every = AddressArgs { interface: Value::Nil, include_loopback: false, cidr: None };
    let all = addresses(IpAddr::is_ipv4, &every, None).unwrap();
    assert!(all.as_list().is_some_and(|all| !all.contains(&"127.0.0.1".into())), "{all}");
}
