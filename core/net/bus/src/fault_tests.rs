//! The bus on disks that fail, fill up or are damaged.

use std::time::Duration;

use brine_value::{Value, map};

use super::tests::{executor, thread};
use super::*;
use crate::store::faults::{self, Errors};
use crate::store::{Batch, Table, tests::damage};

const ENOSPC: i32 = 28;
const FINE: Errors =
    Errors { write: None, grow: None, read: None, sync: None, open: None, rename: None, directory: None };
const FULL: Errors = Errors { write: Some(ENOSPC), ..FINE };

fn limits(reserve: u64) -> BusLimits {
    BusLimits { ring_events: 64, reserve, ..BusLimits::default() }
}

async fn bus_on(store: Store, opened: Opened, reserve: u64) -> Bus {
    Bus::with_journal(limits(reserve), store, opened, JournalLimits::default(), &executor()).await.unwrap()
}

async fn reopen(path: &Path, reserve: u64) -> Bus {
    let (store, opened) = Store::open(path, 1 << 20).unwrap();
    bus_on(store, opened, reserve).await
}

/// Publishes until the store accepts events again.
async fn fire_until_persisted(bus: &Bus) -> u64 {
    let fired = async {
        loop {
            if let Ok(seq) = bus.fire_durably("again", &map! {}).await {
                return seq;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), fired).await.unwrap()
}

async fn recv_tag(subscription: &mut Subscription, tag: &str) -> Event {
    let event = async {
        loop {
            let event = subscription.recv().await.unwrap();
            if event.tag() == tag {
                return event;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), event).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_loses_nothing_acknowledged_and_needs_no_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("brine.redb");
    let (store, opened, disk) = faults::open(&path, 1 << 20);
    let limits = JournalLimits::default();
    let bus = Bus::with_journal(BusLimits::default(), store, opened, limits, &executor()).await.unwrap();
    let mut state = bus.subscribe(Filter::prefix("salt/master/"), Start::Now).unwrap();
    let mut acknowledged = Vec::new();
    let mut issued = 0;
    for n in 0..100 {
        acknowledged.push(bus.fire_durably("before", &map! {"n" => n}).await.unwrap());
    }
    disk.set(FULL);
    for n in 0..500 {
        let error = bus.fire_durably("during", &map! {"n" => n}).await.unwrap_err();
        assert!(matches!(error, BusError::NotPersisted(_)), "{error}");
    }
    let failed = recv_tag(&mut state, "salt/master/store/failed").await;
    assert!(failed.data().get("message").unwrap().to_string().contains("No space left"), "{:?}", failed.data());
    disk.set(FINE);
    acknowledged.push(fire_until_persisted(&bus).await);
    let recovered = recv_tag(&mut state, "salt/master/store/recovered").await;
    assert!(recovered.data().get("not_kept").and_then(Value::as_i64).unwrap() >= 500);
    for n in 0..100 {
        acknowledged.push(bus.fire_durably("after", &map! {"n" => n}).await.unwrap());
        issued = issued.max(bus.last_seq());
    }
    bus.close().await;
    drop((bus, state));
    let bus = reopen(&path, 1 << 24).await;
    assert_eq!(bus.last_seq(), issued);
    let mut read = Vec::new();
    let mut from = 1;
    while let Some(last) = bus
        .read(&thread(), TimeOrSeq::Seq(from), 1000)
        .unwrap()
        .iter()
        .map(|event| {
            read.push(event.seq());
            event.seq()
        })
        .last()
    {
        from = last + 1;
    }
    assert!(acknowledged.iter().all(|seq| read.binary_search(seq).is_ok()));
    assert!(read.is_sorted_by(|one, other| one < other));
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_issued_while_the_disk_was_full_are_not_used_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("brine.redb");
    let (store, opened, disk) = faults::open(&path, 1 << 20);
    let bus = bus_on(store, opened, 1000).await;
    bus.fire_durably("before", &map! {}).await.unwrap();
    disk.set(FULL);
    let mut last = 0;
    let error = loop {
        match bus.fire("during", &map! {}).await {
            Ok(seq) => last = seq,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, BusError::NoNumbers), "{error}");
    assert!((501..=2001).contains(&last), "{last}");
    // The process ends during the outage, without closing the bus, and the disk works at the next start.
    drop(bus);
    disk.set(FINE);
    let bus = tokio::time::timeout(Duration::from_secs(10), async {
        loop {
            match Store::open(&path, 1 << 20) {
                Ok((store, opened)) => return bus_on(store, opened, 1000).await,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    });
    let bus = bus.await.unwrap();
    let next = bus.fire_durably("after", &map! {}).await.unwrap();
    assert!(next > last && next <= last + 1001, "{next} after {last}");
    assert_eq!(bus.read(&thread(), TimeOrSeq::Seq(2), 10).unwrap()[0].seq(), next);
}

#[tokio::test(flavor = "multi_thread")]
async fn skipped_numbers_are_neither_lag_nor_missed_events() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("brine.redb");
    {
        let bus = reopen(&path, 1000).await;
        let mut durable = bus.subscribe(Filter::All, Start::Durable("reactor".into())).unwrap();
        for n in 0..200 {
            bus.fire_durably("t", &map! {"n" => n}).await.unwrap();
        }
        durable.recv().await.unwrap();
        durable.commit(1);
    }
    // Without a clean stop.
    let bus = reopen_with_retry(&path).await;
    let first = bus.fire_durably("t", &map! {"n" => 200}).await.unwrap();
    assert!(first > 1000);
    assert_eq!(bus.lags(), [("reactor".to_owned(), 200)]);
    for (below, expected) in [(first + 5, first), (first, 200), (900, 200), (200, 199), (2, 1)] {
        assert_eq!(bus.last_before(&thread(), below).unwrap(), Some(expected), "{below}");
    }
    assert_eq!(bus.last_before(&thread(), 1).unwrap(), None);
    let mut durable = bus.subscribe(Filter::All, Start::Durable("reactor".into())).unwrap();
    let before = metrics::EVENTS_MISSED.get();
    for n in 1..=200 {
        let event = durable.recv().await.unwrap();
        assert_eq!(event.data().get("n").and_then(Value::as_i64), Some(n));
    }
    let gaps =
        bus.inner.journal.as_ref().unwrap().missing(1, first, &bus.read(&thread(), TimeOrSeq::Seq(1), 1000).unwrap());
    assert_eq!(gaps, [], "{before}");
}

async fn reopen_with_retry(path: &Path) -> Bus {
    let opened = async {
        loop {
            match Store::open(path, 1 << 20) {
                Ok((store, opened)) => return bus_on(store, opened, 1000).await,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), opened).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_of_the_journal_writer_fails_the_events_in_question_alone() {
    let directory = tempfile::tempdir().unwrap();
    let bus = reopen(&directory.path().join("brine.redb"), 1000).await;
    bus.fire_durably("t", &map! {}).await.unwrap();
    let before = metrics::JOURNAL_RESTARTS.get();
    let error = bus.fire_durably("test/journal/panic", &map! {}).await.unwrap_err();
    assert!(error.to_string().contains("the journal writer panicked"), "{error}");
    assert!(metrics::JOURNAL_RESTARTS.get() > before);
    let seq = bus.fire_durably("t", &map! {}).await.unwrap();
    assert_eq!(seq, 3);
    bus.close().await;
}

/// Creates a bus with 400 events of 3,500 bytes in the journal, each containing its number as text, and a subscription
/// that starts before the first event.
async fn with_events(path: &Path) -> (Bus, Store, Subscription) {
    let (store, opened) = Store::open(path, 0).unwrap();
    let bus = bus_on(store.clone(), opened, 1000).await;
    let slow = bus.subscribe(Filter::prefix("t"), Start::Now).unwrap();
    for n in 1..=400 {
        bus.fire("t", &map! {"n" => n, "text" => format!("<{n:05}>").repeat(500)}).await.unwrap();
    }
    bus.persisted(400).await.unwrap();
    (bus, store, slow)
}

async fn numbers_of(mut slow: Subscription, last: u64) -> Vec<u64> {
    let mut seen = Vec::new();
    let reading = async {
        while seen.last() != Some(&last) {
            seen.push(slow.recv().await.unwrap().seq());
        }
    };
    tokio::time::timeout(Duration::from_secs(60), reading).await.unwrap();
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_event_is_reported_and_the_others_are_delivered() {
    let directory = tempfile::tempdir().unwrap();
    let (bus, store, slow) = with_events(&directory.path().join("brine.redb")).await;
    let mut batch = Batch::new();
    batch.put(Table("journal"), 7u64.to_be_bytes(), &b"no event"[..]);
    store.write(batch).durable().await.unwrap();
    let (damaged, missed) = (metrics::STORE_DAMAGED.get(), metrics::EVENTS_MISSED.get());
    let seen = numbers_of(slow, 400).await;
    assert_eq!(seen, (1..=400).filter(|seq| *seq != 7).collect::<Vec<_>>());
    assert!(metrics::STORE_DAMAGED.get() > damaged && metrics::EVENTS_MISSED.get() > missed);
    drop(bus);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_page_loses_only_its_own_events() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("brine.redb");
    let (bus, _store, slow) = with_events(&path).await;
    damage(&path, "<00100>".repeat(50).as_bytes());
    let missed = metrics::EVENTS_MISSED.get();
    let seen = numbers_of(slow, 400).await;
    let lost: Vec<u64> = (1..=400).filter(|seq| !seen.contains(seq)).collect();
    assert!(lost.contains(&100) && lost.len() <= 4, "{lost:?}");
    assert!(metrics::EVENTS_MISSED.get() >= missed + lost.len() as u64);
    drop(bus);
}

#[tokio::test(flavor = "multi_thread")]
async fn sequence_numbers_continue_after_a_damaged_store_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("brine.redb");
    let (bus, store, slow) = with_events(&path).await;
    let durable = bus.subscribe(Filter::prefix("t"), Start::Durable("test".into())).unwrap();
    let mut recovered = bus.subscribe(Filter::prefix("salt/master/store/recovered"), Start::Now).unwrap();
    damage(&path, "<00400>".repeat(50).as_bytes());
    // The new event is stored after the damaged one, in the same part of the tree.
    let error = bus.fire_durably("t", &map! {"n" => 401}).await.unwrap_err();
    assert!(error.to_string().contains("damaged"), "{error}");
    let event = tokio::time::timeout(Duration::from_secs(60), recovered.recv()).await.unwrap().unwrap();
    assert_eq!(event.data()["moved_to"], directory.path().join("brine.redb.damaged").display().to_string().into());
    let seq = bus.fire_durably("t", &map! {"n" => 402}).await.unwrap();
    // Events of the old store count as missed.
    assert_eq!(numbers_of(slow, seq).await.last(), Some(&seq));
    durable.commit(seq);
    drop((durable, recovered));
    // The process ends without a clean stop: no number is reused.
    let copy = directory.path().join("copy.redb");
    let last = bus.fire_durably("t", &map! {}).await.unwrap();
    std::fs::copy(&path, &copy).unwrap();
    let again = reopen(&copy, 1000).await;
    let committed = again.subscribe(Filter::All, Start::Durable("test".into())).unwrap().position() - 1;
    assert!(again.last_seq() >= last && committed >= seq, "{last} {committed}");
    drop((bus, store, again));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_waits_while_the_store_cannot_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let (store, opened, disk) = faults::open(&directory.path().join("brine.redb"), 0);
    let bus = bus_on(store.clone(), opened, 1000).await;
    let slow = bus.subscribe(Filter::prefix("t"), Start::Now).unwrap();
    for n in 1..=400 {
        bus.fire("t", &map! {"n" => n}).await.unwrap();
    }
    bus.persisted(400).await.unwrap();
    disk.set(Errors { read: Some(5), ..FINE });
    let reading = tokio::spawn(numbers_of(slow, 400));
    let mut health = store.health();
    health.wait_for(|health| matches!(health, store::Health::Failed(_))).await.unwrap();
    disk.set(FINE);
    assert_eq!(reading.await.unwrap(), (1..=400).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_large_events_are_small() {
    let directory = tempfile::tempdir().unwrap();
    let bus = reopen(&directory.path().join("brine.redb"), 1000).await;
    for n in 0..40 {
        bus.fire("t", &map! {"n" => n, "text" => "x".repeat(900_000)}).await.unwrap();
    }
    bus.persisted(40).await.unwrap();
    let (mut seen, mut pages, mut from) = (Vec::new(), 0, 1);
    loop {
        let page = bus.read(&thread(), TimeOrSeq::Seq(from), 1000).unwrap();
        let Some(last) = page.last() else { break };
        let bytes: usize = page.iter().map(|event| event.frame().len()).sum();
        assert!(bytes < 20 << 20, "{bytes}");
        from = last.seq() + 1;
        pages += 1;
        seen.extend(page.iter().map(Event::seq));
    }
    assert_eq!(seen, (1..=40).collect::<Vec<_>>());
    assert!(pages > 3, "{pages}");
}

/// Writes this many bytes of events to a journal with this limit. Returns the maximum and the final size of the file.
async fn disk_use(limit: u64, total: u64, size: usize) -> (u64, u64) {
    let directory = tempfile::tempdir().unwrap();
    let (store, opened) = Store::open(&directory.path().join("brine.redb"), 8 << 20).unwrap();
    let limits = JournalLimits { bytes: limit, ..JournalLimits::default() };
    let bus = Bus::with_journal(BusLimits::default(), store.clone(), opened, limits, &executor()).await.unwrap();
    let event = Event::from_map("t", &map! {"text" => "x".repeat(size)}).unwrap();
    let (mut written, mut most, mut last_report) = (0, 0, 0);
    let start = std::time::Instant::now();
    while written < total {
        let seq = bus.fire_event(event.clone()).await.unwrap();
        written += event.frame().len() as u64;
        if seq.is_multiple_of(64) {
            most = most.max(store.disk_bytes());
            tokio::task::yield_now().await;
        }
        if written >= last_report + total / 16 {
            last_report = written;
            let file = std::fs::metadata(store.path()).unwrap().len();
            println!(
                "{size} B: {} MiB written, {} on disk, file {}, {:?}",
                written >> 20,
                store.disk_bytes() >> 20,
                file >> 20,
                start.elapsed()
            );
        }
    }
    bus.persisted(bus.last_seq()).await.unwrap();
    (most.max(store.disk_bytes()), store.disk_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_journal_stays_within_its_limit_on_disk() {
    let limit = 24 << 20;
    let (most, end) = disk_use(limit, 120 << 20, 1000).await;
    assert!(most < limit * 13 / 10, "{most} {end}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes gigabytes: for figures"]
async fn disk_use_of_a_flood() {
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (limit, total, size) = (number("LIMIT", 64) << 20, number("TOTAL", 3072) << 20, number("SIZE", 1000));
    let size = usize::try_from(size).unwrap();
    let (most, end) = disk_use(limit, total, size).await;
    println!("{size} B: at most {} MiB on disk, {} at the end", most >> 20, end >> 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_whose_write_was_refused_is_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("brine.redb");
    let (store, opened, disk) = faults::open(&path, 1 << 20);
    let bus = bus_on(store.clone(), opened, 1 << 24).await;
    let subscription = bus.subscribe(Filter::All, Start::Durable("reader".into())).unwrap();
    let seq = bus.fire_durably("before", &map! {}).await.unwrap();
    let mut health = store.health();
    disk.set(FULL);
    bus.fire_durably("during", &map! {}).await.unwrap_err();
    let failed = health.wait_for(|health| matches!(health, store::Health::Failed(_)));
    tokio::time::timeout(Duration::from_secs(60), failed).await.unwrap().unwrap();
    // Its last cursor, while the store refuses writes.
    subscription.commit(seq);
    drop(subscription);
    disk.set(FINE);
    fire_until_persisted(&bus).await;
    bus.close().await;
    store.close().await;
    drop((bus, store));
    let bus = reopen(&path, 1 << 24).await;
    let again = bus.subscribe(Filter::All, Start::Durable("reader".into())).unwrap();
    assert_eq!(again.position(), seq + 1);
}

#[tokio::test]
async fn a_refused_event_counts_once_at_every_entrance() {
    let bus = Bus::in_memory(BusLimits { event: 1000, ..BusLimits::default() });
    let large = Event::from_map("large", &map! {"x" => "x".repeat(2000)}).unwrap();
    let refused = || metrics::EVENTS_REFUSED.get();
    let before = refused();
    assert!(matches!(bus.try_fire(&large), Err(BusError::TooLarge { .. })));
    assert_eq!(refused(), before + 1);
    assert!(matches!(bus.fire_event(large.clone()).await, Err(BusError::TooLarge { .. })));
    assert_eq!(refused(), before + 2);
    sockets::publish_received(bus.clone(), vec![large.frame().clone()]).await;
    assert_eq!(refused(), before + 3);
    sockets::publish_received(bus.clone(), vec![bytes::Bytes::from_static(b"no event")]).await;
    assert_eq!((refused(), bus.last_seq()), (before + 4, 0));
    let deep = brine_value::levels::nested(brine_value::levels::MAX_LEVELS + 1).as_map().cloned().unwrap();
    assert!(matches!(bus.fire("deep", &deep).await, Err(BusError::Event(EventError::TooDeep(_)))));
    let frame = Event::from_trusted_map("deep", &deep).unwrap().frame().clone();
    sockets::publish_received(bus.clone(), vec![frame]).await;
    let endless = [b"deep\n\n\x81\xa1a".as_slice(), &vec![0x91; 100_000], b"\xc0"].concat();
    sockets::publish_received(bus.clone(), vec![endless.into()]).await;
    assert_eq!((refused(), bus.last_seq()), (before + 7, 0));
}
