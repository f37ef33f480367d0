//! The daemon of a master: connects the crates of `master/` around one event bus, and serves minions and tools.
//!
//! [`Master::start`] follows the diagram in ARCHITECTURE.md: first the bus and the storage, then the parts in the order
//! of their dependencies, the subscribers of the bus, and finally the sockets. Parts do not notify each other; they
//! publish events.
//!
//! | part | owns |
//! |---|---|
//! | `requests`, `peers` | the requests of minions and tools, and calls of minions to others |
//! | `reactions` | the reactor, and what its reactions do |
//! | `cluster` | the membership in a cluster: keys, data and events of other masters |
//! | `listeners`, `tasks` | the sockets; the subscribers of the bus and periodic work |
//! | `check` | findings about the configuration before a start |

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

mod cache_mirror;
mod check;
mod cluster;
mod engines;
mod file_events;
mod listeners;
mod maintenance;
pub mod metrics;
mod metrics_server;
mod peers;
mod pushed_files;
mod reactions;
mod requests;
mod salt_clients;
mod schedule;
mod state_errors;
mod stats;
mod tasks;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use brine_bus::store::{BlockingStore, Opened, Store, StoreError};
use brine_bus::{Bus, BusLimits, JournalLimits};
use brine_config::{InvalidOption, MasterConfig};
use brine_crypt::{Cipher, CryptError};
use brine_master_access::access::{Access, LocalKeys};
use brine_master_access::admission::identity::{Identity, IdentityError, own_id};
use brine_master_access::admission::sessions::Sessions;
use brine_master_access::admission::{Admission, Secrets, ciphers};
use brine_master_calls::job_files::JobFiles;
use brine_master_calls::{MasterModules, ReactorHandle, RunnerCalls, Services, masking};
use brine_master_custom::{CustomModules, HostFunctions, returners::CustomReturners, stores};
use brine_master_facts::{Facts, pillars::Pillars};
use brine_master_jobs::batches::Batches;
use brine_master_jobs::{Jobs, PublishStream};
use brine_master_store::cache_banks::Banks;
use brine_master_store::events::Events;
use brine_master_store::job_cache::JobCache;
use brine_master_store::keys::KeyStore;
use brine_master_store::large_returns::LargeReturns;
use brine_master_store::mines::Mines;
use brine_master_store::minion_data::MinionData;
use brine_master_store::plans::Plans;
use brine_master_store::queues::Queues;
use brine_master_store::return_events::ReturnEvents;
use brine_master_store::sealed_arguments::SealedArguments;
use brine_master_store::sealing::Sealing;
use brine_master_store::storage::{Storage, file_roots};
use brine_returners::{Returner, ReturnerError};
use brine_runtime::executors::{Blocking, Executors};
use brine_runtime::supervisor::{Background, Supervisor};
use brine_system::files::{self, FileError};
use brine_zmtp::{Bounds, Framing, Limits, Publisher, Router, TransportError};
use futures::future::BoxFuture;
use tokio::sync::watch;

pub use check::{check, check_options};
use cluster::Membership;
use listeners::Listeners;
pub use maintenance::ROTATE_FILE;
use requests::{RequestHandler, Requests};

/// The size of the store's cache, in bytes.
const STORE_CACHE: usize = 4 << 20;
/// The maximum duration of a stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(4);

