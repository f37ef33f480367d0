//! Dead letters: failed reactions, kept with their event until they are retried.

use std::collections::BTreeMap;

use brine_bus::store::{Batch, BlockingStore, StoreError, Table};
use brine_event::{Event, stamp};
use brine_value::{FromValue, Map, Value, map, msgpack};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::metrics;
use crate::persist;

const FAILED: Table = Table("reactor_failed");
/// How many are kept: beyond them the oldest leaves.
const MOST: usize = 10_000;

/// A reaction that was put aside, or a file that could not be used.
#[derive(Debug, Clone, PartialEq)]
pub struct Failed {
    /// The event that it was to react to.
    pub event: Event,
    /// The entry's pattern, or the rule's id.
    pub entry: String,
    /// The SLS file as the entry names it.
    pub file: String,
    /// Which reaction of the file; nothing if the file as a whole could not be used.
    pub label: Option<String>,
    /// Why.
    pub message: String,
    /// When, as events are stamped.
    pub time: String,
    /// What a rule said of itself.
    pub more: Option<Map>,
}

impl Failed {
    pub(crate) fn new(event: &Event, entry: &str, file: &str, label: Option<String>, message: &str) -> Self {
        let (entry, file, message) = (entry.to_owned(), file.to_owned(), message.to_owned());
        Failed { event: event.clone(), entry, file, label, message, time: stamp(), more: None }
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
            "more" => self.more.clone(),
        };
        msgpack::pack_map(&value)
    }

    fn unpack(packed: &[u8]) -> Option<Self> {
        let map = msgpack::unpack_map(packed).ok()?;
        let text = |name: &str| map.get(name).and_then(Value::as_str).map(str::to_owned);
        let frame = map.get("event")?.as_bytes()?.to_vec();
        Some(Failed {
            event: Event::from_trusted_frame(u64::from_value(map.get("seq")?)?, Bytes::from(frame)).ok()?,
            entry: text("entry")?,
            file: text("file")?,
            label: text("label"),
            message: text("message")?,
            time: text("time")?,
            more: map.get("more").and_then(Value::as_map).cloned(),
        })
    }

    /// As `reactor.failed` shows it.
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

/// Where failed reactions are kept: in the store, if there is one, and else in memory.
pub(crate) struct Aside {
    store: Option<BlockingStore>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    failed: BTreeMap<u64, Failed>,
    next: u64,
}

impl Aside {
    /// Reads what is kept.
    pub fn open(store: Option<BlockingStore>) -> Result<Self, StoreError> {
        let mut kept = Kept::default();
        if let Some(store) = &store {
            for (key, packed) in store.scan(FAILED, b"", usize::MAX)? {
                let Ok(number) = key.try_into().map(u64::from_be_bytes) else { continue };
                kept.next = number + 1;
                kept.failed.extend(Failed::unpack(&packed).map(|failed| (number, failed)));
            }
        }
        Ok(Aside { store, kept: Mutex::new(kept) })
    }

    /// Adds a dead letter; one of the same reaction is replaced. Returns whether it is persisted: a failed write is
    /// tried again until `stop`.
    pub async fn put(&self, failed: Failed, stop: &CancellationToken) -> bool {
        let (number, packed, forgotten) = self.keep(failed);
        let Some(store) = &self.store else { return true };
        let batch = || {
            let mut batch = Batch::new();
            batch.put(FAILED, number.to_be_bytes(), packed.clone());
            if let Some(oldest) = forgotten {
                batch.delete(FAILED, oldest.to_be_bytes());
            }
            batch
        };
        persist::write(store, batch, "a dead letter of the reactor", stop).await
    }

    /// Keeps a dead letter in memory. Returns its number, its packed form, and the number of the one that left for it.
    fn keep(&self, failed: Failed) -> (u64, Bytes, Option<u64>) {
        let mut kept = self.kept.lock();
        let same = |other: &Failed| {
            (other.event.seq(), &other.entry, &other.file, &other.label)
                == (failed.event.seq(), &failed.entry, &failed.file, &failed.label)
        };
        let known = kept.failed.iter().find(|(_, other)| same(other)).map(|(number, _)| *number);
        let number = known.unwrap_or(kept.next);
        kept.next = kept.next.max(number + 1);
        let packed = Bytes::from(failed.pack());
        kept.failed.insert(number, failed);
        let mut forgotten = None;
        if kept.failed.len() > MOST
            && let Some((oldest, left)) = kept.failed.pop_first()
        {
            forgotten = Some(oldest);
            metrics::REACTIONS_FORGOTTEN.add(1);
            tracing::warn!(
                seq = left.event.seq(),
                file = left.file,
                "too many failed reactions are put aside: the oldest is forgotten"
            );
        }
        (number, packed, forgotten)
    }

    /// All that are put aside, oldest first, by number.
    pub fn all(&self) -> Vec<(u64, Failed)> {
        self.kept.lock().failed.iter().map(|(number, failed)| (*number, failed.clone())).collect()
    }

    /// Removes a dead letter: it has been done. A failed write is tried again until `stop`; if that comes first, the
    /// dead letter is there again after the next start.
    pub async fn remove(&self, number: u64, stop: &CancellationToken) {
        let is_known = self.kept.lock().failed.remove(&number).is_some();
        let Some(store) = self.store.as_ref().filter(|_| is_known) else { return };
        let batch = || {
            let mut batch = Batch::new();
            batch.delete(FAILED, number.to_be_bytes());
            batch
        };
        persist::write(store, batch, "the removal of a dead letter of the reactor", stop).await;
    }
}

#[cfg(test)]
mod tests {
    use brine_bus::store::Store;
    use brine_runtime::executors::MayBlock;

    use super::*;

    fn failed(seq: u64, label: &str) -> Failed {
        let event = Event::from_map("t/x", &map! {"n" => seq}).unwrap().stamped(seq, "now").unwrap();
        Failed::new(&event, "t/*", "/x.sls", Some(label.to_owned()), "it broke")
    }

    #[tokio::test]
    async fn dead_letters_are_kept_with_their_events_until_they_are_removed() {
        let stop = CancellationToken::new();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("brine.redb");
        let thread = MayBlock::own_thread(tokio::runtime::Handle::current());
        let open = || Aside::open(Some(Store::open(&path, 1 << 20).unwrap().0.blocking(&thread))).unwrap();
        let aside = open();
        for (seq, label) in [(7, "a"), (7, "b"), (9, "a"), (7, "a")] {
            assert!(aside.put(failed(seq, label), &stop).await);
        }
        drop(aside);
        let aside = open();
        let all = aside.all();
        let told: Vec<_> = all.iter().map(|(n, one)| (*n, one.event.seq(), one.label.clone().unwrap())).collect();
        assert_eq!(told, [(0, 7, "a".to_owned()), (1, 7, "b".to_owned()), (2, 9, "a".to_owned())]);
        assert_eq!((all[2].1.event.tag(), all[2].1.event.data().get("n")), ("t/x", Some(&9.into())));
        aside.remove(1, &stop).await;
        drop(aside);
        assert_eq!(open().all().len(), 2);
    }
}
