//! Merges mappings at every depth.

use crate::{Map, Value};

/// Merges mappings at every depth; other values are replaced.
pub fn merge(into: &mut Map, from: &Map) {
    merge_deep(into, from, false);
}

/// Merges like [`merge`]; with `lists`, lists are extended by their missing items instead of replaced.
pub fn merge_deep(into: &mut Map, from: &Map, lists: bool) {
    for (key, value) in from {
        match (into.get_mut(key), value) {
            (Some(Value::Map(have)), Value::Map(more)) => merge_deep(have, more, lists),
            (Some(Value::List(have)), Value::List(more)) if lists => {
                for item in more {
                    if !have.contains(item) {
                        have.push(item.clone());
                    }
                }
            }
            _ => _ = into.insert(key.clone(), value.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{list, map};

    #[test]
    fn mappings_are_merged_and_other_values_replaced() {
        let under =
            map! {"a" => map! {"x" => 1, "y" => map! {"z" => 2}}, "l" => list![1, 2], "s" => "old", "m" => map! {}};
        let over = map! {"a" => map! {"y" => map! {"n" => 3}}, "l" => list![2, 3], "s" => map! {"n" => 1}, "m" => 5};
        let merged = map! {"a" => map! {"x" => 1, "y" => map! {"z" => 2, "n" => 3}}, "s" => map! {"n" => 1}, "m" => 5};
        for (lists, expected) in [(false, list![2, 3]), (true, list![1, 2, 3])] {
            let mut into = under.clone();
            merge_deep(&mut into, &over, lists);
            let list = into.shift_remove("l");
            assert_eq!((into, list), (merged.clone(), Some(expected)), "lists: {lists}");
        }
    }
}
