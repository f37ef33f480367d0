//! The storage and the bus of a master for unit tests: in a temporary directory, without sockets.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use brine_bus::store::{BlockingStore, Store};
use brine_bus::{Bus, BusLimits, Filter, Start, Subscription};
use brine_config::MasterConfig;
use brine_ids::MinionId;
use brine_master_store::events::Events;
use brine_master_store::keys::{KeyState, KeyStore};
use brine_master_store::large_returns::LargeReturns;
use brine_master_store::mines::Mines;
use brine_master_store::minion_data::MinionData;
use brine_master_store::sealed_arguments::SealedArguments;
use brine_master_store::sealing::Sealing;
use brine_master_store::storage::Storage;
use brine_runtime::executors::{Blocking, Executors, MayBlock};
use brine_value::{Map, map};
use tokio::runtime::Handle;
use tokio::sync::watch;

/// The public key of the minions of a fixture.
pub const PEM: &str = include_str!("../../store/src/keys/testdata/one.pub");

/// What all parts are created from.
pub struct Fixture {
    /// The configuration.
    pub config: Arc<MasterConfig>,
    /// The storage.
    pub storage: Blocking<Storage>,
    /// A bus in memory.
    pub events: Events,
    /// Executors with two threads for jobs.
    pub executors: Executors,
    /// The store.
    pub store: BlockingStore,
    /// The key of sealed arguments.
    pub sealing: Sealing,
    /// The sealed arguments in the storage.
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
            files: brine_master_store::storage::file_roots(&config).unwrap(),
            minion_data: MinionData::new(store.clone(), config.minion_data_cache),
            mines: Mines::new(store.clone(), config.minion_data_cache || config.enforce_mine_cache),
            queues: brine_master_store::queues::Queues::new(store.clone(), sealing.clone()),
            plans: brine_master_store::plans::Plans::new(store.clone()),
            banks: brine_master_store::cache_banks::Banks::new(store.clone(), None),
            job_cache: brine_returners::open("local_cache", &options).unwrap().into(),
            tokens: brine_auth::TokenStore::new(store.clone(), None),
            large_returns: LargeReturns::open(&store, 1 << 20, false).unwrap(),
            sealed_arguments: Arc::clone(&sealed_arguments),
        };
        let executors = Executors::new(2);
        let storage = Blocking::new(storage, executors.disk.clone());
        let (progress, cached) = watch::channel(0);
        let events = Events::new(Bus::in_memory(BusLimits::default()), cached);
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
}
