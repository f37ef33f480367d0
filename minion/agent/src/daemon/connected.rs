//! A minion with a session with its master: the common part of the daemon and `salt-call`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use brine_bus::Bus;
use brine_config::MinionConfig;
use brine_context::{MasterEvent, Minion, minion_id};
use brine_host::grains;
use brine_ids::MinionId;
use brine_runtime::backoff::Backoff;
use brine_value::{Map, Value, map};
use parking_lot::{Mutex, RwLock};
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::intake::report_interrupted;
use super::{MinionError, prepare};
use crate::channel::{Channel, ChannelError};
use crate::master_files::MasterFiles;
use crate::master_link::{MasterUpstream, is_taken, pillar_load, send_event};
use crate::masters::Address;
use crate::metrics;
use crate::outbox::{self, Bounds, Outbox, Ticket, Verdict};
use crate::pool::JobPool;
use crate::seen_jobs::SeenJobs;
use crate::spool::Spool;

/// The first interval at which a minion polls for the acceptance of its key.
const FIRST_LOOK: Duration = Duration::from_millis(100);
/// The directory below `cachedir` with the returns that the master has not accepted.
const RETURNS: &str = "returns";
/// The directory below `cachedir` with the returns that the minion's own returners have not accepted.
const RETURNERS: &str = "returners";
/// The maximum age of a queued return: as long as masters keep jobs (`keep_jobs_seconds`).
const RETURNS_AGE: Duration = Duration::from_secs(24 * 3600);
/// The bounds of the queue of events.
const EVENTS: Bounds = Bounds { count: 1000, bytes: 16 << 20, age: Duration::from_secs(600) };
/// The size of a message without its load.
const ENVELOPE: usize = 64 << 10;

/// A minion with a session with its master.
pub struct Connected {
    /// The minion as functions see it.
    pub minion: Arc<Minion>,
    pub(super) channel: Arc<Channel>,
    pub(super) id: MinionId,
    /// Whether there is a session and the master has received the start event.
    pub(super) ready: watch::Sender<bool>,
    pub(super) was_ready: AtomicBool,
    /// Running jobs, and the executors.
    pub pool: Arc<JobPool>,
    /// The received jobs: a job that is received again does not run again.
    pub(super) seen: Mutex<SeenJobs>,
    /// Returns that the master has not accepted.
    pub(super) returns: Arc<Outbox>,
    /// Events that the master has not accepted.
    pub(super) events: Arc<Outbox>,
    /// The returns that wait for the minion's own returners.
    pub(crate) spool: Arc<Spool>,
}

impl Connected {
    /// Creates the minion: reads grains and keys. Blocks. [`Connected::join`] begins the session.
    pub async fn open(config: MinionConfig, bus: Option<Bus>) -> Result<Self, MinionError> {
        let pool = Arc::new(JobPool::new(&config));
        let own = Arc::clone(&pool);
        pool.executors().disk.run(move |_| Self::new(config, bus, own)).await?
    }

