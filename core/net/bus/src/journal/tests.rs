use std::time::Duration;

use super::*;
use brine_value::map;

/// Tests may block.
fn thread() -> MayBlock {
    MayBlock::on_dedicated_thread(tokio::runtime::Handle::current())
}

/// Opens the journal of a new store.
async fn open(store: &Store, limits: JournalLimits) -> Journal {
    let (disk, store) = (Executor::new("disk", 1, 8), store.clone());
    let used = disk.clone();
    let open = move |thread: &MayBlock| {
        Journal::open(thread, used, store, Opened::New, limits, &BusLimits::default()).unwrap().0
    };
    disk.run(open).await.unwrap()
}

/// Creates a journal with ten events of 100 bytes, one each second from 1 s on, each with an index entry.
async fn ten(limits: JournalLimits) -> (tempfile::TempDir, Journal) {
    let directory = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(&directory.path().join("brine.redb"), 1 << 20).unwrap();
    let journal = open(&store, limits).await;
    let mut batch = Batch::new();
    for seq in 1..=10u64 {
        let event = Event::from_map("t", &map! {}).unwrap().stamped(seq, "s").unwrap();
        batch.put(EVENTS, seq.to_be_bytes(), event.frame().clone());
        let entry = [seq.to_be_bytes(), (100 * (seq - 1)).to_be_bytes()].concat();
        batch.put(INDEX, (seq * 1_000_000).to_be_bytes(), entry);
    }
    store.write(batch).durable().await.unwrap();
    (directory, journal)
}

/// Returns the numbers of the events that remain after trimming at `now` seconds.
async fn left(journal: &Journal, now: u64) -> Vec<u64> {
    let mut batch = Batch::new();
    journal.trim(&thread(), &mut batch, Cut { now: now * 1_000_000, written: 1000 }).unwrap();
    journal.store.write(batch).durable().await.unwrap();
    journal.read(&thread(), 0, 100).unwrap().events.iter().map(Event::seq).collect()
}

#[tokio::test]
async fn a_time_is_resolved_although_the_clock_was_set_back() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(&directory.path().join("brine.redb"), 1 << 20).unwrap();
    let limits = JournalLimits::default();
    let journal = open(&store, limits).await;
    // The clock shows 100, 200, 300 (set forward), 110, 120 seconds; the index is monotonic.
    let mut batch = Batch::new();
    for (seq, stamped, indexed) in [(1, 100, 100_000_000), (2, 200, 200_000_000), (3, 300, 300_000_000)]
        .into_iter()
        .chain([(4, 110, 300_000_001), (5, 120, 300_000_002)])
    {
        let stamp = brine_event::stamp_of(jiff::Timestamp::from_second(stamped).unwrap());
        let event = Event::from_map("t", &map! {}).unwrap().stamped(seq, &stamp).unwrap();
        batch.put(EVENTS, seq.to_be_bytes(), event.frame().clone());
        let index: u64 = indexed;
        batch.put(INDEX, index.to_be_bytes(), [seq.to_be_bytes(), 0u64.to_be_bytes()].concat());
    }
    store.write(batch).durable().await.unwrap();
    for (second, expected) in [(50, 1), (100, 1), (150, 2), (250, 3), (299, 3)] {
        let from = journal.resolve_position(&thread(), TimeOrSeq::Time(second * 1_000_000)).unwrap();
        let first = journal.read(&thread(), from, 1).unwrap().events[0].seq();
        assert_eq!(first, expected, "{second}");
    }
    assert_eq!(journal.resolve_position(&thread(), TimeOrSeq::Time(400_000_000)).unwrap(), 6);
}

#[tokio::test]
async fn old_events_are_removed() {
    let (_folder, journal) = ten(JournalLimits { age: Duration::from_secs(5), bytes: 1 << 30 }).await;
    assert_eq!(left(&journal, 6).await.len(), 10);
    assert_eq!(left(&journal, 10).await, [4, 5, 6, 7, 8, 9, 10]);
}

