//! Tables, chains and rules, with the output of nftables 1.0.6 on Linux 6.18, recorded in a network namespace.

use brine_function::Args;
use brine_value::list;

use super::*;
use crate::testing::{Scripted, answers, context_with};

mod rules;
mod states;

const CHAINS: &str = r#"
    $ nft -- list tables ip
    | table ip filter
    $ nft -- list chains ip
    | table ip filter {
    | 	chain input {
    | 		type filter hook input priority filter; policy accept;
    | 	}
    | 	chain custom {
    | 	}
    | }
    $ nft --json -- list chains ip
    | {"nftables": [{"metainfo": {"version": "1.0.6", "release_name": "Lester Gooch #5", "json_schema_version": 1}}, {"chain": {"family": "ip", "table": "filter", "name": "input", "handle": 1, "type": "filter", "hook": "input", "prio": 0, "policy": "accept"}}, {"chain": {"family": "ip", "table": "filter", "name": "custom", "handle": 2}}]}
    $ nft --handle -- list chain ip filter input
    | table ip filter {
    | 	chain input { # handle 1
    | 		type filter hook input priority filter; policy accept;
    | 		ct state { established, new } accept # handle 6
    | 		tcp dport { 80, 443 } accept # handle 4
    | 		ip saddr 10.0.0.0/8 counter packets 0 bytes 0 drop # handle 7
    | 		log prefix "in: " drop # handle 8
    | 	}
    | }
    "#;

fn ran(transcript: &str, calls: &[(&str, Value, Map)]) -> (String, String) {
    let programs = Scripted::new(transcript);
    let context = context_with(map! {"os_family" => "Debian"}, programs.clone());
    let answers = answers(&context, calls);
    (answers, programs.ran())
}