    fn new(config: MinionConfig, bus: Option<Bus>, pool: Arc<JobPool>) -> Result<Self, MinionError> {
        let id = minion_id(&config)?;
        // Only a daemon has a bus, `salt-call` has none.
        let is_daemon = bus.is_some();
        let seen = if is_daemon { prepare(&config)? } else { SeenJobs::new(config.minion_jid_queue_hwm) };
        let config = Arc::new(config);
        let (host, port) = config.masters().into_iter().next().ok_or(MinionError::NoMaster)?;
        let master = Address { host, port };
        let grains = grains::collect(&config, id.as_str());
        let crypto = pool.executors().crypto.clone();
        let channel = Channel::to(id.clone(), Arc::clone(&config), &master, crypto)?;
        let channel = Arc::new(channel.showing(&grains));
        let grains = Arc::new(RwLock::new(Arc::new(grains)));
        let runtime = Handle::current();
        let files = Arc::new(MasterFiles::new(Arc::clone(&channel), runtime.clone()));
        let upstream = MasterUpstream {
            id: id.clone(),
            channel: Arc::clone(&channel),
            runtime,
            grains: Arc::clone(&grains),
            masks: Mutex::default(),
        };
        let minion = Minion::new(&id, &config, brine_modules::ROOMS, grains, files, Arc::new(upstream), bus);
        minion.add_custom_grains();
        let returns = Bounds { count: config.return_queue_count, bytes: config.return_queue_bytes, age: RETURNS_AGE };
        let path = config.cachedir.join(RETURNS);
        let connected = Connected {
            channel,
            id,
            ready: watch::Sender::new(false),
            was_ready: AtomicBool::new(false),
            seen: Mutex::new(seen),
            returns: Arc::new(Outbox::open("return", returns, &brine_job::metrics::RETURNS_LOST, &path)),
            spool: Arc::new(Spool::open(config.cachedir.join(RETURNERS), returns)),
            events: Arc::new(Outbox::in_memory("event", EVENTS, &metrics::MINION_EVENTS_LOST)),
            pool,
            minion,
        };
        if is_daemon {
            report_interrupted(&connected);
        }
        Ok(connected)
    }

