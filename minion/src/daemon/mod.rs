//! The minion's life: find the master, be accepted, listen, run jobs, return; and again when the connection breaks.
//!
//! `connected` is the session with its queues, `intake` takes jobs, `catch_up` fetches those that were missed.

mod catch_up;
mod connected;
mod intake;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use brine_core::bus::{Bus, BusLimits, EventSockets, SocketNames};
use brine_core::config::MinionConfig;
use brine_core::crypt::Cipher;
use brine_core::files::{self, FileError};
use brine_core::fileserver;
use brine_core::function::Registry;
use brine_core::schedule::Schedule;
use brine_core::transport::{Backoff, Limits, Subscriber, TransportError};
use brine_core::wire::{Publication, TOPIC_GCM};
use brine_core::{Map, MinionId, Value, map, metrics};
use parking_lot::{Mutex, RwLock};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

pub use self::connected::Connected;
pub(crate) use self::intake::return_beside;
use self::intake::{start_job, take_job};
use crate::beacons::{self, Configured};
use crate::channel::ChannelError;
use crate::context::{FileClient, MasterEvent, Minion, Upstream};
use crate::events::Kind;
use crate::jobs;
use crate::local_bus::LocalBus;
use crate::modules::programs::System;
use crate::pool::JobPool;
use crate::schedule;
use crate::seen_jobs::SeenJobs;
use crate::tasks::Tasks;

/// The file below `cachedir` with the ids of the jobs that were received.
const SEEN_JOBS: &str = "seen_jobs";
/// How long jobs that were ended may take to end, and to return.
const JOBS_END: Duration = Duration::from_secs(2);
/// How long the minion's own tasks may take to end.
const TASKS_END: Duration = Duration::from_secs(1);

