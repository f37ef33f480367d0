//! The connection to the NATS servers, and the values in the buckets of the cluster there.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::kv::{self, Operation};
use async_nats::jetstream::stream;
use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectOptions, ServerAddr};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::clock::{ServerClock, server_time};
use crate::error::{LinkError, nats};
use crate::message::Message;
use crate::seal::{Opened, Stamp};
use crate::settings::Settings;
use crate::state::State;
use crate::streams::Resources;

/// The timeout of a request to a server.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The interval at which a server is asked for a sign of life. After three without an answer another server is used: one
/// whose host hangs keeps its connections open.
const PING_INTERVAL: Duration = Duration::from_secs(2);
/// The number of times a value is written again because another member has changed it meanwhile.
const MAX_CONFLICTS: usize = 5;

/// The connection of a member, restored in the background after a failure.
pub struct Link {
    pub(crate) settings: Settings,
    client: Client,
    context: Context,
    resources: Mutex<Option<Arc<Resources>>>,
    pub(crate) clock: ServerClock,
}

/// A value of a bucket.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The revision, which rises with each change of the bucket.
    pub revision: u64,
    /// The revision that its writer replaced; `None` for a value that is written unconditionally.
    pub after: Option<u64>,
    /// The decrypted value.
    pub value: Vec<u8>,
}

/// A value delivered by a watch: key, revision and decrypted entry. An outer error ends the watch.
pub(crate) type Watched = Result<(String, u64, Result<Entry, LinkError>), LinkError>;

