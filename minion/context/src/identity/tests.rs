use brine_value::{Map, map};

use super::*;

#[test]
fn a_stored_id_takes_precedence_over_the_host_name_unless_caching_is_off() {
    let directory = tempfile::tempdir().unwrap();
    let config = |caching: bool| {
        let config = MinionConfig::load(directory.path(), &map! {"minion_id_caching" => caching});
        config.unwrap().config
    };
    let cached_id = |caching| known_id(&config(caching)).unwrap().map(|id| id.as_str().to_owned());
    assert_eq!(cached_id(true), None);
    for (stored, id) in [("\u{feff}web1\nweb2\n", Some("web1")), ("localhost\n", None), ("\n", None)] {
        std::fs::write(directory.path().join("minion_id"), stored).unwrap();
        assert_eq!(cached_id(true).as_deref(), id, "{stored:?}");
        assert_eq!(cached_id(false), None);
    }
    store_id(&config(true), &"web3".parse().unwrap()).unwrap();
    assert_eq!(cached_id(true).as_deref(), Some("web3"));
    std::fs::write(directory.path().join("minion_id"), "a/b").unwrap();
    assert!(known_id(&config(true)).is_err());
}

#[test]
fn the_host_name_becomes_the_id_as_in_salt() {
    for (name, lower, domain, id) in [
        ("Web1.Example.com", false, Value::Bool(false), "Web1.Example.com"),
        ("Web1.Example.com", true, Value::Bool(false), "web1.example.com"),
        ("Web1.Example.com", false, Value::Bool(true), "Web1"),
        ("Web1.Example.com", false, "example.com".into(), "Web1"),
        ("web1.eu.example.com", true, "example.com".into(), "web1.eu"),
        ("web1.example.com", false, "other.com".into(), "web1.example.com"),
        ("web1example.com", false, "example.com".into(), "web1example.com"),
        ("example.com", false, "example.com".into(), "example.com"),
        ("w\u{e9}b.example.com", false, "example.com".into(), "w\u{e9}b"),
        ("web1", false, Value::Bool(true), "web1"),
        ("web1", false, "".into(), "web1"),
    ] {
        let options = map! {"minion_id_lowercase" => lower, "minion_id_remove_domain" => domain.clone()};
        let config = MinionConfig::load(std::path::Path::new("/nonexistent"), &options).unwrap().config;
        assert_eq!(of_host(&config, name), id, "{name} {lower} {domain}");
    }
}

#[test]
fn the_domain_is_appended_once_to_every_id() {
    let directory = tempfile::tempdir().unwrap();
    let id = |options: Map| {
        let mut config = MinionConfig::load(directory.path(), &options).unwrap().config;
        let id = minion_id(&config).unwrap();
        config.set_id(id.as_str());
        assert_eq!(minion_id(&config).unwrap(), id);
        id.as_str().to_owned()
    };
    for (name, domain, expected) in [
        ("web1", "foo.org", "web1.foo.org"),
        ("web1.foo.org", "foo.org", "web1.foo.org"),
        ("web1.", "foo.org", "web1."),
        ("web1", "", "web1"),
    ] {
        assert_eq!(id(map! {"id" => name, "append_domain" => domain}), expected, "{name} {domain}");
        std::fs::write(directory.path().join("minion_id"), name).unwrap();
        assert_eq!(id(map! {"append_domain" => domain}), expected, "stored {name} {domain}");
    }
    let config = MinionConfig::load(directory.path(), &map! {"append_domain" => "foo.org"}).unwrap().config;
    assert_eq!(id_of_name(&config, "web2").unwrap().as_str(), "web2.foo.org");
}
