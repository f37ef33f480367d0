//! Sets and their entries, with the output of ipset 7.17 on Linux 6.18, recorded in a network namespace.

mod states;

use brine_function::Args;
use brine_value::{list, map};

use super::*;
use crate::testing::{Applied, Scripted, answers, applied, context_with};

const NONE: &str = "
    $ ipset list -t web
    ! ipset v7.17: The set with the given name does not exist
    = 1
    $ ipset list web
    ! ipset v7.17: The set with the given name does not exist
    = 1
    ";
const WEB: &str = r#"
    $ ipset list -t web
    | Name: web
    | Type: hash:ip
    | Revision: 6
    | Header: family inet hashsize 1024 maxelem 65536 timeout 0 comment bucketsize 12 initval 0x664d43bf
    | Size in memory: 636
    | References: 0
    | Number of entries: 5
    $ ipset list web
    | Name: web
    | Type: hash:ip
    | Revision: 6
    | Header: family inet hashsize 1024 maxelem 65536 timeout 0 comment bucketsize 12 initval 0x664d43bf
    | Size in memory: 636
    | References: 0
    | Number of entries: 5
    | Members:
    | 192.168.1.3 timeout 0
    | 192.168.1.0 timeout 0
    | 192.168.0.3 timeout 0 comment "a b"
    | 192.168.1.1 timeout 0
    | 192.168.1.2 timeout 0
    "#;
const REFUSED: &str = "! ipset v7.17: Kernel error received: Operation not permitted\n= 1\n";

