//! The queue in front of the writer thread, bounded by batches and bytes.
//!
//! Batches are due at once, or soon: those wait for one that is due, and are committed together with it.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::{Notify, oneshot};

use super::{Batch, StoreError};
use crate::metrics;

/// The maximum time for which a batch waits for one that is due. Tests count commits, and are not to depend on time.
const SOON: Duration = if cfg!(test) { Duration::from_secs(30) } else { Duration::from_millis(50) };

/// When a batch is to be committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// At once.
    Now,
    /// Together with the next batch that is due, within [`SOON`].
    Soon,
}

/// The limits of the queue. One batch is always accepted, however large.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueueLimits {
    pub batches: usize,
    pub bytes: usize,
}

impl Default for QueueLimits {
    fn default() -> Self {
        QueueLimits { batches: 16_384, bytes: 64 << 20 }
    }
}

/// The sender of a result.
pub(super) type ResultSender = oneshot::Sender<Result<(), StoreError>>;
/// The receiver of a result.
pub(super) type ResultReceiver = oneshot::Receiver<Result<(), StoreError>>;
/// A queued batch and the receiver of its result.
pub(super) type QueuedBatch = (Batch, Reply);

/// The receiver of a write's result.
#[derive(Debug)]
pub(super) enum Reply {
    /// The caller, by its ticket.
    Ticket(ResultSender),
    /// Nobody. A refusal is logged with this description.
    Unchecked(&'static str),
}

/// The writer's next step.
pub(super) enum Next {
    /// Batches to commit.
    Batches(Vec<QueuedBatch>),
    /// A reader reported an error, free space was requested, or the deadline has passed.
    Check,
    /// The queue was closed.
    Closed,
}

#[derive(Default)]
struct State {
    waiting: Vec<QueuedBatch>,
    bytes: usize,
    /// The time until which the waiting batches wait for one that is due; `None` if one of them is.
    wait_until: Option<Instant>,
    /// The number of callers for which no batch may wait.
    hurried: usize,
    /// Whether batches are being refused because the queue is full. Logged once, until there is room.
    refusing: bool,
    /// Whether the writer has ended: nothing is committed any more.
    is_ended: bool,
    suspect: Option<(String, u64)>,
    /// The senders of results for requests to return free space to the disk.
    space: Vec<ResultSender>,
    closing: bool,
}

pub(super) struct Queue {
    state: Mutex<State>,
    limits: QueueLimits,
    arrived: Condvar,
    room: Condvar,
    room_async: Notify,
}

impl Queue {
    /// Creates an empty queue.
    pub fn new(limits: QueueLimits) -> Self {
        Queue {
            state: Mutex::default(),
            limits,
            arrived: Condvar::new(),
            room: Condvar::new(),
            room_async: Notify::new(),
        }
    }

    fn has_room(&self, state: &State) -> bool {
        state.waiting.len() < self.limits.batches && state.bytes < self.limits.bytes
    }

    fn push(&self, state: &mut State, batch: Batch, reply: Reply, due: Due) {
        let is_first = state.waiting.is_empty();
        state.bytes += batch.bytes();
        state.waiting.push((batch, reply));
        if due == Due::Now || state.hurried > 0 || !self.has_room(state) {
            state.wait_until = None;
        } else if is_first {
            state.wait_until = Some(Instant::now() + SOON);
        }
        if is_first || state.wait_until.is_none() {
            self.arrived.notify_one();
        }
    }

    /// Makes all batches due: those that wait, and further ones until [`Queue::end_hurry`].
    pub fn hurry(&self) {
        let mut state = self.state.lock();
        state.hurried += 1;
        state.wait_until = None;
        self.arrived.notify_one();
    }

    /// Ends [`Queue::hurry`].
    pub fn end_hurry(&self) {
        self.state.lock().hurried -= 1;
    }

