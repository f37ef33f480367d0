//! The returners of database servers on real servers: Salt's rows, upgrades of Salt's tables, servers that stop, large
//! and odd values, two masters on one database.

use std::time::Duration;

use crate::support::{DatabaseServer, Kind};
use brine_event::Event;
use brine_job::{Load, Return};
use brine_returners::{Options, Returner, open};
use brine_value::{Map, Value, list, map};

const JID: &str = "20261120235852025555";

type Check = fn(&str, &mut DatabaseServer);

/// The checks, each run with an empty database.
const CHECKS: &[(&str, Check)] = &[
    ("missing tables are an error that names the setup", missing_tables_are_an_error),
    ("wrong passwords are refused without being shown", wrong_passwords_are_refused),
    ("large and odd values come back", large_and_odd_values_come_back),
    ("two masters may share a database", two_masters_may_share_a_database),
    ("a server that restarts is used again", a_server_that_restarts_is_used_again),
];

/// The checks of returners that store whole documents.
const DOCUMENTS: &[(&str, Check)] = &[
    ("rows have Salt's format", rows_have_salts_format),
    ("the setup upgrades Salt's tables and keeps their rows", setup_upgrades_salts_tables),
];

/// The checks of the returner that can archive.
const ARCHIVE: &[(&str, Check)] = &[DOCUMENTS[0], DOCUMENTS[1], ("old jobs are archived", old_jobs_are_archived)];

/// The checks of the returner with a column for each field.
const COLUMNS: &[(&str, Check)] = &[
    ("columns have Salt's format", columns_have_salts_format),
    ("the setup upgrades Salt's tables and keeps their rows", setup_upgrades_salts_columns),
];

/// Runs checks over the returners of one server.
fn behave(kind: Kind, returners: &[(&str, &[(&str, Check)])]) {
    let directory = tempfile::tempdir().unwrap();
    let mut server = DatabaseServer::start(kind, directory.path());
    for (name, own) in returners {
        for (rule, check) in CHECKS.iter().chain(*own) {
            println!("{name}: {rule}");
            server.create(&database(name));
            check(name, &mut server);
            server.drop_database(&database(name));
        }
    }
}

#[test]
fn mysql_behaves() {
    behave(Kind::MariaDb, &[("mysql", DOCUMENTS)]);
}

