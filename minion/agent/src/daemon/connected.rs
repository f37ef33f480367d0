//! A minion with a session with a master: the common part of the daemon and `salt-call`. A daemon has one for each master
//! that it is connected to at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use brine_bus::Bus;
use brine_config::{MinionConfig, Number};
use brine_context::masterless::Local;
use brine_context::{FileClient, Grains, MasterEvent, Minion, UpstreamError, minion_id};
use brine_host::grains;
use brine_ids::MinionId;
use brine_runtime::backoff::Backoff;
use brine_value::{Map, Value, map};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::intake::report_interrupted;
use super::received::Received;
use super::{MinionError, master_function, prepare};
use crate::channel::{Channel, ChannelError};
use crate::events::MasterSession;
use crate::master_files::MasterFiles;
use crate::master_link::{MasterUpstream, Others, is_accepted, pillar_load, send_event};
use crate::masters::Address;
use crate::metrics;
use crate::outbox::{self, Bounds, Outbox, QueuedLoad, SendResult};
use crate::pool::JobPool;
use crate::seen_jobs::SeenJobs;
use crate::spool::Spool;

/// The first interval at which a minion polls for the acceptance of its key.
const FIRST_KEY_POLL: Duration = Duration::from_millis(100);
/// The directory below `cachedir` with the returns that the master has not accepted.
const RETURNS_DIRECTORY: &str = "returns";
/// The directory below `cachedir` with the returns that the minion's own returners have not accepted.
const RETURNERS_DIRECTORY: &str = "returners";
/// The maximum age of a queued return: as long as masters keep jobs (`keep_jobs_seconds`).
const MAX_RETURN_AGE: Duration = Duration::from_secs(24 * 3600);
/// The bounds of the queue of events.
const EVENT_QUEUE_BOUNDS: Bounds = Bounds { count: 1000, bytes: 16 << 20, age: Duration::from_secs(600) };
/// The minimum timeout of an attempt to send a return if only `return_retry_timer_max` is set, in seconds: Salt's default.
const RETURN_RETRY_TIMER: Number = Number::of(5);
/// The size of a message without its load.
const ENVELOPE_SIZE: usize = 64 << 10;

/// A minion with a session with a master.
pub struct Connected {
    /// The state that all jobs share.
    pub minion: Arc<Minion>,
    pub(super) channel: Arc<Channel>,
    pub(super) id: MinionId,
    /// Whether there is a session and the master has received the start event.
    pub(super) ready: watch::Sender<bool>,
    pub(super) was_ready: AtomicBool,
    /// Running jobs, and the executors.
    pub pool: Arc<JobPool>,
    /// The received jobs: a job that is received again does not run again, not even from another master.
    pub(super) seen: Arc<Mutex<SeenJobs>>,
    /// The jobs received from this master, and from others if the minion uses one master at a time.
    pub(super) received: Mutex<Received>,
    /// Whether any master has received the start event.
    pub(super) started: Arc<watch::Sender<bool>>,
    /// Whether this is the minion's only master. Then an error that waiting cannot resolve ends the minion.
    pub(super) is_only: bool,
    /// The queues for the other masters that the minion is connected to.
    others: Others,
    /// Returns that the master has not accepted.
    pub(super) returns: Arc<Outbox>,
    /// Events that the master has not accepted.
    pub(super) events: Arc<Outbox>,
    /// The returns that wait for the minion's own returners.
    pub(crate) spool: Arc<Spool>,
}

impl Connected {
    /// Creates the minion of `salt-call`: reads grains and keys. [`Connected::join_once`] begins the session.
    ///
    /// # Errors
    /// Keys or directories that cannot be used.
    pub async fn open(config: MinionConfig) -> Result<Self, MinionError> {
        let config = master_function::resolved(config).await?;
        let pool = Arc::new(JobPool::new(&config));
        let own = Arc::clone(&pool);
        pool.executors().disk.run(move |_| Self::new(config, None, own, None)).await?
    }

