//! Dead letters: failed reactions, kept with their event until they are retried or dropped. Beyond a number of letters or
//! bytes, the oldest are dropped.
//!
//! The store has the letters, memory only an index of them. Without a store, and until a letter is written, memory has
//! its packed form.

use std::collections::{BTreeMap, HashMap};

use brine_bus::store::{Batch, BlockingStore, StoreError, Table};
use brine_event::{Event, stamp};
use brine_value::{FromValue, Map, Value, map, msgpack};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::metrics;
use crate::store_retry;

const FAILED: Table = Table("reactor_failed");
/// The maximum number of dead letters.
const CAPACITY: usize = 10_000;
/// The bytes of letters that are read from the store at a time.
const PAGE_BYTES: usize = 4 << 20;

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
    /// The labels of all reactions that the file had. They tell a corrected reaction from those that have run.
    pub labels: Vec<String>,
}

/// Identifies a dead letter: a letter of the same reaction replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LetterId {
    /// The sequence number of the event.
    pub seq: u64,
    /// The entry's pattern, or the rule's id.
    pub entry: String,
    /// The SLS file as the entry names it.
    pub file: String,
    /// The reaction's label within the file; `None` if the whole file failed.
    pub label: Option<String>,
}

impl DeadLetter {
    pub(crate) fn new(event: &Event, entry: &str, file: &str, label: Option<String>, message: &str) -> Self {
        let (entry, file, message) = (entry.to_owned(), file.to_owned(), message.to_owned());
        DeadLetter {
            event: event.clone(),
            entry,
            file,
            label,
            message,
            time: stamp(),
            rule_context: None,
            labels: Vec::new(),
        }
    }

