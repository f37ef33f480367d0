use brine_value::list;

use super::*;

#[test]
fn the_full_name_is_in_the_hosts_file() {
    for (hosts, fqdn, host, domain, addresses) in [
        (
            "127.0.0.1 localhost\n127.0.1.1 web1.example.org web1\n",
            "web1.example.org",
            "web1",
            "example.org",
            list!["127.0.1.1"],
        ),
        ("127.0.0.1 localhost web1\n", "web1", "web1", "", list!["127.0.0.1"]),
        ("# 10.0.0.1 web1.no web1\n10.0.0.2 web1 # web1.no\n", "web1", "web1", "", list!["10.0.0.2"]),
        ("", "web1", "web1", "", list![]),
    ] {
        let names = names("web1", hosts);
        let said = ["fqdn", "host", "domain", "fqdn_ip4"].map(|name| names.get(name).cloned().unwrap());
        assert_eq!(said, [fqdn.into(), host.into(), domain.into(), addresses], "{hosts}");
    }
}

#[test]
fn gateways_are_parsed_from_the_kernels_tables() {
    let routes = "Iface\tDestination\tGateway\neth0\t000200C0\t00000000\neth0\t00000000\t010200C0\t0003\n";
    assert_eq!(gateway4(routes), Some([192, 0, 2, 1].into()));
    assert_eq!(gateway4("Iface\nlo\t00000000\t00000000\n"), None);
    let none = "00000000000000000000000000000000";
    let routes = format!(
        "{none} 00 {none} 00 {none} ffffffff lo\n{none} 00 {none} 00 fd000000000000000000000000000001 00000400\n"
    );
    assert_eq!(gateway6(&routes), Some("fd00::1".parse().unwrap()));
    assert_eq!(gateway6("rubbish\n"), None);
}

#[test]
fn the_resolver_configuration_is_parsed() {
    let text = "; comment\nnameserver 10.0.0.1\nnameserver fe80::1%eth0\nsearch a.org b.org # c\noptions ndots:2\n";
    let dns = resolver(text);
    assert_eq!(dns.get("nameservers"), Some(&list!["10.0.0.1", "fe80::1%eth0"]));
    assert_eq!(dns.get("ip6_nameservers"), Some(&list!["fe80::1%eth0"]));
    assert_eq!(dns.get("search"), Some(&list!["a.org", "b.org"]));
    assert_eq!(dns.get("options"), Some(&list!["ndots:2"]));
    assert_eq!(dns.get("domain"), Some(&"".into()));
}

#[test]
fn interfaces_are_those_of_the_network_namespace() {
    // The namespace of a thread; /sys still shows the interfaces of the host.
    let thread = std::thread::spawn(|| {
        let permitted = nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).is_ok();
        permitted.then(interfaces)
    });
    let Some(grains) = thread.join().unwrap() else { return };
    assert_eq!(grains.get("hwaddr_interfaces"), Some(&map! {"lo" => "00:00:00:00:00:00"}.into()));
    for name in ["ip_interfaces", "ip4_interfaces", "ip6_interfaces"] {
        assert_eq!(grains.get(name), Some(&map! {"lo" => brine_value::list![]}.into()), "{name}");
    }
}
