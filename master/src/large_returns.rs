//! Returns that exceed `max_event_size`: the job cache has them whole before their trimmed events are published.
//!
//! How much of them is kept at a time is bounded (`large_returns_size`), for one minion and for all, also after a restart.

use std::borrow::Cow;
use std::collections::BTreeMap;

use brine_bus::store::{Batch, BlockingStore, Store, StoreError, Table};
use brine_ids::{Jid, MinionId};
use brine_job::trim::{may_exceed, trim};
use brine_job::{Call, Return, oldest_kept};
use brine_returners::ReturnerError;
use brine_value::{Map, msgpack};
use parking_lot::Mutex;

use crate::Shared;
use crate::disk::Disk;
use crate::job_cache::{NOT_KEPT, store_return, without_way};
use crate::metrics;

/// By `jid/id`: the size of a large return that is kept.
const TABLE: Table = Table("large_returns");
/// The part of the whole room that one minion may take.
const SHARE: u64 = 4;
/// The most bytes that the bus adds to a return: its stamp, its number and the sender.
const STAMPED: usize = 512;

/// The room that large returns take.
pub(crate) struct LargeReturns {
    store: Store,
    limit: u64,
    /// By job and minion: sizes in bytes.
    kept: Mutex<BTreeMap<(String, String), u64>>,
}

impl LargeReturns {
    /// Opens the list of what is kept, with room for this many bytes.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn open(store: &BlockingStore, limit: u64) -> Result<Self, StoreError> {
        let pairs = store.scan(TABLE, b"", usize::MAX)?;
        let entry = |(key, size): (Vec<u8>, Vec<u8>)| {
            let (jid, id) = std::str::from_utf8(&key).ok()?.split_once('/')?;
            Some(((jid.to_owned(), id.to_owned()), u64::from_be_bytes(size.try_into().ok()?)))
        };
        let kept = pairs.into_iter().filter_map(entry).collect();
        Ok(LargeReturns { store: Store::clone(store), limit, kept: Mutex::new(kept) })
    }

    /// Takes room for a return of this many bytes, once for each job and minion; false if there is not as much.
    fn reserve(&self, jid: &Jid, id: &MinionId, size: u64) -> bool {
        let mut kept = self.kept.lock();
        let key = (jid.to_string(), id.to_string());
        if kept.contains_key(&key) {
            return true;
        }
        let all: u64 = kept.values().sum();
        let own: u64 = kept.iter().filter(|((_, of), _)| *of == key.1).map(|(_, size)| size).sum();
        if all.saturating_add(size) > self.limit || own.saturating_add(size) > self.limit / SHARE {
            return false;
        }
        let mut batch = Batch::new();
        batch.put(TABLE, format!("{jid}/{id}"), size.to_be_bytes().to_vec());
        // In the same store as the journal: it is on disk before the event of the return is.
        drop(self.store.write(batch));
        kept.insert(key, size);
        true
    }

    /// Gives up the room of returns that the job cache has removed.
    pub fn expire(&self, lifetime: std::time::Duration) {
        let Some(oldest) = oldest_kept(&jiff::Zoned::now(), lifetime.as_secs()) else { return };
        let mut batch = Batch::new();
        batch.delete_below(TABLE, oldest.as_str());
        drop(self.store.write(batch));
        let mut kept = self.kept.lock();
        *kept = kept.split_off(&(oldest.to_string(), String::new()));
    }
}

/// Stores a return in the job cache; the store has it on disk when this returns.
fn store_whole(disk: &Disk, one: &Return) -> Result<(), ReturnerError> {
    store_return(&*disk.job_cache, one)?;
    disk.job_cache.flush()
}

impl Shared {
    /// Returns a return as its event may have it: trimmed if it exceeds `max_event_size`, after the job cache has stored it
    /// whole. Nothing if it could not be stored for the moment: its sender has to try again.
    pub(crate) async fn event_of_return(&self, tag: &str, jid: &Jid, id: &MinionId, mut load: Map) -> Option<Map> {
        let limit = self.config.max_event_size.saturating_sub(tag.len() + STAMPED);
        if !may_exceed(&load, limit) {
            return Some(load);
        }
        let size = msgpack::pack_map(&load).len();
        if size <= limit {
            return Some(load);
        }
        metrics::RETURNS_TRIMMED.add(1);
        if self.config.job_cache && load.contains_key("return") && !load.contains_key(NOT_KEPT) {
            load = self.store_large(jid, id, load, size).await?;
        }
        trim(&mut load, limit);
        tracing::info!(%jid, minion = %id, size, "the event of a return exceeds max_event_size and is trimmed");
        Some(load)
    }

