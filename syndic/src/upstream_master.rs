//! The session with one upstream master: authentication, received jobs, and the position of forwarded events.

use std::sync::Arc;
use std::time::Duration;

use brine_agent::channel::{Address, Channel, ChannelError, OpenError};
use brine_agent::daemon::catch_up::fetch;
use brine_agent::seen_jobs::SeenJobs;
use brine_config::MinionConfig;
use brine_digest::{Digest, hex};
use brine_ids::Jid;
use brine_runtime::backoff::Backoff;
use brine_runtime::executors::Executor;
use brine_system::files;
use brine_value::{Map, Value, map, msgpack};
use brine_wire::{Publication, WireError};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::position::Position;
use crate::settings::{Settings, SyndicError};

/// The number of recent jobs that are remembered for deduplication.
const MAX_RECENT: usize = 10_000;
/// The first interval between authentication attempts while the key is not accepted.
const FIRST_KEY_POLL: Duration = Duration::from_secs(1);

/// One upstream master.
pub(crate) struct UpstreamMaster {
    pub address: Address,
    pub channel: Arc<Channel>,
    /// Whether the session is established.
    pub ready: watch::Sender<bool>,
    pub position: Position,
    config: Arc<MinionConfig>,
    /// The jobs that this master has published, each by id and target: the parts of a batch share one id.
    jobs: Mutex<SeenJobs>,
}

/// The progress of a session since the start of the syndic.
#[derive(Default)]
struct Progress {
    /// Whether there was a session.
    was_ready: bool,
    /// Whether the publish stream was damaged, and no publish has arrived since: the backoff goes on.
    is_damaged: bool,
}

/// A job in the queue for the local master.
pub(crate) struct Received {
    pub publication: Publication,
    pub at: Instant,
}

impl UpstreamMaster {
    /// Opens the upstream masters: reads keys and positions. Blocks.
    pub fn open_all(settings: &Settings, crypto: &Executor) -> Result<Vec<Self>, SyndicError> {
        let directory = settings.directory();
        for directory in [&settings.master.cachedir, &directory] {
            files::create_private_dir(directory)?;
        }
        let open = |address: &Address| {
            let config = Arc::new(settings.minion.for_master(&address.host, address.port));
            let channel = Channel::to(settings.id.clone(), Arc::clone(&config), address, crypto.clone())?.of_syndic();
            let name = format!("{}_{}", address.host.replace('/', "_"), address.port);
            Ok(UpstreamMaster {
                address: address.clone(),
                channel: Arc::new(channel),
                ready: watch::Sender::new(false),
                position: Position::open(&directory.join(format!("{name}.position")))?,
                jobs: Mutex::new(SeenJobs::open(&directory.join(format!("{name}.jobs")), MAX_RECENT)),
                config,
            })
        };
        settings.upstream.iter().map(open).collect()
    }

    /// Whether the session is established.
    pub fn is_ready(&self) -> bool {
        *self.ready.borrow()
    }

    /// Whether this master has published a job.
    pub fn has_sent(&self, jid: &Jid) -> bool {
        self.jobs.lock().contains_job(jid.as_str())
    }

    /// Records a job that is received, and returns whether it is new. After a restart it counts as missed, unless it has
    /// been [published](Self::is_published). Blocks.
    pub fn receive(&self, publication: &Publication) -> bool {
        self.jobs.lock().insert(&part(publication))
    }

    /// Records that the local master has published a job, or refuses it. Blocks.
    pub fn is_published(&self, publication: &Publication) {
        self.jobs.lock().begin(&part(publication));
    }

    /// Returns how long a job may wait for the local master, as for the time that it waits upstream for a syndic that is
    /// not connected.
    pub fn patience(&self) -> Duration {
        Duration::from_secs(self.config.publish_catch_up)
    }

    /// Maintains a session and queues the jobs that it receives. Never returns, since any error may be temporary.
    pub async fn run_session(&self, jobs: mpsc::Sender<Received>) {
        let mut backoff = self.backoff();
        let mut progress = Progress::default();
        loop {
            self.authenticate(&mut backoff).await;
            if let Err(error) = self.listen(&jobs, &mut backoff, &mut progress).await {
                if error.is_damage() {
                    brine_agent::metrics::PUBLISH_STREAMS_DAMAGED.add(1);
                    progress.is_damaged = true;
                }
                tracing::warn!(master = %self.address, "the connection to the upstream master is lost: {error}; reconnecting");
            }
            self.ready.send_replace(false);
            backoff.wait().await;
        }
    }

    fn backoff(&self) -> Backoff {
        let config = &self.config;
        Backoff::new(config.recon_default.milliseconds(), config.recon_max.milliseconds())
    }

