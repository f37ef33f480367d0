//! Every returner that can read back behaves the same.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use brine_core::event::Event;
use brine_core::job::{Load, Return};
use brine_core::store::Store;
use brine_core::{Jid, Map, Value, list, map};
use brine_returners::{Options, Returner, open};

/// A Redis server of Debian's package on a unix socket, ended on drop.
struct RedisServer(Child);

impl RedisServer {
    fn start(folder: &Path) -> Self {
        let server = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--unixsocket", "redis.sock"])
            .current_dir(folder)
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server must be installed: tests/run does that");
        let (socket, start) = (folder.join("redis.sock"), Instant::now());
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            assert!(start.elapsed() < Duration::from_secs(20), "redis-server does not answer");
            std::thread::yield_now();
        }
        RedisServer(server)
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn behaves(name: &str, options: &Options) {
    let returner = open(name, options).unwrap();
    assert_eq!(returner.name(), name);
    let jid = Jid::new();
    let unknown: Jid = "20200101000000000000".parse().unwrap();
    let load = map! {"jid" => &jid, "fun" => "test.ping", "arg" => list![], "tgt" => "*", "minions" => list!["a", "b"]};
    returner.save_load(&Load::from_map(load.clone()).unwrap()).unwrap();
    for (id, value) in [("b", Value::from("ü\n")), ("a", map! {"deep" => list![1, 2.5, Value::Nil, true]}.into())] {
        let job_return = map! {"jid" => &jid, "id" => id, "fun" => "test.ping", "return" => value, "retcode" => 0, "success" => true, "out" => "txt"};
        returner.returner(&Return::from_map(job_return).unwrap()).unwrap();
    }
    assert_eq!(returner.get_load(&jid).unwrap().unwrap().map(), &load, "{name}");
    assert_eq!(returner.get_load(&unknown).unwrap(), None, "{name}");
    let returns = returner.get_jid(&jid).unwrap();
    let b = map! {"return" => "ü\n", "retcode" => 0, "success" => true, "out" => "txt"};
    assert_eq!(returns.get("b"), Some(&b.into()), "{name}");
    assert_eq!(returns.len(), 2, "{name}");
    assert_eq!(returner.get_jid(&unknown).unwrap(), Map::new(), "{name}");
    assert!(returner.get_jids().unwrap().iter().any(|load| load.jid() == &jid), "{name}");
    assert_eq!(returner.get_fun("test.ping").unwrap().get("b"), Some(&"ü\n".into()), "{name}");
    assert_eq!(returner.get_minions().unwrap(), ["a", "b"], "{name}");
    returner.clean_old_jobs(Duration::from_secs(3600)).unwrap();
    assert_eq!(returner.get_jid(&jid).unwrap().len(), 2, "{name}");
}

fn old_jobs_leave(returner: &dyn Returner) {
    let old: Jid = "20200101000000000000".parse().unwrap();
    returner.save_load(&Load::from_map(map! {"jid" => &old, "fun" => "x"}).unwrap()).unwrap();
    returner.returner(&Return::from_map(map! {"jid" => &old, "id" => "a", "return" => 1}).unwrap()).unwrap();
    assert!(returner.get_load(&old).unwrap().is_some());
    returner.clean_old_jobs(Duration::from_secs(3600)).unwrap();
    assert!(returner.get_load(&old).unwrap().is_none());
    assert_eq!(returner.get_jid(&old).unwrap(), Map::new());
}

#[test]
fn local_cache_behaves() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(&folder.path().join("brine.redb"), 1 << 20).unwrap();
    let options = Options::new(&Map::new(), Some(store));
    behaves("local_cache", &options);
    old_jobs_leave(&*open("local_cache", &options).unwrap());
}

#[test]
fn sqlite3_behaves() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("salt.db").display().to_string();
    let options = Options::new(&map! {"sqlite3.database" => database}, None);
    behaves("sqlite3", &options);
    old_jobs_leave(&*open("sqlite3", &options).unwrap());
}

#[test]
fn redis_behaves_and_comes_back_after_its_server_did() {
    let folder = tempfile::tempdir().unwrap();
    let server = RedisServer::start(folder.path());
    let socket = folder.path().join("redis.sock").display().to_string();
    let options = Options::new(&map! {"redis.unix_socket_path" => socket}, None);
    behaves("redis", &options);
    let returner = open("redis", &options).unwrap();
    assert_eq!(returner.get_minions().unwrap().len(), 2);
    drop(server);
    let error = returner.get_minions().unwrap_err().to_string();
    assert!(error.contains("redis.sock"), "{error}");
    let _server = RedisServer::start(folder.path());
    assert_eq!(returner.get_minions().unwrap().len(), 0);
}

#[test]
fn events_go_to_files_and_tables() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events");
    let options = Options::new(&map! {"rawfile_json.filename" => path.display().to_string()}, None);
    let returner = open("rawfile_json", &options).unwrap();
    let events = [Event::from_map("a/b", &map! {"x" => 1}).unwrap(), Event::from_map("c", &map! {}).unwrap()];
    returner.event_return(&events).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, "{\"tag\": \"a/b\", \"data\": {\"x\": 1}}\n{\"tag\": \"c\", \"data\": {}}\n");
    let error = returner.get_jids().unwrap_err().to_string();
    assert_eq!(error, "the returner rawfile_json cannot list jobs: use another one for that");
    let blocked = Options::new(&map! {"rawfile_json.filename" => "/nonexistent/events"}, None);
    let error = open("rawfile_json", &blocked).unwrap().event_return(&events).unwrap_err().to_string();
    assert!(error.contains("/nonexistent/events"), "{error}");
}
