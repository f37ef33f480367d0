//! Reactions that were put aside because they failed, each with its event, until they are run again.

use std::collections::BTreeMap;

use brine_core::event::{Event, stamp};
use brine_core::store::{Batch, Store, StoreError, Table};
use brine_core::value::{FromValue, msgpack};
use brine_core::{Map, Value, map, metrics};
use bytes::Bytes;
use parking_lot::Mutex;

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
    store: Option<Store>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    failed: BTreeMap<u64, Failed>,
    next: u64,
}

impl Aside {
    /// Reads what is kept.
    pub fn open(store: Option<Store>) -> Result<Self, StoreError> {
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

    /// Puts a reaction aside. One that is there already, from before a restart, is replaced.
    pub fn put(&self, failed: Failed) {
        let mut batch = Batch::new();
        let mut kept = self.kept.lock();
        let same = |other: &Failed| {
            (other.event.seq(), &other.entry, &other.file, &other.label)
                == (failed.event.seq(), &failed.entry, &failed.file, &failed.label)
        };
        let known = kept.failed.iter().find(|(_, other)| same(other)).map(|(number, _)| *number);
        let number = known.unwrap_or(kept.next);
        kept.next = kept.next.max(number + 1);
        batch.put(FAILED, number.to_be_bytes(), failed.pack());
        kept.failed.insert(number, failed);
        if kept.failed.len() > MOST
            && let Some((oldest, left)) = kept.failed.pop_first()
        {
            batch.delete(FAILED, oldest.to_be_bytes());
            metrics::REACTIONS_FORGOTTEN.add(1);
            tracing::warn!(
                seq = left.event.seq(),
                file = left.file,
                "too many failed reactions are put aside: the oldest is forgotten"
            );
        }
        drop(kept);
        self.write(batch);
    }

    /// All that are put aside, oldest first, by number.
    pub fn all(&self) -> Vec<(u64, Failed)> {
        self.kept.lock().failed.iter().map(|(number, failed)| (*number, failed.clone())).collect()
    }

    /// The one of this event, entry, file and reaction.
    pub fn find(&self, seq: u64, entry: &str, file: &str, label: &str) -> Option<Failed> {
        let kept = self.kept.lock();
        let found = kept.failed.values().find(|failed| {
            (failed.event.seq(), failed.entry.as_str(), failed.file.as_str(), failed.label.as_deref())
                == (seq, entry, file, Some(label))
        });
        found.cloned()
    }

    /// Takes one away: it has been done, or is put aside again if it fails.
    pub fn remove(&self, number: u64) {
        if self.kept.lock().failed.remove(&number).is_some() {
            let mut batch = Batch::new();
            batch.delete(FAILED, number.to_be_bytes());
            self.write(batch);
        }
    }

    fn write(&self, batch: Batch) {
        if let Some(store) = &self.store {
            // The store logs what it cannot write, and what is in memory is still told.
            drop(store.write(batch));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(seq: u64, label: &str) -> Failed {
        let event = Event::from_map("t/x", &map! {"n" => seq}).unwrap().stamped(seq, "now").unwrap();
        Failed::new(&event, "t/*", "/x.sls", Some(label.to_owned()), "it broke")
    }

    #[test]
    fn what_failed_is_kept_with_its_event_until_it_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("brine.redb");
        let open = || Aside::open(Some(Store::open(&path, 1 << 20).unwrap().0)).unwrap();
        let aside = open();
        for (seq, label) in [(7, "a"), (7, "b"), (9, "a"), (7, "a")] {
            aside.put(failed(seq, label));
        }
        drop(aside);
        let aside = open();
        let all = aside.all();
        let told: Vec<_> = all.iter().map(|(n, one)| (*n, one.event.seq(), one.label.clone().unwrap())).collect();
        assert_eq!(told, [(0, 7, "a".to_owned()), (1, 7, "b".to_owned()), (2, 9, "a".to_owned())]);
        assert_eq!((all[2].1.event.tag(), all[2].1.event.data().get("n")), ("t/x", Some(&9.into())));
        aside.remove(1);
        drop(aside);
        assert_eq!(open().all().len(), 2);
    }
}
