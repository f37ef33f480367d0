//! Brine's reactor: events in, reactions out.
//!
//! `entries.rs` binds tag patterns to SLS files and `limits.rs` says how often; `sls.rs` finds files and keeps
//! them compiled; `plan.rs` renders them, `reaction.rs` reads what they say, `untrusted.rs` checks what comes
//! from the event, and `order.rs` sorts it.
//! [`Reactor::run`] follows the bus, `schedule.rs` is the worker queue with its deadlines, `react.rs` dispatches and
//! retries, and what fails becomes a dead letter (`aside.rs`). `progress.rs` keeps the cursor behind all that is open,
//! `clock.rs` is the time, `check.rs` examines files before the start. `history.rs` and `explain.rs` read the results of
//! reactions from the journal; `skipped.rs` records reactions that did not happen, and `diagnose.rs` explains them. What a
//! reaction does is
//! not known here: it is handed to a [`Dispatch`]. `rules/` holds rules over time, which `overtime.rs` runs.

mod aside;
mod check;
mod clock;
mod deadline;
mod diagnose;
mod dispatch;
mod duration;
mod entries;
mod explain;
mod failed_states;
mod history;
mod limits;
pub mod metrics;
mod nearest;
mod order;
mod overtime;
mod peek;
mod persist;
mod plan;
mod progress;
mod react;
mod reaction;
mod recover;
mod rules;
mod run;
mod schedule;
mod skipped;
mod sls;
mod trial;
mod untrusted;
mod work;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use brine_bus::store::{BlockingStore, StoreError};
use brine_jinja::Host;
use brine_runtime::executors::Executor;
use brine_value::{Map, Value};
use parking_lot::{Mutex, RwLock};

pub use aside::Failed;
pub use check::{check_files, check_rules};
pub use deadline::Deadline;
pub use dispatch::{Cause, Dispatch, DispatchError, Dispatched};
pub use entries::{Entries, Entry, EntryError};
pub use explain::ExplainError;
pub use history::HistoryFilter;
pub use limits::LimitsError;
pub use overtime::GroupSize;
pub use peek::DEPTH;
pub use reaction::{LocalReaction, Reaction, ReactionError};
pub use recover::HandedOver;
pub use rules::{RuleError, Rules};

/// The grains of the host that the reactor is on, collected when a template first wants them.
pub type Grains = Arc<dyn Fn() -> Arc<Map> + Send + Sync>;

/// How long a reaction keeps its worker; one that takes longer is detached, and others go on.
pub const DETACH: Duration = Duration::from_secs(10);

/// How a reactor works.
pub struct Options {
    /// How many events are worked on side by side. Events of the same tag and id keep their order.
    pub workers: usize,
    /// How many events wait in memory; more of them wait in the journal.
    pub waiting: usize,
    /// How long a reaction keeps its worker: [`DETACH`].
    pub detach: Duration,
    /// How long the reactions to one event may take before they are cancelled and kept as dead letters.
    pub deadline: Duration,
    /// How often a reaction is tried again whose failure may pass.
    pub retries: u32,
    /// Whether text from events may not change the structure of a rendered SLS.
    pub strict_data: bool,
    /// How many reactions may lead from one to the next.
    pub max_depth: u64,
    /// Who the reactor's own calls are made for: their events lead to no reactions.
    pub user: &'static str,
    /// The render pipe of files that do not name one.
    pub renderer: String,
    /// `opts` in templates.
    pub opts: Arc<Map>,
    /// `grains` in templates.
    pub grains: Grains,
    /// What `salt` in templates reaches.
    pub host: Arc<dyn Host>,
    /// How large node groups are, for rules over time.
    pub group_size: GroupSize,
    /// Runs what reads the journal.
    pub disk: Executor,
    /// Where failed reactions are put aside and rules keep what they remember; nowhere means in memory.
    pub store: Option<BlockingStore>,
}

/// The reactor.
pub struct Reactor<D> {
    options: Options,
    dispatch: D,
    planner: plan::Planner,
    entries: RwLock<Arc<Entries>>,
    leader: AtomicBool,
    limiter: Mutex<limits::Limiter>,
    aside: aside::Aside,
    skipped: skipped::Skipped,
    /// Up to which event there may be reactions of before a restart, and those.
    before: Mutex<(u64, HashMap<recover::Key, HandedOver>)>,
    overtime: Arc<overtime::Overtime>,
    clock: clock::Clock,
}

impl<D: Dispatch> Reactor<D> {
    /// Creates a reactor with these entries.
    pub fn new(entries: Entries, options: Options, dispatch: D) -> Result<Arc<Self>, StoreError> {
        Self::with_clock(entries, options, dispatch, clock::Clock::system())
    }

    fn with_clock(
        entries: Entries,
        options: Options,
        dispatch: D,
        clock: clock::Clock,
    ) -> Result<Arc<Self>, StoreError> {
        Ok(Arc::new(Reactor {
            planner: plan::Planner::new(&options),
            entries: RwLock::new(Arc::new(entries)),
            leader: AtomicBool::new(true),
            limiter: Mutex::default(),
            aside: aside::Aside::open(options.store.clone())?,
            skipped: skipped::Skipped::default(),
            before: Mutex::default(),
            overtime: Arc::new(overtime::Overtime::new(options.store.clone(), clock.clone())),
            clock,
            options,
            dispatch,
        }))
    }

    /// The entries as they are now.
    pub fn entries(&self) -> Arc<Entries> {
        Arc::clone(&self.entries.read())
    }

    /// Replaces the entries: the configuration has changed.
    pub fn configure(&self, entries: Entries) {
        *self.entries.write() = Arc::new(entries);
    }

    /// Adds an entry until the next start or change of the configuration, as Salt's `reactor.add` does. Says
    /// whether there was none for the tag.
    pub fn add(&self, pattern: &str, files: &Value) -> Result<bool, EntryError> {
        let files = entries::files_of(pattern, files)?;
        let mut entries = self.entries.write();
        if entries.names(pattern) {
            return Ok(false);
        }
        *entries = Arc::new(entries.with(pattern, files)?);
        Ok(true)
    }

    /// Removes the entries of a pattern until the next start or change of the configuration. Says whether there
    /// were any.
    pub fn delete(&self, pattern: &str) -> Result<bool, EntryError> {
        let mut entries = self.entries.write();
        if !entries.names(pattern) {
            return Ok(false);
        }
        *entries = Arc::new(entries.without(pattern)?);
        Ok(true)
    }

    /// Whether the reactor reacts. One that is no leader passes over events.
    pub fn is_leader(&self) -> bool {
        self.leader.load(Ordering::Relaxed)
    }

    /// Sets whether the reactor reacts.
    pub fn set_leader(&self, leader: bool) {
        self.leader.store(leader, Ordering::Relaxed);
    }

    /// Forgets the reactions of before a restart when the cursor has passed their events.
    fn forget_before(&self, cursor: u64) {
        let mut before = self.before.lock();
        if before.0 <= cursor && !before.1.is_empty() {
            before.1 = HashMap::new();
        }
    }

    /// Returns the dead letters, oldest first.
    pub fn failed(&self) -> Vec<Failed> {
        self.aside.all().into_iter().map(|(_, failed)| failed).collect()
    }
}

#[cfg(test)]
mod tests;
