//! Work that members take over from each other: state that one member owns and another one can resume.
//!
//! A value is replaced or removed only at the revision that its writer knows, so a former owner that comes back is
//! rejected. Values are encrypted and bound to their keys, and name the revision that they replace: the servers store
//! such a value once. A value that cannot be decrypted, or that was stored again, is rejected and changes nothing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE;
use async_nats::jetstream::kv;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::LastRawMessageError;
use async_nats::jetstream::stream::LastRawMessageErrorKind::NoMessageFound;
use tokio::sync::watch;

use crate::clock::server_time;
use crate::error::{LinkError, nats};
use crate::link::{Link, token};
use crate::metrics;
use crate::state::State;

/// The maximum size of a value, in bytes: a NATS server accepts 1 MiB by default.
const MAX_VALUE: usize = 900 << 10;
/// The pause between two attempts to get a lock.
const LOCK_INTERVAL: Duration = Duration::from_millis(20);

/// The error of a shared value.
#[derive(Debug, thiserror::Error)]
pub enum SharedError {
    /// The servers do not answer, or reject the request.
    #[error("the cluster is unavailable: {0}")]
    Unavailable(#[from] LinkError),
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
    /// Their names. A member stays listed for one more `lease` after its last heartbeat has expired.
    pub alive: BTreeSet<String>,
    /// Whether the list is complete: the servers have been answering for longer than one `lease`.
    pub is_known: bool,
}

/// A value and its revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The revision, which rises with each change.
    pub revision: u64,
    /// The value.
    pub value: Vec<u8>,
}

/// The values that members share: a handle to the work bucket, queues and locks.
pub struct Shared {
    pub(crate) link: Arc<Link>,
    pub(crate) state: Arc<State>,
    pub(crate) members: watch::Sender<Members>,
}

/// A lock of the cluster. It expires after one `lease`.
#[derive(Debug)]
pub struct Lock {
    key: String,
    revision: u64,
    until: Instant,
}

impl Lock {
    /// Whether this member certainly still holds the lock.
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

    /// Whether this member is the leader.
    pub fn leads(&self) -> bool {
        self.state.leads()
    }

    /// Returns the time after which an unresponsive member is replaced.
    pub fn lease(&self) -> Duration {
        self.link.settings.lease
    }

    /// Whether the servers have been away for so long that each member handles its own events.
    pub(crate) fn is_isolated(&self) -> bool {
        self.state.is_isolated()
    }

    /// Returns a receiver for the members that are alive.
    pub fn members(&self) -> watch::Receiver<Members> {
        self.members.subscribe()
    }

    /// Returns a value. A value that was written without the secret is logged and removed, and counts as missing.
    ///
    /// # Errors
    /// The servers do not answer.
    pub async fn get(&self, key: &str) -> Result<Option<Stored>, SharedError> {
        let resources = self.link.resources().await?;
        let subject = format!("$KV.{}.{key}", resources.work.name);
        let last = resources.work_stream.get_last_raw_message_by_subject(&subject).await;
        let Some(message) = self.found(last)? else { return Ok(None) };
        let revision = message.sequence;
        match self.open(key, &message) {
            Ok(value) => Ok(Some(Stored { revision, value })),
            Err(error) => {
                metrics::VALUES_REFUSED.add(1);
                tracing::error!(%error, "value of the cluster refused");
                // Otherwise no member could set this value any more.
                self.remove(revision).await?;
                Ok(None)
            }
        }
    }

    /// Decrypts a value.
    ///
    /// # Errors
    /// It was written without the secret, or stored again.
    fn open(&self, key: &str, message: &StreamMessage) -> Result<Vec<u8>, LinkError> {
        let opened = self.link.open_any(key, &message.payload)?;
        let is_late = opened.stamp.is_late(server_time(message.time.unix_timestamp_nanos()));
        let expected = message.headers.get(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE);
        let expected: Option<u64> = expected.and_then(|revision| revision.as_str().parse().ok());
        let is_first = match opened.stamp.after {
            // The servers have checked that this revision was the last one, which a revision is only once.
            Some(revision @ 1..) => expected == Some(revision),
            // A new value, or one that is replaced unconditionally.
            Some(0) | None => !is_late,
        };
        if is_first { Ok(opened.plain) } else { Err(LinkError::Replayed(key.to_owned())) }
    }

