//! Rules over time in a running reactor: their files read, what they remember kept in the store, and what they
//! come to handed over at least once.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use brine_core::event::Event;
use brine_core::store::{Batch, Store, StoreError, Table};
use brine_core::value::msgpack;
use brine_core::{Map, Value, map};
use bytes::Bytes;
use parking_lot::Mutex;

use crate::peek::Peek;
use crate::plan::Bound;
use crate::rules::{Engine, Firing, Moment, Rules};
use crate::run::{Work, now_micros};
use crate::{Dispatch, Reactor};

const KEPT: Table = Table("reactor_rules");
/// Firings whose reactions have not all been handed over.
const FIRED: Table = Table("reactor_fired");

/// How large the node group of a name is; nothing if there is none.
pub type GroupSize = Arc<dyn Fn(&str) -> Option<usize> + Send + Sync>;

/// The rules with what they remember, in memory and in the store.
pub(crate) struct Overtime {
    engine: Mutex<Engine>,
    store: Option<Store>,
    /// The number of the next firing.
    next: Mutex<u64>,
}

impl Overtime {
    /// Without rules, until they are set.
    pub fn new(store: Option<Store>) -> Self {
        let (none, _) = Rules::parse(&[]);
        Overtime { engine: Mutex::new(Engine::new(none, &[], 0)), store, next: Mutex::new(0) }
    }

    /// Replaces the rules. What is remembered for those that stay the same stays.
    fn set(&self, rules: Rules) -> Result<(), StoreError> {
        let mut engine = self.engine.lock();
        let mut kept = engine.kept();
        if engine.is_empty() {
            kept = self.store.as_ref().map(|store| store.scan(KEPT, b"", usize::MAX)).transpose()?.unwrap_or_default();
        }
        *engine = Engine::new(rules, &kept, now_micros());
        drop(engine);
        self.keep(&[]);
        Ok(())
    }

    /// Writes what has changed, and firings that are to be handed over, together.
    fn keep(&self, fired: &[(u64, Vec<u8>)]) {
        let changes = self.engine.lock().changes();
        let Some(store) = &self.store else { return };
        let mut batch = Batch::new();
        for (key, value) in changes {
            match value {
                Some(value) => batch.put(KEPT, key, value),
                None => batch.delete(KEPT, key),
            };
        }
        for (number, packed) in fired {
            batch.put(FIRED, number.to_be_bytes(), packed.clone());
        }
        if !batch.is_empty() {
            // The store logs what it cannot write.
            drop(store.write(batch));
        }
    }

    /// The reactions of a firing have been handed over.
    pub fn done(&self, number: u64) {
        if let Some(store) = &self.store {
            let mut batch = Batch::new();
            batch.delete(FIRED, number.to_be_bytes());
            drop(store.write(batch));
        }
    }

    /// Firings of before a restart that were not handed over to the end.
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

    /// When the next timer is due, in microseconds since 1970.
    pub fn next_due(&self) -> Option<u64> {
        self.engine.lock().next_due()
    }

    /// What an event makes true.
    pub fn event(&self, event: &Event, group_size: &GroupSize) -> Vec<Work> {
        let data = event.data();
        let moment =
            Moment { seq: event.seq(), tag: event.tag(), data: &data, time: event.time().unwrap_or_else(now_micros) };
        let firings = self.engine.lock().event(moment, &**group_size);
        self.works(firings)
    }

    /// What time makes true.
    pub fn tick(&self) -> Vec<Work> {
        let firings = self.engine.lock().tick(now_micros());
        self.works(firings)
    }

    fn works(&self, firings: Vec<Firing>) -> Vec<Work> {
        let mut fired = Vec::new();
        let mut works = Vec::new();
        for firing in firings {
            let number = {
                let mut next = self.next.lock();
                *next += 1;
                *next - 1
            };
            let packed = pack(&firing);
            works.extend(unpack(number, &packed));
            fired.push((number, packed));
        }
        self.keep(&fired);
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
    use brine_core::value::FromValue;
    let map = msgpack::unpack_map(packed).ok()?;
    let text = |name: &str| map.get(name).and_then(Value::as_str);
    let data = map.get("data")?.as_map()?;
    let frame = Event::from_map(text("tag")?, data).ok()?.frame().clone();
    let event = Event::from_trusted_frame(u64::from_value(map.get("seq")?)?, Bytes::clone(&frame)).ok()?;
    let files = Vec::<String>::from_value(map.get("react")?)?;
    let depth = Peek::at(&event).depth;
    let bound = vec![Bound::Rule { name: text("rule")?.into(), files }];
    let more = map.get("context").and_then(Value::as_map).cloned();
    Some(Work { event, bound, more, depth, taken: Instant::now(), firing: Some(number) })
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

    /// The timers of rules over time that run: rule, key, and when they are due, in microseconds since 1970.
    pub fn timers(&self) -> Vec<(String, String, u64)> {
        self.overtime.engine.lock().timers()
    }
}
