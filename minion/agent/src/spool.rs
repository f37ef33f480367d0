//! Returns that wait for a minion's own returners (`--return`, `schedule_returner`). A returner whose server does not
//! reply receives them later, in order. Each returner has its own queue on disk, so that none delays another.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use brine_context::{Context, Job, Minion};
use brine_function::Args;
use brine_ids::Jid;
use brine_returners::{BACKENDS, Options, ReturnerError, split, store, try_store_in};
use brine_runtime::backoff::Backoff;
use brine_runtime::executors::Executor;
use brine_value::{Map, Value};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::outbox::{Bounds, Outbox, SendResult};

/// The queues of returners, each in a directory of its returner's name.
#[derive(Debug)]
pub(crate) struct Spool {
    path: PathBuf,
    /// The bounds of each queue.
    bounds: Bounds,
    queues: Mutex<BTreeMap<&'static str, Arc<Outbox>>>,
    opened: Notify,
}

impl Spool {
    /// Opens the queues of an earlier run. Blocks.
    pub fn open(path: PathBuf, bounds: Bounds) -> Self {
        let spool = Spool { path, bounds, queues: Mutex::default(), opened: Notify::new() };
        for backend in BACKENDS.iter().filter(|backend| spool.path.join(backend.name).is_dir()) {
            spool.queue(backend.name);
        }
        spool
    }

    /// Creates an empty spool for tests that store no returns.
    #[cfg(test)]
    pub fn unused() -> Self {
        let bounds = Bounds { count: 0, bytes: 0, age: std::time::Duration::ZERO };
        Spool::open(PathBuf::from("/nonexistent"), bounds)
    }

    /// Returns the queue of a returner; opens it if it is new. Blocks.
    fn queue(&self, name: &'static str) -> Arc<Outbox> {
        let mut queues = self.queues.lock();
        let open = || {
            let queue = Outbox::open("return", self.bounds, &brine_job::metrics::RETURNS_LOST, &self.path.join(name));
            Arc::new(queue.of_returner(name))
        };
        let queue = Arc::clone(queues.entry(name).or_insert_with(open));
        drop(queues);
        self.opened.notify_one();
        queue
    }

    /// Whether returns wait for a returner: a new one must not overtake them.
    fn waits(&self, name: &str) -> bool {
        self.queues.lock().get(name).is_some_and(|queue| queue.len() > 0)
    }

    /// Returns the errors of returners, separated by commas, that do not exist here or are not part of this build.
    pub fn refused(minion: &Minion, names: &str) -> Vec<String> {
        // Custom returners, and those of Salt itself, are known when they are called.
        let config = &minion.config;
        let is_other =
            |name: &&str| config.python_fallback || brine_context::custom::may_have(config, "returners", name);
        let options = Options::new(&config.opts, None);
        let errors =
            split(names).filter(|name| !is_other(name)).filter_map(|name| brine_returners::check(name, &options).err());
        let is_lasting =
            |error: &ReturnerError| matches!(error, ReturnerError::Unknown { .. } | ReturnerError::NotBuilt { .. });
        errors.filter(is_lasting).map(|error| error.to_string()).collect()
    }

    /// Stores a return with each of these returners, separated by commas. Returners whose servers do not reply receive
    /// it later. Blocks.
    pub fn store(&self, minion: &Arc<Minion>, names: &str, load: Map) {
        // As in Salt, custom returners take precedence.
        let names = split(names).filter(|name| !store_with_custom(minion, name, &load));
        let (mut later, now): (Vec<&str>, Vec<&str>) = names.partition(|name| self.waits(name));
        let grains = minion.grains.get();
        later.extend(try_store_in(now, &minion.config.opts, &grains, &load));
        let label = load.get("jid").map(ToString::to_string).unwrap_or_default();
        for name in later {
            tracing::warn!(returner = name, jid = label, "a return is queued for its returner");
            if let Some(backend) = BACKENDS.iter().find(|backend| backend.name == name) {
                self.queue(backend.name).push(&label, &load);
            }
        }
    }

    /// Delivers waiting returns until `shutdown`.
    pub async fn run(
        self: Arc<Self>,
        minion: Arc<Minion>,
        backoff: impl Fn() -> Backoff + Send,
        disk: Executor,
        shutdown: CancellationToken,
    ) {
        let (_ready, is_ready) = watch::channel(true);
        let (mut running, mut started) = (JoinSet::new(), HashSet::new());
        while !shutdown.is_cancelled() {
            let queues: Vec<(&'static str, Arc<Outbox>)> =
                self.queues.lock().iter().map(|(name, queue)| (*name, Arc::clone(queue))).collect();
            for (name, queue) in queues {
                if started.insert(name) {
                    let (minion, own) = (Arc::clone(&minion), disk.clone());
                    let send = move |load| deliver(Arc::clone(&minion), name, own.clone(), load);
                    running.spawn(queue.run(send, is_ready.clone(), backoff(), disk.clone(), shutdown.clone()));
                }
            }
            tokio::select! {
                () = self.opened.notified() => {}
                () = shutdown.cancelled() => {}
                // A queue ends with the minion, or has panicked: the supervisor restarts all of them.
                Some(_) = running.join_next() => return,
            }
        }
        while running.join_next().await.is_some() {}
    }
}

/// Stores a return with the custom returner of this name (`_returners`). Returns false if there is none. A failure is
/// logged and counted.
fn store_with_custom(minion: &Arc<Minion>, name: &str, load: &Map) -> bool {
    let function = format!("{name}.returner");
    let job = Job::local(&Jid::new(), &function, &Args::default());
    let context = Context::new(Arc::clone(minion), Arc::new(job));
    let args = Args::positional([Value::from(load.clone())]);
    match minion.custom.call_of(&context, "returners", &function, args) {
        None => false,
        Some(Ok(_)) => true,
        Some(Err(error)) => {
            brine_job::metrics::RETURNS_LOST.add(1);
            let jid = load.get("jid").map(ToString::to_string).unwrap_or_default();
            tracing::error!(returner = name, jid, %error, "storing a return failed");
            true
        }
    }
}

/// Stores a return that has waited in its queue.
async fn deliver(minion: Arc<Minion>, name: &'static str, disk: Executor, load: Map) -> SendResult {
    let stored = disk.run(move |_| {
        let grains = minion.grains.get();
        store(name, &minion.config.opts, &grains, &load)
    });
    match stored.await {
        Ok(Ok(())) => SendResult::Accepted,
        Ok(Err(error)) if error.is_outage() => {
            tracing::debug!(returner = name, %error, "a returner is still unreachable");
            SendResult::Later
        }
        Ok(Err(error)) => {
            tracing::error!(returner = name, %error, "storing a return failed");
            SendResult::Refused
        }
        // The call panicked, which is logged, or the minion is stopping.
        Err(_) => SendResult::Later,
    }
}
