use std::io::Write;

use brine_value::list;

use super::*;

fn entry(kind: i16, line: &str, user: &str) -> Vec<u8> {
    let mut entry = vec![0; RECORD_SIZE as usize];
    let mut put = |at: usize, bytes: &[u8]| entry[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &kind.to_ne_bytes());
    put(4, &4242i32.to_ne_bytes());
    put(8, line.as_bytes());
    put(40, b"ts/3");
    put(44, user.as_bytes());
    put(76, b"10.0.0.1");
    put(336, &7i32.to_ne_bytes());
    put(340, &1_700_000_000i32.to_ne_bytes());
    entry
}

fn logins(config: &Value) -> Result<Logins, String> {
    // The beacon of `start_for` is opaque to tests.
    start_for(&Settings::read("wtmp", config)?, "/nonexistent", true)?;
    let settings = Settings::read("wtmp", config)?;
    let who = |name: &str| {
        let all = settings.get(name).and_then(Value::as_map).cloned().unwrap_or_default();
        let one = |(name, options): (&Value, &Value)| LoginRule {
            name: name.to_string(),
            times: times("", Some(options)).unwrap(),
        };
        all.iter().map(one).collect()
    };
    Ok(Logins {
        file: PathBuf::new(),
        has_actions: true,
        users: who("users"),
        groups: who("groups"),
        defaults: times("defaults", settings.get("defaults"))?,
        offset: None,
        on_line: HashMap::new(),
    })
}

#[test]
fn new_entries_are_reported_with_the_user_who_logged_out() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&entry(LOGIN, "pts/1", "old")).unwrap();
    let mut logins = Logins { file: file.path().to_owned(), ..logins(&list![]).unwrap() };
    let now = brine_clock::now();
    assert!(logins.events(&now).unwrap().is_empty());
    let rest = entry(LOGOUT, "pts/3", "");
    file.write_all(&entry(LOGIN, "pts/3", "ada")).unwrap();
    file.write_all(&rest[..100]).unwrap();
    let report = logins.events(&now).unwrap();
    let expected = map! {
        "type" => 7, "PID" => 4242, "line" => "pts/3", "inittab" => "ts/3", "user" => "ada",
        "hostname" => "10.0.0.1", "exit_status" => 0, "session" => 0, "time" => 7, "addr" => 1_700_000_000,
        "action" => "login",
    };
    assert_eq!(report, [expected]);
    file.write_all(&rest[100..]).unwrap();
    let report = logins.events(&now).unwrap();
    assert_eq!(
        (report.len(), report[0].get("action"), report[0].get("user")),
        (1, Some(&"logout".into()), Some(&"ada".into()))
    );
    assert!(logins.events(&now).unwrap().is_empty());
}

#[test]
fn logins_are_reported_by_user_group_and_time() {
    let range = |start: &str, end: &str| map! {"time_range" => map! {"start" => start, "end" => end}};
    let now: DateTime = "2026-11-21T12:00:00".parse().unwrap();
    for (config, user, report) in [
        (list![], "ada", true),
        (list![map! {"users" => map! {"ada" => Value::Nil}}], "ada", true),
        (list![map! {"users" => map! {"ada" => Value::Nil}}], "bob", false),
        (list![map! {"groups" => map! {"wheel" => Value::Nil}}], "bob", true),
        (list![map! {"groups" => map! {"none" => Value::Nil}}], "bob", false),
        (list![map! {"users" => map! {"ada" => range("8am", "4pm")}}], "ada", true),
        (list![map! {"users" => map! {"ada" => range("1pm", "4pm")}}], "ada", false),
        (list![map! {"defaults" => range("1pm", "4pm")}], "ada", false),
        (
            list![map! {"users" => map! {"ada" => range("8am", "4pm")}}, map! {"defaults" => range("1pm", "2pm")}],
            "ada",
            true,
        ),
    ] {
        let logins = logins(&config).unwrap();
        assert_eq!(logins.wants(user, now, |group| group == "wheel"), report, "{config} {user}");
    }
    assert!(is_member("root", "root"));
    assert!(!is_member("root", "no-such-group"));
}

#[test]
fn options_are_checked() {
    for (config, error) in [
        (list![map! {"users" => "ada"}], "option 'users': expected a mapping, got ada"),
        (list![map! {"defaults" => 5}], "option 'defaults': expected a mapping, got 5"),
        (
            list![map! {"defaults" => map! {"time_range" => map! {"start" => "8am"}}}],
            "defaults: time_range has no 'end'",
        ),
        (
            list![map! {"users" => map! {"ada" => map! {"time_range" => map! {"start" => "early"}}}}],
            "users: ada: 'early' is not a time: expected a time such as 8am or 17:30",
        ),
    ] {
        assert_eq!(logins(&config).map(|_| ()).unwrap_err(), error);
    }
}
