//! Events for any number of subscribers: one connection to the bus, a ring of the last events, and a cursor for each
//! subscriber.
//!
//! An event is serialized once, and subscribers share it. A subscriber that lags behind the ring, or that starts in the
//! past, reads from the journal: it misses no event, and uses no resources while it does not read.

mod ring;
mod subscription;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;
use std::time::Duration;

use brine_event::{Event, SEQ};
use brine_function::Args;
use brine_runtime::backoff::Backoff;
use brine_value::{FromValue, Map, Value, msgpack};
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, Semaphore};

use crate::error::MasterError;
use crate::master::Master;

pub(crate) use ring::Item;
use ring::{MAX_RING_EVENTS, Ring};
use subscription::JournalPage;
pub(crate) use subscription::Subscription;
pub(crate) use waiting::WakePolicy;
use waiting::Wakers;

/// The interval at which an idle stream sends a keep-alive and revalidates its token.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The number of turns in that interval; each turn wakes an equal share of the streams.
const TURNS: usize = 15;
/// The length of a turn.
pub(crate) const TURN: Duration = Duration::from_secs(1);
/// The number of events in one request to the journal.
const PAGE: usize = 500;
/// The maximum number of concurrent reads from the journal.
const READERS: usize = 2;

/// The start of a subscription.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Start {
    /// At the next event.
    Now,
    /// At a sequence number or a time, as in `event_bus.since`.
    Since(Value),
}

/// The distributor of the bus's events.
pub(crate) struct Hub {
    master: Arc<Master>,
    ring: RwLock<Ring>,
    /// The wakers of waiting subscribers, by [`WakePolicy`].
    waiting: [Mutex<Wakers>; 2],
    /// Notified when paced streams have new events.
    changed: Notify,
    is_ended: AtomicBool,
    readers: Semaphore,
}

impl Hub {
    /// Creates a hub, which is empty until [`Hub::run`].
    pub fn new(master: Arc<Master>) -> Self {
        Hub {
            master,
            ring: RwLock::default(),
            waiting: Default::default(),
            changed: Notify::new(),
            is_ended: AtomicBool::new(false),
            readers: Semaphore::new(READERS),
        }
    }

