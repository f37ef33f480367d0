//! A cluster: several masters that act as one, through NATS JetStream.
//!
//! Every member has its own bus, journal and store, and serves its minions from them, with or without the NATS servers.
//! Shared data is copied through the servers, encrypted with a secret that only the members have.
//!
//! | module | owns |
//! |---|---|
//! | `settings` | the option `cluster` |
//! | `link`, `seal`, `clock` | the connection, the streams and buckets; the encryption of everything in them; the time of the servers |
//! | `secrets` | the key pair and the publish keys that all members share |
//! | `forward` | events of the local bus, published to the cluster |
//! | `receive` | events of other members, published on the local bus; their jobs, published to the local minions |
//! | `tables`, `sync`, `stored`, `part_list` | minions' keys and data, replicated to all members |
//! | `shared`, `queues`, `large` | work that another member can resume; queues; returns larger than an event |
//! | `heartbeat` | the members that are alive, and the minions of each |
//! | `rule_state` | the state of rules over time, which a new leader resumes |
//! | `lease`, `state` | leader election, and the gate in front of the reactor: one member reacts to each event |
//! | `positions`, `message` | the progress of each member in the events of the others; the message format |
//!
//! This crate does not depend on the master: it accesses one through [`Local`] and [`Table`].

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]
#![warn(clippy::self_named_module_files)]

mod clock;
mod error;
mod forward;
mod heartbeat;
mod known;
mod large;
mod lease;
mod link;
mod message;
pub mod metrics;
mod part_list;
mod positions;
mod queues;
mod receive;
mod rule_state;
mod seal;
mod secrets;
mod settings;
mod shared;
mod state;
mod stored;
mod streams;
mod sync;
mod tables;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use brine_bus::Bus;
use brine_bus::store::{BlockingStore, Observer, StoreError, Table as StoreName};
use brine_event::Event;
use brine_reactor::Gate;
use brine_runtime::executors::Executor;
use brine_runtime::supervisor::Supervisor;
use brine_value::Map;
use tokio::sync::{mpsc, watch};

pub use error::LinkError;
pub use link::Link;
pub use queues::QueueItem;
pub use secrets::{KeyPairError, share_key_pair};
pub use settings::{Settings, SettingsError};
pub use shared::{Lock, Members, Shared, SharedError, Stored};
pub use tables::{Table, TableError};

use rule_state::RuleGate;
use state::State;
use tables::{Request, StoreTable, SyncHandle};

/// The capacity of the channel of requests to the table synchronisation.
const REQUESTS: usize = 64;
/// The time that the servers have to return the publish keys at startup.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(5);

/// The field of a return's event that excludes it from the job cache, and its value if the job cache already has the
/// whole return.
pub const NOT_CACHED: (&str, &str) = ("_nocache", "large");
/// The field of a forwarded event of a publish with the packed masked arguments. It exists between members only, where
/// everything is encrypted.
const SEALED: &str = "_sealed";

/// Whether an event contains the load of a job, which every member publishes to its minions.
fn is_publish(event: &Event) -> bool {
    let jid = event.tag().strip_prefix("salt/job/").and_then(|rest| rest.strip_suffix("/publish"));
    jid.is_some_and(|jid| !jid.contains('/'))
}

/// A future that a [`Local`] returns.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Why a master does not publish the job of another member.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct NotPublished(#[from] pub Box<dyn std::error::Error + Send + Sync>);

/// The master that is a member.
pub trait Local: Send + Sync {
    /// Publishes the load of another member's job to the minions of this one. The field [`MASKED`](brine_event::MASKED)
    /// refers to arguments that were stored by [`Local::store_sealed`].
    fn publish(&self, load: Map) -> Pending<'_, Result<(), NotPublished>>;

    /// Returns the packed masked arguments of a job; `None` if they have expired.
    fn sealed<'a>(&'a self, reference: &'a str) -> Pending<'a, Option<Vec<u8>>>;

    /// Stores the packed masked arguments of a job of another member.
    fn store_sealed<'a>(&'a self, reference: &'a str, arguments: Vec<u8>) -> Pending<'a, ()>;

    /// Notifies the master of an event about a job with this sequence number.
    fn job_published(&self, number: u64);

    /// Returns the publish keys as text, for Salt's cipher and for AES-256-GCM.
    fn publish_keys(&self) -> [String; 3];

    /// Returns a receiver that changes when this master has rotated its publish keys.
    fn publish_keys_changed(&self) -> watch::Receiver<()>;

    /// Replaces the publish keys by those of the cluster, unless they are the same.
    fn adopt_publish_keys(&self, keys: [String; 3]) -> Pending<'_, ()>;

    /// Returns the minions that are connected here, in the packed form that [`Local::members_received`] of other
    /// members accepts.
    fn connected_minions(&self) -> Vec<u8>;

    /// Replaces the connected minions of other members: the name of each member, and its packed minions.
    fn members_received(&self, members: Vec<(String, Vec<u8>)>);

