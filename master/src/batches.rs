//! Batches that the master runs: `salt --batch-size 10 --async`. As many minions as the batch has room for work at a
//! time, all under one job id; as each returns, the next one is asked.
//!
//! A batch is kept in the store with each step, so that it goes on after a restart. It is stopped by an event,
//! `salt/batch/<jid>/stop`, which `batch.stop` fires.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use brine_core::bus::{Filter, Start, Subscription};
use brine_core::job::{batch_size, return_tag};
use brine_core::store::{Batch as StoreBatch, Store, StoreError, Table, Ticket};
use brine_core::value::{FromValue, msgpack};
use brine_core::wire::PublishRequest;
use brine_core::{Jid, Map, Value, map};
use indexmap::IndexMap;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::Shared;

const TABLE: Table = Table("batches");
/// How many ended batches are remembered.
const ENDED: usize = 1000;
/// How long minions may take to come back after a restart, and how often it is looked whether they have.
const BACK_WITHIN: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

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

/// All that is known of a batch: its fields are those of Salt's state of a batch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct State(Map);

impl State {
    fn new(jid: &Jid, wanted: &Wanted, minions: Vec<String>, size: usize) -> Self {
        let request = &wanted.request;
        State(map! {
            "jid" => jid,
            "fun" => request.fun.clone(),
            "arg" => request.arg.clone(),
            "ret" => &request.ret,
            "tgt" => request.tgt.clone(),
            "tgt_type" => &request.tgt_type,
            "user" => &request.user,
            "kwargs" => request.kwargs.clone(),
            "all_minions" => minions.clone(),
            "pending" => minions,
            "active" => Map::new(),
            "done" => Map::new(),
            "failed" => Map::new(),
            "batch_size" => size,
            "batch_wait" => wanted.wait,
            "failhard" => wanted.failhard,
            "timeout" => wanted.timeout,
            "driver" => "master",
            "created" => now(),
            "last_progress" => now(),
            "halted" => false,
            "halted_reason" => Value::Nil,
            "ended" => false,
        })
    }

    fn get(&self, name: &str) -> Value {
        self.0.get(name).cloned().unwrap_or_default()
    }

    fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.into(), value.into());
    }

    fn count(&self, name: &str) -> usize {
        match self.0.get(name) {
            Some(Value::List(all)) => all.len(),
            Some(Value::Map(all)) => all.len(),
            _ => 0,
        }
    }

    fn number<T: FromValue>(&self, name: &str) -> Option<T> {
        self.0.get(name).and_then(T::from_value)
    }

    fn map_mut(&mut self, name: &str) -> Option<&mut Map> {
        self.0.get_mut(name).and_then(Value::as_map_mut)
    }

    fn names(&self, name: &str) -> Vec<String> {
        match self.0.get(name) {
            Some(Value::List(all)) => all.iter().map(ToString::to_string).collect(),
            Some(Value::Map(all)) => all.keys().map(ToString::to_string).collect(),
            _ => Vec::new(),
        }
    }

    fn has_ended(&self) -> bool {
        self.get("ended").is_truthy()
    }

    fn jid(&self) -> String {
        self.get("jid").to_string()
    }

    /// As many of those that wait as there is room for: they are active from now on.
    fn next(&mut self) -> Vec<String> {
        let room = self.number::<usize>("batch_size").unwrap_or(1).saturating_sub(self.count("active"));
        let mut pending = self.names("pending");
        let next: Vec<String> = pending.drain(..room.min(pending.len())).collect();
        self.set("pending", pending);
        let asked: Vec<(Value, Value)> = next.iter().map(|id| (id.into(), now().into())).collect();
        self.map_mut("active").into_iter().for_each(|active| active.extend(asked.clone()));
        next
    }

    /// A minion has returned, or will not.
    fn take(&mut self, id: &str, returned: Option<&Map>) {
        let field = |name: &str| returned.and_then(|returned| returned.get(name)).cloned();
        let retcode = field("retcode").unwrap_or_else(|| 1.into());
        let failed = retcode.is_truthy();
        let told = map! {"jid" => self.get("jid"), "ret" => field("return").unwrap_or_default(), "retcode" => retcode};
        self.map_mut("active").and_then(|active| active.shift_remove(id));
        let into: &[&str] = if failed { &["done", "failed"] } else { &["done"] };
        for name in into {
            self.map_mut(name).and_then(|all| all.insert(id.into(), told.clone().into()));
        }
        self.set("last_progress", now());
        if failed && self.get("failhard").is_truthy() {
            self.halt("failhard");
        }
    }

    fn halt(&mut self, reason: &str) {
        self.set("halted", true);
        self.set("halted_reason", reason);
    }

    fn is_halted(&self) -> bool {
        self.get("halted").is_truthy()
    }

    /// What every event of it says.
    fn common(&self) -> Map {
        ["jid", "fun", "tgt", "tgt_type", "user"].iter().map(|name| ((*name).into(), self.get(name))).collect()
    }

    /// The tag's last word and the body of the event about where it is now.
    fn event(&self, stage: Stage) -> (&'static str, Map) {
        let mut body = self.common();
        let counts = map! {"completed" => self.count("done"), "failed" => self.count("failed")};
        let duration = map! {"duration" => now() - self.number::<f64>("created").unwrap_or_default()};
        let total = self.count("all_minions");
        let word = match stage {
            Stage::New => {
                for name in ["batch_size", "created", "driver"] {
                    body.insert(name.into(), self.get(name));
                }
                body.insert("total_minions".into(), total.into());
                "new"
            }
            Stage::Progress => {
                body.extend(counts);
                body.extend(map! {
                    "active" => self.count("active"),
                    "pending" => self.count("pending"),
                    "total" => total,
                    "iter" => Value::Nil,
                    "last_progress" => self.get("last_progress"),
                });
                "progress"
            }
            Stage::End if self.is_halted() => {
                body.extend(counts);
                body.extend(duration);
                body.extend(map! {
                    "reason" => self.get("halted_reason"),
                    "abandoned_active" => self.names("active"),
                    "abandoned_pending" => self.names("pending"),
                });
                "halted"
            }
            Stage::End => {
                body.extend(counts);
                body.extend(duration);
                body.insert("total_minions".into(), total.into());
                "complete"
            }
        };
        (word, body)
    }

    /// What `batch.status` tells.
    pub fn summary(&self) -> Map {
        let mut told = self.common();
        for name in ["batch_size", "halted", "halted_reason", "driver", "created", "last_progress"] {
            told.insert(name.into(), self.get(name));
        }
        told.extend(map! {
            "total" => self.count("all_minions"),
            "completed" => self.count("done"),
            "active" => self.count("active"),
            "pending" => self.count("pending"),
            "failed" => self.count("failed"),
            "age_seconds" => now() - self.number::<f64>("last_progress").unwrap_or_default(),
        });
        told
    }

    /// Whether it is the batch of this job id.
    pub fn is(&self, jid: &str) -> bool {
        self.get("jid").as_str() == Some(jid)
    }

    /// Ends its job on those that work on it.
    pub fn kill_request(&self, user: &str) -> PublishRequest {
        PublishRequest {
            tgt: self.get("active").as_map().into_iter().flat_map(Map::keys).map(ToString::to_string).collect(),
            tgt_type: "list".to_owned(),
            arg: vec![self.get("jid")],
            ..PublishRequest::new("", "saltutil.kill_job", user)
        }
    }

    fn request(&self, tgt: &[String]) -> PublishRequest {
        PublishRequest {
            tgt: tgt.iter().map(String::as_str).collect(),
            tgt_type: "list".to_owned(),
            fun: self.get("fun"),
            arg: self.get("arg").as_list().unwrap_or_default().to_vec(),
            ret: self.get("ret").to_string(),
            jid: self.jid().parse().ok(),
            kwargs: self.get("kwargs").as_map().cloned().unwrap_or_default(),
            ..PublishRequest::new("", "", &self.get("user").to_string())
        }
    }
}

/// Where in its life a batch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    New,
    Progress,
    End,
}

/// The batches of a master.
pub(crate) struct Batches {
    store: Store,
    all: Mutex<IndexMap<String, State>>,
}

impl Batches {
    /// With those that the store has.
    pub fn open(store: Store) -> Result<Self, StoreError> {
        let kept = store.scan(TABLE, b"", usize::MAX)?;
        let states = kept.into_iter().filter_map(|(_, packed)| msgpack::unpack_map(&packed).ok().map(State));
        let all = states.map(|state| (state.jid(), state)).collect();
        Ok(Batches { store, all: Mutex::new(all) })
    }

    /// What is known of a batch.
    pub fn get(&self, jid: &str) -> Option<State> {
        self.all.lock().get(jid).cloned()
    }

