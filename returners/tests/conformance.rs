//! One table of behaviour, run over every readable returner.

use crate::support;

use std::path::Path;
use std::time::Duration;

use crate::support::{RedisServer, Service, free_port};
use brine_bus::store::Store;
use brine_ids::{Jid, MinionId};
use brine_job::{Call, Load, Return};
use brine_returners::{Options, Returner, ReturnerError, open};
use brine_runtime::executors::MayBlock;
use brine_value::{Map, Value, list, map, msgpack};

const HOUR: Duration = Duration::from_secs(3600);

type Check = fn(&dyn Returner);

/// The checks, each run with an empty returner.
const BEHAVIOUR: &[(&str, Check)] = &[
    ("jobs are returned with every field", jobs_come_back),
    ("a job that is stored again is replaced", jobs_are_replaced),
    ("minions added later are expected", late_minions),
    ("returns are sorted by minion", returns_come_back),
    ("several returns are stored in one operation", many_returns),
    ("the first return of a minion is kept", the_first_return_stays),
    ("minion ids and job ids with a common prefix stay apart", names_do_not_mix),
    ("jobs are listed newest first, up to the limit", jobs_are_listed),
    ("calls of the master's own functions are jobs", calls_are_jobs_of_the_master),
    ("the newest return of a function is found", newest_of_function),
    ("minions with returns are listed", minions_are_known),
    ("unknown jobs are empty", nothing_is_known),
    ("old jobs are removed with their returns", old_jobs_leave),
    ("a job with a new return stays, where returns have a time", late_returns),
];

/// The returners that keep an old job while its newest return is young.
const KEEP_LATE_RETURNS: &[&str] =
    &["local_cache", "sqlite3", "multi_returner", "mysql", "postgres", "pgjsonb", "postgres_local_cache"];

/// Runs the table over one backend; `make` creates an empty one in a directory.
fn behaves(name: &str, make: impl Fn(&Path) -> Box<dyn Returner>) {
    for (behaviour, check) in BEHAVIOUR {
        let directory = tempfile::tempdir().unwrap();
        let returner = make(directory.path());
        assert_eq!(returner.name(), name);
        println!("{name}: {behaviour}");
        check(&*returner);
    }
}

#[test]
fn local_cache_behaves() {
    behaves("local_cache", |directory| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (store, _) = Store::open(&directory.join("brine.redb"), 1 << 20).unwrap();
        let store = store.blocking(&MayBlock::on_dedicated_thread(runtime.handle().clone()));
        open("local_cache", &Options::new(&Map::new(), Some(store))).unwrap()
    });
}

#[test]
fn sqlite3_behaves() {
    behaves("sqlite3", |directory| {
        let database = directory.join("salt.db").display().to_string();
        open("sqlite3", &Options::new(&map! {"sqlite3.database" => database}, None)).unwrap()
    });
}

#[test]
fn redis_behaves() {
    let directory = tempfile::tempdir().unwrap();
    let server = RedisServer::start(directory.path());
    // Each check uses another of the server's sixteen databases.
    let database = std::cell::Cell::new(0);
    behaves("redis", |_| {
        let mut opts = server.opts();
        opts.insert("redis.db".into(), database.replace(database.get() + 1).into());
        open("redis", &Options::new(&opts, None)).unwrap()
    });
}

#[test]
fn multi_returner_behaves() {
    behaves("multi_returner", |directory| {
        let database = directory.join("salt.db").display().to_string();
        let lines = directory.join("lines").display().to_string();
        let opts = map! {
            "multi_returner" => list!["rawfile_json", "sqlite3"], "sqlite3.database" => database, "rawfile_json.filename" => lines,
        };
        open("multi_returner", &Options::new(&opts, None)).unwrap()
    });
}

#[test]
fn memcache_behaves() {
    let directory = tempfile::tempdir().unwrap();
    // Each check has an empty server.
    let server = std::cell::RefCell::new(None);
    behaves("memcache", |_| {
        server.replace(None);
        let port = free_port();
        server.replace(Some(Service::memcached(directory.path(), port)));
        let opts = map! {"memcache.host" => "127.0.0.1", "memcache.port" => i64::from(port)};
        open("memcache", &Options::new(&opts, None)).unwrap()
    });
}