    /// Creates the minion of a daemon: one instance for each master that it is connected to at once.
    ///
    /// # Errors
    /// Keys or directories that cannot be used, and a configuration without a master.
    pub async fn open_all(config: MinionConfig, bus: Bus) -> Result<Vec<Arc<Self>>, MinionError> {
        let config = master_function::resolved(config).await?;
        let pool = Arc::new(JobPool::new(&config));
        let own = Arc::clone(&pool);
        let opened = pool.executors().disk.run(move |_| {
            let beside = if config.is_multi_master() { config.masters().split_off(1) } else { Vec::new() };
            let queues: Vec<String> = beside.iter().map(|(host, port)| format!("{host}_{port}")).collect();
            outbox::adopt(&config.cachedir.join(RETURNS_DIRECTORY), &queues);
            let mut all: Vec<Self> = Vec::new();
            if config.is_multi_master() {
                for (host, port) in config.masters() {
                    let config = config.for_master(&host, port);
                    let one = Self::new(config, Some(bus.clone()), Arc::clone(&own), all.first())?;
                    all.push(Connected { is_only: false, ..one });
                }
            } else {
                all.push(Self::new(config, Some(bus), own, None)?);
            }
            let all: Vec<Arc<Self>> = all.into_iter().map(Arc::new).collect();
            for (number, one) in all.iter().enumerate() {
                let others = all.iter().enumerate().filter(|(other, _)| *other != number);
                // Set only once, here.
                _ = one.others.set(others.map(|(_, other)| Arc::clone(&other.events)).collect());
            }
            report_interrupted(&all);
            Ok(all)
        });
        opened.await?
    }

    /// Creates the minion for one master, or for one more beside `first`. Blocks.
    fn new(
        mut config: MinionConfig,
        bus: Option<Bus>,
        pool: Arc<JobPool>,
        first: Option<&Self>,
    ) -> Result<Self, MinionError> {
        let id = minion_id(&config)?;
        let seen = match first {
            Some(first) => Arc::clone(&first.seen),
            // Only a daemon has a bus, `salt-call` has none.
            None if bus.is_some() => Arc::new(Mutex::new(prepare(&config)?)),
            None => Arc::new(Mutex::new(SeenJobs::new(config.minion_jid_queue_hwm))),
        };
        let is_only = config.master.len() == 1;
        if config.is_local() {
            config.make_local();
        }
        let config = Arc::new(config);
        let (host, port) = config.masters().into_iter().next().ok_or(MinionError::NoMaster)?;
        let master = Address { host, port };
        let grains = match first {
            Some(first) => {
                let mut grains = (*first.minion.grains.get()).clone();
                grains.insert("master".into(), master.host.as_str().into());
                grains
            }
            None => grains::collect(&config, id.as_str()),
        };
        let crypto = pool.executors().crypto.clone();
        let channel = Channel::to(id.clone(), Arc::clone(&config), &master, crypto)?;
        let channel = Arc::new(channel.with_autosign_grains(&grains));
        let grains = Arc::new(Grains::from(grains));
        let runtime = Handle::current();
        let local = config.is_local().then(|| Local::open(&config, &id, &grains)).transpose()?;
        let files: Arc<dyn FileClient> = match &local {
            Some(local) => Arc::clone(&local.files) as _,
            None => Arc::new(MasterFiles::new(Arc::clone(&channel), runtime.clone())),
        };
        let local = local.map(|local| local.upstream);
        let others = Others::default();
        let upstream = Arc::new(MasterUpstream {
            id: id.clone(),
            config: Arc::clone(&config),
            channel: Arc::clone(&channel),
            runtime,
            grains: Arc::clone(&grains),
            masks: Mutex::default(),
            others: Arc::clone(&others),
            local: local.clone(),
            has_local_pillar: config.has_local_pillar(),
            is_alone: config.is_masterless(),
        });
        let minion = match first {
            Some(first) => first.minion.for_master(&id, &config, grains, files, upstream, bus),
            None => Minion::new(&id, &config, brine_modules::MODULES, grains, files, upstream, bus),
        };
        if let Some(local) = &local {
            local.set_minion(&minion);
        }
        if first.is_none() {
            minion.add_custom_grains();
            brine_context::custom::warn_about_unused(&minion.config);
        }
        let returns =
            Bounds { count: config.return_queue_count, bytes: config.return_queue_bytes, age: MAX_RETURN_AGE };
        // The returns of earlier runs belong to the first master.
        let path = config.cachedir.join(RETURNS_DIRECTORY);
        let path = if first.is_some() { path.join(format!("{}_{}", master.host, master.port)) } else { path };
        let received = Mutex::new(Received::after(seen.lock().last().map(str::to_owned)));
        Ok(Connected {
            channel,
            id,
            ready: watch::Sender::new(false),
            was_ready: AtomicBool::new(false),
            seen,
            received,
            started: first.map_or_else(Arc::default, |first| Arc::clone(&first.started)),
            is_only,
            others,
            returns: Arc::new(Outbox::open("return", returns, &brine_job::metrics::RETURNS_LOST, &path)),
            spool: match first {
                Some(first) => Arc::clone(&first.spool),
                None => Arc::new(Spool::open(config.cachedir.join(RETURNERS_DIRECTORY), returns)),
            },
            events: Arc::new(Outbox::in_memory("event", EVENT_QUEUE_BOUNDS, &metrics::MINION_EVENTS_LOST)),
            pool,
            minion,
        })
    }

