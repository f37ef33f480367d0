//! Delivers events of the bus to returners: in batches, with a durable cursor, across failures and outages.

use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_bus::{Bus, Subscription};
use brine_event::Event;
use brine_returners::ReturnerError;
use brine_runtime::executors::{Executor, ExecutorError};
use brine_value::{Map, map};
use tokio_util::sync::CancellationToken;

use crate::metrics;

/// The interval at which the cursor is committed past events that the filter skips.
const COMMIT_INTERVAL: Duration = Duration::from_secs(1);
/// The minimum and maximum pause between retries.
const MIN_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// The number of attempts for events that a returner rejects: about a minute.
const MAX_ATTEMPTS: u32 = 12;

/// The tags of the events of an outage.
const FAILED: &str = "salt/master/returner/failed";
const RECOVERED: &str = "salt/master/returner/recovered";

/// The failure of a returner to store a batch.
pub struct Unstored {
    /// The number of events at the start of the batch that are stored.
    pub handled: usize,
    /// The number of events that are dropped together if retries fail.
    pub count: usize,
    /// The error of the first one.
    pub error: ReturnerError,
}

/// The size of queued events, in bytes, from which on they are delivered.
const MAX_QUEUED_BYTES: usize = 16 << 20;

/// How long events wait to be delivered together. Until then they are in memory and in the journal.
#[derive(Debug, Clone, Copy, Default)]
pub struct Queueing {
    /// The number of events that are delivered together; 0 delivers events as they arrive.
    pub events: usize,
    /// The time after which fewer are delivered, too.
    pub time: Option<Duration>,
}

/// Events that wait to be delivered together.
struct Queue {
    queueing: Queueing,
    events: Vec<Event>,
    bytes: usize,
    /// The time at which the oldest event came.
    since: tokio::time::Instant,
}

impl Queue {
    fn new(queueing: Queueing) -> Self {
        Queue { queueing, events: Vec::new(), bytes: 0, since: tokio::time::Instant::now() }
    }

    fn extend(&mut self, events: Vec<Event>) {
        if self.events.is_empty() {
            self.since = tokio::time::Instant::now();
        }
        self.bytes += events.iter().map(|event| event.frame().len()).sum::<usize>();
        self.events.extend(events);
    }

    fn is_full(&self) -> bool {
        self.events.len() >= self.queueing.events || self.bytes >= MAX_QUEUED_BYTES
    }

    /// Waits until the oldest event has waited long enough; forever if none has to.
    async fn due(&self) {
        match self.queueing.time.filter(|_| !self.events.is_empty()) {
            Some(time) => tokio::time::sleep_until(self.since + time).await,
            None => std::future::pending().await,
        }
    }

    fn take(&mut self) -> Vec<Event> {
        self.bytes = 0;
        std::mem::take(&mut self.events)
    }
}

/// Delivers events as [`deliver_queued`] does, all that are there at a time.
pub async fn deliver(
    bus: &Bus,
    name: &str,
    events: &mut Subscription,
    disk: &Executor,
    shutdown: CancellationToken,
    take: impl Fn(&[Event]) -> Result<(), Unstored> + Send + Sync + 'static,
) {
    deliver_queued(bus, name, (events, Queueing::default(), |_| true), disk, shutdown, take).await;
}

