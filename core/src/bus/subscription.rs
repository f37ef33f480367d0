//! A subscriber's place on the bus.

use bytes::Bytes;

use super::{Bus, journal};
use crate::event::Event;
use crate::glob::GlobSet;
use crate::metrics;
use crate::store::StoreError;

/// How many events are looked at in one go.
const STEP: usize = 512;

/// Which events a subscriber wants.
#[derive(Debug, Clone)]
pub enum Filter {
    /// Every event.
    All,
    /// Events whose form on sockets starts with one of these: a prefix of the tag, or the tag and two newlines.
    Prefixes(Vec<Bytes>),
    /// Events whose tag matches one of these globs.
    Globs(GlobSet),
}

impl Filter {
    /// Events whose tag starts so.
    pub fn prefix(prefix: &str) -> Self {
        Filter::Prefixes(vec![Bytes::copy_from_slice(prefix.as_bytes())])
    }

    /// Whether this event is wanted.
    pub fn wants(&self, event: &Event) -> bool {
        match self {
            Filter::All => true,
            Filter::Prefixes(prefixes) => prefixes.iter().any(|prefix| event.frame().starts_with(prefix)),
            Filter::Globs(globs) => globs.is_match(event.tag()),
        }
    }
}

/// Where a subscriber starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// With the next event that is fired.
    Now,
    /// With the event of this number, or the oldest one that is kept.
    Since(u64),
    /// Behind the last event that the subscriber of this name has committed; now, if it has none.
    Durable(String),
}

/// A subscriber's place on the bus: hands out events in order, each once.
pub struct Subscription {
    bus: Bus,
    filter: Filter,
    next: u64,
    name: Option<String>,
    pending: std::collections::VecDeque<Event>,
}

impl Subscription {
    pub(super) fn new(bus: Bus, filter: Filter, start: Start) -> Result<Self, StoreError> {
        let now = bus.last_seq() + 1;
        let (next, name) = match start {
            Start::Now => (now, None),
            Start::Since(seq) => (seq.max(1), None),
            Start::Durable(name) => {
                let journal = bus.inner.journal.as_ref();
                let committed = journal.map(|journal| journal.cursor(&name, now - 1)).transpose()?;
                (committed.map_or(now, |seq| seq + 1), Some(name))
            }
        };
        Ok(Subscription { bus, filter, next, name, pending: std::collections::VecDeque::new() })
    }

    /// The next event; nothing when the bus is closed and all has been handed out. Safe to drop while
    /// it waits.
    pub async fn recv(&mut self) -> Option<Event> {
        while self.pending.is_empty() {
            self.pending = self.step().await?.into();
        }
        self.pending.pop_front()
    }

    /// All events that are there, at least one; nothing when the bus is closed and all has been handed
    /// out. Safe to drop while it waits.
    pub async fn recv_many(&mut self) -> Option<Vec<Event>> {
        if !self.pending.is_empty() {
            return Some(std::mem::take(&mut self.pending).into());
        }
        loop {
            let events = self.step().await?;
            if !events.is_empty() {
                return Some(events);
            }
        }
    }

    /// The number of the next event that is looked at.
    pub fn position(&self) -> u64 {
        self.next
    }

    /// How many events have been fired that this subscriber has not looked at yet.
    pub fn lag(&self) -> u64 {
        (self.bus.last_seq() + 1).saturating_sub(self.next) + self.pending.len() as u64
    }

    /// Remembers across restarts that all events up to this one have been handled.
    pub fn commit(&self, seq: u64) {
        if let (Some(name), Some(journal)) = (&self.name, &self.bus.inner.journal) {
            journal.commit(name, seq);
        }
    }

    /// Changes what is wanted, from the next event on that has not been looked at.
    pub fn set_filter(&mut self, filter: Filter) {
        self.filter = filter;
    }

    /// Looks at the next events. What passes the filter is returned, which may be nothing.
    async fn step(&mut self) -> Option<Vec<Event>> {
        let bus = self.bus.clone();
        let arrived = bus.inner.arrived.notified();
        let mut arrived = std::pin::pin!(arrived);
        arrived.as_mut().enable();
        let (events, first) = {
            let ring = bus.inner.ring.lock();
            if self.next >= ring.next {
                if ring.closed {
                    return None;
                }
                (Some(Vec::new()), ring.next)
            } else {
                (ring.from(self.next, STEP), ring.first())
            }
        };
        match events {
            Some(events) if events.is_empty() => {
                arrived.await;
                Some(events)
            }
            Some(mut events) => {
                self.next = events.last().map_or(self.next, |event| event.seq() + 1);
                events.retain(|event| self.filter.wants(event));
                Some(events)
            }
            None => Some(self.catch_up(first).await),
        }
    }

    /// Reads what has left the ring, whose oldest event is `first`.
    async fn catch_up(&mut self, first: u64) -> Vec<Event> {
        let Some(journal) = &self.bus.inner.journal else {
            metrics::EVENTS_MISSED.add(first - self.next);
            tracing::warn!(missed = first - self.next, "a subscriber was too slow and missed events");
            self.next = first;
            return Vec::new();
        };
        let (journal, from) = (journal.clone(), self.next);
        let read = tokio::task::spawn_blocking(move || journal.read(from, STEP)).await;
        let mut events = match read {
            Ok(Ok(events)) => events,
            Ok(Err(error)) => {
                metrics::EVENTS_MISSED.add(first - self.next);
                tracing::error!(%error, from, to = first - 1, "events cannot be read from the journal and are skipped");
                Vec::new()
            }
            // Only when the runtime ends.
            Err(_) => Vec::new(),
        };
        events.retain(|event| event.seq() < first);
        self.next = events.last().map_or(first, |event| event.seq() + 1);
        events.retain(|event| self.filter.wants(event));
        events
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let (Some(_), Some(journal)) = (&self.name, &self.bus.inner.journal) {
            journal::flush_cursors(journal);
        }
    }
}
