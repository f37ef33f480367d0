//! A simulated minion.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use brine_agent::channel::{Channel, ChannelError};
use brine_config::MinionConfig;
use brine_crypt::PrivateKey;
use brine_ids::MinionId;
use brine_runtime::backoff::Backoff;
use brine_runtime::executors::Executor;
use brine_target::{Target, TargetFacts, TargetKind};
use brine_value::{Map, Value, map};
use brine_wire::Publication;
use brine_zmtp::RequestClient;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

/// The pause before a retry.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause of a minion whose key is not accepted, as a minion's by default (`acceptance_wait_time`).
const MAX_PENDING_PAUSE: Duration = Duration::from_secs(10);
/// The maximum number of attempts to send a return.
const MAX_ATTEMPTS: usize = 120;
/// The number of decrypted publishes that are kept: minions that were busy are some publishes behind the others.
const MAX_DECRYPTED: usize = 16;
/// The number of jobs that a minion remembers, so that it does not answer one twice.
const MAX_SEEN: usize = 64;

/// The shared state of all minions of a swarm.
pub(super) struct Shared {
    /// Limits concurrent authentications.
    turns: Semaphore,
    /// The last publishes, each decrypted once for all minions with its keys.
    decrypted: Mutex<VecDeque<(u64, Bytes, Arc<DecryptedPublish>)>>,
    /// The generation of the master's keys, incremented when a minion detects that its own are stale.
    keys: AtomicU64,
    returns: AtomicU64,
    /// The last error of any minion.
    failure: Mutex<Option<String>>,
}

/// A decrypted publish.
struct DecryptedPublish {
    publication: Publication,
    /// `None` if the target does not parse.
    target: Option<Target>,
}

impl DecryptedPublish {
    fn new(publication: Publication) -> Arc<Self> {
        let kind = publication.tgt_type.parse::<TargetKind>().ok();
        let target = kind.and_then(|kind| Target::parse(kind, publication.tgt.clone(), ":", &Map::new()).ok());
        Arc::new(DecryptedPublish { publication, target })
    }
}

impl Shared {
    pub fn new(turns: Semaphore) -> Self {
        Shared {
            turns,
            decrypted: Mutex::default(),
            keys: AtomicU64::new(0),
            returns: AtomicU64::new(0),
            failure: Mutex::default(),
        }
    }

    /// Records an error. Connection errors are logged, repeated ones once.
    fn failed(&self, error: &ChannelError) {
        let message = error.to_string();
        let mut last = self.failure.lock();
        if matches!(error, ChannelError::Transport(_)) && last.as_ref() != Some(&message) {
            tracing::warn!("connecting to the master failed: {message}; retrying");
        }
        *last = Some(message);
    }

    /// Returns the last error of any minion.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().clone()
    }

    /// Returns the number of returns that the master has accepted.
    pub fn returns(&self) -> u64 {
        self.returns.load(Ordering::Relaxed)
    }

    /// Decrypts a publish for a minion that has joined with these keys.
    fn open(&self, keys: u64, channel: &Channel, payload: &Bytes) -> Result<Arc<DecryptedPublish>, ChannelError> {
        let is_known = |(number, other, _): &&(u64, Bytes, Arc<DecryptedPublish>)| *number == keys && other == payload;
        let mut all = self.decrypted.lock();
        if let Some((_, _, decrypted)) = all.iter().rev().find(is_known) {
            return Ok(Arc::clone(decrypted));
        }
        let decrypted = DecryptedPublish::new(channel.open_publish(payload)?);
        all.push_back((keys, payload.clone(), Arc::clone(&decrypted)));
        if all.len() > MAX_DECRYPTED {
            all.pop_front();
        }
        Ok(decrypted)
    }
}

pub(super) struct SimulatedMinion {
    id: MinionId,
    grains: Map,
    channel: Arc<Channel>,
    shared: Arc<Shared>,
    /// The generation of the keys with which the minion has joined.
    keys: AtomicU64,
    /// The last jobs, oldest first.
    seen: Mutex<VecDeque<String>>,
}

impl TargetFacts for SimulatedMinion {
    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn grains(&self) -> Option<&Map> {
        Some(&self.grains)
    }

    fn pillar(&self) -> Option<&Map> {
        None
    }
}

impl SimulatedMinion {
    pub fn new(
        id: MinionId,
        config: Arc<MinionConfig>,
        key: Arc<PrivateKey>,
        client: RequestClient,
        crypto: Executor,
        shared: Arc<Shared>,
    ) -> Result<Self, ChannelError> {
        let grains = map! {"id" => &id, "os" => "Simulated", "kernel" => "Linux"};
        let channel = Arc::new(Channel::with_key(id.clone(), config, key, client, crypto));
        Ok(SimulatedMinion { id, grains, channel, shared, keys: AtomicU64::new(0), seen: Mutex::default() })
    }

