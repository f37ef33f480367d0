//! Facts about this host: read from files and the kernel, without child processes, in milliseconds.
//!
//! `os.rs` owns the distribution, `hardware.rs` processors, memory, disks and virtualization, `network.rs` names and
//! addresses, `environment.rs` the minion's process.

mod environment;
mod hardware;
mod network;
mod os;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use brine_config::{MinionConfig, SALT_VERSION};
use brine_system::files;
use brine_target::matches_expression;
use brine_value::{Map, Value, map, merge};
use sha2::{Digest, Sha256};

/// Returns all grains of this host, without those of custom modules.
pub fn collect(config: &MinionConfig, id: &str) -> Map {
    let mut grains = of_host(config, id);
    add(config, &mut grains, Map::new());
    grains
}

/// Adds the grains of custom modules, over them those of the file `grains` in the configuration directory, and over
/// both `grains:` of the configuration.
pub fn add(config: &MinionConfig, grains: &mut Map, custom: Map) {
    for mut more in [custom, file_grains(&config.config_dir.join("grains"))] {
        apply_blacklist(&mut more, &config.grains_blacklist);
        if config.grains_deep_merge { merge(grains, &more) } else { grains.extend(more) }
    }
    grains.extend(config.grains.clone());
}

/// Returns the grains that are read from this host.
pub fn of_host(config: &MinionConfig, id: &str) -> Map {
    let mut grains = os::grains();
    grains.extend(hardware::grains());
    grains.extend(network::grains());
    grains.extend(environment::grains());
    grains.extend(map! {
        "id" => id,
        "server_id" => server_id(id),
        "master" => match &config.master[..] {
            [one] => one.into(),
            several => several.iter().collect::<Value>(),
        },
        "saltversion" => SALT_VERSION,
        "saltversioninfo" => SALT_VERSION.split('.').filter_map(|part| part.parse::<i64>().ok()).collect::<Value>(),
        "pythonversion" => environment::python_version(),
        "brineversion" => brine_config::VERSION,
        "package" => Value::Nil,
    });
    apply_blacklist(&mut grains, &config.grains_blacklist);
    grains
}

/// Removes the grains that `grains_blacklist` names.
fn apply_blacklist(grains: &mut Map, blacklist: &[String]) {
    if !blacklist.is_empty() {
        grains.retain(|name, _| !blacklist.iter().any(|one| matches_expression(one, &name.to_string())));
    }
}

/// Returns the grains of a file. An unreadable file is logged and skipped: a minion without some grains is better
/// than none.
fn file_grains(path: &Path) -> Map {
    let read = files::read_if_exists(path).map_err(|error| error.to_string());
    match read.and_then(|text| brine_yaml::load(&text.unwrap_or_default()).map_err(|error| error.to_string())) {
        Ok(Value::Map(own)) => own,
        Ok(Value::Nil) => Map::new(),
        Ok(other) => {
            let got = other.type_name();
            tracing::error!(path = %path.display(), "the grains file is invalid: expected a mapping, got {got}");
            Map::new()
        }
        Err(error) => {
            tracing::error!(path = %path.display(), error, "reading the grains file failed");
            Map::new()
        }
    }
}

/// Returns a number derived from the id, the same on every start.
fn server_id(id: &str) -> i64 {
    let digest = Sha256::digest(id);
    let tail = digest.iter().skip(28).fold(0, |number, byte| number << 8 | i64::from(*byte));
    tail & 0x7fff_ffff
}

/// Returns the content of a system file, at most 16 MiB of it; `None` if it cannot be read.
fn read(path: &str) -> Option<String> {
    // Files of the kernel have no size: without a buffer of a page, reading would begin with 32 bytes.
    let mut bytes = Vec::with_capacity(4096);
    File::open(path).ok()?.take(16 << 20).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
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
}
