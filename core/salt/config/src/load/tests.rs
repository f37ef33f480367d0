use super::*;
use brine_value::map;

fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    directory
}

fn master(files: &[(&str, &str)]) -> (Result<Loaded<MasterConfig>, ConfigError>, String) {
    let directory = directory(files);
    let path = directory.path().display().to_string();
    (MasterConfig::load(directory.path(), &Map::new()), path)
}

#[test]
fn reactor_entries_of_drop_ins_are_appended_in_any_form() {
    for (main, drop_in) in [
        ("{a: [/1.sls], b: /2.sls}", "[{a: [/3.sls]}]"),
        ("[{a: [/1.sls]}, {b: /2.sls}]", "{a: [/3.sls]}"),
        ("{a: [/1.sls], b: /2.sls}", "{a: [/3.sls]}"),
    ] {
        let (loaded, _) =
            master(&[("master", &format!("reactor: {main}\n")), ("master.d/x.conf", &format!("reactor: {drop_in}\n"))]);
        let list = brine_value::list![
            map! {"a" => brine_value::list!["/1.sls"]},
            map! {"b" => "/2.sls"},
            map! {"a" => brine_value::list!["/3.sls"]}
        ];
        assert_eq!(loaded.unwrap().config.reactor, list, "{main} and {drop_in}");
    }
}

#[test]
fn defaults_are_salts_and_drop_ins_are_merged() {
    let (loaded, path) = master(&[
        ("master", "root_dir: /tmp/r\nworker_threads: 2\nnodegroups: {a: 'x*'}\nreactor:\n  - 'a': [/1.sls]\n"),
        ("master.d/b.conf", "worker_threads: 3\nnodegroups: {b: 'y*'}\nreactor:\n  - 'b': [/2.sls]\n"),
        ("master.d/ignored.txt", "worker_threads: 4\n"),
    ]);
    let Loaded { config, warnings, .. } = loaded.unwrap();
    assert_eq!(warnings, []);
    assert_eq!((config.ret_port, config.worker_threads), (4506, 3));
    assert_eq!(config.pki_dir, Path::new("/tmp/r/etc/salt/pki/master"));
    assert_eq!(config.nodegroups, map! {"a" => "x*", "b" => "y*"});
    assert_eq!(config.reactor.as_list().unwrap().len(), 2);
    assert_eq!(config.opts.get("conf_file"), Some(&format!("{path}/master").into()));
    assert_eq!(config.opts.get("ret_port"), Some(&4506.into()));
}

#[test]
fn unknown_options_are_reported_with_a_suggestion() {
    let (loaded, path) =
        master(&[("master", "# comment\nworker_thread: 2\nredis.host: x\nzmq_filtering: False\nqqqqqqqqqqqq: 1\n")]);
    let texts: Vec<_> = loaded.unwrap().warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            format!("{path}/master:2: unknown option 'worker_thread': did you mean 'worker_threads'?"),
            format!("{path}/master:5: unknown option 'qqqqqqqqqqqq'"),
        ]
    );
}

#[test]
fn included_files_are_read() {
    let (loaded, _) = master(&[
        ("master", "include: [more/*.yml, none]\ndefault_include: drop.d/*.conf\nworker_threads: 1\n"),
        ("drop.d/a.conf", "worker_threads: 2\ntimeout: 2\n"),
        ("more/b.yml", "worker_threads: 3\n"),
        ("master.d/c.conf", "worker_threads: 4\n"),
    ]);
    let Loaded { config, warnings, .. } = loaded.unwrap();
    assert_eq!((config.worker_threads, config.timeout), (3, crate::Number::of(2)));
    assert_eq!(warnings, []);
}

#[test]
fn options_without_effect_are_reported() {
    let (loaded, path) = master(&[
        (
            "master",
            "transport: zeromq\nfileserver_backend: [roots, gitfs]\next_pillar: [{cmd_yaml: ls}]\nauth_mode: 2\nverify_env: True\nclient_acl_verify: False\nmine_functions: {a: []}\nexternal_auth: {}\nsyndic_master: null\nstate_tabular: True\nstate_queue: 2\ngit_pillar_branch: main\n",
        ),
        // Backends are validated in `check.rs`.
        ("master.d/s3.conf", "fileserver_backend: [roots, s3fs]\n"),
    ]);
    let texts: Vec<_> = loaded.unwrap().warnings.iter().map(ToString::to_string).collect();
    let warning = |line, name| format!("{path}/master:{line}: Salt's option '{name}' has no effect in Brine");
    assert_eq!(texts, [warning(4, "auth_mode"), warning(6, "client_acl_verify")]);
}

