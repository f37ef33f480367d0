//! Runs rules over time: persists their state and queues the reactions of their firings, which are dispatched at least
//! once. The cursor passes an event when the rule state that it changed is on disk.

mod succession;

use std::collections::HashMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use brine_bus::store::{Batch, BlockingStore, StoreError, Table};
use brine_event::Event;
use brine_rules::{Engine, Firing, Occurrence, Rules};
use brine_value::{Map, Value, map, msgpack};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::Reactor;
use crate::clock::Clock;
use crate::plan::Binding;
use crate::progress::Progress;
use crate::routing_fields::RoutingFields;
use crate::store_retry;
use crate::work::Work;
use succession::Succession;

/// The state of the rules.
const STATE: Table = Table("reactor_rules");
/// Firings whose reactions have not all been dispatched.
const FIRINGS: Table = Table("reactor_fired");

/// Resolves the number of minions of a node group; `None` if there is no such group.
pub type GroupSize = Arc<dyn Fn(&str) -> Pin<Box<dyn Future<Output = Option<usize>> + Send>> + Send + Sync>;

/// The capacity of the write queue; the reactor blocks while it is full.
const WRITES: usize = 4096;
/// The maximum number of writes in one batch.
const BATCH: usize = 1024;

/// Changes that are written together. Keys without a value are removed.
struct Write {
    changes: Vec<(Table, Vec<u8>, Option<Bytes>)>,
    /// The event that holds the cursor until the changes are on disk.
    seq: Option<u64>,
}

/// The rules with their state, in memory and in the store.
pub(crate) struct RuleRuntime {
    engine: Mutex<Engine>,
    clock: Clock,
    store: Option<BlockingStore>,
    writes: mpsc::Sender<Write>,
    /// The receiving end of `writes`, until the writer starts.
    queue: Mutex<Option<mpsc::Receiver<Write>>>,
    /// The number of the next firing.
    next: Mutex<u64>,
    /// Notified when the rules are replaced.
    changed: Notify,
    succession: Mutex<Succession>,
    /// The files of the rules.
    files: Mutex<Vec<String>>,
}

impl RuleRuntime {
    /// Creates a runtime without rules.
    pub fn new(store: Option<BlockingStore>, clock: Clock) -> Self {
        let (none, _) = Rules::parse(&[]);
        let (writes, queue) = mpsc::channel(WRITES);
        let engine = Mutex::new(Engine::new(none, &[], 0, 0));
        RuleRuntime {
            engine,
            clock,
            store,
            writes,
            queue: Mutex::new(Some(queue)),
            next: Mutex::new(0),
            changed: Notify::new(),
            succession: Mutex::default(),
            files: Mutex::default(),
        }
    }

    /// Replaces the rules. Unchanged rules keep their state.
    fn set(&self, rules: Rules) -> Result<(), StoreError> {
        let mut engine = self.engine.lock();
        let mut state = engine.state();
        if engine.is_empty() {
            state =
                self.store.as_ref().map(|store| store.scan(STATE, b"", usize::MAX)).transpose()?.unwrap_or_default();
        }
        *engine = Engine::new(rules, &state, self.clock.now(), self.clock.wall_offset());
        drop(engine);
        // Wakes the event loop, which persists the changes.
        self.changed.notify_one();
        Ok(())
    }

    /// Waits until the rules have been replaced.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Queues the changed state and new firings for one write. The event of `seq` holds the cursor until that is on
    /// disk. Blocks while the write queue is full.
    async fn persist(&self, fired: &[(u64, Vec<u8>)], seq: Option<u64>, progress: &Mutex<Progress>) {
        let changes = {
            let mut engine = self.engine.lock();
            engine.set_wall_offset(self.clock.wall_offset());
            engine.changes()
        };
        if !changes.is_empty() {
            self.succession.lock().is_changed = true;
        }
        if self.store.is_none() || (changes.is_empty() && fired.is_empty()) {
            return;
        }
        let state = changes.into_iter().map(|(key, value)| (STATE, key, value.map(Bytes::from)));
        let firings = fired
            .iter()
            .map(|(number, packed)| (FIRINGS, number.to_be_bytes().to_vec(), Some(Bytes::copy_from_slice(packed))));
        let write = Write { changes: state.chain(firings).collect(), seq };
        if let Some(seq) = seq {
            progress.lock().begin(seq);
        }
        // The writer ends with the reactor; the event then stays open.
        _ = self.writes.send(write).await;
    }

