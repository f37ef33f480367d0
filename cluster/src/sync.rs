//! Synchronises the tables of all members: sends local changes, and applies those of other members.
//!
//! For each key the member remembers the last revision that it has seen in the cluster, and the digest of that value. A
//! local value with another digest was changed here. It is sent on condition that the revision is still the newest.
//! Where both sides were changed, the cluster's value wins unless the table prefers the local one. A value that this
//! member has sent before it lost the servers' answer is no change of the other side.
//!
//! Each value names the revision that it replaces. One that replaces an older revision than the newest one seen here does
//! was stored again by somebody without the secret. It is refused, as are values that cannot be decrypted or were removed
//! without the secret, and the members that know the value write it again. Two values may replace the same revision:
//! servers before 2.9.21, and a new leader of others, can accept both. Then the last one counts.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use brine_bus::store::{Batch, BlockingStore, Observer, StoreError, Table as StoreName, Touched};
use brine_runtime::backoff::Backoff;
use brine_runtime::executors::Executor;
use futures::StreamExt;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::error::{LinkError, nats};
use crate::known::Known;
use crate::link::{Entry, Link, name_of, token};
use crate::secrets::PUBLISH_KEYS;
use crate::stored::{Content, REMOVED, content, stored};
use crate::tables::{Request, Table, TableError, digest};
use crate::{Local, metrics, secrets};

const KNOWN: StoreName = StoreName("cluster_known");
/// The interval at which the files of keys are compared: other programs may change them.
const FILES_INTERVAL: Duration = Duration::from_secs(10);
/// The interval at which the server is asked for its newest revision, in case the watch has missed values.
const STALL_INTERVAL: Duration = Duration::from_secs(3);
/// The interval at which values are tried again that could not be read or stored here.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// The number of values that fail again before the others wait for the next interval.
const MAX_FAILURES: usize = 8;
/// The key of the row with the creation time of the bucket in which the revisions were seen.
const BUCKET: &[u8] = b"bucket";

/// The table and key of a value.
type Name = (usize, Vec<u8>);

