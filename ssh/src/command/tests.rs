use super::*;

fn host() -> RosterHost {
    RosterHost { host: "web1.example.com".into(), ..RosterHost::default() }
}

#[test]
fn arguments_end_with_the_host_and_one_line() {
    let options = Options { connect_timeout: 60, ..Options::default() };
    let last = |host: &RosterHost| {
        let all = arguments(host, &options, None, "line 'x'");
        all[all.len() - 4..].join(" ")
    };
    assert_eq!(last(&host()), "-T -- web1.example.com line 'x'");
    let all = |host: RosterHost| arguments(&host, &options, None, "").join(" ");
    for (host, part, has) in [
        (host(), "-o BatchMode=yes", true),
        (RosterHost { passwd: Some("s".into()), ..host() }, "BatchMode", false),
        (RosterHost { passwd: Some("s3cret".into()), ..host() }, "s3cret", false),
        (RosterHost { user: Some("me".into()), ..host() }, "-o User=me", true),
        (RosterHost { port: Some(2222), ..host() }, "-o Port=2222", true),
        (RosterHost { key: Some("/k y".into()), ..host() }, "-o IdentityFile=/k y", true),
        (RosterHost { key: Some("agent-forwarding".into()), ..host() }, "-o ForwardAgent=yes", true),
        (RosterHost { ssh_options: vec!["ProxyJump=a".into()], ..host() }, "-o ProxyJump=a", true),
        (RosterHost { timeout: Some(5), ..host() }, "-o ConnectTimeout=5", true),
        (RosterHost { tty: true, ..host() }, "-tt -- web1.example.com", true),
    ] {
        assert_eq!(all(host).contains(part), has, "{part}");
    }
}

#[test]
fn variable_parts_are_quoted_for_the_shell_of_the_host() {
    let directory = tempfile::tempdir().unwrap();
    let own = directory.path().join("own");
    std::fs::write(&own, "").unwrap();
    let programs = Programs::read(directory.path(), &own).unwrap();
    let line = |host: RosterHost| start(&host, &programs, "T", false);
    assert!(line(host()).contains("d=\"$HOME/.cache/brine-ssh\""));
    assert!(line(RosterHost { thin_dir: Some("/a'; rm -rf /".into()), ..host() }).contains(r#"d='/a'"'"'; rm -rf /'"#));
    let other = line(RosterHost { sudo_user: Some("a; b".into()), ..host() });
    assert!(other.ends_with("exec sudo -n -u 'a; b' -- \"$f\" ssh-target"), "{other}");
    let script = RosterHost { pre_flight_args: vec!["a".into(), "$(id)".into()], ..host() };
    let flight = pre_flight(&script, false);
    assert!(flight.starts_with("[ ! -d \"$HOME/.cache/brine-ssh\" ] || exit 0; "), "{flight}");
    assert!(flight.contains("/bin/sh \"$t\" a '$(id)';"), "{flight}");
    assert!(pre_flight(&script, true).starts_with("umask"));
    let terminal = line(RosterHost { tty: true, ..host() });
    assert!(
        terminal.starts_with("stty raw -echo; umask") && terminal.ends_with("ssh-target 2>/dev/null"),
        "{terminal}"
    );
    assert_eq!(raw(&RosterHost { sudo: true, ..host() }, "id -u"), "sudo -n -- /bin/sh -c 'id -u'");
    assert_eq!(raw(&host(), "id -u"), "id -u");
    assert!(start(&host(), &programs, "T", true).ends_with("rm -rf \"$d\"; exit $s"));
}
