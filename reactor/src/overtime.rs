//! Rules over time in a running reactor: their files read, their state persisted, and the reactions of their firings
//! dispatched at least once. The cursor passes an event when the state that it changed is on disk.

use std::collections::HashMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use brine_bus::store::{Batch, BlockingStore, StoreError, Table};
use brine_event::Event;
use brine_value::{Map, Value, map, msgpack};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::peek::Peek;
use crate::persist;
use crate::plan::Bound;
use crate::progress::Progress;
use crate::rules::{Engine, Firing, Moment, Rules};
use crate::work::Work;
use crate::{Dispatch, Reactor};

const KEPT: Table = Table("reactor_rules");
/// Firings whose reactions have not all been handed over.
const FIRED: Table = Table("reactor_fired");

/// How large the node group of a name is; nothing if there is none.
pub type GroupSize = Arc<dyn Fn(&str) -> Pin<Box<dyn Future<Output = Option<usize>> + Send>> + Send + Sync>;

/// How many writes wait for the store; then the reactor takes no more events.
const WRITES: usize = 4096;
/// How many writes go into one batch.
const BATCH: usize = 1024;

/// What is to be written together: keys without a value are removed.
struct Write {
    changes: Vec<(Table, Vec<u8>, Option<Bytes>)>,
    /// The event that the cursor must not pass before this is on disk.
    seq: Option<u64>,
}

/// The rules with what they remember, in memory and in the store.
pub(crate) struct Overtime {
    engine: Mutex<Engine>,
    clock: Clock,
    store: Option<BlockingStore>,
    writes: mpsc::Sender<Write>,
    /// For the writer, until it starts.
    waiting: Mutex<Option<mpsc::Receiver<Write>>>,
    /// The number of the next firing.
    next: Mutex<u64>,
    /// The rules have been replaced.
    changed: Notify,
}

impl Overtime {
    /// Creates the state of no rules, until they are set.
    pub fn new(store: Option<BlockingStore>, clock: Clock) -> Self {
        let (none, _) = Rules::parse(&[]);
        let (writes, waiting) = mpsc::channel(WRITES);
        let engine = Mutex::new(Engine::new(none, &[], 0, 0));
        Overtime {
            engine,
            clock,
            store,
            writes,
            waiting: Mutex::new(Some(waiting)),
            next: Mutex::new(0),
            changed: Notify::new(),
        }
    }

    /// Replaces the rules. What is remembered for those that stay the same stays.
    fn set(&self, rules: Rules) -> Result<(), StoreError> {
        let mut engine = self.engine.lock();
        let mut kept = engine.kept();
        if engine.is_empty() {
            kept = self.store.as_ref().map(|store| store.scan(KEPT, b"", usize::MAX)).transpose()?.unwrap_or_default();
        }
        *engine = Engine::new(rules, &kept, self.clock.now(), self.clock.ahead());
        drop(engine);
        // The reactor persists what has changed.
        self.changed.notify_one();
        Ok(())
    }

    /// Waits until the rules have been replaced.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Hands what has changed, and firings whose reactions are to be dispatched, to the writer: together, and before
    /// the cursor passes the event of `seq`, which is open in the progress until then. Waits while too many writes wait.
    async fn keep(&self, fired: &[(u64, Vec<u8>)], seq: Option<u64>, progress: &Mutex<Progress>) {
        let changes = {
            let mut engine = self.engine.lock();
            engine.set_ahead(self.clock.ahead());
            engine.changes()
        };
        if self.store.is_none() || (changes.is_empty() && fired.is_empty()) {
            return;
        }
        let kept = changes.into_iter().map(|(key, value)| (KEPT, key, value.map(Bytes::from)));
        let firings = fired
            .iter()
            .map(|(number, packed)| (FIRED, number.to_be_bytes().to_vec(), Some(Bytes::copy_from_slice(packed))));
        let write = Write { changes: kept.chain(firings).collect(), seq };
        if let Some(seq) = seq {
            progress.lock().begin(seq);
        }
        // The writer ends with the reactor: then the event stays open.
        _ = self.writes.send(write).await;
    }

    /// Persists what has changed without an event.
    pub async fn flush(&self, progress: &Mutex<Progress>) {
        self.keep(&[], None, progress).await;
    }

    /// Records that the reactions of a firing have been dispatched.
    pub async fn done(&self, number: u64) {
        if self.store.is_some() {
            let changes = vec![(FIRED, number.to_be_bytes().to_vec(), None)];
            // The writer ends with the reactor: then the firing comes again.
            _ = self.writes.send(Write { changes, seq: None }).await;
        }
    }

