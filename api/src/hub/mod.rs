//! Events for any number of subscribers: one connection to the bus, a ring of the last events, and a cursor for each
//! subscriber.
//!
//! An event is serialized once, and subscribers share it. A subscriber that is behind the ring, or that begins in the
//! past, reads from the journal, so it misses nothing and costs nothing while it does not read.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use brine_event::{Event, SEQ};
use brine_function::Args;
use brine_runtime::backoff::Backoff;
use brine_value::{FromValue, Map, Value, json, map, msgpack};
use bytes::Bytes;
use parking_lot::RwLock;
use tokio::sync::{Semaphore, watch};

use crate::error::MasterError;
use crate::master::Master;
use crate::metrics;

/// The maximum number of events in the ring.
const RING_EVENTS: usize = 4096;
/// The maximum number of bytes of events in the ring.
const RING_BYTES: usize = 4 << 20;
/// The number of events that a subscriber takes from the ring at a time.
const TAKEN: usize = 64;
/// The number of events in one request to the journal.
const PAGE: usize = 500;
/// The number of requests to the journal at a time.
const READERS: usize = 2;

/// An event that subscribers share.
pub(crate) struct Item {
    pub seq: u64,
    pub event: Event,
    text: OnceLock<Text>,
}

/// The serialized event: one buffer for all formats.
struct Text {
    /// `id: N`, `tag: T` and `data: JSON`, each a line, and an empty line.
    whole: Bytes,
    /// Where `data: ` begins.
    data: usize,
}

impl Item {
    fn new(seq: u64, event: Event) -> Self {
        Item { seq, event, text: OnceLock::new() }
    }

    fn text(&self) -> &Text {
        self.text.get_or_init(|| {
            let tag = self.event.tag();
            let body = json::to_json(&map! {"tag" => tag, "data" => self.event.data()}.into());
            // A line of a server-sent event ends at a carriage return, too.
            let shown: String = tag.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
            let head = format!("id: {}\ntag: {shown}\n", self.seq);
            Text { data: head.len(), whole: format!("{head}data: {body}\n\n").into() }
        })
    }

    /// Returns the server-sent event.
    pub fn server_sent(&self) -> Bytes {
        self.text().whole.clone()
    }

    /// Returns the frame of a web socket: `data: JSON` and an empty line.
    pub fn data_line(&self) -> Bytes {
        let text = self.text();
        text.whole.slice(text.data..)
    }

    /// Returns the JSON.
    pub fn json(&self) -> Bytes {
        let text = self.text();
        text.whole.slice(text.data + "data: ".len()..text.whole.len() - 2)
    }
}

/// The last events, in the order of their sequence numbers.
#[derive(Default)]
struct Ring {
    items: VecDeque<Arc<Item>>,
    bytes: usize,
    /// How often the numbers have begun anew.
    epoch: u64,
}

impl Ring {
    fn first(&self) -> Option<u64> {
        self.items.front().map(|item| item.seq)
    }

    fn last(&self) -> Option<u64> {
        self.items.back().map(|item| item.seq)
    }

    fn push(&mut self, item: Arc<Item>) {
        self.bytes += item.event.frame().len();
        self.items.push_back(item);
        while self.items.len() > RING_EVENTS || (self.bytes > RING_BYTES && self.items.len() > 1) {
            let Some(oldest) = self.items.pop_front() else { break };
            self.bytes -= oldest.event.frame().len();
        }
    }

    fn after(&self, cursor: u64) -> impl Iterator<Item = &Arc<Item>> {
        let start = self.items.partition_point(|item| item.seq <= cursor);
        self.items.range(start..)
    }
}

/// Where a subscription begins.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Start {
    /// With the next event.
    Now,
    /// With a sequence number or a time, as `event_bus.since` takes them.
    Since(Value),
}

/// The events of the bus.
pub(crate) struct Hub {
    master: Arc<Master>,
    ring: RwLock<Ring>,
    changed: watch::Sender<()>,
    readers: Semaphore,
}

impl Hub {
    /// Creates a hub, which is empty until [`Hub::run`].
    pub fn new(master: Arc<Master>) -> Self {
        Hub { master, ring: RwLock::default(), changed: watch::Sender::new(()), readers: Semaphore::new(READERS) }
    }

    /// Receives events for as long as the process runs. Connects again when the connection ends.
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
            let frames = events.recv().await?;
            let Some(frame) = frames.into_iter().next() else { continue };
            match Event::from_frame(frame) {
                Ok(event) => self.push(event, before),
                Err(error) => tracing::warn!(%error, "an event of the master is invalid"),
            }
        }
    }

    /// Adds the events that were published while there was no connection. Subscribers read longer gaps from the journal.
    async fn catch_up(&self, mut last: u64) {
        for _ in 0..RING_EVENTS / PAGE {
            match self.page(&Value::from(last + 1)).await {
                Ok(page) if page.is_empty() => return,
                Ok(page) => {
                    for item in page {
                        last = item.seq;
                        self.ring.write().push(item);
                    }
                    self.changed.send_replace(());
                }
                Err(error) => {
                    tracing::warn!(%error, "reading missed events from the journal failed");
                    return;
                }
            }
        }
    }

    /// Adds a received event. `before` is the last number before the connection.
    fn push(&self, event: Event, before: Option<u64>) {
        let Some(seq) = seq_of(&event) else { return };
        let mut ring = self.ring.write();
        if before.is_some_and(|before| seq <= before) && ring.last().is_some_and(|last| seq < last) {
            // The numbers begin anew: the master has another store.
            *ring = Ring { epoch: ring.epoch + 1, ..Ring::default() };
        } else if ring.last().is_some_and(|last| seq <= last) {
            return;
        }
        ring.push(Arc::new(Item::new(seq, event)));
        drop(ring);
        self.changed.send_replace(());
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

    /// Subscribes. Events that are published after the return of this function are received.
    pub fn subscribe(self: &Arc<Self>, start: Start) -> Subscription {
        let mut changed = self.changed.subscribe();
        // Events that the ring holds already are searched first.
        changed.mark_changed();
        let past = match start {
            Start::Now => None,
            Start::Since(since) => Some(since),
        };
        let ring = self.ring.read();
        let (cursor, epoch) = (ring.last(), ring.epoch);
        drop(ring);
        Subscription { hub: Arc::clone(self), changed, cursor, epoch, past, taken: VecDeque::new() }
    }
}

