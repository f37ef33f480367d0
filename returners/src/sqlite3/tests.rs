use brine_value::{list, map};

use super::*;

const JID: &str = "20261120235852025555";

fn at(path: &std::path::Path) -> Box<dyn Returner> {
    open(&Options::new(&map! {"sqlite3.database" => path.display().to_string(), "id" => "boss"}, None)).unwrap()
}

#[test]
fn several_processes_may_create_the_database() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("salt.db");
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| at(&path).get_jids(None).unwrap());
        }
    });
}

#[test]
fn rows_have_salts_format() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("salt.db");
    let one = map! {
        "jid" => JID, "id" => "web1", "fun" => "test.arg", "fun_args" => list!["a", true], "return" => list![1],
        "retcode" => 0, "success" => true, "extra" => 5,
    };
    let one = Return::from_map(one).unwrap();
    at(&path).save_returns(&[one.clone(), one.clone()]).unwrap();
    at(&path).returner(&one).unwrap();
    let connection = Connection::open(&path).unwrap();
    let row: String = connection
        .query_row(
            "SELECT fun || '|' || jid || '|' || id || '|' || fun_args || '|' || full_ret || '|' || success || \
             '|' || rest FROM salt_returns",
            [],
            |row| row.get(0),
        )
        .unwrap();
    let rows: i64 = connection.query_row("SELECT count(*) FROM salt_returns", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 1, "a repeated return is stored once");
    insta::assert_snapshot!(row, @r#"test.arg|20261120235852025555|web1|['a', True]|[1]|1|{"fun": "test.arg", "fun_args": ["a", true], "retcode": 0, "success": true, "extra": 5}"#);
}

#[test]
fn a_database_of_salt_is_read_and_migrated() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("salt.db");
    let salt = Connection::open(&path).unwrap();
    salt.execute_batch(
        r#"CREATE TABLE jids (jid TEXT PRIMARY KEY, load TEXT NOT NULL);
            CREATE TABLE salt_returns (fun TEXT KEY, jid TEXT KEY, id TEXT KEY, fun_args TEXT, date TEXT NOT NULL,
                full_ret TEXT NOT NULL, success TEXT NOT NULL);
            INSERT INTO jids VALUES ('20261120235852025555', '{"jid": "20261120235852025555", "fun": "test.ping"}');"#,
    )
    .unwrap();
    let insert = "INSERT INTO salt_returns (fun, jid, id, fun_args, date, full_ret, success)
            VALUES ('test.ping', '20261120235852025555', ?1, NULL, '2026-11-20 23:58:52', ?2, ?3)";
    salt.execute(insert, ["a", "true", "1"]).unwrap();
    let returner = at(&path);
    // Salt can still write to the database, and a minion's second row does not hide its first.
    salt.execute(insert, ["b", "\"x\"", ""]).unwrap();
    salt.execute(insert, ["b", "\"y\"", ""]).unwrap();
    salt.execute(insert, ["c", "not json", "1"]).unwrap();
    salt.execute(insert, ["../d", "1", "1"]).unwrap();
    let jid = JID.parse().unwrap();
    let expected = map! {"a" => map! {"return" => true, "success" => true}, "b" => map! {"return" => "x"}};
    assert_eq!(returner.get_jid(&jid).unwrap(), expected);
    assert_eq!(returner.get_load(&jid).unwrap().unwrap().fun(), &"test.ping".into());
}

#[test]
fn old_events_are_removed_by_their_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("salt.db");
    let returner = at(&path);
    let old = Event::from_map("a", &map! {"_stamp" => "2020-01-01T00:00:00.000000", "x" => 1}).unwrap();
    let new = Event::from_map("b", &map! {}).unwrap();
    returner.event_return(&[old, new]).unwrap();
    let tags =
        || strings(&Connection::open(&path).unwrap(), "SELECT tag || master_id FROM salt_events ORDER BY id", []);
    assert_eq!(tags().unwrap(), ["aboss", "bboss"]);
    returner.clean_old_jobs(Duration::ZERO).unwrap();
    assert_eq!(tags().unwrap(), ["aboss", "bboss"]);
    returner.clean_old_jobs(Duration::from_secs(3600)).unwrap();
    assert_eq!(tags().unwrap(), ["bboss"]);
}

#[test]
fn invalid_options_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("salt.db").display().to_string();
    for (opts, message) in [
        (map! {}, "option 'sqlite3.database': it is required"),
        (map! {"sqlite3.database" => "/nonexistent/salt.db"}, "sqlite3 database /nonexistent/salt.db failed: "),
        (map! {"sqlite3.database" => database.clone(), "sqlite3.timeout" => -1}, "option 'sqlite3.timeout': "),
    ] {
        let error = open(&Options::new(&opts, None)).err().unwrap().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}
