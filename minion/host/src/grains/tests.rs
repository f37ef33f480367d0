use brine_value::list;

use super::*;

#[test]
fn blacklisted_grains_are_removed() {
    let all = || map! {"cpu_flags" => 1, "cpuarch" => 2, "ip4_gw" => 3, "ip6_gw" => 4, "os" => 5};
    for (blacklist, left) in [
        (&[][..], &["cpu_flags", "cpuarch", "ip4_gw", "ip6_gw", "os"][..]),
        (&["cpu*", "os"], &["ip4_gw", "ip6_gw"]),
        (&["ip[0-9]_gw"], &["cpu_flags", "cpuarch", "os"]),
        (&["ip(4|5)_gw", "s", "["], &["cpu_flags", "cpuarch", "ip6_gw", "os"]),
    ] {
        let blacklist: Vec<String> = blacklist.iter().map(|one| (*one).to_owned()).collect();
        let mut grains = all();
        apply_blacklist(&mut grains, &blacklist);
        let names: Vec<String> = grains.keys().map(ToString::to_string).collect();
        assert_eq!(names, left, "{blacklist:?}");
    }
}

#[test]
fn the_server_id_equals_that_of_salt() {
    assert_eq!(server_id("hm"), 930_358_280);
}

#[test]
fn mappings_are_replaced_or_merged_and_the_blacklist_holds_for_further_grains() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("grains"), "net: {dns: file}\nsecret: 1\n").unwrap();
    let custom = map! {"net" => map! {"gw" => "custom", "dns" => "custom"}, "secret_too" => 2};
    let of_host = map! {"net" => map! {"gw" => "host", "mtu" => 1500}, "cfg" => map! {"a" => 1}};
    for (grains_deep_merge, net) in
        [(false, map! {"dns" => "file"}), (true, map! {"gw" => "custom", "mtu" => 1500, "dns" => "file"})]
    {
        let config = MinionConfig {
            config_dir: directory.path().to_owned(),
            grains: map! {"cfg" => map! {"b" => 2}},
            grains_blacklist: vec!["secret*".into()],
            grains_deep_merge,
            ..MinionConfig::default()
        };
        let mut grains = of_host.clone();
        add(&config, &mut grains, custom.clone());
        assert_eq!(grains, map! {"net" => net, "cfg" => map! {"b" => 2}}, "grains_deep_merge: {grains_deep_merge}");
    }
}

#[test]
fn configured_grains_override_collected_ones() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("grains"), "os: Plan9\nroles: [web]\nboth: file\n").unwrap();
    let config = MinionConfig {
        config_dir: directory.path().to_owned(),
        grains: map! {"both" => "config", "id" => "mine"},
        ..MinionConfig::default()
    };
    let grains = collect(&config, "web1");
    for (name, value) in [
        ("os", "Plan9".into()),
        ("roles", list!["web"]),
        ("both", "config".into()),
        ("id", "mine".into()),
        ("master", "salt".into()),
        ("saltversioninfo", list![3008, 3]),
    ] {
        assert_eq!(grains.get(name), Some(&value), "{name}");
    }
}

#[test]
fn an_invalid_grains_file_does_not_affect_other_grains() {
    let directory = tempfile::tempdir().unwrap();
    for text in ["a: b: c", "- list", "\tx", ""] {
        std::fs::write(directory.path().join("grains"), text).unwrap();
        assert_eq!(file_grains(&directory.path().join("grains")), Map::new(), "{text}");
    }
}

#[test]
fn grains_that_formulas_use_exist() {
    let grains = collect(&MinionConfig { config_dir: "/no/such".into(), ..MinionConfig::default() }, "web1");
    for name in [
        "os",
        "os_family",
        "osfullname",
        "osrelease",
        "osfinger",
        "osmajorrelease",
        "osrelease_info",
        "osarch",
        "oscodename",
        "cpuarch",
        "kernel",
        "kernelrelease",
        "kernelversion",
        "nodename",
        "host",
        "localhost",
        "fqdn",
        "domain",
        "init",
        "virtual",
        "shell",
        "path",
        "saltversion",
        "username",
        "groupname",
        "uid",
        "gid",
        "pid",
        "num_cpus",
        "mem_total",
        "swap_total",
        "ipv4",
        "ipv6",
        "ip4_interfaces",
        "ip6_interfaces",
        "ip_interfaces",
        "hwaddr_interfaces",
        "ip4_gw",
        "ip6_gw",
        "ip_gw",
        "fqdn_ip4",
        "fqdn_ip6",
        "dns",
        "locale_info",
        "cpu_flags",
        "cpu_model",
        "disks",
        "ssds",
        "kernelparams",
        "efi",
        "systempath",
    ] {
        assert!(grains.contains_key(name), "{name}");
    }
    assert_eq!(grains.get("kernel"), Some(&"Linux".into()));
    assert!(grains.get("mem_total").and_then(Value::as_i64).is_some_and(|size| size > 16));
    let loopback = grains.get("ip4_interfaces").and_then(|all| all.get("lo"));
    assert_eq!(loopback, Some(&list!["127.0.0.1"]));
}