#[cfg(feature = "mongo")]
#[test]
fn mongo_behaves() {
    let directory = tempfile::tempdir().unwrap();
    let port = free_port();
    let _server = Service::mongo(directory.path(), port);
    let number = std::cell::Cell::new(0);
    behaves("mongo", |_| {
        let database = format!("salt{}", number.replace(number.get() + 1));
        let opts = map! {"mongo.host" => "127.0.0.1", "mongo.port" => i64::from(port), "mongo.db" => database};
        let returner = open("mongo", &Options::new(&opts, None)).unwrap();
        returner.setup().unwrap();
        returner
    });
}

#[test]
fn etcd_behaves() {
    let directory = tempfile::tempdir().unwrap();
    let port = free_port();
    let _server = Service::etcd(directory.path(), port);
    let number = std::cell::Cell::new(0);
    behaves("etcd", |_| {
        let root = format!("/salt/{}", number.replace(number.get() + 1));
        let opts = map! {"etcd.host" => "127.0.0.1", "etcd.port" => i64::from(port), "etcd.returner_root" => root};
        open("etcd", &Options::new(&opts, None)).unwrap()
    });
}

#[test]
fn influxdb_behaves() {
    let directory = tempfile::tempdir().unwrap();
    let port = free_port();
    let _server = Service::influxdb(directory.path(), port);
    let number = std::cell::Cell::new(0);
    behaves("influxdb", |_| {
        let database = format!("salt{}", number.replace(number.get() + 1));
        let opts = map! {"influxdb.host" => "127.0.0.1", "influxdb.port" => i64::from(port), "influxdb.db" => database};
        let returner = open("influxdb", &Options::new(&opts, None)).unwrap();
        returner.setup().unwrap();
        returner
    });
}

/// Runs the table over a returner of a database server, each check on a database of its own.
#[cfg(all(feature = "mysql", feature = "postgres"))]
fn database_behaves(kind: support::Kind, returners: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let server = support::DatabaseServer::start(kind, directory.path());
    for name in returners {
        let number = std::cell::Cell::new(0);
        behaves(name, |_| {
            let database = format!("{name}_{}", number.replace(number.get() + 1));
            server.create(&database);
            let returner = open(name, &Options::new(&server.opts(name, &database), None)).unwrap();
            returner.setup().unwrap();
            returner
        });
    }
}

#[cfg(all(feature = "mysql", feature = "postgres"))]
#[test]
fn mysql_behaves() {
    database_behaves(support::Kind::MariaDb, &["mysql"]);
}

#[cfg(all(feature = "mysql", feature = "postgres"))]
#[test]
fn the_returners_of_postgresql_behave() {
    database_behaves(support::Kind::Postgres, &["postgres", "pgjsonb", "postgres_local_cache"]);
}

#[test]
fn rawfile_json_is_write_only() {
    let returner = open("rawfile_json", &Options::default()).unwrap();
    let error = returner.get_jids(None).unwrap_err();
    assert!(matches!(error, ReturnerError::Unsupported { returner: "rawfile_json", .. }));
    assert_eq!(error.to_string(), "returner 'rawfile_json' cannot list jobs: choose another returner");
}

fn jid(text: &str) -> Jid {
    text.parse().unwrap()
}

/// Three new job ids, oldest first.
fn jids() -> [Jid; 3] {
    [Jid::new(), Jid::new(), Jid::new()]
}

fn ids(names: &[&str]) -> Vec<MinionId> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

fn load(jid: &Jid, fun: &str) -> Load {
    let fields = map! {
        "jid" => jid, "fun" => fun, "arg" => list!["ü\n", map! {"__kwarg__" => true, "n" => 2.5}], "tgt" => "*",
        "tgt_type" => "glob", "user" => "root", "ret" => "", "minions" => list!["b", "a"], "unheard-of" => Value::Nil,
    };
    Load::from_map(fields).unwrap()
}

