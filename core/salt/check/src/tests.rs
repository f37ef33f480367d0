use super::*;
use brine_value::{list, map};

#[test]
fn directories_are_examined_up_to_what_exists() {
    let directory_of_test = tempfile::tempdir().unwrap();
    let at = directory_of_test.path();
    std::fs::write(at.join("file"), "").unwrap();
    assert_eq!(directory("cachedir", &at.join("new/deep")), None);
    assert_eq!(directory("cachedir", at), None);
    for path in ["file", "file/below/it"] {
        let finding = directory("cachedir", &at.join(path)).unwrap();
        assert_eq!(finding.severity, Severity::Refused);
        let expected = format!("option 'cachedir': {}/file is invalid: expected a directory, got a file", at.display());
        assert_eq!(finding.message, expected, "{path}");
    }
}

#[test]
fn addresses_of_other_hosts_are_refused_and_used_ports_are_not() {
    assert_eq!(port("interface", "127.0.0.1", 0), None);
    let other = port("interface", "203.0.113.7", 0).unwrap();
    assert_eq!(other.severity, Severity::Refused, "{other}");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let used = port("ret_port", "127.0.0.1", listener.local_addr().unwrap().port()).unwrap();
    assert_eq!(used.severity, Severity::Warning, "{used}");
}

#[test]
fn words_that_an_option_does_not_know_are_reported() {
    for (option, word, expected) in [
        ("state_output", "mixed", None),
        ("state_output", "Changes_ID", None),
        ("state_output", "tersee", Some("got 'tersee': did you mean 'terse'?; it counts as full")),
        ("top_file_merging_strategy", "merge-all", Some("expected merge, same or merge_all, got 'merge-all'")),
        ("pillar_source_merging_strategy", "recursive", Some("it counts as recurse")),
        ("backup_mode", "", None),
        ("backup_mode", "minon", Some("did you mean 'minion'?")),
        ("hash_type", "sha512", None),
        ("hash_type", "sha-256", Some("got 'sha-256'")),
    ] {
        let findings = words(&map! {option => word});
        match expected {
            None => assert_eq!(findings, [], "{option}: {word}"),
            Some(part) => assert!(findings[0].message.contains(part), "{option}: {word}: {findings:?}"),
        }
    }
}

#[test]
fn misspelt_schedule_options_are_reported() {
    let jobs = map! {
        "good" => map! {"function" => "test.ping", "seconds" => 5},
        "typo" => map! {"function" => "test.ping", "secons" => 5},
        "none" => map! {"seconds" => 5},
        "gone" => map! {"function" => "test.pong", "minutes" => 1},
        "enabled" => true,
    };
    let lines: Vec<_> = schedule(&jobs, |name| name == "test.ping").iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "warning: option 'schedule': job 'typo': no time is given; it runs only when it is asked for: add seconds, minutes, hours, days, cron, when or once",
            "error: option 'schedule': job 'typo': unknown option 'secons'",
            "error: option 'schedule': job 'none': option 'function' is missing; it never runs",
            "error: option 'schedule': job 'gone': there is no function 'test.pong'; every run fails",
        ]
    );
}

#[test]
fn unsupported_backends_are_reported_once() {
    let lines: Vec<_> =
        file_server(&map! {"fileserver_backend" => list!["roots", "svnfs", "git", "own"]}, |name| name == "own")
            .iter()
            .map(ToString::to_string)
            .collect();
    assert_eq!(
        lines,
        [
            "error: option 'fileserver_backend': 'svnfs' is not supported: its files are not served; use roots, gitfs or minionfs, or add a module of this name in '_fileserver'"
        ]
    );
}

#[test]
fn top_files_without_templates_are_parsed_and_templates_compiled() {
    let at = tempfile::tempdir().unwrap();
    let roots = Roots::from([("base".to_owned(), vec![at.path().to_owned()])]);
    let top = at.path().join("top.sls");
    for (text, expected) in [
        ("base:\n  '*': [a]\n", None),
        ("base:\n  '*': [a\n", Some(":3: ")),
        ("base:\n  {% if x %}\n  '*': [a]\n", Some("Jinja syntax error")),
        ("base:\n  {{ x }}: [a\n", None),
    ] {
        std::fs::write(&top, text).unwrap();
        let findings = top_files(&roots, "top.sls", "jinja|yaml");
        match expected {
            None => assert_eq!(findings, [], "{text}"),
            Some(part) => assert!(findings[0].message.contains(part), "{text}: {findings:?}"),
        }
    }
}