/// Why a minion cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum MinionError {
    /// The id in the configuration cannot be one.
    #[error("option 'id': {0}")]
    Id(#[from] brine_core::minion_id::InvalidMinionId),
    /// A folder or file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The event sockets cannot be opened.
    #[error("cannot listen: {0}")]
    Listen(#[from] TransportError),
    /// The reactor's configuration is wrong.
    #[error(transparent)]
    Reactor(#[from] brine_reactor::EntryError),
    /// The master cannot be joined.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The repositories of the file server are named wrongly.
    #[error(transparent)]
    Gitfs(#[from] fileserver::GitError),
    /// A file with more options (`localconfig`) cannot be used.
    #[error(transparent)]
    Config(#[from] brine_core::config::ConfigError),
    /// The configuration is refused before anything is opened.
    #[error("{0}")]
    Invalid(String),
    /// No master is configured.
    #[error("option 'master': the list is empty: name the master's host")]
    NoMaster,
}

/// The id that a configuration says, or `minion_id` in its folder, or the host's name.
pub fn minion_id(config: &MinionConfig) -> Result<MinionId, MinionError> {
    if let Some(id) = &config.id {
        return Ok(id.parse()?);
    }
    if let Some(id) = files::read_if_exists(config.config_dir.join("minion_id"))? {
        return Ok(id.trim().parse()?);
    }
    let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    Ok(name.unwrap_or_else(|| "localhost".into()).parse()?)
}

/// A minion of these parts.
pub(crate) fn build(
    id: &MinionId,
    config: &Arc<MinionConfig>,
    grains: Arc<RwLock<Arc<Map>>>,
    files: Arc<dyn FileClient>,
    upstream: Arc<dyn Upstream>,
    bus: Option<Bus>,
) -> Arc<Minion> {
    let local = match bus {
        Some(bus) => LocalBus::Own { bus, runtime: Handle::current() },
        None => LocalBus::Sockets { folder: config.sock_dir.clone(), names: SocketNames::minion(id.as_str()) },
    };
    Arc::new(Minion {
        id: id.to_string(),
        config: Arc::clone(config),
        grains,
        pillar: RwLock::default(),
        files,
        upstream,
        programs: Arc::new(System),
        local,
        beacons: Configured::new(config.beacons.clone()),
        schedule: Mutex::new(Schedule::new(config.schedule.clone())),
        jobs: Mutex::default(),
        pool: JobPool::new(config.process_count_max),
        functions: Registry::new(crate::modules::MODULES),
        states: Registry::new(crate::states::MODULES),
    })
}

/// Runs a minion until `shutdown`.
pub async fn run(config: MinionConfig, shutdown: CancellationToken) -> Result<(), MinionError> {
    for folder in [&config.cachedir, &config.sock_dir] {
        files::create_private_dir(folder)?;
    }
    clean_proc(&config.cachedir.join("proc"));
    let id = minion_id(&config)?;
    let bus = Bus::in_memory(BusLimits { ring_events: 1024, ring_bytes: 1 << 20, ..BusLimits::default() });
    let sockets = EventSockets::bind(&config.sock_dir, &SocketNames::minion(id.as_str())).await?;
    let seen = SeenJobs::open(&config.cachedir.join(SEEN_JOBS), config.minion_jid_queue_hwm);
    let serving = tokio::spawn(sockets.serve(bus.clone(), shutdown.clone()));
    let connected = Connected::new(config, Some(bus.clone()))?;
    *connected.seen.lock() = seen;
    let connected = Arc::new(connected);
    crate::reactions::start(&connected.minion, &bus, &shutdown)?;
    let tasks = Tasks::new(shutdown.clone());
    start_tasks(&tasks, &connected, &bus, &shutdown);
    let result = tokio::select! {
        result = live(&connected, &shutdown) => result,
        () = shutdown.cancelled() => Ok(()),
    };
    stop(&connected, &tasks, &shutdown).await;
    match tokio::time::timeout(TASKS_END, serving).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "the task of the event sockets panicked"),
        Err(_) => tracing::warn!("the event sockets are still open when the minion ends"),
    }
    result
}

/// Starts what runs beside the connection.
fn start_tasks(tasks: &Tasks, connected: &Arc<Connected>, bus: &Bus, shutdown: &CancellationToken) {
    for (name, kind) in [("own events", Kind::Own), ("events for the master", Kind::ForMaster)] {
        let (connected, bus, shutdown) = (Arc::clone(connected), bus.clone(), shutdown.clone());
        tasks.keep(name, move || crate::events::follow(kind, Arc::clone(&connected), bus.clone(), shutdown.clone()));
    }
    let of = (Arc::clone(connected), bus.clone(), shutdown.clone());
    tasks.keep("beacons", move || {
        let (connected, bus, shutdown) = of.clone();
        beacons::run(Arc::clone(&connected.minion), bus, connected.ready.subscribe(), shutdown)
    });
    let of = (Arc::clone(connected), bus.clone(), shutdown.clone());
    tasks.keep("schedule", move || {
        let (connected, bus, shutdown) = of.clone();
        schedule::run(Arc::clone(&connected.minion), bus, connected.ready.subscribe(), shutdown)
    });
    let of = (Arc::clone(connected), shutdown.clone());
    tasks.keep("ping", move || crate::ping::run(Arc::clone(&of.0), of.1.clone()));
    for (name, queue) in [("returns", &connected.returns), ("events", &connected.events)] {
        let (queue, connected, shutdown) = (Arc::clone(queue), Arc::clone(connected), shutdown.clone());
        tasks.keep(name, move || {
            let (sender, ready) = (Arc::clone(&connected), connected.ready.subscribe());
            let send = move |load| {
                let sender = Arc::clone(&sender);
                async move { sender.send(load).await }
            };
            Arc::clone(&queue).run(send, ready, connected.backoff(), shutdown.clone())
        });
    }
    let of = (Arc::clone(connected), shutdown.clone());
    tasks.keep("cached returns", move || jobs::tidy(Arc::clone(&of.0.minion), of.1.clone()));
}

/// Ends jobs and tasks, in this order and within a few seconds.
async fn stop(connected: &Connected, tasks: &Tasks, shutdown: &CancellationToken) {
    shutdown.cancel();
    for job in connected.minion.jobs.lock().values() {
        job.cancel.cancel();
    }
    let left = connected.minion.pool.finish(JOBS_END).await;
    if left > 0 {
        tracing::warn!(jobs = left, "jobs do not end: the minion ends without them");
    }
    let kept = connected.returns.len();
    if kept > 0 {
        tracing::info!(returns = kept, "returns are kept on disk until the minion starts again");
    }
    let left = tasks.finish(TASKS_END).await;
    if left > 0 {
        tracing::warn!(tasks = left, "tasks do not end: the minion ends without them");
    }
}

/// What a minion that was killed left behind.
fn clean_proc(folder: &PathBuf) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::ok) {
        _ = std::fs::remove_file(entry.path());
    }
}