    /// Receives events for the lifetime of the process. Reconnects when the connection is lost.
    pub async fn run(self: Arc<Self>) {
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(2));
        loop {
            match self.receive(&mut backoff).await {
                Ok(never) => match never {},
                Err(error) => tracing::warn!(%error, "the connection to the master's events ended"),
            }
            backoff.wait().await;
        }
    }

    async fn receive(&self, backoff: &mut Backoff) -> Result<std::convert::Infallible, MasterError> {
        let mut events = self.master.events().await?;
        backoff.reset();
        let before = self.last();
        if let Some(last) = before {
            self.catch_up(last).await;
        }
        loop {
            let event = events.next().await.map_err(MasterError::from)?;
            self.push(event, before);
        }
    }

    /// Adds the events that were published during a disconnect. Subscribers read longer gaps from the journal.
    async fn catch_up(&self, mut last: u64) {
        for _ in 0..MAX_RING_EVENTS / PAGE {
            match self.page(&Value::from(last + 1)).await {
                Ok(page) if page.is_empty() => return,
                Ok(page) => {
                    for item in page {
                        last = item.seq;
                        self.ring.write().push(item);
                    }
                    self.wake();
                }
                Err(error) => {
                    tracing::warn!(%error, "reading missed events from the journal failed");
                    return;
                }
            }
        }
    }

    /// Adds a received event. `before` is the last sequence number before the connection was established.
    fn push(&self, event: Event, before: Option<u64>) {
        let Some(seq) = seq_of(&event) else { return };
        let mut ring = self.ring.write();
        if before.is_some_and(|before| seq <= before) && ring.last().is_some_and(|last| seq < last) {
            // The sequence numbers restart: the master has a new store.
            *ring = Ring { epoch: ring.epoch + 1, ..Ring::default() };
        } else if ring.last().is_some_and(|last| seq <= last) {
            return;
        }
        ring.push(Arc::new(Item::new(seq, event)));
        drop(ring);
        self.wake();
    }

    fn last(&self) -> Option<u64> {
        self.ring.read().last()
    }

    /// Reads a page of the journal.
    async fn page(&self, since: &Value) -> Result<Vec<Arc<Item>>, MasterError> {
        let args = Args::positional([since.clone(), Value::from(PAGE as u64)]);
        let found = self.master.own_runner("event_bus.since", args).await?;
        let one = |event: &Value| {
            let seq = event.get("seq").and_then(u64::from_value)?;
            let data: &Map = event.get("data")?.as_map()?;
            let event = Event::from_map(&event.get("tag")?.to_string(), data).ok()?;
            Some(Arc::new(Item::new(seq, event)))
        };
        Ok(found.as_list().unwrap_or_default().iter().filter_map(one).collect())
    }

    /// Creates a subscription, which receives all events published after this call.
    pub fn subscribe(self: &Arc<Self>, start: Start, pace: WakePolicy) -> Subscription {
        let journal = match start {
            Start::Now => None,
            Start::Since(since) => Some(Box::new(JournalPage::at(since))),
        };
        let ring = self.ring.read();
        let (cursor, epoch) = (ring.last(), ring.epoch);
        drop(ring);
        let slot = self.waiting(pace).lock().add();
        Subscription { hub: Arc::clone(self), pace, slot, cursor, epoch, journal }
    }

    fn waiting(&self, pace: WakePolicy) -> &Mutex<Wakers> {
        &self.waiting[pace as usize]
    }

    /// Wakes the immediate subscribers now, and schedules the paced ones.
    pub fn wake(&self) {
        self.changed.notify_one();
        let mut next = Some(0);
        while let Some(slot) = next {
            next = self.wake_some(WakePolicy::Immediate, slot);
        }
    }

    /// Wakes a batch of subscribers, starting at `index`. Returns the index of the next batch.
    fn wake_some(&self, pace: WakePolicy, index: usize) -> Option<usize> {
        // Wakers are called without the lock, because the woken tasks may subscribe.
        let (woken, next) = self.waiting(pace).lock().take_from(index);
        woken.into_iter().for_each(Waker::wake);
        next
    }

    /// Wakes paced streams for the lifetime of the process, in batches, so that requests are served in between. Events
    /// that are published meanwhile reach all streams in the next round. In addition each stream is woken every
    /// [`KEEP_ALIVE`], so that it needs no timer of its own.
    pub async fn pace(self: Arc<Self>) {
        let mut timer = tokio::time::interval(TURN);
        timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut turn = 0;
        loop {
            let (mut next, end) = tokio::select! {
                () = self.changed.notified() => (Some(0), usize::MAX),
                _ = timer.tick() => {
                    turn = (turn + 1) % TURNS;
                    let all = self.waiting(WakePolicy::Paced).lock().slots.len();
                    (Some(all * turn / TURNS), (all * (turn + 1)).div_ceil(TURNS))
                }
            };
            while let Some(slot) = next.filter(|slot| *slot < end) {
                next = self.wake_some(WakePolicy::Paced, slot);
                tokio::task::yield_now().await;
            }
        }
    }

    /// Ends all event streams, for shutdown.
    pub fn end(&self) {
        self.is_ended.store(true, Ordering::Release);
        self.wake();
    }

    /// Whether all event streams are to end.
    pub fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Acquire)
    }
}

/// Reads the sequence number in the body of an event.
fn seq_of(event: &Event) -> Option<u64> {
    let mut seq = None;
    _ = msgpack::scan(event.body(), |entry| {
        if entry.key == Some(SEQ) {
            seq = msgpack::unpack(entry.value).ok().as_ref().and_then(u64::from_value);
        }
    });
    seq
}

#[cfg(test)]
mod tests {
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
            let waiting: Vec<_> =
                streams.map(|mut stream| tokio::spawn(async move { stream.next().await.seq })).collect();
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
            ring.push(Arc::new(Item::new(seq, Event::from_map("t", &body).unwrap())));
        }
        assert_eq!((ring.first(), ring.last()), (Some(8), Some(10)));
        assert!(ring.bytes <= MAX_RING_BYTES);
    }

    #[test]
    fn an_event_is_serialized_in_all_formats() {
        let body = map! {"x" => "a\nb"};
        let item = Item::new(7, Event::from_map("my/tag\rdata: {}", &body).unwrap());
        let json = r#"{"tag": "my/tag\rdata: {}", "data": {"x": "a\nb"}}"#;
        assert_eq!(item.json(), json);
        assert_eq!(item.data_line(), format!("data: {json}\n\n"));
        let whole = format!("id: 7\ntag: my/tag\u{fffd}data: {{}}\ndata: {json}\n\n");
        assert_eq!(item.server_sent(), whole);
        assert_eq!(item.chunk(), format!("{:x}\r\n{whole}\r\n", whole.len()));
    }
}
