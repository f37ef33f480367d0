//! Which events a user may see: those that the user's entries `events` name, those of the user's own jobs and calls,
//! and those of functions on minions that the user may use.
//!
//! The owner of a job is known from its `new` event, which the hub has seen (`owners.rs`). What an event is about is
//! read once per event, and a decision is made once per event and user, however many streams the user has.

mod about;
mod owners;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use brine_auth::{Acl, EventPermissions, JobRequest, may_see};
use brine_event::Event;
use brine_target::{Match, Target, TargetFacts, TargetKind};
use brine_value::{Map, Value};

use about::About;
pub(crate) use owners::Owners;

/// The number of recent decisions that are stored per user.
const DECISIONS: usize = 512;

/// What decides who may see an event, beside its tag.
pub(crate) struct Subject {
    /// The user of the job or call that the event belongs to, if it is known.
    owner: Option<Arc<str>>,
    /// Distinguishes the events of this process, from 1. Sequence numbers do not: they restart with a new store.
    serial: u64,
    about: OnceLock<About>,
}

/// The number of subjects that have been created.
static SUBJECTS: AtomicU64 = AtomicU64::new(0);

impl Subject {
    /// Creates the subject of an event of this user's job or call.
    pub fn new(owner: Option<Arc<str>>) -> Self {
        Subject { owner, serial: SUBJECTS.fetch_add(1, Ordering::Relaxed) + 1, about: OnceLock::new() }
    }
}

/// The events that a user may see.
#[derive(Debug)]
pub(crate) struct Visibility {
    tags: EventPermissions,
    /// The name in the user's jobs; `None` if jobs under this name may be of the master's own user.
    user: Option<String>,
    acl: Acl,
    /// The targets of the entries; `None` for invalid ones.
    targets: HashMap<String, Option<Target>>,
    /// Recent decisions: the event's serial number, and whether it is visible in the lowest bit.
    decisions: Box<[AtomicU64]>,
}

/// A minion of which only the id is known here. Targets by grains or pillar do not match it.
struct Minion<'a>(&'a str);

impl TargetFacts for Minion<'_> {
    fn id(&self) -> &str {
        self.0
    }

    fn grains(&self) -> Option<&Map> {
        None
    }

    fn pillar(&self) -> Option<&Map> {
        None
    }
}

impl Visibility {
    /// Compiles the entries of a user. `is_open` is the option `open_events`.
    pub fn new(user: Option<String>, entries: &[Value], nodegroups: &Map, is_open: bool) -> Self {
        let acl = Acl::new(entries);
        let parse = |target: &str| {
            let parsed = Target::parse(TargetKind::Compound, target, ":", nodegroups);
            (target.to_owned(), parsed.ok())
        };
        Visibility {
            tags: acl.event_permissions(is_open),
            user,
            targets: acl.targets().map(parse).collect(),
            acl,
            decisions: (0..DECISIONS).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Whether the user may see an event.
    pub fn permits(&self, event: &Event, subject: &Subject) -> bool {
        if self.tags.is_all() {
            return true;
        }
        let slot = &self.decisions[subject.serial as usize % DECISIONS];
        let stored = slot.load(Ordering::Relaxed);
        if stored >> 1 == subject.serial {
            return stored & 1 == 1;
        }
        let permitted = self.decide(event, subject);
        slot.store((subject.serial << 1) | u64::from(permitted), Ordering::Relaxed);
        permitted
    }

    fn decide(&self, event: &Event, subject: &Subject) -> bool {
        if may_see(&self.tags, event.tag()) {
            return true;
        }
        if self.user.is_some() && self.user.as_deref() == subject.owner.as_deref() {
            return !self.acl.is_empty();
        }
        match subject.about.get_or_init(|| About::of(event)) {
            About::Job { functions, minions } => {
                let functions = functions.iter().map(|(name, arguments)| (name.as_str(), arguments.as_slice()));
                let job = JobRequest { functions: functions.collect(), minions };
                self.acl.permits_job(&job, |target| self.among(target, minions))
            }
            About::Start(minion) => self.acl.reaches(minion, |target| self.among(target, minion)),
            About::Other => false,
        }
    }

    /// Returns those of the minions that certainly match a target.
    fn among(&self, target: &str, minions: &[String]) -> Option<HashSet<String>> {
        let target = self.targets.get(target)?.as_ref()?;
        let matching = minions.iter().filter(|id| target.check(&Minion(id)) == Match::Yes);
        Some(matching.cloned().collect())
    }
}

#[cfg(test)]
mod tests;