    /// Those that run.
    pub fn active(&self) -> Vec<State> {
        self.all.lock().values().filter(|state| !state.has_ended()).cloned().collect()
    }

    /// Keeps a state. Who waits for the ticket has it on disk.
    fn keep(&self, state: &State) -> Ticket {
        let mut all = self.all.lock();
        all.insert(state.jid(), state.clone());
        let mut batch = StoreBatch::new();
        batch.put(TABLE, state.jid(), msgpack::pack_map(&state.0));
        while all.len() > ENDED {
            let Some(place) = all.values().position(State::has_ended) else { break };
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
        let state = State::new(&jid, &wanted, minions.clone(), size);
        self.batches.keep(&state).durable().await.map_err(|error| error.to_string())?;
        self.tell_batch(&state, Stage::New).await;
        self.run_batch(state)?;
        Ok((Some(jid), minions, there.missing))
    }

    /// Goes on with the batches that a stop of the master has interrupted.
    pub(crate) fn resume_batches(self: &Arc<Self>) {
        for state in self.batches.active() {
            let jid = state.jid();
            tracing::info!(jid, "a batch of before the restart goes on");
            if let Err(error) = self.run_batch(state) {
                tracing::error!(jid, error, "a batch cannot go on");
            }
        }
    }

    async fn tell_batch(&self, state: &State, stage: Stage) {
        let (word, body) = state.event(stage);
        self.fire(&format!("salt/batch/{}/{word}", state.jid()), &body).await;
    }

    fn run_batch(self: &Arc<Self>, state: State) -> Result<(), String> {
        let prefixes = ["salt/job/".to_owned(), format!("salt/batch/{}/stop", state.jid())];
        let filter = Filter::Prefixes(prefixes.into_iter().map(Into::into).collect());
        let events = self.bus.subscribe(filter, Start::Now).map_err(|error| error.to_string())?;
        let run = Run { shared: Arc::clone(self), state, events };
        // It ends with the bus when the master stops, and goes on from the store when it starts again.
        tokio::spawn(run.until_the_end());
        Ok(())
    }
}

/// A batch under way.
struct Run {
    shared: Arc<Shared>,
    state: State,
    events: Subscription,
}

/// What ended a wait.
enum Came {
    /// A return, or a stop.
    Something,
    /// The time is up.
    Nothing,
    /// The master stops.
    End,
}

impl Run {
    async fn until_the_end(mut self) {
        if self.state.count("active") > 0 {
            self.catch_up().await;
        }
        let timeout = Duration::from_secs(self.state.number::<u64>("timeout").unwrap_or(5).max(1));
        while !self.state.is_halted() {
            self.ask_next().await;
            if self.state.count("active") == 0 {
                break;
            }
            match self.wait(timeout, None).await {
                Came::Something => {
                    let wait = self.state.number::<f64>("batch_wait").unwrap_or_default();
                    if wait > 0.0 && self.state.count("pending") > 0 {
                        tokio::time::sleep(Duration::from_secs_f64(wait.min(86_400.0))).await;
                    }
                }
                Came::Nothing => self.look_for_silent().await,
                Came::End => return,
            }
        }
        self.state.set("ended", true);
        drop(self.shared.batches.keep(&self.state).durable().await);
        self.shared.tell_batch(&self.state, Stage::End).await;
    }

