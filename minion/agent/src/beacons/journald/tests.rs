use std::time::{Duration, Instant};

use brine_value::{list, map};

use super::super::tests::wrong;
use super::*;

// Output of journalctl 252.
const ENTRIES: &str = r#"{"CODE_LINE":"12","_MACHINE_ID":"fedcba9876543210fedcba9876543210","__MONOTONIC_TIMESTAMP":"123456","__REALTIME_TIMESTAMP":"1764049790123456","_PID":"812","SYSLOG_IDENTIFIER":"sshd","_BOOT_ID":"0123456789abcdef0123456789abcdef","_COMM":"sshd","_UID":"0","__CURSOR":"s=d4dc;i=1","PRIORITY":"6","MESSAGE":"Accepted publickey for ada"}
{"TAGS":["a","b"],"PRIORITY":"4","__REALTIME_TIMESTAMP":"1764049791123456","MESSAGE":"two","SYSLOG_IDENTIFIER":"cron","__CURSOR":"s=d4dc;i=2"}
"#;

#[test]
fn entries_are_parsed_with_the_types_of_the_python_package() {
    let entry = parsed(ENTRIES.lines().next().unwrap().as_bytes()).unwrap();
    for (name, value) in [
        ("PRIORITY", Value::from(6)),
        ("_PID", 812.into()),
        ("MESSAGE", "Accepted publickey for ada".into()),
        ("__REALTIME_TIMESTAMP", "2025-11-25T05:49:50.123456Z".into()),
        ("__MONOTONIC_TIMESTAMP", "123456".into()),
    ] {
        assert_eq!(entry.get(name), Some(&value), "{name}");
    }
    assert_eq!(parsed(b"{\"MESSAGE\": "), None);
    for (fields, expected) in [
        (map! {"SYSLOG_IDENTIFIER" => "sshd", "PRIORITY" => 6}, true),
        (map! {"SYSLOG_IDENTIFIER" => "sshd", "PRIORITY" => 5}, false),
        (map! {"NONE" => "x"}, false),
        (map! {}, true),
    ] {
        assert_eq!(has(&entry, &fields), expected, "{fields:?}");
    }
}

/// Polls until there are `count` events.
fn polled(journal: &mut Journal, count: usize) -> Vec<String> {
    let (mut events, end) = (Vec::new(), Instant::now() + Duration::from_secs(20));
    while events.len() < count && Instant::now() < end {
        let text = |event: &Map, name: &str| event.get(name).unwrap().to_string();
        events.extend(journal.events().unwrap().iter().map(|event| text(event, "tag") + " " + &text(event, "MESSAGE")));
        std::thread::sleep(Duration::from_millis(5));
    }
    events
}

#[test]
fn entries_are_reported_by_service_and_read_on_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let (entries, words) = (directory.path().join("entries"), directory.path().join("words"));
    std::fs::write(&entries, ENTRIES).unwrap();
    let script = "echo \"$3\" >> \"$2\"; cat \"$1\"; exec sleep 100";
    let path = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let command = ["sh".into(), "-c".into(), script.into(), "sh".into(), path(&entries), path(&words)];
    let config = list![map! {"services" => map! {
        "ssh" => map! {"SYSLOG_IDENTIFIER" => "sshd"}, "all" => map! {}, "none" => map! {"PRIORITY" => 0},
    }}];
    let services = services(&Settings::read("journald", &config).unwrap()).unwrap();
    let mut journal = Journal { command: command.into(), services, follower: None, cursor: None };
    let expected = ["ssh Accepted publickey for ada", "all Accepted publickey for ada", "all two"];
    assert_eq!(polled(&mut journal, 3), expected);
    journal.follower = None;
    assert_eq!(polled(&mut journal, 3), expected);
    assert_eq!(std::fs::read_to_string(&words).unwrap(), "--lines=0\n--after-cursor=s=d4dc;i=2\n");
}

#[test]
fn an_ended_journalctl_is_reported_and_restarted() {
    let mut journal =
        Journal { command: vec!["false".into()], services: vec![], follower: None, cursor: Some("x".into()) };
    let end = Instant::now() + Duration::from_secs(20);
    let error = loop {
        match journal.events() {
            Err(error) => break error,
            Ok(_) => assert!(Instant::now() < end),
        }
    };
    assert_eq!(error, "journalctl has ended; restarting it at the next poll");
    assert!(journal.cursor.is_none() && journal.follower.is_none());
}

#[test]
fn options_are_checked() {
    let config = list![map! {"services" => map! {"sshd" => "x"}}];
    assert_eq!(wrong("journald", &config), "services: sshd: expected a mapping of fields, got x");
    assert_eq!(
        wrong("journald", &list![map! {"services" => list![]}]),
        "option 'services': expected a mapping, got list"
    );
}
