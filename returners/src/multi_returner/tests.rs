use brine_value::{list, map};

use super::*;

#[test]
fn invalid_lists_are_refused() {
    for (names, expected) in [
        (list![], "option 'multi_returner': it is required: expected a list of returners"),
        (list!["local", "multi_returner"], "option 'multi_returner': it contains itself: name other returners"),
        (list!["sqlite"], "unknown returner 'sqlite'"),
    ] {
        let error = open(&Options::new(&map! {"multi_returner" => names}, None)).err().unwrap().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn everything_is_stored_by_each_returner_that_supports_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let opts = map! {
        "multi_returner" => list!["rawfile_json", "sqlite3"],
        "rawfile_json.filename" => path("lines"), "sqlite3.database" => path("db"),
    };
    let options = Options::new(&opts, None);
    let multi = open(&options).unwrap();
    let one = map! {"jid" => "20261120235852025555", "id" => "web1", "fun" => "test.ping", "return" => true};
    let one = Return::from_map(one).unwrap();
    multi.save_load(&Load::from_map(map! {"jid" => one.jid(), "fun" => "test.ping"}).unwrap()).unwrap();
    multi.returner(&one).unwrap();
    multi.event_return(&[Event::from_map("a", &map! {}).unwrap()]).unwrap();
    assert_eq!(std::fs::read_to_string(path("lines")).unwrap().lines().count(), 2);
    assert_eq!(multi.get_jid(one.jid()).unwrap(), map! {"web1" => map! {"return" => true}});
    assert_eq!(multi.get_jids(None).unwrap().len(), 1);
    // An error of one returner is reported, and the other one has stored the data nevertheless.
    let opts = map! {
        "multi_returner" => list!["rawfile_json", "sqlite3"],
        "rawfile_json.filename" => "/nonexistent/lines", "sqlite3.database" => path("other"),
    };
    let multi = open(&Options::new(&opts, None)).unwrap();
    assert!(multi.returner(&one).unwrap_err().to_string().contains("/nonexistent/lines"));
    assert_eq!(multi.get_minions().unwrap(), ["web1".parse().unwrap()]);
}