/// Reads the sequence number of an event from a socket.
fn seq_of(event: &Event) -> Option<u64> {
    let mut seq = None;
    _ = msgpack::scan(event.body(), |entry| {
        if entry.key == Some(SEQ) {
            seq = msgpack::unpack(entry.value).ok().as_ref().and_then(u64::from_value);
        }
    });
    seq
}

/// A subscriber's place.
pub(crate) struct Subscription {
    hub: Arc<Hub>,
    changed: watch::Receiver<()>,
    /// The last event that was taken; `None` while there has been none.
    cursor: Option<u64>,
    /// The numbering that the cursor belongs to.
    epoch: u64,
    /// Where in the journal the next events are, for a subscriber behind the ring.
    past: Option<Value>,
    taken: VecDeque<Arc<Item>>,
}

impl Subscription {
    /// Returns the next event. Cancel safe, but for a page of the journal, which is read again.
    pub async fn next(&mut self) -> Arc<Item> {
        loop {
            if let Some(item) = self.taken.pop_front() {
                return item;
            }
            if let Some(since) = self.past.clone() {
                self.read_past(&since).await;
                continue;
            }
            self.changed.borrow_and_update();
            self.take();
            if self.taken.is_empty() && self.past.is_none() {
                // The hub outlives its subscribers.
                _ = self.changed.changed().await;
            }
        }
    }

    /// Takes what the ring has, or finds out that the journal has it.
    fn take(&mut self) {
        let ring = self.hub.ring.read();
        let Some(first) = ring.first() else { return };
        let cursor = self.cursor.filter(|_| self.epoch == ring.epoch).unwrap_or(first.saturating_sub(1));
        self.epoch = ring.epoch;
        if cursor + 1 < first {
            self.past = Some(Value::from(cursor + 1));
            return;
        }
        self.taken.extend(ring.after(cursor).take(TAKEN).cloned());
        self.cursor = self.taken.back().map(|item| item.seq).or(Some(cursor));
    }

    async fn read_past(&mut self, since: &Value) {
        let Ok(_turn) = self.hub.readers.acquire().await else { return };
        let page = match self.hub.page(since).await {
            Ok(page) => page,
            Err(error @ MasterError::Refused(_)) => {
                tracing::warn!(%error, "reading events from the journal failed: the subscriber goes on with present ones");
                self.past = None;
                return;
            }
            Err(error) => {
                tracing::warn!(%error, "reading events from the journal failed");
                tokio::time::sleep(Duration::from_secs(1)).await;
                return;
            }
        };
        let Some(last) = page.last().map(|item| item.seq) else {
            // Nothing is left there: the rest is in the ring, or comes.
            self.past = None;
            let ring = self.hub.ring.read();
            let from = u64::from_value(since).and_then(|since| since.checked_sub(1));
            self.cursor = match (from, ring.first(), ring.last()) {
                (Some(from), Some(first), Some(last)) if from <= last => Some(from.max(first.saturating_sub(1))),
                (_, _, last) => last,
            };
            return;
        };
        metrics::EVENTS_REPLAYED.add(page.len() as u64);
        self.taken.extend(page);
        self.cursor = Some(last);
        let is_in_ring = self.hub.ring.read().first().is_some_and(|first| first <= last + 1);
        self.past = (!is_in_ring).then(|| Value::from(last + 1));
    }
}

#[cfg(test)]
mod tests {
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
        let mut early = hub.subscribe(Start::Now);
        fill(&hub, 5..=7);
        let mut late = hub.subscribe(Start::Now);
        // Events that arrive twice, as after a new connection, are dropped.
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
    async fn subscribers_go_on_after_the_numbers_begin_anew() {
        let hub = hub();
        fill(&hub, 100..=101);
        let mut subscription = hub.subscribe(Start::Now);
        for seq in 1..=2 {
            hub.push(event(seq), Some(101));
        }
        assert_eq!(take(&mut subscription, 2).await, [1, 2]);
    }

    #[tokio::test]
    async fn a_subscriber_behind_the_ring_reads_the_journal() {
        let hub = hub();
        fill(&hub, 1..=1);
        let mut subscription = hub.subscribe(Start::Now);
        fill(&hub, 2..=RING_EVENTS as u64 + 2);
        assert_eq!(hub.ring.read().items.len(), RING_EVENTS);
        subscription.take();
        assert_eq!(subscription.past, Some(2.into()));
    }

    #[test]
    fn the_ring_is_bounded_by_bytes() {
        let mut ring = Ring::default();
        for seq in 1..=10 {
            let body = map! {"text" => "x".repeat(RING_BYTES / 4)};
            ring.push(Arc::new(Item::new(seq, Event::from_map("t", &body).unwrap())));
        }
        assert_eq!((ring.first(), ring.last()), (Some(8), Some(10)));
        assert!(ring.bytes <= RING_BYTES);
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
    }
}