    /// Authenticates, with retries until it succeeds.
    async fn authenticate(&self, backoff: &mut Backoff) {
        let step = self.config.acceptance_wait_time.pause();
        let most = self.config.acceptance_wait_time_max.seconds().max(step);
        let mut pause = FIRST_KEY_POLL;
        loop {
            match self.channel.authenticate().await {
                Ok(()) => return,
                Err(error @ ChannelError::Transport(_)) => {
                    tracing::warn!(master = %self.address, "connecting to the upstream master failed: {error}");
                    backoff.wait().await;
                }
                Err(error @ (ChannelError::Pending(_) | ChannelError::Full | ChannelError::Deferred(_))) => {
                    tracing::warn!(master = %self.address, "{error}; retrying in {pause:?}");
                    tokio::time::sleep(pause).await;
                    pause = if pause < step { (pause * 2).min(step) } else { (pause + step).min(most) };
                }
                Err(error) => {
                    brine_wire::metrics::REQUESTS_REFUSED.add(1);
                    tracing::error!(master = %self.address, "authenticating with the upstream master failed: {error}; retrying in {step:?}");
                    tokio::time::sleep(step).await;
                }
            }
        }
    }

    /// Receives jobs until the connection is lost.
    async fn listen(
        &self,
        jobs: &mpsc::Sender<Received>,
        backoff: &mut Backoff,
        progress: &mut Progress,
    ) -> Result<(), ChannelError> {
        // Subscribe before the start event: no job published after it may be missed.
        let mut publishes = self.channel.subscribe().await?.ok_or(ChannelError::Refused)?;
        self.publish_start().await?;
        self.catch_up(jobs, progress.was_ready).await;
        tracing::info!(master = %self.address, "the syndic is ready");
        if !progress.is_damaged {
            backoff.reset();
        }
        progress.was_ready = true;
        self.ready.send_replace(true);
        loop {
            let payload = publishes.recv().await?;
            let join = async {
                self.authenticate(&mut self.backoff()).await;
                Ok::<_, ChannelError>(())
            };
            match self.channel.open_or_join(payload, join).await {
                Ok(publication) => {
                    if std::mem::take(&mut progress.is_damaged) {
                        backoff.reset();
                    }
                    queue(jobs, publication).await;
                }
                Err(OpenError::Refused(error)) => {
                    tracing::warn!(master = %self.address, %error, "a publish is refused");
                }
                // The bytes that follow may be of another message than they seem: a new connection begins at its start,
                // and the jobs that were lost are fetched.
                Err(OpenError::Broken(error) | OpenError::Join(error)) => return Err(error),
            }
        }
    }

    /// Publishes the start event, by which an upstream master recognises a syndic.
    async fn publish_start(&self) -> Result<(), ChannelError> {
        let id = self.channel.id();
        let now = brine_clock::now().strftime("%a %b %e %H:%M:%S %Y").to_string();
        let load = map! {
            "cmd" => "_minion_event",
            "id" => id,
            "tag" => format!("salt/syndic/{id}/start"),
            "data" => format!("Syndic {id} started at {now}"),
            "pretag" => Value::Nil,
        };
        let answer = self.channel.request(load).await?;
        if answer == Value::Bool(false) {
            tracing::error!(
                master = %self.address,
                "the upstream master refuses events of a syndic: set order_masters in its configuration"
            );
        }
        Ok(())
    }

    /// Queues the jobs that were published while there was no session. Supported by Brine masters only.
    async fn catch_up(&self, jobs: &mpsc::Sender<Received>, was_ready: bool) {
        let last = self.jobs.lock().last().map(str::to_owned);
        // A syndic that has just started, and has never received a job, has missed none.
        if self.config.publish_catch_up == 0 || !self.channel.is_brine() || (last.is_none() && !was_ready) {
            return;
        }
        let load = map! {"cmd" => "_catch_up", "jid" => last.unwrap_or_default()};
        let Some(Value::List(loads)) = fetch(&self.channel, load, self.backoff()).await else { return };
        for load in loads {
            match publication(load) {
                Ok(publication) => queue(jobs, publication).await,
                Err(error) => {
                    brine_wire::metrics::REQUESTS_REFUSED.add(1);
                    tracing::warn!(master = %self.address, %error, "a missed job is invalid");
                }
            }
        }
    }
}

/// Returns the key of a job: its id, and a digest of its target.
fn part(publication: &Publication) -> String {
    let Publication { jid, tgt, tgt_type, .. } = publication;
    let target = msgpack::pack(&vec![tgt.clone(), tgt_type.as_str().into()].into());
    format!("{jid}/{}", &hex(Digest::Sha256.of(target))[..16])
}

fn publication(load: Value) -> Result<Publication, WireError> {
    let Value::Map(load) = load else { return Publication::from_map(Map::new()) };
    Publication::from_map(load)
}

/// Queues a job. The queue is closed only at shutdown.
async fn queue(jobs: &mpsc::Sender<Received>, publication: Publication) {
    _ = jobs.send(Received { publication, at: Instant::now() }).await;
}