    /// As [`Shared::event_of_return`], for the result of a call of the master's own, which nobody sends again: what cannot
    /// be stored whole is kept trimmed. `is_kept`: whether the job cache is to have it whole.
    pub(crate) async fn event_of_call<'a>(
        &self,
        tag: &str,
        jid: &Jid,
        body: Cow<'a, Map>,
        is_kept: bool,
    ) -> Cow<'a, Map> {
        let limit = self.config.max_event_size.saturating_sub(tag.len() + STAMPED);
        if !may_exceed(&body, limit) {
            return body;
        }
        let whole = msgpack::pack_map(&body);
        let size = whole.len();
        if size <= limit {
            return body;
        }
        metrics::RETURNS_TRIMMED.add(1);
        let mut trimmed = body.into_owned();
        if self.config.job_cache && is_kept {
            let (master, job) = (self.id.clone(), jid.clone());
            let stored = self.disk.run(move |disk| {
                if !disk.large_returns.reserve(&job, &master, size as u64) {
                    return Err("there is no room for it (large_returns_size)".to_owned());
                }
                let call = Call::new(master, job, whole.into());
                disk.job_cache.save_calls(&[call]).map_err(|error| error.to_string())
            });
            match stored.await.unwrap_or_else(|error| Err(error.to_string())) {
                Ok(()) => _ = trimmed.insert(NOT_KEPT.into(), true.into()),
                Err(error) => {
                    brine_job::metrics::RETURNS_LOST.add(1);
                    tracing::warn!(%jid, size, error, "storing a large result failed: it is kept trimmed");
                }
            }
        }
        trim(&mut trimmed, limit);
        Cow::Owned(trimmed)
    }

    /// Stores a return whole, if there is room for it, and marks it as stored.
    async fn store_large(&self, jid: &Jid, id: &MinionId, load: Map, size: usize) -> Option<Map> {
        let (jid, id) = (jid.clone(), id.clone());
        let (job, minion) = (jid.clone(), id.clone());
        let stored = self.disk.run(move |disk| {
            if !disk.large_returns.reserve(&job, &minion, size as u64) {
                return (load, Ok(false));
            }
            let message: Map = ["cmd", "ts"].iter().filter_map(|name| load.get_key_value(*name)).map(owned).collect();
            let Ok(one) = Return::from_map(without_way(load)) else { return (message, Ok(false)) };
            let stored = store_whole(disk, &one);
            let mut load = one.into_map();
            load.extend(message);
            (load, stored.map(|()| true))
        });
        let (mut load, stored) = match stored.await {
            Ok(stored) => stored,
            Err(error) => {
                tracing::error!(%jid, minion = %id, %error, "storing a large return failed: the minion tries again");
                return None;
            }
        };
        match stored {
            Ok(true) => {
                load.insert(NOT_KEPT.into(), true.into());
            }
            Ok(false) => {
                brine_job::metrics::RETURNS_LOST.add(1);
                tracing::warn!(%jid, minion = %id, size, "a large return is kept trimmed: there is no room for it (large_returns_size)");
            }
            Err(error @ ReturnerError::Store(_)) => {
                tracing::error!(%jid, minion = %id, %error, "storing a large return failed: the minion tries again");
                return None;
            }
            Err(error) => {
                brine_job::metrics::RETURNS_LOST.add(1);
                tracing::error!(%jid, minion = %id, size, %error, "storing a large return failed: it is kept trimmed");
            }
        }
        Some(load)
    }
}

fn owned((name, value): (&brine_value::Value, &brine_value::Value)) -> (brine_value::Value, brine_value::Value) {
    (name.clone(), value.clone())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use brine_runtime::executors::MayBlock;
    use tokio::runtime::Handle;

    use super::*;

    fn open(folder: &Path) -> LargeReturns {
        let (store, _) = Store::open(&folder.join("brine.redb"), 1 << 20).unwrap();
        let store = store.blocking(&MayBlock::own_thread(Handle::current()));
        LargeReturns::open(&store, 1000).unwrap()
    }

    fn id(name: &str) -> MinionId {
        name.parse().unwrap()
    }

    #[tokio::test]
    async fn one_minion_takes_a_quarter_and_all_together_no_more_than_there_is() {
        let folder = tempfile::tempdir().unwrap();
        let large = open(folder.path());
        let jids: Vec<Jid> = (0..5).map(|_| Jid::new()).collect();
        assert!(large.reserve(&jids[0], &id("a"), 200));
        assert!(large.reserve(&jids[0], &id("a"), 900), "a return that is sent again takes no more room");
        assert!(!large.reserve(&jids[1], &id("a"), 51));
        assert!(large.reserve(&jids[1], &id("a"), 50));
        for name in ["b", "c", "d"] {
            assert!(large.reserve(&jids[2], &id(name), 240), "{name}");
        }
        assert!(!large.reserve(&jids[3], &id("e"), 40));
        assert!(large.reserve(&jids[3], &id("e"), 30));
    }

    #[tokio::test]
    async fn the_room_is_known_after_a_restart_and_given_up_with_old_jobs() {
        let folder = tempfile::tempdir().unwrap();
        let old: Jid = "20200101000000000000".parse().unwrap();
        let large = open(folder.path());
        assert!(large.reserve(&old, &id("a"), 250));
        drop(large);
        let large = open(folder.path());
        assert!(!large.reserve(&Jid::new(), &id("a"), 1));
        large.expire(Duration::ZERO);
        assert!(!large.reserve(&Jid::new(), &id("a"), 1), "without a lifetime nothing expires");
        large.expire(Duration::from_secs(3600));
        assert!(large.reserve(&Jid::new(), &id("a"), 250));
        drop(large);
        let reopened = open(folder.path());
        assert_eq!(reopened.kept.lock().len(), 1);
    }
}
