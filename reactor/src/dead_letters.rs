//! Dead letters: failed reactions, kept with their event until they are retried. When there are too many, the oldest are
//! dropped.

use std::collections::BTreeMap;

use brine_bus::store::{Batch, BlockingStore, StoreError, Table};
use brine_event::{Event, stamp};
use brine_value::{FromValue, Map, Value, map, msgpack};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::metrics;
use crate::store_retry;

const FAILED: Table = Table("reactor_failed");
/// The maximum number of dead letters; beyond it the oldest is dropped.
const CAPACITY: usize = 10_000;

/// A reaction that failed for good, or an SLS file that could not be used.
#[derive(Debug, Clone, PartialEq)]
pub struct DeadLetter {
    /// The event that started the reaction.
    pub event: Event,
    /// The entry's pattern, or the rule's id.
    pub entry: String,
    /// The SLS file as the entry names it.
    pub file: String,
    /// The reaction's label within the file; `None` if the whole file failed.
    pub label: Option<String>,
    /// The error.
    pub message: String,
    /// The time of the failure, in the format of event stamps.
    pub time: String,
    /// Variables of the rule that fired.
    pub rule_context: Option<Map>,
}

impl DeadLetter {
    pub(crate) fn new(event: &Event, entry: &str, file: &str, label: Option<String>, message: &str) -> Self {
        let (entry, file, message) = (entry.to_owned(), file.to_owned(), message.to_owned());
        DeadLetter { event: event.clone(), entry, file, label, message, time: stamp(), rule_context: None }
    }

    fn pack(&self) -> Vec<u8> {
        let value = map! {
            "seq" => self.event.seq(),
            "event" => self.event.frame().to_vec(),
            "entry" => self.entry.as_str(),
            "file" => self.file.as_str(),
            "label" => self.label.clone(),
            "message" => self.message.as_str(),
            "time" => self.time.as_str(),
            "more" => self.rule_context.clone(),
        };
        msgpack::pack_map(&value)
    }

    fn unpack(packed: &[u8]) -> Option<Self> {
        let map = msgpack::unpack_map(packed).ok()?;
        let text = |name: &str| map.get(name).and_then(Value::as_str).map(str::to_owned);
        let frame = map.get("event")?.as_bytes()?.to_vec();
        Some(DeadLetter {
            event: Event::from_trusted_frame(u64::from_value(map.get("seq")?)?, Bytes::from(frame)).ok()?,
            entry: text("entry")?,
            file: text("file")?,
            label: text("label"),
            message: text("message")?,
            time: text("time")?,
            rule_context: map.get("more").and_then(Value::as_map).cloned(),
        })
    }

    /// Returns the dead letter in the form that `reactor.failed` shows.
    pub fn to_value(&self) -> Value {
        map! {
            "tag" => self.event.tag(),
            "entry" => self.entry.as_str(),
            "file" => self.file.as_str(),
            "reaction" => self.label.clone(),
            "message" => self.message.as_str(),
            "time" => self.time.as_str(),
        }
        .into()
    }
}

/// The dead-letter queue: in memory, and in the store if there is one.
pub(crate) struct DeadLetters {
    store: Option<BlockingStore>,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    letters: BTreeMap<u64, DeadLetter>,
    next: u64,
}

impl DeadLetters {
    /// Reads the dead letters from the store.
    pub fn open(store: Option<BlockingStore>) -> Result<Self, StoreError> {
        let mut queue = Queue::default();
        if let Some(store) = &store {
            for (key, packed) in store.scan(FAILED, b"", usize::MAX)? {
                let Ok(number) = key.try_into().map(u64::from_be_bytes) else { continue };
                queue.next = number + 1;
                queue.letters.extend(DeadLetter::unpack(&packed).map(|letter| (number, letter)));
            }
        }
        Ok(DeadLetters { store, queue: Mutex::new(queue) })
    }

