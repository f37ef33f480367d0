use brine_value::{list, map};

use super::*;

fn secret(directory: &Path, text: &str, mode: u32) {
    let path = directory.join("cluster.secret");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn options_are_read_with_their_defaults() {
    let directory = tempfile::tempdir().unwrap();
    let read = |option: Map| Settings::read(&option, "m1", directory.path(), Duration::ZERO);
    assert!(read(map! {}).unwrap().is_none());
    secret(directory.path(), &"a".repeat(64), 0o600);
    let settings = read(map! {"servers" => "nats://a:4222, b"}).unwrap().unwrap();
    assert_eq!(settings.servers, ["nats://a:4222", "b"]);
    assert_eq!((settings.name.as_str(), settings.member.as_str(), settings.sync_handle), ("brine", "m1", 1));
    assert_eq!((settings.lease, settings.history), (Duration::from_secs(5), Duration::from_hours(24)));
}

#[test]
fn invalid_options_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let error = |option: Map| match Settings::read(&option, "m1", directory.path(), Duration::ZERO) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{option:?} was accepted"),
    };
    let one = || map! {"servers" => list!["nats://a"]};
    let with = |name: &str, value: Value| {
        let mut option = one();
        option.insert(name.into(), value);
        option
    };
    assert!(error(one()).starts_with("the secret of the cluster is missing: create "));
    secret(directory.path(), &"a".repeat(64), 0o644);
    assert!(error(one()).contains("can be read by others"));
    secret(directory.path(), "short", 0o600);
    assert!(error(one()).contains("too short"));
    for (option, start) in [
        (map! {"name" => "x"}, "'servers' is invalid"),
        (with("servers", "nats://h:port".into()), "'servers' is invalid"),
        (with("server", "x".into()), "'server' is unknown: expected one of name, member, servers"),
        (with("name", "a.b".into()), "'name' is invalid"),
        (with("lease", 0.into()), "'lease' is invalid: expected a number above 0, got 0"),
        (with("certificate", "x".into()), "'certificate' and 'private_key' need each other"),
    ] {
        let error = error(option);
        assert!(error.starts_with(start), "{error}");
    }
}
