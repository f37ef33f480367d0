//! Synchronises the tables of all members: sends local changes, and applies those of other members.
//!
//! For each key the member remembers the last revision that it has seen in the cluster, and the digest of that value. A
//! local value with another digest was changed here. It is sent on condition that the revision is still the newest.
//! Where both sides were changed, the cluster's value wins unless the table prefers the local one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::kv::UpdateErrorKind;
use brine_bus::store::{Batch, BlockingStore, Observer, StoreError, Table as StoreName, Touched};
use brine_runtime::backoff::Backoff;
use brine_runtime::executors::Executor;
use brine_value::{FromValue, Value, map, msgpack};
use futures::StreamExt;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::link::{Entry, Link, LinkError, name_of, nats, token};
use crate::message::MAX_PAYLOAD;
use crate::secrets::PUBLISH_KEYS;
use crate::tables::{Request, Table, ValueDigest, digest};
use crate::{Local, metrics, secrets};

const KNOWN: StoreName = StoreName("cluster_known");
/// The interval at which the files of keys are compared: other programs may change them.
const FILES_INTERVAL: Duration = Duration::from_secs(10);
/// The interval at which the server is asked for its newest revision, in case the watch has missed values.
const STALL_INTERVAL: Duration = Duration::from_secs(3);
/// The first byte of a stored value: the value itself, or the number of its parts.
const WHOLE: u8 = 0;
const IN_PARTS: u8 = 1;

/// The table and key of a value.
type Name = (usize, Vec<u8>);

/// The last synchronised revision of a value.
#[derive(Debug, Clone, Default, PartialEq)]
struct Known {
    revision: u64,
    digest: ValueDigest,
}

/// The task that synchronises the tables.
pub(crate) struct Sync {
    pub link: Arc<Link>,
    pub local: Arc<dyn Local>,
    pub store: BlockingStore,
    pub disk: Executor,
    /// The first one is that of the minions' keys, which are files.
    pub tables: Arc<Vec<Arc<dyn Table>>>,
    known: HashMap<Name, Known>,
}

