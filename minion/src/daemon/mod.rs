//! The minion's life: find the master, be accepted, listen, run jobs, return what came of them; and again
//! when the connection breaks.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use brine_core::bus::{Bus, BusLimits, EventSockets, SocketNames};
use brine_core::config::MinionConfig;
use brine_core::crypt::Cipher;
use brine_core::files::{self, FileError};
use brine_core::fileserver;
use brine_core::function::{CallError, Registry};
use brine_core::job::Return;
use brine_core::schedule::Schedule;
use brine_core::target::{Target, TargetKind};
use brine_core::transport::{Backoff, Limits, Subscriber, TransportError};
use brine_core::wire::{Publication, TOPIC_GCM};
use brine_core::{Map, MinionId, Value, map, metrics};
use parking_lot::{Mutex, RwLock};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::beacons::{self, Configured};
use crate::channel::{Channel, ChannelError};
use crate::context::{FileClient, Job, MasterEvent, Minion, Upstream};
use crate::events::Kind;
use crate::fileclient::MasterFiles;
use crate::jobs;
use crate::local_bus::LocalBus;
use crate::modules::programs::System;
use crate::schedule;
use crate::state::OwnFacts;
use crate::upstream::{MasterUpstream, is_taken, pillar_load, send_event};

/// When a minion looks for the first time whether its key has been accepted.
const FIRST_LOOK: Duration = Duration::from_millis(100);
/// How often a return is tried that the master does not take.
const RETURN_TRIES: u32 = 10;

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
        functions: Registry::new(crate::modules::MODULES),
        states: Registry::new(crate::states::MODULES),
    })
}

/// A minion that has a session with its master: what daemon and `salt-call` have in common.
pub struct Connected {
    /// What functions see.
    pub minion: Arc<Minion>,
    channel: Arc<Channel>,
    id: MinionId,
    /// Whether there is a session, and the master knows that the minion is ready.
    ready: watch::Sender<bool>,
    /// The last jobs that came: one that comes again is not run again.
    taken: Mutex<VecDeque<String>>,
}

impl Connected {
    /// Whether a job comes for the first time, as far as is remembered.
    fn is_new(&self, jid: &str) -> bool {
        let mut taken = self.taken.lock();
        if taken.iter().any(|known| known == jid) {
            return false;
        }
        if taken.len() >= self.minion.config.minion_jid_queue_hwm {
            taken.pop_front();
        }
        taken.push_back(jid.to_owned());
        true
    }

    /// Makes the minion; the session is begun by [`Connected::join`].
    pub fn new(config: MinionConfig, bus: Option<Bus>) -> Result<Self, MinionError> {
        let id = minion_id(&config)?;
        let config = Arc::new(config);
        let host = config.master.first().ok_or(MinionError::NoMaster)?;
        let grains = crate::grains::collect(&config, id.as_str());
        let channel = Arc::new(Channel::new(id.clone(), Arc::clone(&config), host)?.showing(&grains));
        if config.master.len() > 1 {
            tracing::warn!(host, "of several masters only the first is tried");
        }
        let grains = Arc::new(RwLock::new(Arc::new(grains)));
        let runtime = Handle::current();
        let files = Arc::new(MasterFiles::new(Arc::clone(&channel), runtime.clone()));
        let upstream =
            MasterUpstream { id: id.clone(), channel: Arc::clone(&channel), runtime, grains: Arc::clone(&grains) };
        let minion = build(&id, &config, grains, files, Arc::new(upstream), bus);
        Ok(Connected { minion, channel, id, ready: watch::Sender::new(false), taken: Mutex::default() })
    }

