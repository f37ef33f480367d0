//! States of tables, chains and rules.

use brine_value::{Map, map};

use super::CHAINS;
use crate::testing::{Applied, applied};

pub(super) const EMPTY: &str = "
    $ nft -- list tables ip
    $ nft -- list chains ip
    ";
pub(super) const TABLE: &str = "
    $ nft -- list tables ip
    | table ip filter
    $ nft -- list chains ip
    | table ip filter {
    | }
    ";
// As written for a user who is not root.
pub(super) const REFUSED: &str = "
    ! Operation not permitted (you must be root)
    ! netlink: Error: cache initialization failed: Operation not permitted
    = 1
    ";

/// Function, arguments, test mode, transcript, result, comment.
pub(super) type Case<'a> = (&'a str, Map, bool, String, Option<bool>, &'a str);

pub(super) fn check_states(cases: Vec<Case<'_>>) {
    for (function, keyword, test, transcript, result, comment) in cases {
        let label = format!("{function} {keyword:?} {test}");
        let Applied { result: got, comment: text, changes, ran } =
            applied(&format!("nftables.{function}"), keyword, test, &transcript);
        assert_eq!((got, text.as_str()), (result, comment), "{label}");
        let is_changed = ran.lines().any(|line| !line.contains(" list "));
        assert!(!test || !is_changed, "{label}: {ran}");
        assert_eq!(changes.is_truthy(), is_changed && result == Some(true), "{label}: {ran}");
    }
}

#[test]
fn tables_and_chains_are_present_or_absent() {
    let with = |base: &str, more: &str| format!("{base}{more}");
    let name = |name: &str| map! {"name" => name};
    let base = map! {"name" => "input", "table_type" => "filter", "hook" => "input", "priority" => 0};
    let add = "$ nft -- add chain ip filter input '{ type filter hook input priority 0; }'\n";
    let deleted = "$ nft -- flush chain ip filter custom\n$ nft -- delete chain ip filter custom\n";
    let busy = "$ nft -- flush chain ip filter custom\n$ nft -- delete chain ip filter custom\n! Error: Could not process rule: Device or resource busy\n! delete chain ip filter custom\n!                        ^^^^^^\n= 1\n";
    check_states(vec![
        (
            "table_present",
            name("filter"),
            false,
            TABLE.into(),
            Some(true),
            "nftables table filter already exists in family ipv4",
        ),
        (
            "table_present",
            name("filter"),
            true,
            EMPTY.into(),
            None,
            "nftables table filter would be created in family ipv4",
        ),
        (
            "table_present",
            name("filter"),
            false,
            with(EMPTY, "$ nft -- add table ip filter\n"),
            Some(true),
            "nftables table filter successfully created in family ipv4",
        ),
        (
            "table_present",
            name("filter"),
            false,
            with(EMPTY, &format!("$ nft -- add table ip filter\n{REFUSED}")),
            Some(false),
            "Failed to create table filter for family ipv4",
        ),
        (
            "table_absent",
            name("filter"),
            false,
            EMPTY.into(),
            Some(true),
            "nftables table filter is already absent from family ipv4",
        ),
        (
            "table_absent",
            name("filter"),
            true,
            TABLE.into(),
            None,
            "nftables table filter would be deleted from family ipv4",
        ),
        (
            "table_absent",
            name("filter"),
            false,
            with(TABLE, "$ nft -- delete table ip filter\n"),
            Some(true),
            "nftables table filter successfully deleted from family ipv4",
        ),
        (
            "table_absent",
            name("filter"),
            false,
            with(TABLE, &format!("$ nft -- delete table ip filter\n{REFUSED}")),
            Some(false),
            "Failed to delete table filter from family ipv4",
        ),
        (
            "chain_present",
            base.clone(),
            false,
            CHAINS.into(),
            Some(true),
            "nftables input chain is already exist in filter table for ipv4",
        ),
        (
            "chain_present",
            base.clone(),
            true,
            TABLE.into(),
            None,
            "nftables chain input would be created in table filter for family ipv4",
        ),
        (
            "chain_present",
            base.clone(),
            false,
            with(TABLE, add),
            Some(true),
            "nftables input chain in filter table create success for ipv4",
        ),
        (
            "chain_present",
            base,
            false,
            EMPTY.into(),
            Some(false),
            "Failed to create input chain in filter table: Table filter in family ipv4 does not exist for ipv4",
        ),
        (
            "chain_present",
            map! {"name" => "input", "hook" => "input"},
            false,
            TABLE.into(),
            Some(false),
            "Failed to create input chain in filter table: Table_type, hook, and priority required. for ipv4",
        ),
        (
            "chain_absent",
            name("custom"),
            false,
            TABLE.into(),
            Some(true),
            "nftables custom chain is already absent in filter table for ipv4",
        ),
        (
            "chain_absent",
            name("custom"),
            true,
            CHAINS.into(),
            None,
            "nftables chain custom would be deleted from table filter for family ipv4",
        ),
        (
            "chain_absent",
            name("custom"),
            false,
            with(CHAINS, deleted),
            Some(true),
            "nftables custom chain in filter table delete success for ipv4",
        ),
        (
            "chain_absent",
            name("custom"),
            false,
            with(CHAINS, busy),
            Some(false),
            "Failed to delete custom chain in filter table: Chain custom in table filter in family ipv4 could not be deleted\nError: Could not process rule: Device or resource busy\ndelete chain ip filter custom\n                       ^^^^^^ for ipv4",
        ),
    ]);
}

