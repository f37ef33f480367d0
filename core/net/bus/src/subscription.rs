//! A subscription with its cursor on the bus.

use std::time::Duration;

use brine_event::Event;
use brine_runtime::executors::ExecutorError;
use brine_text::glob::GlobSet;
use bytes::Bytes;

use super::{Bus, journal};
use crate::metrics;
use crate::store::StoreError;

/// The number of events processed per step.
const STEP: usize = 512;
/// The pause before the journal is read again after the store has failed.
const RETRY: Duration = Duration::from_millis(200);

/// The events that a subscriber receives.
#[derive(Debug, Clone)]
pub enum Filter {
    /// Every event.
    All,
    /// Events whose encoding on sockets starts with one of these: prefixes of the tag, or whole tags followed by two
    /// newlines.
    Prefixes(Vec<Bytes>),
    /// Events whose tag matches one of these globs.
    Globs(GlobSet),
}

impl Filter {
    /// Returns a filter for events whose tag has this prefix.
    pub fn prefix(prefix: &str) -> Self {
        Filter::Prefixes(vec![Bytes::copy_from_slice(prefix.as_bytes())])
    }

    /// Whether the filter matches this event.
    pub fn matches(&self, event: &Event) -> bool {
        match self {
            Filter::All => true,
            Filter::Prefixes(prefixes) => prefixes.iter().any(|prefix| event.frame().starts_with(prefix)),
            Filter::Globs(globs) => globs.is_match(event.tag()),
        }
    }
}

/// The start of a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// With the next published event.
    Now,
    /// At the event with this number, or the oldest one available.
    Since(u64),
    /// After the last event that this durable subscriber has committed; now, if it is new.
    Durable(String),
}

/// A subscription to the bus: yields events in order, each once.
pub struct Subscription {
    bus: Bus,
    filter: Filter,
    next: u64,
    name: Option<String>,
    pending: std::collections::VecDeque<Event>,
    reading: Reading,
}

/// The state of reading the journal.
struct Reading {
    /// Whether an event below `next` has been read. Gaps before the first one are expected.
    settled: bool,
    /// The number of events per read: fewer near a damaged page.
    step: usize,
    /// The number of sequence numbers to skip next at a damaged page.
    stride: u64,
    /// Whether the store has failed, which is logged once.
    waiting: bool,
}

impl Subscription {
    pub(super) fn new(bus: Bus, filter: Filter, start: Start) -> Result<Self, StoreError> {
        let now = bus.last_seq() + 1;
        let settled = !matches!(start, Start::Since(_));
        let (next, name) = match start {
            Start::Now => (now, None),
            Start::Since(seq) => (seq.max(1), None),
            Start::Durable(name) => {
                let journal = bus.inner.journal.as_ref();
                let committed = journal.map(|journal| journal.cursor(&name, now - 1));
                (committed.map_or(now, |seq| seq + 1), Some(name))
            }
        };
        let reading = Reading { settled, step: STEP, stride: 1, waiting: false };
        Ok(Subscription { bus, filter, next, name, pending: std::collections::VecDeque::new(), reading })
    }

    /// Returns the next event; `None` once the bus is closed and all events have been returned. Cancel safe.
    pub async fn recv(&mut self) -> Option<Event> {
        while self.pending.is_empty() {
            self.pending = self.step().await?.into();
        }
        self.pending.pop_front()
    }

    /// Returns all available events, at least one; `None` once the bus is closed and all have been returned. Cancel
    /// safe.
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

    /// Returns the number of the next event.
    pub fn position(&self) -> u64 {
        self.next
    }

    /// Returns the number of published events that this subscription has not returned yet.
    pub fn lag(&self) -> u64 {
        (self.bus.last_seq() + 1).saturating_sub(self.next) + self.pending.len() as u64
    }

    /// Commits the cursor: all events up to this one have been handled. Durable across restarts.
    pub fn commit(&self, seq: u64) {
        if let (Some(name), Some(journal)) = (&self.name, &self.bus.inner.journal) {
            journal.commit(name, seq);
        }
    }