    /// Returns the address of the current master.
    pub(super) fn master(&self) -> Option<Address> {
        self.channel.master()
    }

    /// Begins the session. While the key is pending, retries: quickly at first, as an operator may be about to accept
    /// it, then every `acceptance_wait_time`.
    pub async fn join(&self, wait: bool) -> Result<(), MinionError> {
        let config = &self.minion.config;
        let mut lost = self.backoff();
        let step = config.acceptance_wait_time.pause();
        let most = config.acceptance_wait_time_max.seconds().max(step);
        let mut pause = FIRST_KEY_POLL;
        loop {
            match self.channel.authenticate().await {
                Ok(()) => return Ok(()),
                Err(error) if !wait => return Err(error.into()),
                Err(error @ (ChannelError::Pending(_) | ChannelError::Full | ChannelError::Deferred(_))) => {
                    tracing::warn!("{error}; retrying in {pause:?}");
                    // Jitter: minions whose keys were deleted together must not retry at the same moment.
                    tokio::time::sleep(pause.mul_f64(rand::random_range(0.8..1.2))).await;
                    pause = if pause < step { (pause * 2).min(step) } else { (pause + step).min(most) };
                }
                Err(error @ ChannelError::Rejected(_)) if config.rejected_retry => {
                    tracing::error!("{error}; retrying in {step:?}");
                    tokio::time::sleep(step).await;
                }
                Err(error @ ChannelError::Transport(_)) => {
                    tracing::warn!("connecting to the master failed: {error}");
                    self.pause(&mut lost, error.is_unresolved()).await;
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
        let grains = self.minion.grains.get();
        let config = &self.minion.config;
        if config.has_local_pillar() {
            return self.render_pillar().await;
        }
        let load = pillar_load(config, &grains, config.saltenv.as_deref(), config.pillarenv.as_deref(), &Map::new());
        let answer = self.channel.request(load).await?;
        self.set_pillar(answer.as_map().cloned().unwrap_or_default());
        Ok(())
    }

    /// Renders the pillar of this host. As in Salt, a pillar with errors leaves the minion without pillar.
    async fn render_pillar(&self) -> Result<(), MinionError> {
        let minion = Arc::clone(&self.minion);
        let rendered = self.pool.executors().render.run(move |_| {
            let config = &minion.config;
            minion.upstream.pillar(config.saltenv.as_deref(), config.pillarenv.as_deref(), &Map::new())
        });
        let pillar = rendered.await?.unwrap_or_else(|error| {
            tracing::error!("rendering the pillar failed: {error}");
            Map::new()
        });
        self.set_pillar(pillar);
        Ok(())
    }

    fn set_pillar(&self, pillar: Map) {
        for name in ["beacons", "schedule"] {
            if let Some(other) = pillar.get(name).filter(|value| value.as_map().is_none()) {
                tracing::error!("pillar '{name}': expected a mapping, got {}; it is ignored", other.type_name());
            }
        }
        self.minion.set_pillar(pillar);
    }

    /// Publishes an event on the master's bus.
    pub async fn fire(&self, event: &MasterEvent) -> Result<(), UpstreamError> {
        send_event(&self.channel, &self.id, event).await
    }

    /// Whether there is a session.
    pub fn is_ready(&self) -> bool {
        *self.ready.borrow()
    }

    /// Sends a load to the master, once.
    pub(super) async fn send(&self, load: Map) -> SendResult {
        let jid = load.get("jid").cloned();
        match self.channel.request_within(load, return_timeout(&self.minion.config)).await {
            Ok(answer) if is_accepted(&answer) => SendResult::Accepted,
            // The master's journal fails, for example because of a full disk.
            Ok(Value::Bool(false)) => {
                tracing::warn!(?jid, "the master failed to store a return or event: it is retried");
                SendResult::Later
            }
            Ok(answer) => {
                tracing::error!(%answer, ?jid, "the master refuses a return or event");
                SendResult::Refused
            }
            Err(error) => {
                tracing::warn!(%error, ?jid, "sending a return or event to the master failed: it is retried");
                SendResult::Later
            }
        }
    }

    /// Queues a return for the master, on disk. Blocks.
    pub(super) fn keep_return(&self, load: &mut Map) -> QueuedLoad {
        outbox::fit(load, self.minion.config.max_message_size.saturating_sub(ENVELOPE_SIZE));
        let label = load.get("jid").map(ToString::to_string).unwrap_or_default();
        self.returns.add(&label, load)
    }

    /// Sends a queued return; the queue retries it if the master does not accept it.
    pub(super) async fn send_return(&self, ticket: QueuedLoad, load: Map) {
        let verdict = if self.is_ready() { self.send(load).await } else { SendResult::Later };
        if verdict == SendResult::Later {
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
        outbox::fit(&mut load, self.minion.config.max_message_size.saturating_sub(ENVELOPE_SIZE));
        if self.send(load.clone()).await == SendResult::Later {
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
        Backoff::new(config.recon_default.milliseconds(), config.recon_max.milliseconds())
    }
}

impl MasterSession for Connected {
    fn was_ready(&self) -> bool {
        self.is_ready() || self.was_ready.load(Ordering::Relaxed)
    }

    fn queue_event(&self, event: &MasterEvent) {
        self.events.push(&event.tag, &event.request(self.id.as_str()));
    }

    fn queue_beacon_events(&self, events: Value) {
        let load =
            map! {"cmd" => "_minion_event", "id" => self.id.as_str(), "events" => events, "pretag" => Value::Nil};
        self.events.push("beacons", &load);
    }

    fn queue_return(self: &Arc<Self>, load: Map) {
        let this = Arc::clone(self);
        self.pool.spawn(async move { this.return_later(load).await });
    }

    fn refresh_modules(&self) {
        self.minion.custom.refresh();
    }

    async fn refresh_grains(&self) -> bool {
        let minion = Arc::clone(&self.minion);
        let render = &self.pool.executors().render;
        match render.run(move |_| minion.collect_grains()).await {
            Ok(mut grains) => {
                if let Some(master) = self.master() {
                    grains.insert("master".into(), master.host.into());
                }
                let has_changed = *self.minion.grains.get() != grains;
                self.minion.grains.set(grains);
                has_changed
            }
            Err(error) => {
                tracing::error!(%error, "refreshing grains failed");
                false
            }
        }
    }

    async fn refresh_pillar(&self) -> Result<(), String> {
        Connected::refresh_pillar(self).await.map_err(|error| error.to_string())
    }
}

/// Returns the timeout of an attempt to send a return or an event: a random one from `return_retry_timer` to
/// `return_retry_timer_max`, so that minions whose master is overloaded do not come back together; without either,
/// `request_timeout`.
fn return_timeout(config: &MinionConfig) -> Duration {
    match (config.return_retry_timer, config.return_retry_timer_max) {
        (None, None) => config.request_timeout.pause(),
        (least, most) => {
            let least = least.unwrap_or(RETURN_RETRY_TIMER).pause();
            rand::random_range(least..=most.unwrap_or_default().pause().max(least))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_of_returns_is_between_its_two_options() {
        for (least, most, range) in [
            (None, None, 60..=60),
            (Some(3), None, 3..=3),
            (Some(3), Some(0), 3..=3),
            (Some(3), Some(4), 3..=4),
            (Some(9), Some(4), 9..=9),
            (None, Some(6), 5..=6),
            (Some(0), None, 1..=1),
        ] {
            let (return_retry_timer, return_retry_timer_max) = (least.map(Number::of), most.map(Number::of));
            let config = MinionConfig { return_retry_timer, return_retry_timer_max, ..MinionConfig::default() };
            for _ in 0..20 {
                assert!(range.contains(&return_timeout(&config).as_secs()), "{least:?} {most:?}");
            }
        }
    }
}
