//! The states of rules.

use brine_value::{Map, map};

use super::CHAINS;
use super::states::{EMPTY, REFUSED, check_states};

#[test]
fn rules_are_in_their_chain_or_not() {
    let with = |more: &str| format!("{CHAINS}{more}");
    let web = map! {"name" => "web", "chain" => "input", "table" => "filter", "proto" => "tcp", "dports" => "80,443", "jump" => "accept"};
    let ssh = map! {"name" => "ssh", "chain" => "input", "proto" => "tcp", "dport" => 22, "jump" => "accept"};
    let lost = map! {"name" => "lost", "chain" => "input", "sorce" => "10.0.0.1", "jump" => "accept"};
    let at = |mut rule: Map, position: i64| {
        rule.insert("position".into(), position.into());
        rule
    };
    let added = "$ nft -- add rule ip filter input 'tcp dport { 22 } accept'\n";
    let inserted = "$ nft -- insert rule ip filter input 'tcp dport { 22 } accept'\n";
    let placed = "$ nft -- insert rule ip filter input position 4 'tcp dport { 22 } accept'\n";
    let deleted = "$ nft -- delete rule ip filter input handle 4\n";
    let reason = "Operation not permitted (you must be root)\nnetlink: Error: cache initialization failed: Operation not permitted";
    let not_added = format!(
        "Failed to set nftables rule for ssh.\nAttempted rule was tcp dport {{ 22 }} accept for ipv4.\nFailed to add rule \"tcp dport {{ 22 }} accept\" chain input in table filter in family ipv4.\n{reason}"
    );
    let not_inserted = format!(
        "Failed to set nftables rule for ssh.\nAttempted rule was tcp dport {{ 22 }} accept\nFailed to add rule \"tcp dport {{ 22 }} accept\" chain input in table filter in family ipv4.\n{reason}"
    );
    let not_deleted = format!(
        "Failed to delete nftables rule for web.\nAttempted rule was tcp dport {{ 443, 80 }} accept\nFailed to delete rule \"tcp dport {{ 443, 80 }} accept\" in chain input  table filter in family ipv4\n{reason}"
    );
    check_states(vec![
        (
            "append",
            web.clone(),
            false,
            CHAINS.into(),
            Some(true),
            "nftables rule for web already set (tcp dport { 443, 80 } accept) for ipv4",
        ),
        (
            "append",
            ssh.clone(),
            true,
            CHAINS.into(),
            None,
            "nftables rule for ssh needs to be set (tcp dport { 22 } accept) for ipv4",
        ),
        (
            "append",
            ssh.clone(),
            false,
            with(added),
            Some(true),
            "Set nftables rule for ssh to: tcp dport { 22 } accept for ipv4",
        ),
        ("append", ssh.clone(), false, with(&format!("{added}{REFUSED}")), Some(false), &not_added),
        (
            "append",
            ssh.clone(),
            false,
            EMPTY.into(),
            Some(false),
            "Failed to set nftables rule for ssh.\nAttempted rule was tcp dport { 22 } accept for ipv4.\nTable filter in family ipv4 does not exist",
        ),
        (
            "append",
            lost,
            false,
            CHAINS.into(),
            Some(false),
            "nftables rules have no option sorce: correct it, or remove it",
        ),
        (
            "append",
            map! {"name" => "none", "chain" => "input"},
            false,
            CHAINS.into(),
            Some(false),
            "Rule needs to be specified",
        ),
        (
            "insert",
            web.clone(),
            false,
            CHAINS.into(),
            Some(true),
            "nftables rule for web already set for ipv4 (tcp dport { 443, 80 } accept)",
        ),
        (
            "insert",
            ssh.clone(),
            true,
            CHAINS.into(),
            None,
            "nftables rule for ssh needs to be set for ipv4 (tcp dport { 22 } accept)",
        ),
        (
            "insert",
            ssh.clone(),
            false,
            with(inserted),
            Some(true),
            "Set nftables rule for ssh to: tcp dport { 22 } accept for ipv4",
        ),
        (
            "insert",
            at(ssh.clone(), 4),
            false,
            with(placed),
            Some(true),
            "Set nftables rule for ssh to: tcp dport { 22 } accept for ipv4",
        ),
        ("insert", ssh.clone(), false, with(&format!("{inserted}{REFUSED}")), Some(false), &not_inserted),
        (
            "delete",
            ssh.clone(),
            false,
            CHAINS.into(),
            Some(true),
            "nftables rule for ssh already absent for ipv4 (tcp dport { 22 } accept)",
        ),
        (
            "delete",
            web.clone(),
            true,
            CHAINS.into(),
            None,
            "nftables rule for web needs to be deleted for ipv4 (tcp dport { 443, 80 } accept)",
        ),
        (
            "delete",
            web.clone(),
            false,
            with(deleted),
            Some(true),
            "Delete nftables rule for web tcp dport { 443, 80 } accept",
        ),
        (
            "delete",
            at(map! {"name" => "4", "chain" => "input"}, 4),
            false,
            with(deleted),
            Some(true),
            "Delete nftables rule for 4 ",
        ),
        (
            "delete",
            at(web.clone(), 4),
            false,
            with(deleted),
            Some(true),
            "Delete nftables rule for web tcp dport { 443, 80 } accept",
        ),
        (
            "delete",
            at(web.clone(), 6),
            false,
            CHAINS.into(),
            Some(true),
            "nftables rule for web already absent for ipv4 (tcp dport { 443, 80 } accept)",
        ),
        (
            "delete",
            at(map! {"name" => "9", "chain" => "input"}, 9),
            false,
            CHAINS.into(),
            Some(true),
            "nftables rule for 9 already absent for ipv4 ()",
        ),
        ("delete", web, false, with(&format!("{deleted}{REFUSED}")), Some(false), &not_deleted),
    ]);
}