    /// Authenticates and answers jobs until `shutdown`; sends to `ready` once it has joined.
    pub async fn live(self, ready: mpsc::UnboundedSender<()>, shutdown: CancellationToken) {
        let this = Arc::new(self);
        let mut has_joined = false;
        loop {
            let ended = tokio::select! {
                ended = this.listen(&mut has_joined, &ready) => ended,
                () = shutdown.cancelled() => return,
            };
            match ended {
                Err(error @ (ChannelError::ChangedMaster(_) | ChannelError::Rejected(_))) => {
                    tracing::error!(minion = %this.id, "{error}");
                    return;
                }
                Err(error) => this.shared.failed(&error),
                Ok(()) => {}
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    async fn listen(
        self: &Arc<Self>,
        has_joined: &mut bool,
        ready: &mpsc::UnboundedSender<()>,
    ) -> Result<(), ChannelError> {
        self.join().await?;
        let Some(mut publishes) = self.channel.subscribe().await? else { return Ok(()) };
        if *has_joined {
            self.catch_up().await?;
        } else {
            let tag = format!("salt/minion/{}/start", self.id);
            let text = format!("Minion {} started", self.id);
            let load =
                map! {"cmd" => "_minion_event", "id" => &self.id, "tag" => tag, "data" => text, "pretag" => Value::Nil};
            self.channel.request(load).await?;
            *has_joined = true;
            // The receiver is closed when the swarm ends.
            _ = ready.send(());
        }
        loop {
            let payload = publishes.recv().await?;
            let keys = self.keys.load(Ordering::Relaxed);
            match self.shared.open(keys, &self.channel, &payload) {
                Ok(decrypted) => self.take(decrypted),
                Err(ChannelError::Crypt(_)) => {
                    self.shared.keys.fetch_max(keys + 1, Ordering::Relaxed);
                    self.join().await?;
                    // The first publish with the new keys only announces them; a later one may be a job.
                    match self.shared.open(self.keys.load(Ordering::Relaxed), &self.channel, &payload) {
                        Ok(decrypted) => self.take(decrypted),
                        Err(error) => tracing::debug!(minion = %self.id, %error, "decrypting a publish failed"),
                    }
                }
                Err(error) => tracing::warn!(minion = %self.id, %error, "refusing an invalid publish"),
            }
        }
    }

    /// Answers the jobs that were published while there was no connection, as a minion does.
    async fn catch_up(self: &Arc<Self>) -> Result<(), ChannelError> {
        if !self.channel.is_brine() {
            return Ok(());
        }
        let last = self.seen.lock().back().cloned().unwrap_or_default();
        let missed = self.channel.request(map! {"cmd" => "_catch_up", "jid" => last}).await?;
        for load in missed.as_list().unwrap_or_default() {
            if let Some(Ok(publication)) = load.as_map().cloned().map(Publication::from_map) {
                self.take(DecryptedPublish::new(publication));
            } else {
                tracing::warn!(minion = %self.id, "a missed job is invalid");
            }
        }
        Ok(())
    }

    /// Answers a job once, if it is for this minion.
    fn take(self: &Arc<Self>, decrypted: Arc<DecryptedPublish>) {
        if !decrypted.target.as_ref().is_some_and(|target| target.matches(&**self)) {
            return;
        }
        let jid = decrypted.publication.jid.to_string();
        {
            let mut seen = self.seen.lock();
            if seen.contains(&jid) {
                return;
            }
            seen.push_back(jid);
            if seen.len() > MAX_SEEN {
                seen.pop_front();
            }
        }
        tokio::spawn(Arc::clone(self).answer(decrypted));
    }

    async fn join(&self) -> Result<(), ChannelError> {
        let mut backoff = Backoff::new(RETRY_PAUSE, MAX_PENDING_PAUSE);
        loop {
            {
                // The semaphore is never closed.
                let _turn = self.shared.turns.acquire().await;
                let keys = self.shared.keys.load(Ordering::Relaxed);
                match self.channel.authenticate().await {
                    Ok(()) => {
                        self.keys.store(keys, Ordering::Relaxed);
                        return Ok(());
                    }
                    Err(ChannelError::Pending(_) | ChannelError::Full | ChannelError::Deferred(_)) => {}
                    result => return result,
                }
            }
            backoff.wait().await;
        }
    }

    async fn answer(self: Arc<Self>, decrypted: Arc<DecryptedPublish>) {
        let publication = &decrypted.publication;
        let fun = publication.fun.to_string();
        let mut load = map! {
            "cmd" => "_return",
            "id" => &self.id,
            "jid" => &publication.jid,
            "fun" => publication.fun.clone(),
            "fun_args" => publication.arg.clone(),
            "return" => answer(&fun),
            "retcode" => 0,
            "success" => true,
        };
        if fun.starts_with("state.") {
            load.insert("out".into(), "highstate".into());
        }
        for _ in 0..MAX_ATTEMPTS {
            match self.channel.request(load.clone()).await {
                // Salt's masters reply with nothing to an accepted return.
                Ok(answer) if answer != Value::Bool(false) => {
                    self.shared.returns.fetch_add(1, Ordering::Relaxed);
                    return;
                }
                // The key was deleted meanwhile: each further try would be an authentication.
                Err(ChannelError::Pending(_) | ChannelError::Rejected(_)) => return,
                _ => tokio::time::sleep(RETRY_PAUSE).await,
            }
        }
        tracing::warn!(minion = %self.id, "sending a return failed");
    }
}

/// Returns the simulated result of a function.
fn answer(fun: &str) -> Value {
    if fun.starts_with("state.") {
        let state = |name: &str, number: i64| {
            map! {
                "__id__" => name, "__run_num__" => number, "__sls__" => "swarm", "name" => format!("/etc/{name}.conf"),
                "changes" => map! {}, "comment" => "The file is in the correct state", "result" => true,
                "start_time" => "10:00:00.000000", "duration" => 1.5,
            }
        };
        let names = ["first", "second", "third", "fourth"].iter().zip(0..);
        return names
            .map(|(name, n)| (format!("file_|-{name}_|-/etc/{name}.conf_|-managed").into(), state(name, n).into()))
            .collect::<Map>()
            .into();
    }
    match fun {
        "test.ping" => true.into(),
        // Jobs have always returned already.
        "saltutil.find_job" => Value::map(),
        _ => format!("'{fun}' is not simulated.").into(),
    }
}
