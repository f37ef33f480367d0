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
use crate::visibility::{Owners, Subject};

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
/// The maximum number of events in one request to the journal.
const PAGE: usize = 500;
/// The number of events in the first request, and in that of a subscriber that does not keep up.
const FIRST_PAGE: usize = 64;
const SMALL_PAGE: usize = 16;
/// The size of a page in bytes at which the next one has no more events.
const PAGE_BYTES: usize = 1 << 20;
/// The maximum number of pages of the journal that are read, or held by streams, at a time.
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
    owners: Owners,
    /// The wakers of waiting subscribers, by [`WakePolicy`].
    waiting: [Mutex<Wakers>; 2],
    /// Notified when paced streams have new events.
    changed: Notify,
    is_ended: AtomicBool,
    readers: Arc<Semaphore>,
}

impl Hub {
    /// Creates a hub, which is empty until [`Hub::run`].
    pub fn new(master: Arc<Master>) -> Self {
        Hub {
            master,
            ring: RwLock::default(),
            owners: Owners::default(),
            waiting: Default::default(),
            changed: Notify::new(),
            is_ended: AtomicBool::new(false),
            readers: Arc::new(Semaphore::new(READERS)),
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
            match self.page(&Value::from(last + 1), PAGE).await {
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
        let subject = Subject::new(self.owners.of(&event));
        ring.push(Arc::new(Item::new(seq, event, subject)));
        drop(ring);
        self.wake();
    }

    fn last(&self) -> Option<u64> {
        self.ring.read().last()
    }

    /// Reads a page of the journal, of at most this many events.
    async fn page(&self, since: &Value, size: usize) -> Result<Vec<Arc<Item>>, MasterError> {
        let args = Args::positional([since.clone(), Value::from(size as u64)]);
        let events = self.master.own_runner("event_bus.since", args).await?;
        let one = |event: &Value| {
            let seq = event.get("seq").and_then(u64::from_value)?;
            let data: &Map = event.get("data")?.as_map()?;
            let event = Event::from_trusted_map(&event.get("tag")?.to_string(), data).ok()?;
            let subject = Subject::new(self.owners.of(&event));
            Some(Arc::new(Item::new(seq, event, subject)))
        };
        Ok(events.as_list().unwrap_or_default().iter().filter_map(one).collect())
    }

    /// Creates a subscription, which receives all events published after this call.
    pub fn subscribe(self: &Arc<Self>, start: Start, pace: WakePolicy) -> Subscription {
        let journal = match start {
            Start::Now => None,
            Start::Since(since) => Some(Box::new(JournalPage::at(since, false))),
        };
        let ring = self.ring.read();
        let (cursor, epoch) = (ring.last(), ring.epoch);
        drop(ring);
        let slot = self.waiting(pace).lock().add();
        Subscription { hub: Arc::clone(self), pace, slot, cursor, epoch, journal, is_slow: false }
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
mod tests;
