//! The options of a state run, as its caller gives them, and the settings that follow from them and the configuration.

use std::path::PathBuf;

use brine_value::{Map, Value};

/// The options of a state run beside its SLS files.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Whether states only report what they would change.
    pub test: Option<bool>,
    /// The environment.
    pub saltenv: Option<String>,
    /// The environment of the pillar.
    pub pillarenv: Option<String>,
    /// The pillar override.
    pub pillar: Map,
    /// Excluded SLS files or ids, as in an SLS's `exclude`.
    pub exclude: Vec<Value>,
    /// Whether the run waits for another run.
    pub queue: Queue,
    /// Whether the run may run in parallel with another one.
    pub concurrent: bool,
    /// Whether the run ignores errors of the pillar.
    pub force: bool,
    /// Whether state functions are not called, but reported as not called.
    pub mock: bool,
    /// Whether an event is published for each state.
    pub state_events: bool,
    /// The name of the top file, instead of the configured one.
    pub state_top: Option<String>,
    /// A file with options that override those of the minion.
    pub localconfig: Option<PathBuf>,
    /// Whether the master's options do not apply, as for runs without SLS files.
    pub local_state: bool,
    /// The digest of the planned changes: the run is refused if its states would change anything else.
    pub plan: Option<String>,
    /// Whether a dry run is planned: its results then say what they depend on.
    pub planning: bool,
}

/// Whether a run waits for another one: `queue`, or `state_queue` of the configuration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Queue {
    /// The run is refused.
    #[default]
    Refuse,
    /// The run waits.
    Wait,
    /// The run waits unless this many are running or waiting already.
    WaitIfFewer(usize),
}

impl Queue {
    /// Parses the option: True, or the maximum number of runs with the running one; 0 is no limit. As in Salt, other
    /// values are those of a run that does not wait.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Bool(true) | Value::Int(0) => Queue::Wait,
            Value::Int(most) => usize::try_from(*most).map_or(Queue::Refuse, Queue::WaitIfFewer),
            _ => Queue::Refuse,
        }
    }

    /// Whether another run may wait behind `before` runs: the running one and the waiting ones.
    pub(crate) fn admits(self, before: usize) -> bool {
        match self {
            Queue::Refuse => false,
            Queue::Wait => true,
            Queue::WaitIfFewer(most) => before < most,
        }
    }
}

/// The settings of a run.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Whether states only report what they would change.
    pub test: bool,
    /// Whether the first failure ends the run.
    pub failhard: bool,
    /// Whether no state function is called.
    pub mock: bool,
    /// Whether an event is published for each state.
    pub state_events: bool,
    /// The modules whose states are aggregated: `state_aggregate`.
    pub aggregate: Value,
    /// The maximum number of parallel states; 0 for no limit.
    pub max_parallel: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_limits_the_runs() {
        for (written, before, admits) in [
            (Value::Nil, 1, false),
            (false.into(), 1, false),
            (true.into(), 9, true),
            (0.into(), 9, true),
            (1.into(), 1, false),
            (2.into(), 1, true),
            (2.into(), 2, false),
            ((-1).into(), 1, false),
            ("abc".into(), 1, false),
        ] {
            assert_eq!(Queue::of(&written).admits(before), admits, "{written} behind {before}");
        }
    }
}
