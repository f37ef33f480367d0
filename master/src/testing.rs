//! Parts of a master for unit tests: in a temporary directory, without sockets.

use std::sync::Arc;
use std::time::Duration;

use brine_bus::store::{BlockingStore, Store, Table};
use brine_bus::{Filter, Start, Subscription};
use brine_config::MasterConfig;
use brine_ids::{Jid, MinionId};
use brine_mask::Mask;
use brine_runtime::executors::{Blocking, Executors, MayBlock};
use brine_runtime::supervisor::Background;
use brine_value::{Map, Value, map};
use brine_zmtp::Publisher;
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::admission::identity::Identity;
use crate::admission::sessions::Sessions;
use crate::events::Events;
use crate::events::tests::in_memory;
use crate::facts::Facts;
use crate::jobs::batches::{BatchRequest, Batches, State};
use crate::jobs::{Jobs, PublishStream};
use crate::keys::{KeyState, KeyStore, tests::PEM};
use crate::large_returns::LargeReturns;
use crate::mines::Mines;
use crate::minion_data::MinionData;
use crate::sealed_arguments::SealedArguments;
use crate::sealing::Sealing;
use crate::storage::Storage;

/// The common base of all parts. A method creates each part from those that it needs.
pub(crate) struct Fixture {
    pub config: Arc<MasterConfig>,
    pub storage: Blocking<Storage>,
    pub events: Events,
    pub executors: Executors,
    store: BlockingStore,
    sealing: Sealing,
    pub sealed_arguments: Arc<SealedArguments>,
    _progress: watch::Sender<u64>,
    _directory: tempfile::TempDir,
}

impl Fixture {
    /// Creates the base with accepted minions, and changes to the configuration.
    pub fn new(minions: &[&str], change: impl FnOnce(&mut MasterConfig)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().display().to_string();
        let mut config = MasterConfig::load(directory.path(), &map! {"root_dir" => root}).unwrap().config;
        config.pki_dir = directory.path().join("pki");
        config.cachedir = directory.path().join("cache");
        config.id = Some("m_master".into());
        change(&mut config);
        let config = Arc::new(config);
        let (store, _) = Store::open(&directory.path().join("store"), 1 << 20).unwrap();
        let store = store.blocking(&MayBlock::on_dedicated_thread(Handle::current()));
        let options = brine_returners::Options::new(&Map::new(), Some(store.clone()));
        let keys = KeyStore::open(&config.pki_dir).unwrap();
        for id in minions {
            keys.set(&id.parse().unwrap(), KeyState::Accepted, PEM).unwrap();
        }
        let sealing = Sealing::open(&config.pki_dir).unwrap();
        let sealed_arguments =
            Arc::new(SealedArguments::new(store.clone(), sealing.clone(), Duration::from_secs(60), false));
        let storage = Storage {
            keys: Arc::new(keys),
            files: crate::file_roots(&config).unwrap(),
            minion_data: MinionData::new(store.clone(), config.minion_data_cache),
            mines: Mines::new(store.clone(), config.minion_data_cache || config.enforce_mine_cache),
            queues: crate::queues::Queues::new(store.clone(), sealing.clone()),
            banks: crate::cache_banks::Banks::new(store.clone(), None),
            job_cache: brine_returners::open("local_cache", &options).unwrap().into(),
            tokens: brine_auth::TokenStore::new(store.clone(), None),
            large_returns: LargeReturns::open(&store, 1 << 20, false).unwrap(),
            sealed_arguments: Arc::clone(&sealed_arguments),
        };
        let executors = Executors::new(2);
        let storage = Blocking::new(storage, executors.disk.clone());
        let (events, progress) = in_memory();
        Fixture {
            config,
            storage,
            events,
            executors,
            store,
            sealing,
            sealed_arguments,
            _progress: progress,
            _directory: directory,
        }
    }

    /// Stores the grains of a minion.
    pub async fn set_grains(&self, id: &str, grains: Map) {
        let id: MinionId = id.parse().unwrap();
        let ticket = self.storage.run(move |storage| storage.minion_data.put(&id, grains, Some(Map::new())));
        ticket.await.unwrap().durable().await.unwrap();
    }

    /// Subscribes to all events from now on.
    pub fn subscribe(&self) -> Subscription {
        self.events.bus.subscribe(Filter::All, Start::Now).unwrap()
    }

    pub fn facts(&self) -> Arc<Facts> {
        Arc::new(Facts::new(Arc::clone(&self.config), self.storage.clone(), Publisher::new()))
    }

    pub fn jobs(&self) -> Arc<Jobs> {
        let stream = PublishStream::new(
            Arc::clone(&self.config),
            crate::ciphers(&self.config.ciphers).unwrap().into(),
            (Arc::new(Identity::load_or_generate(&self.config).unwrap()), Arc::new(Sessions::new())),
            Publisher::new(),
            self.executors.crypto.clone(),
            self.events.clone(),
        );
        Arc::new(Jobs::new(
            Arc::clone(&self.config),
            self.events.clone(),
            self.facts(),
            Arc::new(stream),
            Batches::open(&self.store, self.sealing.clone()).unwrap(),
            self.storage.clone(),
            (Mask::default(), Arc::clone(&self.sealed_arguments)),
            Background::default(),
        ))
    }

    /// Stores a batch, and returns the rows in the store and the arguments of the batches that are read from it.
    pub async fn stored_batch(&self, wanted: BatchRequest) -> (Vec<Vec<u8>>, Vec<Vec<Value>>) {
        let open = || Batches::open(&self.store, self.sealing.clone()).unwrap();
        let state = State::new(&Jid::new(), wanted, vec!["web1".to_owned()], 1);
        open().store(&state).durable().await.unwrap();
        let rows = self.store.scan(Table("batches"), b"", usize::MAX).unwrap();
        let read = open().active().into_iter().map(|state| state.request.arg).collect();
        (rows.into_iter().map(|(_, value)| value).collect(), read)
    }
}
