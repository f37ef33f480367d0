use brine_value::list;

use super::super::tests::options;
use super::*;

#[test]
fn a_target_may_name_a_host_with_another_user_or_one_that_is_in_no_roster() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("roster");
    std::fs::write(&path, "web1: {host: 192.0.2.1, passwd: of me, user: me}\n'a@b': 192.0.2.9\n").unwrap();
    let mut options = options(path);
    options.passwd = Some("own".into());
    let of = |tgt: Value, kind: &str, options: &RosterOptions| match hosts(
        options,
        &tgt,
        kind.parse().unwrap(),
        &Functions::new(),
    ) {
        Ok(Found::Known(hosts)) => {
            let line = |(id, host): (MinionId, RosterHost)| {
                format!("{id} {}@{} {}", host.user.unwrap(), host.host, host.passwd.unwrap())
            };
            hosts.into_iter().map(line).collect::<Vec<_>>().join(", ")
        }
        Ok(Found::New(id, host)) => format!("new {id} {}@{}", host.user.unwrap(), host.host),
        Err(error) => error.to_string(),
    };
    for (tgt, kind, expected) in [
        ("web*", "glob", "web1 me@192.0.2.1 of me"),
        ("web1", "glob", "web1 me@192.0.2.1 of me"),
        ("192.0.2.1", "glob", "web1 me@192.0.2.1 of me"),
        ("you@web1", "glob", "web1 you@192.0.2.1 own"),
        ("you@192.0.2.1", "glob", "web1 you@192.0.2.1 own"),
        ("a@b", "glob", "a@b default@192.0.2.9 own"),
        ("127.0.0.1", "glob", "new 127.0.0.1 default@127.0.0.1"),
        ("you@127.0.0.1", "glob", "new 127.0.0.1 you@127.0.0.1"),
        ("you@corp@127.0.0.1", "glob", "new 127.0.0.1 you@corp@127.0.0.1"),
        ("::1", "glob", "new ::1 default@::1"),
        ("you@no.such.invalid", "glob", ""),
        ("you@127.0.0.*", "glob", ""),
        ("127.0.0.1", "pcre", ""),
        ("@127.0.0.1", "glob", ""),
        ("you@", "glob", ""),
        ("-oProxyCommand=id@web1", "glob", "the target '-oProxyCommand=id@web1' is invalid: 'user' of web1"),
        ("-oX@127.0.0.1", "glob", "the target '-oX@127.0.0.1' is invalid: 'user' of 127.0.0.1"),
    ] {
        let lines = of(tgt.into(), kind, &options);
        assert!(if expected.is_empty() { lines.is_empty() } else { lines.starts_with(expected) }, "{tgt}: {lines}");
    }
    assert_eq!(of(list!["127.0.0.1"], "list", &options), "");
    // Without a roster file only directly named hosts exist.
    options.file = directory.path().join("none");
    assert_eq!(of("127.0.0.1".into(), "glob", &options), "new 127.0.0.1 default@127.0.0.1");
    assert!(of("web1.invalid".into(), "glob", &options).starts_with("reading the roster"));
    // The targets of these rosters already name hosts.
    options.roster = "scan".into();
    options.scan.0 = vec![1];
    assert_eq!(of("127.0.0.1".into(), "glob", &options), "");
}

#[test]
fn a_new_host_is_added_to_a_roster_that_stays_readable() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("roster");
    let options = options(path.clone());
    let id: MinionId = "db1".parse().unwrap();
    let new = |user: &str| RosterHost { host: "db1".into(), user: Some(user.into()), ..RosterHost::default() };
    for (before, user, expected) in [
        (None, "me", Ok("'db1':\n  host: 'db1'\n  user: 'me'\n")),
        (Some("web1: a"), "me", Ok("web1: a\n'db1':\n  host: 'db1'\n  user: 'me'\n")),
        (
            Some("{% if 0 %}\nx: y\n{% endif %}\n"),
            r"corp\me",
            Ok("{% if 0 %}\nx: y\n{% endif %}\n'db1':\n  host: 'db1'\n  user: 'corp\\me'\n"),
        ),
        (Some("a: b\n"), "{{ x }}", Err("a character that YAML would take")),
        (Some("a: b\n"), "x'y", Err("a character that YAML would take")),
        (Some("{a: b}\n"), "me", Err("roster")),
        (Some("a: |\n  {# text\n"), "me", Err("roster")),
        (Some("#!json\n{\"a\": \"b\"}\n"), "me", Err("roster")),
    ] {
        std::fs::remove_file(&path).ok();
        if let Some(before) = before {
            std::fs::write(&path, before).unwrap();
        }
        let added = add(&options, &id, &new(user), &Functions::new());
        let after = std::fs::read_to_string(&path).unwrap_or_default();
        match (added, expected) {
            (Ok(()), Ok(expected)) => assert_eq!(after, expected),
            (Err(error), Err(part)) => {
                assert!(error.to_string().contains(part), "{error}");
                assert_eq!(Some(after.as_str()), before);
            }
            (added, _) => panic!("{before:?}: {added:?}"),
        }
    }
    let other = RosterOptions { roster: "ansible".into(), ..options };
    assert!(add(&other, &id, &new("me"), &Functions::new()).unwrap_err().to_string().contains("only the roster flat"));
}