    /// Restarts at the event of this number, or the oldest one available; at the next one, if it is not published yet.
    pub fn begin_at(&mut self, seq: u64) {
        self.next = seq.clamp(1, self.bus.last_seq() + 1);
        self.pending.clear();
        self.reading.settled = false;
    }

    /// Replaces the filter, from the next unread event on.
    pub fn set_filter(&mut self, filter: Filter) {
        self.filter = filter;
    }

    /// Processes the next events. Returns the matching ones, possibly none.
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
                self.reading.settled = true;
                events.retain(|event| self.filter.matches(event));
                Some(events)
            }
            None => Some(self.catch_up(first).await),
        }
    }

    /// Reads events that have left the ring, whose oldest event is `first`. Logs and counts skipped ones.
    async fn catch_up(&mut self, first: u64) -> Vec<Event> {
        let Some(journal) = &self.bus.inner.journal else {
            metrics::EVENTS_MISSED.add(first - self.next);
            tracing::warn!(missed = first - self.next, "a subscriber lagged too far and missed events");
            self.next = first;
            return Vec::new();
        };
        let (from, step) = (self.next, self.reading.step);
        let reader = journal.clone();
        let read = journal.disk().run(move |thread| reader.read(thread, from, step)).await;
        match read {
            Ok(Ok(page)) => {
                let next = page.next.unwrap_or(first).min(first);
                let mut events = page.events;
                events.retain(|event| event.seq() < first);
                self.report_gaps(from, next, &events);
                (self.reading.step, self.reading.stride, self.reading.waiting) = ((step * 2).min(STEP), 1, false);
                self.next = next;
                events.retain(|event| self.filter.matches(event));
                return events;
            }
            Ok(Err(error @ StoreError::Damaged { .. })) => self.pass_damage(first, &error.to_string()),
            Ok(Err(error)) => self.wait_for_store(first, &error).await,
            Err(error @ ExecutorError::Panicked(_)) => self.pass_damage(first, &error.to_string()),
            // The daemon is stopping.
            Err(ExecutorError::Stopped(_)) => std::future::pending().await,
            // No thread can be started at present.
            Err(ExecutorError::Full(_)) => tokio::time::sleep(RETRY).await,
        }
        Vec::new()
    }

    /// Logs and counts events that are missing in a page of the journal.
    fn report_gaps(&mut self, from: u64, next: u64, events: &[Event]) {
        let from = match events.first() {
            Some(event) if !self.reading.settled => event.seq(),
            None if !self.reading.settled => return,
            _ => from,
        };
        self.reading.settled = true;
        let Some(journal) = &self.bus.inner.journal else { return };
        for (from, to) in journal.missing(from, next, events) {
            self.missed(from, to, "they are not in the journal");
        }
    }

    fn missed(&self, from: u64, to: u64, reason: &str) {
        metrics::EVENTS_MISSED.add(to + 1 - from);
        let subscriber = self.name.as_deref().unwrap_or_default();
        tracing::error!(from, to, subscriber, reason, "a subscriber missed events");
    }

    /// Skips a damaged page: first reduces the number of events per read, so that all events before it are read.
    fn pass_damage(&mut self, first: u64, reason: &str) {
        if self.reading.step > 1 {
            self.reading.step = (self.reading.step / 8).max(1);
            return;
        }
        let next = (self.next + self.reading.stride).min(first);
        self.missed(self.next, next - 1, reason);
        self.reading.stride *= 2;
        self.next = next;
    }

    /// Waits while the store cannot be read. Skips events only if the bus is closed.
    async fn wait_for_store(&mut self, first: u64, error: &StoreError) {
        if self.bus.inner.ring.lock().closed {
            self.missed(self.next, first - 1, &error.to_string());
            self.next = first;
            return;
        }
        if !std::mem::replace(&mut self.reading.waiting, true) {
            let subscriber = self.name.as_deref().unwrap_or_default();
            tracing::warn!(subscriber, from = self.next, %error, "reading events failed; retrying");
        }
        tokio::time::sleep(RETRY).await;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let (Some(_), Some(journal)) = (&self.name, &self.bus.inner.journal) {
            journal::flush_cursors(journal);
        }
    }
}
