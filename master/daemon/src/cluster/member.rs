//! This master as a member of a cluster.

use std::sync::Arc;
use std::time::Duration;

use brine_bus::Bus;
use brine_bus::store::{BlockingStore, StoreError};
use brine_cluster::{KeyPairError, Link, Local, Member, NotPublished, Parts, Pending, Settings};
use brine_config::{InvalidOption, MasterConfig};
use brine_crypt::{Cipher, Session};
use brine_master_access::admission::identity::{Identity, own_id};
use brine_master_access::admission::publish_keys::PublishKeys;
use brine_master_access::admission::sessions::Sessions;
use brine_master_facts::Facts;
use brine_master_jobs::Jobs;
use brine_master_store::keys::KeyStore;
use brine_master_store::return_events;
use brine_master_store::shared::{OptionalGate, OptionalShared};
use brine_master_store::storage::Storage;
use brine_runtime::executors::{Blocking, Executor};
use brine_runtime::supervisor::Supervisor;
use brine_system::files::FileError;
use brine_value::Map;
use tokio::sync::watch;

use super::OPTION;
use super::keys::Keys;
use crate::StartError;

/// The tables of the store that are replicated to all members.
const TABLES: &[&str] = &["minion_data", "mine", "auth_tokens", "cache"];

/// Parses the option `cluster`.
pub(crate) fn settings(config: &MasterConfig) -> Result<Option<Settings>, StartError> {
    let id = own_id(config)?;
    let catch_up = Duration::from_secs(config.publish_catch_up);
    Settings::read(&config.cluster, id.as_str(), &config.pki_dir, catch_up)
        .map_err(|error| InvalidOption { option: OPTION, reason: error.to_string() }.into())
}

/// Connects to the cluster of the configuration and adopts its key pair, before the master reads its own.
pub(crate) async fn connect(config: &MasterConfig) -> Result<Option<Arc<Link>>, StartError> {
    let refused = |reason: String| StartError::from(InvalidOption { option: OPTION, reason });
    let Some(settings) = settings(config)? else { return Ok(None) };
    let link = Link::open(settings).await.map_err(|error| refused(error.to_string()))?;
    // An error of the key is reported later, when the master reads the key.
    let create = || Identity::load_or_generate(config).map(drop).or(Ok::<(), FileError>(()));
    match brine_cluster::share_key_pair(&link, &config.pki_dir, create).await {
        Ok(()) => Ok(Some(Arc::new(link))),
        Err(KeyPairError::File(error)) => Err(error.into()),
        Err(error) => Err(refused(error.to_string())),
    }
}

/// The membership of this master.
pub(crate) struct Membership(Member);

impl Membership {
    /// Opens the membership.
    pub async fn open(
        link: Arc<Link>,
        (jobs, sessions, keys): (&Arc<Jobs>, &Arc<Sessions>, &Arc<KeyStore>),
        (facts, storage): (&Arc<Facts>, &Blocking<Storage>),
        (bus, store, disk): (&Bus, &BlockingStore, &Executor),
    ) -> Result<Self, StoreError> {
        let parts = Parts {
            local: Arc::new(MasterParts {
                jobs: Arc::clone(jobs),
                sessions: Arc::clone(sessions),
                facts: Arc::clone(facts),
                storage: storage.clone(),
            }),
            bus: bus.clone(),
            store: store.clone(),
            disk: disk.clone(),
            keys: Arc::new(Keys(Arc::clone(keys))),
            tables: TABLES,
        };
        Member::open(link, parts).await.map(Membership)
    }

    /// Returns the gate of the reactor.
    pub fn gate(&self) -> OptionalGate {
        Some(self.0.gate())
    }

    /// Returns the values that members share.
    pub fn shared(&self) -> OptionalShared {
        Some(self.0.shared())
    }

    /// Starts the tasks of the membership.
    pub fn start(self, supervisor: &mut Supervisor) {
        self.0.start(supervisor);
    }
}

/// The parts of this master that implement [`Local`] for the cluster.
struct MasterParts {
    jobs: Arc<Jobs>,
    sessions: Arc<Sessions>,
    facts: Arc<Facts>,
    storage: Blocking<Storage>,
}

