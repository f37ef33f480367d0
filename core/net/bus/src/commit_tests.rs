//! The number of commits, each of which flushes the disk once. In tests no write that may wait is committed by itself.

use brine_value::map;

use super::tests::{executor, small, thread};
use super::*;
use crate::store::{Batch, BlockingStore, Table};

const THINGS: Table = Table("things");

fn one(key: &str) -> Batch {
    let mut batch = Batch::new();
    batch.put(THINGS, key.as_bytes(), &b"1"[..]);
    batch
}

fn event(tag: &str) -> Event {
    Event::from_map(tag, &map! {"n" => 1}).unwrap()
}

async fn open(directory: &Path) -> (Bus, Store) {
    let (store, opened) = Store::open(&directory.join("brine.redb"), 1 << 20).unwrap();
    let limits = JournalLimits::default();
    (Bus::with_journal(small(), store.clone(), opened, limits, &executor()).await.unwrap(), store)
}

#[tokio::test]
async fn writes_that_may_wait_are_committed_with_the_next_one() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(&directory.path().join("brine.redb"), 1 << 20).unwrap();
    let store = store.blocking(&thread());
    let before = store.commits();
    let waiting = [store.write_soon(one("a")), store.write_soon(one("b"))];
    store.write(one("c")).durable().await.unwrap();
    for ticket in waiting {
        ticket.durable().await.unwrap();
    }
    assert_eq!((store.scan(THINGS, b"", 9).unwrap().len(), store.commits() - before), (3, 1));
}

#[tokio::test]
async fn writes_that_may_wait_do_not_once_somebody_waits_for_them() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(&directory.path().join("brine.redb"), 1 << 20).unwrap();
    let store = store.blocking(&thread());
    let waiting = store.write_soon(one("a"));
    let hurry = store.hurry();
    waiting.durable().await.unwrap();
    store.write_soon(one("b")).durable().await.unwrap();
    drop(hurry);
    let waiting = store.write_soon(one("c"));
    store.close().await;
    waiting.durable().await.unwrap();
}

/// Stores each event of jobs as the job cache does.
async fn follow(mut events: Subscription, store: BlockingStore) {
    while let Some(batch) = events.recv_many().await {
        let tickets: Vec<_> = batch.iter().map(|event| store.write_soon(one(&event.seq().to_string()))).collect();
        for ticket in tickets {
            ticket.durable().await.unwrap();
        }
        events.commit(batch.last().unwrap().seq());
    }
}

#[tokio::test]
async fn a_job_has_one_commit_for_its_start_and_one_for_its_return() {
    let directory = tempfile::tempdir().unwrap();
    let (bus, store) = open(directory.path()).await;
    let cache = bus.subscribe(Filter::All, Start::Durable("job_cache".into())).unwrap();
    let follower = tokio::spawn(follow(cache, store.blocking(&thread())));
    bus.fire_durably("start", &map! {}).await.unwrap();
    let before = store.commits();
    for _ in 0..20 {
        let fired = bus.fire_all(&[event("salt/job/1/new"), event("salt/job/1/publish")]).await;
        bus.persisted(*fired[1].as_ref().unwrap()).await.unwrap();
        bus.fire_durably("salt/job/1/ret/m", &map! {}).await.unwrap();
    }
    assert_eq!(store.commits() - before, 40);
    bus.close().await;
    drop(bus.hurry());
    follower.await.unwrap();
    drop((bus, store));
    let (bus, store) = open(directory.path()).await;
    assert_eq!(store.blocking(&thread()).scan(THINGS, b"", usize::MAX).unwrap().len(), 61);
    let cache = bus.subscribe(Filter::All, Start::Durable("job_cache".into())).unwrap();
    assert_eq!(cache.position(), 62);
}

#[tokio::test]
async fn an_event_does_not_wait_for_cursors_that_wait_for_events() {
    let directory = tempfile::tempdir().unwrap();
    let (bus, store) = open(directory.path()).await;
    let durable = bus.subscribe(Filter::All, Start::Durable("reactor".into())).unwrap();
    let mut last = bus.fire_durably("t", &map! {}).await.unwrap();
    let before = store.commits();
    for _ in 0..100 {
        durable.commit(last);
        tokio::task::yield_now().await;
        last = bus.fire_durably("t", &map! {}).await.unwrap();
    }
    assert_eq!(store.commits() - before, 100);
}

#[tokio::test]
async fn the_first_refusal_ends_events_that_are_published_together() {
    let bus = Bus::in_memory(small());
    let large = Event::from_map("large", &map! {"text" => "x".repeat(1 << 17)}).unwrap();
    let fired = bus.fire_all(&[event("a"), large, event("b")]).await;
    assert!(matches!(fired[..], [Ok(1), Err(BusError::TooLarge { .. })]), "{fired:?}");
    assert_eq!(bus.last_seq(), 1);
}

#[tokio::test]
async fn events_behind_a_refused_one_are_published_if_each_is_on_its_own() {
    let bus = Bus::in_memory(small());
    let large = Event::from_map("large", &map! {"text" => "x".repeat(1 << 17)}).unwrap();
    let fired = bus.fire_each(&[event("a"), large, event("b")]).await;
    assert!(matches!(fired[..], [Ok(1), Err(BusError::TooLarge { .. }), Ok(2)]), "{fired:?}");
}
