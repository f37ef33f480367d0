//! Merging of stack data. A mapping or list names its strategy under the key `__`: a list in its first item.

use std::collections::HashSet;

use brine_value::{Map, Value};

/// The key of the strategy.
const KEY: &str = "__";

/// How data is merged into that of earlier files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strategy {
    /// The data replaces the earlier one.
    Overwrite,
    /// Mappings are merged at every depth and lists are joined; earlier values and items win and come last.
    MergeFirst,
    /// As `MergeFirst`, but later values win, and later items come last.
    MergeLast,
    /// Keys and items of the data are removed from the earlier one.
    Remove,
}

impl Strategy {
    fn of(name: Option<&Value>) -> Result<Self, String> {
        let Some(name) = name else { return Ok(Strategy::MergeLast) };
        match name.as_str() {
            Some("overwrite") => Ok(Strategy::Overwrite),
            Some("merge-first") => Ok(Strategy::MergeFirst),
            Some("merge-last") => Ok(Strategy::MergeLast),
            Some("remove") => Ok(Strategy::Remove),
            _ => {
                Err(format!("Unknown strategy \"{name}\", should be one of overwrite, merge-first, merge-last, remove"))
            }
        }
    }
}

/// Merges a mapping into that of earlier files.
///
/// # Errors
/// An unknown strategy.
pub(super) fn mappings(mut stack: Map, mut new: Map) -> Result<Map, String> {
    let strategy = Strategy::of(new.shift_remove(KEY).as_ref())?;
    if strategy == Strategy::Overwrite {
        return Ok(cleaned_map(new));
    }
    for (key, value) in new {
        if strategy == Strategy::Remove {
            stack.shift_remove(&key);
            continue;
        }
        let Some(slot) = stack.get_mut(&key) else {
            stack.insert(key, cleaned(value));
            continue;
        };
        let earlier = std::mem::replace(slot, Value::Nil);
        let (below, over) = if strategy == Strategy::MergeFirst { (cleaned(value), earlier) } else { (earlier, value) };
        *slot = match (below, over) {
            (Value::Map(below), Value::Map(over)) => mappings(below, over)?.into(),
            (Value::List(below), Value::List(over)) => lists(below, over)?.into(),
            // Scalars, and values of different types.
            (_, over) => cleaned(over),
        };
    }
    Ok(stack)
}

fn lists(mut stack: Vec<Value>, mut new: Vec<Value>) -> Result<Vec<Value>, String> {
    let strategy = Strategy::of(new.first().and_then(|first| first.get(KEY)))?;
    if names_strategy(&new) {
        new.remove(0);
    }
    match strategy {
        Strategy::Overwrite => return Ok(new),
        Strategy::Remove => {
            let removed: HashSet<&Value> = new.iter().collect();
            stack.retain(|item| !removed.contains(item));
        }
        Strategy::MergeFirst => {
            new.append(&mut stack);
            return Ok(new);
        }
        Strategy::MergeLast => stack.append(&mut new),
    }
    Ok(stack)
}

fn names_strategy(items: &[Value]) -> bool {
    items.first().is_some_and(|first| first.get(KEY).is_some())
}

/// Returns data without the strategies in it. As in Salt, those of mappings inside of lists stay.
fn cleaned(value: Value) -> Value {
    match value {
        Value::Map(map) => cleaned_map(map).into(),
        Value::List(mut items) => {
            if names_strategy(&items) {
                items.remove(0);
            }
            items.into()
        }
        other => other,
    }
}

fn cleaned_map(mut map: Map) -> Map {
    map.shift_remove(KEY);
    map.into_iter().map(|(key, value)| (key, cleaned(value))).collect()
}