/// Runs `take` on a blocking thread for each batch of events, and commits the cursor. Failed events are retried. The
/// retries are unlimited if the master's own store has failed, which recovers with the disk, or if the returner's
/// server is unreachable; they last about a minute if the returner rejects the events. Meanwhile the journal retains
/// the following events. `name` is the returner's name in events and logs; events that are not wanted are skipped.
pub async fn deliver_queued(
    bus: &Bus,
    name: &str,
    (events, queueing, is_wanted): (&mut Subscription, Queueing, impl Fn(&Event) -> bool),
    disk: &Executor,
    shutdown: CancellationToken,
    take: impl Fn(&[Event]) -> Result<(), Unstored> + Send + Sync + 'static,
) {
    let take = Arc::new(take);
    let mut outages = Outages { bus: bus.clone(), name: name.to_owned(), since: None };
    let mut passes = tokio::time::interval(COMMIT_INTERVAL);
    let mut passed = 0;
    let mut queue = Queue::new(queueing);
    loop {
        tokio::select! {
            batch = events.recv_many() => {
                let Some(mut batch) = batch else { return };
                batch.retain(&is_wanted);
                queue.extend(batch);
                if !queue.is_full() {
                    continue;
                }
            }
            () = queue.due() => {}
            _ = passes.tick(), if queue.events.is_empty() => {
                // The cursor also moves past events outside of the filter, so that the journal need not retain them for
                // this subscriber.
                let reached = events.position() - 1;
                if reached > passed {
                    passed = reached;
                    events.commit(reached);
                }
                continue;
            }
            // Queued events are delivered after the next start.
            () = shutdown.cancelled() => return,
        }
        let batch = queue.take();
        let last = batch.last().map_or(0, Event::seq);
        let mut rest: Arc<[Event]> = batch.into();
        let (mut tries, mut at_once) = (0, usize::MAX);
        while !rest.is_empty() {
            let (run, events) = (Arc::clone(&take), Arc::clone(&rest));
            let passed = at_once.min(rest.len());
            let Unstored { handled, count, error } = match disk.run(move |_| run(&events[..passed])).await {
                Ok(Ok(())) => {
                    outages.end(&shutdown).await;
                    (tries, rest) = (0, rest[passed..].into());
                    continue;
                }
                Ok(Err(unstored)) => unstored,
                // The executor stops with the master: the events are delivered after the next start.
                Err(ExecutorError::Stopped(_)) => return,
                // An event with which the call panics must not have the others dropped.
                Err(ExecutorError::Panicked(_)) if passed > 1 => {
                    at_once = 1;
                    continue;
                }
                // A retry would repeat the panic.
                Err(error @ ExecutorError::Panicked(_)) => {
                    tracing::error!(returner = name, tag = rest[0].tag(), seq = rest[0].seq(), %error, "storing an event failed: it is dropped");
                    brine_job::metrics::RETURNS_LOST.add(1);
                    (tries, rest) = (0, rest[1..].into());
                    continue;
                }
                // No thread can be started at present.
                Err(ExecutorError::Full(_)) => {
                    tokio::select! {
                        () = tokio::time::sleep(MAX_PAUSE) => continue,
                        () = shutdown.cancelled() => return,
                    }
                }
            };
            tries = if handled > 0 { 1 } else { tries + 1 };
            let mut skipped = handled;
            let is_outage = error.is_outage();
            if is_outage {
                outages.begin(&error, &shutdown).await;
            } else {
                outages.end(&shutdown).await;
            }
            let waits = is_outage || matches!(error, ReturnerError::Store(_));
            if !waits && tries > MAX_ATTEMPTS {
                brine_job::metrics::RETURNS_LOST.add(count as u64);
                let (tag, seq) = (rest[handled].tag(), rest[handled].seq());
                tracing::error!(returner = name, tag, seq, count, %error, "storing events failed permanently: they are dropped");
                skipped += count;
                tries = 0;
            } else {
                if tries == 1 && !is_outage {
                    tracing::error!(returner = name, tag = rest[handled].tag(), %error, "storing an event failed: it is retried");
                }
                let pause = (MIN_PAUSE * 2u32.saturating_pow(tries.min(16))).min(MAX_PAUSE);
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = shutdown.cancelled() => return,
                }
            }
            rest = rest.get(skipped..).unwrap_or_default().into();
        }
        if last > 0 {
            events.commit(last);
        }
    }
}

/// Publishes an event when the server of a returner becomes unreachable, and when it is reachable again.
struct Outages {
    bus: Bus,
    name: String,
    since: Option<Instant>,
}

impl Outages {
    async fn begin(&mut self, error: &ReturnerError, shutdown: &CancellationToken) {
        if self.since.is_some() {
            return;
        }
        self.since = Some(Instant::now());
        metrics::RETURNER_OUTAGES.add(1);
        tracing::error!(returner = self.name, %error, "a returner is unreachable: its events wait in the journal");
        self.publish(FAILED, &map! {"returner" => &self.name, "message" => error.to_string()}, shutdown).await;
    }

    async fn end(&mut self, shutdown: &CancellationToken) {
        let Some(since) = self.since.take() else { return };
        let duration = since.elapsed().as_secs_f64();
        tracing::info!(returner = self.name, duration, "a returner is reachable again");
        self.publish(RECOVERED, &map! {"returner" => &self.name, "duration" => duration}, shutdown).await;
    }

    async fn publish(&self, tag: &str, body: &Map, shutdown: &CancellationToken) {
        tokio::select! {
            published = self.bus.fire(tag, body) => {
                if let Err(error) = published {
                    tracing::error!(tag, %error, "publishing an event failed");
                }
            }
            () = shutdown.cancelled() => {}
        }
    }
}

#[cfg(test)]
mod tests;
