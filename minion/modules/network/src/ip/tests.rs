use std::cell::RefCell;
use std::path::{Path, PathBuf};

use brine_function::Args;
use brine_value::json::from_json;
use brine_value::{list, map};

use super::*;
use crate::testing::{Scripted, context_with};

thread_local! {
    static ROOT: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
}

/// Returns the root directory of the network's files in this thread, if a test has set one.
pub(super) fn root() -> Option<PathBuf> {
    ROOT.with_borrow(Clone::clone)
}

/// Runs `act` with these files in a temporary root directory, which the functions of this thread use instead of `/`.
pub(crate) fn with_root<T>(files: &[(&str, &str)], act: impl FnOnce(&Path) -> T) -> T {
    let root = tempfile::tempdir().unwrap();
    for directory in
        ["network/interfaces.d", "network/if-up.d", "network/if-down.d", "modprobe.d", "ppp/peers", "default"]
    {
        std::fs::create_dir_all(root.path().join("etc").join(directory)).unwrap();
    }
    for (name, text) in files {
        std::fs::write(root.path().join(name), text).unwrap();
    }
    ROOT.set(Some(root.path().to_owned()));
    let result = act(root.path());
    ROOT.set(None);
    result
}

fn debian_context() -> Context {
    let grains = map! {"os" => "Debian", "os_family" => "Debian", "osrelease" => "12", "kernel" => "Linux"};
    context_with(grains, Scripted::new("$ ifup ...\n$ ifdown ..."))
}

/// Compares with results recorded from Salt 3008.5 (`record` in this directory).
#[test]
fn interfaces_bonds_and_settings_equal_salts() {
    let context = debian_context();
    let mut count = 0;
    for line in include_str!("salt.json").lines() {
        let case = from_json(line).unwrap();
        let part = |name: &str| case.get(name).cloned().unwrap_or_default();
        let owned: Vec<(String, String)> =
            part("files").as_map().unwrap().iter().map(|(name, text)| (name.to_string(), text.to_string())).collect();
        let files: Vec<(&str, &str)> = owned.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let (function, args) = (part("function").to_string(), part("args"));
        let keyword = part("kwargs").as_map().unwrap().clone();
        let kind = args.as_list().unwrap().get(1).map(ToString::to_string).unwrap_or_default();
        // These install packages: the rest is tested below.
        if keyword.get("test").is_none() && (function == "build_bond" || kind == "pppoe") {
            continue;
        }
        let is_settings = function == "build_network_settings";
        with_root(&files, |root| {
            let args = Args { positional: args.as_list().unwrap().to_vec(), keyword };
            let result = context.call(&format!("ip.{function}"), args);
            let text = |value: &Value| value.to_string().replace("\"SEARCH=['a.example', 'b.example']\\n\"", SEARCH);
            match (&result, case.get("error")) {
                (Ok(value), None) => assert_eq!(text(value), text(&part("result")), "{line}"),
                // Salt's message contains a typo.
                (Err(error), Some(expected)) => {
                    let expected = expected.to_string().replace(" and create is setto False", "");
                    assert_eq!(error.clone().message(), expected, "{line}");
                }
                _ => panic!("{line}\n{result:?}"),
            }
            for (name, text) in part("after").as_map().unwrap() {
                assert_eq!(&read(root, &name.to_string()), text.as_str().unwrap(), "{line}");
            }
            if is_settings && result.is_ok() {
                let lines: Value = read(root, "etc/default/networking")
                    .lines()
                    .filter(|line| line.starts_with("CONFIGURE_INTERFACES"))
                    .collect();
                assert_eq!(lines, part("networking"), "{line}");
            }
        });
        count += 1;
    }
    assert!(count > 150, "{count}");
}

/// Salt writes the list of domains in Python's notation.
const SEARCH: &str = "'SEARCH=a.example b.example\\n'";

fn read(root: &Path, name: &str) -> String {
    std::fs::read_to_string(root.join(name)).unwrap_or_default()
}

