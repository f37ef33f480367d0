//! Accepted and rejected rosters.

use brine_value::map;

use super::*;

pub(super) fn options(file: PathBuf) -> RosterOptions {
    RosterOptions {
        roster: "flat".into(),
        file,
        defaults: map! {"user" => "default", "timeout" => 7},
        user: Some("cli".into()),
        port: Some(22),
        passwd: None,
        key: None,
        priv_passwd: None,
        sudo: false,
        sudo_user: None,
        identities_only: false,
        nodegroups: map! {"web" => "web*"},
        opts: Map::new(),
        directory: PathBuf::new(),
        domain: String::new(),
        known_hosts: PathBuf::new(),
        scan: (vec![22], Duration::from_millis(10)),
        range_server: "127.0.0.1:1".into(),
        cached: HashMap::new(),
    }
}

#[test]
fn hosts_have_their_own_fields_before_the_defaults() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("roster");
    std::fs::write(
            &path,
            "{% for n in [1, 2] %}\nweb{{ n }}: 10.0.0.{{ n }}\n{% endfor %}\ndb1:\n  host: db\n  user: me\n  port: 2222\n  sudo: True\n  grains: {role: db}\n  minion_opts: {saltenv: dev}\n",
        )
        .unwrap();
    let options = options(path);
    let of = |tgt: &str, kind: &str| {
        let hosts = hosts(&options, &tgt.into(), kind.parse().unwrap(), &Functions::new()).unwrap();
        hosts.keys().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    for (tgt, kind, expected) in [
        ("*", "glob", "web1 web2 db1"),
        ("web*", "glob", "web1 web2"),
        ("web[2]", "pcre", "web2"),
        ("db1,web1", "list", "web1 db1"),
        ("web", "nodegroup", "web1 web2"),
        ("role:db", "grain", "db1"),
        ("web* and not web1", "compound", "web2"),
        ("none", "glob", ""),
    ] {
        assert_eq!(of(tgt, kind), expected, "{tgt}");
    }
    let all = hosts(&options, &"*".into(), TargetKind::Glob, &Functions::new()).unwrap();
    let (web1, db1) = (&all[0], &all[2]);
    assert_eq!(
        (web1.host.as_str(), web1.user.as_deref(), web1.port, web1.timeout),
        ("10.0.0.1", Some("default"), Some(22), Some(7))
    );
    assert_eq!((db1.host.as_str(), db1.user.as_deref(), db1.port, db1.sudo), ("db", Some("me"), Some(2222), true));
}

#[test]
fn host_names_that_ssh_reads_as_options_are_rejected() {
    for (fields, part) in [
        (map! {"host" => "-oProxyCommand=touch /x"}, "'host'"),
        (map! {"host" => "a b"}, "no name"),
        (map! {"host" => "a;b"}, "no name"),
        (map! {"host" => "$(id)"}, "no name"),
        (map! {"host" => ""}, "'host'"),
        (map! {"user" => "-l"}, "'user'"),
        (map! {"user" => "a\nb"}, "'user'"),
        (map! {"priv" => "-i"}, "'priv'"),
        (map! {"ssh_options" => "-v"}, "'ssh_options'"),
        (map! {"sudo_user" => "-s"}, "'sudo_user'"),
        (map! {"set_path" => "$(id)"}, "'set_path'"),
        (map! {"port" => 70000}, "no TCP port"),
        (map! {"port" => "x"}, "'port'"),
        (map! {"minion_opts" => "x"}, "'minion_opts'"),
    ] {
        let error = host(&options(PathBuf::new()), "web1", fields.clone()).unwrap_err();
        assert!(error.contains(part), "{fields:?}: {error}");
    }
}