#[test]
fn tables_and_chains_are_created_and_deleted() {
    let transcript = format!(
        "{CHAINS}
        $ nft --version --
        | nftables v1.0.6 (Lester Gooch #5)
        $ nft --json -- list tables ip
        | {{\"nftables\": [{{\"metainfo\": {{\"version\": \"1.0.6\", \"release_name\": \"Lester Gooch #5\", \"json_schema_version\": 1}}}}, {{\"table\": {{\"family\": \"ip\", \"name\": \"filter\", \"handle\": 1}}}}]}}
        $ nft -- list tables ip6
        $ nft -- add table ip6 filter
        $ nft -- delete table ip filter
        $ nft -- add chain ip filter out '{{ type filter hook output priority -5; }}'
        $ nft -- add chain ip filter bad '{{ type filter hook nowhere priority 0; }}'
        ! Error: unknown chain hook
        ! add chain ip filter bad {{ type filter hook nowhere priority 0; }}
        !                                            ^^^^^^^
        = 1
        $ nft -- add chain ip filter more
        $ nft -- delete chain ip filter custom
        $ nft -- flush chain ip filter custom
        $ nft -- flush table ip filter
        "
    );
    let (answers, _) = ran(
        &transcript,
        &[
            ("nftables.version", list![], map! {}),
            ("nftables.list_tables", list![], map! {}),
            ("nftables.check_table", list![], map! {}),
            ("nftables.check_table", list!["filter"], map! {}),
            ("nftables.check_table", list!["filt"], map! {}),
            ("nftables.check_table", list!["filter"], map! {"family" => "ipx"}),
            ("nftables.new_table", list!["filter"], map! {}),
            ("nftables.new_table", list!["filter"], map! {"family" => "ipv6"}),
            ("nftables.delete_table", list!["filter"], map! {}),
            ("nftables.delete_table", list!["filter"], map! {"family" => "ipv6"}),
            ("nftables.check_chain", list!["filter", "input"], map! {}),
            ("nftables.check_chain", list!["filter", "inp"], map! {}),
            ("nftables.new_chain", list!["filter", "input"], map! {}),
            ("nftables.new_chain", list!["filter", "out", "filter", "output", -5], map! {}),
            ("nftables.new_chain", list!["filter", "bad", "filter", "nowhere", 0], map! {}),
            ("nftables.new_chain", list!["filter", "more"], map! {}),
            ("nftables.new_chain", list!["filter", "more"], map! {"hook" => "input"}),
            ("nftables.new_chain", list!["nat"], map! {"chain" => "pre"}),
            ("nftables.delete_chain", list!["filter", "custom"], map! {}),
            ("nftables.flush", list!["filter", "custom"], map! {}),
            ("nftables.flush", list!["filter"], map! {}),
            ("nftables.flush", list!["filter", "gone"], map! {}),
        ],
    );
    insta::assert_snapshot!(answers, @r#"
    nftables.version: "v1.0.6"
    nftables.list_tables: [{"family": "ip", "name": "filter", "handle": 1}]
    nftables.check_table: {"comment": "Table needs to be specified", "result": false}
    nftables.check_table: {"comment": "Table filter in family ipv4 exists", "result": true}
    nftables.check_table: {"comment": "Table filt in family ipv4 does not exist", "result": false}
    nftables.check_table: ERROR: family 'ipx' is invalid: expected ipv4, ipv6, inet, arp, bridge or netdev
    nftables.new_table: {"comment": "Table filter in family ipv4 exists", "result": true}
    nftables.new_table: {"comment": "Table filter in family ipv6 created", "result": true}
    nftables.delete_table: {"comment": "Table filter in family ipv4 deleted", "result": true}
    nftables.delete_table: {"comment": "Table filter in family ipv6 does not exist", "result": false}
    nftables.check_chain: {"comment": "Chain input in table filter in family ipv4 exists", "result": true}
    nftables.check_chain: {"comment": "Chain inp in table filter in family ipv4 does not exist", "result": false}
    nftables.new_chain: {"comment": "Chain input in table filter in family ipv4 already exists", "result": false}
    nftables.new_chain: {"comment": "Chain out in table filter in family ipv4 created", "result": true}
    nftables.new_chain: {"comment": "Chain bad in table filter in family ipv4 could not be created\nError: unknown chain hook\nadd chain ip filter bad { type filter hook nowhere priority 0; }\n                                           ^^^^^^^", "result": false}
    nftables.new_chain: {"comment": "Chain more in table filter in family ipv4 created", "result": true}
    nftables.new_chain: {"comment": "Table_type, hook, and priority required.", "result": false}
    nftables.new_chain: {"comment": "Table nat in family ipv4 does not exist", "result": false}
    nftables.delete_chain: {"comment": "Chain custom in table filter in family ipv4 deleted", "result": true}
    nftables.flush: {"comment": "Flushed rules from chain custom in table filter in family ipv4.", "result": true}
    nftables.flush: {"comment": "Flushed rules from table filter in family ipv4.", "result": true}
    nftables.flush: {"comment": "Chain gone in table filter in family ipv4 does not exist", "result": false}
    "#);
}

#[test]
fn rules_are_found_added_and_deleted() {
    let transcript = format!(
        "{CHAINS}
        $ nft --numeric --numeric --numeric -- list table ip filter
        | table ip filter {{
        | 	chain input {{
        | 		type filter hook input priority 0; policy accept;
        | 	}}
        | }}
        $ nft --numeric --numeric --numeric --json -- list ruleset ip
        | {{\"nftables\": [{{\"metainfo\": {{\"version\": \"1.0.6\", \"release_name\": \"Lester Gooch #5\", \"json_schema_version\": 1}}}}, {{\"table\": {{\"family\": \"ip\", \"name\": \"filter\", \"handle\": 1}}}}]}}
        $ nft -- add rule ip filter input 'tcp dport {{ 22 }} accept'
        $ nft -- add rule ip filter input 'tcp dport {{ 22 }} ACCEPT'
        ! Error: syntax error, unexpected newline
        ! add rule ip filter input tcp dport {{ 22 }} ACCEPT
        !                                                 ^
        = 1
        $ nft -- insert rule ip filter input position 4 'udp dport {{ 53 }} accept'
        $ nft -- insert rule ip filter input position 99 'udp dport {{ 53 }} accept'
        ! Error: Could not process rule: No such file or directory
        ! insert rule ip filter input position 99 udp dport {{ 53 }} accept
        !                             ^^^^^^^^^^^
        = 1
        $ nft -- delete rule ip filter input handle 4
        $ nft -- delete rule ip filter input handle 8
        $ nft -- add chain ip filter input '{{ policy drop; }}'
        "
    );
    let rule = |rule: &str| map! {"rule" => rule};
    let (answers, _) = ran(
        &transcript,
        &[
            ("nftables.get_rules", list![], map! {}),
            ("nftables.get_rules_json", list![], map! {}),
            ("nftables.check", list!["filter"], map! {}),
            ("nftables.check", list!["filter", "input"], map! {}),
            ("nftables.check", list!["filter", "input"], rule("ct state { new,established } accept")),
            ("nftables.check", list!["filter", "input"], rule("accept")),
            ("nftables.check", list!["filter", "gone"], rule("accept")),
            ("nftables.get_rule_handle", list!["filter", "input"], rule("tcp dport { 443, 80 } accept")),
            ("nftables.get_rule_handle", list!["filter", "input"], rule("accept")),
            ("nftables.append", list!["filter", "input"], rule("log prefix \"in: \" drop")),
            ("nftables.append", list!["filter", "input"], rule("tcp dport { 22 } accept")),
            ("nftables.append", list!["filter", "input"], rule("tcp dport { 22 } ACCEPT")),
            ("nftables.insert", list!["filter", "input", 4, "udp dport { 53 } accept"], map! {}),
            ("nftables.insert", list!["filter", "input", "99", "udp dport { 53 } accept"], map! {}),
            ("nftables.delete", list!["filter", "input", 4, "accept"], map! {}),
            ("nftables.delete", list!["filter", "input"], map! {}),
            ("nftables.delete", list!["filter", "input", 8], map! {}),
            ("nftables.delete", list!["filter", "input", 9], map! {}),
            ("nftables.delete", list!["filter", "input"], rule("tcp dport { 80, 443 } accept")),
            ("nftables.get_policy", list!["filter", "input"], map! {}),
            ("nftables.get_policy", list!["filter", "custom"], map! {}),
            ("nftables.set_policy", list!["filter", "input", "drop"], map! {}),
            ("nftables.set_policy", list!["filter", "custom", "drop"], map! {}),
            ("nftables.set_policy", list!["filter", "input"], map! {}),
        ],
    );
    insta::assert_snapshot!(answers, @r#"
    nftables.get_rules: ["table ip filter {\n\tchain input {\n\t\ttype filter hook input priority 0; policy accept;\n\t}\n}"]
    nftables.get_rules_json: [{"metainfo": {"version": "1.0.6", "release_name": "Lester Gooch #5", "json_schema_version": 1}}, {"table": {"family": "ip", "name": "filter", "handle": 1}}]
    nftables.check: {"comment": "Chain needs to be specified", "result": false}
    nftables.check: {"comment": "Rule needs to be specified", "result": false}
    nftables.check: {"comment": "Rule ct state { new,established } accept in chain input in table filter in family ipv4 exists", "result": true}
    nftables.check: {"comment": "Rule accept in chain input in table filter in family ipv4 does not exist", "result": false}
    nftables.check: {"comment": "Chain gone in table filter in family ipv4 does not exist", "result": false}
    nftables.get_rule_handle: {"result": true, "handle": "4"}
    nftables.get_rule_handle: {"comment": "Rule accept in chain input in table filter in family ipv4 does not exist", "result": false}
    nftables.append: {"comment": "Rule log prefix \"in: \" drop chain input in table filter in family ipv4 already exists", "result": false}
    nftables.append: {"comment": "Added rule \"tcp dport { 22 } accept\" chain input in table filter in family ipv4.", "result": true}
    nftables.append: {"comment": "Failed to add rule \"tcp dport { 22 } ACCEPT\" chain input in table filter in family ipv4.\nError: syntax error, unexpected newline\nadd rule ip filter input tcp dport { 22 } ACCEPT\n                                                ^", "result": false}
    nftables.insert: {"comment": "Added rule \"udp dport { 53 } accept\" chain input in table filter in family ipv4.", "result": true}
    nftables.insert: {"comment": "Failed to add rule \"udp dport { 53 } accept\" chain input in table filter in family ipv4.\nError: Could not process rule: No such file or directory\ninsert rule ip filter input position 99 udp dport { 53 } accept\n                            ^^^^^^^^^^^", "result": false}
    nftables.delete: {"comment": "Only specify a position or a rule, not both", "result": false}
    nftables.delete: {"comment": "Rule needs to be specified", "result": false}
    nftables.delete: {"comment": "Deleted rule \"log prefix \"in: \" drop\" in chain input in table filter in family ipv4.", "result": true}
    nftables.delete: {"comment": "Rule 9 chain input in table filter in family ipv4 does not exist", "result": false}
    nftables.delete: {"comment": "Deleted rule \"tcp dport { 80, 443 } accept\" in chain input in table filter in family ipv4.", "result": true}
    nftables.get_policy: "accept"
    nftables.get_policy: null
    nftables.set_policy: true
    nftables.set_policy: false
    nftables.set_policy: "Error: Policy needs to be specified"
    "#);
}

#[test]
fn rules_are_built_from_options() {
    let options = map! {"dport" => 22, "proto" => "tcp", "jump" => "accept"};
    let full = |command: &str, position: i64| {
        let mut args = options.clone();
        args.extend(map! {"full" => true, "command" => command, "position" => position});
        args
    };
    let (answers, _) = ran(
        "",
        &[
            ("nftables.build_rule", list![], options.clone()),
            ("nftables.build_rule", list!["filter", "input"], full("Insert", 3)),
            ("nftables.build_rule", list!["filter", "input"], full("add", 3)),
            ("nftables.build_rule", list!["filter"], full("add", 3)),
            ("nftables.build_rule", list![], map! {"sorce" => "10.0.0.1"}),
            ("nftables.build_rule", list![], map! {}),
        ],
    );
    insta::assert_snapshot!(answers, @r#"
    nftables.build_rule: {"comment": "Successfully built rule", "rule": "tcp dport { 22 } accept", "result": true}
    nftables.build_rule: {"comment": "Successfully built rule", "rule": "nft insert rule ip filter input position 3 tcp dport { 22 } accept", "result": true}
    nftables.build_rule: {"comment": "Successfully built rule", "rule": "nft add rule ip filter input tcp dport { 22 } accept", "result": true}
    nftables.build_rule: {"comment": "Chain needs to be specified", "rule": "tcp dport { 22 } accept", "result": false}
    nftables.build_rule: {"comment": "nftables rules have no option sorce: correct it, or remove it", "rule": "", "result": false}
    nftables.build_rule: {"comment": "", "rule": "", "result": true}
    "#);
}

#[test]
fn names_and_rules_cannot_be_commands() {
    for text in ["x; flush ruleset", "-f/etc/shadow", "x y", "", "x\ny", "x\0", "{", "\"x\"", "é"] {
        let programs = Scripted::new(CHAINS);
        let context = context_with(map! {}, programs.clone());
        for (function, args) in [
            ("nftables.new_table", list![text]),
            ("nftables.delete_table", list![text]),
            ("nftables.new_chain", list!["filter", text]),
            ("nftables.flush", list!["filter", format!("{text}; x")]),
            ("nftables.set_policy", list!["filter", "input", text]),
            ("nftables.append", list!["filter", "input", format!("accept; {text}")]),
            ("nftables.insert", list!["filter", "input", 4, format!("accept\n{text}")]),
            ("nftables.new_chain", list!["filter", "new", "filter", "input", format!("0; }} {text}")]),
        ] {
            let args = Args { positional: args.as_list().unwrap().to_vec(), ..Args::default() };
            _ = context.call(function, args);
        }
        let ran = programs.ran();
        assert!(ran.lines().all(|line| line.contains("list ")), "{text}: {ran}");
    }
}

#[test]
fn an_unreadable_ruleset_is_not_an_empty_one() {
    // As written for a user who is not root.
    let transcript = "$ nft -- list tables ip\n! Operation not permitted (you must be root)\n! netlink: Error: cache initialization failed: Operation not permitted\n= 1\n";
    let (answers, _) = ran(transcript, &[("nftables.check_table", list!["filter"], map! {})]);
    assert!(answers.contains("ERROR: nft list tables ip failed: Operation not permitted"), "{answers}");
    let (answers, _) = ran("", &[("nftables.version", list![], map! {})]);
    assert_eq!(answers, "nftables.version: ERROR: program nft not found: install nftables");
    for broken in ["", "{", "[]", "{\"nftables\": 1}", "{\"nftables\": [1, {\"chain\": 2}]}"] {
        let transcript = format!("$ nft --json -- list chains ip\n| {broken}\n");
        let (answers, _) = ran(&transcript, &[("nftables.get_policy", list!["filter", "input"], map! {})]);
        assert_eq!(answers, "nftables.get_policy: null");
    }
}

#[test]
fn rules_are_saved_to_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let transcript = "
        $ nft -- list tables ip
        | table ip filter
        $ nft -- list tables ip6
        $ nft -- list tables inet
        | table inet t
        $ nft -- list tables arp
        $ nft -- list tables bridge
        $ nft -- list tables netdev
        $ nft --numeric --numeric --numeric -- list table ip filter
        | table ip filter {
        | 	chain custom {
        | 	}
        | }
        $ nft --numeric --numeric --numeric -- list table inet t
        | table inet t {
        | }
        ";
    let text = "#! nft -f\n\ntable ip filter {\n\tchain custom {\n\t}\n}\ntable inet t {\n}\n";
    let path = directory.path().to_string_lossy().into_owned();
    let context = context_with(map! {}, Scripted::new(transcript));
    let saved = context.call("nftables.save", Args::positional([path.as_str().into()])).unwrap();
    assert_eq!(saved, text.into());
    assert_eq!(std::fs::read_to_string(directory.path().join("salt-all-in-one.nft")).unwrap(), text);
    let lines = context.call("nftables.get_saved_rules", Args::positional([path.into()])).unwrap();
    assert_eq!(lines.as_list().unwrap().len(), 6);
    assert!(context.call("nftables.save", Args::default()).is_err(), "the system has no default file");
}