    /// Persists changes that were not caused by an event.
    pub async fn flush(&self, progress: &Mutex<Progress>) {
        self.persist(&[], None, progress).await;
    }

    /// Removes a firing whose reactions have been dispatched.
    pub async fn dispatched(&self, number: u64) {
        if self.store.is_some() {
            let changes = vec![(FIRINGS, number.to_be_bytes().to_vec(), None)];
            // The writer ends with the reactor; the firing is then repeated after the next start.
            _ = self.writes.send(Write { changes, seq: None }).await;
        }
    }

    /// Writes until `stop`, then drains the queue. Runs once.
    pub async fn write(self: Arc<Self>, progress: Arc<Mutex<Progress>>, stop: CancellationToken) {
        let (Some(mut queue), Some(store)) = (self.queue.lock().take(), self.store.clone()) else { return };
        let mut writes = Vec::new();
        loop {
            tokio::select! {
                count = queue.recv_many(&mut writes, BATCH) => if count == 0 { return },
                () = stop.cancelled(), if !queue.is_closed() => {
                    queue.close();
                    continue;
                }
            }
            let batch = || {
                let mut batch = Batch::new();
                for (table, key, value) in writes.iter().flat_map(|write| &write.changes) {
                    match value {
                        Some(value) => batch.put(*table, key.clone(), value.clone()),
                        None => batch.delete(*table, key.clone()),
                    };
                }
                batch
            };
            // Batches are written in order: a later batch marks the events of this one as processed.
            if !store_retry::write(&store, batch, "the state of rules", &stop).await {
                return;
            }
            let mut progress = progress.lock();
            writes.drain(..).filter_map(|write| write.seq).for_each(|seq| progress.end(seq));
        }
    }

    /// Returns the firings from before the restart whose reactions have not all been dispatched.
    pub fn pending_firings(&self) -> Result<Vec<Work>, StoreError> {
        let Some(store) = &self.store else { return Ok(Vec::new()) };
        let mut pending = Vec::new();
        for (key, packed) in store.scan(FIRINGS, b"", usize::MAX)? {
            let Ok(number) = key.try_into().map(u64::from_be_bytes) else { continue };
            let mut next = self.next.lock();
            *next = (*next).max(number + 1);
            pending.extend(unpack(number, &packed));
        }
        Ok(pending)
    }

    /// Returns whether a trigger of a rule matches a tag.
    pub fn wants(&self, tag: &str) -> bool {
        self.engine.lock().wants(tag)
    }

    /// Returns the rules with a trigger for the tag of an event, each with the reason why it did not fire.
    pub fn status(&self, event: &Event) -> Vec<(String, String)> {
        let (data, now, offset) = (event.data(), self.clock.now(), self.clock.wall_offset());
        let time = event.time().map_or(now, |stamp| stamp.saturating_add_signed(offset.saturating_neg()).min(now));
        let occurrence = Occurrence { seq: event.seq(), tag: event.tag(), data: &data, time };
        self.engine.lock().status(occurrence, now)
    }

    /// Returns the patterns of all rules, each with the rule's id.
    pub fn patterns(&self) -> Vec<(String, String)> {
        let engine = self.engine.lock();
        engine.rules().patterns().map(|(pattern, rule)| (pattern.to_owned(), rule.to_owned())).collect()
    }

    /// Returns the time until the next timer is due.
    pub fn next_due(&self) -> Option<Duration> {
        let due = self.engine.lock().next_due()?;
        Some(Duration::from_micros(due.saturating_sub(self.clock.now())))
    }

    /// Returns the work items of the rules that an event fires.
    pub async fn event(&self, event: &Event, group_size: &GroupSize, progress: &Mutex<Progress>) -> Vec<Work> {
        let data = event.data();
        let time = self.clock.time_of(event.time());
        let occurrence = Occurrence { seq: event.seq(), tag: event.tag(), data: &data, time };
        let groups = self.engine.lock().groups();
        let mut sizes = HashMap::new();
        for name in groups {
            let size = group_size(&name).await;
            sizes.insert(name, size);
        }
        let firings = self.engine.lock().event(occurrence, &|name| sizes.get(name).copied().flatten());
        self.work_items(firings, Some(event.seq()), progress).await
    }

