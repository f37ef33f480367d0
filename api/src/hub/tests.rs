use brine_value::map;

use super::ring::MAX_RING_BYTES;
use super::waiting::WAKE_BATCH;
use super::*;

fn event(seq: u64) -> Event {
    Event::from_map(&format!("t/{seq}"), &map! {"_seq" => seq, "text" => "a\r\nb"}).unwrap()
}

fn hub() -> Arc<Hub> {
    let config = brine_config::MasterConfig::default();
    Arc::new(Hub::new(Arc::new(Master::new(&config, "/nonexistent".into()))))
}

fn fill(hub: &Hub, numbers: std::ops::RangeInclusive<u64>) {
    for seq in numbers {
        hub.push(event(seq), None);
    }
}

async fn take(subscription: &mut Subscription, count: usize) -> Vec<u64> {
    let mut taken = Vec::new();
    for _ in 0..count {
        taken.push(subscription.next().await.seq);
    }
    taken
}

#[tokio::test]
async fn subscribers_get_each_event_once_in_order() {
    let hub = hub();
    let mut early = hub.subscribe(Start::Now, WakePolicy::Immediate);
    fill(&hub, 5..=7);
    let mut late = hub.subscribe(Start::Now, WakePolicy::Immediate);
    // Duplicates, as after a reconnect, are dropped.
    fill(&hub, 6..=9);
    assert_eq!(take(&mut early, 5).await, [5, 6, 7, 8, 9]);
    assert_eq!(take(&mut late, 2).await, [8, 9]);
    let pending = tokio::time::timeout(Duration::ZERO, late.next()).await;
    assert!(pending.is_err());
    let waiting = tokio::spawn(async move { early.next().await.seq });
    fill(&hub, 10..=10);
    assert_eq!(waiting.await.unwrap(), 10);
}

#[tokio::test]
async fn streams_are_woken_in_turn_and_their_slots_are_reused() {
    let hub = hub();
    let pace = tokio::spawn(Arc::clone(&hub).pace());
    let count = 3 * WAKE_BATCH as u64 / 2;
    for seq in 1..=2 {
        let streams = (0..count).map(|_| hub.subscribe(Start::Now, WakePolicy::Paced));
        let waiting: Vec<_> = streams.map(|mut stream| tokio::spawn(async move { stream.next().await.seq })).collect();
        tokio::task::yield_now().await;
        fill(&hub, seq..=seq);
        for one in waiting {
            assert_eq!(one.await.unwrap(), seq);
        }
    }
    let waiting = hub.waiting(WakePolicy::Paced).lock();
    assert_eq!((waiting.slots.len(), waiting.free.len()), (count as usize, count as usize));
    pace.abort();
}

#[tokio::test]
async fn subscribers_continue_after_sequence_numbers_restart() {
    let hub = hub();
    fill(&hub, 100..=101);
    let mut subscription = hub.subscribe(Start::Now, WakePolicy::Immediate);
    for seq in 1..=2 {
        hub.push(event(seq), Some(101));
    }
    assert_eq!(take(&mut subscription, 2).await, [1, 2]);
}

#[tokio::test]
async fn a_subscriber_behind_the_ring_reads_the_journal() {
    let hub = hub();
    fill(&hub, 1..=1);
    let mut subscription = hub.subscribe(Start::Now, WakePolicy::Immediate);
    fill(&hub, 2..=MAX_RING_EVENTS as u64 + 2);
    assert_eq!(hub.ring.read().items.len(), MAX_RING_EVENTS);
    assert!(subscription.take().is_none());
    assert_eq!(subscription.journal.as_ref().unwrap().since, Some(2.into()));
}

#[test]
fn the_ring_is_bounded_by_bytes() {
    let mut ring = Ring::default();
    for seq in 1..=10 {
        let body = map! {"text" => "x".repeat(MAX_RING_BYTES / 4)};
        ring.push(Arc::new(Item::new(seq, Event::from_map("t", &body).unwrap(), Subject::new(None))));
    }
    assert_eq!((ring.first(), ring.last()), (Some(8), Some(10)));
    assert!(ring.bytes <= MAX_RING_BYTES);
}

#[test]
fn an_event_is_serialized_in_all_formats() {
    let body = map! {"x" => "a\nb"};
    let item = Item::new(7, Event::from_map("my/tag\rdata: {}", &body).unwrap(), Subject::new(None));
    let json = r#"{"tag": "my/tag\rdata: {}", "data": {"x": "a\nb"}}"#;
    assert_eq!(item.json(), json);
    assert_eq!(item.data_line(), format!("data: {json}\n\n"));
    let whole = format!("id: 7\ntag: my/tag\u{fffd}data: {{}}\ndata: {json}\n\n");
    assert_eq!(item.server_sent(), whole);
    assert_eq!(item.chunk(), format!("{:x}\r\n{whole}\r\n", whole.len()));
}

#[tokio::test]
async fn an_event_that_cannot_be_read_is_skipped() {
    let hub = hub();
    fill(&hub, 10..=11);
    let mut late = hub.subscribe(Start::Since(Value::from(9)), WakePolicy::Immediate);
    let error = MasterError::Reply("too deep".to_owned());
    // First, which one of the page it is.
    late.skip_unreadable(&Value::from(9), 100, &error);
    assert_eq!(late.journal.as_ref().unwrap().since, Some(Value::from(9)));
    late.skip_unreadable(&Value::from(9), 1, &error);
    assert_eq!(late.journal.as_ref().unwrap().since, Some(Value::from(10)));
    // Beyond the known events, new ones follow.
    late.skip_unreadable(&Value::from(12), 1, &error);
    assert!(late.journal.is_none());
    fill(&hub, 12..=12);
    assert_eq!(take(&mut late, 1).await, [12]);
}
