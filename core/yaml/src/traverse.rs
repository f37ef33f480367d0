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
    let found = entry(map, first)?;
    rest.map_or(Some(found), |rest| traverse(found, rest, delimiter))
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
    if let Some(found) = map.get(key) {
        return Some(found);
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
mod tests {
    use super::*;
    use brine_value::{list, map};

    #[test]
    fn paths_resolve_as_in_salt() {
        let inner = map! {
            "b" => 1, 2 => "two", "2" => "text2", 3 => "three", 1.5 => "f", true => "t", Value::Nil => "n", "" => "empty",
        };
        let value = Value::from(map! {
            "a" => inner,
            "l" => list!["x", map! {"k" => 1}, map! {"k" => 2, "j" => 3}, map! {0 => "zero"}],
            "lm" => list![map! {"k" => map! {"z" => 1}}, map! {"k" => map! {"w" => 2}}],
            "ln" => list![map! {"1" => "one"}, "b", map! {true => 2}], "ll" => list![list![1, 2], list![map! {"q" => 5}]],
            "s" => "str", "x:y" => 1, "0" => "text zero", "n" => Value::Nil,
        });
        for (path, found) in [
            ("a:b", Some(Value::from(1))),
            ("a:2", Some("text2".into())),
            ("a:3", Some("three".into())),
            ("a:1.5", Some("f".into())),
            ("a:true", Some("t".into())),
            ("a:yes", Some("t".into())),
            ("a:~", Some("n".into())),
            ("a:", Some("empty".into())),
            ("a:b:c", None),
            ("0", Some("text zero".into())),
            ("l:0", Some("zero".into())),
            ("l:0:k", None),
            ("l:1", Some(map! {"k" => 1}.into())),
            ("l: 1:k", Some(1.into())),
            ("l:k", Some(1.into())),
            ("l:j", Some(3.into())),
            ("l:-1", Some(map! {0 => "zero"}.into())),
            ("l:9", None),
            ("l:-9", None),
            ("ln:0", Some(map! {"1" => "one"}.into())),
            ("ln:1", Some("b".into())),
            ("ln:true", None),
            ("lm:k:z", Some(1.into())),
            ("lm:k:w", None),
            ("lm:1:k:w", Some(2.into())),
            ("ll:0:1", Some(2.into())),
            ("ll:q", None),
            ("ll:1:q", Some(5.into())),
            ("s:0", None),
            ("n", Some(Value::Nil)),
            ("n:x", None),
            ("x:y", None),
            ("zz", None),
            ("", None),
            (":a", None),
        ] {
            assert_eq!(traverse(&value, path, ":"), found.as_ref(), "{path}");
        }
        assert_eq!(traverse(&value, "x:y", "/"), Some(&1.into()));
        assert_eq!(traverse(&value, "a<>b", "<>"), Some(&1.into()));
        assert_eq!(traverse(&value, "s", ""), Some(&"str".into()));
        assert_eq!(traverse(&"text".into(), "0", ":"), None);
    }

    proptest::proptest! {
        #[test]
        fn any_path_is_handled(path in ".*", delimiter in ".{0,2}") {
            let value = Value::from(map! {"a" => list![map! {1 => 2}], 3 => 4});
            let _ = traverse(&value, &path, &delimiter);
        }
    }
}
