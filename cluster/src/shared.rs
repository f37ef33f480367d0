//! What members hand over to each other: the state of work, which one member owns and another one goes on with.
//!
//! A value is replaced or removed only as long as it has the revision that its writer knows, so a former owner that comes
//! back is refused. Values are encrypted and bound to their keys; what cannot be decrypted is refused and changes nothing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream::kv;
use tokio::sync::watch;

use crate::link::{Link, LinkError, nats, token};
use crate::metrics;
use crate::state::State;

/// The maximum size of a value, in bytes: a NATS server accepts 1 MiB by default.
const VALUE: usize = 900 << 10;
/// The pause between two attempts to get a lock.
const LOCK_INTERVAL: Duration = Duration::from_millis(20);

/// The error of a shared value.
#[derive(Debug, thiserror::Error)]
pub enum SharedError {
    /// The servers do not answer, or refuse.
    #[error("the cluster cannot be asked: {0}")]
    Away(#[from] LinkError),
    /// Another member has changed the value.
    #[error("another master of the cluster has changed it")]
    Changed,
    /// The value is too large.
    #[error("it is too large for the cluster: expected at most {limit} bytes, got {size}")]
    TooLarge {
        /// Its size in bytes.
        size: usize,
        /// The maximum size in bytes.
        limit: usize,
    },
    /// Another member holds the lock.
    #[error("another master of the cluster is using it: try again")]
    Locked,
}

/// The members that are alive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Members {
    /// Their names. A member is named for one more `lease` after its last sign of life has ended.
    pub alive: BTreeSet<String>,
    /// Whether the list is complete: the servers have answered, for long enough after the start.
    pub is_known: bool,
}

/// A value and its revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Rises with each change.
    pub revision: u64,
    /// The value.
    pub value: Vec<u8>,
}

/// The values that members share.
pub struct Shared {
    pub(crate) link: Arc<Link>,
    pub(crate) state: Arc<State>,
    pub(crate) members: watch::Sender<Members>,
}

/// A lock of the cluster. It ends by itself after `lease`.
#[derive(Debug)]
pub struct Lock {
    key: String,
    revision: u64,
    until: Instant,
}

impl Lock {
    /// Returns whether this member surely still has the lock.
    pub fn is_held(&self) -> bool {
        Instant::now() < self.until
    }
}

impl Shared {
    pub(crate) fn new(link: Arc<Link>, state: Arc<State>) -> Self {
        Shared { link, state, members: watch::Sender::new(Members::default()) }
    }

    /// Returns the name of this member.
    pub fn member(&self) -> &str {
        self.state.member()
    }

    /// Returns whether this member leads.
    pub fn leads(&self) -> bool {
        self.state.leads()
    }

    /// Returns the time after which a member that is not heard of is replaced.
    pub fn lease(&self) -> Duration {
        self.link.settings.lease
    }

    /// Returns whether the servers have been away for so long that each member cares for itself.
    pub(crate) fn is_alone(&self) -> bool {
        self.state.is_alone()
    }

    /// Returns the members that are alive, and their changes.
    pub fn members(&self) -> watch::Receiver<Members> {
        self.members.subscribe()
    }

    /// Returns a value. One that cannot be decrypted is logged, removed, and none.
    ///
    /// # Errors
    /// The servers do not answer.
    pub async fn get(&self, key: &str) -> Result<Option<Stored>, SharedError> {
        let resources = self.link.resources().await?;
        let found = resources.work.entry(key).await.map_err(|error| self.away(error))?;
        let Some(entry) = found else { return Ok(None) };
        let revision = entry.revision;
        match self.link.decrypt(entry) {
            Ok(entry) => Ok(entry.value.map(|value| Stored { revision: entry.revision, value })),
            Err(error) => {
                metrics::VALUES_REFUSED.add(1);
                tracing::error!(%error, "a value of the cluster is refused");
                // Or nobody could set a value of the cluster there.
                self.remove(revision).await?;
                Ok(None)
            }
        }
    }

