//! The streams and buckets of the cluster on the NATS servers: their limits, and their creation.

use async_nats::jetstream::context::{CreateStreamError, CreateStreamErrorKind, GetStreamErrorKind};
use async_nats::jetstream::stream::{self, DiscardPolicy};
use async_nats::jetstream::{Context, ErrorCode, kv};
use std::time::Duration;

use crate::error::{LinkError, nats};
use crate::settings::Settings;

/// The window in which a server deduplicates messages.
const DEDUPLICATION_WINDOW: Duration = Duration::from_secs(120);
/// The maximum size of the stream of events, in bytes.
const MAX_EVENTS_SIZE: i64 = 4 << 30;
/// The maximum sizes of the state of work, of all queues, and of large returns, in bytes.
const MAX_WORK_SIZE: i64 = 1 << 30;
const MAX_QUEUES_SIZE: i64 = 1 << 30;
const MAX_RETURNS_SIZE: i64 = 1 << 30;
/// What servers reserve for all streams with a limit, in bytes.
const TOTAL_SIZE: i64 = MAX_EVENTS_SIZE + MAX_WORK_SIZE + MAX_QUEUES_SIZE + MAX_RETURNS_SIZE;
/// The parts of their sizes that the streams of a new cluster get, the first for which the servers have room.
const SHARES: [i64; 3] = [1, 4, 16];

/// The streams and buckets of the cluster.
pub(crate) struct Resources {
    /// Events of all members.
    pub events: stream::Stream,
    /// The replicated tables, and the keys that all members share.
    pub values: kv::Store,
    /// The leader's lease, heartbeats and locks, which expire by themselves.
    pub lease: kv::Store,
    /// The stream behind `lease`.
    pub lease_stream: stream::Stream,
    /// The state of work that a successor resumes, and the connected minions of each member.
    pub work: kv::Store,
    /// The stream behind `work`, to delete a value without leaving a marker.
    pub work_stream: stream::Stream,
    /// The items of queues.
    pub queues: stream::Stream,
    /// Returns that exceed the size of an event.
    pub returns: stream::Stream,
}

impl Resources {
    /// Opens the streams and buckets, and creates missing ones. Servers reserve the maximum size of a stream when they
    /// create it: a new cluster gets smaller streams where they have little storage.
    ///
    /// # Errors
    /// The servers do not answer, reject a request, or have too little storage.
    pub(crate) async fn open(context: &Context, settings: &Settings) -> Result<Self, LinkError> {
        let Settings { name, sync_handle, lease, history, .. } = settings;
        let share = share(context, settings).await?;
        let events = stream::Config {
            name: format!("brine_{name}_events"),
            subjects: vec![format!("brine.{name}.events.>")],
            max_age: *history,
            max_bytes: MAX_EVENTS_SIZE / share,
            discard: DiscardPolicy::Old,
            duplicate_window: DEDUPLICATION_WINDOW.min(*history),
            num_replicas: *sync_handle,
            ..stream::Config::default()
        };
        let events = open_stream(context, events).await?;
        let buckets = Buckets { context, replicas: *sync_handle };
        // Values remain, or are replaced by a marker.
        let values = stream::Config { deny_delete: true, ..stream::Config::default() };
        let (values, _) = buckets.open(&format!("brine_{name}_values"), values).await?;
        let max_age = *lease;
        let (lease, lease_stream) = buckets
            .open(&format!("brine_{name}_leases"), stream::Config { max_age, ..stream::Config::default() })
            .await?;
        let max_bytes = MAX_WORK_SIZE / share;
        let (work, work_stream) = buckets
            .open(&format!("brine_{name}_work"), stream::Config { max_bytes, ..stream::Config::default() })
            .await?;
        let queues = stream::Config {
            name: format!("brine_{name}_queues"),
            subjects: vec![format!("brine.{name}.queues.>")],
            max_bytes: MAX_QUEUES_SIZE / share,
            // A full queue rejects new items instead of dropping old ones.
            discard: DiscardPolicy::New,
            duplicate_window: DEDUPLICATION_WINDOW,
            num_replicas: *sync_handle,
            ..stream::Config::default()
        };
        let queues = open_stream(context, queues).await?;
        let returns = stream::Config {
            name: format!("brine_{name}_returns"),
            subjects: vec![format!("brine.{name}.returns.>")],
            max_age: *history,
            max_bytes: MAX_RETURNS_SIZE / share,
            max_messages_per_subject: 1,
            discard: DiscardPolicy::Old,
            duplicate_window: DEDUPLICATION_WINDOW.min(*history),
            num_replicas: *sync_handle,
            ..stream::Config::default()
        };
        let returns = open_stream(context, returns).await?;
        Ok(Resources { events, values, lease, lease_stream, work, work_stream, queues, returns })
    }
}

