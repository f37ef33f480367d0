use brine_value::{Map, list, map};

use super::*;

/// Returns the failures for these options, with a temporary directory.
fn failures(options: Map) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().display().to_string();
    std::fs::write(directory.path().join("file"), "").unwrap();
    let mut opts = map! {"root_dir" => &root, "interface" => "127.0.0.1", "publish_port" => 0, "ret_port" => 0};
    opts.extend(options);
    let config = MasterConfig::load(directory.path(), &opts).unwrap().config;
    let findings = check(&config, brine_master_runners::MODULES).into_iter();
    findings.filter(Finding::is_failure).map(|finding| finding.message.replace(&root, "ROOT")).collect()
}

#[test]
fn invalid_configurations_are_reported() {
    for (options, expected) in [
        (map! {}, None),
        (map! {"event_return" => "cassandra_cql"}, Some("option 'event_return': unknown returner 'cassandra_cql'")),
        (map! {"event_return" => "sqlite3"}, Some("option 'event_return': option 'sqlite3.database': it is required")),
        (map! {"master_job_cache" => "couchbase"}, Some("option 'master_job_cache': unknown returner 'couchbase'")),
        (map! {"reactor_cooldown" => map! {"x" => 60}}, None),
        (
            map! {"reactor_cooldown" => map! {"x" => "soon"}},
            Some("option 'reactor': 'reactor_cooldown': 'x': duration"),
        ),
        (map! {"publish_signing_algorithm" => "none"}, Some("option 'publish_signing_algorithm': ")),
        (map! {"interface" => "203.0.113.7"}, Some("option 'publish_port': listening on 203.0.113.7:0 failed: ")),
        (
            map! {"ext_pillar" => list![map! {"reclass" => map! {}}]},
            Some("option 'ext_pillar': 'reclass' is not there"),
        ),
        (map! {"ext_pillar" => "x"}, Some("option 'ext_pillar' is invalid: expected a list")),
        (
            map! {"schedule" => map! {"a" => map! {"function" => "test.arg", "secons" => 5}}},
            Some("option 'schedule': job 'a': unknown option 'secons'"),
        ),
        (
            map! {"schedule" => map! {"a" => map! {"function" => "no.such", "seconds" => 5}}},
            Some("option 'schedule': job 'a': there is no function 'no.such'"),
        ),
        (
            map! {"reactor" => list![map! {"x" => "/nonexistent/x.sls"}]},
            Some("the reactor entry 'x' names a file that does not exist: /nonexistent/x.sls"),
        ),
        (map! {"engines" => list!["script"]}, Some("option 'engines': 'script': the argument 'cmd' is missing")),
        (map! {"engines" => list!["nope"]}, Some("option 'engines': 'nope': there is no engine 'nope'")),
        (map! {"reactor" => 5}, Some("option 'reactor': ")),
        (
            map! {"reactor_rules" => list!["/nonexistent/*.yml"]},
            Some("a rule over time is skipped: /nonexistent/*.yml"),
        ),
        (map! {"renderer" => "other|yaml"}, Some("option 'renderer': The renderer \"other|yaml\" is not available")),
        (
            map! {"fileserver_backend" => list!["roots", "svnfs"]},
            Some("option 'fileserver_backend': 'svnfs' is not supported"),
        ),
        (
            map! {"cachedir" => "/file"},
            Some("option 'cachedir': ROOT/file is invalid: expected a directory, got a file"),
        ),
        (map! {"pki_dir" => "/file"}, Some("option 'pki_dir': ROOT/file is invalid: expected a directory, got a file")),
        (map! {"sock_dir" => "x".repeat(120)}, Some("the path has more than 107 bytes")),
        (map! {"ciphers" => list!["rot13"]}, Some("option 'ciphers': ")),
        (map! {"keys.cache_driver" => "redis"}, Some("option 'keys.cache_driver': ")),
        (map! {"sock_group" => "nosuch"}, None),
        (
            map! {"sock_group" => "nosuch", "publisher_acl" => map! {"fred" => list!["test.ping"]}},
            Some("option 'sock_group': the group 'nosuch' does not exist on this host: create it by `groupadd"),
        ),
        (map! {"state_output" => "tersee"}, Some("option 'state_output' is invalid: expected full, ")),
        (map! {"key_pass" => "sdb://x"}, Some("option 'key_pass': ")),
    ] {
        let messages = failures(options.clone());
        match expected {
            None => assert_eq!(messages, Vec::<String>::new()),
            Some(part) => {
                assert!(messages.iter().any(|line| line.contains(part)), "{options:?}: {part} is not in {messages:?}");
            }
        }
    }
}

#[test]
fn each_finding_is_reported_once() {
    let options = map! {"fileserver_backend" => list!["roots", "svnfs"], "event_return" => list!["cassandra_cql"]};
    assert_eq!(failures(options).len(), 2);
}

#[test]
fn rights_that_permit_nothing_are_reported() {
    let opts = map! {
        "publisher_acl" => map! {"ann" => list!["test.*"], "bob" => "test.ping"},
        "external_auth" => map! {"pam" => map! {"kim" => list!["@wheel.key.list"], "sam" => list!["@runner"]}},
        "peer" => map! {"m1" => list!["test.*"], "m2" => "test.*", "m3" => map! {"m1" => list!["test.ping"]}},
    };
    let config = MasterConfig::load(std::path::Path::new("/nonexistent"), &opts).unwrap().config;
    let expected = [
        "option 'publisher_acl': an entry of 'bob' permits nothing: expected a list of entries, got 'test.ping'",
        "option 'external_auth': 'pam': an entry of 'kim' permits nothing: '@wheel.key.list' names neither a kind nor a \
         module: write '@wheel': [key.list]",
        "option 'peer': an entry of 'm3' permits nothing: expected a list of functions, got a mapping",
    ];
    assert_eq!(rights(&config), expected);
}
