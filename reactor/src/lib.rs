//! Brine's reactor: starts reactions to events, as Salt's reactor does, and keeps failed reactions as dead letters.
//!
//! | file | owns |
//! |---|---|
//! | `event_loop.rs` | the subscription: which events lead to reactions, and the cursor |
//! | `entries.rs`, `limits/` | `reactor:` and the limits of its entries |
//! | `routing_fields.rs` | the fields of an event that the reactor evaluates |
//! | `sls.rs`, `plan.rs`, `parser.rs`, `reaction.rs`, `order/` | SLS files: cached, rendered, parsed into reactions, sorted |
//! | `injection_guard/` | rejects text from an event that would change the structure of a reaction |
//! | `worker_queue`, `work.rs`, `deadline.rs`, `progress.rs` | workers, their deadlines, and the limit of the cursor |
//! | `processing.rs`, `dead_letters.rs`, `retry.rs` | one event's reactions: dispatched, kept as dead letters, retried |
//! | `recovery.rs` | reactions dispatched before a crash, which are not repeated |
//! | `dispatch.rs` | the trait that carries reactions out: the reactor is independent of master and minion |
//! | `rule_runtime` | the rules over time of the crate `brine-rules`, with their state on disk |
//! | `skipped.rs`, `diagnose.rs`, `nearest/`, `failed_states.rs` | the reasons of skipped and failed reactions |
//! | `replay/` | recorded events against two configurations, without dispatching |
//! | `history.rs`, `explain.rs`, `graph.rs`, `dry_run.rs`, `check.rs` | diagnostics for operators |
//! | `clock.rs`, `store_retry.rs` | bus time; writes that are retried until they succeed |

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

mod check;
mod clock;
mod dead_letters;
mod deadline;
mod diagnose;
mod dispatch;
mod dry_run;
mod entries;
mod event_loop;
mod explain;
mod failed_states;
mod gate;
mod graph;
mod history;
mod injection_guard;
mod limits;
pub mod metrics;
mod nearest;
mod order;
mod parser;
mod plan;
mod processing;
mod progress;
mod reaction;
mod recovery;
mod replay;
mod retry;
mod routing_fields;
mod rule_runtime;
mod skipped;
mod sls;
mod store_retry;
mod work;
mod worker_queue;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use brine_bus::store::{BlockingStore, StoreError};
use brine_jinja::Host;
use brine_runtime::executors::{Executor, MayBlock};
use brine_value::{Map, Value};
use parking_lot::{Mutex, RwLock};

pub use check::{check_files, check_rules};
pub use dead_letters::{DeadLetter, LetterId};
pub use deadline::Deadline;
pub use dispatch::{Cause, Dispatch, DispatchError, Dispatched};
pub use dry_run::{DryRunError, Preview, preview};
pub use entries::{Entries, Entry, EntryError};
pub use explain::ExplainError;
pub use gate::{Admission, Gate, Position};
pub use history::HistoryFilter;
pub use limits::LimitsError;
pub use parser::ReactionError;
pub use reaction::{LocalReaction, Reaction};
pub use recovery::PriorDispatch;
pub use replay::{Configured, Replay, ReplayError, ReplayLimits};
pub use retry::Retried;
pub use routing_fields::DEPTH;
pub use rule_runtime::GroupSize;

/// Returns the grains of the reactor's host.
pub type Grains = Arc<dyn Fn() -> Arc<Map> + Send + Sync>;

/// The default of [`Options::detach`].
pub const DETACH: Duration = Duration::from_secs(10);

/// The settings of a reactor.
pub struct Options {
    /// The number of events processed in parallel. Events with the same tag and id keep their order.
    pub workers: usize,
    /// The number of events queued in memory; further events stay in the journal.
    pub waiting: usize,
    /// The time after which a reaction is detached: it keeps its thread, which no longer counts as a worker.
    pub detach: Duration,
    /// The timeout of the reactions to one event; overdue reactions are cancelled and become dead letters.
    pub deadline: Duration,
    /// The number of retries of a reaction that failed with a transient error.
    pub retries: u32,
    /// Whether text from events is prevented from changing the structure of a rendered SLS.
    pub strict_data: bool,
    /// The maximum length of a chain of reactions that cause one another.
    pub max_depth: u64,
    /// The user of the reactor's own calls, whose events start no reactions.
    pub user: &'static str,
    /// The render pipe of files without a `#!` line.
    pub renderer: String,
    /// `opts` in templates.
    pub opts: Arc<Map>,
    /// `grains` in templates.
    pub grains: Grains,
    /// `salt` in templates.
    pub host: Host,
    /// Resolves the size of node groups, for rules over time.
    pub group_size: GroupSize,
    /// Runs reads of the journal.
    pub disk: Executor,
    /// Stores dead letters and the state of rules; `None` keeps them in memory.
    pub store: Option<BlockingStore>,
    /// The maximum bytes of all dead letters, with their events; beyond it the oldest are dropped.
    pub dead_letter_bytes: u64,
    /// Decides which reactions run here, in a cluster of masters.
    pub gate: Option<Arc<dyn Gate>>,
}