#[test]
fn ppp_peers_and_bonds_are_written_as_by_salt() {
    let mut count = 0;
    for line in include_str!("salt.json").lines() {
        let case = from_json(line).unwrap();
        let part = |name: &str| case.get(name).cloned().unwrap_or_default();
        let (args, keyword) = (part("args"), part("kwargs").as_map().unwrap().clone());
        let (after, name) =
            (part("after"), args.as_list().unwrap().first().map(ToString::to_string).unwrap_or_default());
        with_root(&[], |root| {
            if let Some(text) = after.get("etc/modprobe.d/bond0.conf") {
                let options = bond::options(&keyword, &name, false).unwrap();
                assert_eq!(host().write_bond(&name, &options).unwrap(), part("result"));
                assert_eq!(read(root, "etc/modprobe.d/bond0.conf"), text.to_string());
                count += 1;
            }
            if let Some(text) = after.get("etc/ppp/peers/isp") {
                let desired =
                    settings::Desired { iface: &name, kind: "pppoe", enabled: true, omits_use_carrier: false };
                let adapter = settings::adapter(&desired, &keyword).unwrap();
                assert_eq!(interfaces::peer_text(&name, &adapter).unwrap(), text.to_string());
                assert_eq!(host().peer(&name, &adapter).unwrap(), root.join("etc/ppp/peers/isp"));
                count += 1;
            }
        });
    }
    assert_eq!(count, 4);
}

#[test]
fn values_with_line_breaks_are_rejected() {
    let context = debian_context();
    for (kind, settings, option) in [
        ("eth", map! {"proto" => "static", "hostname" => "a\nup reboot"}, "hostname"),
        ("eth", map! {"proto" => "static", "up_cmds" => list!["a\nb"]}, "up_cmds"),
        ("eth", map! {"proto" => "static", "ipaddrs" => list!["10.0.0.1\nup b"]}, "addresses"),
        ("bond", map! {"proto" => "dhcp", "mode" => "1", "slaves" => "a\nup b"}, "slaves"),
        ("source", map! {"source" => "a\nauto b"}, "source"),
        ("eth", map! {"proto" => "dhcp", "filename" => "../../shadow"}, "filename"),
        ("eth", map! {"proto" => "dhcp", "filename" => "/etc/../shadow"}, "filename"),
    ] {
        let keyword = settings.clone();
        let args = Args { positional: vec!["eth0".into(), kind.into(), true.into()], keyword };
        let error = with_root(&[], |_| context.call("ip.build_interface", args).unwrap_err());
        assert!(error.to_string().contains(&format!("Option: {option}")), "{settings:?}: {error}");
    }
    for primary in ["eth1 install=x", "eth1\ninstall bonding reboot"] {
        let keyword = map! {"mode" => "1", "primary" => primary, "test" => true};
        let args = Args { positional: vec!["bond0".into()], keyword };
        assert!(context.call("ip.build_bond", args).is_err(), "{primary}");
    }
    for provider in ["../passwd", ".hidden", "a/b", "a\nb"] {
        let desired = settings::Desired { iface: "dsl0", kind: "pppoe", enabled: true, omits_use_carrier: false };
        let adapter = settings::adapter(&desired, &map! {"proto" => "ppp", "provider" => provider}).unwrap();
        assert!(with_root(&[], |_| host().peer("dsl0", &adapter)).is_err(), "{provider}");
    }
    for (name, value) in [("hostname", "a\nb"), ("search", "a\nnameserver 6.6.6.6"), ("search", "")] {
        let args = Args::keyword(map! {"enabled" => true, "hostname" => "box", name => value});
        assert!(with_root(&[], |_| context.call("ip.build_network_settings", args)).is_err(), "{value:?}");
    }
}

#[test]
fn test_mode_writes_nothing() {
    let context = debian_context();
    for (function, positional, keyword) in [
        ("build_interface", vec!["eth0", "eth", "yes"], map! {"proto" => "dhcp", "test" => true}),
        ("build_interface", vec!["eth0.1", "vlan", "yes"], map! {"proto" => "dhcp", "test" => true}),
        ("build_bond", vec!["bond0"], map! {"mode" => "1", "test" => true}),
        ("build_network_settings", vec![], map! {"enabled" => true, "hostname" => "a.b", "test" => true}),
        ("apply_network_settings", vec![], map! {"test" => true}),
    ] {
        let positional = positional.into_iter().map(Into::into).collect();
        with_root(&[], |root| {
            context.call(&format!("ip.{function}"), Args { positional, keyword }).unwrap();
            let files = ["etc/network/interfaces", "etc/modprobe.d/bond0.conf", "etc/default/networking"];
            assert!(files.iter().all(|name| !root.join(name).exists()), "{function}");
        });
    }
}