impl Local for MasterParts {
    fn publish(&self, load: Map) -> Pending<'_, Result<(), NotPublished>> {
        Box::pin(async { self.jobs.publish_of_member(load).await.map_err(|error| NotPublished(error.into())) })
    }

    fn sealed<'a>(&'a self, reference: &'a str) -> Pending<'a, Option<Vec<u8>>> {
        let reference = reference.to_owned();
        Box::pin(async move {
            self.storage.run(move |storage| storage.sealed_arguments.packed(&reference)).await.ok().flatten()
        })
    }

    fn store_sealed<'a>(&'a self, reference: &'a str, arguments: Vec<u8>) -> Pending<'a, ()> {
        let reference = reference.to_owned();
        Box::pin(async move {
            let stored = self.storage.run(move |storage| {
                storage.sealed_arguments.put(&reference, &arguments).map(brine_bus::store::Ticket::durable_blocking)
            });
            if let Ok(Some(Err(error))) = stored.await {
                tracing::error!(%error, "storing the masked arguments of a job of another master failed: minions here do not get it");
            }
        })
    }

    fn job_published(&self, number: u64) {
        self.jobs.job_published(number);
    }

    fn publish_keys(&self) -> [String; 3] {
        let keys = self.sessions.share();
        [keys.cbc, keys.gcm, keys.seed].map(|key| key.key_text())
    }

    fn publish_keys_changed(&self) -> watch::Receiver<()> {
        self.sessions.rotated()
    }

    fn adopt_publish_keys(&self, [cbc, gcm, seed]: [String; 3]) -> Pending<'_, ()> {
        Box::pin(async move {
            let read = |text: &str, cipher| {
                Session::from_key_text(text).ok().filter(|session: &Session| session.cipher() == cipher)
            };
            let (Some(cbc), Some(gcm), Some(seed)) =
                (read(&cbc, Cipher::AesCbcHmac), read(&gcm, Cipher::Aes256Gcm), read(&seed, Cipher::Aes256Gcm))
            else {
                return tracing::error!("the publish keys of the cluster are invalid");
            };
            self.jobs.stream.adopt_keys(PublishKeys::of_cluster(cbc, gcm, seed)).await;
        })
    }

    fn connected_minions(&self) -> Vec<u8> {
        self.facts.packed_present()
    }

    fn members_received(&self, members: Vec<(String, Vec<u8>)>) {
        self.facts.set_present_elsewhere(&members);
    }

    fn large_return<'a>(&'a self, jid: &'a str, id: &'a str) -> Pending<'a, Option<Vec<u8>>> {
        let (job, minion) = (jid.to_owned(), id.to_owned());
        Box::pin(async move {
            match self.storage.run(move |storage| storage.large_returns.outgoing(&job, &minion)).await {
                Ok(Ok(whole)) => whole,
                Ok(Err(error)) => {
                    tracing::error!(jid, minion = id, %error, "reading a large return failed: it stays on this master");
                    None
                }
                // At shutdown: the event is forwarded again after the next start.
                Err(_) => None,
            }
        })
    }

    fn large_return_sent<'a>(&'a self, jid: &'a str, id: &'a str) -> Pending<'a, ()> {
        let (jid, id) = (jid.to_owned(), id.to_owned());
        Box::pin(async move { _ = self.storage.run(move |storage| storage.large_returns.sent(&jid, &id)).await })
    }

    fn store_large_return<'a>(&'a self, jid: &'a str, id: &'a str, whole: Vec<u8>) -> Pending<'a, bool> {
        let (job, minion) = (jid.to_owned(), id.to_owned());
        Box::pin(async move {
            let store = move |storage: &Storage| return_events::store_of_member(storage, &job, &minion, &whole);
            match self.storage.run(store).await {
                Ok(Ok(is_stored)) => is_stored,
                Ok(Err(error)) => {
                    tracing::error!(jid, minion = id, %error, "storing a large return of another master failed");
                    false
                }
                Err(_) => false,
            }
        })
    }
}