    /// Adds a dead letter, or replaces the one of the same reaction. Failed writes are retried until `stop`. Returns
    /// whether the dead letter is persisted.
    pub async fn add(&self, letter: DeadLetter, stop: &CancellationToken) -> bool {
        let (number, packed, dropped) = self.insert(letter);
        let Some(store) = &self.store else { return true };
        let batch = || {
            let mut batch = Batch::new();
            batch.put(FAILED, number.to_be_bytes(), packed.clone());
            if let Some(oldest) = dropped {
                batch.delete(FAILED, oldest.to_be_bytes());
            }
            batch
        };
        store_retry::write(store, batch, "a dead letter of the reactor", stop).await
    }

    /// Inserts a dead letter in memory. Returns its number, its packed form, and the number of the one dropped for it.
    fn insert(&self, letter: DeadLetter) -> (u64, Bytes, Option<u64>) {
        let mut queue = self.queue.lock();
        let is_same = |other: &DeadLetter| {
            (other.event.seq(), &other.entry, &other.file, &other.label)
                == (letter.event.seq(), &letter.entry, &letter.file, &letter.label)
        };
        let known = queue.letters.iter().find(|(_, other)| is_same(other)).map(|(number, _)| *number);
        let number = known.unwrap_or(queue.next);
        queue.next = queue.next.max(number + 1);
        let packed = Bytes::from(letter.pack());
        queue.letters.insert(number, letter);
        let mut dropped = None;
        if queue.letters.len() > CAPACITY
            && let Some((oldest, letter)) = queue.letters.pop_first()
        {
            dropped = Some(oldest);
            metrics::REACTIONS_FORGOTTEN.add(1);
            tracing::warn!(
                seq = letter.event.seq(),
                file = letter.file,
                "dead-letter queue is full: the oldest dead letter is dropped"
            );
        }
        (number, packed, dropped)
    }

    /// Returns all dead letters with their numbers, oldest first.
    pub fn all(&self) -> Vec<(u64, DeadLetter)> {
        self.queue.lock().letters.iter().map(|(number, letter)| (*number, letter.clone())).collect()
    }

    /// Removes a dead letter. Failed writes are retried until `stop`; if that comes first, the dead letter is restored
    /// at the next start.
    pub async fn remove(&self, number: u64, stop: &CancellationToken) {
        let is_known = self.queue.lock().letters.remove(&number).is_some();
        let Some(store) = self.store.as_ref().filter(|_| is_known) else { return };
        let batch = || {
            let mut batch = Batch::new();
            batch.delete(FAILED, number.to_be_bytes());
            batch
        };
        store_retry::write(store, batch, "the removal of a dead letter of the reactor", stop).await;
    }
}

#[cfg(test)]
mod tests {
    use brine_bus::store::Store;
    use brine_runtime::executors::MayBlock;

    use super::*;

    fn letter(seq: u64, label: &str) -> DeadLetter {
        let event = Event::from_map("t/x", &map! {"n" => seq}).unwrap().stamped(seq, "now").unwrap();
        DeadLetter::new(&event, "t/*", "/x.sls", Some(label.to_owned()), "it broke")
    }

    #[tokio::test]
    async fn dead_letters_survive_a_restart_until_they_are_removed() {
        let stop = CancellationToken::new();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("brine.redb");
        let thread = MayBlock::on_dedicated_thread(tokio::runtime::Handle::current());
        let open = || DeadLetters::open(Some(Store::open(&path, 1 << 20).unwrap().0.blocking(&thread))).unwrap();
        let letters = open();
        for (seq, label) in [(7, "a"), (7, "b"), (9, "a"), (7, "a")] {
            assert!(letters.add(letter(seq, label), &stop).await);
        }
        drop(letters);
        let letters = open();
        let all = letters.all();
        let found: Vec<_> = all.iter().map(|(n, one)| (*n, one.event.seq(), one.label.clone().unwrap())).collect();
        assert_eq!(found, [(0, 7, "a".to_owned()), (1, 7, "b".to_owned()), (2, 9, "a".to_owned())]);
        assert_eq!((all[2].1.event.tag(), all[2].1.event.data().get("n")), ("t/x", Some(&9.into())));
        letters.remove(1, &stop).await;
        drop(letters);
        assert_eq!(open().all().len(), 2);
    }
}
