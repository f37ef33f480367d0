//! The daemon's main loop: connects to the master, authenticates, subscribes, runs jobs and returns results; reconnects
//! when the connection breaks.
//!
//! `connected` is the session with its queues, `intake` receives jobs, `catch_up` fetches missed ones (`received`
//! records where to start), `failover` changes between several masters, `upgrade` to another program, `drain` waits for
//! jobs before the stop. A minion that is
//! connected to several masters at once has a [`Connected`] for each of them.

pub mod catch_up;
mod connected;
mod drain;
mod failover;
mod intake;
mod master_function;
mod received;
mod upgrade;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use brine_bus::{Bus, BusLimits, EventSockets, SocketNames};
use brine_config::MinionConfig;
use brine_context::{MasterEvent, SetupError};
use brine_engines::Engine;
use brine_runtime::backoff::Backoff;
use brine_runtime::executors::ExecutorError;
use brine_runtime::supervisor::Supervisor;
use brine_system::files::{self, FileError};
use brine_value::{Map, Value, map};
use brine_zmtp::TransportError;
use futures::future::{BoxFuture, try_join_all};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

pub use self::connected::Connected;
use self::intake::{handle_job, start_job};
use crate::channel::{ChannelError, OpenError};
use crate::events::Kind;
use crate::leader::Leader;
use crate::masters::{Address, Masters, Next};
use crate::seen_jobs::SeenJobs;
use crate::{beacons, engines, jobs, metrics, schedule};