/// What all buckets have in common.
struct Buckets<'a> {
    context: &'a Context,
    replicas: usize,
}

impl Buckets<'_> {
    /// Opens a bucket, and creates a missing one with the limits of `config`. If its values are deleted without a marker,
    /// then of several members that set a missing value one succeeds: for a value that replaces another one, or a marker,
    /// servers before 2.9.21 compare revisions before they have stored earlier ones.
    ///
    /// The bucket is created as a stream, because the client's own call does not support servers before 2.10.
    async fn open(&self, name: &str, config: stream::Config) -> Result<(kv::Store, stream::Stream), LinkError> {
        let lifetime = if config.max_age.is_zero() { DEDUPLICATION_WINDOW } else { config.max_age };
        let config = stream::Config {
            name: format!("KV_{name}"),
            subjects: vec![format!("$KV.{name}.>")],
            max_messages_per_subject: 1,
            discard: DiscardPolicy::New,
            duplicate_window: DEDUPLICATION_WINDOW.min(lifetime),
            num_replicas: self.replicas,
            allow_rollup: true,
            allow_direct: true,
            ..config
        };
        let stream = open_stream(self.context, config).await?;
        Ok((self.context.get_key_value(name).await.map_err(nats)?, stream))
    }
}

/// Returns the part of their sizes that streams get, as a divisor, by creating a stream of the size of all for a moment.
/// The streams of an existing cluster stay as they are.
async fn share(context: &Context, settings: &Settings) -> Result<i64, LinkError> {
    let name = &settings.name;
    if let Err(error) = context.get_stream(format!("brine_{name}_events")).await {
        let absent = matches!(error.kind(), GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND);
        if !absent {
            return Err(nats(error));
        }
    } else {
        return Ok(1);
    }
    for share in SHARES {
        let room = stream::Config {
            name: format!("brine_{name}_room"),
            subjects: vec![format!("brine.{name}.room")],
            max_bytes: TOTAL_SIZE / share,
            num_replicas: settings.sync_handle,
            ..stream::Config::default()
        };
        match context.create_stream(&room).await {
            Ok(_) => {
                // Another member may have created and deleted the same one.
                _ = context.delete_stream(&room.name).await;
                if share > 1 {
                    let (mib, of) = (room.max_bytes >> 20, TOTAL_SIZE >> 20);
                    tracing::warn!(
                        "JetStream has little storage: the streams of the cluster hold {mib} MiB instead of {of}; raise \
                         their limits when there is more: nats stream edit NAME --max-bytes SIZE"
                    );
                }
                return Ok(share);
            }
            Err(error) if is_storage(&error) => {}
            Err(error) => return Err(nats(error)),
        }
    }
    Err(LinkError::Storage { needed: (TOTAL_SIZE / SHARES[SHARES.len() - 1]) >> 20 })
}

/// Opens a stream, and creates a missing one.
async fn open_stream(context: &Context, config: stream::Config) -> Result<stream::Stream, LinkError> {
    let needed = config.max_bytes >> 20;
    context
        .get_or_create_stream(config)
        .await
        .map_err(|error| if is_storage(&error) { LinkError::Storage { needed } } else { nats(error) })
}

/// Whether a server, or each of a cluster, has too little storage for the stream.
fn is_storage(error: &CreateStreamError) -> bool {
    let CreateStreamErrorKind::JetStream(error) = error.kind() else { return false };
    error.error_code() == ErrorCode::STORAGE_RESOURCES_EXCEEDED || error.to_string().contains("insufficient storage")
}