#[test]
fn name_servers_are_kept_when_domains_change() {
    let context = debian_context();
    let start = "# c\nnameserver 10.0.0.1\nsearch a.example b.example\ndomain example.com\noptions ndots:2\n";
    for (settings, before, after) in [
        (map! {"hostname" => "web.example.org"}, start, start.replace("example.com", "example.org")),
        (map! {"search" => "c.example"}, start, start.replace("a.example b.example", "c.example")),
        (map! {"search" => list!["a.example", "b.example"]}, start, start.to_owned()),
        (map! {"hostname" => "web.example.com"}, start, start.to_owned()),
        (
            map! {"hostname" => "web.b.example", "search" => "c.example"},
            "nameserver 10.0.0.1\n",
            "domain b.example\nsearch c.example\nnameserver 10.0.0.1\n".to_owned(),
        ),
    ] {
        let files = [
            ("etc/resolv.conf", before),
            ("etc/hostname", "box\n"),
            ("etc/default/networking", "VERBOSE=no\nCONFIGURE_INTERFACES=no\n"),
        ];
        with_root(&files, |root| {
            let mut keyword = map! {"enabled" => true};
            keyword.extend(settings.clone());
            let built = context.call("ip.build_network_settings", Args::keyword(keyword.clone())).unwrap();
            assert_eq!(read(root, "etc/resolv.conf"), after, "{settings:?}");
            assert_eq!(read(root, "etc/default/networking"), "VERBOSE=no\nCONFIGURE_INTERFACES=yes\n");
            // A second run reads back the settings that the first has written.
            let again = context.call("ip.build_network_settings", Args::keyword(keyword)).unwrap();
            assert_eq!(again, built, "{settings:?}");
            assert_eq!(read(root, "etc/resolv.conf"), after, "{settings:?}");
        });
    }
}

#[test]
fn sources_outside_of_interfaces_d_and_repeated_addresses_survive() {
    let context = debian_context();
    let interfaces = "source /etc/network/interfaces.d/*\nsource /srv/interfaces\n";
    let eth7 = "iface eth7 inet static\n    address 10.0.0.7\n    up echo one\n";
    let files = [("etc/network/interfaces", interfaces), ("etc/network/interfaces.d/eth7", eth7)];
    with_root(&files, |root| {
        for _ in 0..3 {
            let args = Args {
                positional: ["eth0", "eth", "true"].map(Into::into).to_vec(),
                keyword: map! {"proto" => "dhcp"},
            };
            context.call("ip.build_interface", args).unwrap();
        }
        let expected = format!("\nsource /srv/interfaces\n{eth7}auto eth0\niface eth0 inet dhcp\n");
        assert_eq!(read(root, "etc/network/interfaces"), expected);
    });
}
#[test]
fn interfaces_are_switched_unless_another_controls_them() {
    let programs = Scripted::new("$ ifup eth0\n| started\n$ ifdown eth0\n| stopped\n");
    let context = context_with(map! {"os_family" => "Debian"}, programs.clone());
    assert_eq!(up(&context, "eth0".into(), "eth".into()).unwrap(), "started".into());
    assert_eq!(down(&context, "eth0".into(), "eth".into()).unwrap(), "stopped".into());
    assert_eq!(programs.ran(), "ifup eth0\nifdown eth0");
    for kind in ["slave", "source"] {
        assert_eq!(up(&context, "eth1".into(), kind.into()).unwrap(), Value::default(), "{kind}");
    }
    assert_eq!(programs.ran(), "");
    let other = context_with(map! {"os_family" => "RedHat"}, programs);
    assert!(up(&other, "eth0".into(), "eth".into()).is_err());
}

#[test]
fn invalid_interface_names_are_rejected() {
    for name in ["eth0", "bond0.12", "eth0:1", "br-lan"] {
        assert_eq!(interface(name).unwrap(), name);
    }
    let long = "e".repeat(MAX_NAME_LENGTH + 1);
    for name in ["", "-a", "../x", "a/b", "a b", "a\nb", "$(id)", "a\"", ".hidden", &long] {
        assert!(interface(name).is_err(), "{name:?}");
    }
}
