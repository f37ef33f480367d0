use super::*;

#[test]
fn the_id_is_appended_to_the_named_paths() {
    for (names, expected) in [
        (vec![], ["/p", "/c", "/c/extmods", "/run/m.pid"]),
        (vec!["pki_dir", "pidfile"], ["/p/web1", "/c", "/c/extmods", "/run/salt/web1/m.pid"]),
        (vec!["cachedir", "default_include"], ["/p", "/c/web1", "/c/web1/extmods", "/run/m.pid"]),
        (vec!["cachedir", "extension_modules"], ["/p", "/c/web1", "/c/extmods/web1", "/run/m.pid"]),
    ] {
        let mut config = MinionConfig {
            pki_dir: "/p".into(),
            cachedir: "/c".into(),
            pidfile: "/run/m.pid".into(),
            append_minionid_config_dirs: names.iter().map(ToString::to_string).collect(),
            ..Default::default()
        };
        config.set_id("web1");
        let modules = config.extension_modules.clone().unwrap_or_else(|| config.cachedir.join("extmods"));
        let paths = [config.pki_dir, config.cachedir, modules, config.pidfile];
        assert_eq!(paths, expected.map(PathBuf::from), "{names:?}");
        assert_eq!(config.opts.get("id"), Some(&"web1".into()));
        for (name, path) in ["pki_dir", "cachedir", "extension_modules", "pidfile"].into_iter().zip(paths_of(&expected))
        {
            if names.contains(&name) {
                assert_eq!(config.opts.get(name), Some(&path), "{names:?}");
            }
        }
    }
}

fn paths_of(paths: &[&str]) -> Vec<Value> {
    paths.iter().map(|path| (*path).into()).collect()
}

#[test]
fn the_port_of_the_master_is_optional() {
    for (written, host, port) in [
        ("salt", "salt", 4506),
        ("salt.example.com:4507", "salt.example.com", 4507),
        ("10.0.0.1:4507", "10.0.0.1", 4507),
        ("::1", "::1", 4506),
        ("[::1]", "::1", 4506),
        ("[::1]:4507", "::1", 4507),
        ("salt:http", "salt:http", 4506),
    ] {
        let mut config = MinionConfig { master: vec![written.to_owned()], ..Default::default() };
        config.split_port();
        assert_eq!((config.master[0].as_str(), config.master_port), (host, port), "{written}");
    }
    let master = ["a:5506", "b", "::1", "d:7"].map(str::to_owned).to_vec();
    let mut config = MinionConfig { master, ..Default::default() };
    config.split_port();
    let expected = [("a", 5506), ("b", 4506), ("::1", 4506), ("d", 7)].map(|(host, port)| (host.to_owned(), port));
    assert_eq!(config.masters(), expected);
}

#[test]
fn the_pillar_follows_the_environment_of_the_states() {
    let load = |text: &str| {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("minion"), text).unwrap();
        MinionConfig::load(directory.path(), &Map::new()).unwrap().config
    };
    let follows = "pillarenv_from_saltenv: True\n";
    for (text, arguments, expected) in [
        ("saltenv: dev\n".to_owned(), (None, None), None),
        (format!("saltenv: dev\n{follows}"), (None, None), Some("dev")),
        (format!("saltenv: dev\npillarenv: qa\n{follows}"), (None, None), Some("qa")),
        (follows.to_owned(), (None, None), None),
        (follows.to_owned(), (Some("dev"), None), Some("dev")),
        (format!("saltenv: dev\n{follows}"), (Some("qa"), None), Some("qa")),
        (format!("saltenv: dev\n{follows}"), (Some("qa"), Some("prod")), Some("prod")),
        ("pillarenv: qa\n".to_owned(), (Some("dev"), None), Some("qa")),
    ] {
        let config = load(&text);
        let (saltenv, pillarenv) = arguments;
        assert_eq!(config.pillarenv_of(saltenv, pillarenv).as_deref(), expected, "{text} {arguments:?}");
        let option = config.opts.get("pillarenv").filter(|value| !value.is_nil()).map(ToString::to_string);
        assert_eq!(option, config.pillarenv, "{text}");
    }
}
