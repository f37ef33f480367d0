//! The input and the output of the engine: occurrences of events, and firings of rules.

use brine_value::Map;

/// The occurrence of an event.
#[derive(Debug, Clone, Copy)]
pub struct Occurrence<'a> {
    /// The event's sequence number.
    pub seq: u64,
    /// The event's tag.
    pub tag: &'a str,
    /// The event's data.
    pub data: &'a Map,
    /// The bus time of the event, in microseconds.
    pub time: u64,
}

/// The firing of a rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Firing {
    /// The id of the rule.
    pub rule: String,
    /// The SLS files of its reactions.
    pub react: Vec<String>,
    /// The tag of the event that fired it; `salt/reactor/rule/<id>` for a timer.
    pub tag: String,
    /// The data of that event.
    pub data: Map,
    /// The sequence number of that event, 0 if there is none.
    pub seq: u64,
    /// The template variables beside `tag` and `data`.
    pub context: Map,
}

/// Returns the number of minions of a node group; `None` if there is no such group.
pub type GroupSize<'a> = &'a dyn Fn(&str) -> Option<usize>;
