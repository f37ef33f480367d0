//! One subscriber: its cursor in the ring, or its position in the journal.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use brine_value::{FromValue, Value};
use tokio::sync::OwnedSemaphorePermit;

use super::{FIRST_PAGE, Hub, Item, PAGE, PAGE_BYTES, SMALL_PAGE, WakePolicy};
use crate::error::MasterError;
use crate::metrics;

/// A subscription to the hub.
pub(crate) struct Subscription {
    pub(super) hub: Arc<Hub>,
    pub(super) pace: WakePolicy,
    /// The index of its waker.
    pub(super) slot: u32,
    /// The sequence number of the last event returned; `None` if there has been none.
    pub(super) cursor: Option<u64>,
    /// The epoch of the ring that the cursor belongs to.
    pub(super) epoch: u64,
    /// The position in the journal, set while the subscriber is behind the ring.
    pub(super) journal: Option<Box<JournalPage>>,
    /// Whether it has not kept up with its events: then it reads small pages of the journal.
    pub(super) is_slow: bool,
}

/// The position of a subscriber in the journal.
#[derive(Default)]
pub(super) struct JournalPage {
    /// Events that have been read but not yet returned.
    page: VecDeque<Arc<Item>>,
    /// The start of the next page; `None` if the next events are in the ring.
    pub since: Option<Value>,
    /// The number of events in the next page.
    size: usize,
    /// The turn of a stream to hold a page. Pages are held by few streams at a time, however many there are.
    turn: Option<OwnedSemaphorePermit>,
}

impl JournalPage {
    pub fn at(since: Value, is_slow: bool) -> Self {
        let size = if is_slow { SMALL_PAGE } else { FIRST_PAGE };
        JournalPage { since: Some(since), size, ..JournalPage::default() }
    }

    fn pop(&mut self) -> Option<Arc<Item>> {
        let item = self.page.pop_front();
        if self.page.is_empty() {
            self.turn = None;
        }
        item
    }
}

/// The pause after an event that cannot be read.
const SKIP_INTERVAL: Duration = Duration::from_millis(50);

/// Returns the number of events in the page after one of this many events and bytes.
fn next_size(size: usize, events: usize, bytes: usize) -> usize {
    let fitting = PAGE_BYTES * events / bytes.max(1);
    (2 * size).min(fitting).clamp(1, PAGE)
}

impl Drop for Subscription {
    fn drop(&mut self) {
        // The waker is dropped without the lock.
        let waker = self.hub.waiting(self.pace).lock().remove(self.slot);
        drop(waker);
    }
}

impl Subscription {
    /// Returns the next event. Cancel safe: a page of the journal that was being read is read again.
    pub async fn next(&mut self) -> Arc<Item> {
        loop {
            match poll_fn(|context| self.poll(context)).await {
                Some(item) => return item,
                None => Box::pin(self.read_journal()).await,
            }
        }
    }

    /// Returns the next event if it is available without waiting.
    pub fn ready(&mut self) -> Option<Arc<Item>> {
        if let Some(journal) = &mut self.journal {
            let item = journal.pop();
            if item.is_some() || journal.since.is_some() {
                return item;
            }
            self.journal = None;
        }
        self.take()
    }

    /// Polls the next event. Returns `None` if it must be read from the journal with [`Self::read_journal`].
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Arc<Item>>> {
        let mut item = self.ready();
        if item.is_none() && self.journal.is_none() {
            self.register_waker(context);
            // An event may have been published before the waker was registered.
            item = self.take();
        }
        if item.is_none() && self.journal.is_none() { Poll::Pending } else { Poll::Ready(item) }
    }

    /// Registers the task to be woken by the next event, a logout, or the end of all streams.
    pub fn register_waker(&self, context: &mut Context<'_>) {
        self.hub.waiting(self.pace).lock().set(self.slot, context.waker());
    }

    /// Returns the next event of the ring. If the ring no longer has it, switches to the journal and returns `None`.
    pub(super) fn take(&mut self) -> Option<Arc<Item>> {
        let ring = self.hub.ring.read();
        let first = ring.first()?;
        let cursor = self.cursor.filter(|_| self.epoch == ring.epoch).unwrap_or(first.saturating_sub(1));
        self.epoch = ring.epoch;
        if cursor + 1 < first {
            self.journal = Some(Box::new(JournalPage::at(Value::from(cursor + 1), self.is_slow)));
            return None;
        }
        let item = ring.after(cursor).next().cloned();
        self.cursor = Some(item.as_ref().map_or(cursor, |item| item.seq));
        item
    }

    /// Continues after the event with this number, which is the last one that the client has been sent. Releases the
    /// page of the journal: a subscriber that waits for its client holds no events.
    pub fn rewind(&mut self, seq: u64) {
        self.is_slow = true;
        self.journal = None;
        self.cursor = Some(seq);
    }

    /// Continues after a page that cannot be decoded: with pages of one event, and after the event in question.
    pub(super) fn skip_unreadable(&mut self, since: &Value, size: usize, error: &MasterError) {
        let Some(journal) = &mut self.journal else { return };
        if size > 1 {
            journal.size = 1;
            return;
        }
        let seq = u64::from_value(since).filter(|seq| self.hub.last().is_some_and(|last| *seq <= last));
        tracing::warn!(%since, %error, "an event of the journal cannot be read and is skipped");
        match seq {
            Some(seq) => journal.since = Some(Value::from(seq + 1)),
            // A time, or an event that is not in the ring: new events follow.
            None => self.journal = None,
        }
    }

    /// Reads the next page of the journal.
    pub async fn read_journal(&mut self) {
        let next = self.journal.as_ref().and_then(|journal| Some((journal.since.clone()?, journal.size)));
        let Some((since, size)) = next else { return };
        let Ok(turn) = Arc::clone(&self.hub.readers).acquire_owned().await else { return };
        let page = match self.hub.page(&since, size).await {
            Ok(page) => page,
            Err(error @ MasterError::Refused(_)) => {
                tracing::warn!(%error, "reading events from the journal failed: the subscriber continues with new ones");
                self.journal = None;
                return;
            }
            Err(error @ MasterError::Reply(_)) => {
                self.skip_unreadable(&since, size, &error);
                tokio::time::sleep(SKIP_INTERVAL).await;
                return;
            }
            Err(error) => {
                tracing::warn!(%error, "reading events from the journal failed");
                tokio::time::sleep(Duration::from_secs(1)).await;
                return;
            }
        };
        let Some(last) = page.last().map(|item| item.seq) else {
            // The journal has no further events: the following ones are in the ring, or not yet published.
            self.journal = None;
            let ring = self.hub.ring.read();
            let from = u64::from_value(&since).and_then(|since| since.checked_sub(1));
            self.cursor = match (from, ring.first(), ring.last()) {
                (Some(from), Some(first), Some(last)) if from <= last => Some(from.max(first.saturating_sub(1))),
                (_, _, last) => last,
            };
            return;
        };
        metrics::EVENTS_REPLAYED.add(page.len() as u64);
        self.cursor = Some(last);
        let is_in_ring = self.hub.ring.read().first().is_some_and(|first| first <= last + 1);
        let since = (!is_in_ring).then(|| Value::from(last + 1));
        let bytes: usize = page.iter().map(|item| item.event.frame().len()).sum();
        let size = next_size(size, page.len(), bytes);
        // Jobs take their events at once, and may do other things before the next one.
        let turn = (self.pace == WakePolicy::Paced).then_some(turn);
        self.journal = Some(Box::new(JournalPage { page: page.into(), since, size, turn }));
    }
}
