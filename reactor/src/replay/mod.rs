//! Replays recorded events against two configurations of the reactor, without dispatching anything: which reactions one
//! has and the other has not.
//!
//! `side.rs` is one configuration with its files and rules, `read_only.rs` the functions that templates may call
//! meanwhile, `inputs.rs` decides which renderings may be used again, `report.rs` counts and keeps examples.

mod inputs;
mod read_only;
mod report;
mod side;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use brine_event::Event;
use brine_rules::{Firing, Occurrence};
use brine_value::{Map, Value};

use crate::Reactor;
use crate::deadline::Deadline;
use crate::dry_run::DryRunError;
use crate::entries::EntryError;
use crate::plan::Binding;
use crate::routing_fields::RoutingFields;
use read_only::Refused;
use report::Report;
use side::Side;

/// A configuration of the reactor that is compared with another one.
#[derive(Debug, Clone, Default)]
pub struct Configured {
    /// The option `reactor`, in each of its forms; `None` for that of the running reactor.
    pub entries: Option<Value>,
    /// The files of rules over time: the option `reactor_rules`; `None` for those of the running reactor.
    pub rules: Option<Vec<String>>,
    /// A directory that takes the place of the file server's roots, and in which other paths are searched first.
    pub tree: Option<std::path::PathBuf>,
}

/// The limits of a replay.
#[derive(Debug, Clone, Copy)]
pub struct ReplayLimits {
    /// The time after which it ends.
    pub time: Duration,
    /// The number of examples for each entry and kind of difference.
    pub examples: usize,
    /// Whether files may be named that the running reactor does not use.
    pub any_file: bool,
}

/// The error of a configuration that cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The entries are invalid.
    #[error(transparent)]
    Entries(#[from] EntryError),
    /// A file must not be named.
    #[error(transparent)]
    File(#[from] DryRunError),
    /// The tree is no directory.
    #[error("tree is invalid: expected the absolute path of a directory, got '{0}'")]
    Tree(String),
}

/// A replay: takes events in their order, and compares.
pub struct Replay<'a> {
    reactor: &'a Reactor,
    before: Side,
    after: Side,
    /// Sizes of node groups, resolved once.
    group_sizes: HashMap<String, Option<usize>>,
    /// Pairs of files that are equal on both sides.
    equal_files: HashMap<String, bool>,
    deadline: Deadline,
    refused: Arc<Refused>,
    report: Report,
}

impl Reactor {
    /// Begins a replay of the differences from one configuration to another.
    ///
    /// # Errors
    /// A configuration is invalid, or names files that it must not.
    pub async fn replay(
        &self,
        before: &Configured,
        after: &Configured,
        limits: ReplayLimits,
    ) -> Result<Replay<'_>, ReplayError> {
        let refused = Arc::new(Refused::default());
        let before = self.side(before, &refused, limits.any_file)?;
        let after = self.side(after, &refused, limits.any_file)?;
        let mut group_sizes = HashMap::new();
        for name in before.groups().into_iter().chain(after.groups()) {
            let size = (self.options.group_size)(&name).await;
            group_sizes.insert(name, size);
        }
        Ok(Replay {
            reactor: self,
            report: Report::new(limits.examples, before.errors(), after.errors()),
            before,
            after,
            group_sizes,
            equal_files: HashMap::new(),
            deadline: Deadline::after(limits.time),
            refused,
        })
    }

    fn side(&self, configured: &Configured, refused: &Arc<Refused>, any_file: bool) -> Result<Side, ReplayError> {
        if let Some(tree) = configured.tree.as_deref().filter(|tree| !tree.is_absolute() || !tree.is_dir()) {
            return Err(ReplayError::Tree(tree.display().to_string()));
        }
        if let Some(Value::Str(file)) = configured.entries.as_ref().filter(|_| !any_file) {
            // The option may name a file with the entries.
            return Err(DryRunError::File(file.clone()).into());
        }
        let side = Side::new(self, configured, refused)?;
        if !any_file {
            let own = self.entries();
            let files: HashSet<&str> =
                own.all().iter().flat_map(|entry| entry.files.iter().map(String::as_str)).collect();
            let own_rules = self.rule_files();
            let is_allowed = |file: &str| {
                file.starts_with("salt://") || files.contains(file) || own_rules.iter().any(|own| own == file)
            };
            let entries = side.entries().all().iter().flat_map(|entry| entry.files.iter().map(String::as_str));
            if let Some(file) = entries.chain(side.rule_files()).find(|file| !is_allowed(file)) {
                return Err(DryRunError::File(file.to_owned()).into());
            }
        }
        Ok(side)
    }
}

