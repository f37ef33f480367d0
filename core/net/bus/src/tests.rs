//! The bus from its callers' view: events are neither lost nor duplicated nor reordered.

use std::time::Duration;

use brine_value::{Value, map};
use brine_zmtp::{Limits, Push, Subscriber};

use super::*;

pub(super) fn small() -> BusLimits {
    BusLimits { ring_events: 64, ring_bytes: 1 << 20, event: 1 << 16, ..BusLimits::default() }
}

/// Creates an executor for blocking operations.
pub(super) fn executor() -> Executor {
    Executor::new("disk", 4, 64)
}

/// Tests may block.
pub(super) fn thread() -> MayBlock {
    MayBlock::on_dedicated_thread(tokio::runtime::Handle::current())
}

async fn open(directory: &Path) -> (Bus, Opened) {
    let (store, opened) = Store::open(&directory.join("brine.redb"), 1 << 20).unwrap();
    (Bus::with_journal(small(), store, opened, JournalLimits::default(), &executor()).await.unwrap(), opened)
}

async fn fire(bus: &Bus, tag: &str, n: i64) -> u64 {
    bus.fire(tag, &map! {"n" => n}).await.unwrap()
}

fn n(event: &Event) -> i64 {
    event.data().get("n").and_then(Value::as_i64).unwrap()
}

#[tokio::test]
async fn events_are_numbered_stamped_and_delivered_in_order() {
    let bus = Bus::in_memory(small());
    let mut all = bus.subscribe(Filter::All, Start::Now).unwrap();
    let mut globs =
        bus.subscribe(Filter::Globs(brine_text::glob::GlobSet::new(["a/*/c"]).unwrap()), Start::Now).unwrap();
    for (i, tag) in ["a/b/c", "x", "a/b/c/d/c"].iter().enumerate() {
        assert_eq!(fire(&bus, tag, i64::try_from(i).unwrap()).await, i as u64 + 1);
    }
    for i in 0..3u64 {
        let event = all.recv().await.unwrap();
        assert_eq!((event.seq(), n(&event)), (i + 1, i.cast_signed()));
        assert_eq!(event.data().get("_seq"), Some(&Value::from(i + 1)));
        assert_eq!(
            event.data().get("_stamp").and_then(Value::as_str).unwrap().len(),
            "2026-11-21T01:02:03.000004+00:00".len()
        );
    }
    assert_eq!(n(&globs.recv().await.unwrap()), 0);
    assert_eq!(n(&globs.recv().await.unwrap()), 2);
    bus.close().await;
    assert!(all.recv().await.is_none());
    assert!(matches!(bus.fire("late", &map! {}).await, Err(BusError::Closed)));
}

#[tokio::test]
async fn a_lagging_subscriber_reads_from_the_journal() {
    let directory = tempfile::tempdir().unwrap();
    let (bus, _) = open(directory.path()).await;
    let mut slow = bus.subscribe(Filter::prefix("t/"), Start::Now).unwrap();
    for i in 0..5000 {
        fire(&bus, if i % 2 == 0 { "t/even" } else { "odd" }, i).await;
    }
    for i in (0..5000).step_by(2) {
        assert_eq!(n(&slow.recv().await.unwrap()), i);
    }
    assert!(slow.lag() <= 1);
}

#[tokio::test]
async fn without_a_journal_missed_events_are_counted() {
    let bus = Bus::in_memory(small());
    let mut slow = bus.subscribe(Filter::All, Start::Now).unwrap();
    let before = metrics::EVENTS_MISSED.get();
    for i in 0..1000 {
        fire(&bus, "t", i).await;
    }
    assert_eq!(n(&slow.recv().await.unwrap()), 1000 - 64);
    assert_eq!(metrics::EVENTS_MISSED.get() - before, 1000 - 64);
}

#[tokio::test]
async fn a_durable_subscriber_resumes_at_its_cursor() {
    let directory = tempfile::tempdir().unwrap();
    {
        let (bus, opened) = open(directory.path()).await;
        assert_eq!(opened, Opened::New);
        let mut durable = bus.subscribe(Filter::All, Start::Durable("reactor".into())).unwrap();
        for i in 0..200 {
            fire(&bus, "t", i).await;
        }
        for _ in 0..150 {
            durable.recv().await.unwrap();
        }
        durable.commit(150);
        drop(durable);
        bus.close().await;
    }
    let (bus, opened) = open(directory.path()).await;
    assert_eq!(opened, Opened::Clean);
    let mut durable = bus.subscribe(Filter::All, Start::Durable("reactor".into())).unwrap();
    let event = durable.recv().await.unwrap();
    assert_eq!((event.seq(), n(&event)), (151, 150));
    let mut new = bus.subscribe(Filter::All, Start::Durable("other".into())).unwrap();
    assert_eq!(fire(&bus, "t", 200).await, 201);
    assert_eq!(n(&new.recv().await.unwrap()), 200);
}

