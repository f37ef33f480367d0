//! The reactions to one event with their order: that of the file, except for `order` and requisites.
//!
//! As in Salt, requisites between reactions only define their order: each is dispatched without waiting for the result
//! of those before it.

use std::collections::BTreeSet;

use brine_text::glob::fnmatch;
use brine_value::{Map, Value};
use brine_yaml::untrusted::Placeholders;

use crate::reaction::{Kind, Reaction};

/// `- order:` of a reaction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Order {
    First,
    Number(f64),
    Last,
}

/// As in Salt, reactions without a number come after those with one.
const BEHIND_NUMBERS: f64 = 100.0;
const LAST: f64 = 1_000_000.0;

impl Order {
    pub fn read(name: &str, value: &Value) -> Result<Self, String> {
        match (value.as_str(), value.as_f64()) {
            (Some("first"), _) => Ok(Order::First),
            (Some("last"), _) => Ok(Order::Last),
            (None, Some(number)) => Ok(Order::Number(number)),
            _ => Err(format!("'order' of '{name}' is invalid: expected a number, first or last, got '{value}'")),
        }
    }

    fn position(order: Option<Self>, cap: f64) -> f64 {
        match order {
            None => cap,
            Some(Order::First) => 0.0,
            Some(Order::Last) => cap + LAST,
            // Counted from the end.
            Some(Order::Number(number)) if number < 0.0 => cap + LAST + number,
            Some(Order::Number(number)) => number,
        }
    }
}

/// Whether the reaction with the requisite comes after the named ones, or before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    After,
    Before,
}

/// A requisite of a reaction, such as `require: [{runner: that}]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Requisite {
    word: &'static str,
    side: Side,
    kind: Option<Kind>,
    id: String,
}

/// The requisites. `use` does not affect the order and is ignored.
const REQUISITES: &[(&str, Option<Side>)] = &[
    ("require", Some(Side::After)),
    ("require_any", Some(Side::After)),
    ("watch", Some(Side::After)),
    ("watch_any", Some(Side::After)),
    ("onchanges", Some(Side::After)),
    ("onchanges_any", Some(Side::After)),
    ("onfail", Some(Side::After)),
    ("onfail_any", Some(Side::After)),
    ("onfail_all", Some(Side::After)),
    ("listen", Some(Side::After)),
    ("prereq", Some(Side::Before)),
    ("require_in", Some(Side::Before)),
    ("watch_in", Some(Side::Before)),
    ("onchanges_in", Some(Side::Before)),
    ("onfail_in", Some(Side::Before)),
    ("listen_in", Some(Side::Before)),
    ("prereq_in", Some(Side::After)),
    ("use", None),
    ("use_in", None),
];

impl Requisite {
    /// Removes the requisites from the named items of a function.
    pub fn take_all(name: &str, named: &mut Map) -> Result<Vec<Self>, String> {
        let mut requisites = Vec::new();
        for (word, side) in REQUISITES {
            let Some(value) = named.shift_remove(*word) else { continue };
            let Some(side) = *side else { continue };
            let invalid = || {
                format!("'{word}' of '{name}' is invalid: expected a list of ids, or of mappings such as `runner: id`")
            };
            let items = match &value {
                Value::List(items) => items.as_slice(),
                one => std::slice::from_ref(one),
            };
            for item in items {
                let (kind, id) = match item {
                    Value::Map(map) => {
                        let (kind, id) = map.first().filter(|_| map.len() == 1).ok_or_else(invalid)?;
                        (Some(Kind::parse(&kind.to_string()).ok_or_else(invalid)?), id.to_string())
                    }
                    Value::List(_) | Value::Nil => return Err(invalid()),
                    id => (None, id.to_string()),
                };
                requisites.push(Requisite { word, side, kind, id });
            }
        }
        Ok(requisites)
    }

    /// Replaces placeholders by the text from the event.
    pub fn reveal(&mut self, placeholders: &Placeholders) {
        self.id = placeholders.reveal(&self.id);
    }

    fn matches(&self, other: &ParsedReaction) -> bool {
        let is_id = fnmatch(&self.id, &other.id) || other.name.as_ref().is_some_and(|name| fnmatch(&self.id, name));
        is_id && self.kind.is_none_or(|kind| kind == other.reaction.kind())
    }
}

/// A reaction with its position in the SLS, its order and its requisites.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ParsedReaction {
    pub id: String,
    /// The item of `names` that the reaction is for, which distinguishes the reactions of one id.
    pub name: Option<String>,
    /// The line of the rendered text, from 1.
    pub line: usize,
    pub reaction: Reaction,
    pub order: Option<Order>,
    pub requisites: Vec<Requisite>,
}

impl ParsedReaction {
    /// Returns the identifier of the reaction within its file, such as `minion_add: wheel.key.accept`.
    pub fn label(&self) -> String {
        let name = self.name.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
        format!("{}: {}{name}", self.id, self.reaction.name())
    }
}

/// Returns the indexes of the reactions in the order of their dispatch.
///
/// # Errors
/// A requisite without a match, or a cycle: the index of a reaction with the error, and the message.
pub(crate) fn sorted(reactions: &[&ParsedReaction]) -> Result<Vec<usize>, (usize, String)> {
    if reactions.iter().all(|one| one.order.is_none() && one.requisites.is_empty()) {
        return Ok((0..reactions.len()).collect());
    }
    let highest = reactions.iter().filter_map(|one| match one.order {
        Some(Order::Number(number)) if number > 0.0 => Some(number + BEHIND_NUMBERS),
        _ => None,
    });
    let cap = highest.fold(1.0, f64::max);
    let mut before: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); reactions.len()];
    for (index, one) in reactions.iter().enumerate() {
        for requisite in &one.requisites {
            let mut has_advanced = false;
            for (other, _) in reactions.iter().enumerate().filter(|(_, other)| requisite.matches(other)) {
                has_advanced = true;
                match requisite.side {
                    _ if other == index => {}
                    Side::After => _ = before[index].insert(other),
                    Side::Before => _ = before[other].insert(index),
                }
            }
            if !has_advanced {
                let kind = requisite.kind.map_or_else(String::new, |kind| format!("{}: ", kind.as_str()));
                let message = format!(
                    "'{}' of '{}' names '{kind}{}', which is not a reaction to this event",
                    requisite.word, one.id, requisite.id
                );
                return Err((index, message));
            }
        }
    }
    let mut left: BTreeSet<usize> = (0..reactions.len()).collect();
    let mut order = Vec::with_capacity(reactions.len());
    while !left.is_empty() {
        let ready = left.iter().copied().filter(|index| before[*index].is_disjoint(&left));
        let position_of = |index: &usize| Order::position(reactions[*index].order, cap);
        let Some(next) = ready.min_by(|one, other| position_of(one).total_cmp(&position_of(other))) else {
            let ids: Vec<_> = left.iter().map(|index| format!("'{}'", reactions[*index].id)).collect();
            let first = left.first().copied().unwrap_or_default();
            return Err((first, format!("recursive requisites between {}", ids.join(", "))));
        };
        left.remove(&next);
        order.push(next);
    }
    Ok(order)
}

#[cfg(test)]
mod tests;