/// The error of a master that cannot start. The message also says what to do.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A directory or file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The master's key cannot be used.
    #[error(transparent)]
    Key(#[from] CryptError),
    /// Listening on a port or socket failed.
    #[error("cannot listen: {0}")]
    Listen(#[from] TransportError),
    /// A returner cannot be used.
    #[error("{0}")]
    Returner(#[from] ReturnerError),
    /// The configuration is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The value of an option is invalid.
    #[error(transparent)]
    Option(#[from] InvalidOption),
    /// The master's key pair cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

/// A running master. Dropping it stops it at once; [`Master::stop`] shuts it down in order.
pub struct Master {
    store: Store,
    bus: Bus,
    executors: Executors,
    /// Short-lived tasks, such as batches.
    background: Background,
    parts: Supervisor,
    publish_port: u16,
    ret_port: u16,
}

impl Master {
    /// Starts a master. It serves when this returns. `functions` are the execution functions in its templates, and `modules` its runner and wheel modules. If `stop`
    /// completes first, returns `None`. If the master does not start, its store is closed cleanly.
    pub fn start(
        config: MasterConfig,
        functions: Option<Arc<dyn HostFunctions>>,
        modules: MasterModules,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> BoxFuture<'static, Result<Option<Self>, StartError>> {
        // Boxed, because the code of a future is compiled by the crate that polls it.
        Box::pin(async move {
            let opened = OnceLock::new();
            let started = tokio::select! {
                started = Box::pin(Self::start_parts(config, (functions, modules), &opened)) => started.map(Some),
                () = stop => Ok(None),
            };
            if let (Ok(None) | Err(_), Some(store)) = (&started, opened.get()) {
                close_store(store).await;
            }
            started
        })
    }

    async fn start_parts(
        config: MasterConfig,
        (functions, modules): (Option<Arc<dyn HostFunctions>>, MasterModules),
        opened: &OnceLock<Store>,
    ) -> Result<Self, StartError> {
        metrics::register();
        // From here on, setting the clock forward does not age stored jobs.
        _ = brine_clock::now_for_age(config.job_lifetime());
        let config = Arc::new(config);
        let executors = Executors::new(config.runner_threads);
        check::report(&config, &executors).await?;
        let mut config = Arc::unwrap_or_clone(config);
        // The sockets are bound first: a second master must not touch the files of the first one.
        for directory in [&config.pki_dir, &config.cachedir, &config.sock_dir] {
            files::create_private_dir(directory)?;
        }
        // Salt 3008's runner and wheel clients write there, and expect that the master has created the directory.
        files::create_private_dir(config.cachedir.join("proc"))?;
        let sockets = Listeners::bind(&mut config).await?;
        let (publish_port, ret_port) = (config.publish_port, config.ret_port);
        let config = Arc::new(config);
        let cluster = Box::pin(cluster::connect(&config)).await?;

        // The bus and the storage.
        let (store, bus) = open_bus(&config, &executors, opened).await?;
        let own_store = Store::clone(&store);
        let (cache_progress, cached) = watch::channel(0);
        let events = Events::new(bus.clone(), cached);
        let options = brine_returners::Options::new(&config.opts, Some(store.clone()));
        let job_cache: Arc<dyn Returner> = brine_returners::open(&config.master_job_cache, &options)?.into();
        let custom = Arc::new(CustomModules::new(&config, functions.clone(), modules.names()));
        let driver = stores::CacheDriver::open(&config, &custom);
        let custom_tokens = stores::tokens(&config, &custom);
        let has_custom_tokens = custom_tokens.is_some();
        let token_files = config.salt_client_files.then(|| config.cachedir.join("tokens"));
        let sealing = Sealing::open(&config.pki_dir)?;
        let catch_up = Duration::from_secs(config.publish_catch_up);
        let is_member = !config.cluster.is_empty();
        let sealed_arguments = SealedArguments::new(store.clone(), sealing.clone(), catch_up, is_member);
        let sealed_arguments = Arc::new(sealed_arguments);
        let mask = masking::mask(&config, functions.clone(), modules)?;
        let storage = Storage {
            keys: Arc::new(KeyStore::open(&config.pki_dir)?),
            files: file_roots(&config)?,
            minion_data: MinionData::new(store.clone(), config.minion_data_cache),
            mines: Mines::new(store.clone(), config.minion_data_cache || config.enforce_mine_cache),
            queues: Queues::new(store.clone(), sealing.clone()),
            plans: Plans::new(store.clone()),
            banks: Banks::new(store.clone(), driver.clone()),
            job_cache: Arc::clone(&job_cache),
            large_returns: LargeReturns::open(&store, config.large_returns_size << 20, !config.cluster.is_empty())?,
            tokens: brine_auth::TokenStore::new(store.clone(), custom_tokens).with_files(token_files.as_deref()),
            sealed_arguments: Arc::clone(&sealed_arguments),
        };
        let has_git = storage.files.has_git();
        let keys = Arc::clone(&storage.keys);
        let storage = Blocking::new(storage, executors.disk.clone());

        // The parts, each built from earlier ones.
        let id = own_id(&config)?;
        let framing = Framing::of_transport(config.transport.is_tcp());
        let (publisher, background) = (Publisher::with_framing(framing), Background::default());
        let facts = Arc::new(Facts::new(Arc::clone(&config), storage.clone(), publisher.clone()));
        let ciphers: Arc<[Cipher]> = ciphers(&config.ciphers)?.into();
        let (identity, sessions) = (Arc::new(Identity::load_or_generate(&config)?), Arc::new(Sessions::new()));
        let stream = Arc::new(PublishStream::new(
            Arc::clone(&config),
            Arc::clone(&ciphers),
            (Arc::clone(&identity), Arc::clone(&sessions)),
            publisher.clone(),
            executors.crypto.clone(),
            events.clone(),
        ));
        let admission = Arc::new(Admission::new(
            Arc::clone(&config),
            ciphers,
            storage.clone(),
            events.clone(),
            Secrets { identity, sessions },
        ));
        let batches = store.clone();
        let batches = executors.disk.run(move |_| Batches::open(&batches, sealing));
        let jobs = Arc::new(Jobs::new(
            Arc::clone(&config),
            events.clone(),
            Arc::clone(&facts),
            stream,
            batches.await.unwrap_or(Err(StoreError::Closed))?,
            storage.clone(),
            (mask.clone(), sealed_arguments),
            background.clone(),
        ));
        let cluster = match cluster {
            Some(link) => {
                let parts = (&jobs, admission.sessions(), &keys);
                let of_minions = (&facts, &storage);
                Some(Box::pin(Membership::open(link, parts, of_minions, (&bus, &store, &executors.disk))).await?)
            }
            None => None,
        };
        let shared = cluster.as_ref().and_then(Membership::shared);
        jobs.join_cluster(shared.clone());
        let pillars = Arc::new(Pillars::new(
            Arc::clone(&config),
            storage.clone(),
            executors.render.clone(),
            events.clone(),
            functions.clone(),
        ));
        let returns = ReturnEvents::new(Arc::clone(&config), storage.clone(), id.clone());
        let access = Access::new(
            Arc::clone(&config),
            storage.clone(),
            &executors,
            events.clone(),
            Arc::clone(&facts),
            LocalKeys::open(&config)?,
            functions.clone(),
        )?;
        let job_files = Arc::new(JobFiles::new(&config.cachedir, brine_fileserver::hash_kind(&config.opts)));
        let services = Services {
            job_files,
            id: id.clone(),
            config: Arc::clone(&config),
            bus: bus.clone(),
            events: events.clone(),
            executors: executors.clone(),
            storage,
            publisher: publisher.clone(),
            access: Arc::new(access.with_custom_tokens(has_custom_tokens)),
            admission,
            facts: Arc::clone(&facts),
            jobs: Arc::clone(&jobs),
            activity: brine_master_jobs::activity::Activity::default(),
            pillars,
            reactor: ReactorHandle::default(),
            gate: cluster.as_ref().and_then(Membership::gate),
            cluster: shared,
            functions,
            mask,
        };
        let calls = RunnerCalls::new(services, returns.clone(), custom, modules);
        let requests = Requests::new(Arc::clone(&calls), returns);
        let (journal, shared_facts) = (Arc::clone(&jobs), Arc::clone(&facts));
        let read = executors.disk.run(move |thread| {
            shared_facts.syndics.read(thread);
            journal.read_journal(thread);
        });
        _ = read.await;

        // The subscribers of the bus.
        brine_python::warn_about_unused(&config.module_dirs, &config.extension_modules());
        let custom = CustomReturners::new(&config, calls.services.functions.clone());
        let mut parts = Supervisor::new();
        if config.job_cache {
            let (runner_returns, end_times) = (config.runner_returns, config.job_cache_store_endtime);
            let cache = JobCache { cache: job_cache, id, runner_returns, end_times };
            tasks::start_job_cache(&mut parts, &bus, &executors, cache, cache_progress)?;
        }
        if let Some(name) = config.ext_job_cache.as_deref().filter(|name| !name.is_empty()) {
            let returner = custom.opened(&executors, name, &options).await?;
            if returner.stores_jobs() {
                tasks::start_ext_job_cache(&mut parts, &bus, &executors, name, returner)?;
            } else {
                tracing::warn!(returner = name, "option 'ext_job_cache': the returner stores no jobs, only returns");
            }
        }
        for name in &config.event_return {
            let returner = custom.opened(&executors, name, &options).await?;
            if !returner.stores_events() {
                tracing::error!(
                    returner = name,
                    "option 'event_return': the returner stores no events: choose another one"
                );
                continue;
            }
            tasks::start_event_returner(&mut parts, &bus, &executors, &config, name, returner)?;
        }
        if let Some(driver) = driver {
            tasks::start_cache_mirror(&mut parts, &calls, &store, &driver);
        }
        reactions::start(&calls, store, &mut parts).await?;
        tasks::start_tasks(&mut parts, &calls, &background, has_git);

        // The sockets: from here on, others are served.
        let Listeners { publish, request, event_sockets, feed, metrics } = sockets;
        if let Some(listener) = metrics {
            let (bus, disk) = (bus.clone(), executors.disk.clone());
            parts.start("metrics server", |shutdown| metrics_server::serve(listener, bus, disk, shutdown));
        }
        let frames = Limits { message: config.max_message_size, ..Limits::default() };
        let event_bus = bus.clone();
        parts.start("event sockets", |shutdown| event_sockets.serve(event_bus, shutdown));
        let (publish_bounds, fed) = (Bounds::new(listeners::allowance(&config)), publisher.clone());
        let bounds = publish_bounds.clone();
        parts.start("publish port", |shutdown| publisher.serve(publish, publish_bounds, shutdown));
        parts.start("publish feed", |shutdown| listeners::feed_publisher(feed, fed, frames, shutdown));
        let (handler, workers) = (Arc::new(RequestHandler(requests)), config.worker_threads);
        let frames = Limits { framing, ..frames };
        parts.start("request port", |shutdown| Router::serve(request, handler, workers, frames, bounds, shutdown));
        if let Some(member) = cluster {
            member.start(&mut parts);
        }
        match &calls.services.cluster {
            Some(shared) => {
                let (calls, shared) = (Arc::clone(&calls), Arc::clone(shared));
                parts.start_restarting("work of the cluster", move |shutdown| {
                    cluster::follow_members(Arc::clone(&calls), Arc::clone(&shared), shutdown)
                });
            }
            None => jobs.resume_batches(),
        }
        tracing::info!(publish_port, ret_port, "master is ready");
        Ok(Master { store: own_store, bus, executors, background, parts, publish_port, ret_port })
    }

    /// Completes when a part that cannot be restarted has failed: the process should exit.
    pub async fn failed(&self) {
        self.parts.failed().cancelled().await;
    }

    /// Returns the publish port.
    pub fn publish_port(&self) -> u16 {
        self.publish_port
    }

    /// Returns the request port.
    pub fn ret_port(&self) -> u16 {
        self.ret_port
    }

    /// Returns the event bus.
    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// Stops the parts in reverse order of their start (sockets, reactor, job cache), then flushes the bus to disk and
    /// closes the store. Takes at most [`STOP_TIMEOUT`], even if functions and templates are still running.
    pub async fn stop(self) {
        self.parts.stop(STOP_TIMEOUT / 2).await;
        self.background.stop(STOP_TIMEOUT / 4).await;
        self.executors.stop();
        if tokio::time::timeout(STOP_TIMEOUT / 8, self.bus.close()).await.is_err() {
            tracing::error!("closing the event bus timed out: the last events may not be on disk");
        }
        // Functions and templates that still run, and tasks of the runtime, have clones of the store.
        close_store(&self.store).await;
    }
}

/// Closes the store, so that the next start need not repair it.
async fn close_store(store: &Store) {
    if tokio::time::timeout(STOP_TIMEOUT / 8, store.close()).await.is_err() {
        tracing::warn!(store = %store.path().display(), "closing the store timed out, because it is still being read: the next start repairs it");
    }
}

/// Opens the store and the bus with its journal.
async fn open_bus(
    config: &MasterConfig,
    executors: &Executors,
    slot: &OnceLock<Store>,
) -> Result<(BlockingStore, Bus), StartError> {
    let path = config.store_path();
    let open = executors.disk.run(move |thread| {
        let (store, opened) = Store::open(&path, STORE_CACHE)?;
        Ok::<_, StoreError>((store.blocking(thread), opened))
    });
    let (store, opened) = open.await.unwrap_or(Err(StoreError::Closed))?;
    _ = slot.set(Store::clone(&store));
    log_opened(&store, opened);
    let limits = BusLimits { event: config.max_event_size, ..BusLimits::default() };
    let journal = JournalLimits {
        age: Duration::from_secs(config.event_journal_hours * 3600),
        bytes: config.event_journal_size << 20,
    };
    let bus = Bus::with_journal(limits, Store::clone(&store), opened, journal, &executors.disk).await?;
    Ok((store, bus))
}

fn log_opened(store: &Store, opened: Opened) {
    match opened {
        // The store itself reports an empty file.
        Opened::New | Opened::Clean | Opened::Emptied => {}
        Opened::Repaired => {
            tracing::warn!(store = %store.path().display(), "store repaired after an unclean stop");
        }
        Opened::Replaced => {
            tracing::error!(store = %store.path().display(), "store was damaged: earlier events and jobs are in the file beside it");
        }
    }
}
