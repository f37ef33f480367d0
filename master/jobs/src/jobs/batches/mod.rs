//! Batches that the master runs: `salt --batch-size 10 --async`. The job runs on a limited number of minions at a time,
//! under one jid; when a minion returns, the next one receives it.
//!
//! The state of a batch is stored at each step, so that the batch can be resumed after a restart. The event
//! `salt/batch/<jid>/stop`, which `batch.stop` publishes, stops it.

mod observed;
mod state;
mod succession;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use brine_bus::store::{Batch as StoreBatch, BlockingStore, Store, StoreError, Table, Ticket};
use brine_ids::Jid;
use brine_job::{Batch, Driver, batch_size, retcode};
use brine_master_store::sealing::Sealing;
use brine_master_store::shared::{Ownership, StoreOutcome};
use brine_runtime::backoff::Backoff;
use brine_value::{Value, msgpack};
use brine_wire::PublishRequest;
use indexmap::IndexMap;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::run::{Progress, Run};
use super::{Jobs, RunError};
pub use observed::observe;
use state::Stage;
pub use state::State;

const TABLE: Table = Table("batches");
/// The purpose that stored states are bound to.
const PURPOSE: &str = "batch";
/// The maximum number of batches; beyond it, finished ones are dropped.
const CAPACITY: usize = 1000;

/// A request for a batch.
#[derive(Debug, Clone)]
pub struct BatchRequest {
    /// The job.
    pub request: PublishRequest,
    /// The maximum number of concurrent minions, or a percentage such as `25%`.
    pub size: String,
    /// Whether a failed return halts the batch.
    pub failhard: bool,
    /// The pause after each minion, in seconds.
    pub wait: f64,
    /// The timeout after which silent minions are polled, in seconds.
    pub timeout: u64,
}

/// The batches of a master.
pub struct Batches {
    table: Store,
    /// Encrypts the stored states: they contain the arguments of jobs.
    sealing: Sealing,
    all: Mutex<IndexMap<String, State>>,
    /// The jids of the batches that run in this process.
    running: Mutex<HashSet<String>>,
    /// The batches that `salt -b` runs.
    pub observed: observed::Observed,
}

impl Batches {
    /// Reads the batches from the store.
    pub fn open(store: &BlockingStore, sealing: Sealing) -> Result<Self, StoreError> {
        let stored = store.scan(TABLE, b"", usize::MAX)?;
        let states = stored.into_iter().filter_map(|(jid, value)| {
            let jid = String::from_utf8(jid).ok()?;
            // Earlier versions stored states unsealed.
            let packed = sealing.unseal(PURPOSE, &jid, &value).unwrap_or(value);
            let state = msgpack::unpack_map(&packed).ok().and_then(|state| State::from_map(&state));
            if state.is_none() {
                tracing::error!(jid, "a stored batch cannot be read: it is not resumed");
            }
            state
        });
        let all = states.map(|state| (state.jid.to_string(), state)).collect();
        Ok(Batches {
            table: Store::clone(store),
            sealing,
            all: Mutex::new(all),
            running: Mutex::default(),
            observed: observed::Observed::default(),
        })
    }

    /// Returns the state of a batch.
    pub fn get(&self, jid: &str) -> Option<State> {
        self.all.lock().get(jid).cloned()
    }

    /// Returns the running batches.
    pub fn active(&self) -> Vec<State> {
        self.all.lock().values().filter(|state| !state.ended).cloned().collect()
    }

    /// Returns whether a batch runs in this process.
    fn is_running(&self, jid: &str) -> bool {
        self.running.lock().contains(jid)
    }

    /// Removes a batch that another member of the cluster has taken over.
    fn forget(&self, jid: &str) {
        self.all.lock().shift_remove(jid);
        let mut batch = StoreBatch::new();
        batch.delete(TABLE, jid);
        let what = "the removal of a batch that another member has taken over: it is listed again after the next start";
        self.table.write_unchecked(batch, what);
    }