#[tokio::test]
async fn persisted_events_survive_and_are_read_by_number_and_time() {
    let directory = tempfile::tempdir().unwrap();
    let (bus, _) = open(directory.path()).await;
    let seq = bus.fire_durably("first", &map! {"n" => 1}).await.unwrap();
    let time = jiff::Timestamp::now().as_microsecond().cast_unsigned();
    bus.fire_durably("second", &map! {"n" => 2}).await.unwrap();
    let tags = |events: Vec<Event>| events.iter().map(|event| event.tag().to_owned()).collect::<Vec<_>>();
    assert_eq!(tags(bus.read(&thread(), TimeOrSeq::Seq(seq), 10).unwrap()), ["first", "second"]);
    assert_eq!(tags(bus.read(&thread(), TimeOrSeq::Seq(seq), 1).unwrap()), ["first"]);
    assert_eq!(tags(bus.read(&thread(), TimeOrSeq::Time(time), 10).unwrap()), ["second"]);
}

#[tokio::test]
async fn an_oversized_event_is_refused() {
    let bus = Bus::in_memory(small());
    let error = bus.fire("t", &map! {"x" => vec![0u8; 1 << 17]}).await.unwrap_err();
    assert!(error.to_string().contains("max_event_size"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sockets_carry_events_in_and_out_without_loss() {
    let directory = tempfile::tempdir().unwrap();
    let (bus, _) = open(directory.path()).await;
    let names = SocketNames::master();
    let sockets = EventSockets::bind(directory.path(), &names).await.unwrap();
    let shutdown = tokio_util::sync::CancellationToken::new();
    tokio::spawn(sockets.serve(bus.clone(), shutdown.clone()));
    let _guard = shutdown.drop_guard();
    let publish = names.publish_endpoint(directory.path());
    let mut follower = Subscriber::connect(&publish, &[b"t/"], Limits::default()).await.unwrap();
    let mut push = Push::connect(&names.pull_endpoint(directory.path())).await.unwrap();
    let count = 20_000;
    let pushing = tokio::spawn(async move {
        push.push(b"garbage without a separator");
        push.push(b"t/bad\n\nnot msgpack");
        for i in 0..count {
            push.push(Event::from_map("t/x", &map! {"n" => i}).unwrap().frame());
            if push.waiting() > 1 << 16 {
                push.flush().await.unwrap();
            }
        }
        push.flush().await.unwrap();
    });
    for i in 0..count {
        let frames = tokio::time::timeout(Duration::from_secs(20), follower.recv()).await.unwrap().unwrap();
        assert_eq!(n(&Event::from_frame(frames[0].clone()).unwrap()), i);
    }
    pushing.await.unwrap();
}

#[test]
fn a_minions_sockets_are_named_by_the_hash_of_its_id() {
    // echo -n web1 | sha256sum
    assert_eq!(SocketNames::minion("web1").pull, "minion_event_659a7fb2af_pull.ipc");
}

#[tokio::test]
async fn events_not_yet_in_the_journal_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let (store, opened) = Store::open(&directory.path().join("brine.redb"), 1 << 20).unwrap();
    let bus =
        Bus::with_journal(BusLimits::default(), store, opened, JournalLimits::default(), &executor()).await.unwrap();
    for n in 1..=200u64 {
        let seq = bus.fire("t", &map! {"n" => n}).await.unwrap();
        let read = bus.read(&thread(), TimeOrSeq::Seq(1), 1000).unwrap();
        let seqs: Vec<_> = read.iter().map(Event::seq).collect();
        assert_eq!(seqs, (1..=seq).collect::<Vec<_>>());
        assert_eq!(bus.read(&thread(), TimeOrSeq::Seq(seq), 1).unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_store_of_the_first_layout_continues() {
    let directory = tempfile::tempdir().unwrap();
    let (journal, meta) = (store::Table("journal"), store::Table("meta"));
    {
        let (store, _) = Store::open(&directory.path().join("brine.redb"), 1 << 20).unwrap();
        let mut batch = store::Batch::new();
        batch.put(meta, *b"schema", 1u64.to_be_bytes().to_vec());
        for seq in 1..=3u64 {
            let event = Event::from_map("old", &map! {"n" => seq}).unwrap().stamped(seq, "s").unwrap();
            batch.put(journal, seq.to_be_bytes(), event.frame().clone());
        }
        store.write(batch).durable().await.unwrap();
        store.close().await;
    }
    let (bus, opened) = open(directory.path()).await;
    assert_eq!(opened, Opened::Clean);
    let last = bus.fire_all(&vec![Event::from_map("new", &map! {"n" => 4}).unwrap(); 20]).await;
    bus.persisted(*last[19].as_ref().unwrap()).await.unwrap();
    let read = bus.read(&thread(), TimeOrSeq::Seq(1), 100).unwrap();
    assert_eq!(read.iter().map(Event::seq).collect::<Vec<_>>(), (1..=23).collect::<Vec<_>>());
    bus.close().await;
    drop(bus);
    let (bus, _) = open(directory.path()).await;
    assert_eq!(bus.last_seq(), 23);
    let stored = bus.inner.journal.as_ref().unwrap().store().blocking(&thread());
    assert_eq!(stored.get(meta, b"schema").unwrap(), Some(store::SCHEMA.to_be_bytes().to_vec()));
    assert!(stored.scan(journal, b"", 100).unwrap().len() < 10);
}
