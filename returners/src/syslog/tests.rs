use brine_value::{list, map};

use super::*;

#[test]
fn a_return_is_one_message() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("log");
    let daemon = UnixDatagram::bind(&socket).unwrap();
    let opts = map! {
        "syslog" => map! {"facility" => "LOG_LOCAL3", "tag" => "mine", "options" => list!["LOG_PID"]},
        "syslog.socket" => socket.display().to_string(),
    };
    let options = Options::new(&opts, None).for_job(None, &map! {"level" => "LOG_DEBUG"});
    let one = map! {"jid" => "20261120235852025555", "id" => "web1", "fun" => "test.arg", "return" => "a\nb"};
    Syslog::new(&options).unwrap().returner(&Return::from_map(one).unwrap()).unwrap();
    let mut buffer = [0; 1000];
    let length = daemon.recv(&mut buffer).unwrap();
    let line = std::str::from_utf8(&buffer[..length]).unwrap();
    // 19 * 8 + 7; then the time, such as `Nov 20 23:58:52`.
    assert!(line.starts_with("<159>") && line.as_bytes()[8] == b' ' && line.as_bytes()[20] == b' ', "{line}");
    let expected = format!(
        r#"mine[{}]: {{"jid": "20261120235852025555", "id": "web1", "fun": "test.arg", "return": "a\nb"}}"#,
        std::process::id()
    );
    assert_eq!(&line[21..], expected);
}

#[test]
fn a_missing_daemon_and_a_large_return_are_errors() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("log");
    let opts = map! {"syslog.socket" => socket.display().to_string()};
    let syslog = Syslog::new(&Options::new(&opts, None)).unwrap();
    let one = |text: String| {
        let one = map! {"jid" => "20261120235852025555", "id" => "web1", "fun" => "test.arg", "return" => text};
        syslog.returner(&Return::from_map(one).unwrap()).unwrap_err().to_string()
    };
    assert!(one(String::new()).starts_with(&format!("syslog at {} (syslog) failed: ", socket.display())));
    let _daemon = UnixDatagram::bind(&socket).unwrap();
    assert!(one("x".repeat(10_000_000)).contains("(message of 100000"));
}

#[test]
fn invalid_options_are_named() {
    for (name, value, expected) in [
        ("level", "LOG_ERROR".into(), "'LOG_ERROR' is unknown: expected one of LOG_EMERG, "),
        ("facility", "daemon".into(), "'daemon' is unknown: expected one of LOG_KERN, "),
        ("tag", "x".repeat(33).into(), "it has more than 32 characters"),
        ("options", list!["LOG_PIP"], "'LOG_PIP' is unknown: expected some of LOG_PID, "),
    ] {
        let options = Options::new(&map! {format!("syslog.{name}") => value}, None);
        let error = Syslog::new(&options).err().unwrap().to_string();
        assert!(error.starts_with(&format!("option 'syslog.{name}': {expected}")), "{error}");
    }
}