    /// Stores a state. The ticket completes when the state is on disk.
    pub fn store(&self, state: &State) -> Ticket {
        let mut all = self.all.lock();
        all.insert(state.jid.to_string(), state.clone());
        let mut batch = StoreBatch::new();
        let packed = msgpack::pack_map(&state.to_map());
        batch.put(TABLE, state.jid.as_str(), self.sealing.seal(PURPOSE, state.jid.as_str(), &packed));
        while all.len() > CAPACITY {
            let Some(index) = all.values().position(|state| state.ended) else { break };
            if let Some((jid, _)) = all.shift_remove_index(index) {
                batch.delete(TABLE, jid);
            }
        }
        self.table.write(batch)
    }
}

impl Jobs {
    /// Starts a batch on the minions of its target that answer a ping. Returns its jid, its minions, and the minions
    /// that do not answer.
    ///
    /// # Errors
    /// The size is invalid, or the ping or the store failed.
    pub async fn start_batch(
        self: &Arc<Self>,
        batch: BatchRequest,
    ) -> Result<(Option<Jid>, Vec<String>, Vec<String>), RunError> {
        batch_size(&batch.size, 1)?;
        let request = &batch.request;
        let ping =
            PublishRequest { fun: brine_auth::PING.into(), arg: Vec::new(), ret: String::new(), ..request.clone() };
        let timeout = Duration::from_secs(batch.timeout.max(1));
        let present = self.publish_and_wait(ping, timeout).await?;
        let mut minions: Vec<String> = present.returned.into_iter().map(|(id, _)| id).collect();
        minions.sort();
        if minions.is_empty() {
            return Ok((None, minions, present.missing));
        }
        let jid = Jid::new();
        let size = batch_size(&batch.size, minions.len())?;
        let mut state = State::new(&jid, batch, minions.clone(), size);
        let ownership = match self.cluster.get() {
            Some(shared) => {
                state.is_shared = true;
                Ownership::begin(shared, &succession::key(state.jid.as_str()), &self.process, &state.to_map()).await
            }
            None => None,
        };
        state.is_shared = ownership.is_some();
        self.batches.store(&state).durable().await?;
        self.publish_stage(&state, Stage::New).await;
        self.spawn_batch(state, ownership)?;
        Ok((Some(jid), minions, present.missing))
    }

    /// Resumes the batches that a stop of the master has interrupted.
    pub fn resume_batches(self: &Arc<Self>) {
        for state in self.batches.active() {
            let jid = state.jid.to_string();
            tracing::info!(jid, "batch resumed after the restart");
            if let Err(error) = self.spawn_batch(state, None) {
                tracing::error!(jid, %error, "resuming a batch failed");
            }
        }
    }

    async fn publish_stage(&self, state: &State, stage: Stage) {
        let (word, body) = state.event(stage);
        self.events.fire(&format!("salt/batch/{}/{word}", state.jid), &body).await;
    }

    fn spawn_batch(self: &Arc<Self>, state: State, ownership: Option<Ownership>) -> Result<(), StoreError> {
        let events = self.subscribe(vec![format!("salt/batch/{}/stop", state.jid)])?;
        let batch = Batch {
            size: state.size,
            wait: brine_runtime::seconds::within(0.0..=86_400.0, state.wait),
            failhard: state.failhard,
        };
        let (user, pending) = (&state.request.user, state.pending.iter().cloned().collect());
        let (times, now) = (self.times(Duration::from_secs(state.timeout)), Instant::now());
        let mut driver = Driver::in_batches(state.jid.clone(), user, pending, batch, times, now);
        driver.add_active(state.active.iter().cloned().collect(), now);
        let (jobs, jid) = (Arc::clone(self), state.jid.to_string());
        self.batches.running.lock().insert(jid.clone());
        let run =
            BatchRun { run: Run::new(Arc::clone(self), events, driver), jobs: Arc::clone(self), state, ownership };
        // A stop of the master ends the task. The batch is then resumed from the store, or taken over by another
        // member.
        self.background.spawn("batch", async move {
            run.until_end().await;
            jobs.batches.running.lock().remove(&jid);
        });
        Ok(())
    }
}

/// A running batch.
struct BatchRun {
    jobs: Arc<Jobs>,
    run: Run,
    state: State,
    /// The ownership of the batch, in a cluster.
    ownership: Option<Ownership>,
}