#[test]
fn errors_name_file_and_line() {
    for (files, message) in [
        (
            &[("master", "a.b: 1\nworker_threads: many\n")][..],
            "/master:2: option 'worker_threads': expected a non-negative integer, got 'many'",
        ),
        (
            &[("master", ""), ("master.d/x.conf", "\nfile_roots: /srv\n")],
            "/master.d/x.conf:2: option 'file_roots': expected a mapping of environment to a list of directories, got str",
        ),
        (
            &[("master", "- a\n")],
            "/master: the configuration is invalid: expected a mapping of option to value, got list",
        ),
        (
            &[("master", "transport: ws\n")],
            "/master:1: option 'transport': expected zeromq or tcp, got ws, which Brine does not support",
        ),
        (&[("master", "transport: zmq\n")], "/master:1: option 'transport': expected zeromq or tcp, got 'zmq'"),
        (
            &[("master", "worker_threads: -1\n")],
            "/master:1: option 'worker_threads': expected a non-negative integer, got -1",
        ),
        (
            &[("master", "a: b: c\n")],
            "/master:1: mapping values are not allowed in this context\na: b: c\n    ^\n  hint: a value that contains a colon \
             and a space must be quoted",
        ),
        (
            &[("master", "a: 1\na: 2\n")],
            "/master:2: found conflicting ID 'a'\na: 2\n^\n  hint: a mapping has this key twice: remove one, or merge what is \
             below them",
        ),
    ] {
        let (loaded, path) = master(files);
        let text = loaded.unwrap_err().to_string();
        assert_eq!(text.strip_prefix(&path), Some(message));
    }
}

#[test]
fn all_options_of_a_wrong_type_are_named() {
    let (loaded, path) = master(&[("master", "worker_threads: many\npublish_port: 99999\n")]);
    let text = loaded.unwrap_err().to_string();
    let mut lines: Vec<_> = text.lines().map(|line| line.strip_prefix(&path).unwrap()).collect();
    lines.sort_unstable();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].starts_with("/master:1: option 'worker_threads'"), "{text}");
    assert!(lines[1].starts_with("/master:2: option 'publish_port'") && lines[1].ends_with("got 99999"), "{text}");
}

#[test]
fn tls_is_refused_with_the_transport_tcp() {
    for (text, is_refused) in [
        ("transport: tcp\nssl: {keyfile: /k, certfile: /c}\n", true),
        ("transport: tcp\nssl: {}\n", true),
        ("transport: tcp\nssl: True\n", true),
        ("transport: tcp\nssl: False\n", false),
        ("transport: tcp\nssl: null\n", false),
        ("transport: zeromq\nssl: {keyfile: /k}\n", false),
    ] {
        let (loaded, _) = master(&[("master", text)]);
        assert_eq!(matches!(loaded, Err(ConfigError::NoTls)), is_refused, "{text}");
    }
}

#[test]
fn a_missing_directory_means_defaults() {
    let loaded = MinionConfig::load(Path::new("/nonexistent"), &map! {"id" => "m1"}).unwrap();
    assert_eq!(loaded.warnings[0].to_string(), "CONFIG '/nonexistent' directory does not exist.");
    assert_eq!(loaded.config.id.as_deref(), Some("m1"));
    assert_eq!(loaded.config.master, ["salt"]);
}

#[test]
fn the_known_names_are_sorted() {
    assert!(known::salt_options().is_sorted());
}

#[test]
fn ignored_options_are_not_used() {
    let ignored: Vec<_> = known::ignored_options().collect();
    for (name, is_ignored) in [
        ("auth_mode", true),
        ("worker_threads", false),
        ("acceptance_wait_time", false),
        ("gitfs_remotes", false),
        ("transport", false),
    ] {
        assert_eq!(ignored.contains(&name), is_ignored, "{name}");
    }
}
