//! Rules over time: so many events within a while, an event that does not come, one after the other, a share
//! of many; with registers and timers that survive a restart.
//!
//! `parse.rs` reads rules from SLS, `condition.rs` holds paths and conditions on events' data, `cell.rs` what
//! is remembered for one key of one rule, `engine.rs` brings events and rules together, `status.rs` explains why a
//! rule did not fire. All of it is without clock and disk: times are handed in, changes are handed out.

mod cell;
mod condition;
mod engine;
mod parse;
mod status;

use std::time::Duration;

use brine_text::glob::GlobSet;

use condition::{By, Conditions, Path};
pub(crate) use engine::{Engine, Firing, Moment};
pub use parse::RuleError;

/// All rules, their patterns compiled into one set.
#[derive(Debug)]
pub struct Rules {
    rules: Vec<Rule>,
    set: GlobSet,
    /// For each pattern of the set, the rule and which of its triggers it belongs to.
    places: Vec<(usize, usize)>,
}

/// One rule.
#[derive(Debug, PartialEq)]
pub(crate) struct Rule {
    pub id: String,
    /// Of its definition: what was remembered for another definition is dropped.
    pub fingerprint: String,
    pub react: Vec<String>,
    pub kind: Kind,
    triggers: Vec<Trigger>,
}

/// Which events a rule looks at.
#[derive(Debug, PartialEq)]
pub(crate) struct Trigger {
    tags: Vec<String>,
    conditions: Conditions,
}

/// What a rule waits for.
#[derive(Debug, PartialEq)]
pub(crate) enum Kind {
    /// So many events within a while.
    Count { by: By, count: usize, within: Duration },
    /// The second trigger does not come within a while after the first.
    Absent { each: Option<Path>, by: By, within: Duration },
    /// The triggers one after the other within a while.
    Sequence { by: By, within: Duration },
    /// Events of more than a share of members within a while.
    Share { by: By, whole: Whole, above: f64, within: Duration },
    /// Values of events are kept.
    Register { by: By, register: Register },
    /// What a register says is above, below or equal.
    When { register: String, test: Test },
    /// Again and again.
    Every { pause: Duration },
}

/// What a share is of.
#[derive(Debug, PartialEq)]
pub(crate) enum Whole {
    Count(usize),
    Nodegroup(String),
}

/// What is kept of events' values, and what it comes to.
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

impl Kind {
    /// The function that it was written as.
    pub fn name(&self) -> &'static str {
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
        let (mut places, mut patterns) = (Vec::new(), Vec::new());
        for (place, rule) in rules.iter().enumerate() {
            for (slot, trigger) in rule.triggers.iter().enumerate() {
                for tag in &trigger.tags {
                    places.push((place, slot));
                    patterns.push(tag.clone());
                }
            }
        }
        Ok(Rules { set: GlobSet::new(&patterns)?, rules, places })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    pub(crate) fn all(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns the patterns of all rules, each with the rule's id.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = (&str, &str)> {
        let triggers = self.rules.iter().flat_map(|rule| rule.triggers.iter().map(move |trigger| (rule, trigger)));
        triggers.flat_map(|(rule, trigger)| trigger.tags.iter().map(|tag| (tag.as_str(), rule.id.as_str())))
    }

    /// The rules that look at events of this tag, each with the trigger, once each.
    fn matching(&self, tag: &str) -> Vec<(usize, usize)> {
        let mut found: Vec<_> = self.set.matches(tag).into_iter().map(|place| self.places[place]).collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests;