fn returned(jid: &Jid, id: &str, fun: &str, value: impl Into<Value>) -> Return {
    let fields = map! {
        "jid" => jid, "id" => id, "fun" => fun, "fun_args" => list![1], "return" => value.into(), "retcode" => 0,
        "success" => true, "_stamp" => "2026-11-20T23:58:52.025555",
    };
    Return::from_map(fields).unwrap()
}

fn names(returns: &Map) -> Vec<String> {
    returns.keys().map(ToString::to_string).collect()
}

fn value_of(returns: &Map, id: &str) -> Value {
    returns.get(id).and_then(|one| one.get("return")).cloned().unwrap_or_else(|| panic!("nothing of {id}"))
}

fn jobs_come_back(returner: &dyn Returner) {
    let load = load(&Jid::new(), "test.arg");
    returner.save_load(&load).unwrap();
    assert_eq!(returner.get_load(load.jid()).unwrap(), Some(load));
}

fn jobs_are_replaced(returner: &dyn Returner) {
    let jid = Jid::new();
    returner.save_load(&load(&jid, "test.ping")).unwrap();
    returner.save_load(&load(&jid, "test.arg")).unwrap();
    assert_eq!(returner.get_load(&jid).unwrap(), Some(load(&jid, "test.arg")));
    assert_eq!(returner.get_jids(None).unwrap().len(), 1);
}

fn late_minions(returner: &dyn Returner) {
    let [early, late, none] = jids();
    returner.save_minions(&early, &ids(&["d", "a"])).unwrap();
    returner.save_load(&load(&early, "test.ping")).unwrap();
    returner.save_load(&load(&late, "test.ping")).unwrap();
    returner.save_minions(&late, &[]).unwrap();
    returner.save_minions(&late, &ids(&["c"])).unwrap();
    returner.save_minions(&late, &ids(&["c", "d"])).unwrap();
    let minions = |jid| returner.get_load(jid).unwrap().unwrap().minions();
    assert_eq!(minions(&early), ids(&["a", "b", "d"]));
    assert_eq!(minions(&late), ids(&["a", "b", "c", "d"]));
    returner.save_minions(&none, &ids(&["c"])).unwrap();
    assert_eq!(returner.get_load(&none).unwrap(), None);
}

fn returns_come_back(returner: &dyn Returner) {
    let jid = Jid::new();
    let deep = map! {"text" => "ü\n", "list" => list![1, -2.5, Value::Nil, true, list![]], "map" => Value::map()};
    returner.returner(&returned(&jid, "b", "test.arg", deep.clone())).unwrap();
    let all = map! {"jid" => &jid, "id" => "a", "fun" => "x", "return" => Value::Nil, "retcode" => 2, "success" => false, "out" => "txt"};
    returner.returner(&Return::from_map(all).unwrap()).unwrap();
    let bare = map! {"jid" => &jid, "id" => "c", "return" => false};
    returner.returner(&Return::from_map(bare).unwrap()).unwrap();
    let returns = returner.get_jid(&jid).unwrap();
    assert_eq!(names(&returns), ["a", "b", "c"]);
    let expected = map! {
        "a" => map! {"return" => Value::Nil, "retcode" => 2, "success" => false, "out" => "txt"},
        "b" => map! {"return" => deep, "retcode" => 0, "success" => true},
        "c" => map! {"return" => false},
    };
    assert_eq!(returns, expected);
}

fn many_returns(returner: &dyn Returner) {
    let jid = Jid::new();
    let returns: Vec<Return> =
        (0..2500).map(|number| returned(&jid, &format!("m{number}"), "test.ping", number)).collect();
    returner.save_returns(&returns).unwrap();
    returner.save_returns(&[]).unwrap();
    let returns = returner.get_jid(&jid).unwrap();
    assert_eq!((returns.len(), value_of(&returns, "m2499")), (2500, 2499.into()));
    assert_eq!(returner.get_fun("test.ping").unwrap(), returns);
}