/// The task that synchronises the tables.
pub(crate) struct Sync {
    pub link: Arc<Link>,
    pub local: Arc<dyn Local>,
    pub store: BlockingStore,
    pub disk: Executor,
    /// The first one is that of the minions' keys, which are files.
    pub tables: Arc<Vec<Arc<dyn Table>>>,
    records: HashMap<Name, Known>,
    /// The values that this member could not read or store: without a retry, a minion that was rejected elsewhere would
    /// stay accepted here after the disk was full for a moment.
    missed: BTreeSet<Name>,
    /// The first one of the missed values that is tried next.
    retry_from: Name,
    /// The tables whose keys this member could not list.
    unlisted: BTreeSet<usize>,
    /// The last revision of the publish keys, and the one that it replaced.
    publish_keys: (u64, u64),
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
        let mut records = HashMap::new();
        for (key, value) in store.scan_prefix(KNOWN, b"")? {
            let Some(at) = key.iter().position(|byte| *byte == 0) else { continue };
            let table = tables.iter().position(|table| table.name().as_bytes() == &key[..at]);
            if let Some((table, known_here)) = table.zip(Known::unpack(&value)) {
                records.insert((table, key[at + 1..].to_vec()), known_here);
            }
        }
        let (missed, unlisted) = (BTreeSet::new(), BTreeSet::new());
        let (tables, publish_keys, retry_from) = (Arc::new(tables), (0, 0), Name::default());
        Ok(Sync { link, local, store, disk, tables, records, missed, retry_from, unlisted, publish_keys })
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
        self.check_bucket(link.values_created().await?).await;
        let mut remote = link.watch().await?;
        let mut files = tokio::time::interval(FILES_INTERVAL);
        // The cluster's values are applied first: entries removed there must not be sent again.
        let mut behind = Some(link.last_revision().await?).filter(|last| *last > 0);
        if behind.is_none() {
            self.push_all().await?;
        }
        let mut rotated = self.local.publish_keys_changed();
        let mut stall = tokio::time::interval(STALL_INTERVAL);
        let mut again = tokio::time::interval(RETRY_INTERVAL);
        again.set_missed_tick_behavior(MissedTickBehavior::Delay);
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
                        Err(error) => self.refuse(&key, revision, error).await?,
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
                _ = again.tick(), if behind.is_none() && self.has_failed() => self.retry().await?,
                _ = files.tick(), if behind.is_none() => self.push_table(0).await?,
            }
        }
    }

    async fn answer(&mut self, request: Request) -> Result<(), LinkError> {
        match request {
            Request::PushFiles(reply) => {
                self.push_table(0).await?;
                _ = reply.send(());
            }
            Request::PullFile(id, reply) => {
                let key = self.key_of(&(0, id.into_bytes()));
                match self.link.get(&key).await {
                    Ok(Some(entry)) => self.apply(&key, entry).await?,
                    Ok(None) => {}
                    // The watch reports it.
                    Err(error) if error.is_forgery() => {}
                    Err(error) => return Err(error),
                }
                _ = reply.send(());
            }
        }
        Ok(())
    }

    fn has_failed(&self) -> bool {
        !self.missed.is_empty() || !self.unlisted.is_empty()
    }

    /// Applies or sends the missed values. A lost connection needs no care here: the next session compares all values.
    async fn retry(&mut self) -> Result<(), LinkError> {
        for table in std::mem::take(&mut self.unlisted) {
            self.push_table(table).await?;
        }
        let mut names = std::mem::take(&mut self.missed);
        let first = names.split_off(&self.retry_from);
        let mut names = first.into_iter().chain(names);
        while let Some(name) = names.next() {
            if self.missed.len() >= MAX_FAILURES {
                // The disk still fails: the others wait for their turn, and the log for the disk.
                self.retry_from.clone_from(&name);
                self.missed.extend([name].into_iter().chain(names));
                break;
            }
            let key = self.key_of(&name);
            match self.link.get(&key).await {
                Ok(Some(entry)) => self.apply(&key, entry).await?,
                Ok(None) => {}
                // The watch has reported it.
                Err(error) if error.is_forgery() => continue,
                Err(error) => return Err(error),
            }
            self.push(name).await?;
        }
        Ok(())
    }

    async fn push_touched(&mut self, touched: Touched) -> Result<(), LinkError> {
        for (table, key) in touched.keys {
            if let Some(at) = self.tables.iter().position(|candidate| candidate.name() == table) {
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
                tracing::error!(table = self.tables[table].name(), %error, "reading a table of the cluster failed: retrying");
                metrics::VALUES_MISSED.add(1);
                self.unlisted.insert(table);
                return Ok(());
            }
        };
        let gone = self.records.iter().filter(|((of, _), record)| *of == table && record.digest.is_some());
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
        let record = self.records.get(&name).cloned().unwrap_or_default();
        if digest(local.as_deref()) == record.digest {
            return Ok(());
        }
        if self.send(&name, local.as_deref(), record.revision).await? {
            return Ok(());
        }
        // The value was changed elsewhere, too.
        let key = self.key_of(&name);
        match self.link.get(&key).await {
            Ok(Some(entry)) => self.apply(&key, entry).await,
            Ok(None) => self.send(&name, local.as_deref(), 0).await.map(drop),
            // The cluster's value was written without the secret: it is overwritten.
            Err(error) if error.is_forgery() => {
                let revision = self.link.revision(&key).await?;
                self.send(&name, local.as_deref(), revision).await.map(drop)
            }
            Err(error) => Err(error),
        }
    }

    /// Sends a value if the cluster still has this revision. Returns whether it did.
    async fn send(&mut self, name: &Name, value: Option<&[u8]>, revision: u64) -> Result<bool, LinkError> {
        let key = self.key_of(name);
        let stored = match value {
            Some(value) => stored(&self.link, &key, value).await?,
            None if revision == 0 => {
                self.remember(name.clone(), Known::default()).await;
                return Ok(true);
            }
            None => vec![REMOVED],
        };
        let after = revision;
        let record = self.records.get(name).cloned().unwrap_or_default();
        match self.link.update(&key, &stored, after).await {
            Ok(Some(revision)) => {
                self.remember(name.clone(), record.replaced_by(revision, after, digest(value))).await;
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(error) => {
                self.remember(name.clone(), record.with_unanswered(after, digest(value))).await;
                Err(error)
            }
        }
    }

    /// Applies a value of the cluster.
    async fn apply(&mut self, key: &str, entry: Entry) -> Result<(), LinkError> {
        if key == PUBLISH_KEYS {
            let (last, known_after) = self.publish_keys;
            if entry.revision <= last {
                return Ok(());
            }
            let Some(after) = entry.after.filter(|after| *after >= known_after) else {
                return self.refuse(key, entry.revision, LinkError::Replayed(key.to_owned())).await;
            };
            self.publish_keys = (entry.revision, after);
            secrets::adopt_publish_keys(&*self.local, &entry.value).await;
            return Ok(());
        }
        let Some(name) = self.name_of(key) else { return Ok(()) };
        let record = self.records.get(&name).cloned().unwrap_or_default();
        if entry.revision <= record.revision {
            return Ok(());
        }
        let Some(after) = entry.after.filter(|after| *after >= record.after) else {
            return self.refuse(key, entry.revision, LinkError::Replayed(key.to_owned())).await;
        };
        let value = match content(&self.link, key, &entry.value).await? {
            Content::Value(value) => Some(value),
            Content::Removed => None,
            Content::Unknown => return Ok(()),
            // If a newer value is replacing the parts right now, the watch delivers it next.
            Content::Damaged if self.link.revision(key).await? != entry.revision => return Ok(()),
            Content::Damaged => return self.refuse(key, entry.revision, LinkError::Damaged(key.to_owned())).await,
        };
        let Some(local) = self.read(&name).await else { return Ok(()) };
        let (of_local, of_cluster) = (digest(local.as_deref()), digest(value.as_deref()));
        let was_changed = of_local != record.digest;
        let is_own = record.is_own(after, &of_cluster);
        let record = record.replaced_by(entry.revision, after, of_cluster.clone());
        if of_local != of_cluster {
            let table = Arc::clone(&self.tables[name.0]);
            if is_own || was_changed && table.prefers(local.as_deref(), value.as_deref()) {
                self.remember(name.clone(), record).await;
                if !self.send(&name, local.as_deref(), entry.revision).await? {
                    tracing::debug!(key, "a value was changed again elsewhere");
                }
                return Ok(());
            }
            let (id, written) = (name.1.clone(), value);
            let set = self.disk.run(move |thread| table.set(thread, &id, written.as_deref())).await.map_err(nats)?;
            match set {
                Ok(()) => {}
                Err(TableError::Invalid(why)) => {
                    metrics::VALUES_REFUSED.add(1);
                    tracing::error!(key, why, "a value of the cluster is refused");
                    return Ok(());
                }
                Err(TableError::Unavailable(why)) => {
                    metrics::VALUES_MISSED.add(1);
                    tracing::error!(key, why, "storing a value of the cluster failed: retrying");
                    self.missed.insert(name);
                    return Ok(());
                }
            }
        }
        self.remember(name, record).await;
        Ok(())
    }

    /// Refuses a value that was written or removed without the secret. It is replaced by the local one, if this member
    /// has synchronised it before.
    async fn refuse(&mut self, key: &str, revision: u64, error: LinkError) -> Result<(), LinkError> {
        metrics::VALUES_REFUSED.add(1);
        tracing::error!(%error, "value of the cluster refused");
        if key == PUBLISH_KEYS {
            return secrets::share_publish_keys(&self.link, &*self.local).await;
        }
        let known_as_older =
            |name: &Name| self.records.get(name).is_some_and(|record| (1..revision).contains(&record.revision));
        let Some(name) = self.name_of(key).filter(known_as_older) else { return Ok(()) };
        let Some(local) = self.read(&name).await else { return Ok(()) };
        // Otherwise another member was faster; the watch delivers its value.
        _ = self.send(&name, local.as_deref(), revision).await?;
        Ok(())
    }

    /// Forgets the revisions of another bucket: the servers have lost it, and number the values of the new one anew.
    async fn check_bucket(&mut self, created: i128) {
        let created = created.to_be_bytes().to_vec();
        let store = self.store.clone();
        let stored = self.disk.run(move |_| store.get(KNOWN, BUCKET)).await;
        let Ok(Ok(stored)) = stored else { return };
        if stored.as_ref() == Some(&created) {
            return;
        }
        if stored.is_some() {
            tracing::warn!("the servers have lost the values of the cluster: those of this master are sent again");
            self.publish_keys = (0, 0);
            for name in self.records.keys().cloned().collect::<Vec<_>>() {
                self.remember(name, Known::default()).await;
            }
        }
        let mut batch = Batch::new();
        batch.put(KNOWN, BUCKET, created);
        // If a crash loses this row, the revisions are forgotten again.
        drop(self.store.write_when_room(batch).await);
    }

    /// Returns the local value. The outer `Option` is `None` if it cannot be read, which is logged, and tried again
    /// unless the key is invalid.
    async fn read(&mut self, name: &Name) -> Option<Option<Vec<u8>>> {
        let (table, key) = (Arc::clone(&self.tables[name.0]), name.1.clone());
        let read = self.disk.run(move |thread| table.get(thread, &key)).await;
        let error = match read.map_err(|error| TableError::Unavailable(error.to_string())).flatten() {
            Ok(value) => return Some(value),
            Err(error) => error,
        };
        tracing::error!(table = self.tables[name.0].name(), %error, "reading a value for the cluster failed");
        if matches!(error, TableError::Unavailable(_)) {
            metrics::VALUES_MISSED.add(1);
            self.missed.insert(name.clone());
        }
        None
    }

    async fn remember(&mut self, name: Name, record: Known) {
        let mut batch = Batch::new();
        let row = [self.tables[name.0].name().as_bytes(), &[0], &name.1].concat();
        batch.put(KNOWN, row, record.pack());
        let what = "the state of a shared value: it is determined again after the next start";
        self.store.write_unchecked_when_room(batch, what).await;
        self.records.insert(name, record);
    }

    fn key_of(&self, (table, key): &Name) -> String {
        format!("{}.{}", self.tables[*table].name(), token(key))
    }

    fn name_of(&self, key: &str) -> Option<Name> {
        let (table, key) = key.split_once('.')?;
        let table = self.tables.iter().position(|candidate| candidate.name() == table)?;
        Some((table, name_of(key)?))
    }
}
