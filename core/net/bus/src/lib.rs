//! The event bus: everything that happens is published as an event, and every reaction is a subscriber.
//!
//! A published event gets the next sequence number and a stamp, enters the ring in memory, and from there the journal
//! on disk and the subscribers. A subscriber that lags behind the ring reads from the journal: it never loses events.
//! Publishers block when the journal is a full ring behind.

#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "peers choose the numbers"
)]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

mod health;
mod journal;
mod journal_writer;
pub mod metrics;
mod numbers;
mod retention;
mod ring;
mod sockets;
pub mod store;
mod subscription;

use std::path::Path;
use std::sync::Arc;

use brine_event::{Event, EventError};
use brine_runtime::executors::{Executor, MayBlock};
use brine_runtime::supervisor;
use brine_value::Map;
use parking_lot::Mutex;
use tokio::sync::Notify;

pub use journal::TimeOrSeq;
pub use retention::JournalLimits;
pub use sockets::{EventSockets, SINCE, SocketNames};
pub use subscription::{Filter, Start, Subscription};

use crate::store::{Hurry, Opened, Store, StoreError};
use journal::Journal;
use ring::Ring;

/// The limits of a bus.
#[derive(Debug, Clone, Copy)]
pub struct BusLimits {
    /// The maximum number of events in memory.
    pub ring_events: usize,
    /// The maximum bytes of events in memory.
    pub ring_bytes: usize,
    /// The maximum size of an event, in bytes.
    pub event: usize,
    /// The number of sequence numbers reserved on disk ahead of the events. During an outage of the store, up to this
    /// many events are published before further ones are refused. An unclean stop skips at most as many numbers.
    pub reserve: u64,
}

impl Default for BusLimits {
    fn default() -> Self {
        BusLimits { ring_events: 32_768, ring_bytes: 8 << 20, event: 1 << 20, reserve: 1 << 24 }
    }
}

/// The errors of publishing: the event was refused, or may not be persisted.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BusError {
    /// The tag or the data is not a valid event.
    #[error(transparent)]
    Event(#[from] EventError),
    /// The event is too large.
    #[error("an event of {size} bytes is too large: {limit} are allowed (max_event_size)")]
    TooLarge {
        /// The size in bytes.
        size: usize,
        /// The maximum size in bytes.
        limit: usize,
    },
    /// The journal failed to write the event.
    #[error("the event was published but not persisted: {0}")]
    NotPersisted(StoreError),
    /// All reserved sequence numbers are issued, and the store takes no writes to reserve more.
    #[error(
        "publishing the event failed: the store takes no writes and all reserved sequence numbers are issued; \
         make room on its disk, or make it writable"
    )]
    NoNumbers,
    /// The bus has been closed.
    #[error("the event bus is closed")]
    Closed,
}

/// The event bus. Clones share it.
#[derive(Clone)]
pub struct Bus {
    inner: Arc<Inner>,
}

struct Inner {
    ring: Mutex<Ring>,
    /// An event was published, or the bus was closed.
    arrived: Notify,
    /// The journal has written events: blocked publishers may continue.
    persisted: Notify,
    journal: Option<Journal>,
    limits: BusLimits,
}

impl std::fmt::Debug for Bus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bus").field("last", &self.last_seq()).finish_non_exhaustive()
    }
}

impl Bus {
    /// Creates a bus without a journal: events that a subscriber does not read in time are missed and counted.
    pub fn in_memory(limits: BusLimits) -> Self {
        Self::with(limits, None, 1, u64::MAX)
    }

    /// Creates a bus that persists its events in a store. Blocking reads of the store run on the executor. Must be
    /// called within a runtime.
    pub async fn with_journal(
        limits: BusLimits,
        store: Store,
        opened: Opened,
        retention: JournalLimits,
        disk: &Executor,
    ) -> Result<Self, StoreError> {
        let (health, used) = (store.health(), disk.clone());
        let open = disk.run(move |thread| Journal::open(thread, used, store, opened, retention, &limits));
        let (journal, next, reserved) = open.await.unwrap_or(Err(StoreError::Closed))?;
        let bus = Self::with(limits, Some(journal), next, reserved);
        supervisor::spawn("journal writer", journal_writer::run(Arc::downgrade(&bus.inner)));
        supervisor::spawn("health of the store", health::announce(Arc::downgrade(&bus.inner), health));
        Ok(bus)
    }

    fn with(limits: BusLimits, journal: Option<Journal>, next: u64, reserved: u64) -> Self {
        let ring = Mutex::new(Ring::new(limits, journal.is_some(), next, reserved));
        Bus { inner: Arc::new(Inner { ring, arrived: Notify::new(), persisted: Notify::new(), journal, limits }) }
    }

