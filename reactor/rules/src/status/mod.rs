//! Explains why a rule did not fire at an event: a failed condition, a missing key, or its progress.

use brine_value::Value;

use crate::condition::{EventView, GroupBy};
use crate::duration::micros;
use crate::engine::Engine;
use crate::firing::Occurrence;
use crate::key_state::KeyState;
use crate::{Kind, Population};

/// The maximum number of keys of an event that are examined.
const KEYS: usize = 5;

impl Engine {
    /// Returns the rules with a trigger for the event's tag, each with the reason why it did not fire, from its state
    /// at the bus time `now`.
    pub fn status(&self, occurrence: Occurrence<'_>, now: u64) -> Vec<(String, String)> {
        let view = EventView { tag: occurrence.tag, data: occurrence.data };
        let one = |(index, trigger): (usize, usize)| {
            let rule = &self.rules().all()[index];
            let text = match rule.triggers[trigger].conditions.unmet(view) {
                Some(unmet) => format!("a condition does not hold: {unmet}"),
                None => self.progress(index, trigger, occurrence, now),
            };
            (rule.id.clone(), text)
        };
        self.rules().matching(occurrence.tag).into_iter().map(one).collect()
    }

    fn progress(&self, index: usize, trigger: usize, occurrence: Occurrence<'_>, now: u64) -> String {
        let view = EventView { tag: occurrence.tag, data: occurrence.data };
        let kind = &self.rules().all()[index].kind;
        let (Kind::Count { by, .. }
        | Kind::Absent { by, .. }
        | Kind::Sequence { by, .. }
        | Kind::Share { by, .. }
        | Kind::Register { by, .. }) = kind
        else {
            return "it does not depend on events".to_owned();
        };
        let each = match kind {
            Kind::Absent { each: Some(path), .. } if trigger == 0 => Some(path),
            _ => None,
        };
        let keys = match each.map(|path| path.find(view)) {
            Some(Some(Value::List(all))) => all.iter().take(KEYS).map(ToString::to_string).collect(),
            Some(Some(one)) => vec![one.to_string()],
            Some(None) => return "the event has nothing at 'each'".to_owned(),
            None => match by.key(view) {
                Some(key) => vec![key],
                None => return format!("the event lacks {} (by)", by.missing(view)),
            },
        };
        let key = keys.first().cloned().unwrap_or_default();
        let of_key = if by.0.is_empty() { String::new() } else { format!(" for '{}'", crate::excerpt(&key)) };
        let is_old = |within: u64| occurrence.time <= now.saturating_sub(within);
        match kind {
            Kind::Count { count, within, .. } => {
                let within = micros(*within);
                let (counted, oldest) = (self.slot(index, &key), now.saturating_sub(within));
                let counted = match counted {
                    Some(KeyState::Window(window)) => window.iter().filter(|(time, _)| *time > oldest).count(),
                    _ => 0,
                };
                let old = if is_old(within) { "; this event is older and counts no more" } else { "" };
                format!("{counted} of {count} events within {} s{of_key} by now{old}", within / 1_000_000)
            }
            Kind::Absent { .. } if trigger == 1 => {
                format!("it is the expected event: a timer that ran{of_key} was stopped")
            }
            Kind::Absent { .. } => {
                let runs =
                    keys.iter().filter(|key| matches!(self.slot(index, key), Some(KeyState::Timer { .. }))).count();
                match runs {
                    0 => "no timer runs: the expected event came, or the rule has fired since".to_owned(),
                    runs => format!("{runs} timers wait for the expected event: see reactor.timers"),
                }
            }
            Kind::Sequence { within, .. } => {
                let steps = self.rules().all()[index].triggers.len();
                let (within, next) = (micros(*within), self.slot(index, &key));
                let next = match next {
                    Some(KeyState::Steps { next, began, .. }) if now < began + within => *next,
                    _ => 0,
                };
                let old = if is_old(within) { "; this event is older than `within`" } else { "" };
                format!("step {next} of {steps} is reached{of_key} by now{old}")
            }
            Kind::Share { whole, above, within, .. } => {
                let oldest = now.saturating_sub(micros(*within));
                let members = match self.slot(index, "") {
                    Some(KeyState::Members(members)) => members.values().filter(|time| **time > oldest).count(),
                    _ => 0,
                };
                let whole = match whole {
                    Population::Count(count) => count.to_string(),
                    Population::Nodegroup(name) => format!("node group '{name}'"),
                };
                let above = (above * 1000.0).round() / 10.0;
                format!("{members} members by now, more than {above} % of {whole} needed")
            }
            Kind::Register { .. } => "it collects a value; rules about it fire when their test becomes true".to_owned(),
            Kind::When { .. } | Kind::Every { .. } => String::new(),
        }
    }
}

impl GroupBy {
    /// Returns the first path at which an event has no value.
    fn missing(&self, view: EventView<'_>) -> String {
        let missing = self.0.iter().find(|path| path.find(view).is_none_or(|value| value.is_nil()));
        missing.map_or_else(String::new, |path| format!("'{path}'"))
    }
}

#[cfg(test)]
mod tests;
