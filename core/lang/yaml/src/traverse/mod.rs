//! Looks up paths such as `a:b:0`, for `pillar.get`, `grains.get`, the `traverse` filter, and grain and pillar targets.

use brine_value::{Map, Value};

/// Returns the value at the end of a path.
///
/// In a mapping, a step is a string key or, if there is none, the key to which it resolves in YAML (`1`, `true`). In a
/// list, a step selects the first mapping that contains it as a key. A number that no mapping contains is an index,
/// from the end if negative.
///
/// # Examples
/// ```
/// use brine_value::{list, map, Value};
/// use brine_yaml::traverse;
///
/// let value = map! {"a" => map! {1 => "one"}, "l" => list!["x", map! {"k" => 2}]}.into();
/// assert_eq!(traverse(&value, "a:1", ":"), Some(&"one".into()));
/// assert_eq!(traverse(&value, "l/k", "/"), Some(&2.into()));
/// assert_eq!(traverse(&value, "l:0", ":"), Some(&"x".into()));
/// assert_eq!(traverse(&value, "a:b", ":"), None);
/// ```
pub fn traverse<'v>(value: &'v Value, path: &str, delimiter: &str) -> Option<&'v Value> {
    if delimiter.is_empty() {
        return step(value, path);
    }
    path.split(delimiter).try_fold(value, step)
}

/// As [`traverse`], for a [`Map`].
pub fn entry_at<'v>(map: &'v Map, path: &str, delimiter: &str) -> Option<&'v Value> {
    if delimiter.is_empty() {
        return entry(map, path);
    }
    let (first, rest) = path.split_once(delimiter).map_or((path, None), |(first, rest)| (first, Some(rest)));
    let value = entry(map, first)?;
    rest.map_or(Some(value), |rest| traverse(value, rest, delimiter))
}

/// As [`entry_at`], for a path that is already split.
pub fn follow<'v>(map: &'v Map, path: &[String]) -> Option<&'v Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().map(String::as_str).try_fold(entry(map, first)?, step)
}

fn step<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    match value {
        Value::Map(map) => entry(map, key),
        Value::List(items) => {
            let mut maps = items.iter().filter_map(Value::as_map);
            let Ok(index) = key.trim().parse::<i64>() else { return maps.find_map(|map| map.get(key)) };
            maps.find_map(|map| map.get(&Value::Int(index))).or_else(|| {
                let from_end = || items.len().checked_sub(usize::try_from(index.unsigned_abs()).ok()?);
                items.get(if index < 0 { from_end()? } else { usize::try_from(index).ok()? })
            })
        }
        _ => None,
    }
}

fn entry<'v>(map: &'v Map, key: &str) -> Option<&'v Value> {
    if let Some(value) = map.get(key) {
        return Some(value);
    }
    // Parsing YAML dominates the cost: done only if the mapping has a key that is not a string.
    if key.is_empty() || map.keys().all(|key| matches!(key, Value::Str(_))) {
        return None;
    }
    match crate::load(key).ok()? {
        Value::Str(_) => None,
        typed => map.get(&typed),
    }
}

#[cfg(test)]
mod tests;