    /// Publishes an event and returns its sequence number. Blocks only while the journal is a full ring behind.
    pub async fn fire(&self, tag: &str, body: &Map) -> Result<u64, BusError> {
        let event = Event::from_map(tag, body).inspect_err(|_| metrics::EVENTS_REFUSED.add(1))?;
        self.fire_event(event).await
    }

    /// Publishes an encoded event.
    pub async fn fire_event(&self, event: Event) -> Result<u64, BusError> {
        loop {
            let room = self.inner.persisted.notified();
            let mut room = std::pin::pin!(room);
            room.as_mut().enable();
            if let Some(fired) = self.try_fire(&event)? {
                return Ok(fired);
            }
            room.await;
        }
    }

    /// Publishes events one directly after the other, which one commit of the journal persists as far as the ring has
    /// room for them. Returns their sequence numbers; the first refusal ends them.
    pub async fn fire_all(&self, events: &[Event]) -> Vec<Result<u64, BusError>> {
        self.fire_while(events, Result::is_ok).await
    }

    /// Publishes events as [`Bus::fire_all`] does, each whether or not one before it was refused.
    pub async fn fire_each(&self, events: &[Event]) -> Vec<Result<u64, BusError>> {
        self.fire_while(events, |_| true).await
    }

    /// Publishes events until the result of one does not hold. Readers are notified once for all that fit at once.
    async fn fire_while(
        &self,
        events: &[Event],
        holds: impl Fn(&Result<u64, BusError>) -> bool,
    ) -> Vec<Result<u64, BusError>> {
        let mut fired = Vec::with_capacity(events.len());
        loop {
            let room = self.inner.persisted.notified();
            let mut room = std::pin::pin!(room);
            room.as_mut().enable();
            let (before, mut has_ended) = (fired.len(), false);
            {
                let mut ring = self.inner.ring.lock();
                for event in &events[before..] {
                    let Some(result) = self.push(&mut ring, event).transpose() else { break };
                    has_ended = !holds(&result);
                    fired.push(result);
                    if has_ended {
                        break;
                    }
                }
            }
            if fired.len() > before {
                self.inner.arrived.notify_waiters();
            }
            if has_ended || fired.len() == events.len() {
                return fired;
            }
            room.await;
        }
    }

    /// Publishes an event if the ring has room; does not block. Counts refused events.
    pub fn try_fire(&self, event: &Event) -> Result<Option<u64>, BusError> {
        let seq = self.push(&mut self.inner.ring.lock(), event)?;
        if seq.is_some() {
            self.inner.arrived.notify_waiters();
        }
        Ok(seq)
    }

    /// Adds an event to the ring if there is room. Counts refused events.
    fn push(&self, ring: &mut Ring, event: &Event) -> Result<Option<u64>, BusError> {
        self.check_size(event)?;
        if ring.closed {
            return Err(BusError::Closed);
        }
        if ring.is_full() {
            return Ok(None);
        }
        if ring.is_out_of_numbers() {
            metrics::EVENTS_REFUSED.add(1);
            return Err(BusError::NoNumbers);
        }
        let seq = ring.push(event).inspect_err(|_| metrics::EVENTS_REFUSED.add(1))?;
        metrics::EVENTS.add(1);
        metrics::EVENT_BYTES.add(event.frame().len() as u64);
        Ok(Some(seq))
    }

    /// Publishes an event and waits until it is persisted.
    pub async fn fire_durably(&self, tag: &str, body: &Map) -> Result<u64, BusError> {
        let seq = self.fire(tag, body).await?;
        self.persisted(seq).await?;
        Ok(seq)
    }

    /// Whether events are published at the moment that cannot be persisted, such as on a full disk.
    pub fn is_failing(&self) -> bool {
        self.inner.journal.as_ref().is_some_and(|journal| journal.store().is_failing())
    }

    /// Waits until all events up to this one are persisted. Returns at once without a journal.
    pub async fn persisted(&self, seq: u64) -> Result<(), BusError> {
        if self.inner.journal.is_none() {
            return Ok(());
        }
        loop {
            let persisted = self.inner.persisted.notified();
            let mut persisted = std::pin::pin!(persisted);
            persisted.as_mut().enable();
            {
                let ring = self.inner.ring.lock();
                if let Some(error) = ring.failure(seq) {
                    return Err(BusError::NotPersisted(error));
                }
                if ring.persisted >= seq {
                    return Ok(());
                }
                if ring.stopped {
                    return Err(BusError::Closed);
                }
            }
            persisted.await;
        }
    }