#[test]
fn chains_are_flushed_and_have_a_policy() {
    let with = |more: &str| format!("{CHAINS}{more}");
    let chain = |chain: &str| map! {"name" => "x", "chain" => chain};
    let ignored = |chain: &str| map! {"name" => "x", "chain" => chain, "ignore_absence" => true};
    let policy = |chain: &str, policy: &str| map! {"name" => "x", "chain" => chain, "policy" => policy};
    let set = "$ nft -- add chain ip filter input '{ policy drop; }'\n";
    let flush = "$ nft -- flush chain ip filter input\n";
    check_states(vec![
        ("flush", chain("input"), true, CHAINS.into(), None, "nftables flush not performed in test mode."),
        (
            "flush",
            chain("input"),
            false,
            with(flush),
            Some(true),
            "Flush nftables rules in filter table input chain ipv4 family",
        ),
        (
            "flush",
            map! {"name" => "x"},
            false,
            with("$ nft -- flush table ip filter\n"),
            Some(true),
            "Flush nftables rules in filter table  chain ipv4 family",
        ),
        (
            "flush",
            chain("gone"),
            false,
            CHAINS.into(),
            Some(false),
            "Failed to flush chain gone in table filter in family ipv4, chain does not exist.",
        ),
        (
            "flush",
            chain("input"),
            false,
            EMPTY.into(),
            Some(false),
            "Failed to flush table filter in family ipv4, table does not exist.",
        ),
        (
            "flush",
            ignored("gone"),
            false,
            CHAINS.into(),
            Some(true),
            "Flush nftables rules in filter table gone chain ipv4 family",
        ),
        (
            "flush",
            ignored("input"),
            false,
            EMPTY.into(),
            Some(true),
            "Flush nftables rules in filter table input chain ipv4 family",
        ),
        (
            "set_policy",
            policy("input", "ACCEPT"),
            false,
            CHAINS.into(),
            Some(true),
            "nftables default policy for chain input on table filter for ipv4 already set to ACCEPT",
        ),
        (
            "set_policy",
            policy("input", "drop"),
            true,
            CHAINS.into(),
            None,
            "nftables default policy for chain input on table filter for ipv4 needs to be set to drop",
        ),
        (
            "set_policy",
            policy("input", "DROP"),
            false,
            with(set),
            Some(true),
            "Set default policy for input to DROP family ipv4",
        ),
        (
            "set_policy",
            policy("custom", "drop"),
            false,
            CHAINS.into(),
            Some(false),
            "Failed to set nftables default policy",
        ),
        (
            "set_policy",
            policy("input", "drop"),
            false,
            with(&format!("{set}{REFUSED}")),
            Some(false),
            "Failed to set nftables default policy",
        ),
    ]);
}
