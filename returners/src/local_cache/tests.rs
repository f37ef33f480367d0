//! The job cache in the master's store.

use brine_bus::store::Store;
use brine_runtime::executors::MayBlock;
use brine_value::{list, map};

use super::*;

pub(super) fn cache(directory: &std::path::Path) -> LocalCache {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (store, _) = Store::open(&directory.join("brine.redb"), 1 << 20).unwrap();
    let store = store.blocking(&MayBlock::on_dedicated_thread(runtime.handle().clone()));
    LocalCache { store, in_flight: Mutex::default(), is_indexed: AtomicBool::default() }
}

pub(super) fn returned(jid: &Jid, id: &str) -> Return {
    Return::from_map(map! {"jid" => jid, "id" => id, "fun" => "test.ping", "return" => true}).unwrap()
}

#[test]
fn many_returns_are_written_without_a_commit_for_each() {
    let directory = tempfile::tempdir().unwrap();
    let cache = cache(directory.path());
    let jid = Jid::new();
    let count = MAX_IN_FLIGHT + PAGE + 10;
    for number in 0..count {
        cache.returner(&returned(&jid, &format!("minion{number}"))).unwrap();
        assert!(cache.in_flight.lock().len() <= MAX_IN_FLIGHT);
    }
    assert_eq!(cache.get_jid(&jid).unwrap().len(), count);
    assert_eq!(cache.get_minions().unwrap().len(), count);
    assert!(cache.in_flight.lock().is_empty());
}

#[test]
fn damaged_rows_fail_alone_and_are_skipped_in_lists() {
    let directory = tempfile::tempdir().unwrap();
    let cache = cache(directory.path());
    let (good, bad) = (Jid::new(), Jid::new());
    for jid in [&good, &bad] {
        cache.save_load(&Load::from_map(map! {"jid" => jid}).unwrap()).unwrap();
        cache.returner(&returned(jid, "a")).unwrap();
    }
    let mut batch = Batch::new();
    batch.put(LOADS, bad.as_str(), &b"\xc1"[..]).put(RETURNS, key(&bad, "a"), &b"\x80"[..]);
    batch.put(INDEX, bad.as_str(), &b"\xc1"[..]);
    cache.write(batch).unwrap();
    let error = cache.get_load(&bad).unwrap_err().to_string();
    assert!(error.starts_with(&format!("decoding the value of {bad} (local_cache) failed: ")), "{error}");
    assert_eq!(cache.get_jid(&bad).unwrap(), Map::new());
    assert_eq!(cache.get_jids(None).unwrap().iter().map(Load::jid).collect::<Vec<_>>(), [&good]);
}

#[test]
fn jobs_of_earlier_versions_are_added_to_the_index() {
    let directory = tempfile::tempdir().unwrap();
    let jids = [Jid::new(), Jid::new(), Jid::new()];
    let old = cache(directory.path());
    for jid in &jids[..2] {
        old.save_load(&Load::from_map(map! {"jid" => jid, "fun" => "test.ping", "minions" => list!["a"]}).unwrap())
            .unwrap();
    }
    let body = msgpack::pack_map(&map! {"fun" => "runner.manage.up", "return" => 1});
    old.save_calls(&[Call::new("m_master".parse().unwrap(), jids[2].clone(), body.into())]).unwrap();
    let mut batch = Batch::new();
    batch.delete(INDEX, jids[0].as_str()).delete(INDEX, jids[1].as_str()).delete(INDEX, jids[2].as_str());
    old.write(batch).unwrap();
    let matching_jids = |predicate: &dyn Fn(&JobOutline<'_>) -> bool| -> Vec<Jid> {
        old.find_jobs(None, predicate).unwrap().iter().map(|load| load.jid().clone()).collect()
    };
    assert_eq!(matching_jids(&|_| true), [jids[2].clone(), jids[1].clone(), jids[0].clone()]);
    assert_eq!(matching_jids(&|job| job.functions().any(|fun| fun == "runner.manage.up")), [jids[2].clone()]);
    assert_eq!(old.get_load(&jids[0]).unwrap().unwrap().minions().len(), 1);
}

#[test]
fn returns_survive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let jid = Jid::new();
    cache(directory.path()).returner(&returned(&jid, "a")).unwrap();
    assert_eq!(cache(directory.path()).get_jid(&jid).unwrap().len(), 1);
}

#[test]
fn opening_without_the_store_fails() {
    assert!(matches!(open(&Options::default()), Err(ReturnerError::NoStore)));
}
