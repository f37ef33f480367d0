//! Publishes the master's own events, and tracks which job events the job cache has stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use brine_bus::{Bus, BusError};
use brine_event::Event;
use brine_value::Map;
use tokio::sync::watch;

/// The maximum wait for the job cache of those that need what it stores.
pub const JOB_CACHE_TIMEOUT: Duration = Duration::from_secs(5);

/// The event bus of a master, together with the progress of the job cache. Clones share it.
#[derive(Clone)]
pub struct Events {
    /// The bus itself.
    pub bus: Bus,
    /// The sequence number of the last event about a job.
    last_job: Arc<AtomicU64>,
    /// The sequence number of the last event that the job cache has stored.
    cached: watch::Receiver<u64>,
}

impl Events {
    /// Creates the events of a bus. `cached` is the sequence number up to which the job cache has stored events.
    pub fn new(bus: Bus, cached: watch::Receiver<u64>) -> Self {
        Events { bus, last_job: Arc::default(), cached }
    }

    /// Publishes an event, and returns its sequence number. A failure is only logged.
    pub async fn fire(&self, tag: &str, body: &Map) -> Option<u64> {
        let fired = self.bus.fire(tag, body).await;
        fired.inspect_err(|error| tracing::error!(tag, %error, "publishing an event failed")).ok()
    }

    /// Waits until the journal has persisted an event. A failure is only logged.
    pub async fn persisted(&self, seq: u64) {
        if let Err(error) = self.bus.persisted(seq).await {
            tracing::error!(seq, %error, "an event is not in the journal: the other masters of the cluster do not get it if this one dies");
        }
    }

    /// Publishes an event about a job, which the job cache stores. Returns its sequence number.
    pub async fn fire_job(&self, tag: &str, body: &Map) -> Result<u64, BusError> {
        let seq = self.bus.fire(tag, body).await?;
        self.job_published(seq);
        Ok(seq)
    }

    /// Publishes the event of a new job between the one before it, if any, and the one after it: one commit of the
    /// journal persists all of them. Returns the sequence number of the last one. Only the event of the job must be
    /// accepted; a failure of the others is logged.
    pub async fn fire_new_job(&self, before: Option<Event>, new: Event, after: Event) -> Result<Option<u64>, BusError> {
        let others = before.into_iter();
        let position = others.len();
        let events: Vec<Event> = others.chain([new, after]).collect();
        let mut fired = self.bus.fire_all(&events).await.into_iter();
        // The first refusal is the last result.
        let new = fired.by_ref().take(position + 1).last().unwrap_or(Err(BusError::Closed))?;
        self.job_published(new);
        let after = fired.next().unwrap_or(Err(BusError::Closed));
        let tag = events.last().map_or("", Event::tag);
        Ok(after.inspect_err(|error| tracing::error!(tag, %error, "publishing an event failed")).ok())
    }

    /// Records the sequence number of an event about a job.
    pub fn job_published(&self, seq: u64) {
        self.last_job.fetch_max(seq, Ordering::Relaxed);
    }

    /// Waits until the job cache has stored all job events that were published before, or the timeout expires.
    pub async fn job_cache_caught_up(&self, timeout: Duration) {
        let last = self.last_job.load(Ordering::Relaxed);
        let mut cached = self.cached.clone();
        if *cached.borrow() >= last {
            return;
        }
        let _hurry = self.bus.hurry();
        if tokio::time::timeout(timeout, cached.wait_for(|cached| *cached >= last)).await.is_err() {
            tracing::warn!(last, "job cache lags: its answers may be stale");
        }
    }
}

#[cfg(test)]
mod tests {
    use brine_bus::BusLimits;
    use brine_value::map;

    use super::*;

    /// Returns the events of a bus in memory, and the progress of its job cache.
    fn in_memory() -> (Events, watch::Sender<u64>) {
        let (progress, cached) = watch::channel(0);
        (Events::new(Bus::in_memory(BusLimits::default()), cached), progress)
    }

    #[tokio::test]
    async fn catching_up_waits_for_the_last_job_event() {
        let (events, progress) = in_memory();
        let hour = Duration::from_secs(3600);
        events.fire("other", &map! {}).await;
        events.job_cache_caught_up(hour).await;
        let seq = events.fire_job("salt/job/1/new", &map! {}).await.unwrap();
        // The timeout bounds the wait.
        events.job_cache_caught_up(Duration::ZERO).await;
        let waiting = events.clone();
        let waiting = tokio::spawn(async move { waiting.job_cache_caught_up(hour).await });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        progress.send_replace(seq);
        waiting.await.unwrap();
    }
}