    /// Sets a value if it has this revision; 0 is none. Returns the new revision.
    ///
    /// # Errors
    /// The servers do not answer, the value is too large, or another member has changed it.
    pub async fn put(&self, key: &str, value: &[u8], revision: u64) -> Result<u64, SharedError> {
        if value.len() > VALUE {
            return Err(SharedError::TooLarge { size: value.len(), limit: VALUE });
        }
        let resources = self.link.resources().await?;
        match resources.work.update(key, self.link.encrypt(key, value), revision).await {
            Ok(revision) => Ok(revision),
            Err(error) if error.kind() == kv::UpdateErrorKind::WrongLastRevision => Err(SharedError::Changed),
            Err(error) => Err(self.away(error)),
        }
    }

    /// Sets a value of which this member is the only writer.
    ///
    /// # Errors
    /// The servers do not answer, or the value is too large.
    pub async fn replace(&self, key: &str, value: &[u8]) -> Result<(), SharedError> {
        if value.len() > VALUE {
            return Err(SharedError::TooLarge { size: value.len(), limit: VALUE });
        }
        let resources = self.link.resources().await?;
        resources.work.put(key, self.link.encrypt(key, value)).await.map(drop).map_err(|error| self.away(error))
    }

    /// Removes a value if it has this revision. Returns whether it did: of several members that try, one does.
    ///
    /// # Errors
    /// The servers do not answer.
    pub async fn remove(&self, revision: u64) -> Result<bool, SharedError> {
        let resources = self.link.resources().await?;
        self.delete_message(&resources.work_stream, revision).await
    }

    /// Returns the keys with a prefix that ends at a dot, sorted.
    ///
    /// # Errors
    /// The servers do not answer.
    pub async fn keys(&self, prefix: &str) -> Result<Vec<String>, SharedError> {
        let resources = self.link.resources().await?;
        self.link.keys("work", &resources.work_stream, prefix).await.map_err(|error| self.away(error))
    }

    /// Acquires a lock, within three leases: the lock of a member that has died ends after one, and so does one that was
    /// asked for while the servers were away.
    ///
    /// # Errors
    /// The servers do not answer, or others hold it all the time.
    pub async fn lock(&self, name: &str) -> Result<Lock, SharedError> {
        let (key, lease) = (format!("lock.{}", token(name)), self.lease());
        let deadline = Instant::now() + lease * 3;
        loop {
            let resources = self.link.resources().await?;
            // It counts from before the request: it ends here before it does on the servers.
            let began = Instant::now();
            match resources.lease.create(&key, self.link.encrypt(&key, self.member().as_bytes())).await {
                Ok(revision) => return Ok(Lock { key, revision, until: began + lease * 3 / 4 }),
                Err(error) if error.kind() == kv::CreateErrorKind::AlreadyExists => {}
                Err(error) => return Err(self.away(error)),
            }
            if Instant::now() > deadline {
                return Err(SharedError::Locked);
            }
            tokio::time::sleep(LOCK_INTERVAL).await;
        }
    }

    /// Gives up a lock.
    pub async fn unlock(&self, lock: Lock) {
        let Ok(resources) = self.link.resources().await else { return };
        if resources.lease.delete_expect_revision(&lock.key, Some(lock.revision)).await.is_err() {
            tracing::debug!(key = lock.key, "a lock could not be given up: it ends by itself");
        }
    }

    /// Removes the message with a number from a stream. Returns whether it did.
    pub(crate) async fn delete_message(
        &self,
        stream: &async_nats::jetstream::stream::Stream,
        number: u64,
    ) -> Result<bool, SharedError> {
        use async_nats::jetstream::stream::DeleteMessageErrorKind::JetStream;
        match stream.delete_message(number).await {
            Ok(done) => Ok(done),
            Err(error) => match error.kind() {
                // It is gone. 503 is a stream without a leader.
                JetStream(reason) if reason.code() != 503 => Ok(false),
                _ => Err(self.away(error)),
            },
        }
    }

    /// Forgets the streams after an error: they are created anew if they are gone.
    pub(crate) fn away(&self, error: impl std::fmt::Display) -> SharedError {
        self.link.forget_resources();
        SharedError::Away(nats(error))
    }
}