#[test]
fn sets_are_listed_created_and_deleted() {
    let transcript = format!(
        "{WEB}
        $ ipset --version
        | ipset v7.17, protocol version: 7
        $ ipset list -t
        | Name: web
        | Type: hash:ip
        | Revision: 6
        | Header: family inet hashsize 1024 maxelem 65536 bucketsize 12 initval 0xad16c3cb
        | Size in memory: 216
        | References: 0
        | Number of entries: 0
        | 
        | Name: a
        | b
        | Type: list:set
        | Header: size 8
        $ ipset create six hash:net timeout 300 counters skbinfo family inet6 comment
        $ ipset create bad bitmap:ip range bogus
        ! ipset v7.17: Syntax error: IP/cidr or IP-IP range must be specified: bogus
        = 1
        $ ipset create lst list:set
        $ ipset destroy web
        $ ipset rename web www
        $ ipset list -t www
        ! ipset v7.17: The set with the given name does not exist
        = 1
        $ ipset flush
        $ ipset flush www
        ! ipset v7.17: The set with the given name does not exist
        = 1
        "
    );
    let options = map! {"family" => "ipv6", "timeout" => 300, "counters" => true, "skbinfo" => true, "comment" => "Hello", "other" => 1};
    let context = context_with(map! {}, Scripted::new(&transcript));
    insta::assert_snapshot!(answers(&context, &[
        ("ipset.version", list![], map! {}),
        ("ipset.list_sets", list![], map! {}),
        ("ipset.check_set", list!["web"], map! {}),
        ("ipset.check_set", list!["www"], map! {}),
        ("ipset.check_set", list![], map! {}),
        ("ipset.new_set", list!["six", "hash:net"], options),
        ("ipset.new_set", list!["lst", "list:set"], map! {}),
        ("ipset.new_set", list!["bad", "bitmap:ip"], map! {"range" => "bogus"}),
        ("ipset.new_set", list!["bad", "bitmap:ip"], map! {}),
        ("ipset.new_set", list!["bad", "hash:x"], map! {}),
        ("ipset.new_set", list!["bad"], map! {}),
        ("ipset.new_set", list![], map! {}),
        ("ipset.new_set", list!["bad", "hash:ip"], map! {"family" => "inet"}),
        ("ipset.new_set", list!["-file", "hash:ip"], map! {}),
        ("ipset.delete_set", list!["web"], map! {}),
        ("ipset.rename_set", list!["web", "www"], map! {}),
        ("ipset.rename_set", list!["www", "web"], map! {}),
        ("ipset.rename_set", list!["web", "web"], map! {}),
        ("ipset.flush", list![], map! {}),
        ("ipset.flush", list!["www"], map! {}),
    ]), @r#"
    ipset.version: "v7.17"
    ipset.list_sets: [{"Name": "web", "Type": "hash:ip", "Revision": "6", "Header": "family inet hashsize 1024 maxelem 65536 bucketsize 12 initval 0xad16c3cb", "Size in memory": "216", "References": "0", "Number of entries": "0"}, {"Name": "a", "Type": "list:set", "Header": "size 8"}]
    ipset.check_set: true
    ipset.check_set: false
    ipset.check_set: "Error: Set needs to be specified"
    ipset.new_set: true
    ipset.new_set: true
    ipset.new_set: "ipset v7.17: Syntax error: IP/cidr or IP-IP range must be specified: bogus"
    ipset.new_set: "Error: range is a required argument"
    ipset.new_set: "Error: Set Type is invalid"
    ipset.new_set: "Error: Set Type needs to be specified"
    ipset.new_set: "Error: Set Name needs to be specified"
    ipset.new_set: ERROR: family 'inet' is invalid: expected ipv4 or ipv6
    ipset.new_set: ERROR: '-file' cannot be used: it starts with '-' or is empty
    ipset.delete_set: true
    ipset.rename_set: true
    ipset.rename_set: "Error: Set does not exist"
    ipset.rename_set: "Error: New Set already exists"
    ipset.flush: true
    ipset.flush: false
    "#);
    let none = context_with(map! {}, Scripted::new("$ ipset list -t\n"));
    assert_eq!(answers(&none, &[("ipset.list_sets", list![], map! {})]), "ipset.list_sets: []");
}

#[test]
fn entries_are_found_added_and_deleted() {
    let transcript = format!(
        "{WEB}
        $ ipset list -t none
        ! ipset v7.17: The set with the given name does not exist
        = 1
        $ ipset list none
        ! ipset v7.17: The set with the given name does not exist
        = 1
        $ ipset add -exist web 192.168.0.4
        $ ipset add -exist web 192.168.0.3 comment 'a c' timeout 60
        $ ipset add -exist web 10.0.0.300
        ! ipset v7.17: Syntax error: cannot parse 10.0.0.300: resolving to IPv4 address failed
        = 1
        $ ipset del web 192.168.0.3
        $ ipset del web 192.168.0.77
        ! ipset v7.17: Element cannot be deleted from the set: it's not added
        = 1
        $ ipset test web 192.168.1.1
        ! Warning: 192.168.1.1 is in set web.
        $ ipset test web 192.168.1.9
        ! 192.168.1.9 is NOT in set web.
        = 1
        "
    );
    let context = context_with(map! {}, Scripted::new(&transcript));
    insta::assert_snapshot!(answers(&context, &[
        ("ipset.check", list!["web", "192.168.0.3"], map! {}),
        ("ipset.check", list!["web", "192.168.0.3 comment \"a b\""], map! {}),
        ("ipset.check", list!["web", "192.168.0.3 comment x"], map! {}),
        ("ipset.check", list!["web", list!["192.168.0.9", "192.168.0.3"]], map! {}),
        ("ipset.check", list!["none", "192.168.0.3"], map! {}),
        ("ipset.check", list!["web"], map! {}),
        ("ipset.test", list!["web", "192.168.1.1"], map! {}),
        ("ipset.test", list!["web", "192.168.1.9"], map! {}),
        ("ipset.test", list!["none", "192.168.1.9"], map! {}),
        ("ipset.add", list!["web", "192.168.0.4"], map! {}),
        ("ipset.add", list!["web", "192.168.0.3 comment \"a c\""], map! {"timeout" => 60, "comment" => "other"}),
        ("ipset.add", list!["web", "192.168.1.1 timeout 0"], map! {}),
        ("ipset.add", list!["web", "10.0.0.300"], map! {}),
        ("ipset.add", list!["web", "10.0.0.3"], map! {"packets" => 1}),
        ("ipset.add", list!["web", "10.0.0.3 skbmark 1"], map! {}),
        ("ipset.add", list!["none", "10.0.0.3"], map! {}),
        ("ipset.add", list!["web"], map! {}),
        ("ipset.delete", list!["web", "192.168.0.3"], map! {}),
        ("ipset.delete", list!["web", "192.168.0.77"], map! {}),
        ("ipset.delete", list!["none", "192.168.0.77"], map! {}),
    ]), @r#"
    ipset.check: true
    ipset.check: true
    ipset.check: false
    ipset.check: true
    ipset.check: "Error: Set none does not exist"
    ipset.check: "Error: Entry needs to be specified"
    ipset.test: true
    ipset.test: false
    ipset.test: "Error: Set none does not exist"
    ipset.add: "Success"
    ipset.add: "Success"
    ipset.add: "Warn: Entry 192.168.1.1 timeout 0 already exists in set web"
    ipset.add: "Error: ipset v7.17: Syntax error: cannot parse 10.0.0.300: resolving to IPv4 address failed"
    ipset.add: "Error: Set web not created with counters support"
    ipset.add: "Error: Set web not created with skbinfo support"
    ipset.add: "Error: Set none does not exist"
    ipset.add: "Error: Entry needs to be specified"
    ipset.delete: "Success"
    ipset.delete: "Error: ipset v7.17: Element cannot be deleted from the set: it's not added"
    ipset.delete: "Error: Set none does not exist"
    "#);
}

#[test]
fn words_cannot_be_options_or_further_lines() {
    for text in ["-file", "-", "x\ny", "x\0", "\"", "comment -exist", "1.1.1.1 -file /tmp/x"] {
        let programs = Scripted::new(WEB);
        let context = context_with(map! {}, programs.clone());
        for (function, args, keyword) in [
            ("ipset.delete_set", list![text.replace(' ', "\n")], map! {}),
            ("ipset.add", list!["web", text], map! {}),
            ("ipset.add", list!["web", "1.1.1.1"], map! {"comment" => format!("-{text}")}),
            ("ipset.delete", list!["web", format!("-{text}")], map! {}),
            ("ipset.new_set", list!["new", "bitmap:ip"], map! {"range" => format!("-{text}")}),
        ] {
            let args = Args { positional: args.as_list().unwrap().to_vec(), keyword };
            assert!(context.call(function, args).is_err(), "{function} {text:?}");
        }
        let ran = programs.ran();
        assert!(ran.lines().all(|line| line.starts_with("ipset list ")), "{text}: {ran}");
    }
}

#[test]
fn an_unreadable_set_is_not_a_missing_one() {
    // As written for a user who is not root.
    let refused = "$ ipset list -t web\n! ipset v7.17: Kernel error received: Operation not permitted\n= 1\n";
    let context = context_with(map! {}, Scripted::new(refused));
    let expected = "ipset.check_set: ERROR: reading the set web failed: ipset v7.17: Kernel error received: Operation not permitted";
    assert_eq!(answers(&context, &[("ipset.check_set", list!["web"], map! {})]), expected);
    let context = context_with(map! {}, Scripted::new(""));
    let expected = "ipset.version: ERROR: program ipset not found: install ipset";
    assert_eq!(answers(&context, &[("ipset.version", list![], map! {})]), expected);
}

/// Function, arguments, test mode, transcript, result, comment.
type Case<'a> = (&'a str, Map, bool, String, Option<bool>, &'a str);