#[tokio::test]
async fn the_oldest_events_are_removed_beyond_the_limit() {
    let (_folder, journal) = ten(JournalLimits { bytes: 450, ..JournalLimits::default() }).await;
    assert_eq!(left(&journal, 11).await, [6, 7, 8, 9, 10]);
}

#[tokio::test]
async fn events_unhandled_by_a_durable_subscriber_stay_up_to_twice_the_size() {
    let (_folder, journal) = ten(JournalLimits { bytes: 450, ..JournalLimits::default() }).await;
    journal.cursor("reactor", 2);
    assert_eq!(left(&journal, 11).await, [3, 4, 5, 6, 7, 8, 9, 10]);
    let (_folder, journal) = ten(JournalLimits { bytes: 200, ..JournalLimits::default() }).await;
    journal.cursor("reactor", 2);
    let before = metrics::EVENTS_MISSED.get();
    assert_eq!(left(&journal, 11).await, [6, 7, 8, 9, 10]);
    assert!(metrics::EVENTS_MISSED.get() > before);
}

/// Appends events with these numbers and sizes, in one batch.
async fn append(journal: &Journal, events: &[(u64, usize)]) {
    let event = |(seq, size): &(u64, usize)| {
        Event::from_map("t", &map! {"text" => "x".repeat(*size)}).unwrap().stamped(*seq, "s").unwrap()
    };
    let events: Vec<Event> = events.iter().map(event).collect();
    let mut batch = Batch::new();
    journal.append(&mut batch, &events);
    journal.store.write(batch).durable().await.unwrap();
}

#[tokio::test]
async fn events_in_rows_of_any_number_are_read_from_any_place() {
    // The first ten events have rows of their own, as stores of layout 1 have them.
    let (_folder, journal) = ten(JournalLimits::default()).await;
    let mut last = 10;
    for sizes in [&[10; 40][..], &[10, 10, 9000, 9000, 10], &[5], &[3000; 4], &[10; 3]] {
        let events: Vec<(u64, usize)> = (last + 1..).zip(sizes.iter().copied()).collect();
        last += events.len() as u64;
        append(&journal, &events).await;
    }
    let rows = journal.store.blocking(&thread()).scan(EVENTS, b"", 1000).unwrap().len();
    assert!(rows < 25, "{rows} rows");
    for from in 0..=last + 2 {
        for limit in [1, 2, 7, 1000] {
            let page = journal.read(&thread(), from, limit).unwrap();
            let expected: Vec<u64> = (from.max(1)..=last).take(limit).collect();
            assert_eq!(page.events.iter().map(Event::seq).collect::<Vec<_>>(), expected, "from {from} at most {limit}");
            let next = expected.last().map(|seq| seq + 1).filter(|next| *next <= last);
            assert_eq!(page.next, next, "from {from} at most {limit}");
        }
        let before = journal.last_before(&thread(), from).unwrap();
        assert_eq!(before, from.checked_sub(1).filter(|seq| *seq > 0).map(|seq| seq.min(last)), "before {from}");
    }
}

#[tokio::test]
async fn a_row_stays_while_one_of_its_events_does() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(&directory.path().join("brine.redb"), 1 << 20).unwrap();
    let journal = open(&store, JournalLimits { age: Duration::from_secs(5), bytes: 1 << 30 }).await;
    for first in [1, 21, 41] {
        append(&journal, &(first..first + 20).map(|seq| (seq, 10)).collect::<Vec<_>>()).await;
    }
    // The reactor has handled a part of the second row; the index has one entry for each batch, a second apart.
    journal.cursor("reactor", 25);
    let mut batch = Batch::new();
    batch.delete_below(INDEX, [0xff]);
    for (second, seq) in [(1u64, 1u64), (2, 21), (3, 41)] {
        batch.put(INDEX, (second * 1_000_000).to_be_bytes(), [seq.to_be_bytes(), 0u64.to_be_bytes()].concat());
    }
    store.write(batch).durable().await.unwrap();
    assert_eq!(left(&journal, 60).await.first(), Some(&21));
    journal.commit("reactor", 60);
    assert_eq!(left(&journal, 60).await.first(), Some(&41));
}