async fn live(connected: &Arc<Connected>, shutdown: &CancellationToken) -> Result<(), MinionError> {
    let mut backoff = connected.backoff();
    let mut started = false;
    loop {
        connected.join(true).await?;
        let result = listen(connected, &mut started, shutdown, &mut backoff).await;
        connected.ready.send_replace(false);
        match result {
            Ok(()) => return Ok(()),
            Err(error) => tracing::warn!("the connection to the master is lost: {error}; connecting again"),
        }
        backoff.wait().await;
    }
}

/// Follows the publish stream until it breaks.
async fn listen(
    connected: &Arc<Connected>,
    started: &mut bool,
    shutdown: &CancellationToken,
    backoff: &mut Backoff,
) -> Result<(), MinionError> {
    let Some(endpoint) = connected.channel.publish_endpoint() else { return Ok(()) };
    let limits = Limits { message: connected.minion.config.max_message_size, ..Limits::default() };
    let topic: &[u8] = if connected.channel.cipher() == Some(Cipher::Aes256Gcm) { TOPIC_GCM } else { b"" };
    // Before anything is told to the master: what it publishes in answer must be heard.
    let mut publishes = Subscriber::connect(&endpoint, &[topic], limits).await?;
    connected.refresh_pillar().await?;
    backoff.reset();
    catch_up::run(connected, *started).await;
    if !*started {
        *started = true;
        tell_start(connected).await?;
        tracing::info!(id = %connected.id, "the minion is ready");
        run_startup_states(connected);
    }
    connected.was_ready.store(true, Ordering::Relaxed);
    connected.ready.send_replace(true);
    loop {
        let frames = tokio::select! {
            frames = publishes.recv() => frames?,
            () = shutdown.cancelled() => return Ok(()),
        };
        let Some(payload) = frames.last() else { continue };
        match connected.channel.open(payload.clone()).await {
            Err(ChannelError::Crypt(error)) => {
                // The master has new keys. Not all minions may ask for them in the same moment.
                tracing::info!(%error, "a publish cannot be opened: authenticating again");
                tokio::time::sleep(Duration::from_millis(rand::random_range(0..50))).await;
                connected.join(true).await?;
                // What told of the new keys may be a job.
                take_publish(connected, connected.channel.open(payload.clone()).await).await;
            }
            opened => take_publish(connected, opened).await,
        }
    }
}

async fn take_publish(connected: &Arc<Connected>, opened: Result<Publication, ChannelError>) {
    match opened {
        Ok(publication) => take_job(connected, publication).await,
        Err(error) => {
            metrics::REQUESTS_REFUSED.add(1);
            tracing::warn!(%error, "a publish is refused");
        }
    }
}

async fn tell_start(connected: &Connected) -> Result<(), MinionError> {
    let now = jiff::Zoned::now().strftime("%a %b %e %H:%M:%S %Y").to_string();
    let (id, config) = (&connected.id, &connected.minion.config);
    let legacy = config.enable_legacy_startup_events.then(|| "minion_start".to_owned());
    for tag in legacy.into_iter().chain([format!("salt/minion/{id}/start")]) {
        let mut load = MasterEvent::new(&tag, format!("Minion {id} started at {now}")).request(id.as_str());
        if !config.start_event_grains.is_empty() {
            let grains = Arc::clone(&connected.minion.grains.read());
            let wanted = config.start_event_grains.iter();
            let told: Map = wanted.filter_map(|name| Some((name.into(), grains.get(name.as_str())?.clone()))).collect();
            load.insert("grains".into(), told.into());
        }
        connected.channel.request(load).await?;
    }
    Ok(())
}

/// `startup_states`: what is applied when the minion starts.
fn run_startup_states(connected: &Arc<Connected>) {
    let config = &connected.minion.config;
    let (fun, arg) = match config.startup_states.as_deref() {
        Some("highstate") => ("state.highstate", Vec::new()),
        Some("sls") => ("state.sls", vec![Value::from(config.sls_list.clone())]),
        _ => return,
    };
    let jid = brine_core::Jid::new();
    let load = map! {"jid" => &jid, "fun" => fun, "arg" => arg.clone(), "tgt" => connected.id.as_str(), "user" => "startup_states"};
    start_job(connected, &jid, fun, arg, load, String::new());
}
