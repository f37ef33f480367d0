//! The returners of database servers on real servers: Salt's rows, upgrades of Salt's tables, servers that stop, large
//! and odd values, two masters on one database.
#![cfg(all(feature = "mysql", feature = "postgres"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may fail as tests do")]

mod support;

use brine_event::Event;
use brine_job::{Load, Return};
use brine_returners::{Options, Returner, open};
use brine_value::{Map, Value, list, map};
use support::{DatabaseServer, Kind};

const JID: &str = "20261120235852025555";

type Check = fn(&str, &mut DatabaseServer);

/// The checks, each run with an empty database.
const CHECKS: &[(&str, Check)] = &[
    ("rows have Salt's format", rows_have_salts_format),
    ("the setup upgrades Salt's tables and keeps their rows", setup_upgrades_salts_tables),
    ("missing tables are an error that names the setup", missing_tables_are_an_error),
    ("wrong passwords are refused without being shown", wrong_passwords_are_refused),
    ("large and odd values come back", large_and_odd_values_come_back),
    ("two masters may share a database", two_masters_may_share_a_database),
    ("a server that restarts is used again", a_server_that_restarts_is_used_again),
];

/// Runs all checks over the returners of one server.
fn behave(kind: Kind, returners: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let mut server = DatabaseServer::start(kind, directory.path());
    for name in returners {
        for (rule, check) in CHECKS {
            println!("{name}: {rule}");
            server.create(&database(name));
            check(name, &mut server);
            server.drop_database(&database(name));
        }
    }
}

#[test]
fn mysql_behaves() {
    behave(Kind::MariaDb, &["mysql"]);
}

#[test]
fn postgres_and_pgjsonb_behave() {
    behave(Kind::Postgres, &["postgres", "pgjsonb"]);
}

/// The database of a returner's checks.
fn database(name: &str) -> String {
    format!("salt_{name}")
}

fn returner(name: &str, server: &DatabaseServer) -> Box<dyn Returner> {
    open(name, &Options::new(&server.opts(name, &database(name)), None)).unwrap()
}

fn ready(name: &str, server: &DatabaseServer) -> Box<dyn Returner> {
    let returner = returner(name, server);
    returner.setup().unwrap();
    returner
}

fn returned(id: &str, value: impl Into<Value>) -> Return {
    let fields = map! {"jid" => JID, "id" => id, "fun" => "test.arg", "return" => value.into(), "retcode" => 0, "success" => true};
    Return::from_map(fields).unwrap()
}

fn returns(returner: &dyn Returner) -> Map {
    returner.get_jid(&JID.parse().unwrap()).unwrap()
}

