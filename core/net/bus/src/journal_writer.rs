//! The task that writes published events into the journal, in the order of their numbers.

use std::panic::AssertUnwindSafe;
use std::sync::Weak;
use std::time::{Duration, Instant};

use brine_event::Event;
use brine_runtime::executors::ExecutorError;
use futures::FutureExt;

use super::journal::Journal;
use super::retention::Cut;
use super::{Inner, numbers};
use crate::metrics;
use crate::store::{Batch, StoreError, panic_text};

/// The maximum number of events per commit.
const COMMIT: usize = 8192;
/// The time for which moved cursors wait for events, with which they are committed, before they are committed alone:
/// longer than what a subscriber stores waits for other writes. Tests count commits, and are not to depend on time.
const CURSOR_INTERVAL: Duration = if cfg!(test) { Duration::from_secs(5) } else { Duration::from_millis(100) };
/// The pause after a failure that affected no event.
const RETRY: Duration = Duration::from_secs(1);

/// Writes events until the bus is closed or dropped. After a panic, the affected events count as failed, and the writer
/// continues.
pub(super) async fn run(bus: Weak<Inner>) {
    while let Err(panic) = AssertUnwindSafe(write(bus.clone())).catch_unwind().await {
        metrics::JOURNAL_RESTARTS.add(1);
        let Some(inner) = bus.upgrade() else { return };
        let reason = format!("the journal writer panicked: {}", panic_text(&*panic));
        let path = inner.journal.as_ref().map(|journal| journal.store().path().to_owned()).unwrap_or_default();
        let (first, last) = {
            let mut ring = inner.ring.lock();
            let (first, last) = (ring.persisted + 1, ring.next - 1);
            if first <= last {
                metrics::JOURNAL_FAILED.add(last + 1 - first);
                ring.failed(first, last, StoreError::Write { path, reason: reason.clone() });
                ring.persisted = last;
            }
            (first, last)
        };
        tracing::error!(first, last, reason, "events were not persisted; restarting the journal writer");
        inner.persisted.notify_waiters();
        drop(inner);
        tokio::time::sleep(RETRY).await;
    }
}

/// An outage of the journal, logged at its start and end.
#[derive(Default)]
struct Outage(Option<(u64, u64)>);

impl Outage {
    fn failed(&mut self, first: &Event, last: &Event, error: &StoreError) {
        if self.0.is_none() {
            tracing::error!(first = first.seq(), %error, "persisting events fails from here on");
        }
        self.0 = Some((self.0.map_or(first.seq(), |(first, _)| first), last.seq()));
    }

    fn ended(&mut self) {
        if let Some((first, last)) = self.0.take() {
            tracing::warn!(first, last, "events are persisted again; these were published but are not in the journal");
        }
    }
}