impl Sync {
    /// Reads the last synchronised revisions from the store.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn open(
        link: Arc<Link>,
        local: Arc<dyn Local>,
        store: BlockingStore,
        disk: Executor,
        tables: Vec<Arc<dyn Table>>,
    ) -> Result<Self, StoreError> {
        let mut known = HashMap::new();
        for (key, value) in store.scan_prefix(KNOWN, b"")? {
            let Some(at) = key.iter().position(|byte| *byte == 0) else { continue };
            let table = tables.iter().position(|table| table.name().as_bytes() == &key[..at]);
            if let Some((table, known_here)) = table.zip(unpack_known(&value)) {
                known.insert((table, key[at + 1..].to_vec()), known_here);
            }
        }
        Ok(Sync { link, local, store, disk, tables: Arc::new(tables), known })
    }

    /// Synchronises the tables until `shutdown`.
    pub async fn run(
        mut self,
        mut requests: mpsc::Receiver<Request>,
        mut observer: Observer,
        shutdown: CancellationToken,
    ) {
        let (mut backoff, mut was_away) = (Backoff::default(), false);
        loop {
            let result = tokio::select! {
                result = self.session(&mut requests, &mut observer, &mut backoff) => result,
                () = shutdown.cancelled() => return,
            };
            if let Err(error) = result {
                if !was_away {
                    tracing::warn!(%error, "synchronising the tables of the cluster failed: retrying");
                }
                was_away = true;
                self.link.forget_resources();
            }
            // During an outage requests are dropped, which wakes those who wait.
            while requests.try_recv().is_ok() {}
            tokio::select! {
                () = backoff.wait() => {}
                () = shutdown.cancelled() => return,
            }
        }
    }

    /// Synchronises the tables until the connection is lost.
    async fn session(
        &mut self,
        requests: &mut mpsc::Receiver<Request>,
        observer: &mut Observer,
        backoff: &mut Backoff,
    ) -> Result<(), LinkError> {
        let link = Arc::clone(&self.link);
        let mut remote = link.watch().await?;
        let mut files = tokio::time::interval(FILES_INTERVAL);
        // The cluster's values are applied first: entries removed there must not be sent again.
        let mut behind = Some(link.last_revision().await?).filter(|last| *last > 0);
        if behind.is_none() {
            self.push_all().await?;
        }
        let mut rotated = self.local.publish_keys_changed();
        let mut stall = tokio::time::interval(STALL_INTERVAL);
        let (mut seen, mut is_behind) = (0, false);
        loop {
            tokio::select! {
                biased;
                entry = remote.next() => {
                    let (key, revision, entry) = entry.ok_or_else(|| nats("the watch has ended"))??;
                    backoff.reset();
                    (seen, is_behind) = (revision, false);
                    match entry {
                        Ok(entry) => self.apply(&key, entry).await?,
                        // Written without the secret: it is skipped and does not block other values.
                        Err(error) => {
                            metrics::VALUES_REFUSED.add(1);
                            tracing::error!(%error, "value of the cluster refused");
                        }
                    }
                    if behind.is_some_and(|last| revision >= last) {
                        behind = None;
                        self.push_all().await?;
                    }
                }
                Some(request) = requests.recv() => self.answer(request).await?,
                touched = observer.changed() => self.push_touched(touched).await?,
                _ = rotated.changed() => secrets::share_publish_keys(&link, &*self.local).await?,
                _ = stall.tick() => {
                    // The watch of a failed server stays silent for a long time.
                    let was_behind = std::mem::replace(&mut is_behind, link.last_revision().await? > seen);
                    if was_behind && is_behind {
                        return Err(nats("the server sends nothing, though it has values"));
                    }
                }
                _ = files.tick(), if behind.is_none() => self.push_table(0).await?,
            }
        }
    }

    async fn answer(&mut self, request: Request) -> Result<(), LinkError> {
        match request {
            Request::PushFiles(done) => {
                self.push_table(0).await?;
                _ = done.send(());
            }
            Request::PullFile(id, done) => {
                let key = self.key_of(&(0, id.into_bytes()));
                match self.link.get(&key).await {
                    Ok(Some(entry)) => self.apply(&key, entry).await?,
                    // The watch reports a value that cannot be decrypted.
                    Ok(None) | Err(LinkError::Undecryptable(_)) => {}
                    Err(error) => return Err(error),
                }
                _ = done.send(());
            }
        }
        Ok(())
    }

    async fn push_touched(&mut self, touched: Touched) -> Result<(), LinkError> {
        for (table, key) in touched.keys {
            if let Some(at) = self.tables.iter().position(|known| known.name() == table) {
                self.push((at, key)).await?;
            }
        }
        if touched.more {
            for table in 1..self.tables.len() {
                self.push_table(table).await?;
            }
        }
        Ok(())
    }

    async fn push_all(&mut self) -> Result<(), LinkError> {
        for table in 0..self.tables.len() {
            self.push_table(table).await?;
        }
        Ok(())
    }

    /// Sends the changed values of a table.
    async fn push_table(&mut self, table: usize) -> Result<(), LinkError> {
        let of = Arc::clone(&self.tables[table]);
        let keys = self.disk.run(move |thread| of.keys(thread)).await.map_err(nats)?;
        let mut keys = match keys {
            Ok(keys) => keys,
            Err(error) => {
                tracing::error!(table = self.tables[table].name(), error, "reading a table of the cluster failed");
                return Ok(());
            }
        };
        let gone = self.known.iter().filter(|((of, _), known)| *of == table && known.digest.is_some());
        keys.extend(gone.map(|((_, key), _)| key.clone()));
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            self.push((table, key)).await?;
        }
        Ok(())
    }

    /// Sends a value if it was changed here.
    async fn push(&mut self, name: Name) -> Result<(), LinkError> {
        let Some(local) = self.read(&name).await else { return Ok(()) };
        let known = self.known.get(&name).cloned().unwrap_or_default();
        if digest(local.as_deref()) == known.digest {
            return Ok(());
        }
        if self.send(&name, local.as_deref(), known.revision).await? {
            return Ok(());
        }
        // The value was changed elsewhere, too.
        let key = self.key_of(&name);
        match self.link.get(&key).await {
            Ok(Some(entry)) => self.apply(&key, entry).await,
            Ok(None) => self.send(&name, local.as_deref(), 0).await.map(drop),
            Err(LinkError::Undecryptable(_)) => {
                // The cluster's value was written without the secret: it is overwritten.
                let Some(local) = local else { return self.link.delete(&key).await };
                let stored = self.stored(&key, &local).await?;
                self.link.put(&key, &stored).await
            }
            Err(error) => Err(error),
        }
    }

    /// Sends a value if the cluster still has this revision. Returns whether it did.
    async fn send(&mut self, name: &Name, value: Option<&[u8]>, revision: u64) -> Result<bool, LinkError> {
        let key = self.key_of(name);
        let resources = self.link.resources().await?;
        let revision = match value {
            Some(value) => {
                let stored = self.stored(&key, value).await?;
                let sealed = self.link.encrypt(&key, &stored);
                match resources.values.update(&key, sealed, revision).await {
                    Ok(revision) => revision,
                    Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => return Ok(false),
                    Err(error) => return Err(nats(error)),
                }
            }
            None if revision == 0 => 0,
            None => match resources.values.delete_expect_revision(&key, Some(revision)).await {
                // The watch brings the revision of the removal.
                Ok(()) => revision,
                Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => return Ok(false),
                Err(error) => return Err(nats(error)),
            },
        };
        self.remember(name.clone(), Known { revision, digest: digest(value) }).await;
        Ok(true)
    }

    /// Applies a value of the cluster.
    async fn apply(&mut self, key: &str, entry: Entry) -> Result<(), LinkError> {
        if key == PUBLISH_KEYS {
            secrets::adopt_publish_keys(&*self.local, entry.value.as_deref()).await;
            return Ok(());
        }
        let Some(name) = self.name_of(key) else { return Ok(()) };
        let known = self.known.get(&name).cloned().unwrap_or_default();
        if entry.revision <= known.revision {
            return Ok(());
        }
        let value = match entry.value {
            None => None,
            Some(stored) => match self.whole(key, &stored).await? {
                Some(value) => Some(value),
                // A newer value is replacing the parts right now; the watch delivers it next.
                None => return Ok(()),
            },
        };
        let Some(local) = self.read(&name).await else { return Ok(()) };
        let (of_local, of_cluster) = (digest(local.as_deref()), digest(value.as_deref()));
        if of_local != of_cluster {
            let table = Arc::clone(&self.tables[name.0]);
            if of_local != known.digest && table.prefers(local.as_deref(), value.as_deref()) {
                if !self.send(&name, local.as_deref(), entry.revision).await? {
                    tracing::debug!(key, "a value was changed again elsewhere");
                }
                return Ok(());
            }
            let (id, written) = (name.1.clone(), value);
            let set = self.disk.run(move |thread| table.set(thread, &id, written.as_deref())).await.map_err(nats)?;
            if let Err(error) = set {
                metrics::VALUES_REFUSED.add(1);
                tracing::error!(key, error, "storing a value of the cluster failed");
                return Ok(());
            }
        }
        self.remember(name, Known { revision: entry.revision, digest: of_cluster }).await;
        Ok(())
    }

    /// Returns the stored form of a value; the parts of a large one are stored first.
    async fn stored(&self, key: &str, value: &[u8]) -> Result<Vec<u8>, LinkError> {
        if value.len() <= MAX_PAYLOAD {
            return Ok([&[WHOLE], value].concat());
        }
        let parts = value.chunks(MAX_PAYLOAD);
        let count = parts.len() as u64;
        for (number, part) in parts.enumerate() {
            self.link.put(&part_key(key, number as u64), part).await?;
        }
        let form = map! {"parts" => count, "digest" => Value::Bytes(digest(Some(value)).unwrap_or_default())};
        Ok([&[IN_PARTS], &msgpack::pack_map(&form)[..]].concat())
    }

    /// Returns a value from its stored form; `None` if its parts do not belong together.
    async fn whole(&self, key: &str, stored: &[u8]) -> Result<Option<Vec<u8>>, LinkError> {
        match stored.split_first() {
            Some((&WHOLE, value)) => Ok(Some(value.to_vec())),
            Some((&IN_PARTS, form)) => {
                let form = msgpack::unpack_map(form).unwrap_or_default();
                let count = form.get("parts").and_then(u64::from_value).unwrap_or_default().min(1024);
                let mut whole = Vec::new();
                for number in 0..count {
                    let part = self.link.get(&part_key(key, number)).await?.and_then(|entry| entry.value);
                    whole.extend(part.unwrap_or_default());
                }
                let expected = form.get("digest").and_then(Value::as_bytes).map(<[u8]>::to_vec);
                Ok((digest(Some(&whole)) == expected).then_some(whole))
            }
            _ => {
                metrics::VALUES_REFUSED.add(1);
                tracing::error!(key, "a value of the cluster has an unknown format: is another member newer?");
                Ok(None)
            }
        }
    }

    /// Returns the local value. The outer `Option` is `None` if it cannot be read, which is logged.
    async fn read(&self, name: &Name) -> Option<Option<Vec<u8>>> {
        let (table, key) = (Arc::clone(&self.tables[name.0]), name.1.clone());
        match self.disk.run(move |thread| table.get(thread, &key)).await {
            Ok(Ok(value)) => Some(value),
            Ok(Err(error)) => {
                tracing::error!(table = self.tables[name.0].name(), error, "reading a table of the cluster failed");
                None
            }
            Err(error) => {
                tracing::error!(%error, "reading a table of the cluster failed");
                None
            }
        }
    }

    async fn remember(&mut self, name: Name, known: Known) {
        let mut batch = Batch::new();
        batch.put(KNOWN, known_key(self.tables[name.0].name(), &name.1), pack_known(&known));
        // If a crash loses this row, it is determined again.
        drop(self.store.write_when_room(batch).await);
        self.known.insert(name, known);
    }

    fn key_of(&self, (table, key): &Name) -> String {
        format!("{}.{}", self.tables[*table].name(), token(key))
    }

    fn name_of(&self, key: &str) -> Option<Name> {
        let (table, key) = key.split_once('.')?;
        let table = self.tables.iter().position(|known| known.name() == table)?;
        Some((table, name_of(key)?))
    }
}

fn part_key(key: &str, number: u64) -> String {
    format!("parts.{number}.{key}")
}

fn known_key(table: &str, key: &[u8]) -> Vec<u8> {
    [table.as_bytes(), &[0], key].concat()
}

fn pack_known(known: &Known) -> Vec<u8> {
    [&known.revision.to_be_bytes()[..], known.digest.as_deref().unwrap_or_default()].concat()
}

fn unpack_known(packed: &[u8]) -> Option<Known> {
    let (revision, digest) = packed.split_at_checked(8)?;
    let digest = (!digest.is_empty()).then(|| digest.to_vec());
    Some(Known { revision: u64::from_be_bytes(revision.try_into().ok()?), digest })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_revisions_round_trip() {
        for known in [Known::default(), Known { revision: 7, digest: digest(Some(b"x")) }] {
            assert_eq!(unpack_known(&pack_known(&known)), Some(known));
        }
        assert_eq!(unpack_known(b"short"), None);
    }
}
