use brine_value::{list, map};

use super::*;
use crate::testing::{Scripted, answers, context_with};

// As written by brctl of bridge-utils 1.7.
const TRANSCRIPT: &str = "
    $ brctl show
    | bridge name\tbridge id\t\tSTP enabled\tinterfaces
    | br0\t\t8000.52def878e2e9\tno\t\teth0
    | \t\t\t\t\t\t\tfoo0
    | br1\t\t8000.000000000000\tyes\t\t
    $ brctl show br0
    | bridge name\tbridge id\t\tSTP enabled\tinterfaces
    | br0\t\t8000.52def878e2e9\tno\t\teth0
    | \t\t\t\t\t\t\tfoo0
    $ brctl show br1
    | bridge name\tbridge id\t\tSTP enabled\tinterfaces
    | br1\t\t8000.000000000000\tyes\t\t
    $ brctl show nosuch
    ! bridge nosuch does not exist!
    = 1
    $ brctl addbr br2
    $ brctl addbr br0
    ! device br0 already exists; can't create bridge with the same name
    = 1
    $ brctl delbr br0
    ! bridge br0 is still up; can't delete it
    = 1
    $ brctl addif br0 nosuch
    ! interface nosuch does not exist!
    = 1
    $ brctl delif br0 foo0
    $ brctl stp br0 on
    $ brctl stp br0 off
";

#[test]
fn bridges_are_listed_and_changed() {
    let context = context_with(map! {}, Scripted::new(TRANSCRIPT));
    insta::assert_snapshot!(answers(&context, &[
        ("bridge.show", list![], map! {}),
        ("bridge.show", list!["br0"], map! {}),
        ("bridge.show", list!["nosuch"], map! {}),
        ("bridge.list", list![], map! {}),
        ("bridge.interfaces", list!["br0"], map! {}),
        ("bridge.interfaces", list!["br1"], map! {}),
        ("bridge.interfaces", list!["nosuch"], map! {}),
        ("bridge.interfaces", list![], map! {}),
        ("bridge.find_interfaces", list!["foo0", "br0", "eth0"], map! {}),
        ("bridge.add", list!["br2"], map! {}),
        ("bridge.add", list!["br0"], map! {}),
        ("bridge.delete", list!["br0"], map! {}),
        ("bridge.addif", list!["br0", "nosuch"], map! {}),
        ("bridge.delif", list!["br0", "foo0"], map! {}),
        ("bridge.stp", list!["br0", "enable"], map! {}),
        ("bridge.stp", list!["br0"], map! {}),
        ("bridge.stp", list!["br0", "on"], map! {}),
        ("bridge.add", list![], map! {}),
        ("bridge.add", list!["-h"], map! {}),
        ("bridge.addif", list!["br0"], map! {}),
        ("bridge.show", list!["--help"], map! {}),
    ]), @r#"
    bridge.show: {"br0": {"id": "8000.52def878e2e9", "stp": "no", "interfaces": ["eth0", "foo0"]}, "br1": {"id": "8000.000000000000", "stp": "yes"}}
    bridge.show: {"id": "8000.52def878e2e9", "stp": "no", "interfaces": ["eth0", "foo0"]}
    bridge.show: null
    bridge.list: ["br0", "br1"]
    bridge.interfaces: ["eth0", "foo0"]
    bridge.interfaces: []
    bridge.interfaces: null
    bridge.interfaces: null
    bridge.find_interfaces: {"foo0": "br0", "eth0": "br0"}
    bridge.add: ""
    bridge.add: "device br0 already exists; can't create bridge with the same name"
    bridge.delete: "bridge br0 is still up; can't delete it"
    bridge.addif: "interface nosuch does not exist!"
    bridge.delif: ""
    bridge.stp: ""
    bridge.stp: ""
    bridge.stp: ERROR: state is invalid: expected enable or disable, got 'on'
    bridge.add: ERROR: the argument br is missing
    bridge.add: ERROR: '-h' cannot be used: it starts with '-' or is empty
    bridge.addif: ERROR: the argument iface is missing
    bridge.show: ERROR: '--help' cannot be used: it starts with '-' or is empty
    "#);
}

#[test]
fn a_host_without_bridges_has_an_empty_table() {
    let none = "$ brctl show\n| bridge name\tbridge id\t\tSTP enabled\tinterfaces";
    let context = context_with(map! {}, Scripted::new(none));
    insta::assert_snapshot!(answers(&context, &[
        ("bridge.show", list![], map! {}),
        ("bridge.list", list![], map! {}),
        ("bridge.find_interfaces", list!["eth0"], map! {}),
    ]), @r#"
    bridge.show: {}
    bridge.list: null
    bridge.find_interfaces: null
    "#);
    for odd in ["", "eth0", "a b", "\n\n \t", "bridge name"] {
        assert!(parsed(odd).is_empty(), "{odd}");
    }
}
