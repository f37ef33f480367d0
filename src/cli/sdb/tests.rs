use brine_value::{list, map};

use super::*;

#[test]
fn uris_are_resolved_at_every_depth() {
    let get = |uri: &str| uri.strip_prefix("sdb://p/").map(Value::from).ok_or_else(|| uri.to_owned());
    let value = Value::from(map! {"a" => list!["sdb://p/x", 1], "b" => map! {"c" => "sdb://p/y"}, "d" => "http://z"});
    let expected = map! {"a" => list!["x", 1], "b" => map! {"c" => "y"}, "d" => "http://z"};
    assert!(has_uri(&value));
    assert_eq!(resolved(value, &get), Ok(expected.clone().into()));
    assert!(!has_uri(&expected.into()));
    assert_eq!(resolved("sdb://q/x".into(), &get), Err("sdb://q/x".to_owned()));
}

#[test]
fn options_of_master_and_minion_come_from_their_profiles() {
    let directory = tempfile::tempdir().unwrap();
    let values = directory.path().join("values.yaml");
    std::fs::write(&values, "redis: {password: xyzzy}\n").unwrap();
    let text = format!(
        "root_dir: {}\nvalues: {{driver: yaml, files: [{}]}}\nredis.password: sdb://values/redis:password\n\
         other: [sdb://unknown/x]\n",
        directory.path().display(),
        values.display()
    );
    for name in ["master", "minion"] {
        std::fs::write(directory.path().join(name), &text).unwrap();
    }
    let master = master_config(directory.path(), &Map::new()).unwrap().config.opts;
    let minion = minion_config(directory.path(), &Map::new()).unwrap().config.opts;
    for opts in [master, minion] {
        assert_eq!(opts.get("redis.password"), Some(&"xyzzy".into()));
        assert_eq!(opts.get("other"), Some(&list!["sdb://unknown/x"]));
    }
    std::fs::write(&values, "- broken\n").unwrap();
    let error = format!("{:#}", master_config(directory.path(), &Map::new()).err().unwrap());
    assert!(error.contains("option 'redis.password'") && error.contains("expected a mapping"), "{error}");
}
