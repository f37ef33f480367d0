use std::path::Path;
use std::time::Duration;

use brine_bus::store::Store;
use brine_runtime::executors::MayBlock;
use tokio::runtime::Builder;

use super::*;

fn open(directory: &Path) -> LargeReturns {
    let (store, _) = Store::open(&directory.join("brine.redb"), 1 << 20).unwrap();
    let runtime = Builder::new_current_thread().build().unwrap();
    let store = store.blocking(&MayBlock::on_dedicated_thread(runtime.handle().clone()));
    LargeReturns::open(&store, 1000, true).unwrap()
}

fn id(name: &str) -> MinionId {
    name.parse().unwrap()
}

#[test]
fn one_minion_may_use_a_quarter_of_the_space() {
    let directory = tempfile::tempdir().unwrap();
    let large = open(directory.path());
    let jids: Vec<Jid> = (0..5).map(|_| Jid::new()).collect();
    assert!(large.reserve(&jids[0], &id("a"), 200).unwrap());
    assert!(large.reserve(&jids[0], &id("a"), 900).unwrap(), "a repeated return takes no more space");
    assert!(!large.reserve(&jids[1], &id("a"), 51).unwrap());
    assert!(large.reserve(&jids[1], &id("a"), 50).unwrap());
    for name in ["b", "c", "d"] {
        assert!(large.reserve(&jids[2], &id(name), 240).unwrap(), "{name}");
    }
    assert!(!large.reserve(&jids[3], &id("e"), 40).unwrap());
    assert!(large.reserve(&jids[3], &id("e"), 30).unwrap());
}

#[test]
fn the_space_is_known_after_a_restart_and_freed_with_old_jobs() {
    let directory = tempfile::tempdir().unwrap();
    let old: Jid = "20200101000000000000".parse().unwrap();
    let large = open(directory.path());
    assert!(large.reserve(&old, &id("a"), 250).unwrap());
    drop(large);
    let large = open(directory.path());
    assert!(!large.reserve(&Jid::new(), &id("a"), 1).unwrap());
    large.expire(Duration::ZERO);
    assert!(!large.reserve(&Jid::new(), &id("a"), 1).unwrap(), "without a lifetime nothing expires");
    large.expire(Duration::from_secs(3600));
    assert!(large.reserve(&Jid::new(), &id("a"), 250).unwrap());
    drop(large);
    let reopened = open(directory.path());
    assert_eq!(reopened.sizes.lock().len(), 1);
}

#[test]
fn a_refused_write_reserves_nothing_and_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let large = open(directory.path());
    let one =
        Return::from_map(brine_value::map! {"jid" => &Jid::new(), "id" => "a", "fun" => "test.ping", "return" => true});
    let one = one.unwrap();
    Builder::new_current_thread().build().unwrap().block_on(large.store.close());
    assert!(matches!(large.reserve(one.jid(), one.id(), 100), Err(StoreError::Closed)));
    assert!(large.sizes.lock().is_empty());
    assert!(matches!(large.keep_for_members(&one), Err(StoreError::Closed)));
}