/// The event on the minion's own bus when a master serves the minion, with `master`, as in Salt.
const MASTER_CONNECTED: &str = "__master_connected";
/// The event when a master that served the minion is gone, with `master`.
const MASTER_DISCONNECTED: &str = "__master_disconnected";
/// The file below `cachedir` with the ids of received jobs.
const SEEN_JOBS: &str = "seen_jobs";
/// The timeout of cancelled jobs at the shutdown, until they have ended and returned.
const JOBS_STOP_TIMEOUT: Duration = Duration::from_secs(2);
/// The timeout of the minion's own tasks at the shutdown.
const TASKS_STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// The error that ends a minion.
#[derive(Debug, thiserror::Error)]
pub enum MinionError {
    /// The minion cannot be created.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A directory or file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The event sockets cannot be opened.
    #[error("opening the event sockets failed: {0}")]
    Listen(#[source] TransportError),
    /// The connection to the master ended.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The reactor's configuration is invalid.
    #[error(transparent)]
    Reactor(#[from] brine_reactor::EntryError),
    /// The session with the master failed.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The start panicked.
    #[error(transparent)]
    Executor(#[from] ExecutorError),
    /// An essential task has ended.
    #[error("the minion stops: one of its tasks failed, see the log")]
    TaskFailed,
    /// The configuration is invalid.
    #[error("{0}")]
    Invalid(String),
    /// A publish was damaged on its way, and others may be lost with it.
    #[error("a publish is damaged: {0}")]
    Damaged(ChannelError),
    /// The master does not answer.
    #[error("the master has not answered for {0:?} (master_alive_interval)")]
    Silent(Duration),
    /// No master is configured.
    #[error("option 'master': the list is empty: name the master's host")]
    NoMaster,
}

impl MinionError {
    /// Whether the publish stream did not arrive as the master has sent it.
    fn is_damage(&self) -> bool {
        use TransportError::{Malformed, TooLarge, Unfinished};
        match self {
            MinionError::Damaged(_) => true,
            MinionError::Channel(error) => error.is_damage(),
            MinionError::Transport(error) => matches!(error, Malformed(_) | TooLarge { .. } | Unfinished { .. }),
            _ => false,
        }
    }
}

/// How a minion is asked to stop.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    /// Stop; jobs that have begun may end (`job_stop_timeout`).
    pub begin: CancellationToken,
    /// Stop without waiting for jobs.
    pub at_once: CancellationToken,
}

/// Runs a minion until `shutdown`. `serving` is sent when its sockets are open; it connects to its master later.
pub fn run(
    config: MinionConfig,
    serving: oneshot::Sender<()>,
    shutdown: Shutdown,
) -> BoxFuture<'static, Result<(), MinionError>> {
    // Boxed, because the code of a future is compiled by the crate that polls it.
    Box::pin(run_tasks(config, serving, shutdown))
}

async fn run_tasks(config: MinionConfig, serving: oneshot::Sender<()>, shutdown: Shutdown) -> Result<(), MinionError> {
    metrics::register();
    let delay = startup_delay(&config);
    let bus = Bus::in_memory(BusLimits { ring_events: 1024, ring_bytes: 1 << 20, ..BusLimits::default() });
    let all = Box::pin(Connected::open_all(config, bus.clone())).await?;
    let first = all.first().ok_or(MinionError::NoMaster)?;
    schedule::add_own_jobs(&first.minion);
    let config = &first.minion.config;
    let sockets = EventSockets::bind(&config.sock_dir, &SocketNames::minion(first.id.as_str())).await;
    let sockets = sockets.map_err(MinionError::Listen)?;
    // The caller may have stopped waiting.
    _ = serving.send(());
    tokio::select! {
        () = tokio::time::sleep(delay) => {}
        () = shutdown.begin.cancelled() => return Ok(()),
    }
    let mut tasks = Supervisor::new();
    let served = bus.clone();
    tasks.start("event sockets", |stopping| sockets.serve(served, stopping));
    let leader = Leader::among(all.iter().map(|one| (Arc::clone(&one.minion), one.ready.subscribe())).collect());
    if let Some(reactor) = crate::reactions::reactor(&leader, &first.pool, &bus)? {
        tasks.start("reactor", |stopping| reactor.run(stopping));
    }
    start_own_tasks(&mut tasks, &leader, first, &bus);
    for connected in &all {
        start_tasks(&mut tasks, connected, &bus);
    }
    let failed = tasks.failed();
    let ending = CancellationToken::new();
    let result = tokio::select! {
        result = try_join_all(all.iter().map(|each| maintain_connection(each, &bus, &ending))) => result.map(|_| ()),
        // The connections stay meanwhile.
        () = async {
            shutdown.begin.cancelled().await;
            drain::finish_jobs(&all, first, &shutdown).await;
        } => Ok(()),
        () = failed.cancelled() => Err(MinionError::TaskFailed),
        () = upgrade::until_change(&all) => Ok(()),
    };
    stop(&all, first, tasks, &ending).await;
    result
}

/// Returns the time before the first connection: a random one up to `random_startup_delay`.
fn startup_delay(config: &MinionConfig) -> Duration {
    let delay = config.random_startup_delay.seconds().mul_f64(rand::random());
    if !delay.is_zero() {
        tracing::info!(?delay, "the start is delayed (random_startup_delay)");
    }
    delay
}

/// Prepares the directories of a daemon and returns the received jobs of earlier runs. Blocks.
fn prepare(config: &MinionConfig) -> Result<SeenJobs, MinionError> {
    for directory in [&config.cachedir, &config.sock_dir] {
        files::create_private_dir(directory)?;
    }
    Ok(SeenJobs::open(&config.cachedir.join(SEEN_JOBS), config.minion_jid_queue_hwm))
}

/// Starts the tasks that a minion has once, however many masters it has: schedule, beacons, returners and engines.
fn start_own_tasks(tasks: &mut Supervisor, leader: &Leader, first: &Arc<Connected>, bus: &Bus) {
    let (pool, spool) = (Arc::clone(&first.pool), Arc::clone(&first.spool));
    let host = Arc::new(schedule::MinionSchedule { leader: leader.clone(), pool, spool, bus: bus.clone() });
    let asked = Arc::clone(&host);
    tasks.start_restarting("own events", move |stopping| crate::events::follow_queries(Arc::clone(&asked), stopping));
    let (this, leader, own) = (Arc::clone(first), leader.clone(), bus.clone());
    tasks.start_restarting("beacons", move |stopping| {
        let render = this.pool.executors().render.clone();
        beacons::run(leader.clone(), render, own.clone(), this.started.subscribe(), stopping)
    });
    let this = Arc::clone(first);
    tasks.start_restarting("schedule", move |stopping| {
        schedule::run(Arc::clone(&host), this.started.subscribe(), stopping)
    });
    let this = Arc::clone(first);
    tasks.start_restarting("returns for returners", move |stopping| {
        let (minion, disk, own) = (Arc::clone(&this.minion), this.pool.executors().disk.clone(), Arc::clone(&this));
        Arc::clone(&this.spool).run(minion, move || own.backoff(), disk, stopping)
    });
    let (configured, errors) = Engine::read(&first.minion.config.engines);
    for error in errors {
        tracing::error!("option 'engines': {error}");
    }
    for engine in configured {
        let minion = Arc::clone(&first.minion);
        tasks.start_restarting(format!("engine {}", engine.name), move |stopping| {
            let minion = Arc::clone(&minion);
            engine.clone().run(move |engine, stopping| engines::run(Arc::clone(&minion), engine, stopping), stopping)
        });
    }
    let this = Arc::clone(first);
    tasks.start_restarting("cached returns", move |stopping| {
        jobs::prune_cached_returns(Arc::clone(&this.minion), this.pool.executors().disk.clone(), stopping)
    });
}

/// Starts the tasks that run beside each connection to a master.
fn start_tasks(tasks: &mut Supervisor, connected: &Arc<Connected>, bus: &Bus) {
    for (name, kind) in [("refreshes", Kind::Refresh), ("events for the master", Kind::ForMaster)] {
        let (connected, bus) = (Arc::clone(connected), bus.clone());
        tasks.start_restarting(name, move |stopping| {
            crate::events::follow(kind, Arc::clone(&connected), bus.clone(), stopping)
        });
    }
    if let Some(every) = crate::ping::interval(&connected.minion.config) {
        let this = Arc::clone(connected);
        tasks.start_restarting("ping", move |stopping| {
            let (sender, ready) = (Arc::clone(&this), this.ready.subscribe());
            let fire = move |event| {
                let sender = Arc::clone(&sender);
                async move { sender.fire(&event).await }
            };
            crate::ping::run(fire, ready, every, stopping)
        });
    }
    for (name, queue) in [("returns", &connected.returns), ("events", &connected.events)] {
        let (queue, connected) = (Arc::clone(queue), Arc::clone(connected));
        tasks.start_restarting(name, move |stopping| {
            let (sender, ready) = (Arc::clone(&connected), connected.ready.subscribe());
            let send = move |load| {
                let sender = Arc::clone(&sender);
                async move { sender.send(load).await }
            };
            let disk = connected.pool.executors().disk.clone();
            Arc::clone(&queue).run(send, ready, connected.backoff(), disk, stopping)
        });
    }
}

/// Cancels jobs, then stops tasks. Each has a few seconds to end.
async fn stop(all: &[Arc<Connected>], first: &Connected, tasks: Supervisor, shutdown: &CancellationToken) {
    shutdown.cancel();
    // Those that have not begun are refused, and fetched again after the restart.
    for job in first.minion.jobs.lock().values().filter(|job| !job.is_held.load(Ordering::Relaxed)) {
        job.cancel.cancel();
    }
    let left = first.pool.finish(JOBS_STOP_TIMEOUT).await;
    if left > 0 {
        tracing::warn!(jobs = left, "jobs aborted: they did not end in time");
    }
    tasks.stop(TASKS_STOP_TIMEOUT).await;
    let count: usize = all.iter().map(|connected| connected.returns.len()).sum();
    if count > 0 {
        tracing::info!(returns = count, "returns are kept on disk until the minion starts again");
    }
    first.pool.executors().stop();
}

/// The reason to stop reading the publish stream of a master that still serves the minion.
enum SessionEnd {
    /// The minion ends.
    Shutdown,
    /// The first of several masters is back.
    FailBack,
}

/// The progress of a connection since the start of the minion.
#[derive(Default)]
struct Progress {
    /// The master that has received the start event.
    started_at: Option<Address>,
    /// Whether the publish stream was damaged, and no publish has arrived since. Somebody who damages it again and again
    /// must not make the minion reconnect faster than [`Backoff`] lets it.
    is_damaged: bool,
}

/// Maintains a connection to one of the masters of `connected`. Returns at the shutdown or, if there is only one
/// master, with an error.
async fn maintain_connection(
    connected: &Arc<Connected>,
    bus: &Bus,
    shutdown: &CancellationToken,
) -> Result<(), MinionError> {
    if connected.minion.config.is_masterless() {
        return run_without_master(connected, shutdown).await;
    }
    let mut backoff = connected.backoff();
    let mut masters = failover::masters(connected)?;
    let mut progress = Progress::default();
    connected.move_to(masters.current()).await;
    loop {
        connected.join_any(&mut masters).await?;
        let result = Box::pin(listen(connected, bus, &masters, &mut progress, shutdown, &mut backoff)).await;
        if connected.ready.send_replace(false) {
            tell(bus, MASTER_DISCONNECTED, &masters).await;
        }
        connected.received.lock().left(Instant::now());
        let next = match result {
            Ok(SessionEnd::Shutdown) => return Ok(()),
            Ok(SessionEnd::FailBack) => {
                masters.fail_back();
                connected.move_to(masters.current()).await;
                Next::Try
            }
            Err(error) => {
                if error.is_damage() {
                    metrics::PUBLISH_STREAMS_DAMAGED.add(1);
                    progress.is_damaged = true;
                }
                tracing::warn!("the connection to the master is lost: {error}; reconnecting");
                connected.leave_master(&mut masters).await
            }
        };
        if next == Next::Pause {
            backoff.wait().await;
        }
    }
}

/// Runs a minion without a master (`master_type: disable`): it has its schedule, beacons and reactor.
async fn run_without_master(connected: &Arc<Connected>, shutdown: &CancellationToken) -> Result<(), MinionError> {
    connected.refresh_pillar().await?;
    tracing::info!(id = %connected.id, "the minion is ready, without a master");
    connected.started.send_replace(true);
    run_startup_states(connected);
    shutdown.cancelled().await;
    Ok(())
}

/// Reads the publish stream until the connection breaks.
async fn listen(
    connected: &Arc<Connected>,
    bus: &Bus,
    masters: &Masters,
    progress: &mut Progress,
    shutdown: &CancellationToken,
    backoff: &mut Backoff,
) -> Result<SessionEnd, MinionError> {
    let (silence, back) = (connected.wait_for_silent_master(), connected.preferred_is_back(masters));
    tokio::pin!(silence, back);
    // Subscribes before sending anything: publishes in response must not be missed.
    let began = async {
        let publishes = connected.channel.subscribe().await?;
        connected.refresh_pillar().await?;
        Ok::<_, MinionError>(publishes)
    };
    let Some(mut publishes) = unless_master_silent(silence.as_mut(), began).await? else {
        return Ok(SessionEnd::Shutdown);
    };
    if !progress.is_damaged {
        backoff.reset();
    }
    let was_started = progress.started_at.is_some();
    // Not cancelled when the master falls silent, which could interrupt the start of a job: the request has its own
    // timeout.
    catch_up::run(connected, masters.current()).await;
    if progress.started_at.as_ref() != Some(masters.current()) {
        // Before the event, which tells the outcome.
        unless_master_silent(silence.as_mut(), upgrade::pass_trial(connected)).await?;
        unless_master_silent(silence.as_mut(), publish_start(connected)).await?;
        if was_started {
            metrics::MASTER_CHANGES.add(1);
        }
        progress.started_at = Some(masters.current().clone());
        tracing::info!(id = %connected.id, master = masters.current().host, "the minion is ready");
        // Once, however many masters there are.
        if !connected.started.send_replace(true) {
            run_startup_states(connected);
        }
    }
    connected.was_ready.store(true, Ordering::Relaxed);
    connected.ready.send_replace(true);
    tell(bus, MASTER_CONNECTED, masters).await;
    loop {
        let payload = tokio::select! {
            payload = publishes.recv() => payload?,
            () = shutdown.cancelled() => return Ok(SessionEnd::Shutdown),
            error = &mut silence => return Err(error),
            () = &mut back => return Ok(SessionEnd::FailBack),
        };
        match connected.channel.open_or_join(payload, connected.join(connected.is_only)).await {
            Ok(publication) => {
                if std::mem::take(&mut progress.is_damaged) {
                    backoff.reset();
                }
                handle_job(connected, publication).await;
            }
            Err(OpenError::Join(error)) => return Err(error),
            Err(OpenError::Refused(error)) => tracing::warn!(%error, "a publish is refused"),
            // The bytes that follow may be of another message than they seem: a new connection begins at its start, and
            // the jobs that were lost are fetched.
            Err(OpenError::Broken(error)) => return Err(MinionError::Damaged(error)),
        }
    }
}

/// Tells the minion's own bus that its master is there, or gone.
async fn tell(bus: &Bus, tag: &str, masters: &Masters) {
    if let Err(error) = bus.fire(tag, &map! {"master" => &masters.current().host}).await {
        tracing::debug!(tag, %error, "publishing an event on the minion's own bus failed");
    }
}

/// Runs `work`, and cancels it with the error of `silence` if the master does not reply.
async fn unless_master_silent<T>(
    silence: impl Future<Output = MinionError>,
    work: impl Future<Output = Result<T, MinionError>>,
) -> Result<T, MinionError> {
    tokio::select! {
        result = work => result,
        error = silence => Err(error),
    }
}

async fn publish_start(connected: &Connected) -> Result<(), MinionError> {
    let now = brine_clock::now().strftime("%a %b %e %H:%M:%S %Y").to_string();
    let (id, config) = (&connected.id, &connected.minion.config);
    let outcome = upgrade::outcome(connected).await;
    let legacy = config.enable_legacy_startup_events.then(|| "minion_start".to_owned());
    for tag in legacy.into_iter().chain([format!("salt/minion/{id}/start")]) {
        let mut load = MasterEvent::new(&tag, format!("Minion {id} started at {now}")).request(id.as_str());
        if !config.start_event_grains.is_empty() {
            let grains = connected.minion.grains.get();
            let names = config.start_event_grains.iter();
            let reported: Map =
                names.filter_map(|name| Some((name.into(), grains.get(name.as_str())?.clone()))).collect();
            load.insert("grains".into(), reported.into());
        }
        if let Some(outcome) = &outcome {
            load.insert("upgrade".into(), outcome.clone());
        }
        connected.channel.request(load).await?;
    }
    if outcome.is_some() {
        upgrade::reported(connected).await;
    }
    Ok(())
}

/// Runs `startup_states`.
fn run_startup_states(connected: &Arc<Connected>) {
    let config = &connected.minion.config;
    let (fun, arg) = match config.startup_states.as_deref() {
        Some("highstate") => ("state.highstate", Vec::new()),
        Some("sls") => ("state.sls", vec![Value::from(config.sls_list.clone())]),
        Some("top") => ("state.top", vec![Value::from(config.top_file.as_str())]),
        _ => return,
    };
    let jid = brine_ids::Jid::new();
    let load = map! {"jid" => &jid, "fun" => fun, "arg" => arg.clone(), "tgt" => connected.id.as_str(), "tgt_type" => "glob", "user" => jobs::STARTUP_USER};
    start_job(connected, &jid, fun, arg, load, String::new());
}