fn the_first_return_stays(returner: &dyn Returner) {
    let jid = Jid::new();
    returner.returner(&returned(&jid, "a", "test.arg", "first")).unwrap();
    returner.returner(&returned(&jid, "a", "test.arg", "second")).unwrap();
    returner.save_returns(&[returned(&jid, "b", "test.arg", 1), returned(&jid, "b", "test.arg", 2)]).unwrap();
    let returns = returner.get_jid(&jid).unwrap();
    assert_eq!((value_of(&returns, "a"), value_of(&returns, "b")), ("first".into(), 1.into()));
    assert_eq!(returns.len(), 2);
}

fn names_do_not_mix(returner: &dyn Returner) {
    // A job id with a PID has the other one as its prefix.
    let (short, long) = (jid("20261120235852025555"), jid("20261120235852025555_7"));
    returner.returner(&returned(&short, "a:b", "test.ping", "short")).unwrap();
    returner.returner(&returned(&long, "*", "test.ping", "long")).unwrap();
    returner.returner(&returned(&long, "minions", "jids", "odd")).unwrap();
    assert_eq!(names(&returner.get_jid(&short).unwrap()), ["a:b"]);
    assert_eq!(names(&returner.get_jid(&long).unwrap()), ["*", "minions"]);
    assert_eq!(returner.get_minions().unwrap(), ids(&["*", "a:b", "minions"]));
}

fn jobs_are_listed(returner: &dyn Returner) {
    let [old, middle, new] = jids();
    for jid in [&middle, &new, &old] {
        returner.save_load(&load(jid, "test.ping")).unwrap();
    }
    let listed =
        |limit| -> Vec<Jid> { returner.get_jids(limit).unwrap().iter().map(|load| load.jid().clone()).collect() };
    assert_eq!(listed(None), [new.clone(), middle.clone(), old]);
    assert_eq!(listed(Some(2)), [new.clone(), middle]);
    assert_eq!(listed(Some(0)), []);
    let summary = returner.get_jids(Some(1)).unwrap()[0].summary();
    assert_eq!(summary.get("Function"), Some(&"test.ping".into()));
    assert_eq!(summary.get("StartTime"), Some(&new.start_time().into()));
}

fn calls_are_jobs_of_the_master(returner: &dyn Returner) {
    let [old, middle, new] = jids();
    let ancient = jid("20200101000000000000_7");
    returner.save_load(&load(&middle, "test.ping")).unwrap();
    let body = map! {"fun" => "runner.manage.up", "user" => "ops", "return" => 1, "success" => true};
    let call =
        |jid: &Jid, body: &Map| Call::new("host_master".parse().unwrap(), jid.clone(), msgpack::pack_map(body).into());
    let damaged = Call::new("host_master".parse().unwrap(), jid("20200101000000000001"), b"\xc1"[..].to_vec().into());
    returner.save_calls(&[call(&ancient, &body), call(&old, &body), call(&new, &body), damaged]).unwrap();
    // After a crash before the cursor is committed, calls are stored again; the first version stays.
    returner.save_calls(&[call(&old, &map! {"fun" => "runner.other", "return" => 2})]).unwrap();
    let listed = |limit| -> Vec<Jid> {
        let loads = returner.get_jids(limit).unwrap();
        loads.iter().map(|load| load.jid().clone()).collect()
    };
    assert_eq!(listed(None), [new.clone(), middle.clone(), old.clone(), ancient.clone()]);
    assert_eq!(listed(Some(2)), [new.clone(), middle.clone()]);
    let summary = returner.get_load(&new).unwrap().unwrap().summary();
    for (name, is) in [("Function", "runner.manage.up"), ("Target", "host_master"), ("User", "ops")] {
        assert_eq!(summary.get(name), Some(&is.into()), "{name}");
    }
    assert_eq!(returner.get_jid(&old).unwrap(), map! {"host_master" => map! {"return" => body}});
    assert_eq!(names(&returner.get_fun("runner.manage.up").unwrap()), ["host_master"]);
    assert_eq!(returner.get_minions().unwrap(), ids(&["host_master"]));
    returner.clean_old_jobs(HOUR).unwrap();
    let mut expected = vec![new, middle, old];
    // This job began long ago, and has only ended now.
    expected.extend(KEEP_LATE_RETURNS.contains(&returner.name()).then(|| ancient.clone()));
    assert_eq!(listed(None), expected);
    assert_eq!(returner.get_jid(&ancient).unwrap().is_empty(), expected.len() == 3);
}

