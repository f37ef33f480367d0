//! Queues of loads that the master, or a returner, has not accepted yet: returns of jobs on disk, events in memory. All are
//! bounded and retried with exponential backoff and jitter.
//!
//! The first attempt is made by the caller ([`Outbox::add`]) or by the queue ([`Outbox::push`]); later ones by the
//! queue, one at a time. A load that the master does not accept moves to the end, so that it does not block others. One
//! that a returner does not accept keeps its place.

mod store;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use brine_metrics::Counter;
use brine_runtime::backoff::Backoff;
use brine_runtime::executors::Executor;
use brine_value::{Map, Value, msgpack};
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

pub use self::store::adopt;
use self::store::{Directory, LoadError, LoadSource};

/// The interval at which the directory is scanned for returns of other processes (`salt-call`).
const RESCAN_INTERVAL: Duration = Duration::from_secs(60);

/// The result of sending a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendResult {
    /// The master has accepted it.
    Accepted,
    /// The master will never accept it.
    Refused,
    /// It should be retried.
    Later,
}

/// The bounds of a queue.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The maximum number of loads.
    pub count: usize,
    /// The maximum size of all loads, in bytes.
    pub bytes: usize,
    /// The time after which a load is dropped.
    pub age: Duration,
}

/// A queue of loads for the master.
#[derive(Debug)]
pub struct Outbox {
    kind: &'static str,
    bounds: Bounds,
    lost: &'static Counter,
    /// The name of the receiver, for logs.
    receiver: String,
    /// Whether a load that is not accepted blocks the loads behind it.
    in_order: bool,
    directory: Option<Directory>,
    queue: Mutex<Queue>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    /// The entries by their position in the queue.
    entries: BTreeMap<u64, Entry>,
    bytes: usize,
    next: u64,
}

#[derive(Debug)]
struct Entry {
    /// Its name in logs: a job id or a tag.
    label: String,
    size: usize,
    since: Timestamp,
    source: LoadSource,
    /// Whether an attempt is under way.
    busy: bool,
}

/// A load in the queue.
#[derive(Debug, Clone, Copy)]
pub struct QueuedLoad(u64);

impl Queue {
    fn push(&mut self, entry: Entry) -> u64 {
        self.next += 1;
        self.bytes += entry.size;
        self.entries.insert(self.next, entry);
        self.next
    }

    /// Puts an entry back in its place.
    fn put_back(&mut self, ticket: QueuedLoad, entry: Entry) {
        self.bytes += entry.size;
        self.entries.insert(ticket.0, entry);
    }

    fn take(&mut self, turn: u64) -> Option<Entry> {
        let entry = self.entries.remove(&turn)?;
        self.bytes -= entry.size;
        Some(entry)
    }

    /// Returns the oldest entry that is not being sent. It counts as being sent from now on.
    fn take_oldest(&mut self) -> Option<QueuedLoad> {
        let idle = self.entries.iter_mut().filter(|(_, entry)| !entry.busy);
        let (turn, entry) = idle.min_by_key(|(_, entry)| entry.since)?;
        entry.busy = true;
        Some(QueuedLoad(*turn))
    }
}