    /// Sets a value if it still has this revision; 0 means that there is none. Returns the new revision.
    ///
    /// # Errors
    /// The servers do not answer, the value is too large, or another member has changed it.
    pub async fn put(&self, key: &str, value: &[u8], revision: u64) -> Result<u64, SharedError> {
        if value.len() > MAX_VALUE {
            return Err(SharedError::TooLarge { size: value.len(), limit: MAX_VALUE });
        }
        let resources = self.link.resources().await?;
        match resources.work.update(key, self.link.seal_after(key, value, revision), revision).await {
            Ok(revision) => Ok(revision),
            Err(error) if error.kind() == kv::UpdateErrorKind::WrongLastRevision => Err(SharedError::Changed),
            Err(error) => Err(self.unavailable(error)),
        }
    }

    /// Sets a value of which this member is the only writer.
    ///
    /// # Errors
    /// The servers do not answer, or the value is too large.
    pub async fn replace(&self, key: &str, value: &[u8]) -> Result<(), SharedError> {
        if value.len() > MAX_VALUE {
            return Err(SharedError::TooLarge { size: value.len(), limit: MAX_VALUE });
        }
        let resources = self.link.resources().await?;
        resources.work.put(key, self.link.seal(key, value)).await.map(drop).map_err(|error| self.unavailable(error))
    }

    /// Removes a value if it still has this revision. Returns whether this call removed it: of several members that
    /// try, one succeeds.
    ///
    /// # Errors
    /// The servers do not answer.
    pub async fn remove(&self, revision: u64) -> Result<bool, SharedError> {
        let resources = self.link.resources().await?;
        self.delete_message(&resources.work_stream, revision).await
    }

    /// Returns the sorted keys that begin with `prefix`, which ends in a dot.
    ///
    /// # Errors
    /// The servers do not answer.
    pub async fn keys(&self, prefix: &str) -> Result<Vec<String>, SharedError> {
        let resources = self.link.resources().await?;
        self.link.keys("work", &resources.work_stream, prefix).await.map_err(|error| self.unavailable(error))
    }

    /// Acquires a lock, waiting for up to three leases: the lock of a failed member expires after one, and so does one
    /// whose request was lost in an outage.
    ///
    /// # Errors
    /// The servers do not answer, or other members hold the lock all the time.
    pub async fn lock(&self, name: &str) -> Result<Lock, SharedError> {
        let (key, lease) = (format!("lock.{}", token(name)), self.lease());
        let deadline = Instant::now() + lease * 3;
        loop {
            let resources = self.link.resources().await?;
            // The lock is counted from before the request, so that it expires here before it does on the servers.
            let began = Instant::now();
            match resources.lease.create(&key, self.link.seal(&key, self.member().as_bytes())).await {
                Ok(revision) => return Ok(Lock { key, revision, until: began + lease * 3 / 4 }),
                Err(error) if error.kind() == kv::CreateErrorKind::AlreadyExists => {}
                Err(error) => return Err(self.unavailable(error)),
            }
            if Instant::now() > deadline {
                return Err(SharedError::Locked);
            }
            tokio::time::sleep(LOCK_INTERVAL).await;
        }
    }

    /// Releases a lock.
    pub async fn unlock(&self, lock: Lock) {
        let Ok(resources) = self.link.resources().await else { return };
        // Without a marker: the next holder creates a missing value, in which one member succeeds.
        if self.delete_message(&resources.lease_stream, lock.revision).await.is_err() {
            tracing::debug!(key = lock.key, "releasing a lock failed: it expires");
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
            Ok(is_deleted) => Ok(is_deleted),
            Err(error) => match error.kind() {
                // The message is gone already. Code 503 is a stream without a leader.
                JetStream(reason) if reason.code() != 503 => Ok(false),
                _ => Err(self.unavailable(error)),
            },
        }
    }

    /// Returns the message that a server was asked for; `None` if there is none.
    pub(crate) fn found(
        &self,
        asked: Result<StreamMessage, LastRawMessageError>,
    ) -> Result<Option<StreamMessage>, SharedError> {
        match asked {
            Ok(message) => Ok(Some(message)),
            Err(error) if error.kind() == NoMessageFound => Ok(None),
            Err(error) => Err(self.unavailable(error)),
        }
    }

    /// Builds the error of an outage, and discards the cached streams: they are created again if they are missing.
    pub(crate) fn unavailable(&self, error: impl std::fmt::Display) -> SharedError {
        self.link.forget_resources();
        SharedError::Unavailable(nats(error))
    }
}