    /// Returns the work items of the timers that are due.
    pub async fn advance(&self, progress: &Mutex<Progress>) -> Vec<Work> {
        let firings = self.engine.lock().advance(self.clock.now());
        self.work_items(firings, None, progress).await
    }

    async fn work_items(&self, firings: Vec<Firing>, seq: Option<u64>, progress: &Mutex<Progress>) -> Vec<Work> {
        let mut fired = Vec::new();
        let mut work_items = Vec::new();
        for firing in firings {
            let number = {
                let mut next = self.next.lock();
                *next += 1;
                *next - 1
            };
            let key = firing.context.get("key").map(ToString::to_string).unwrap_or_default();
            tracing::info!(rule = firing.rule, key, tag = firing.tag, _seq = firing.seq, "rule fired");
            let packed = pack(&firing);
            work_items.extend(unpack(number, &packed));
            fired.push((number, packed));
        }
        self.persist(&fired, seq, progress).await;
        work_items
    }
}

fn pack(firing: &Firing) -> Vec<u8> {
    msgpack::pack_map(&map! {
        "rule" => firing.rule.as_str(),
        "react" => firing.react.clone(),
        "tag" => firing.tag.as_str(),
        "data" => firing.data.clone(),
        "seq" => firing.seq,
        "context" => firing.context.clone(),
    })
}

fn unpack(number: u64, packed: &[u8]) -> Option<Work> {
    use brine_value::FromValue;
    let map = msgpack::unpack_map(packed).ok()?;
    let text = |name: &str| map.get(name).and_then(Value::as_str);
    let data = map.get("data")?.as_map()?;
    let frame = Event::from_trusted_map(text("tag")?, data).ok()?.frame().clone();
    let event = Event::from_trusted_frame(u64::from_value(map.get("seq")?)?, Bytes::clone(&frame)).ok()?;
    let files = Vec::<String>::from_value(map.get("react")?)?;
    let depth = RoutingFields::of(&event).depth;
    let bindings = vec![Binding::Rule { name: text("rule")?.into(), files }];
    let rule_context = map.get("context").and_then(Value::as_map).cloned();
    let mut work = Work::new(event, bindings, depth);
    (work.rule_context, work.firing) = (rule_context, Some(number));
    Some(work)
}

impl Reactor {
    /// Replaces the rules over time by those of these files (paths, globs of paths, `salt://` paths). Returns the
    /// errors of invalid files and rules, which are left out.
    pub fn set_rules(&self, files: &[String]) -> Result<Vec<String>, StoreError> {
        let mut errors = Vec::new();
        let mut located = Vec::new();
        for file in files {
            match self.planner.rules(file) {
                Ok(rendered) => located.extend(rendered.into_iter().map(|(path, rules)| (PathBuf::from(path), rules))),
                Err(error) => errors.push(error),
            }
        }
        let (rules, invalid) = Rules::parse(&located);
        errors.extend(invalid.iter().map(ToString::to_string));
        *self.rules.files.lock() = files.to_vec();
        self.rules.set(rules)?;
        Ok(errors)
    }

    /// Returns the files of the rules over time.
    pub(crate) fn rule_files(&self) -> Vec<String> {
        self.rules.files.lock().clone()
    }

    /// Returns the rules over time by id, each with its function and SLS files.
    pub fn rules(&self) -> Map {
        let engine = self.rules.engine.lock();
        let one = |rule: &brine_rules::Rule| {
            let map = map! {"function" => rule.function(), "react" => rule.react.clone()};
            (Value::from(rule.id.as_str()), Value::Map(map))
        };
        engine.rules().all().iter().map(one).collect()
    }

    /// Returns the values of the registers of rules over time, by id and key.
    pub fn registers(&self) -> Map {
        self.rules.engine.lock().registers(None)
    }

    /// Returns the running timers of rules over time: rule, key, and due time by the wall clock in microseconds since
    /// 1970.
    pub fn timers(&self) -> Vec<(String, String, u64)> {
        let offset = self.rules.clock.wall_offset();
        let timers = self.rules.engine.lock().timers().into_iter();
        timers.map(|(rule, key, due)| (rule, key, due.saturating_add_signed(offset))).collect()
    }
}

#[cfg(test)]
mod tests;