    /// Returns what identifies the letter.
    pub fn id(&self) -> LetterId {
        let (entry, file, label) = (self.entry.clone(), self.file.clone(), self.label.clone());
        LetterId { seq: self.event.seq(), entry, file, label }
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
            "labels" => self.labels.iter().map(|label| Value::from(label.as_str())).collect::<Value>(),
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
            labels: map
                .get("labels")
                .and_then(Value::as_list)
                .unwrap_or_default()
                .iter()
                .map(ToString::to_string)
                .collect(),
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

/// The dead-letter queue.
pub(crate) struct DeadLetters {
    store: Option<BlockingStore>,
    /// The maximum bytes of all letters. The newest letter is kept, however large it is.
    max_bytes: u64,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    letters: BTreeMap<u64, Indexed>,
    by_id: HashMap<LetterId, u64>,
    bytes: u64,
    next: u64,
}

/// A letter in the index.
struct Indexed {
    id: LetterId,
    bytes: u64,
    /// The letter, unless the store has it.
    packed: Option<Bytes>,
}

impl Queue {
    /// Adds a letter, or replaces the one with the same id. Returns its number.
    fn insert(&mut self, number: Option<u64>, id: LetterId, bytes: u64, packed: Option<Bytes>) -> u64 {
        let number = self.by_id.get(&id).copied().or(number).unwrap_or(self.next);
        self.next = self.next.max(number + 1);
        self.by_id.insert(id.clone(), number);
        self.bytes += bytes;
        if let Some(earlier) = self.letters.insert(number, Indexed { id, bytes, packed }) {
            self.bytes -= earlier.bytes;
        }
        number
    }

    fn remove(&mut self, number: u64) -> Option<Indexed> {
        let removed = self.letters.remove(&number)?;
        self.bytes -= removed.bytes;
        self.by_id.remove(&removed.id);
        Some(removed)
    }

    /// Removes the oldest letters beyond the limits, and returns their numbers. `newest` stays.
    fn make_room(&mut self, max_bytes: u64, newest: u64) -> Vec<u64> {
        let mut dropped = Vec::new();
        while self.letters.len() > CAPACITY || self.bytes > max_bytes {
            let Some(oldest) = self.letters.keys().copied().find(|number| *number != newest) else { break };
            let Some(Indexed { id, .. }) = self.remove(oldest) else { break };
            metrics::REACTIONS_FORGOTTEN.add(1);
            tracing::warn!(
                seq = id.seq,
                file = id.file,
                reaction = id.label,
                "dead-letter queue is full (reactor_dead_letters_size): the oldest dead letter is dropped"
            );
            dropped.push(oldest);
        }
        dropped
    }
}

impl DeadLetters {
    /// Reads the index of the dead letters from the store.
    pub fn open(store: Option<BlockingStore>, max_bytes: u64) -> Result<Self, StoreError> {
        let mut queue = Queue::default();
        if let Some(store) = &store {
            let mut start = Vec::new();
            loop {
                let (page, more) = store.scan_page(FAILED, &start, usize::MAX, PAGE_BYTES)?;
                for (key, packed) in &page {
                    let Ok(number) = key[..].try_into().map(u64::from_be_bytes) else { continue };
                    if let Some(letter) = DeadLetter::unpack(packed) {
                        _ = queue.insert(Some(number), letter.id(), packed.len() as u64, None);
                    } else {
                        tracing::error!(number, "a dead letter is damaged and is left out");
                    }
                    queue.next = queue.next.max(number + 1);
                }
                match page.into_iter().next_back() {
                    Some((last, _)) if more => start = [&last[..], b"\0"].concat(),
                    _ => break,
                }
            }
        }
        Ok(DeadLetters { store, max_bytes, queue: Mutex::new(queue) })
    }

    /// Adds a dead letter, or replaces the one of the same reaction. Failed writes are retried until `stop`. Returns
    /// whether the dead letter is persisted.
    pub async fn add(&self, letter: DeadLetter, stop: &CancellationToken) -> bool {
        let packed = Bytes::from(letter.pack());
        let (number, dropped) = {
            let mut queue = self.queue.lock();
            let number = queue.insert(None, letter.id(), packed.len() as u64, Some(packed.clone()));
            (number, queue.make_room(self.max_bytes, number))
        };
        let Some(store) = &self.store else { return true };
        let batch = || {
            let mut batch = Batch::new();
            batch.put(FAILED, number.to_be_bytes(), packed.clone());
            for oldest in &dropped {
                batch.delete(FAILED, oldest.to_be_bytes());
            }
            batch
        };
        let is_persisted = store_retry::write(store, batch, "a dead letter of the reactor", stop).await;
        if is_persisted && let Some(one) = self.queue.lock().letters.get_mut(&number) {
            // A newer version may wait to be written.
            one.packed.take_if(|waiting| waiting.as_ptr() == packed.as_ptr());
        }
        is_persisted
    }

    /// Returns the numbers of the dead letters, oldest first: all, or those of one event.
    pub fn numbers(&self, seq: Option<u64>) -> Vec<u64> {
        let queue = self.queue.lock();
        let matches = queue.letters.iter().filter(|(_, one)| seq.is_none_or(|seq| seq == one.id.seq));
        matches.map(|(number, _)| *number).collect()
    }

    /// Returns a dead letter; `None` if it was removed or is damaged. Blocks.
    pub fn read(&self, number: u64) -> Result<Option<DeadLetter>, StoreError> {
        let waiting = match self.queue.lock().letters.get(&number) {
            Some(one) => one.packed.clone(),
            None => return Ok(None),
        };
        let packed = match (waiting, &self.store) {
            (Some(packed), _) => Some(packed.to_vec()),
            (None, Some(store)) => store.get(FAILED, &number.to_be_bytes())?,
            (None, None) => None,
        };
        let letter = packed.as_deref().and_then(DeadLetter::unpack);
        if letter.is_none() {
            tracing::error!(number, "a dead letter is damaged or missing and is left out");
        }
        Ok(letter)
    }

    /// Removes a dead letter. Failed writes are retried until `stop`; if that comes first, the dead letter is restored
    /// at the next start. Returns what it was of.
    pub async fn remove(&self, number: u64, stop: &CancellationToken) -> Option<LetterId> {
        let removed = self.queue.lock().remove(number)?;
        if let Some(store) = &self.store {
            let batch = || {
                let mut batch = Batch::new();
                batch.delete(FAILED, number.to_be_bytes());
                batch
            };
            store_retry::write(store, batch, "the removal of a dead letter of the reactor", stop).await;
        }
        Some(removed.id)
    }
}

#[cfg(test)]
mod tests {
    use brine_bus::store::Store;
    use brine_runtime::executors::MayBlock;

    use super::*;

    /// The limit of bytes where it does not matter.
    const ROOM: u64 = 1 << 20;

    fn letter(seq: u64, label: &str) -> DeadLetter {
        let event = Event::from_map("t/x", &map! {"n" => seq}).unwrap().stamped(seq, "now").unwrap();
        DeadLetter::new(&event, "t/*", "/x.sls", Some(label.to_owned()), "it broke")
    }

    fn large(seq: u64, bytes: usize) -> DeadLetter {
        DeadLetter { message: "x".repeat(bytes), ..letter(seq, "a") }
    }

    fn all(letters: &DeadLetters) -> Vec<(u64, DeadLetter)> {
        letters.numbers(None).into_iter().map(|number| (number, letters.read(number).unwrap().unwrap())).collect()
    }

    #[tokio::test]
    async fn dead_letters_survive_a_restart_until_they_are_removed() {
        let stop = CancellationToken::new();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("brine.redb");
        let thread = MayBlock::on_dedicated_thread(tokio::runtime::Handle::current());
        let open = || DeadLetters::open(Some(Store::open(&path, 1 << 20).unwrap().0.blocking(&thread)), ROOM).unwrap();
        let letters = open();
        for (seq, label) in [(7, "a"), (7, "b"), (9, "a"), (7, "a")] {
            assert!(letters.add(letter(seq, label), &stop).await);
        }
        drop(letters);
        let letters = open();
        let actual: Vec<_> =
            all(&letters).iter().map(|(n, one)| (*n, one.event.seq(), one.label.clone().unwrap())).collect();
        assert_eq!(actual, [(0, 7, "a".to_owned()), (1, 7, "b".to_owned()), (2, 9, "a".to_owned())]);
        let last = letters.read(2).unwrap().unwrap();
        assert_eq!((last.event.tag(), last.event.data().get("n")), ("t/x", Some(&9.into())));
        assert_eq!((letters.numbers(Some(7)), letters.numbers(Some(8))), (vec![0, 1], vec![]));
        letters.remove(1, &stop).await;
        assert!(letters.add(letter(7, "b"), &stop).await);
        drop(letters);
        assert_eq!(all(&open()).into_iter().map(|(n, _)| n).collect::<Vec<_>>(), [0, 2, 3]);
    }

    #[tokio::test]
    async fn the_oldest_letters_are_dropped_beyond_a_number_of_bytes() {
        let stop = CancellationToken::new();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("brine.redb");
        let thread = MayBlock::on_dedicated_thread(tokio::runtime::Handle::current());
        let stored = || Some(Store::open(&path, 1 << 20).unwrap().0.blocking(&thread));
        for store in [None, stored()] {
            let is_stored = store.is_some();
            let letters = DeadLetters::open(store, 10_000).unwrap();
            let before = metrics::REACTIONS_FORGOTTEN.get();
            for seq in 1..=20 {
                assert!(letters.add(large(seq, 2000), &stop).await);
            }
            let seqs: Vec<u64> = all(&letters).iter().map(|(_, one)| one.event.seq()).collect();
            assert_eq!(seqs, [17, 18, 19, 20], "{is_stored}");
            assert!(metrics::REACTIONS_FORGOTTEN.get() >= before + 16);
            // A replaced letter counts once, and its place in the order stays.
            for _ in 0..9 {
                letters.add(large(17, 2000), &stop).await;
            }
            assert_eq!(letters.numbers(None).len(), 4);
            // A letter that exceeds the limit by itself is kept.
            letters.add(large(18, 20_000), &stop).await;
            assert_eq!(all(&letters).iter().map(|(_, one)| one.event.seq()).collect::<Vec<_>>(), [18], "{is_stored}");
            let in_memory = letters.queue.lock().letters.values().any(|one| one.packed.is_some());
            assert_eq!(in_memory, !is_stored, "the store has the letters");
        }
        let letters = DeadLetters::open(stored(), 10_000).unwrap();
        assert_eq!(all(&letters).iter().map(|(_, one)| one.event.seq()).collect::<Vec<_>>(), [18]);
    }
}
