//! The connection to the NATS servers, and the streams and buckets of the cluster there.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::kv::{self, Operation};
use async_nats::jetstream::stream::{self, DiscardPolicy};
use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectOptions, ServerAddr};
use bytes::Bytes;
use futures::StreamExt;
use parking_lot::Mutex;

use crate::settings::Settings;

/// The timeout of a request to a server.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The time in which a server recognises a message that is sent again.
const DUPLICATES: Duration = Duration::from_secs(120);
/// The maximum size of the stream of events, in bytes.
const EVENTS_SIZE: i64 = 4 << 30;

/// The error of a request to the NATS servers.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The servers do not answer, or refuse.
    #[error("NATS: {0}")]
    Nats(String),
    /// A file of the option `cluster` cannot be read.
    #[error("option 'cluster': {0}")]
    File(#[from] std::io::Error),
    /// The option is invalid.
    #[error("option 'cluster': 'servers' is invalid: {0}")]
    Servers(String),
    /// Somebody without the secret has written a value.
    #[error("the value of {0} cannot be decrypted: the masters of a cluster need the same secret")]
    Sealed(String),
}

pub(crate) fn nats(error: impl std::fmt::Display) -> LinkError {
    LinkError::Nats(error.to_string())
}

/// The connection of a member. It is kept and restored in the background.
pub struct Link {
    pub(crate) settings: Settings,
    client: Client,
    context: Context,
    resources: Mutex<Option<Arc<Resources>>>,
}

/// The streams and buckets of the cluster.
pub(crate) struct Resources {
    /// Events of all members.
    pub events: stream::Stream,
    /// The tables, and what all members share.
    pub values: kv::Store,
    /// The lease of the leader, which ends by itself.
    pub lease: kv::Store,
}

/// A value of a bucket.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Rises with each change of the bucket.
    pub revision: u64,
    /// The decrypted value; `None` if it has been removed.
    pub value: Option<Vec<u8>>,
}

/// A value as a watch brings it; an error ends the watch.
pub(crate) type Watched = Result<(String, u64, Result<Entry, LinkError>), LinkError>;

impl Link {
    /// Connects to the servers in the background.
    ///
    /// # Errors
    /// Files or addresses that cannot be used.
    pub async fn open(settings: Settings) -> Result<Self, LinkError> {
        let name = format!("brine {}", settings.member);
        let mut options = ConnectOptions::new()
            .name(name)
            .connection_timeout(TIMEOUT)
            .request_timeout(Some(TIMEOUT))
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
        Ok(Link { settings, client, context, resources: Mutex::default() })
    }