impl Link {
    /// Connects to the servers. Keeps trying in the background if none answers.
    ///
    /// # Errors
    /// A file cannot be read, or an address is invalid.
    pub async fn open(settings: Settings) -> Result<Self, LinkError> {
        let name = format!("brine {}", settings.member);
        let mut options = ConnectOptions::new()
            .name(name)
            .connection_timeout(TIMEOUT)
            .request_timeout(Some(TIMEOUT))
            .ping_interval(PING_INTERVAL)
            .retry_on_initial_connect()
            .event_callback(|event| async move { tracing::debug!(%event, "connection to the NATS servers") })
            .reconnect_delay_callback(|attempts| Duration::from_millis(100 << attempts.min(5)))
            .require_tls(settings.tls);
        if let Some((user, password)) = &settings.login {
            options = options.user_and_password(user.clone(), password.clone());
        }
        if let Some(token) = &settings.token {
            options = options.token(token.clone());
        }
        if let Some(path) = &settings.credentials {
            options = options.credentials_file(path).await?;
        }
        if let Some(path) = &settings.authorities {
            options = options.add_root_certificates(path.clone());
        }
        if let Some((certificate, key)) = &settings.certificate {
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        let addresses: Result<Vec<ServerAddr>, _> = settings.servers.iter().map(|server| server.parse()).collect();
        let addresses = addresses.map_err(|error: std::io::Error| LinkError::Servers(error.to_string()))?;
        let client = options.connect(addresses).await.map_err(nats)?;
        let mut context = jetstream::new(client.clone());
        context.set_timeout(TIMEOUT);
        Ok(Link { settings, client, context, resources: Mutex::default(), clock: ServerClock::new() })
    }

    /// Returns the subject of a member's events.
    pub(crate) fn subject(&self, member: &str) -> String {
        format!("brine.{}.events.{}", self.settings.name, token(member))
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Waits until all buffered messages are sent.
    pub(crate) async fn flush(&self) {
        // Best effort: the servers may be away.
        _ = tokio::time::timeout(TIMEOUT, self.client.flush()).await;
    }

    /// Returns the streams and buckets, and creates missing ones.
    ///
    /// # Errors
    /// The servers do not answer, or reject the request.
    pub(crate) async fn resources(&self) -> Result<Arc<Resources>, LinkError> {
        if let Some(resources) = self.resources.lock().clone() {
            return Ok(resources);
        }
        // Boxed: every user of the cluster awaits it.
        let created = tokio::time::timeout(TIMEOUT * 2, Box::pin(self.create())).await;
        let created = Arc::new(created.unwrap_or_else(|_| Err(nats("no server answers")))?);
        *self.resources.lock() = Some(Arc::clone(&created));
        Ok(created)
    }

    /// Discards the cached streams and buckets after an error; the next use creates missing ones.
    pub(crate) fn forget_resources(&self) {
        *self.resources.lock() = None;
    }

    async fn create(&self) -> Result<Resources, LinkError> {
        let resources = Resources::open(&self.context, &self.settings).await?;
        self.read_clock(&resources).await?;
        Ok(resources)
    }

    /// Reads the clock of the servers: the time at which they store a value.
    async fn read_clock(&self, resources: &Resources) -> Result<(), LinkError> {
        let (key, sent) = (format!("clock.{}", token(&self.settings.member)), Instant::now());
        resources.lease.put(&key, Bytes::new()).await.map_err(nats)?;
        // The value may have expired already; then the next heartbeat tells the time.
        if let Some(entry) = resources.lease.entry(&key).await.map_err(nats)? {
            self.clock.set(sent, server_time(entry.created.unix_timestamp_nanos()));
        }
        Ok(())
    }

    /// Encrypts a message that is written unconditionally, for a subject or key.
    pub(crate) fn seal(&self, context: &str, plain: &[u8]) -> Bytes {
        self.sealed(context, plain, None)
    }

    /// Encrypts a value that replaces the one of this revision; 0 means that there is none.
    pub(crate) fn seal_after(&self, key: &str, plain: &[u8], revision: u64) -> Bytes {
        self.sealed(key, plain, Some(revision))
    }

    fn sealed(&self, context: &str, plain: &[u8], after: Option<u64>) -> Bytes {
        self.settings.seal.seal(context, Stamp { sent: self.clock.now(), after }, plain).into()
    }

    /// Decrypts a message for a subject or key, whatever its age.
    ///
    /// # Errors
    /// It was written without the secret, or for another subject or key.
    pub(crate) fn open_any(&self, context: &str, sealed: &[u8]) -> Result<Opened, LinkError> {
        self.settings.seal.open(context, sealed).map_err(|_| LinkError::Undecryptable(context.to_owned()))
    }

    /// Decrypts a message for a subject or key that the servers stored at `stored`.
    ///
    /// # Errors
    /// It was written without the secret, or long before the servers stored it.
    pub(crate) fn open_new(&self, context: &str, sealed: &[u8], stored: Duration) -> Result<Opened, LinkError> {
        let opened = self.open_any(context, sealed)?;
        if opened.stamp.is_late(stored) { Err(LinkError::Replayed(context.to_owned())) } else { Ok(opened) }
    }

    /// Returns a value of the bucket that all members share.
    ///
    /// # Errors
    /// The servers do not answer, or the value was written or removed without the secret.
    pub(crate) async fn get(&self, key: &str) -> Result<Option<Entry>, LinkError> {
        let entry = self.resources().await?.values.entry(key).await.map_err(nats)?;
        entry.map(|entry| self.decrypt(&entry)).transpose()
    }

    /// Decrypts an entry.
    fn decrypt(&self, entry: &kv::Entry) -> Result<Entry, LinkError> {
        match entry.operation {
            Operation::Put => {
                let opened = self.open_any(&entry.key, &entry.value)?;
                Ok(Entry { revision: entry.revision, after: opened.stamp.after, value: opened.plain })
            }
            Operation::Delete | Operation::Purge => Err(LinkError::Removed(entry.key.clone())),
        }
    }

    /// Sets a value of the bucket that all members share if it still has this revision; 0 means that there is none.
    /// Returns the new revision, or `None` if it was changed.
    ///
    /// # Errors
    /// The servers do not answer.
    pub(crate) async fn update(&self, key: &str, value: &[u8], revision: u64) -> Result<Option<u64>, LinkError> {
        let resources = self.resources().await?;
        match resources.values.update(key, self.seal_after(key, value, revision), revision).await {
            Ok(revision) => Ok(Some(revision)),
            Err(error) if error.kind() == kv::UpdateErrorKind::WrongLastRevision => Ok(None),
            Err(error) => Err(nats(error)),
        }
    }

    /// Returns the revision of a value, whoever wrote it; 0 if there is none.
    pub(crate) async fn revision(&self, key: &str) -> Result<u64, LinkError> {
        let current = self.resources().await?.values.entry(key).await.map_err(nats)?;
        Ok(current.map_or(0, |entry| entry.revision))
    }

    /// Sets a value of which this member is the only writer, and which another one refers to with its digest.
    pub(crate) async fn put_part(&self, key: &str, value: &[u8]) -> Result<(), LinkError> {
        self.resources().await?.values.put(key, self.seal(key, value)).await.map(drop).map_err(nats)
    }

    /// Sets a value, whatever it is now.
    ///
    /// # Errors
    /// The servers do not answer, or other members keep changing it.
    pub(crate) async fn put(&self, key: &str, value: &[u8]) -> Result<(), LinkError> {
        for _ in 0..MAX_CONFLICTS {
            if self.update(key, value, self.revision(key).await?).await?.is_some() {
                return Ok(());
            }
        }
        Err(nats(format!("other masters keep changing '{key}'")))
    }

    /// Returns the number of the last message in the stream of events; 0 if there is none.
    pub(crate) async fn last_event(&self) -> Result<u64, LinkError> {
        let mut stream = self.resources().await?.events.clone();
        Ok(stream.info().await.map_err(nats)?.state.last_sequence)
    }

    /// Stores a message without events in the stream, and returns its number.
    pub(crate) async fn mark(&self, state: &State) -> Result<u64, LinkError> {
        self.resources().await?;
        let subject = self.subject(state.member());
        let message = Message { incarnation: state.incarnation().to_owned(), ..Message::default() };
        let sealed = self.seal(&subject, &message.pack());
        let stored = self.context.publish(subject, sealed).await.map_err(nats)?;
        Ok(stored.await.map_err(nats)?.sequence)
    }

    /// Returns the revision of the newest value of the bucket that all members share; 0 if there is none.
    pub(crate) async fn last_revision(&self) -> Result<u64, LinkError> {
        Ok(self.values_info().await?.state.last_sequence)
    }

    /// Returns when the bucket that all members share was created, in nanoseconds since 1970: it differs after the
    /// servers have lost it.
    pub(crate) async fn values_created(&self) -> Result<i128, LinkError> {
        Ok(self.values_info().await?.created.unix_timestamp_nanos())
    }

    async fn values_info(&self) -> Result<stream::Info, LinkError> {
        self.resources().await?;
        let stream = self.context.get_stream(format!("KV_brine_{}_values", self.settings.name)).await.map_err(nats)?;
        Ok(stream.cached_info().clone())
    }

    /// Returns the sorted keys of a bucket that begin with `prefix`, which ends in a dot. Includes keys of removed
    /// values.
    ///
    /// # Errors
    /// The servers do not answer.
    pub(crate) async fn keys(
        &self,
        bucket: &str,
        stream: &stream::Stream,
        prefix: &str,
    ) -> Result<Vec<String>, LinkError> {
        let root = format!("$KV.brine_{}_{bucket}.", self.settings.name);
        let info = stream.info_with_subjects(format!("{root}{prefix}>")).await.map_err(nats)?;
        let subjects: Vec<(String, usize)> = info.try_collect().await.map_err(nats)?;
        let mut keys: Vec<String> =
            subjects.iter().filter_map(|(subject, _)| subject.strip_prefix(&root)).map(str::to_owned).collect();
        keys.sort();
        Ok(keys)
    }

    /// Watches all values, the current ones first: key, revision, and the decrypted value or the error. The watch ends
    /// when the server goes away.
    pub(crate) async fn watch(&self) -> Result<impl futures::Stream<Item = Watched> + Send + Unpin + '_, LinkError> {
        let watch = self.resources().await?.values.watch_with_history(">").await.map_err(nats)?;
        Ok(watch.map(|entry| {
            let entry = entry.map_err(nats)?;
            let decrypted = self.decrypt(&entry);
            Ok((entry.key, entry.revision, decrypted))
        }))
    }
}

/// Encodes a name for use in subjects and keys (URL-safe base64).
pub(crate) fn token(name: impl AsRef<[u8]>) -> String {
    use base64::Engine;
    base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(name)
}

/// Decodes a name from its token.
pub(crate) fn name_of(token: &str) -> Option<Vec<u8>> {
    use base64::Engine;
    base64::prelude::BASE64_URL_SAFE_NO_PAD.decode(token).ok()
}