    /// Queues a batch, or refuses it if the queue is full or the writer has ended.
    pub fn try_push(&self, batch: Batch, reply: Reply) {
        let mut state = self.state.lock();
        if !state.is_ended && self.has_room(&state) {
            return self.push(&mut state, batch, reply, Due::Now);
        }
        let error = if state.is_ended { StoreError::Closed } else { StoreError::Busy };
        metrics::STORE_REFUSED.add(1);
        if !state.is_ended && !std::mem::replace(&mut state.refusing, true) {
            let (batches, bytes) = (state.waiting.len(), state.bytes);
            tracing::error!(batches, bytes, "writes refused: the queue of the store is full; the disk is too slow");
        }
        drop(state);
        match reply {
            // The caller may ignore the result.
            Reply::Ticket(sender) => _ = sender.send(Err(error)),
            Reply::Unchecked(what) => {
                metrics::STORE_UNCHECKED.add(1);
                tracing::error!(what, %error, "a write to the store was refused and is not repeated");
            }
        }
    }

    /// Queues a batch when there is room; blocks this thread until then.
    pub fn push_blocking(&self, batch: Batch, due: Due) -> ResultReceiver {
        let (sender, result) = oneshot::channel();
        let mut state = self.state.lock();
        while !self.has_room(&state) && !state.is_ended {
            self.room.wait(&mut state);
        }
        if state.is_ended {
            drop(state);
            self.try_push(batch, Reply::Ticket(sender));
        } else {
            self.push(&mut state, batch, Reply::Ticket(sender), due);
        }
        result
    }

    /// Queues a batch when there is room.
    pub async fn push_when_room(&self, batch: Batch, reply: Reply) {
        loop {
            let room = self.room_async.notified();
            let mut room = std::pin::pin!(room);
            room.as_mut().enable();
            {
                let mut state = self.state.lock();
                if state.is_ended {
                    drop(state);
                    return self.try_push(batch, reply);
                }
                if self.has_room(&state) {
                    return self.push(&mut state, batch, reply, Due::Now);
                }
            }
            room.await;
        }
    }

    /// Reports a reader's error that only the writer can repair, with the generation of the database.
    pub fn suspect(&self, reason: String, generation: u64) {
        self.state.lock().suspect = Some((reason, generation));
        self.arrived.notify_one();
    }

    /// Takes the error that a reader reported.
    pub fn take_suspect(&self) -> Option<(String, u64)> {
        self.state.lock().suspect.take()
    }

    /// Requests that the writer return free space to the disk.
    pub fn request_space(&self) -> ResultReceiver {
        let (sender, result) = oneshot::channel();
        let mut state = self.state.lock();
        if state.is_ended {
            // The caller may ignore the result.
            _ = sender.send(Err(StoreError::Closed));
        } else {
            state.space.push(sender);
        }
        drop(state);
        self.arrived.notify_one();
        result
    }

    /// Takes the requests for free space.
    pub fn take_space_requests(&self) -> Vec<ResultSender> {
        std::mem::take(&mut self.state.lock().space)
    }

    /// Closes the queue: the writer ends once it is empty.
    pub fn close(&self) {
        self.state.lock().closing = true;
        self.arrived.notify_all();
    }

    /// Whether the writer has ended.
    pub fn is_ended(&self) -> bool {
        self.state.lock().is_ended
    }

    /// Records that the writer has ended: refuses all further batches.
    pub fn end(&self) {
        let waiting = {
            let mut state = self.state.lock();
            state.is_ended = true;
            state.space.clear();
            std::mem::take(&mut state.waiting)
        };
        self.room.notify_all();
        self.room_async.notify_waiters();
        for (batch, reply) in waiting {
            self.try_push(batch, reply);
        }
    }

    /// Waits for the writer's next step, until this deadline.
    pub fn next(&self, deadline: Option<Instant>) -> Next {
        let mut state = self.state.lock();
        loop {
            let is_due = state.closing || state.wait_until.is_none_or(|until| Instant::now() >= until);
            if !state.waiting.is_empty() && is_due {
                state.bytes = 0;
                state.wait_until = None;
                state.refusing = false;
                let waiting = std::mem::take(&mut state.waiting);
                self.room.notify_all();
                self.room_async.notify_waiters();
                return Next::Batches(waiting);
            }
            if state.closing {
                return Next::Closed;
            }
            if state.suspect.is_some() || !state.space.is_empty() {
                return Next::Check;
            }
            match [deadline, state.wait_until].into_iter().flatten().min() {
                None => self.arrived.wait(&mut state),
                Some(until) => {
                    if self.arrived.wait_until(&mut state, until).timed_out() && Some(until) == deadline {
                        return Next::Check;
                    }
                }
            }
        }
    }
}