    /// Begins the session. While the key is pending, retries: quickly at first, as an operator may be about to accept
    /// it, then every `acceptance_wait_time`.
    pub async fn join(&self, wait: bool) -> Result<(), MinionError> {
        let config = &self.minion.config;
        let mut lost = self.backoff();
        let step = Duration::from_secs(config.acceptance_wait_time.max(1));
        let most = Duration::from_secs(config.acceptance_wait_time_max).max(step);
        let mut pause = FIRST_LOOK;
        loop {
            match self.channel.authenticate().await {
                Ok(()) => return Ok(()),
                Err(error) if !wait => return Err(error.into()),
                Err(error @ (ChannelError::Pending(_) | ChannelError::Full)) => {
                    tracing::warn!("{error}; retrying in {pause:?}");
                    tokio::time::sleep(pause).await;
                    pause = if pause < step { (pause * 2).min(step) } else { (pause + step).min(most) };
                }
                Err(error @ ChannelError::Rejected(_)) if config.rejected_retry => {
                    tracing::error!("{error}; retrying in {step:?}");
                    tokio::time::sleep(step).await;
                }
                Err(error @ ChannelError::Transport(_)) => {
                    tracing::warn!("connecting to the master failed: {error}");
                    lost.wait().await;
                }
                // A man in the middle may have caused it: that must not end the minion.
                Err(error) if error.may_be_forged() => {
                    brine_wire::metrics::REQUESTS_REFUSED.add(1);
                    tracing::error!("a reply to the authentication is refused: {error}; retrying in {step:?}");
                    tokio::time::sleep(step).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Requests the pillar.
    pub async fn refresh_pillar(&self) -> Result<(), MinionError> {
        let grains = Arc::clone(&self.minion.grains.read());
        let config = &self.minion.config;
        let load = pillar_load(&grains, config.saltenv.as_deref(), config.pillarenv.as_deref(), &Map::new());
        let answer = self.channel.request(load).await?;
        let pillar = answer.as_map().cloned().unwrap_or_default();
        for name in ["beacons", "schedule"] {
            if let Some(other) = pillar.get(name).filter(|value| value.as_map().is_none()) {
                tracing::error!("pillar '{name}': expected a mapping, got {}; it is ignored", other.type_name());
            }
        }
        self.minion.set_pillar(pillar);
        Ok(())
    }

    /// Collects the grains again.
    pub async fn refresh_grains(&self) {
        let minion = Arc::clone(&self.minion);
        let render = &self.pool.executors().render;
        match render.run(move |_| minion.collect_grains()).await {
            Ok(grains) => *self.minion.grains.write() = Arc::new(grains),
            Err(error) => tracing::error!(%error, "refreshing grains failed"),
        }
    }

    /// Publishes an event on the master's bus.
    pub async fn fire(&self, event: &MasterEvent) -> Result<(), String> {
        send_event(&self.channel, &self.id, event).await
    }

    /// Queues an event for the master's bus. It is retried until the master accepts it.
    pub fn fire_later(&self, event: &MasterEvent) {
        self.events.push(&event.tag, &event.request(self.id.as_str()));
    }

    /// Queues events of beacons, each with `tag` and `data`.
    pub fn fire_all_later(&self, events: Value) {
        let load =
            map! {"cmd" => "_minion_event", "id" => self.id.as_str(), "events" => events, "pretag" => Value::Nil};
        self.events.push("beacons", &load);
    }

    /// Whether there is or was a session.
    pub fn was_ready(&self) -> bool {
        self.is_ready() || self.was_ready.load(Ordering::Relaxed)
    }

    /// Whether there is a session.
    pub fn is_ready(&self) -> bool {
        *self.ready.borrow()
    }

    /// Sends a load to the master, once.
    pub(super) async fn send(&self, load: Map) -> Verdict {
        let jid = load.get("jid").cloned();
        match self.channel.request(load).await {
            Ok(answer) if is_taken(&answer) => Verdict::Accepted,
            // The master's journal fails, for example because of a full disk.
            Ok(Value::Bool(false)) => {
                tracing::warn!(?jid, "the master failed to store a return or event: it is retried");
                Verdict::Later
            }
            Ok(answer) => {
                tracing::error!(%answer, ?jid, "the master refuses a return or event");
                Verdict::Refused
            }
            Err(error) => {
                tracing::warn!(%error, ?jid, "sending a return or event to the master failed: it is retried");
                Verdict::Later
            }
        }
    }

    /// Queues a return for the master, on disk. Blocks.
    pub(super) fn keep_return(&self, load: &mut Map) -> Ticket {
        outbox::fit(load, self.minion.config.max_message_size.saturating_sub(ENVELOPE));
        let label = load.get("jid").map(ToString::to_string).unwrap_or_default();
        self.returns.add(&label, load)
    }

    /// Sends a queued return; the queue retries it if the master does not accept it.
    pub(super) async fn send_return(&self, ticket: Ticket, load: Map) {
        let verdict = if self.is_ready() { self.send(load).await } else { Verdict::Later };
        if verdict == Verdict::Later {
            metrics::RETURNS_RETRIED.add(1);
        }
        let returns = Arc::clone(&self.returns);
        if let Err(error) = self.pool.executors().disk.run(move |_| returns.finish(ticket, verdict)).await {
            tracing::error!(%error, "updating the queue of returns failed");
        }
    }

    /// Queues a return.
    pub async fn return_later(self: &Arc<Self>, mut load: Map) {
        let this = Arc::clone(self);
        match self.pool.executors().disk.run(move |_| (this.keep_return(&mut load), load)).await {
            Ok((ticket, load)) => self.send_return(ticket, load).await,
            Err(error) => {
                brine_job::metrics::RETURNS_LOST.add(1);
                tracing::error!(%error, "queueing a return failed");
            }
        }
    }

    /// Sends the return of a `salt-call` once. A return that the master does not accept is left on disk for the daemon.
    pub async fn return_once(&self, mut load: Map) {
        outbox::fit(&mut load, self.minion.config.max_message_size.saturating_sub(ENVELOPE));
        if self.send(load.clone()).await == Verdict::Later {
            metrics::RETURNS_RETRIED.add(1);
            let (returns, label) = (Arc::clone(&self.returns), load.get("jid").map(ToString::to_string));
            let disk = &self.pool.executors().disk;
            if let Err(error) = disk.run(move |_| returns.push(&label.unwrap_or_default(), &load)).await {
                tracing::error!(%error, "storing a return for the daemon failed");
            }
        }
    }

    /// Returns the backoff between two attempts to reach the master.
    pub(super) fn backoff(&self) -> Backoff {
        let config = &self.minion.config;
        Backoff::new(Duration::from_millis(config.recon_default), Duration::from_millis(config.recon_max))
    }
}
