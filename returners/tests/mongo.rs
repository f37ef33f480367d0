//! The returner mongo on SecantusDB, a server of MongoDB's protocol, with documents that pymongo reads and writes.

use std::process::Command;

use crate::support::{Service, free_port};
use brine_event::Event;
use brine_job::{Load, Return};
use brine_returners::{Options, Returner, open};
use brine_value::{Map, Value, json, list, map};

const JID: &str = "20261120235852025555";

fn returner(options: &Map) -> Box<dyn Returner> {
    open("mongo", &Options::new(&map! {"id" => "boss", "mongo" => options.clone()}, None)).unwrap()
}

fn returned(id: &str, value: impl Into<Value>) -> Return {
    let fields = map! {"jid" => JID, "id" => id, "fun" => "test.arg", "return" => value.into(), "retcode" => 0};
    Return::from_map(fields).unwrap()
}

/// Runs statements of Python on the database `db`, and returns the value of `found`.
fn pymongo(port: u16, statements: &str) -> Value {
    let python = std::env::var("BRINE_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let program = format!(
        "import json, pymongo\ndb = pymongo.MongoClient('127.0.0.1', {port}, journal=True).salt\nfound = None\n{statements}\nprint(json.dumps(found))"
    );
    let output = Command::new(python).args(["-c", &program]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    json::from_json(&String::from_utf8(output.stdout).unwrap()).unwrap()
}

#[test]
fn documents_have_salts_layout() {
    let directory = tempfile::tempdir().unwrap();
    let port = free_port();
    let server = Service::mongo(directory.path(), port);
    let options = map! {"host" => "127.0.0.1", "port" => i64::from(port), "db" => "salt", "indexes" => true};
    let mongo = returner(&options);
    let value = map! {"/etc/a.conf" => list!["ü", 1, Value::Nil]};
    mongo.returner(&returned("web1.example", value)).unwrap();
    let load = map! {"jid" => JID, "fun" => "test.arg", "arg" => list![map! {"a.b$%" => 1}], "tgt" => "*"};
    mongo.save_load(&Load::from_map(load.clone()).unwrap()).unwrap();
    let event = Event::from_map("salt/a.b", &map! {"x.y" => 1}).unwrap().stamped(7, "2026-11-20T23:58:52.025555+00:00");
    for _ in 0..2 {
        // A repeated batch adds nothing.
        mongo.event_return(std::slice::from_ref(event.as_ref().unwrap())).unwrap();
    }
    let hidden = "{'_id': 0}";
    let documents = |collection: &str| pymongo(port, &format!("found = list(db.{collection}.find({{}}, {hidden}))"));
    let value = map! {"/etc/a-conf" => list!["ü", 1, Value::Nil]};
    let full =
        map! {"jid" => JID, "id" => "web1.example", "fun" => "test.arg", "return" => value.clone(), "retcode" => 0};
    let document =
        map! {"minion" => "web1.example", "jid" => JID, "return" => value, "fun" => "test.arg", "full_ret" => full};
    assert_eq!(documents("saltReturns"), list![document]);
    let stored = map! {"jid" => JID, "fun" => "test.arg", "arg" => list![map! {"a%2eb%24%25" => 1}], "tgt" => "*"};
    assert_eq!(documents("jobs"), list![stored]);
    assert_eq!(mongo.get_load(&JID.parse().unwrap()).unwrap().unwrap().map(), &load);
    let events = documents("events");
    assert_eq!(events.as_list().unwrap().len(), 1, "{events}");
    assert_eq!(pymongo(port, "found = db.events.find_one()['data']['x.y']"), 1.into());
    let indexes = pymongo(port, "found = sorted(db.saltReturns.index_information())");
    assert_eq!(indexes, list!["_id_", "fun_1", "jid_1", "minion_1"]);
    // A return that Salt has stored, with an id of the server.
    pymongo(
        port,
        &format!(
            "full = {{'jid': '{JID}', 'id': 'old', 'fun': 'test.arg', 'return': {{'n': 2 ** 40}}, 'retcode': 0}}\n\
             db.saltReturns.insert_one({{'minion': 'old', 'jid': '{JID}', 'fun': 'test.arg', 'return': 1, 'full_ret': full}})"
        ),
    );
    let returns = mongo.get_jid(&JID.parse().unwrap()).unwrap();
    assert_eq!(returns.get("old").and_then(|one| one.get("return")), Some(&map! {"n" => 1_i64 << 40}.into()));
    let error = mongo.returner(&returned("large", "x".repeat(20_000_000))).unwrap_err();
    assert!(!error.is_outage(), "{error}");
    server.stop();
    let error = mongo.returner(&returned("late", 1)).unwrap_err();
    assert!(error.is_outage() && error.to_string().starts_with("mongo server 127.0.0.1:"), "{error}");
    let _server = Service::mongo(directory.path(), port);
    mongo.returner(&returned("late", 1)).unwrap();
    assert_eq!(mongo.get_minions().unwrap().len(), 3);
}

#[test]
fn ten_thousand_events_are_stored_in_batches() {
    let directory = tempfile::tempdir().unwrap();
    let port = free_port();
    let _server = Service::mongo(directory.path(), port);
    let mongo = returner(&map! {"uri" => format!("mongodb://127.0.0.1:{port}/salt")});
    let events: Vec<Event> = (0..10_000).map(|n| Event::from_map("t", &map! {"n" => n}).unwrap()).collect();
    let start = std::time::Instant::now();
    events.chunks(1000).for_each(|batch| mongo.event_return(batch).unwrap());
    println!("mongo: {:.0} events/s", 10_000.0 / start.elapsed().as_secs_f64());
    assert_eq!(pymongo(port, "found = db.events.count_documents({})"), 10_000.into());
}

#[test]
fn invalid_options_are_refused() {
    for (options, expected) in [
        (map! {"host" => "a", "uri" => "mongodb://b/salt"}, "'mongo.uri': it cannot be used together with mongo.host"),
        (map! {"uri" => "http://u:s3cret@b"}, "'mongo.uri': it is invalid: expected a URL such as mongodb://"),
        (map! {"uri" => "mongodb://b"}, "'mongo.db': it is required"),
        (map! {}, "'mongo.db': it is required"),
        (map! {"db" => "a.b"}, "'mongo.db': it is invalid"),
        (map! {"db" => "a", "port" => "x"}, "mongo.port"),
    ] {
        let error = open("mongo", &Options::new(&map! {"mongo" => options}, None)).err().unwrap().to_string();
        assert!(error.contains(expected) && !error.contains("s3cret"), "{error}");
    }
}