    /// Subscribes to the events that match the filter.
    pub fn subscribe(&self, filter: Filter, start: Start) -> Result<Subscription, StoreError> {
        Subscription::new(self.clone(), filter, start)
    }

    /// Returns the number of the last published event; 0 before the first one.
    pub fn last_seq(&self) -> u64 {
        self.inner.ring.lock().next - 1
    }

    /// Returns up to `limit` events in order, from a position on: those in the journal, then those not written yet. A
    /// page of large events is shorter than `limit`; only an empty one marks the end. Without a journal, returns the
    /// events in memory, by sequence number only.
    pub fn read(&self, thread: &MayBlock, from: TimeOrSeq, limit: usize) -> Result<Vec<Event>, StoreError> {
        let Some(journal) = &self.inner.journal else {
            let TimeOrSeq::Seq(seq) = from else { return Ok(Vec::new()) };
            return Ok(self.inner.ring.lock().from(seq, limit).unwrap_or_default());
        };
        let mut from = journal.resolve_position(thread, from)?;
        loop {
            // The ring first: events that it no longer contains are in the journal.
            let (first, newest) = {
                let ring = self.inner.ring.lock();
                let first = ring.first();
                (first, ring.from(first.max(from), limit).unwrap_or_default())
            };
            if from >= first {
                return Ok(newest);
            }
            let mut page = journal.read(thread, from, limit)?;
            page.events.retain(|event| event.seq() < first);
            match page.next.filter(|next| *next < first) {
                Some(next) if page.events.is_empty() => from = next,
                Some(_) => return Ok(page.events),
                None => {
                    page.events.extend(newest);
                    page.events.truncate(limit);
                    return Ok(page.events);
                }
            }
        }
    }

    /// Returns the number of the newest event before this number, if any. It may be less than `below - 1`, as numbers
    /// may have been skipped.
    pub fn last_before(&self, thread: &MayBlock, below: u64) -> Result<Option<u64>, StoreError> {
        let (first, next) = {
            let ring = self.inner.ring.lock();
            (ring.first(), ring.next)
        };
        if first < next && first < below {
            return Ok(Some(below.min(next) - 1));
        }
        self.inner.journal.as_ref().map_or(Ok(None), |journal| journal.last_before(thread, below))
    }

    /// Returns the lag of durable subscribers, by name.
    pub fn lags(&self) -> Vec<(String, u64)> {
        self.inner.journal.as_ref().map(|journal| journal.lags(self.last_seq())).unwrap_or_default()
    }

    /// Writes the store of the journal as it is now to a new file: see [`store::BlockingStore::write_snapshot`].
    ///
    /// # Errors
    /// The bus has no journal, or the file cannot be written.
    pub fn write_snapshot(&self, thread: &MayBlock, path: &Path) -> Result<(), StoreError> {
        let journal = self.inner.journal.as_ref().ok_or(StoreError::Closed)?;
        journal.store().blocking(thread).write_snapshot(path)
    }

    /// Has what subscribers store in the store of the journal committed at once while the result exists: see
    /// [`Store::hurry`].
    pub fn hurry(&self) -> Option<Hurry> {
        self.inner.journal.as_ref().map(|journal| journal.store().hurry())
    }

    /// Updates the gauges of the bus.
    pub fn measure(&self, thread: &MayBlock) {
        for (name, lag) in self.lags() {
            metrics::SUBSCRIBER_LAG.with(&[&name]).set(lag);
        }
        if let Some((events, bytes)) = self.inner.journal.as_ref().map(|journal| journal.size(thread, self.last_seq()))
        {
            metrics::JOURNAL_EVENTS.set(events);
            metrics::JOURNAL_BYTES.set(bytes);
        }
        if let Some(journal) = &self.inner.journal {
            metrics::STORE_BYTES.set(journal.store().disk_bytes());
        }
    }

    /// Closes the bus: rejects further events, and subscriptions end after the last event. Returns when all events are
    /// persisted.
    pub async fn close(&self) {
        self.inner.ring.lock().closed = true;
        self.inner.arrived.notify_waiters();
        while self.inner.journal.is_some() {
            let persisted = self.inner.persisted.notified();
            let mut persisted = std::pin::pin!(persisted);
            persisted.as_mut().enable();
            if self.inner.ring.lock().stopped {
                return;
            }
            persisted.await;
        }
    }

    fn check_size(&self, event: &Event) -> Result<(), BusError> {
        let (size, limit) = (event.frame().len(), self.inner.limits.event);
        if size > limit {
            metrics::EVENTS_REFUSED.add(1);
            return Err(BusError::TooLarge { size, limit });
        }
        Ok(())
    }
}

#[cfg(test)]
mod commit_tests;
#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod tests;
