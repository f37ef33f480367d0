use brine_bus::store::{Store, StoreError};
use brine_bus::{BusLimits, Filter, JournalLimits, Start};
use brine_value::map;

use super::*;
use crate::job_cache::subscribe_jobs;

/// Returns a bus with a journal, and the directory of its store.
async fn journalled() -> (tempfile::TempDir, Bus) {
    let directory = tempfile::tempdir().unwrap();
    let (store, opened) = Store::open(&directory.path().join("store"), 1 << 20).unwrap();
    let (limits, disk) = (JournalLimits::default(), Executor::new("disk", 1, 8));
    let bus = Bus::with_journal(BusLimits::default(), store, opened, limits, &disk).await.unwrap();
    (directory, bus)
}

#[tokio::test]
async fn the_cursor_advances_past_filtered_events() {
    let (_folder, bus) = journalled().await;
    let mut events = subscribe_jobs(&bus).unwrap();
    let shutdown = CancellationToken::new();
    let (stop, lags, of) = (shutdown.clone(), bus.clone(), bus.clone());
    tokio::spawn(async move {
        deliver(&of, "test", &mut events, &Executor::new("disk", 1, 1), stop, |_| panic!("nothing is wanted")).await;
    });
    for n in 0..10 {
        bus.fire("other", &map! {"n" => n}).await.unwrap();
    }
    while lags.lags().iter().any(|(_, lag)| *lag > 0) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    shutdown.cancel();
}

#[tokio::test]
async fn events_are_retried_until_they_are_stored() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let (_folder, bus) = journalled().await;
    let mut events = subscribe_jobs(&bus).unwrap();
    let (shutdown, calls) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
    let (stored, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let (stop, of) = (shutdown.clone(), bus.clone());
    let task = tokio::spawn(async move {
        let take = move |batch: &[Event]| {
            for (handled, event) in batch.iter().enumerate() {
                // Every other call fails.
                if calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
                    return Err(Unstored { handled, count: 1, error: ReturnerError::Store(StoreError::Closed) });
                }
                stored.send(event.seq()).unwrap();
            }
            Ok(())
        };
        deliver(&of, "test", &mut events, &Executor::new("disk", 1, 1), stop, take).await;
    });
    let mut published = Vec::new();
    for n in 0..5 {
        published.push(bus.fire("salt/job/1/new", &map! {"n" => n}).await.unwrap());
    }
    for seq in published {
        assert_eq!(seen.recv().await, Some(seq));
    }
    shutdown.cancel();
    task.await.unwrap();
}

#[tokio::test]
async fn an_outage_is_announced_once_and_drops_nothing() {
    use std::sync::atomic::{AtomicU32, Ordering};
    let (_folder, bus) = journalled().await;
    let mut events = subscribe_jobs(&bus).unwrap();
    let mut announced = bus.subscribe(Filter::prefix("salt/master/returner/"), Start::Now).unwrap();
    let (shutdown, calls) = (CancellationToken::new(), AtomicU32::new(0));
    let (stored, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let unreachable = || {
        let nobody = map! {"redis.unix_socket_path" => "/nonexistent/redis.sock"};
        let options = brine_returners::Options::new(&nobody, None);
        brine_returners::open("redis", &options).unwrap().get_minions().unwrap_err()
    };
    let (stop, of) = (shutdown.clone(), bus.clone());
    let task = tokio::spawn(async move {
        let take = move |batch: &[Event]| {
            if calls.fetch_add(1, Ordering::Relaxed) < 3 {
                return Err(Unstored { handled: 0, count: batch.len(), error: unreachable() });
            }
            for event in batch {
                stored.send(event.seq()).unwrap();
            }
            Ok(())
        };
        deliver(&of, "redis", &mut events, &Executor::new("disk", 1, 1), stop, take).await;
    });
    let published = bus.fire("salt/job/1/new", &map! {}).await.unwrap();
    assert_eq!(seen.recv().await, Some(published));
    for tag in [FAILED, RECOVERED] {
        let event = announced.recv().await.unwrap();
        assert_eq!((event.tag(), event.data().get("returner")), (tag, Some(&"redis".into())));
    }
    shutdown.cancel();
    task.await.unwrap();
}

/// Delivers events with these tags, and returns the tags of the first batch with the time until it came.
async fn first_batch(queueing: Queueing, tags: &[&str]) -> (Vec<String>, Duration) {
    let (_folder, bus) = journalled().await;
    let mut events = bus.subscribe(Filter::All, Start::Durable("queued".into())).unwrap();
    let (shutdown, (stored, mut batches)) = (CancellationToken::new(), tokio::sync::mpsc::unbounded_channel());
    let (stop, of, begun) = (shutdown.clone(), bus.clone(), Instant::now());
    let task = tokio::spawn(async move {
        let events = (&mut events, queueing, |event: &Event| event.tag() != "denied");
        let take = move |batch: &[Event]| {
            stored.send(batch.iter().map(|event| event.tag().to_owned()).collect::<Vec<_>>()).unwrap();
            Ok(())
        };
        deliver_queued(&of, "test", events, &Executor::new("disk", 1, 1), stop, take).await;
    });
    for tag in tags {
        bus.fire(tag, &map! {}).await.unwrap();
    }
    let batch = (batches.recv().await.unwrap(), begun.elapsed());
    shutdown.cancel();
    task.await.unwrap();
    batch
}

#[tokio::test]
async fn queued_events_are_delivered_by_number_or_by_age() {
    let (batch, _) = first_batch(Queueing { events: 3, time: None }, &["a", "b", "denied", "c"]).await;
    assert_eq!(batch, ["a", "b", "c"]);
    let time = Duration::from_millis(50);
    let (batch, after) = first_batch(Queueing { events: 3, time: Some(time) }, &["denied", "a"]).await;
    assert_eq!(batch, ["a"]);
    assert!(after >= time, "{after:?}");
}

#[tokio::test]
async fn an_event_that_panics_is_dropped_alone() {
    let (_folder, bus) = journalled().await;
    let mut events = bus.subscribe(Filter::All, Start::Durable("panics".into())).unwrap();
    let (shutdown, (stored, mut seen)) = (CancellationToken::new(), tokio::sync::mpsc::unbounded_channel());
    for tag in ["a", "b", "bad", "c", "d"] {
        bus.fire(tag, &map! {}).await.unwrap();
    }
    let (stop, of) = (shutdown.clone(), bus.clone());
    let task = tokio::spawn(async move {
        let take = move |batch: &[Event]| {
            assert!(batch.iter().all(|event| event.tag() != "bad"), "requested by the test");
            for event in batch {
                stored.send(event.tag().to_owned()).unwrap();
            }
            Ok(())
        };
        deliver(&of, "test", &mut events, &Executor::new("disk", 1, 1), stop, take).await;
    });
    for tag in ["a", "b", "c", "d"] {
        assert_eq!(seen.recv().await.unwrap(), tag);
    }
    shutdown.cancel();
    task.await.unwrap();
}