fn rows_have_salts_format(name: &str, server: &mut DatabaseServer) {
    let returner = ready(name, server);
    returner.save_load(&Load::from_map(map! {"jid" => JID, "fun" => "test.arg"}).unwrap()).unwrap();
    returner.save_returns(&[returned("web1", list!["ü", 1]), returned("web1", "again")]).unwrap();
    returner.event_return(&[Event::from_map("some/tag", &map! {"a" => "é"}).unwrap()]).unwrap();
    let rows = server.client(
        &database(name),
        "SELECT fun, jid, return, id, success, full_ret FROM salt_returns"
            .replace("return,", if name == "mysql" { "`return`," } else { "return," })
            .as_str(),
    );
    let success = if name == "mysql" { "1" } else { "true" };
    let columns: Vec<&str> = rows.trim_end().split('\t').collect();
    assert_eq!(columns[..5], ["test.arg", JID, r#"["ü", 1]"#, "web1", success]);
    let full: Value = brine_value::json::from_json(columns[5]).unwrap();
    assert_eq!(full, returned("web1", list!["ü", 1]).map().clone().into());
    let load = if name == "mysql" { "SELECT jid, `load` FROM jids" } else { "SELECT jid, load FROM jids" };
    let row = server.client(&database(name), load);
    assert!(row.starts_with(&format!("{JID}\t{{")) && row.contains(r#""fun": "test.arg""#), "{row}");
    let events = server.client(&database(name), "SELECT tag, master_id, data FROM salt_events");
    assert!(events.starts_with("some/tag\tboss\t{") && events.contains(r#""a": "é""#), "{events}");
}

fn setup_upgrades_salts_tables(name: &str, server: &mut DatabaseServer) {
    // Salt's own layout: https://docs.saltproject.io/en/latest/ref/returners/all/
    let (json, key) = match name {
        "mysql" => ("mediumtext", "varchar(255)"),
        "postgres" => ("text", "varchar(20)"),
        _ => ("jsonb", "varchar(255)"),
    };
    let quote = |word: &str| if name == "mysql" { format!("`{word}`") } else { word.to_owned() };
    let (load, value) = (quote("load"), quote("return"));
    for statement in [
            format!("CREATE TABLE jids (jid {key} PRIMARY KEY, {load} {json} NOT NULL)"),
            format!(
                "CREATE TABLE salt_returns (fun varchar(50) NOT NULL, jid varchar(255) NOT NULL, {value} {json} NOT NULL,
                id varchar(255) NOT NULL, success varchar(10) NOT NULL, full_ret {json},
                alter_time TIMESTAMP DEFAULT CURRENT_TIMESTAMP)"
            ),
            format!("INSERT INTO jids VALUES ('{JID}', '{{\"jid\": \"{JID}\", \"fun\": \"test.ping\"}}')"),
            format!(
                "INSERT INTO salt_returns (fun, jid, {value}, id, success, full_ret) VALUES ('test.ping', '{JID}',
                'true', 'old', '1', '{{\"jid\": \"{JID}\", \"id\": \"old\", \"fun\": \"test.ping\", \"return\": true}}')"
            ),
        ] {
            server.client(&database(name), &statement);
        }
    let returner = ready(name, server);
    returner.setup().unwrap();
    let long = format!("{}.{}", "m".repeat(80), "f".repeat(80));
    let with_pid = format!("{JID}_12345");
    let load = map! {"jid" => with_pid.as_str(), "fun" => long.as_str()};
    returner.save_load(&Load::from_map(load).unwrap()).unwrap();
    let one = map! {"jid" => JID, "id" => "new", "fun" => long.as_str(), "return" => 1};
    returner.returner(&Return::from_map(one).unwrap()).unwrap();
    let expected = map! {"new" => map! {"return" => 1}, "old" => map! {"return" => true}};
    assert_eq!(returns(&*returner), expected, "{name}");
    assert_eq!(returner.get_jids(None).unwrap().len(), 2, "{name}");
}

fn missing_tables_are_an_error(name: &str, server: &mut DatabaseServer) {
    let error = returner(name, server).get_minions().unwrap_err().to_string();
    assert!(error.ends_with(&format!("; `salt-run returner.setup {name}` creates missing tables")), "{error}");
    assert!(error.starts_with("database 127.0.0.1:") && !error.contains("secret"), "{error}");
}

fn wrong_passwords_are_refused(name: &str, server: &mut DatabaseServer) {
    let mut opts = server.opts(name, &database(name));
    let password = opts.keys().find(|key| key.as_str().is_some_and(|key| key.contains("pass"))).cloned().unwrap();
    opts.insert(password, "hush-hush".into());
    let error = open(name, &Options::new(&opts, None)).unwrap().get_minions().unwrap_err().to_string();
    assert!(!error.contains("hush"), "{error}");
}

fn a_server_that_restarts_is_used_again(name: &str, server: &mut DatabaseServer) {
    let returner = ready(name, server);
    returner.returner(&returned("a", 1)).unwrap();
    server.stop();
    assert!(returner.returner(&returned("b", 2)).is_err(), "{name}");
    server.start_again();
    returner.returner(&returned("b", 2)).unwrap();
    assert_eq!(returns(&*returner).len(), 2, "{name}");
}

fn large_and_odd_values_come_back(name: &str, server: &mut DatabaseServer) {
    let returner = ready(name, server);
    let large = "ü€".repeat(2_000_000);
    let nul = if name == "pgjsonb" { "ab" } else { "a\0b" };
    let values: Vec<(&str, Value, Value)> = vec![
        ("large", large.as_str().into(), large.as_str().into()),
        ("nul", "a\0b".into(), nul.into()),
        ("emoji", "\u{1f9c2} ' \" \\ ? %s".into(), "\u{1f9c2} ' \" \\ ? %s".into()),
        ("bytes", vec![b'a', b'b'].into(), "ab".into()),
        ("deep", list![list![list![map! {"" => Value::Nil}]]], list![list![list![map! {"" => Value::Nil}]]]),
    ];
    for (id, value, _) in &values {
        returner.returner(&returned(id, value.clone())).unwrap();
    }
    let found = returns(&*returner);
    for (id, _, expected) in &values {
        assert!(found[*id].get("return") == Some(expected), "{name}: {id}");
    }
}

fn two_masters_may_share_a_database(name: &str, server: &mut DatabaseServer) {
    ready(name, server);
    let batch: Vec<Return> = (0..1000).map(|number| returned(&format!("m{number}"), number)).collect();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| returner(name, server).save_returns(&batch).unwrap());
        }
    });
    let found = returns(&*returner(name, server));
    assert_eq!(found.len(), 1000, "{name}");
    assert!(found.values().all(|one| one.get("retcode") == Some(&0.into())), "{name}");
}