async fn write(bus: Weak<Inner>) {
    let (mut outage, mut unreserved) = (Outage::default(), false);
    // When cursors began to wait for events.
    let mut waiting: Option<Instant> = None;
    loop {
        let Some(inner) = bus.upgrade() else { return };
        let Some(journal) = inner.journal.clone() else { return };
        let (events, next, reserved, closed) = {
            let ring = inner.ring.lock();
            (ring.from(ring.persisted + 1, COMMIT).unwrap_or_default(), ring.next, ring.reserved, ring.closed)
        };
        // An empty store has no reservation.
        unreserved |= journal.has_been_replaced();
        let reserved = if unreserved { 0 } else { reserved };
        let events = one_commit(events, journal.commit_bytes());
        #[cfg(test)]
        assert!(events.iter().all(|event| event.tag() != "test/journal/panic"), "requested by the test");
        let mut batch = Batch::new();
        let (before, cut) = journal.append(&mut batch, &events);
        if let Some(cut) = cut {
            batch.append(trim(&journal, cut).await);
        }
        let reservation = if closed { None } else { journal.reservation(&mut batch, next, reserved) };
        let is_alone = batch.is_empty();
        let cursors = journal.dirty_cursors(&mut batch);
        if is_alone && !cursors.is_empty() && !closed {
            let left = CURSOR_INTERVAL.saturating_sub(waiting.get_or_insert_with(Instant::now).elapsed());
            if !left.is_zero() {
                pause(&inner, left).await;
                continue;
            }
        }
        waiting = None;
        if batch.is_empty() {
            if closed {
                stop(&journal, next).await;
                inner.ring.lock().stopped = true;
                inner.persisted.notify_waiters();
                return;
            }
            wait(&inner, &journal).await;
            continue;
        }
        let result = journal.store().write_when_room(batch).await.durable().await;
        {
            let mut ring = inner.ring.lock();
            if let (Some(first), Some(last)) = (events.first(), events.last()) {
                if let Err(error) = &result {
                    metrics::JOURNAL_FAILED.add(events.len() as u64);
                    outage.failed(first, last, error);
                    ring.failed(first.seq(), last.seq(), error.clone());
                }
                ring.persisted = last.seq();
            }
            if let (Ok(()), Some(reserved)) = (&result, reservation) {
                (ring.reserved, unreserved) = (reserved, false);
            }
        }
        inner.persisted.notify_waiters();
        match result {
            Ok(()) => {
                outage.ended();
                journal.cursors_written(cursors);
            }
            // Unwritten cursors at the end are stale: their subscribers receive some events again.
            Err(_) if events.is_empty() && closed => journal.cursors_written(cursors),
            Err(_) if events.is_empty() => pause(&inner, RETRY).await,
            Err(_) => journal.revert_append(before),
        }
    }
}

/// Drops the events that exceed this commit size, except the first one.
fn one_commit(mut events: Vec<Event>, bytes: u64) -> Vec<Event> {
    let mut sum = 0;
    let over = events.iter().position(|event| {
        sum += event.frame().len() as u64;
        sum > bytes
    });
    events.truncate(over.unwrap_or(events.len()).max(1));
    events
}

/// Returns the batch that trims the journal.
async fn trim(journal: &Journal, cut: Cut) -> Batch {
    let this = journal.clone();
    let trimmed = journal.disk().run(move |thread| {
        let mut batch = Batch::new();
        this.trim(thread, &mut batch, cut).map(|()| batch)
    });
    match trimmed.await {
        Ok(Ok(batch)) => return batch,
        Ok(Err(error)) => tracing::error!(%error, "trimming the journal failed"),
        // The daemon is stopping: trimming resumes at the next start.
        Err(ExecutorError::Stopped(_)) => {}
        Err(error) => tracing::error!(%error, "trimming the journal failed"),
    }
    Batch::new()
}

/// Records that no number was issued beyond the last one.
async fn stop(journal: &Journal, next: u64) {
    let mut batch = Batch::new();
    numbers::stop(&mut batch, next);
    if let Err(error) = journal.store().write(batch).durable().await {
        tracing::error!(%error, "recording the clean stop failed: the next start skips the reserved sequence numbers");
    }
}

/// Waits for events or cursors. The wait is bounded, since a bus without owners must end.
async fn wait(inner: &Inner, journal: &Journal) {
    let moved = async {
        tokio::select! {
            () = journal.moved() => {}
            () = tokio::time::sleep(Duration::from_secs(5)) => {}
        }
    };
    events_or(inner, moved).await;
}

/// Lets cursors accumulate for this time; returns early if there are events to write.
async fn pause(inner: &Inner, time: Duration) {
    events_or(inner, tokio::time::sleep(time)).await;
}

/// Waits until there are events to write or the bus is closed, or until `other` completes.
async fn events_or(inner: &Inner, other: impl Future<Output = ()>) {
    let arrived = inner.arrived.notified();
    let mut arrived = std::pin::pin!(arrived);
    // Events from here on notify it, and those before are in the ring.
    arrived.as_mut().enable();
    let is_idle = {
        let ring = inner.ring.lock();
        ring.next == ring.persisted + 1 && !ring.closed
    };
    if is_idle {
        tokio::select! {
            () = arrived => {}
            () = other => {}
        }
    }
}