fn newest_of_function(returner: &dyn Returner) {
    let [old, middle, new] = jids();
    for (jid, id, fun, value) in [
        (&old, "b", "test.ping", 1),
        (&old, "a", "test.ping", 2),
        (&middle, "a", "test.ping", 3),
        (&new, "a", "test.arg", 4),
    ] {
        returner.returner(&returned(jid, id, fun, value)).unwrap();
    }
    let newest = returner.get_fun("test.ping").unwrap();
    assert_eq!(names(&newest), ["a", "b"]);
    assert_eq!(newest.get("a"), Some(&map! {"return" => 3, "retcode" => 0, "success" => true}.into()));
    assert_eq!(value_of(&newest, "b"), 1.into());
    assert_eq!(returner.get_fun("test.*").unwrap(), Map::new());
}

fn minions_are_known(returner: &dyn Returner) {
    let [one, two, _] = jids();
    returner.save_load(&load(&one, "test.ping")).unwrap();
    for (jid, id) in [(&one, "web2"), (&one, "web1"), (&two, "web2")] {
        returner.returner(&returned(jid, id, "test.ping", true)).unwrap();
    }
    assert_eq!(returner.get_minions().unwrap(), ids(&["web1", "web2"]));
}

fn nothing_is_known(returner: &dyn Returner) {
    let jid = Jid::new();
    assert_eq!(returner.get_load(&jid).unwrap(), None);
    assert_eq!(returner.get_jid(&jid).unwrap(), Map::new());
    assert_eq!(returner.get_jids(None).unwrap(), []);
    assert_eq!(returner.get_fun("test.ping").unwrap(), Map::new());
    assert_eq!(returner.get_minions().unwrap(), []);
    returner.clean_old_jobs(HOUR).unwrap();
}

fn late_returns(returner: &dyn Returner) {
    let [early, late, after] = ["20200101000000000000", "20200101000000000000_7", "20200102000000000000"].map(jid);
    for jid in [&early, &late, &after] {
        returner.save_load(&load(jid, "test.ping")).unwrap();
    }
    returner.returner(&returned(&late, "a", "test.ping", true)).unwrap();
    returner.clean_old_jobs(HOUR).unwrap();
    let jids: Vec<Jid> = returner.get_jids(None).unwrap().iter().map(|load| load.jid().clone()).collect();
    let stays = KEEP_LATE_RETURNS.contains(&returner.name());
    assert_eq!(jids, if stays { vec![late.clone()] } else { Vec::new() });
    assert_eq!(returner.get_jid(&late).unwrap().len(), usize::from(stays));
}

fn old_jobs_leave(returner: &dyn Returner) {
    let (old, new) = (jid("20200101000000000000_7"), Jid::new());
    for jid in [&old, &new] {
        returner.save_load(&load(jid, "test.ping")).unwrap();
        returner.save_minions(jid, &ids(&["c"])).unwrap();
    }
    returner.returner(&returned(&new, "a", "test.ping", true)).unwrap();
    returner.clean_old_jobs(Duration::ZERO).unwrap();
    assert_eq!(returner.get_jids(None).unwrap().len(), 2, "zero keeps everything");
    returner.clean_old_jobs(HOUR).unwrap();
    assert_eq!(returner.get_jids(None).unwrap().iter().map(Load::jid).collect::<Vec<_>>(), [&new]);
    assert_eq!(returner.get_jid(&old).unwrap(), Map::new());
    assert_eq!(returner.get_jid(&new).unwrap().len(), 1);
    assert_eq!(returner.get_load(&new).unwrap().unwrap().minions(), ids(&["a", "b", "c"]));
    // The minions of the removed job are not added to a new one with the same id.
    returner.save_load(&load(&old, "test.ping")).unwrap();
    assert_eq!(returner.get_load(&old).unwrap().unwrap().minions(), ids(&["b", "a"]));
}