impl Replay<'_> {
    /// Returns whether the time of the replay is over.
    pub fn is_over(&self) -> bool {
        self.deadline.is_over()
    }

    /// Returns the number of events so far.
    pub fn events(&self) -> u64 {
        self.report.events()
    }

    /// Compares the reactions to an event. Returns false if the time of the replay is over.
    pub fn event(&mut self, event: &Event) -> bool {
        let tag = event.tag();
        self.report.count(event.seq(), event.time());
        let time = event.time().unwrap_or_default();
        self.before.begin(time);
        self.after.begin(time);
        let (before, after) = (self.before.matching(tag), self.after.matching(tag));
        let by_rules = self.before.wants(tag) || self.after.wants(tag);
        if before.is_empty() && after.is_empty() && !by_rules {
            // The clock is read now and then only.
            return !self.report.events().is_multiple_of(1024) || !self.is_over();
        }
        let fields = RoutingFields::of(event);
        if self.reactor.is_own(event, &fields) {
            return true;
        }
        self.report.matched();
        let data = Arc::new(event.data());
        if by_rules {
            // An event of a file has no number.
            let seq = if event.seq() == 0 { self.report.events() } else { event.seq() };
            let occurrence = Occurrence { seq, tag, data: &data, time };
            let firings =
                [self.before.fire(occurrence, &self.group_sizes), self.after.fire(occurrence, &self.group_sizes)];
            self.compare_firings(firings);
        }
        // Beyond it, entries do not react.
        if fields.depth < self.reactor.options.max_depth {
            self.compare(event.seq(), tag, &data, [before, after], None);
        }
        !self.is_over()
    }

    /// Compares the timers of rules that are due until a time, in microseconds since 1970.
    pub fn advance(&mut self, time: u64) {
        let firings = [self.before.advance(time), self.after.advance(time)];
        self.compare_firings(firings);
    }

    /// Returns the report.
    pub fn finish(self) -> Value {
        let is_complete = !self.is_over();
        self.report.finish(is_complete, &self.refused.take())
    }

    /// Compares the firings of rules: equal ones with each other, then those of the same rule and key.
    fn compare_firings(&mut self, [before, after]: [Vec<Firing>; 2]) {
        let identity = |firing: &Firing| (firing.rule.clone(), firing.context.get("key").cloned(), firing.seq);
        let mut rest: Vec<Option<Firing>> = after.into_iter().map(Some).collect();
        for old in before {
            let same = rest.iter_mut().find(|new| new.as_ref().is_some_and(|new| identity(new) == identity(&old)));
            let new = same.and_then(Option::take);
            self.compare_firing(Some(&old), new.as_ref());
        }
        for new in rest.into_iter().flatten() {
            self.compare_firing(None, Some(&new));
        }
    }

    fn compare_firing(&mut self, before: Option<&Firing>, after: Option<&Firing>) {
        let binding = |firing: Option<&Firing>| -> Vec<Binding> {
            let one = firing.map(|one| Binding::Rule { name: one.rule.as_str().into(), files: one.react.clone() });
            one.into_iter().collect()
        };
        let Some(firing) = after.or(before) else { return };
        let contexts = [before.map(|one| &one.context), after.map(|one| &one.context)];
        let data = Arc::new(firing.data.clone());
        self.compare(firing.seq, &firing.tag, &data, [binding(before), binding(after)], Some(contexts));
    }

    /// Compares the reactions of entries, or of firings of rules with their variables.
    fn compare(
        &mut self,
        seq: u64,
        tag: &str,
        data: &Arc<Map>,
        [before, after]: [Vec<Binding>; 2],
        contexts: Option<[Option<&Map>; 2]>,
    ) {
        let is_equal_context = contexts.is_none_or(|[before, after]| before == after);
        // Bindings that both sides have with equal files have equal reactions: these are not rendered.
        let (mut old, mut new) = (Vec::new(), after);
        for binding in before {
            let same = |other: &Binding| other.name() == binding.name() && other.files() == binding.files();
            let place = new.iter().position(same).filter(|_| is_equal_context);
            match place.filter(|_| binding.files().iter().all(|file| self.is_equal_file(file))) {
                Some(place) => {
                    new.remove(place);
                    self.report.unchanged(binding.name());
                }
                None => old.push(binding),
            }
        }
        if old.is_empty() && new.is_empty() {
            return;
        }
        let [old_context, new_context] = contexts.unwrap_or_default();
        let dispatch = &*self.reactor.dispatch;
        let old = self.before.reactions(tag, data, &old, old_context, &self.deadline, dispatch);
        let new = self.after.reactions(tag, data, &new, new_context, &self.deadline, dispatch);
        // A cancelled rendering is no result.
        if !self.is_over() {
            self.report.compare(seq, tag, data, &old, &new);
        }
    }

    fn is_equal_file(&mut self, file: &str) -> bool {
        if let Some(is_equal) = self.equal_files.get(file) {
            return *is_equal;
        }
        let is_equal = self.before.has_equal(&self.after, file);
        self.equal_files.insert(file.to_owned(), is_equal);
        is_equal
    }
}

/// Returns whether a path has no part that leads out of its directory.
fn is_below(path: &Path) -> bool {
    path.components().all(|part| !matches!(part, std::path::Component::ParentDir))
}