    /// Takes what came in while the master was away, and waits until its minions are back, for a while: a job that
    /// goes out before is lost to them.
    async fn catch_up(&mut self) {
        let deadline = Instant::now() + BACK_WITHIN;
        let expected: BTreeSet<String> = ["active", "pending"].iter().flat_map(|name| self.state.names(name)).collect();
        while Instant::now() < deadline {
            let there: BTreeSet<String> = self.shared.present_minions().iter().map(ToString::to_string).collect();
            if there.is_superset(&expected) {
                break;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        let Ok(jid) = self.state.jid().parse::<Jid>() else { return };
        self.shared.jobs_caught_up(Duration::from_secs(5)).await;
        let shared = Arc::clone(&self.shared);
        let known = tokio::task::spawn_blocking(move || shared.job_cache.get_jid(&jid)).await;
        let Ok(Ok(known)) = known else { return };
        for id in self.state.names("active") {
            if let Some(returned) = known.get(id.as_str()).and_then(Value::as_map) {
                self.state.take(&id, Some(returned));
            }
        }
    }

    async fn ask_next(&mut self) {
        let next = self.state.next();
        if next.is_empty() {
            return;
        }
        // Before they are asked: after a restart it is known that they were. The store logs what it cannot write.
        drop(self.shared.batches.keep(&self.state).durable().await);
        if let Err(error) = self.shared.publish(self.state.request(&next)).await {
            tracing::error!(jid = self.state.jid(), %error, "a part of a batch could not be published");
            for id in next {
                self.state.take(&id, None);
            }
        }
        self.shared.tell_batch(&self.state, Stage::Progress).await;
    }

    /// Asks minions that are silent whether they still work; those that do not say so have failed.
    async fn look_for_silent(&mut self) {
        let active = self.state.names("active");
        let request = PublishRequest {
            fun: "saltutil.find_job".into(),
            arg: vec![self.state.get("jid")],
            ret: String::new(),
            jid: None,
            ..self.state.request(&active)
        };
        let asked = self.shared.publish(request).await.ok().and_then(|published| published.jid);
        let mut silent: BTreeSet<String> = active.into_iter().collect();
        let gather = Duration::from_secs(self.shared.config.gather_job_timeout);
        let asking = asked.as_ref().map(|jid| (jid.as_str(), &mut silent));
        self.wait(gather, asking).await;
        let active: BTreeSet<String> = self.state.names("active").into_iter().collect();
        for id in silent.intersection(&active) {
            self.state.take(id, None);
        }
        self.shared.tell_batch(&self.state, Stage::Progress).await;
    }

    /// Waits for a return or a stop. While minions are asked whether they still work, until all have answered.
    async fn wait(&mut self, time: Duration, mut asking: Option<(&str, &mut BTreeSet<String>)>) -> Came {
        let (deadline, jid) = (Instant::now() + time, self.state.jid());
        loop {
            let event = match tokio::time::timeout_at(deadline, self.events.recv()).await {
                Ok(Some(event)) => event,
                Ok(None) => return Came::End,
                Err(_) => return Came::Nothing,
            };
            let Some((of, id)) = return_tag(event.tag()) else {
                if event.tag().ends_with("/stop") {
                    let reason = event.data().get("reason").map_or_else(|| "stop".to_owned(), ToString::to_string);
                    self.state.halt(&reason);
                    return Came::Something;
                }
                continue;
            };
            if of == jid && self.state.get("active").get(id).is_some() {
                self.state.take(id, Some(&event.data()));
                drop(self.shared.batches.keep(&self.state));
                self.shared.tell_batch(&self.state, Stage::Progress).await;
                if asking.is_none() {
                    return Came::Something;
                }
            }
            let Some((asked, silent)) = &mut asking else { continue };
            if of == jid || (of == *asked && event.data().get("return").is_some_and(Value::is_truthy)) {
                silent.remove(id);
            }
            if silent.is_empty() {
                return Came::Something;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(size: usize, failhard: bool) -> State {
        let request = PublishRequest::new("*", "test.ping", "root");
        let wanted = Wanted { request, size: size.to_string(), failhard, wait: 0.0, timeout: 5 };
        State::new(&Jid::new(), &wanted, ["a", "b", "c"].map(str::to_owned).to_vec(), size)
    }

    #[test]
    fn as_many_as_there_is_room_for_are_asked() {
        let mut state = state(2, false);
        assert_eq!(state.next(), ["a", "b"]);
        assert_eq!(state.next(), Vec::<String>::new());
        state.take("b", Some(&map! {"return" => true, "retcode" => 0}));
        assert_eq!(state.next(), ["c"]);
        state.take("a", None);
        let summary = state.summary();
        for (name, is) in [("total", 3), ("completed", 2), ("active", 1), ("pending", 0), ("failed", 1)] {
            assert_eq!(summary.get(name), Some(&is.into()), "{name}");
        }
        assert!(!state.is_halted());
    }

    #[test]
    fn a_failure_ends_a_hard_one() {
        let mut state = state(1, true);
        state.next();
        state.take("a", Some(&map! {"return" => false, "retcode" => 1}));
        assert!(state.is_halted());
        let (word, body) = state.event(Stage::End);
        assert_eq!((word, body.get("reason")), ("halted", Some(&"failhard".into())));
        assert_eq!(body.get("abandoned_pending").map(ToString::to_string), Some("['b', 'c']".into()));
    }
}
