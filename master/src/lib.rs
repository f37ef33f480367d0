//! The Brine master: requests, publishes, keys, jobs and runners around one event bus.
//!
//! [`Master::start`] reads like the drawing in ARCHITECTURE.md: the bus, its subscribers, then the
//! sockets. No part calls another to tell it that something happened; it fires an event.

mod access;
mod auth;
mod auth_limit;
pub mod autosign;
mod batches;
mod calls;
mod catch_up;
mod causes;
mod check;
mod disk;
mod file_events;
mod host;
mod identity;
mod job_cache;
pub mod keys;
mod large_returns;
mod maintenance;
pub mod metrics;
mod metrics_server;
mod mine;
mod minion_data;
mod orchestrate;
mod peer;
mod pillar;
mod presence;
mod publish;
mod reactions;
mod received;
mod requests;
pub mod runner;
mod schedule;
mod sessions;
mod state_errors;
mod stats;
pub mod wheel;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use brine_bus::store::{Opened, Store, StoreError};
use brine_bus::{Bus, BusError, BusLimits, EventSockets, Filter, JournalLimits, SocketNames, Start};
use brine_config::MasterConfig;
use brine_crypt::{Cipher, CryptError, token};
use brine_function::Registry;
use brine_ids::{InvalidMinionId, MinionId};
use brine_returners::{Returner, ReturnerError};
use brine_runtime::executors::{Blocking, Executors};
use brine_runtime::supervisor::{Background, Supervisor};
use brine_sls::pillar::PillarSource;
use brine_system::files::{self, FileError};
use brine_text::glob::GlobSet;
use brine_value::Map;
use brine_wire::TOPIC_BROADCAST;
use brine_zmtp::{Allowance, Bounds, Endpoint, Limits, Listener, Publisher, Pull, Router, TransportError};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

pub use calls::Kind;
pub use check::check;
pub use host::{HostFunctions, Orchestrated};
pub use maintenance::ROTATE_FILE;

/// Bytes of the store that are kept in memory.
const STORE_CACHE: usize = 4 << 20;
/// The socket that feeds the publish port.
const PUBLISH_PULL: &str = "publish_pull.ipc";
/// The longest that stopping may take.
const STOP_TIME: Duration = Duration::from_secs(4);

