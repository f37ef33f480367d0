use brine_value::{list, map};

use super::*;
use crate::ip::with_root;
use crate::testing::{Applied, applied};

fn shown(Applied { result, comment, changes, ran }: Applied) -> String {
    format!("{result:?} {comment}\n{changes}\n{ran}")
}

fn managed_twice(settings: Map, files: &[(&str, &str)], transcript: &str) -> String {
    with_root(files, |_| {
        let run = |test: bool| shown(applied("network.managed", settings.clone(), test, transcript));
        [run(true), run(false), run(true)].join("\n--\n")
    })
}

#[test]
fn an_interface_is_added_and_started() {
    let settings = map! {"name" => "none0", "proto" => "static", "ipaddr" => "10.0.0.2", "netmask" => 24};
    insta::assert_snapshot!(managed_twice(settings, &[], "$ ifup none0"), @r"
    None Interface none0 is set to be added.
    {}

    --
    Some(true) Interface none0 added.
    {'interface': 'Added network interface.', 'status': 'Interface none0 is up'}
    ifup none0
    --
    Some(true) Interface none0 is up to date.
    {}
    ");
}

#[test]
fn an_interface_that_differs_is_updated_and_restarted() {
    let settings = map! {"name" => "lo", "proto" => "loopback", "mtu" => 9000};
    let files = [("etc/network/interfaces", "auto lo\niface lo inet loopback\n")];
    insta::assert_snapshot!(managed_twice(settings, &files, "$ ifup lo\n$ ifdown lo"), @r"
    None Interface lo is set to be updated:
    --- 
    +++ 
    @@ -1,3 +1,4 @@
     auto lo

     iface lo inet loopback

    +    mtu 9000

     

    {}

    --
    Some(true) Interface lo updated.
    {'interface': '--- \n+++ \n@@ -1,3 +1,4 @@\n auto lo\n\n iface lo inet loopback\n\n+    mtu 9000\n\n \n', 'status': 'Interface lo restart to validate'}
    ifdown lo
    ifup lo
    --
    Some(true) Interface lo is up to date.
    {}
    ");
}

#[test]
fn an_interface_that_is_not_enabled_is_stopped() {
    let settings = map! {"name" => "lo", "proto" => "loopback", "enabled" => false};
    insta::assert_snapshot!(managed_twice(settings, &[], "$ ifdown lo"), @r"
    None Interface lo is set to be added.
    {}

    --
    Some(true) Interface lo added.
    {'interface': 'Added network interface.', 'status': 'Interface lo down'}
    ifdown lo
    --
    Some(true) Interface lo is up to date.
    {}
    ");
}

#[test]
fn files_and_interfaces_with_noifupdown_are_not_started() {
    let source = map! {"name" => "source", "type" => "source", "source" => "interfaces.d/*"};
    insta::assert_snapshot!(managed_twice(source, &[], ""), @r"
    None Interface source is set to be added.
    {}

    --
    Some(true) Interface source added.
    {'interface': 'Added network interface.'}

    --
    None Interface source is set to be updated:
    --- 
    +++ 
    @@ -1,3 +1 @@
     

    -source interfaces.d/*

    -

    {}
    ");
    let quiet = map! {"name" => "none0", "proto" => "dhcp", "noifupdown" => true};
    insta::assert_snapshot!(managed_twice(quiet, &[], ""), @r"
    None Interface none0 is set to be added.
    {}

    --
    Some(true) Interface none0 added.
    {'interface': 'Added network interface.'}

    --
    Some(true) Interface none0 is up to date.
    {}
    ");
}

#[test]
fn rejected_options_fail_the_state() {
    for (settings, comment) in [
        (map! {"type" => "token"}, "Option: token"),
        (map! {"type" => "slave"}, "master is a required setting for slave interfaces"),
        (map! {"speed" => 7}, "Option: 7, Expected: [10|100|1000|10000]"),
    ] {
        let mut keyword = map! {"name" => "none0"};
        keyword.extend(settings);
        let state = with_root(&[], |_| applied("network.managed", keyword, false, ""));
        assert_eq!(state.result, Some(false));
        assert!(state.comment.contains(comment), "{}", state.comment);
    }
}

#[test]
fn routes_are_added_updated_and_left_unchanged() {
    let settings = |gateway: &str| {
        let route = map! {"ipaddr" => "10.2.0.0", "netmask" => 16, "gateway" => gateway};
        map! {"name" => "none0", "routes" => list![route], "require_reboot" => true}
    };
    let report = with_root(&[], |_| {
        let run = |gateway: &str, test| shown(applied("network.routes", settings(gateway), test, ""));
        [run("10.1.0.1", true), run("10.1.0.1", false), run("10.1.0.1", false), run("10.1.0.9", true)].join("\n--\n")
    });
    insta::assert_snapshot!(report, @r#"
    None Interface none0 routes are set to be added.
    {}

    --
    Some(true) Interface none0 routes added.
    {'network_routes': 'Added interface none0 routes.'}

    --
    Some(true) Interface none0 routes are up to date.
    {}

    --
    None Interface none0 routes are set to be updated:
    --- 
    +++ 
    @@ -1,8 +1,8 @@
     #!/bin/sh

     # add

     test "${IFACE}" = "none0" || exit 0

    -ip route add 10.2.0.0/16 via 10.1.0.1 dev none0

    +ip route add 10.2.0.0/16 via 10.1.0.9 dev none0

     #!/bin/sh

     # del

     test "${IFACE}" = "none0" || exit 0

    -ip route del 10.2.0.0/16 via 10.1.0.1 dev none0

    +ip route del 10.2.0.0/16 via 10.1.0.9 dev none0

    {}
    "#);
}

#[test]
fn global_settings_are_changed_once() {
    let files = [
        ("etc/default/networking", "CONFIGURE_INTERFACES=no\n"),
        ("etc/hostname", "web\n"),
        ("etc/resolv.conf", "nameserver 10.0.0.1\n"),
    ];
    let settings = map! {"name" => "net", "enabled" => true, "hostname" => "web.example.com", "require_reboot" => true};
    let report = with_root(&files, |_| {
        let run = |test| shown(applied("network.system", settings.clone(), test, ""));
        [run(true), run(false), run(false)].join("\n--\n")
    });
    insta::assert_snapshot!(report, @r"
    None Global network settings are set to be updated:
    --- 
    +++ 
    @@ -1,2 +1,3 @@
    -NETWORKING=no

    +NETWORKING=yes

     HOSTNAME=web

    +DOMAIN=example.com

    {}

    --
    Some(true) Global network settings are up to date.
    {'network_settings': '--- \n+++ \n@@ -1,2 +1,3 @@\n-NETWORKING=no\n\n+NETWORKING=yes\n\n HOSTNAME=web\n\n+DOMAIN=example.com\n'}

    --
    Some(true) Global network settings are up to date.
    {}
    ");
}