/// A reactor. [`Reactor::run`] processes events.
pub struct Reactor {
    options: Options,
    dispatch: Box<dyn Dispatch>,
    planner: plan::Planner,
    entries: RwLock<Arc<Entries>>,
    leader: AtomicBool,
    limiter: Mutex<limits::Limiter>,
    dead_letters: dead_letters::DeadLetters,
    skipped: skipped::Skipped,
    /// Reactions dispatched before the restart, and the last event that may have any.
    prior: Mutex<(u64, HashMap<recovery::Key, PriorDispatch>)>,
    rules: Arc<rule_runtime::RuleRuntime>,
    clock: clock::Clock,
}

impl Reactor {
    /// Creates a reactor with these entries.
    ///
    /// # Errors
    /// The dead letters cannot be read from the store.
    pub fn new(entries: Entries, options: Options, dispatch: impl Dispatch) -> Result<Arc<Self>, StoreError> {
        Self::with_clock(entries, options, Box::new(dispatch), clock::Clock::system())
    }

    fn with_clock(
        entries: Entries,
        options: Options,
        dispatch: Box<dyn Dispatch>,
        clock: clock::Clock,
    ) -> Result<Arc<Self>, StoreError> {
        Ok(Arc::new(Reactor {
            planner: plan::Planner::new(&options),
            entries: RwLock::new(Arc::new(entries)),
            leader: AtomicBool::new(true),
            limiter: Mutex::default(),
            dead_letters: dead_letters::DeadLetters::open(options.store.clone(), options.dead_letter_bytes)?,
            skipped: skipped::Skipped::default(),
            prior: Mutex::default(),
            rules: Arc::new(rule_runtime::RuleRuntime::new(options.store.clone(), clock.clone())),
            clock,
            options,
            dispatch,
        }))
    }

    /// Returns the current entries.
    pub fn entries(&self) -> Arc<Entries> {
        Arc::clone(&self.entries.read())
    }

    /// Replaces the entries, after a change of the configuration.
    pub fn configure(&self, entries: Entries) {
        *self.entries.write() = Arc::new(entries);
    }

    /// Adds an entry until the next start or change of the configuration, as Salt's `reactor.add` does. Returns `false`
    /// if the pattern has an entry already.
    pub fn add(&self, pattern: &str, files: &Value) -> Result<bool, EntryError> {
        let files = entries::files_of(pattern, files)?;
        let mut entries = self.entries.write();
        if entries.has_pattern(pattern) {
            return Ok(false);
        }
        *entries = Arc::new(entries.with(pattern, files)?);
        Ok(true)
    }

    /// Removes the entries of a pattern until the next start or change of the configuration. Returns whether there were
    /// any.
    pub fn delete(&self, pattern: &str) -> Result<bool, EntryError> {
        let mut entries = self.entries.write();
        if !entries.has_pattern(pattern) {
            return Ok(false);
        }
        *entries = Arc::new(entries.without(pattern)?);
        Ok(true)
    }

    /// Returns whether the reactor is the leader. Otherwise it skips all events.
    pub fn is_leader(&self) -> bool {
        self.leader.load(Ordering::Relaxed)
    }

    /// Sets whether the reactor is the leader.
    pub fn set_leader(&self, leader: bool) {
        self.leader.store(leader, Ordering::Relaxed);
    }

    /// Drops the prior dispatches once the cursor has passed their events.
    fn drop_prior(&self, cursor: u64) {
        let mut prior = self.prior.lock();
        if prior.0 <= cursor && !prior.1.is_empty() {
            prior.1 = HashMap::new();
        }
    }

    /// Returns the number of dead letters.
    pub fn dead_letter_count(&self) -> usize {
        self.dead_letters.numbers(None).len()
    }

    /// Calls `visit` with each dead letter, oldest first. They may take much memory together.
    pub fn each_dead_letter(&self, _: &MayBlock, mut visit: impl FnMut(DeadLetter)) -> Result<(), StoreError> {
        for number in self.dead_letters.numbers(None) {
            self.dead_letters.read(number)?.into_iter().for_each(&mut visit);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