#[test]
fn the_returners_of_postgresql_behave() {
    let returners = [("postgres", DOCUMENTS), ("pgjsonb", ARCHIVE), ("postgres_local_cache", COLUMNS)];
    behave(Kind::Postgres, &returners);
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

fn columns_have_salts_format(name: &str, server: &mut DatabaseServer) {
    let returner = ready(name, server);
    let load = map! {
        "jid" => JID, "fun" => "test.arg", "arg" => list!["ü", map! {"a" => 1, "__kwarg__" => true}], "tgt" => list!["a", "b"],
        "tgt_type" => "list", "cmd" => "publish", "user" => "root", "ret" => "", "other" => 1,
    };
    returner.save_load(&Load::from_map(load).unwrap()).unwrap();
    returner.save_returns(&[returned("web1", list!["ü", 1]), returned("web1", "again")]).unwrap();
    let bare = map! {"jid" => JID, "id" => "web2", "fun" => "test.arg", "return" => Value::Nil};
    returner.returner(&Return::from_map(bare).unwrap()).unwrap();
    returner.event_return(&[Event::from_map("some/tag", &map! {"a" => "é"}).unwrap()]).unwrap();
    let of = |sql: &str| server.client(&database(name), sql).trim_end().to_owned();
    assert_eq!(
        of("SELECT jid, tgt_type, cmd, tgt, kwargs, ret, username, arg, fun FROM jids"),
        format!("{JID}\tlist\tpublish\t['a', 'b']\tNone\t\troot\t[\"ü\", {{\"a\": 1, \"__kwarg__\": true}}]\ttest.arg")
    );
    assert_eq!(of("SET TimeZone = 'UTC'; SELECT to_char(started, 'US') FROM jids").lines().last(), Some("025555"));
    let rows = of("SELECT fun, jid, id, success, return FROM salt_returns ORDER BY id");
    let expected = [
        format!(r#"test.arg	{JID}	web1	t	{{"return": ["ü", 1], "retcode": 0, "success": true}}"#),
        format!(r#"test.arg	{JID}	web2		{{"return": null}}"#),
    ];
    assert_eq!(rows.lines().collect::<Vec<_>>(), expected.map(|row| row.replace("\\t", "\t")));
    assert_eq!(of("SELECT tag, master_id, data FROM salt_events"), "some/tag\tboss\t{\"a\": \"é\"}");
}

fn setup_upgrades_salts_columns(name: &str, server: &mut DatabaseServer) {
    // Salt's own layout: https://docs.saltproject.io/en/latest/ref/returners/all/
    for statement in [
        "CREATE TABLE jids (jid varchar(20) PRIMARY KEY, started TIMESTAMP WITH TIME ZONE DEFAULT now(), tgt_type text NOT NULL,
            cmd text NOT NULL, tgt text NOT NULL, kwargs text NOT NULL, ret text NOT NULL, username text NOT NULL,
            arg text NOT NULL, fun text NOT NULL)",
        "CREATE TABLE salt_returns (added TIMESTAMP WITH TIME ZONE DEFAULT now(), fun text NOT NULL,
            jid varchar(20) NOT NULL, return text NOT NULL, id text NOT NULL, success boolean)",
        "CREATE TABLE salt_events (id SERIAL, tag text NOT NULL, data text NOT NULL,
            alter_time TIMESTAMP WITH TIME ZONE DEFAULT now(), master_id text NOT NULL)",
        "CREATE INDEX ON salt_events (data)",
        &format!("INSERT INTO jids VALUES ('{JID}', now(), 'glob', 'publish', '*', 'None', '', 'ops', '[1]', 'test.ping')"),
        &format!(
            "INSERT INTO salt_returns (fun, jid, return, id, success) VALUES
            ('test.ping', '{JID}', '{{\"return\": \"True\", \"retcode\": 0}}', 'old', true), ('test.ping', '{JID}', '7', 'older', NULL)"
        ),
    ] {
        server.client(&database(name), statement);
    }
    let returner = ready(name, server);
    returner.setup().unwrap();
    let load = returner.get_load(&JID.parse().unwrap()).unwrap().unwrap();
    assert_eq!((load.fun(), load.arg(), load.user()), (&"test.ping".into(), &[1.into()][..], "ops"));
    let with_pid = format!("{JID}_12345");
    returner.save_load(&Load::from_map(map! {"jid" => with_pid.as_str(), "fun" => "x"}).unwrap()).unwrap();
    let large = Event::from_map("large", &map! {"text" => "x".repeat(10_000)}).unwrap();
    returner.event_return(&[large]).unwrap();
    returner.returner(&returned("new", 1)).unwrap();
    let expected = map! {
        "new" => map! {"return" => 1, "retcode" => 0, "success" => true},
        "old" => map! {"return" => "True", "retcode" => 0},
        "older" => map! {"return" => 7},
    };
    assert_eq!(returns(&*returner), expected);
    assert_eq!(returner.get_jids(None).unwrap().len(), 2);
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
    let nul = if matches!(name, "pgjsonb" | "postgres_local_cache") { "ab" } else { "a\0b" };
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
    let returns = returns(&*returner);
    for (id, _, expected) in &values {
        assert!(returns[*id].get("return") == Some(expected), "{name}: {id}");
    }
}

fn old_jobs_are_archived(name: &str, server: &mut DatabaseServer) {
    ready(name, server);
    let mut opts = server.opts(name, &database(name));
    opts.insert("archive_jobs".into(), true.into());
    let returner = open(name, &Options::new(&opts, None)).unwrap();
    let new = format!("29{}", &JID[2..]);
    for jid in [JID, &new] {
        returner.save_load(&Load::from_map(map! {"jid" => jid, "fun" => "test.arg"}).unwrap()).unwrap();
    }
    returner.save_returns(&[returned("web1", 1), returned("web2", 2)]).unwrap();
    returner.event_return(&[Event::from_map("old", &Map::new()).unwrap()]).unwrap();
    for table in ["salt_returns", "salt_events"] {
        server.client(&database(name), &format!("UPDATE {table} SET alter_time = now() - interval '2 days'"));
    }
    returner.event_return(&[Event::from_map("new", &Map::new()).unwrap()]).unwrap();
    // Archived rows are not archived again.
    for _ in 0..2 {
        returner.clean_old_jobs(Duration::from_secs(3600)).unwrap();
    }
    let rows = |sql: &str| server.client(&database(name), sql).trim_end().to_owned();
    for (table, left, archived) in [
        ("SELECT jid FROM jids", new.as_str(), JID),
        ("SELECT id FROM salt_returns", "", "web1\nweb2"),
        ("SELECT tag FROM salt_events", "new", "old"),
    ] {
        assert_eq!(
            (rows(table).as_str(), rows(&format!("{table}_archive ORDER BY 1")).as_str()),
            (left, archived),
            "{table}"
        );
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
    let returns = returns(&*returner(name, server));
    assert_eq!(returns.len(), 1000, "{name}");
    assert!(returns.values().all(|one| one.get("retcode") == Some(&0.into())), "{name}");
}
