//! The acknowledgements that the load has received, each with its kind, number and time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The kinds of items in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An event of a minion, answered once it is durable.
    Event,
    /// A job return, answered once it is durable.
    Return,
    /// The `runner` reaction to an acknowledged event.
    RunnerReaction,
    /// The `local` reaction to an acknowledged event, run by the minion.
    LocalReaction,
    /// A job whose id `salt --async` has printed, run by the minion.
    Job,
    /// An event pushed into `master_event_pull.ipc`, without acknowledgement.
    Push,
    /// A webhook, answered once its event is durable.
    Hook,
    /// An acknowledged event that the master stores by `event_return`.
    EventReturn,
    /// A journaled event that a slow subscriber has to receive.
    Subscriber,
    /// A journaled event that a client of the REST API has to receive, over all its connections.
    Stream,
}

impl Kind {
    pub const ALL: [Kind; 10] = [
        Kind::Event,
        Kind::Return,
        Kind::RunnerReaction,
        Kind::LocalReaction,
        Kind::Job,
        Kind::Push,
        Kind::Hook,
        Kind::EventReturn,
        Kind::Subscriber,
        Kind::Stream,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Event => "events",
            Kind::Return => "returns",
            Kind::RunnerReaction => "runner reactions",
            Kind::LocalReaction => "local reactions",
            Kind::Job => "jobs",
            Kind::Push => "pushed events",
            Kind::Hook => "webhooks",
            Kind::EventReturn => "event returns",
            Kind::Subscriber => "slow subscribers",
            Kind::Stream => "event streams",
        }
    }
}

/// An acknowledgement. An event with a reaction counts twice: as an event and as a reaction.
#[derive(Debug, Clone, Copy)]
pub struct Ack {
    pub kind: Kind,
    pub number: u64,
    /// Milliseconds since 1970, by the clock of the test.
    pub at: u64,
}

#[derive(Default)]
pub struct Record {
    numbers: AtomicU64,
    acks: Mutex<Vec<Ack>>,
    /// Events that were answered with an error.
    refused: AtomicU64,
    /// The numbers of the events in the stream of the REST API.
    stream: Mutex<Vec<u64>>,
    changed: Notify,
}

impl Record {
    /// Returns a number that is unique in this round.
    pub fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub fn acknowledge(&self, kind: Kind, number: u64) {
        self.acks.lock().push(Ack { kind, number, at: now() });
        self.changed.notify_waiters();
    }

    pub fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_waiters();
    }

    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub fn acks(&self) -> Vec<Ack> {
        self.acks.lock().clone()
    }

    /// Records an event in the stream of the REST API.
    pub fn streamed(&self, seq: u64) {
        self.stream.lock().push(seq);
    }

    pub fn stream(&self) -> Vec<u64> {
        self.stream.lock().clone()
    }

    fn count(&self, kind: Kind) -> usize {
        self.acks.lock().iter().filter(|ack| ack.kind == kind).count()
    }

    /// Waits until `more` further events are acknowledged.
    pub async fn more_events(&self, more: usize, limit: Duration) -> Result<(), String> {
        self.more(Kind::Event, more, limit).await
    }

    /// Waits until `more` further items of a kind are acknowledged.
    pub async fn more(&self, kind: Kind, more: usize, limit: Duration) -> Result<(), String> {
        let target = self.count(kind) + more;
        self.wait(limit, || self.count(kind) >= target)
            .await
            .map_err(|()| format!("no {} are accepted {} s after the fault", kind.name(), limit.as_secs()))
    }

    /// Waits until the condition holds; it is evaluated after each answer.
    pub async fn wait(&self, limit: Duration, holds: impl Fn() -> bool) -> Result<(), ()> {
        let waiting = async {
            loop {
                let changed = self.changed.notified();
                if holds() {
                    return;
                }
                changed.await;
            }
        };
        tokio::time::timeout(limit, waiting).await.map_err(|_| ())
    }
}

/// Returns the milliseconds since 1970.
pub fn now() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(elapsed.as_millis()).unwrap()
}
