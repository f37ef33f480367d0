//! One line after the other, each with the minion's id in front, for `grep` and friends.

use brine_value::Value;

use super::text::lines;
use crate::escape::{escape_control, escape_line};

/// The whole text of a value; without ids, text stays bare.
pub fn render(value: &Value) -> String {
    let Some(map) = value.as_map() else { return escape_control(&value.to_string()).into_owned() };
    let mut out = Vec::new();
    for (id, value) in map {
        let id = id.to_string();
        let id = escape_line(&id);
        for line in lines(&value.to_string()) {
            out.push(format!("{id}: {}", escape_control(line)));
        }
    }
    out.join("\n")
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn every_line_carries_its_id() {
        let value = Value::from(map! {"m" => "a\n\nb\n", "n" => list!["x", 1], "o" => "", "p" => Value::Nil});
        assert_eq!(render(&value), "m: a\nm: \nm: b\nn: ['x', 1]\np: None");
        assert_eq!(render(&list![1]), "[1]");
    }
}
