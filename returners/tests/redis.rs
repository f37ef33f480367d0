//! Behaviour of the redis returner alone: Salt's keys, expiry, and a server that stops and restarts.

use crate::support::RedisServer;
use brine_event::Event;
use brine_ids::Jid;
use brine_job::{Load, Return};
use brine_returners::{Options, Returner, open};
use brine_value::{Map, map};
use redis::Commands;

const JID: &str = "20261120235852025555";

fn returner(opts: &Map) -> Box<dyn Returner> {
    open("redis", &Options::new(opts, None)).unwrap()
}

/// Connects to the server as another program.
fn connect(opts: &Map) -> redis::Connection {
    let socket = opts.get("redis.unix_socket_path").unwrap();
    redis::Client::open(format!("redis+unix://{socket}")).unwrap().get_connection().unwrap()
}

fn store_a_job(returner: &dyn Returner) {
    returner.save_load(&Load::from_map(map! {"jid" => JID, "fun" => "test.ping"}).unwrap()).unwrap();
    let one = map! {"jid" => JID, "id" => "web1", "fun" => "test.ping", "return" => true};
    returner.returner(&Return::from_map(one).unwrap()).unwrap();
    returner.save_minions(&JID.parse().unwrap(), &["web1".parse().unwrap()]).unwrap();
}

#[test]
fn keys_have_salts_format() {
    let directory = tempfile::tempdir().unwrap();
    let server = RedisServer::start(directory.path());
    store_a_job(&*returner(&server.opts()));
    let mut beside = connect(&server.opts());
    let mut keys: Vec<String> = beside.keys("*").unwrap();
    keys.sort();
    insta::assert_snapshot!(keys.join("\n"), @r"
    load:20261120235852025555
    minions
    minions:20261120235852025555
    ret:20261120235852025555
    web1:test.ping
    ");
    let text: String = beside.get(format!("load:{JID}")).unwrap();
    assert_eq!(text, format!(r#"{{"jid": "{JID}", "fun": "test.ping"}}"#));
    let text: String = beside.hget(format!("ret:{JID}"), "web1").unwrap();
    assert_eq!(text, format!(r#"{{"jid": "{JID}", "id": "web1", "fun": "test.ping", "return": true}}"#));
    let (jid, minions): (String, Vec<String>) =
        redis::pipe().get("web1:test.ping").smembers("minions").query(&mut beside).unwrap();
    assert_eq!((jid.as_str(), minions), (JID, vec!["web1".to_owned()]));
}

#[test]
fn jobs_expire_after_keep_jobs_seconds() {
    let directory = tempfile::tempdir().unwrap();
    let server = RedisServer::start(directory.path());
    // A TTL of -1 means no expiry.
    for (seconds, expected) in [(500, 490..=500), (0, -1..=-1)] {
        let mut opts = server.opts();
        opts.insert("keep_jobs_seconds".into(), seconds.into());
        let mut beside = connect(&opts);
        redis::cmd("FLUSHALL").exec(&mut beside).unwrap();
        store_a_job(&*returner(&opts));
        for key in ["load", "ret", "minions"] {
            let left: i64 = beside.ttl(format!("{key}:{JID}")).unwrap();
            assert!(expected.contains(&left), "{key}: {left}");
        }
        assert_eq!(beside.ttl::<_, i64>("minions").unwrap(), -1);
    }
}

#[test]
fn events_are_listed_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let server = RedisServer::start(directory.path());
    let events = [Event::from_map("a", &map! {"x" => 1}).unwrap(), Event::from_map("b", &map! {}).unwrap()];
    let returner = returner(&server.opts());
    returner.event_return(&[]).unwrap();
    returner.event_return(&events).unwrap();
    let lines: Vec<String> = connect(&server.opts()).lrange("salt_events", 0, -1).unwrap();
    assert_eq!(lines, [r#"{"data": {"x": 1}, "tag": "a"}"#, r#"{"data": {}, "tag": "b"}"#]);
}

#[test]
fn foreign_values_under_the_same_keys_are_skipped() {
    let directory = tempfile::tempdir().unwrap();
    let server = RedisServer::start(directory.path());
    let returner = returner(&server.opts());
    store_a_job(&*returner);
    let mut beside = connect(&server.opts());
    for (key, value) in [("load:nonsense", "{}"), ("load:20261120235852025556", "not json")] {
        beside.set::<_, _, ()>(key, value).unwrap();
    }
    beside.hset::<_, _, _, ()>(format!("ret:{JID}"), "web2", "[]").unwrap();
    assert_eq!(returner.get_jids(None).unwrap().len(), 1);
    assert_eq!(returner.get_jid(&JID.parse::<Jid>().unwrap()).unwrap().len(), 1);
    let error = returner.get_load(&"20261120235852025556".parse().unwrap()).unwrap_err().to_string();
    assert!(error.contains("load:20261120235852025556"), "{error}");
}

#[test]
fn the_connection_is_restored_after_a_server_restart() {
    let directory = tempfile::tempdir().unwrap();
    let server = RedisServer::start(directory.path());
    let returner = returner(&server.opts());
    store_a_job(&*returner);
    drop(server);
    let error = returner.get_minions().unwrap_err().to_string();
    assert!(error.contains("redis.sock"), "{error}");
    let server = RedisServer::start(directory.path());
    store_a_job(&*returner);
    assert_eq!(returner.get_minions().unwrap().len(), 1);
    // A broken connection is retried without an error.
    drop(server);
    let _server = RedisServer::start(directory.path());
    assert_eq!(returner.get_minions().unwrap(), []);
}

#[test]
fn a_server_error_does_not_break_the_connection() {
    let directory = tempfile::tempdir().unwrap();
    let server = RedisServer::start(directory.path());
    let returner = returner(&server.opts());
    connect(&server.opts()).set::<_, _, ()>("minions", "no set").unwrap();
    let error = returner.get_minions().unwrap_err().to_string();
    assert!(error.contains("WRONGTYPE"), "{error}");
    assert_eq!(returner.get_jids(None).unwrap(), []);
}

#[test]
fn one_connection_serves_many_calls() {
    let directory = tempfile::tempdir().unwrap();
    let server = RedisServer::start(directory.path());
    let mut beside = connect(&server.opts());
    let mut connections = || -> u64 {
        let stats: String = redis::cmd("INFO").arg("stats").query(&mut beside).unwrap();
        let received = stats.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
        received.unwrap().trim().parse().unwrap()
    };
    let before = connections();
    let returner = returner(&server.opts());
    assert_eq!(connections(), before, "opening the returner does not connect");
    for _ in 0..5 {
        store_a_job(&*returner);
    }
    assert_eq!(connections(), before + 1);
}
