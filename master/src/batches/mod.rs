//! Batches that the master runs: `salt --batch-size 10 --async`. As many minions as the batch has room for work at a
//! time, all under one job id; as each returns, the next one is asked.
//!
//! A batch is kept in the store with each step, so that it goes on after a restart. It is stopped by an event,
//! `salt/batch/<jid>/stop`, which `batch.stop` fires.

mod followed;
mod state;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use brine_bus::store::{Batch as StoreBatch, BlockingStore, Store, StoreError, Table, Ticket};
use brine_bus::{Filter, Start, Subscription};
use brine_event::Event;
use brine_ids::Jid;
use brine_job::{Times, Watch, batch_size};
use brine_value::{Value, msgpack};
use brine_wire::PublishRequest;
use indexmap::IndexMap;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::Shared;
pub(crate) use followed::follow;
use state::Stage;
pub(crate) use state::State;

const TABLE: Table = Table("batches");
/// How many ended batches are remembered.
const ENDED: usize = 1000;
/// How long minions may take to come back after a restart, and how often it is looked whether they have.
const BACK_WITHIN: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How a batch is to run.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// The job.
    pub request: PublishRequest,
    /// How many minions at a time: a number, or a part such as `25%`.
    pub size: String,
    /// Whether a failure keeps further minions from being asked.
    pub failhard: bool,
    /// Seconds between a return and the next minion that is asked.
    pub wait: f64,
    /// Seconds until silent minions are asked whether they still work.
    pub timeout: u64,
}

/// The batches of a master.
pub(crate) struct Batches {
    store: Store,
    all: Mutex<IndexMap<String, State>>,
    /// Those that `salt -b` runs itself.
    pub followed: followed::Followed,
}

impl Batches {
    /// With those that the store has.
    pub fn open(store: &BlockingStore) -> Result<Self, StoreError> {
        let kept = store.scan(TABLE, b"", usize::MAX)?;
        let states = kept.into_iter().filter_map(|(_, packed)| State::from_map(&msgpack::unpack_map(&packed).ok()?));
        let all = states.map(|state| (state.jid.to_string(), state)).collect();
        Ok(Batches { store: Store::clone(store), all: Mutex::new(all), followed: followed::Followed::default() })
    }

    /// What is known of a batch.
    pub fn get(&self, jid: &str) -> Option<State> {
        self.all.lock().get(jid).cloned()
    }

    /// Those that run.
    pub fn active(&self) -> Vec<State> {
        self.all.lock().values().filter(|state| !state.ended).cloned().collect()
    }

    /// Keeps a state. Who waits for the ticket has it on disk.
    fn keep(&self, state: &State) -> Ticket {
        let mut all = self.all.lock();
        all.insert(state.jid.to_string(), state.clone());
        let mut batch = StoreBatch::new();
        batch.put(TABLE, state.jid.as_str(), msgpack::pack_map(&state.to_map()));
        while all.len() > ENDED {
            let Some(place) = all.values().position(|state| state.ended) else { break };
            if let Some((jid, _)) = all.shift_remove_index(place) {
                batch.delete(TABLE, jid);
            }
        }
        self.store.write(batch)
    }
}

impl Shared {
    /// Starts a batch with the minions of its target that answer a ping: its job id, who takes part and who does
    /// not answer. The error is one sentence.
    pub(crate) async fn start_batch(
        self: &Arc<Self>,
        wanted: Wanted,
    ) -> Result<(Option<Jid>, Vec<String>, Vec<String>), String> {
        batch_size(&wanted.size, 1)?;
        let request = &wanted.request;
        let ping = PublishRequest { fun: "test.ping".into(), arg: Vec::new(), ret: String::new(), ..request.clone() };
        let timeout = Duration::from_secs(wanted.timeout.max(1));
        let there = self.ask(ping, timeout).await.map_err(|error| error.to_string())?;
        let mut minions: Vec<String> = there.returned.into_iter().map(|(id, _)| id).collect();
        minions.sort();
        if minions.is_empty() {
            return Ok((None, minions, there.missing));
        }
        let jid = Jid::new();
        let size = batch_size(&wanted.size, minions.len())?;
        let state = State::new(&jid, wanted, minions.clone(), size);
        self.batches.keep(&state).durable().await.map_err(|error| error.to_string())?;
        self.tell_batch(&state, Stage::New).await;
        self.run_batch(state)?;
        Ok((Some(jid), minions, there.missing))
    }

    /// Goes on with the batches that a stop of the master has interrupted.
    pub(crate) fn resume_batches(self: &Arc<Self>) {
        for state in self.batches.active() {
            let jid = state.jid.to_string();
            tracing::info!(jid, "a batch of before the restart goes on");
            if let Err(error) = self.run_batch(state) {
                tracing::error!(jid, error, "a batch cannot go on");
            }
        }
    }

    async fn tell_batch(&self, state: &State, stage: Stage) {
        let (word, body) = state.event(stage);
        self.fire(&format!("salt/batch/{}/{word}", state.jid), &body).await;
    }

