//! Rules over time: counts, absences, sequences and shares of events, with registers and timers that survive a restart.
//!
//! `parse.rs` parses rules from SLS, `condition/` paths and conditions on the data of events. `engine/` applies
//! events to the rules, `key_state.rs` is the state of one key of one rule, and `status/` explains why a rule did not
//! fire. `firing.rs` holds the engine's input and output, `duration.rs` parses durations, `excerpt.rs` shortens texts
//! for messages.
//!
//! The crate has no clock, disk or tasks: the caller passes times and events in, and persists the changes.

mod condition;
pub mod duration;
mod engine;
mod excerpt;
mod firing;
mod key_state;
pub mod metrics;
mod parse;
mod status;

use std::time::Duration;

use brine_text::glob::GlobSet;

use condition::{Conditions, GroupBy, Path};
pub use engine::Engine;
pub use excerpt::excerpt;
pub use firing::{Firing, GroupSize, Occurrence};
pub use parse::RuleError;

/// A set of rules, with their patterns compiled into one glob set.
#[derive(Debug)]
pub struct Rules {
    rules: Vec<Rule>,
    set: GlobSet,
    /// For each pattern of the set, the indexes of its rule and trigger.
    positions: Vec<(usize, usize)>,
}

/// A rule.
#[derive(Debug, PartialEq)]
pub struct Rule {
    /// The id of the rule.
    pub id: String,
    /// The SLS files of its reactions.
    pub react: Vec<String>,
    /// Identifies the definition: the state of another definition is dropped.
    fingerprint: String,
    kind: Kind,
    triggers: Vec<Trigger>,
}

/// The events that a rule evaluates.
#[derive(Debug, PartialEq)]
pub(crate) struct Trigger {
    tags: Vec<String>,
    conditions: Conditions,
}

/// The condition under which a rule fires.
#[derive(Debug, PartialEq)]
pub(crate) enum Kind {
    /// A number of events within a time.
    Count { by: GroupBy, count: usize, within: Duration },
    /// No event of the second trigger within a time after one of the first.
    Absent { each: Option<Path>, by: GroupBy, within: Duration },
    /// Events of all triggers in order within a time.
    Sequence { by: GroupBy, within: Duration },
    /// Events of more than a share of members within a time.
    Share { by: GroupBy, whole: Population, above: f64, within: Duration },
    /// Collects values of events.
    Register { by: GroupBy, register: Register },
    /// The value of a register passes a test.
    When { register: String, test: Test },
    /// Fires at an interval.
    Every { pause: Duration },
}

/// The number of members that a share refers to.
#[derive(Debug, PartialEq)]
pub(crate) enum Population {
    Count(usize),
    Nodegroup(String),
}

/// A collection of values of events, and the function that reduces them.
#[derive(Debug, PartialEq)]
pub(crate) struct Register {
    pub function: Function,
    pub value: Path,
    pub window: Option<Duration>,
    pub last: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Count,
    Sum,
    Mean,
    Min,
    Max,
    Last,
    List,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Test {
    Above(f64),
    Below(f64),
    Equal(f64),
}

impl Test {
    pub fn holds(&self, value: f64) -> bool {
        match self {
            Test::Above(limit) => value > *limit,
            Test::Below(limit) => value < *limit,
            Test::Equal(limit) => (value - limit).abs() < f64::EPSILON,
        }
    }
}

impl Rule {
    /// Returns the function of the rule, such as `rule.count`.
    pub fn function(&self) -> &'static str {
        self.kind.function()
    }
}

impl Kind {
    fn function(&self) -> &'static str {
        match self {
            Kind::Count { .. } => "rule.count",
            Kind::Absent { .. } => "rule.absent",
            Kind::Sequence { .. } => "rule.sequence",
            Kind::Share { .. } => "rule.share",
            Kind::When { .. } => "rule.when",
            Kind::Every { .. } => "timer.every",
            Kind::Register { register, .. } => match register.function {
                Function::Count => "register.count",
                Function::Sum => "register.sum",
                Function::Mean => "register.mean",
                Function::Min => "register.min",
                Function::Max => "register.max",
                Function::Last => "register.last",
                Function::List => "register.list",
            },
        }
    }
}

impl Rules {
    fn new(rules: Vec<Rule>) -> Result<Self, brine_text::glob::GlobError> {
        let (mut positions, mut patterns) = (Vec::new(), Vec::new());
        for (index, rule) in rules.iter().enumerate() {
            for (slot, trigger) in rule.triggers.iter().enumerate() {
                for tag in &trigger.tags {
                    positions.push((index, slot));
                    patterns.push(tag.clone());
                }
            }
        }
        Ok(Rules { set: GlobSet::new(&patterns)?, rules, positions })
    }

    /// Returns whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns all rules.
    pub fn all(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns the patterns of all rules, each with the rule's id.
    pub fn patterns(&self) -> impl Iterator<Item = (&str, &str)> {
        let triggers = self.rules.iter().flat_map(|rule| rule.triggers.iter().map(move |trigger| (rule, trigger)));
        triggers.flat_map(|(rule, trigger)| trigger.tags.iter().map(|tag| (tag.as_str(), rule.id.as_str())))
    }

    /// Returns the indexes of the rules and triggers that match a tag, without duplicates.
    fn matching(&self, tag: &str) -> Vec<(usize, usize)> {
        let mut positions: Vec<_> = self.set.matches(tag).into_iter().map(|index| self.positions[index]).collect();
        positions.sort_unstable();
        positions.dedup();
        positions
    }
}

#[cfg(test)]
mod tests;