    /// Returns the packed return that is stored whole here; `None` if there is none.
    fn large_return<'a>(&'a self, jid: &'a str, id: &'a str) -> Pending<'a, Option<Vec<u8>>>;

    /// Notifies the master that the servers have stored a whole return, or cannot store it.
    fn large_return_sent<'a>(&'a self, jid: &'a str, id: &'a str) -> Pending<'a, ()>;

    /// Stores the whole return of another member. Returns whether it is stored.
    fn store_large_return<'a>(&'a self, jid: &'a str, id: &'a str, whole: Vec<u8>) -> Pending<'a, bool>;
}

/// The parts of a master that its membership uses.
pub struct Parts {
    /// The master itself.
    pub local: Arc<dyn Local>,
    /// Its bus.
    pub bus: Bus,
    /// Its store.
    pub store: BlockingStore,
    /// The executor for blocking disk access.
    pub disk: Executor,
    /// The table of the minions' keys.
    pub keys: Arc<dyn Table>,
    /// The names of the store's tables that are replicated to all members.
    pub tables: &'static [&'static str],
}

/// The membership of a running master.
pub struct Member {
    link: Arc<Link>,
    state: Arc<State>,
    shared: Arc<Shared>,
    gate: Arc<RuleGate>,
    parts: Parts,
    sync: sync::Sync,
    observer: Observer,
    requests: (mpsc::Sender<Request>, mpsc::Receiver<Request>),
}

impl Member {
    /// Opens the membership: reads its state, creates its cursor, and adopts the publish keys of the cluster.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn open(link: Arc<Link>, parts: Parts) -> Result<Self, StoreError> {
        forward::Forwarder::subscribe(&parts.bus)?;
        let names: Vec<StoreName> = parts.tables.iter().map(|name| StoreName(name)).collect();
        let observer = parts.store.observe(&names);
        let mut tables = vec![Arc::clone(&parts.keys)];
        tables.extend(
            names
                .into_iter()
                .map(|table| -> Arc<dyn Table> { Arc::new(StoreTable { table, store: parts.store.clone() }) }),
        );
        let (store, of, local, disk) =
            (parts.store.clone(), Arc::clone(&link), Arc::clone(&parts.local), parts.disk.clone());
        let opened = parts.disk.run(move |_| {
            let state = State::open(&of.settings.member, of.settings.lease, store.clone())?;
            Ok::<_, StoreError>((state, sync::Sync::open(of, local, store, disk, tables)?))
        });
        let (state, sync) = opened.await.unwrap_or(Err(StoreError::Closed))?;
        let begun = tokio::time::timeout(STARTUP_TIMEOUT, secrets::begin_publish_keys(&link, &*parts.local)).await;
        if !matches!(begun, Ok(Ok(()))) {
            tracing::warn!("fetching the publish keys of the cluster failed: minions receive them later");
        }
        let state = Arc::new(state);
        let shared = Arc::new(Shared::new(Arc::clone(&link), Arc::clone(&state)));
        let gate = Arc::new(RuleGate::new(Arc::clone(&state), Arc::clone(&shared)));
        Ok(Member { link, state, shared, gate, parts, sync, observer, requests: mpsc::channel(REQUESTS) })
    }

    /// Returns the gate of the reactor, which decides where the reactions to an event run.
    pub fn gate(&self) -> Arc<dyn Gate> {
        Arc::clone(&self.gate) as Arc<dyn Gate>
    }

    /// Returns the values that members share.
    pub fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Starts the tasks of the membership.
    pub fn start(self, supervisor: &mut Supervisor) {
        let Member { link, state, shared, gate, parts, sync, observer, requests } = self;
        let sync_handle = Arc::new(SyncHandle(requests.0));
        supervisor.start("tables of the cluster", |shutdown| sync.run(requests.1, observer, shutdown));
        let forwarder = forward::Forwarder {
            link: Arc::clone(&link),
            state: Arc::clone(&state),
            bus: parts.bus.clone(),
            sync_handle: Arc::clone(&sync_handle),
            local: Arc::clone(&parts.local),
            shared: Arc::clone(&shared),
        };
        supervisor.start("events for the cluster", |shutdown| forwarder.run(shutdown));
        let receiver = receive::Receiver {
            link: Arc::clone(&link),
            state: Arc::clone(&state),
            bus: parts.bus,
            sync_handle,
            local: Arc::clone(&parts.local),
            shared: Arc::clone(&shared),
        };
        supervisor.start("events of the cluster", |shutdown| receiver.run(shutdown));
        supervisor.start("rules of the cluster", |shutdown| gate.write(shutdown));
        let heartbeat = heartbeat::Heartbeat::new(shared, parts.local);
        supervisor.start("members of the cluster", |shutdown| heartbeat.run(shutdown));
        supervisor.start("lease of the cluster", |shutdown| lease::maintain(link, state, shutdown));
    }
}
