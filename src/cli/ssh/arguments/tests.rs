use std::path::Path;

use brine_value::{list, map};
use clap::CommandFactory;

use super::*;

#[test]
fn the_configuration_applies_without_command_line_options() {
    let opts = map! {
        "roster" => "sshconfig", "ssh_config_file" => "/x/config", "ssh_priv" => "/x/key",
        "ssh_keepalive_interval" => 30, "ssh_keepalive_count_max" => 2, "nodegroups" => map! {"a" => "web*"},
        "ssh_list_nodegroups" => map! {"b" => list!["web1", "db1"], "c" => "web1,web2"},
    };
    let config = |more: Map| {
        let mut opts = opts.clone();
        opts.extend(more);
        MasterConfig::load(Path::new("/nonexistent"), &opts).unwrap().config
    };
    let parsed = |words: &[&str]| -> Arguments {
        let words = words.iter().map(Into::into).collect();
        usage::parse("salt-ssh", "", Arguments::command(), words).unwrap()
    };
    let roster = |words: &[&str]| parsed(words).roster_options(&config(map! {}), None, "/etc/salt/roster".into());
    assert_eq!(roster(&[]).file, Path::new("/x/config"));
    assert_eq!(roster(&["--roster=flat"]).file, Path::new("/etc/salt/roster"));
    assert_eq!(roster(&["--roster-file=/y"]).file, Path::new("/y"));
    assert_eq!((roster(&[]).key.as_deref(), roster(&["--priv=/y"]).key.as_deref()), (Some("/x/key"), Some("/y")));
    let groups = map! {"a" => "web*", "b" => "L@web1,db1", "c" => "L@web1,web2"};
    assert_eq!(roster(&[]).nodegroups, groups);
    for (words, more, expected) in [
        (&[][..], map! {}, (Some(30), Some(2))),
        (&["--keepalive-interval=5", "--keepalive-count-max=9"], map! {}, (Some(5), Some(9))),
        (&["--disable-keepalive"], map! {}, (Some(0), Some(2))),
        (&[], map! {"ssh_keepalive" => false}, (Some(0), Some(2))),
    ] {
        let options = parsed(words).ssh_options(&config(more));
        assert_eq!((options.keepalive, options.keepalive_count), expected, "{words:?}");
    }
    let directory = tempfile::tempdir().unwrap();
    let (known_hosts, absent) = (directory.path().join("known"), directory.path().join("absent"));
    std::fs::write(&known_hosts, "").unwrap();
    let named = format!("UserKnownHostsFile={}", known_hosts.display());
    for (file, words, expected) in [
        (&known_hosts, &[][..], &["A=b", &named][..]),
        (&known_hosts, &["--no-host-keys"], &["A=b"]),
        (&absent, &[], &["A=b"]),
    ] {
        let more = map! {"known_hosts_file" => file.display().to_string(), "ssh_options" => list!["A=b"]};
        assert_eq!(parsed(words).ssh_options(&config(more)).ssh_options, expected, "{file:?} {words:?}");
    }
}