impl BatchRun {
    async fn until_end(mut self) {
        if !self.state.active.is_empty() {
            self.catch_up().await;
        }
        loop {
            match self.run.next().await {
                Progress::Due(minions) => {
                    if !self.publish(minions).await {
                        return self.hand_over();
                    }
                }
                Progress::Returned(_, returned) => {
                    self.state.minion_returned(retcode(&returned) != 0);
                    drop(self.record());
                    self.jobs.publish_stage(&self.state, Stage::Progress).await;
                }
                Progress::Missing(minions) => {
                    self.state.minions_failed(minions.len());
                    drop(self.record());
                    self.jobs.publish_stage(&self.state, Stage::Progress).await;
                }
                // The only other tag subscribed to is `stop`.
                Progress::Event(event) => {
                    let reason = event.data().get("reason").map_or_else(|| "stop".to_owned(), ToString::to_string);
                    self.run.driver.halt(reason);
                }
                Progress::Ended => break,
                Progress::Stopping => return,
            }
        }
        // Events are published only while this member still owns the batch.
        self.state.record(&self.run.driver);
        if !self.store_state().await {
            return self.hand_over();
        }
        self.state.ended = true;
        // The arguments are not needed any more.
        self.state.request.arg.clear();
        self.state.request.kwargs.clear();
        if let Err(error) = self.record().durable().await {
            tracing::error!(jid = %self.state.jid, %error, "storing the end of a batch failed: after a restart, its end is published again");
        }
        self.jobs.publish_stage(&self.state, Stage::End).await;
        // If a successor takes over before this, it repeats the event.
        if let Some(ownership) = self.ownership {
            ownership.end().await;
        }
    }

    /// Stores the state in the cluster. Returns `false` if another member has taken over the batch.
    async fn store_state(&mut self) -> bool {
        let Some(ownership) = &mut self.ownership else { return true };
        match ownership.store_state(&self.state.to_map()).await {
            StoreOutcome::Stored => true,
            StoreOutcome::Elsewhere => false,
            StoreOutcome::TooLarge => {
                tracing::error!(jid = %self.state.jid, "a batch is too large for the cluster: a successor would repeat parts of it");
                true
            }
        }
    }

    /// Stores the state of the driver. The ticket completes when the state is on disk.
    fn record(&mut self) -> Ticket {
        self.state.record(&self.run.driver);
        self.jobs.batches.store(&self.state)
    }

    /// Waits for the minions after a restart, and processes the returns that arrived before it.
    async fn catch_up(&mut self) {
        let expected = self.state.active.iter().chain(&self.state.pending).cloned().collect();
        self.jobs.wait_for_minions(&expected).await;
        let jid = self.state.jid.clone();
        let Some(cached) = self.jobs.cached_returns(jid).await else { return };
        for id in self.state.active.clone() {
            if let Some(returned) = cached.get(id.as_str()).and_then(Value::as_map)
                && self.run.driver.returned(&id, returned, Instant::now())
            {
                self.state.minion_returned(retcode(returned) != 0);
            }
        }
        self.state.record(&self.run.driver);
    }

    /// Publishes the job to the next minions. Returns `false` if another member of the cluster has taken over the
    /// batch.
    async fn publish(&mut self, minions: Vec<String>) -> bool {
        // The state is on disk before the publish, so that after a restart these minions are known to have received the
        // job, and do not run it twice.
        self.state.record(&self.run.driver);
        self.state.active.extend(minions.iter().cloned());
        if !self.store_state().await {
            return false;
        }
        let mut backoff = Backoff::default();
        while let Err(error) = self.jobs.batches.store(&self.state).durable().await {
            tracing::error!(jid = %self.state.jid, %error, "storing the state of a batch failed: its next minions wait until the store takes it");
            backoff.wait().await;
        }
        let published = self.jobs.publish_part(&mut self.run.driver, &self.state.request, &minions).await;
        let unreached = published.unwrap_or_else(|error| {
            tracing::error!(jid = %self.state.jid, %error, "publishing a part of a batch failed");
            minions
        });
        self.state.minions_failed(unreached.len());
        self.state.record(&self.run.driver);
        self.jobs.publish_stage(&self.state, Stage::Progress).await;
        true
    }
}
