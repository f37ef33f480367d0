//! The state of one key of one rule.

use std::collections::VecDeque;

use brine_value::{FromValue, Map, Value, map, msgpack};
use indexmap::IndexMap;

use crate::{Function, Register};

/// Events above this size, in bytes, are stored without their fields above [`LARGE_FIELD`].
const LARGE: usize = 16 << 10;
const LARGE_FIELD: usize = 1 << 10;

/// The state of one key of one rule. Times are bus time, in microseconds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum KeyState {
    /// The events of a count.
    Window(VecDeque<(u64, Map)>),
    /// A timer for an expected event.
    Timer { due: u64, seq: u64, data: Map },
    /// The progress of a sequence.
    Steps { next: usize, began: u64, events: Vec<Map> },
    /// The time of each member's last event.
    Members(IndexMap<String, u64>),
    /// The values of a register.
    Values(VecDeque<(u64, Value)>),
    /// Whether the test passes.
    Holds(bool),
    /// The time at which an interval is next due.
    Due(u64),
}

fn number(value: &Value, name: &str) -> Option<u64> {
    u64::from_value(value.get(name)?)
}

fn pairs<T>(value: &Value, one: impl Fn(&Value) -> Option<T>) -> Option<Vec<(u64, T)>> {
    let pair = |pair: &Value| match pair.as_list()? {
        [time, rest] => Some((u64::from_value(time)?, one(rest)?)),
        _ => None,
    };
    value.as_list()?.iter().map(pair).collect()
}

fn listed<'a, T: 'a, V: Into<Value>>(all: impl Iterator<Item = (&'a u64, T)>, one: impl Fn(T) -> V) -> Value {
    all.map(|(time, rest)| Value::List(vec![(*time).into(), one(rest).into()])).collect()
}

impl KeyState {
    /// Converts the times of events by `event`, and the due times of timers by `due`.
    pub fn move_times(&mut self, event: impl Fn(u64) -> u64, due: impl Fn(u64) -> u64) {
        match self {
            KeyState::Window(events) => events.iter_mut().for_each(|(time, _)| *time = event(*time)),
            KeyState::Values(values) => values.iter_mut().for_each(|(time, _)| *time = event(*time)),
            KeyState::Members(members) => members.values_mut().for_each(|time| *time = event(*time)),
            KeyState::Steps { began, .. } => *began = event(*began),
            KeyState::Timer { due: time, .. } | KeyState::Due(time) => *time = due(*time),
            KeyState::Holds(_) => {}
        }
    }

    /// Returns the state in the form of the store.
    pub fn to_value(&self) -> Value {
        match self {
            KeyState::Window(events) => {
                map! {"window" => listed(events.iter().map(|(time, data)| (time, data)), |data: &Map| data.clone())}
            }
            KeyState::Timer { due, seq, data } => {
                map! {"timer" => map! {"due" => *due, "seq" => *seq, "data" => data.clone()}}
            }
            KeyState::Steps { next, began, events } => {
                let events: Value = events.iter().cloned().collect();
                map! {"steps" => map! {"next" => *next as u64, "began" => *began, "events" => events}}
            }
            KeyState::Members(members) => {
                map! {"members" => listed(members.iter().map(|(id, time)| (time, id)), |id: &String| id.clone())}
            }
            KeyState::Values(values) => {
                map! {"values" => listed(values.iter().map(|(time, value)| (time, value)), |value: &Value| value.clone())}
            }
            KeyState::Holds(holds) => map! {"holds" => *holds},
            KeyState::Due(due) => map! {"due" => *due},
        }
        .into()
    }

    /// Parses a stored state; `None` if it is invalid.
    pub fn from_value(value: &Value) -> Option<Self> {
        let (kind, inner) = value.as_map()?.first()?;
        let data = |value: &Value| value.as_map().cloned();
        Some(match kind.as_str()? {
            "window" => KeyState::Window(pairs(inner, data)?.into()),
            "timer" => KeyState::Timer {
                due: number(inner, "due")?,
                seq: number(inner, "seq")?,
                data: data(inner.get("data")?)?,
            },
            "steps" => KeyState::Steps {
                next: usize::from_value(inner.get("next")?)?,
                began: number(inner, "began")?,
                events: inner.get("events")?.as_list()?.iter().map(data).collect::<Option<_>>()?,
            },
            "members" => {
                let members = pairs(inner, |id| id.as_str().map(str::to_owned))?;
                KeyState::Members(members.into_iter().map(|(time, id)| (id, time)).collect())
            }
            "values" => KeyState::Values(pairs(inner, |value| Some(value.clone()))?.into()),
            "holds" => KeyState::Holds(inner.as_bool()?),
            "due" => KeyState::Due(u64::from_value(inner)?),
            _ => return None,
        })
    }
}

/// Returns the data of an event without large fields, if it is large.
pub(super) fn trimmed(data: &Map) -> Map {
    if msgpack::pack_map(data).len() <= LARGE {
        return data.clone();
    }
    let fits = |value: &Value| msgpack::pack(value).len() <= LARGE_FIELD;
    data.iter().filter(|(_, value)| fits(value)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns the value of a register.
pub(super) fn evaluate(register: &Register, values: &VecDeque<(u64, Value)>) -> Value {
    let numbers = || values.iter().filter_map(|(_, value)| f64::from_value(value));
    match register.function {
        Function::Count => values.len().into(),
        Function::Sum => numbers().sum::<f64>().into(),
        Function::Mean => match numbers().count() {
            0 => Value::Nil,
            count => (numbers().sum::<f64>() / count as f64).into(),
        },
        Function::Min => numbers().reduce(f64::min).into(),
        Function::Max => numbers().reduce(f64::max).into(),
        Function::Last => values.back().map(|(_, value)| value.clone()).unwrap_or_default(),
        Function::List => values.iter().map(|(_, value)| value.clone()).collect(),
    }
}