    /// Writes until `stop`, and then what waits. Runs once.
    pub async fn write(self: Arc<Self>, progress: Arc<Mutex<Progress>>, stop: CancellationToken) {
        let (Some(mut waiting), Some(store)) = (self.waiting.lock().take(), self.store.clone()) else { return };
        let mut writes = Vec::new();
        loop {
            tokio::select! {
                count = waiting.recv_many(&mut writes, BATCH) => if count == 0 { return },
                () = stop.cancelled(), if !waiting.is_closed() => {
                    waiting.close();
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
            // What comes later must not be on disk without this: its events would count as seen.
            if !persist::write(&store, batch, "what rules over time remember", &stop).await {
                return;
            }
            let mut progress = progress.lock();
            writes.drain(..).filter_map(|write| write.seq).for_each(|seq| progress.end(seq));
        }
    }

    /// Returns the firings of before a restart whose reactions have not all been dispatched.
    pub fn left_over(&self) -> Result<Vec<Work>, StoreError> {
        let Some(store) = &self.store else { return Ok(Vec::new()) };
        let mut left = Vec::new();
        for (key, packed) in store.scan(FIRED, b"", usize::MAX)? {
            let Ok(number) = key.try_into().map(u64::from_be_bytes) else { continue };
            let mut next = self.next.lock();
            *next = (*next).max(number + 1);
            left.extend(unpack(number, &packed));
        }
        Ok(left)
    }

    /// Whether a rule looks at events of this tag.
    pub fn wants(&self, tag: &str) -> bool {
        self.engine.lock().wants(tag)
    }

    /// Returns the rules that look at events of this tag, each with why it did not fire at this one.
    pub fn status(&self, event: &Event) -> Vec<(String, String)> {
        let (data, now, ahead) = (event.data(), self.clock.now(), self.clock.ahead());
        let time = event.time().map_or(now, |stamp| stamp.saturating_add_signed(ahead.saturating_neg()).min(now));
        let moment = Moment { seq: event.seq(), tag: event.tag(), data: &data, time };
        self.engine.lock().status(moment, now)
    }

    /// Returns the patterns of all rules, each with the rule's id.
    pub fn patterns(&self) -> Vec<(String, String)> {
        let engine = self.engine.lock();
        engine.rules().patterns().map(|(pattern, rule)| (pattern.to_owned(), rule.to_owned())).collect()
    }

    /// Returns how long until the next timer is due.
    pub fn next_due(&self) -> Option<Duration> {
        let due = self.engine.lock().next_due()?;
        Some(Duration::from_micros(due.saturating_sub(self.clock.now())))
    }

    /// Returns what an event makes true.
    pub async fn event(&self, event: &Event, group_size: &GroupSize, progress: &Mutex<Progress>) -> Vec<Work> {
        let data = event.data();
        let time = self.clock.time_of(event.time());
        let moment = Moment { seq: event.seq(), tag: event.tag(), data: &data, time };
        let groups = self.engine.lock().groups();
        let mut sizes = HashMap::new();
        for name in groups {
            let size = group_size(&name).await;
            sizes.insert(name, size);
        }
        let firings = self.engine.lock().event(moment, &|name| sizes.get(name).copied().flatten());
        self.works(firings, Some(event.seq()), progress).await
    }

    /// Returns what time makes true.
    pub async fn tick(&self, progress: &Mutex<Progress>) -> Vec<Work> {
        let firings = self.engine.lock().tick(self.clock.now());
        self.works(firings, None, progress).await
    }

    async fn works(&self, firings: Vec<Firing>, seq: Option<u64>, progress: &Mutex<Progress>) -> Vec<Work> {
        let mut fired = Vec::new();
        let mut works = Vec::new();
        for firing in firings {
            let number = {
                let mut next = self.next.lock();
                *next += 1;
                *next - 1
            };
            let key = firing.context.get("key").map(ToString::to_string).unwrap_or_default();
            tracing::info!(rule = firing.rule, key, tag = firing.tag, _seq = firing.seq, "rule fired");
            let packed = pack(&firing);
            works.extend(unpack(number, &packed));
            fired.push((number, packed));
        }
        self.keep(&fired, seq, progress).await;
        works
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
    let frame = Event::from_map(text("tag")?, data).ok()?.frame().clone();
    let event = Event::from_trusted_frame(u64::from_value(map.get("seq")?)?, Bytes::clone(&frame)).ok()?;
    let files = Vec::<String>::from_value(map.get("react")?)?;
    let depth = Peek::at(&event).depth;
    let bound = vec![Bound::Rule { name: text("rule")?.into(), files }];
    let more = map.get("context").and_then(Value::as_map).cloned();
    let mut work = Work::new(event, bound, depth);
    (work.more, work.firing) = (more, Some(number));
    Some(work)
}

impl<D: Dispatch> Reactor<D> {
    /// Reads rules over time from these files (paths, globs of paths, `salt://` paths) and uses them in the
    /// place of those of before. Says what is wrong with those that cannot be understood.
    pub fn set_rules(&self, files: &[String]) -> Result<Vec<String>, StoreError> {
        let mut errors = Vec::new();
        let mut located = Vec::new();
        for file in files {
            match self.planner.rules(file) {
                Ok(rendered) => located.extend(rendered.into_iter().map(|(path, rules)| (PathBuf::from(path), rules))),
                Err(error) => errors.push(error),
            }
        }
        let (rules, wrong) = Rules::parse(&located);
        errors.extend(wrong.iter().map(ToString::to_string));
        self.overtime.set(rules)?;
        Ok(errors)
    }

    /// The rules over time: by id, the function and the reactions.
    pub fn rules(&self) -> Map {
        let engine = self.overtime.engine.lock();
        let one = |rule: &crate::rules::Rule| {
            let shown = map! {"function" => rule.kind.name(), "react" => rule.react.clone()};
            (Value::from(rule.id.as_str()), Value::Map(shown))
        };
        engine.rules().all().iter().map(one).collect()
    }

    /// What the registers of rules over time say.
    pub fn registers(&self) -> Map {
        self.overtime.engine.lock().registers(None)
    }

    /// Returns the timers of rules over time that run: rule, key, and when they are due by the wall clock, in
    /// microseconds since 1970.
    pub fn timers(&self) -> Vec<(String, String, u64)> {
        let ahead = self.overtime.clock.ahead();
        let timers = self.overtime.engine.lock().timers().into_iter();
        timers.map(|(rule, key, due)| (rule, key, due.saturating_add_signed(ahead))).collect()
    }
}

#[cfg(test)]
mod tests;
