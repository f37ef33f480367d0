use std::os::unix::fs::PermissionsExt;

use brine_value::{list, map};

use super::*;

const ADD: &str = "#!/bin/sh\n# add\ntest \"${IFACE}\" = \"bond0.12\" || exit 0\n# office\n\
    ip route add 10.2.0.0/16 via 10.1.0.1 dev bond0.12 metric 5\nip route add default  dev bond0.12\n";

fn settings() -> Map {
    let office = map! {"name" => "office", "ipaddr" => "10.2.0.0", "netmask" => 16, "gateway" => "10.1.0.1",
    "metric" => 5};
    map! {"routes" => list![office, map! {"ipaddr" => "default"}]}
}

#[test]
fn routes_are_written_as_executable_scripts() {
    let root = tempfile::tempdir().unwrap();
    let files = Files { root: root.path().to_owned() };
    let expected = lines(&format!("{ADD}{}", ADD.replace("add", "del")));
    assert_eq!(files.build_routes("bond0.12", &settings(), true).unwrap(), expected);
    assert!(files.build_routes("bond0.12", &settings(), false).is_err());
    for when in ["up", "down"] {
        std::fs::create_dir_all(root.path().join(format!("etc/network/if-{when}.d"))).unwrap();
    }
    assert_eq!(files.routes("bond0.12").unwrap(), "".into());
    assert_eq!(files.build_routes("bond0.12", &settings(), false).unwrap(), expected);
    let path = root.path().join("etc/network/if-up.d/route-bond0_12");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), ADD);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(files.routes("bond0.12").unwrap(), expected);
}

#[test]
fn values_cannot_inject_commands_into_scripts() {
    let root = tempfile::tempdir().unwrap();
    let files = Files { root: root.path().to_owned() };
    for name in ["name", "ipaddr", "netmask", "gateway", "metric"] {
        let settings = map! {"routes" => list![map! {name => "1\nreboot"}]};
        let error = files.build_routes("eth0", &settings, true).unwrap_err();
        assert!(error.to_string().contains(&format!("Option: {name}")), "{name}: {error}");
    }
    for (address, mask) in [("10.2.0.0", "33"), ("fd00::", "255.0.0.0"), ("10.2.0.0/16", "16"), ("default", "0")] {
        let settings = map! {"routes" => list![map! {"ipaddr" => address, "netmask" => mask}]};
        assert!(files.build_routes("eth0", &settings, true).is_err(), "{address} {mask}");
    }
    assert!(files.build_routes("eth0", &Map::default(), true).is_err());
}
