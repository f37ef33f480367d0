use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;

use brine_value::map;

use super::*;

fn named(text: &str, id: &str) -> bool {
    Names::parse(text).contain(id)
}

#[test]
fn a_line_is_a_name_a_glob_or_a_regular_expression() {
    for (line, id, expected) in [
        ("web1.example.org", "web1.example.org", true),
        ("web1.example.org", "web1xexample.org", false),
        ("  web1  ", "web1", true),
        ("web", "web1", false),
        ("web*", "web1.example.org", true),
        ("web[12]", "web2", true),
        ("web[12]", "web3", false),
        (r"web\d+", "web12", true),
        (r"web\d+", "web12a", false),
        (r"web\d+", "myweb12", false),
        ("web|db", "web", true),
        ("web|db", "webevil", false),
        ("(?!evil).*", "web", true),
        ("(?!evil).*", "evil1", false),
        ("#web", "#web", false),
        ("", "web", false),
        ("web(", "web(", true),
        ("*", "anything", true),
    ] {
        assert_eq!(named(line, id), expected, "{line:?} {id:?}");
    }
    assert!(named("# first\nweb1\n\n  # second\ndb*\n", "db7"));
}

fn directory() -> (tempfile::TempDir, Autosign) {
    let directory = tempfile::tempdir().unwrap();
    let autosign = Autosign::new(directory.path().join("minions_autosign"));
    fs::create_dir(autosign.directory()).unwrap();
    (directory, autosign)
}

#[test]
fn files_writable_by_others_are_ignored() {
    let (directory, mut autosign) = directory();
    let file = directory.path().join("names");
    fs::write(&file, "m1\n").unwrap();
    let id = "m1".parse().unwrap();
    for (mode, permissive, expected) in
        [(0o644, false, true), (0o664, false, false), (0o664, true, true), (0o646, true, false), (0o600, false, true)]
    {
        // Files are cached by version, and `permissive_pki_access` does not change at run time.
        autosign.files.clear();
        fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        let config =
            MasterConfig { autosign_file: Some(file.clone()), permissive_pki_access: permissive, ..Default::default() };
        assert_eq!(autosign.accepts(&config, &id, &Map::new()).is_some(), expected, "{mode:o} {permissive}");
    }
}

#[test]
fn a_file_is_read_again_when_it_changes() {
    let (directory, mut autosign) = directory();
    let file = directory.path().join("names");
    let config = MasterConfig { autoreject_file: Some(file.clone()), ..Default::default() };
    let id = "m1".parse().unwrap();
    assert!(!autosign.rejects(&config, &id));
    fs::write(&file, "m1\n").unwrap();
    assert!(autosign.rejects(&config, &id));
    fs::write(&file, "other\n").unwrap();
    assert!(!autosign.rejects(&config, &id));
}

#[test]
fn a_file_of_minions_autosign_accepts_once_and_expires() {
    let (_folder, mut autosign) = directory();
    let config = MasterConfig::default();
    let id = "m1".parse().unwrap();
    let stub = autosign.directory().join("m1");
    assert!(autosign.accepts(&config, &id, &Map::new()).is_none());
    fs::write(&stub, "").unwrap();
    assert!(autosign.accepts(&config, &id, &Map::new()).is_some());
    assert!(autosign.accepts(&config, &id, &Map::new()).is_none());

    let age = |minutes: u64| {
        let time = SystemTime::now() - Duration::from_secs(minutes * 60);
        File::create(&stub).unwrap().set_modified(time).unwrap();
    };
    age(119);
    assert!(autosign.accepts(&config, &id, &Map::new()).is_some());
    age(121);
    assert!(autosign.accepts(&config, &id, &Map::new()).is_none());
    assert!(!stub.exists());
    age(121);
    let without_end = MasterConfig { autosign_timeout: 0, ..Default::default() };
    assert!(autosign.accepts(&without_end, &id, &Map::new()).is_some());
}

#[test]
fn grains_are_compared_as_strings_with_safe_files_only() {
    let (directory, mut autosign) = directory();
    let grains = directory.path().join("grains");
    fs::create_dir(&grains).unwrap();
    fs::write(grains.join("uuid"), "# comment\n\n4711\nabc def\n").unwrap();
    fs::write(grains.join("open"), "1\n").unwrap();
    fs::set_permissions(grains.join("open"), Permissions::from_mode(0o666)).unwrap();
    fs::write(directory.path().join("outside"), "1\n").unwrap();
    let config = MasterConfig { autosign_grains_dir: Some(grains), ..Default::default() };
    let id = "m1".parse().unwrap();
    for (sent, expected) in [
        (map! {"uuid" => 4711}, true),
        (map! {"other" => 1, "uuid" => "abc def"}, true),
        (map! {"uuid" => "4712"}, false),
        (map! {"uuid" => ""}, false),
        (map! {"uuid" => "# comment"}, false),
        (map! {"open" => "1"}, false),
        (map! {"../outside" => "1"}, false),
        (Map::new(), false),
    ] {
        assert_eq!(autosign.accepts(&config, &id, &sent).is_some(), expected, "{sent:?}");
    }
}