impl Outbox {
    /// Creates an empty queue in memory.
    pub fn in_memory(kind: &'static str, bounds: Bounds, lost: &'static Counter) -> Self {
        Outbox {
            kind,
            bounds,
            lost,
            receiver: "the master".to_owned(),
            in_order: false,
            directory: None,
            queue: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Makes this the queue of a returner, which receives the loads in order.
    pub fn of_returner(mut self, name: &str) -> Self {
        self.receiver = format!("returner {name}");
        self.in_order = true;
        self
    }

    /// Opens the queue in a directory. Blocks.
    pub fn open(kind: &'static str, bounds: Bounds, lost: &'static Counter, path: &Path) -> Self {
        let mut outbox = Outbox::in_memory(kind, bounds, lost);
        outbox.directory = Some(Directory::new(path));
        outbox.rescan();
        outbox
    }

    /// Adds the loads of the directory that are not in the queue. Blocks.
    fn rescan(&self) {
        let Some(directory) = &self.directory else { return };
        for load in directory.list() {
            let mut queue = self.queue.lock();
            let is_known = queue
                .entries
                .values()
                .any(|entry| matches!(&entry.source, LoadSource::File(path) if *path == load.path));
            // A file is removed before its entry: one without entry that is still there has not been delivered since it
            // was listed.
            if !is_known && load.path.exists() {
                let store::StoredLoad { label, size, since, path } = load;
                queue.push(Entry { label, size, since, source: LoadSource::File(path), busy: false });
            }
        }
        self.make_room();
    }

    /// Adds a load whose first attempt the caller makes: on disk if possible. Blocks.
    pub fn add(&self, label: &str, load: &Map) -> QueuedLoad {
        self.insert(label, load, true)
    }

    /// Adds a load for the queue to send. Blocks if there is a directory.
    pub fn push(&self, label: &str, load: &Map) {
        self.insert(label, load, false);
        self.changed.notify_one();
    }

    fn insert(&self, label: &str, load: &Map, busy: bool) -> QueuedLoad {
        let packed = msgpack::pack_map(load);
        let (size, since) = (packed.len(), Timestamp::now());
        let source = self
            .directory
            .as_ref()
            .map_or(LoadSource::Memory(Vec::new()), |directory| LoadSource::File(directory.name(label)));
        let path = if let LoadSource::File(path) = &source { Some(path.clone()) } else { None };
        // Queued before it is written: a rescan must not add the file a second time.
        let turn = self.queue.lock().push(Entry { label: label.to_owned(), size, since, source, busy: true });
        let written = path.as_deref().map(|path| store::write(path, &packed));
        let mut queue = self.queue.lock();
        if let Some(entry) = queue.entries.get_mut(&turn) {
            if !matches!(written, Some(Ok(()))) {
                entry.source = LoadSource::Memory(packed);
            }
            entry.busy = busy;
        }
        drop(queue);
        if let Some(Err(error)) = written {
            let (kind, receiver) = (self.kind, &self.receiver);
            tracing::error!(kind, label, %error, "storing a load on disk failed: it stays in memory until {receiver} accepts it");
        }
        self.make_room();
        QueuedLoad(turn)
    }

    /// Drops the oldest loads until the bounds hold.
    fn make_room(&self) {
        loop {
            let mut queue = self.queue.lock();
            if queue.entries.len() <= self.bounds.count && queue.bytes <= self.bounds.bytes {
                return;
            }
            let Some(oldest) = queue.take_oldest() else { return };
            drop(queue);
            self.lose(oldest, "too many are waiting");
        }
    }

    /// Removes a load: first its file, then its entry, so that a rescan in between finds either both or none.
    fn remove(&self, ticket: QueuedLoad) -> Option<Entry> {
        let source = self.queue.lock().entries.get(&ticket.0)?.source.clone();
        source.remove();
        self.queue.lock().take(ticket.0)
    }

    fn lose(&self, ticket: QueuedLoad, reason: &str) {
        let Some(entry) = self.remove(ticket) else { return };
        self.lost.add(1);
        tracing::error!(
            kind = self.kind,
            label = entry.label,
            bytes = entry.size,
            "dropped before {} accepted it: {reason}",
            self.receiver
        );
    }

    /// Records the result of an attempt. Blocks if there is a directory.
    pub fn finish(&self, ticket: QueuedLoad, verdict: SendResult) {
        match verdict {
            SendResult::Accepted => _ = self.remove(ticket),
            SendResult::Refused => self.lose(ticket, "it is refused"),
            SendResult::Later => self.postpone(ticket),
        }
    }

    /// Puts a load back that was not accepted, unless it is too old.
    fn postpone(&self, ticket: QueuedLoad) {
        let mut queue = self.queue.lock();
        let Some(entry) = queue.entries.get(&ticket.0) else { return };
        if is_older(entry.since, self.bounds.age) {
            drop(queue);
            return self.lose(ticket, "it is too old");
        }
        let Some(mut entry) = queue.take(ticket.0) else { return };
        entry.busy = false;
        let path = if let LoadSource::File(path) = &entry.source { Some(path.clone()) } else { None };
        if self.in_order {
            queue.put_back(ticket, entry);
        } else {
            queue.push(entry);
        }
        drop(queue);
        if let Some(Err(error)) = path.as_deref().map(store::sync) {
            tracing::warn!(kind = self.kind, %error, "flushing a file to the disk failed");
        }
        self.changed.notify_one();
    }

    /// Whether a load with this label is not accepted yet.
    pub fn holds(&self, label: &str) -> bool {
        self.queue.lock().entries.values().any(|entry| entry.label == label)
    }

    /// Returns the number of loads.
    pub fn len(&self) -> usize {
        self.queue.lock().entries.len()
    }

    /// Takes the next load to send.
    fn next(&self) -> Option<(QueuedLoad, String, Result<Map, LoadError>)> {
        let mut queue = self.queue.lock();
        let (turn, entry) = queue.entries.iter_mut().find(|(_, entry)| !entry.busy)?;
        entry.busy = true;
        let (ticket, label, source) = (QueuedLoad(*turn), entry.label.clone(), entry.source.clone());
        drop(queue);
        Some((ticket, label, source.read()))
    }

    /// Sends the queued loads while there is a session, until `shutdown`.
    pub async fn run<F: Future<Output = SendResult> + Send>(
        self: Arc<Self>,
        send: impl Fn(Map) -> F + Send,
        mut ready: watch::Receiver<bool>,
        mut backoff: Backoff,
        disk: Executor,
        shutdown: CancellationToken,
    ) {
        let stopped = shutdown.cancelled();
        tokio::pin!(stopped);
        loop {
            let this = Arc::clone(&self);
            // Panics are logged by the executor.
            let next = disk.run(move |_| this.next()).await.unwrap_or_default();
            let Some((ticket, label, load)) = next else {
                let rescan = tokio::select! {
                    () = self.changed.notified() => false,
                    () = tokio::time::sleep(RESCAN_INTERVAL) => true,
                    () = &mut stopped => return,
                };
                if rescan {
                    let this = Arc::clone(&self);
                    _ = disk.run(move |_| this.rescan()).await;
                }
                continue;
            };
            let verdict = match load {
                Ok(load) => tokio::select! {
                    verdict = async {
                        // The sender lives as long as the minion.
                        _ = ready.wait_for(|ready| *ready).await;
                        send(load).await
                    } => verdict,
                    () = &mut stopped => return,
                },
                Err(error) => {
                    tracing::error!(kind = self.kind, label, %error, "reading a queued load failed");
                    if error.is_final() { SendResult::Refused } else { SendResult::Later }
                }
            };
            let this = Arc::clone(&self);
            _ = disk.run(move |_| this.finish(ticket, verdict)).await;
            match verdict {
                SendResult::Accepted => {
                    tracing::info!(kind = self.kind, label, "{} has accepted a queued load", self.receiver);
                    backoff.reset();
                }
                SendResult::Refused => {}
                SendResult::Later => {
                    let wait = backoff.next_wait();
                    tracing::debug!(kind = self.kind, label, ?wait, "a queued load was not accepted; retrying");
                    tokio::select! {
                        () = tokio::time::sleep(wait) => {}
                        () = &mut stopped => return,
                    }
                }
            }
        }
    }
}

fn is_older(since: Timestamp, age: Duration) -> bool {
    Timestamp::now().duration_since(since).unsigned_abs() > age
}

/// Replaces the value of a return that exceeds the maximum message size, and that could therefore never be sent.
pub fn fit(load: &mut Map, limit: usize) {
    let size = msgpack::pack_map(load).len();
    if size <= limit {
        return;
    }
    brine_job::metrics::RETURNS_LOST.add(1);
    let text = format!("ERROR: the return is too large: {size} bytes, the limit is {limit}; see `max_message_size`");
    tracing::error!(jid = ?load.get("jid"), size, limit, "a return is too large for the master: an error is returned instead");
    load.insert("return".into(), text.into());
    load.insert("retcode".into(), 1.into());
    load.insert("success".into(), Value::Bool(false));
    load.shift_remove("out");
    // The arguments may be the large part.
    if msgpack::pack_map(load).len() > limit {
        load.insert("fun_args".into(), Value::List(Vec::new()));
    }
}

#[cfg(test)]
mod tests;