/// Why a master cannot start. Each is one sentence that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A folder or file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The master's key cannot be used.
    #[error(transparent)]
    Key(#[from] CryptError),
    /// A port or socket cannot be listened on.
    #[error("cannot listen: {0}")]
    Listen(#[from] TransportError),
    /// A returner cannot be used.
    #[error("{0}")]
    Returner(#[from] ReturnerError),
    /// The configuration is refused before anything is opened.
    #[error("{0}")]
    Invalid(String),
    /// An option has a value that cannot be.
    #[error("option '{option}': {reason}")]
    Config {
        /// Which option.
        option: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

/// What all parts of a master share.
pub struct Shared {
    pub(crate) id: MinionId,
    pub(crate) config: Arc<MasterConfig>,
    pub(crate) bus: Bus,
    pub(crate) executors: Executors,
    pub(crate) background: Background,
    pub(crate) disk: Blocking<disk::Disk>,
    pub(crate) identity: identity::Identity,
    pub(crate) ciphers: Vec<Cipher>,
    pub(crate) access: access::Access,
    pub(crate) sessions: sessions::Sessions,
    pub(crate) recent_publishes: catch_up::RecentPublishes,
    pub(crate) auth_limit: auth_limit::AuthLimit,
    pub(crate) publisher: Publisher,
    /// Closes when the last publish is out.
    last_publish: parking_lot::Mutex<Option<oneshot::Receiver<()>>>,
    pub(crate) presence: presence::Presence,
    pub(crate) pillar_source: PillarSource,
    pub(crate) pillar_cache: pillar::PillarCache,
    pub(crate) runners: Registry<runner::RunnerContext>,
    pub(crate) wheels: Registry<wheel::WheelContext>,
    pub(crate) causes: causes::Causes,
    pub(crate) stats: stats::Stats,
    pub(crate) batches: batches::Batches,
    pub(crate) reactor: reactions::MasterReactor,
    pub(crate) functions: Option<Arc<dyn HostFunctions>>,
    jobs_fired: AtomicU64,
    jobs_kept: watch::Receiver<u64>,
}

impl Shared {
    /// Fires an event of the master's own. That it cannot be fired is logged: its cause goes on.
    pub(crate) async fn fire(&self, tag: &str, body: &Map) {
        if let Err(error) = self.bus.fire(tag, body).await {
            tracing::error!(tag, %error, "an event could not be fired");
        }
    }

    /// Fires an event about a job, which the job cache will keep.
    pub(crate) async fn fire_job(&self, tag: &str, body: &Map) -> Result<u64, BusError> {
        let seq = self.bus.fire(tag, body).await?;
        self.job_published(seq);
        Ok(seq)
    }

    /// Takes note that the event of this number is one that the job cache keeps.
    pub(crate) fn job_published(&self, seq: u64) {
        self.jobs_fired.fetch_max(seq, Ordering::Relaxed);
    }

    /// Waits until the job cache has kept all that was fired so far, for this long at most.
    pub(crate) async fn jobs_caught_up(&self, timeout: Duration) {
        let fired = self.jobs_fired.load(Ordering::Relaxed);
        let mut kept = self.jobs_kept.clone();
        let caught_up = kept.wait_for(|kept| *kept >= fired);
        if tokio::time::timeout(timeout, caught_up).await.is_err() {
            tracing::warn!(fired, "the job cache is behind: what it says is not the newest");
        }
    }
}

/// A running master. Dropping it stops it at once; [`Master::stop`] does so in order.
pub struct Master {
    shared: Arc<Shared>,
    parts: Supervisor,
    publish_port: u16,
    ret_port: u16,
}

impl Master {
    /// Starts a master. It serves when this returns. `functions` is what templates on it reach beside runner
    /// and wheel functions.
    pub async fn start(config: MasterConfig, functions: Option<Arc<dyn HostFunctions>>) -> Result<Self, StartError> {
        metrics::register();
        let config = Arc::new(config);
        let executors = Executors::new(config.runner_threads);
        check::report(&config, &executors).await?;
        let mut config = Arc::unwrap_or_clone(config);
        // Listening comes first: a second master must not touch the first one's files.
        for folder in [&config.pki_dir, &config.cachedir, &config.sock_dir] {
            files::create_private_dir(folder)?;
        }
        let listen = |port| Endpoint::Tcp(config.interface.clone(), port);
        let publish_listener = Listener::bind(&listen(config.publish_port)).await?;
        let request_listener = Listener::bind(&listen(config.ret_port)).await?;
        let event_sockets = EventSockets::bind(&config.sock_dir, &SocketNames::master()).await?;
        access::open_to_users(&config)?;
        let feed = Listener::bind(&Endpoint::Ipc(config.sock_dir.join(PUBLISH_PULL))).await?;
        let metrics_listener = metrics_listener(&config).await?;
        config.publish_port = port_of(&publish_listener);
        config.ret_port = port_of(&request_listener);
        let (publish_port, ret_port) = (config.publish_port, config.ret_port);

        // The bus.
        let path = config.cachedir.join("brine.redb");
        let open = executors.disk.run(move |thread| {
            let (store, opened) = Store::open(&path, STORE_CACHE)?;
            Ok::<_, StoreError>((store.blocking(thread), opened))
        });
        let (store, opened) = open.await.unwrap_or(Err(StoreError::Closed))?;
        report_opened(&store, opened);
        let limits = BusLimits { event: config.max_event_size, ..BusLimits::default() };
        let keep = JournalLimits {
            age: Duration::from_secs(config.event_journal_hours * 3600),
            bytes: config.event_journal_size << 20,
        };
        let bus = Bus::with_journal(limits, Store::clone(&store), opened, keep, &executors.disk).await?;

        // What the parts share.
        let identity = identity::Identity::load_or_make(&config)?;
        let (kept, jobs_kept) = watch::channel(0);
        let options = brine_returners::Options::new(&config.opts, Some(store.clone()));
        let job_cache: Arc<dyn Returner> = brine_returners::open(&config.master_job_cache, &options)?.into();
        let files = roots(&config)?;
        let has_git = files.has_git();
        let disk = disk::Disk {
            keys: Arc::new(keys::KeyStore::open(&config.pki_dir)?),
            files,
            minion_data: minion_data::MinionData::new(store.clone()),
            mines: mine::Mines::new(store.clone()),
            job_cache: Arc::clone(&job_cache),
            tokens: brine_auth::TokenStore::new(store.clone()),
            large_returns: large_returns::LargeReturns::open(&store, config.large_returns_size << 20)?,
        };
        let batches = store.clone();
        let batches = executors.disk.run(move |_| batches::Batches::open(&batches));
        let batches = batches.await.unwrap_or(Err(StoreError::Closed))?;
        let shared = Arc::new(Shared {
            id: own_id(&config)?,
            bus: bus.clone(),
            disk: Blocking::new(disk, executors.disk.clone()),
            executors,
            background: Background::default(),
            identity,
            ciphers: ciphers(&config.ciphers)?,
            access: access::Access::new(&config, root_key(&config)?)?,
            sessions: sessions::Sessions::new(),
            recent_publishes: catch_up::RecentPublishes::new(Duration::from_secs(config.publish_catch_up)),
            auth_limit: auth_limit::AuthLimit::new(config.auth_rate_limit),
            publisher: Publisher::new(),
            last_publish: parking_lot::Mutex::default(),
            presence: presence::Presence::default(),
            pillar_source: PillarSource::new(Arc::new(config.opts.clone())),
            pillar_cache: pillar::PillarCache::default(),
            runners: Registry::new(runner::MODULES),
            wheels: Registry::new(wheel::MODULES),
            causes: causes::Causes::default(),
            stats: stats::Stats::default(),
            batches,
            reactor: reactions::MasterReactor::default(),
            functions,
            jobs_fired: AtomicU64::new(0),
            jobs_kept,
            config: Arc::new(config),
        });

        let reading = Arc::clone(&shared);
        _ = shared.executors.disk.run(move |thread| reading.recent_publishes.read_journal(thread, &reading.bus)).await;

        // The subscribers of the bus.
        let mut parts = Supervisor::new();
        let config = &shared.config;
        if config.job_cache {
            let kept = Arc::new(kept);
            let cache =
                job_cache::JobCache { cache: job_cache, id: shared.id.clone(), runner_returns: config.runner_returns };
            let (bus, disk) = (bus.clone(), shared.executors.disk.clone());
            job_cache::subscribe_jobs(&bus)?;
            parts.start_restarting("job cache", move |shutdown| {
                let (bus, disk, cache, kept) = (bus.clone(), disk.clone(), cache.clone(), Arc::clone(&kept));
                async move { job_cache::keep_jobs(&bus, cache, disk, kept, shutdown).await }
            });
        }
        for name in &config.event_return {
            let returner: Arc<dyn Returner> = brine_returners::open(name, &options)?.into();
            let (filter, deny) = event_return_filters(config)?;
            let cursor = Start::Durable(format!("event_return/{name}"));
            bus.subscribe(filter.clone(), cursor.clone())?;
            let (bus, disk) = (bus.clone(), shared.executors.disk.clone());
            parts.start_restarting(format!("event returner {name}"), move |shutdown| {
                let (bus, disk, returner) = (bus.clone(), disk.clone(), Arc::clone(&returner));
                let (filter, deny, cursor) = (filter.clone(), deny.clone(), cursor.clone());
                async move {
                    match bus.subscribe(filter, cursor) {
                        Ok(events) => job_cache::return_events(events, returner, deny, disk, shutdown).await,
                        Err(error) => tracing::error!(%error, "subscribing an event returner failed"),
                    }
                }
            });
        }
        reactions::start(&shared, store, &mut parts).await?;
        // Tasks that need nothing but what is shared.
        let mut start = |name: &'static str, run: fn(Arc<Shared>, CancellationToken) -> BoxFuture<'static, ()>| {
            let shared = Arc::clone(&shared);
            parts.start_restarting(name, move |shutdown| run(Arc::clone(&shared), shutdown));
        };
        start("forgotten minions", |shared, shutdown| maintenance::forget_minions(shared, shutdown).boxed());
        start("maintenance", |shared, shutdown| maintenance::maintain(shared, shutdown).boxed());
        start("batches of salt", |shared, shutdown| batches::follow(shared, shutdown).boxed());
        if !config.schedule.is_empty() {
            start("schedule", |shared, shutdown| schedule::run(shared, shutdown).boxed());
        }
        if config.presence_events {
            start("presence events", |shared, shutdown| presence::tell(shared, shutdown).boxed());
        }
        if has_git {
            start("gitfs", |shared, shutdown| maintenance::fetch_repositories(shared, shutdown).boxed());
        }
        if config.fileserver_events {
            start("file server events", |shared, shutdown| file_events::tell(shared, shutdown).boxed());
        }

        // The sockets: from here on, others are served.
        if let Some(listener) = metrics_listener {
            let (bus, disk) = (bus.clone(), shared.executors.disk.clone());
            parts.start("metrics server", |shutdown| metrics_server::serve(listener, bus, disk, shutdown));
        }
        let frames = Limits { message: config.max_message_size, ..Limits::default() };
        parts.start("event sockets", |shutdown| event_sockets.serve(bus, shutdown));
        let (publisher, bounds) = (shared.publisher.clone(), Bounds::new(allowance(config)));
        let publish_bounds = bounds.clone();
        parts.start("publish port", |shutdown| publisher.serve(publish_listener, publish_bounds, shutdown));
        let publisher = shared.publisher.clone();
        parts.start("publish feed", |shutdown| feed_publisher(feed, publisher, frames, shutdown));
        let requests = Arc::new(requests::Requests(Arc::clone(&shared)));
        let workers = config.worker_threads;
        parts.start("request port", |shutdown| {
            Router::serve(request_listener, requests, workers, frames, bounds, shutdown)
        });
        shared.resume_batches();
        tracing::info!(publish_port, ret_port, "master is ready");
        Ok(Master { shared, parts, publish_port, ret_port })
    }

    /// Completes when a part of the master has failed that cannot be restarted: the process should end.
    pub async fn failed(&self) {
        self.parts.failed().cancelled().await;
    }

    /// The port that publishes go out on.
    pub fn publish_port(&self) -> u16 {
        self.publish_port
    }

    /// The port that requests come in on.
    pub fn ret_port(&self) -> u16 {
        self.ret_port
    }

    /// The event bus.
    pub fn bus(&self) -> &Bus {
        &self.shared.bus
    }

    /// Stops the parts in reverse order of their start (sockets, reactor, job cache), then brings what is in memory to
    /// disk. Takes at most [`STOP_TIME`], whatever functions and templates still run.
    pub async fn stop(self) {
        self.parts.stop(STOP_TIME / 2).await;
        self.shared.background.stop(STOP_TIME / 4).await;
        self.shared.executors.stop();
        if tokio::time::timeout(STOP_TIME / 4, self.shared.bus.close()).await.is_err() {
            tracing::error!("closing the event bus timed out: events of the last moment may not be on disk");
        }
    }
}

/// Publishes what other programs on this machine push into `publish_pull.ipc`: sealed payloads, one
/// frame each.
async fn feed_publisher(feed: Listener, publisher: Publisher, limits: Limits, shutdown: CancellationToken) {
    let take = move |payloads: Vec<bytes::Bytes>| {
        for payload in payloads {
            publisher.publish_under(vec![bytes::Bytes::from_static(TOPIC_BROADCAST)], &payload);
        }
        std::future::ready(())
    };
    Pull::serve(feed, take, limits, shutdown).await;
}

/// What the peers of both ports may hold.
fn allowance(config: &MasterConfig) -> Allowance {
    Allowance {
        connections: config.max_connections,
        per_address: config.max_connections_per_address,
        unauthenticated_message: config.unauthenticated_message_size,
        unauthenticated_memory: config.unauthenticated_memory,
        message_time: Duration::from_secs(config.message_timeout.max(1)),
    }
}

/// The port for metrics, if there is to be one.
async fn metrics_listener(config: &MasterConfig) -> Result<Option<tokio::net::TcpListener>, StartError> {
    if config.metrics_port == 0 {
        return Ok(None);
    }
    let address = (config.metrics_interface.as_str(), config.metrics_port);
    match tokio::net::TcpListener::bind(address).await {
        Ok(listener) => Ok(Some(listener)),
        Err(error) => {
            let reason = format!("cannot listen on {}:{}: {error}", address.0, address.1);
            Err(StartError::Config { option: "metrics_port", reason })
        }
    }
}

fn port_of(listener: &Listener) -> u16 {
    match listener.endpoint() {
        Endpoint::Tcp(_, port) => *port,
        Endpoint::Ipc(_) => 0,
    }
}

fn report_opened(store: &Store, opened: Opened) {
    match opened {
        Opened::New | Opened::Clean => {}
        Opened::Repaired => {
            tracing::warn!(store = %store.path().display(), "the last stop was not clean; the store has been repaired");
        }
        Opened::Replaced => {
            tracing::error!(store = %store.path().display(), "the store was damaged; events and jobs of before are in the file beside it");
        }
    }
}

/// Returns the id of the master's own jobs: `id`, or the host's name with `_master`, as in Salt.
fn own_id(config: &MasterConfig) -> Result<MinionId, StartError> {
    let of_host = || {
        let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
        format!("{}_master", name.unwrap_or_else(|| "localhost".into()))
    };
    let id = config.id.clone().unwrap_or_else(of_host);
    id.parse().map_err(|error: InvalidMinionId| StartError::Config { option: "id", reason: error.to_string() })
}

fn ciphers(names: &[String]) -> Result<Vec<Cipher>, StartError> {
    let bad = |error: CryptError| StartError::Config { option: "ciphers", reason: error.to_string() };
    names.iter().map(|name| name.parse().map_err(bad)).collect()
}

fn roots(config: &MasterConfig) -> Result<brine_fileserver::Roots, StartError> {
    let options = brine_fileserver::Options {
        ignore_globs: config.file_ignore_glob.clone(),
        ignore_regexes: config.file_ignore_regex.clone(),
        follow_symlinks: config.fileserver_followsymlinks,
        ignore_symlinks: config.fileserver_ignoresymlinks,
    };
    brine_fileserver::configured(config.file_roots.clone(), &options, &config.opts, &config.cachedir)
        .map_err(|error| StartError::Config { option: "gitfs_remotes", reason: error.to_string() })
}

fn event_return_filters(config: &MasterConfig) -> Result<(Filter, Option<GlobSet>), StartError> {
    let globs = |option: &'static str, patterns: &[String]| {
        GlobSet::new(patterns).map_err(|error| StartError::Config { option, reason: error.to_string() })
    };
    let allow = match &config.event_return_whitelist[..] {
        [] => Filter::All,
        patterns => Filter::Globs(globs("event_return_whitelist", patterns)?),
    };
    let deny = match &config.event_return_blacklist[..] {
        [] => None,
        patterns => Some(globs("event_return_blacklist", patterns)?),
    };
    Ok((allow, deny))
}

/// The file whose content allows everything on this master: `.root_key`, for the user who runs it. For root it is that
/// of the user whom the configuration names.
pub fn root_key_path(cachedir: &Path, user: Option<&str>) -> PathBuf {
    let own = process_user();
    cachedir.join(format!(".{}_key", user.filter(|_| own == "root").unwrap_or(&own)))
}

/// The name of the user whom the master runs as.
pub(crate) fn process_user() -> String {
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten();
    user.map_or_else(|| "root".to_owned(), |user| user.name)
}

/// Reads the root key, or makes one.
fn root_key(config: &MasterConfig) -> Result<String, FileError> {
    let path = root_key_path(&config.cachedir, config.user.as_deref());
    if let Some(key) = files::read_if_exists(&path)?.filter(|key| key.len() >= 32) {
        return Ok(key);
    }
    let key = token::root_key();
    files::write_atomic(&path, key.as_bytes(), 0o400)?;
    Ok(key)
}

/// What wheel functions need of a running master.
struct WheelOfMaster {
    shared: Arc<Shared>,
    caller: calls::Caller,
}

impl wheel::WheelHost for WheelOfMaster {
    fn fire(&self, tag: &str, body: &Map) {
        let mut body = body.clone();
        self.caller.mark(&mut body);
        self.caller.thread.wait(self.shared.fire(tag, &body));
    }

    fn rotate_key(&self) {
        if self.shared.config.rotate_aes_key {
            self.caller.thread.wait(self.shared.rotate_keys());
        }
    }

    fn actor(&self) -> String {
        match (self.caller.caused.get("_cause"), self.caller.caused.get("_sls")) {
            (Some(event), Some(sls)) => format!("reaction of {sls} to event {event}"),
            _ => format!("wheel call of {}", self.caller.user),
        }
    }
}

impl Shared {
    /// The context of a wheel function; its thread may block.
    pub(crate) fn wheel_context(self: &Arc<Self>, caller: calls::Caller) -> wheel::WheelContext {
        let keys = Arc::clone(&self.disk.get(&caller.thread).keys);
        let attended = caller.user != reactions::USER;
        wheel::WheelContext { keys, attended, host: Arc::new(WheelOfMaster { shared: Arc::clone(self), caller }) }
    }
}