    fn run_batch(self: &Arc<Self>, state: State) -> Result<(), String> {
        let prefixes = ["salt/job/".to_owned(), format!("salt/batch/{}/stop", state.jid)];
        let filter = Filter::Prefixes(prefixes.into_iter().map(Into::into).collect());
        let events = self.bus.subscribe(filter, Start::Now).map_err(|error| error.to_string())?;
        let times = Times {
            timeout: Duration::from_secs(state.timeout),
            gather: Duration::from_secs(self.config.gather_job_timeout),
        };
        let watch = Watch::new(state.jid.clone(), state.active.iter().cloned(), times, Instant::now());
        let run = Run { shared: Arc::clone(self), state, events, watch, pauses: VecDeque::new() };
        // It ends with the bus when the master stops, and goes on from the store when it starts again.
        self.background.spawn("batch", run.until_the_end());
        Ok(())
    }
}

/// A batch under way.
struct Run {
    shared: Arc<Shared>,
    state: State,
    events: Subscription,
    watch: Watch,
    /// When the place of each minion that has returned is free again (`batch_wait`), soonest first.
    pauses: VecDeque<Instant>,
}

impl Run {
    async fn until_the_end(mut self) {
        if !self.state.active.is_empty() {
            self.catch_up().await;
        }
        while self.state.halted.is_none() {
            self.ask_next().await;
            if self.state.active.is_empty() && (self.pauses.is_empty() || self.state.pending.is_empty()) {
                break;
            }
            let resumes = self.pauses.front().copied();
            let silent = (!self.state.active.is_empty()).then(|| self.watch.deadline());
            let Some(wakes) = silent.into_iter().chain(resumes).min() else { break };
            match tokio::time::timeout_at(wakes, self.events.recv()).await {
                Ok(Some(event)) => self.take(&event).await,
                // The master stops.
                Ok(None) => return,
                Err(_) if silent.is_some_and(|silent| silent <= Instant::now()) => self.look_for_silent().await,
                // A pause is over.
                Err(_) => {}
            }
        }
        self.state.ended = true;
        drop(self.shared.batches.keep(&self.state).durable().await);
        self.shared.tell_batch(&self.state, Stage::End).await;
    }

    /// Takes what came in while the master was away, and waits until its minions are back, for a while: a job that
    /// goes out before is lost to them.
    async fn catch_up(&mut self) {
        let deadline = Instant::now() + BACK_WITHIN;
        let expected: BTreeSet<String> = self.state.active.iter().chain(&self.state.pending).cloned().collect();
        while Instant::now() < deadline {
            let there: BTreeSet<String> = self.shared.present_minions().iter().map(ToString::to_string).collect();
            if there.is_superset(&expected) {
                break;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        self.shared.jobs_caught_up(Duration::from_secs(5)).await;
        let jid = self.state.jid.clone();
        let known = self.shared.disk.run(move |disk| disk.job_cache.get_jid(&jid)).await;
        let Ok(Ok(known)) = known else { return };
        for id in self.state.active.clone() {
            if let Some(returned) = known.get(id.as_str()).and_then(Value::as_map) {
                self.watch.remove(&id);
                self.state.take(&id, Some(returned));
            }
        }
    }

    async fn ask_next(&mut self) {
        while self.pauses.front().is_some_and(|resumes| *resumes <= Instant::now()) {
            self.pauses.pop_front();
        }
        let next = self.state.next(self.pauses.len());
        if next.is_empty() {
            return;
        }
        // Before they are asked: after a restart it is known that they were. The store logs what it cannot write.
        drop(self.shared.batches.keep(&self.state).durable().await);
        match self.shared.publish(self.state.request_for(&next)).await {
            Ok(_) => self.watch.add(next, Instant::now()),
            Err(error) => {
                tracing::error!(jid = %self.state.jid, %error, "a part of a batch could not be published");
                for id in &next {
                    self.state.take(id, None);
                }
            }
        }
        self.shared.tell_batch(&self.state, Stage::Progress).await;
    }

    /// Takes a return, or the request to stop.
    async fn take(&mut self, event: &Event) {
        if event.tag().ends_with("/stop") {
            let reason = event.data().get("reason").map_or_else(|| "stop".to_owned(), ToString::to_string);
            self.state.halted = Some(reason);
        } else if let Some((id, returned)) = self.watch.take(event, Instant::now()) {
            self.state.take(&id, Some(&returned));
            drop(self.shared.batches.keep(&self.state));
            self.shared.tell_batch(&self.state, Stage::Progress).await;
            if self.state.wait > 0.0 && !self.state.pending.is_empty() {
                self.pauses.push_back(Instant::now() + brine_runtime::seconds::within(0.0..=86_400.0, self.state.wait));
            }
        }
    }

    /// Asks minions that are silent whether they still work; those that do not say so have failed.
    async fn look_for_silent(&mut self) {
        match self.shared.look_for_silent(&mut self.watch, &self.state.request.user).await {
            Ok(missing) if missing.is_empty() => {}
            Ok(missing) => {
                for id in &missing {
                    self.state.take(id, None);
                }
                self.shared.tell_batch(&self.state, Stage::Progress).await;
            }
            Err(error) => {
                tracing::error!(jid = %self.state.jid, error, "minions cannot be asked whether they still work");
            }
        }
    }
}