    /// Returns the subject of a member's events.
    pub(crate) fn subject(&self, member: &str) -> String {
        format!("brine.{}.events.{}", self.settings.name, token(member))
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Waits until everything sent has left.
    pub(crate) async fn flush(&self) {
        // Only tried: the servers may be away.
        _ = tokio::time::timeout(TIMEOUT, self.client.flush()).await;
    }

    /// Returns the streams and buckets, and creates missing ones.
    ///
    /// # Errors
    /// The servers do not answer, or refuse.
    pub(crate) async fn resources(&self) -> Result<Arc<Resources>, LinkError> {
        if let Some(known) = self.resources.lock().clone() {
            return Ok(known);
        }
        let created = tokio::time::timeout(TIMEOUT * 2, self.create()).await;
        let created = Arc::new(created.unwrap_or_else(|_| Err(nats("no server answers")))?);
        *self.resources.lock() = Some(Arc::clone(&created));
        Ok(created)
    }

    /// Forgets the streams and buckets after an error: they are created anew if they are gone.
    pub(crate) fn forget_resources(&self) {
        *self.resources.lock() = None;
    }

    async fn create(&self) -> Result<Resources, LinkError> {
        let Settings { name, replicas, lease, history, .. } = &self.settings;
        let events = stream::Config {
            name: format!("brine_{name}_events"),
            subjects: vec![format!("brine.{name}.events.>")],
            max_age: *history,
            max_bytes: EVENTS_SIZE,
            discard: DiscardPolicy::Old,
            duplicate_window: DUPLICATES.min(*history),
            num_replicas: *replicas,
            ..stream::Config::default()
        };
        let events = self.context.get_or_create_stream(events).await.map_err(nats)?;
        let values = self.bucket(&format!("brine_{name}_values"), Duration::ZERO).await?;
        let lease = self.bucket(&format!("brine_{name}_lease"), *lease).await?;
        Ok(Resources { events, values, lease })
    }

    /// Returns a bucket, whose values end after `max_age`; zero is never. It is created as its stream: the client's own call
    /// for it does not understand servers before 2.10.
    async fn bucket(&self, name: &str, max_age: Duration) -> Result<kv::Store, LinkError> {
        let stream = stream::Config {
            name: format!("KV_{name}"),
            subjects: vec![format!("$KV.{name}.>")],
            max_messages_per_subject: 1,
            max_age,
            discard: DiscardPolicy::New,
            duplicate_window: if max_age.is_zero() { DUPLICATES } else { DUPLICATES.min(max_age) },
            num_replicas: self.settings.replicas,
            allow_rollup: true,
            deny_delete: true,
            allow_direct: true,
            ..stream::Config::default()
        };
        self.context.get_or_create_stream(stream).await.map_err(nats)?;
        self.context.get_key_value(name).await.map_err(nats)
    }

    /// Returns a value that all members share.
    ///
    /// # Errors
    /// The servers do not answer, or the value is not of this cluster.
    pub(crate) async fn get(&self, key: &str) -> Result<Option<Entry>, LinkError> {
        let found = self.resources().await?.values.entry(key).await.map_err(nats)?;
        found.map(|entry| self.decrypt(entry)).transpose()
    }

    /// Decrypts an entry.
    pub(crate) fn decrypt(&self, entry: kv::Entry) -> Result<Entry, LinkError> {
        let value = match entry.operation {
            Operation::Put => {
                let opened = self.settings.seal.open(&entry.key, &entry.value);
                Some(opened.map_err(|_| LinkError::Sealed(entry.key.clone()))?)
            }
            Operation::Delete | Operation::Purge => None,
        };
        Ok(Entry { revision: entry.revision, value })
    }

    /// Encrypts a value for a key.
    pub(crate) fn encrypt(&self, key: &str, value: &[u8]) -> Bytes {
        self.settings.seal.seal(key, value).into()
    }

    /// Sets a value, whatever it was.
    pub(crate) async fn put(&self, key: &str, value: &[u8]) -> Result<(), LinkError> {
        let sealed = self.encrypt(key, value);
        self.resources().await?.values.put(key, sealed).await.map(drop).map_err(nats)
    }

    /// Removes a value, whatever it was.
    pub(crate) async fn delete(&self, key: &str) -> Result<(), LinkError> {
        self.resources().await?.values.delete(key).await.map_err(nats)
    }

    /// Returns the number of the last message of the stream of events; 0 for none.
    pub(crate) async fn last_event(&self) -> Result<u64, LinkError> {
        let mut stream = self.resources().await?.events.clone();
        Ok(stream.info().await.map_err(nats)?.state.last_sequence)
    }

    /// Returns the revision of the newest value; 0 for none.
    pub(crate) async fn last_revision(&self) -> Result<u64, LinkError> {
        self.resources().await?;
        let stream = self.context.get_stream(format!("KV_brine_{}_values", self.settings.name)).await.map_err(nats)?;
        Ok(stream.cached_info().state.last_sequence)
    }

    /// Returns all values, the current ones first: key, revision, and the value unless it cannot be decrypted. Ends when the
    /// server does.
    pub(crate) async fn watch(&self) -> Result<impl futures::Stream<Item = Watched> + Send + Unpin + '_, LinkError> {
        let watch = self.resources().await?.values.watch_with_history(">").await.map_err(nats)?;
        Ok(watch.map(|entry| {
            let entry = entry.map_err(nats)?;
            let (key, revision) = (entry.key.clone(), entry.revision);
            Ok((key, revision, self.decrypt(entry)))
        }))
    }
}

/// Returns a name in the alphabet of subjects and keys.
pub(crate) fn token(name: impl AsRef<[u8]>) -> String {
    use base64::Engine;
    base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(name)
}

/// Decodes the name in a token.
pub(crate) fn name_of(token: &str) -> Option<Vec<u8>> {
    use base64::Engine;
    base64::prelude::BASE64_URL_SAFE_NO_PAD.decode(token).ok()
}