    /// Begins the session. While the key is pending, asks again: soon at first, as somebody may be about to
    /// accept it, then every `acceptance_wait_time`.
    pub async fn join(&self, wait: bool) -> Result<(), MinionError> {
        let config = &self.minion.config;
        let mut lost =
            Backoff::new(Duration::from_millis(config.recon_default), Duration::from_millis(config.recon_max));
        let step = Duration::from_secs(config.acceptance_wait_time.max(1));
        let most = Duration::from_secs(config.acceptance_wait_time_max).max(step);
        let mut pause = FIRST_LOOK;
        loop {
            match self.channel.authenticate().await {
                Ok(()) => return Ok(()),
                Err(error) if !wait => return Err(error.into()),
                Err(error @ (ChannelError::Pending(_) | ChannelError::Full)) => {
                    tracing::warn!("{error}; asking again in {pause:?}");
                    tokio::time::sleep(pause).await;
                    pause = if pause < step { (pause * 2).min(step) } else { (pause + step).min(most) };
                }
                Err(error @ ChannelError::Rejected(_)) if config.rejected_retry => {
                    tracing::error!("{error}; asking again in {step:?}");
                    tokio::time::sleep(step).await;
                }
                Err(error @ ChannelError::Transport(_)) => {
                    tracing::warn!("the master cannot be reached: {error}");
                    lost.wait().await;
                }
                // Somebody in between may have changed it: that must not end the minion.
                Err(error) if error.may_be_forged() => {
                    metrics::REQUESTS_REFUSED.add(1);
                    tracing::error!("an answer to the authentication is refused: {error}; asking again in {step:?}");
                    tokio::time::sleep(step).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Asks for the pillar.
    pub async fn refresh_pillar(&self) -> Result<(), MinionError> {
        let grains = Arc::clone(&self.minion.grains.read());
        let config = &self.minion.config;
        let load = pillar_load(&grains, config.saltenv.as_deref(), config.pillarenv.as_deref(), &Map::new());
        let answer = self.channel.request(load).await?;
        let pillar = answer.as_map().cloned().unwrap_or_default();
        for name in ["beacons", "schedule"] {
            if let Some(other) = pillar.get(name).filter(|value| value.as_map().is_none()) {
                tracing::error!("pillar '{name}': expected a mapping, got {}; it is left out", other.type_name());
            }
        }
        *self.minion.pillar.write() = Arc::new(pillar);
        Ok(())
    }

    /// Collects the grains anew.
    pub async fn refresh_grains(&self) {
        let (minion, id) = (Arc::clone(&self.minion), self.id.clone());
        let collected = tokio::task::spawn_blocking(move || crate::grains::collect(&minion.config, id.as_str()));
        // An error is a panic, which the runtime has told.
        if let Ok(grains) = collected.await {
            *self.minion.grains.write() = Arc::new(grains);
        }
    }

    /// Fires an event on the master's bus.
    pub async fn fire(&self, event: &MasterEvent) -> Result<(), String> {
        send_event(&self.channel, &self.id, event).await
    }

    /// Fires what beacons saw on the master's bus: `tag` and `data` of each.
    pub async fn fire_all(&self, events: Value) -> Result<(), String> {
        let load =
            map! {"cmd" => "_minion_event", "id" => self.id.as_str(), "events" => events, "pretag" => Value::Nil};
        match self.channel.request(load).await {
            Ok(answer) if is_taken(&answer) => Ok(()),
            Ok(_) => Err("the master does not take the events of beacons from this minion".into()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Waits for a session, for so long at most. Says whether there is one.
    pub async fn ready_within(&self, patience: Duration) -> bool {
        let mut ready = self.ready.subscribe();
        tokio::time::timeout(patience, ready.wait_for(|ready| *ready)).await.is_ok_and(|ready| ready.is_ok())
    }

    /// Whether there is a session now.
    pub fn is_ready(&self) -> bool {
        *self.ready.borrow()
    }

    /// Sends a return to the master, until it has it or too many tries have failed.
    pub async fn send_return(&self, load: Map) -> bool {
        let config = &self.minion.config;
        let mut backoff =
            Backoff::new(Duration::from_millis(config.recon_default), Duration::from_millis(config.recon_max));
        for _ in 0..RETURN_TRIES {
            match self.channel.request(load.clone()).await {
                Ok(answer) if is_taken(&answer) => return true,
                Ok(other) => {
                    tracing::error!(answer = %other, jid = ?load.get("jid"), "the master does not take a return");
                    break;
                }
                Err(error) => {
                    tracing::warn!(%error, jid = ?load.get("jid"), "a return did not reach the master; trying again");
                }
            }
            backoff.wait().await;
        }
        metrics::RETURNS_LOST.add(1);
        tracing::error!(jid = ?load.get("jid"), "a return is given up; saltutil.find_cached_job has it");
        false
    }
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
    let serving = tokio::spawn(sockets.serve(bus.clone(), shutdown.clone()));
    let connected = Arc::new(Connected::new(config, Some(bus.clone()))?);
    crate::reactions::start(&connected.minion, &bus, &shutdown)?;
    for kind in [Kind::Own, Kind::ForMaster] {
        tokio::spawn(crate::events::follow(kind, Arc::clone(&connected), bus.clone(), shutdown.clone()));
    }
    let minion = Arc::clone(&connected.minion);
    tokio::spawn(beacons::run(Arc::clone(&minion), bus.clone(), connected.ready.subscribe(), shutdown.clone()));
    tokio::spawn(schedule::run(minion, bus, connected.ready.subscribe(), shutdown.clone()));
    tokio::spawn(crate::ping::run(Arc::clone(&connected), shutdown.clone()));
    let result = tokio::select! {
        result = live(&connected, &shutdown) => result,
        () = shutdown.cancelled() => Ok(()),
    };
    shutdown.cancel();
    for job in connected.minion.jobs.lock().values() {
        job.cancel.cancel();
    }
    _ = serving.await;
    result
}

/// What a minion that was killed left behind.
fn clean_proc(folder: &PathBuf) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::ok) {
        _ = std::fs::remove_file(entry.path());
    }
}

async fn live(connected: &Arc<Connected>, shutdown: &CancellationToken) -> Result<(), MinionError> {
    let config = &connected.minion.config;
    let mut backoff =
        Backoff::new(Duration::from_millis(config.recon_default), Duration::from_millis(config.recon_max));
    let mut started = false;
    let most = usize::try_from(config.process_count_max).ok().filter(|most| *most > 0);
    let slots = Arc::new(Semaphore::new(most.unwrap_or(Semaphore::MAX_PERMITS)));
    loop {
        connected.join(true).await?;
        let result = listen(connected, &mut started, &slots, shutdown, &mut backoff).await;
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
    slots: &Arc<Semaphore>,
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
    if !*started {
        *started = true;
        tell_start(connected).await?;
        tracing::info!(id = %connected.id, "the minion is ready");
        run_startup_states(connected, slots);
    }
    connected.ready.send_replace(true);
    loop {
        let frames = tokio::select! {
            frames = publishes.recv() => frames?,
            () = shutdown.cancelled() => return Ok(()),
        };
        let Some(payload) = frames.last() else { continue };
        match connected.channel.open_publish(payload) {
            Err(ChannelError::Crypt(error)) => {
                // The master has new keys. Not all minions may ask for them in the same moment.
                tracing::info!(%error, "a publish cannot be opened: authenticating again");
                tokio::time::sleep(Duration::from_millis(rand::random_range(0..50))).await;
                connected.join(true).await?;
                // What told of the new keys may be a job.
                take_publish(connected, connected.channel.open_publish(payload), slots);
            }
            opened => take_publish(connected, opened, slots),
        }
    }
}

fn take_publish(connected: &Arc<Connected>, opened: Result<Publication, ChannelError>, slots: &Arc<Semaphore>) {
    match opened {
        Ok(publication) => take_job(connected, publication, slots),
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
fn run_startup_states(connected: &Arc<Connected>, slots: &Arc<Semaphore>) {
    let config = &connected.minion.config;
    let (fun, arg) = match config.startup_states.as_deref() {
        Some("highstate") => ("state.highstate", Vec::new()),
        Some("sls") => ("state.sls", vec![Value::from(config.sls_list.clone())]),
        _ => return,
    };
    let jid = brine_core::Jid::new();
    let load = map! {"jid" => &jid, "fun" => fun, "arg" => arg.clone(), "tgt" => connected.id.as_str(), "user" => "startup_states"};
    start_job(connected, &jid, fun, arg, load, String::new(), slots);
}

/// Runs a published job, if it is for this minion.
fn take_job(connected: &Arc<Connected>, publication: Publication, slots: &Arc<Semaphore>) {
    // The parts of a batch are for different minions and have one id: only what is meant here is remembered.
    if !is_meant(&connected.minion, &publication) {
        return;
    }
    if !connected.is_new(publication.jid.as_str()) {
        tracing::debug!(jid = %publication.jid, "a job comes a second time and is not run again");
        return;
    }
    let fun = match &publication.fun {
        Value::List(_) => String::new(),
        one => one.to_string(),
    };
    tracing::info!(jid = %publication.jid, fun = %publication.fun, user = publication.user, "a job");
    start_job(connected, &publication.jid, &fun, publication.arg, publication.load, publication.ret, slots);
}

fn is_meant(minion: &Minion, publication: &Publication) -> bool {
    let delimiter = publication.load.get("delimiter").and_then(Value::as_str).unwrap_or(":");
    let kind: Result<TargetKind, _> = publication.tgt_type.parse();
    let target =
        kind.and_then(|kind| Target::parse(kind, publication.tgt.clone(), delimiter, &minion.config.nodegroups));
    match target {
        // Its groups are known to the master only, which expands them.
        Ok(target) => target.matches(&OwnFacts::of_minion(minion)),
        Err(error) => {
            tracing::warn!(jid = %publication.jid, %error, "a job's target cannot be read");
            false
        }
    }
}

fn start_job(
    connected: &Arc<Connected>,
    jid: &brine_core::Jid,
    fun: &str,
    arg: Vec<Value>,
    load: Map,
    ret: String,
    slots: &Arc<Semaphore>,
) {
    let job = Arc::new(Job { arg, load, ..Job::local(jid, fun, &brine_core::function::Args::default()) });
    let (connected, slots) = (Arc::clone(connected), Arc::clone(slots));
    tokio::spawn(async move {
        // Never closed.
        let _slot = slots.acquire_owned().await;
        let minion = Arc::clone(&connected.minion);
        let running = Arc::clone(&job);
        let load = match tokio::task::spawn_blocking(move || jobs::run(&minion, &running)).await {
            Ok(load) => load,
            Err(error) => {
                connected.minion.jobs.lock().shift_remove(&job.jid);
                let text = CallError::Exception(error.to_string()).to_string();
                if let Err(error) = connected.fire(&jobs::exception_event()).await {
                    tracing::warn!(jid = job.jid, error, "the event of an exception could not be fired");
                }
                map! {"cmd" => "_return", "jid" => job.jid.as_str(), "id" => connected.id.as_str(), "fun" => &job.fun,
                "fun_args" => job.arg.clone(), "return" => text, "retcode" => 1, "success" => false}
            }
        };
        let (kept, minion) = (load.clone(), Arc::clone(&connected.minion));
        let returned = tokio::task::spawn_blocking(move || {
            jobs::keep_return(&minion, &kept);
            return_beside(&minion, &ret, kept);
        });
        connected.send_return(load).await;
        _ = returned.await;
    });
}

/// Hands a return to the returners that the job names.
pub(crate) fn return_beside(minion: &Minion, ret: &str, load: Map) {
    let names: Vec<&str> = ret.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    if names.is_empty() {
        return;
    }
    let alternative = load.get("ret_config").and_then(Value::as_str).map(str::to_owned);
    let kwargs = load.get("ret_kwargs").and_then(Value::as_map).cloned().unwrap_or_default();
    let Ok(job_return) = Return::from_map(load) else { return };
    let options = brine_returners::Options::new(&minion.config.opts, None).for_job(alternative.as_deref(), &kwargs);
    for name in names {
        let result = brine_returners::open(name, &options).and_then(|returner| returner.returner(&job_return));
        if let Err(error) = result {
            metrics::RETURNS_LOST.add(1);
            tracing::error!(returner = name, jid = %job_return.jid(), %error, "a return could not be stored");
        }
    }
}
