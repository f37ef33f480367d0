//! Formats values as lines prefixed with the minion's id, for `grep`.

use brine_value::Value;

use super::text::lines;
use crate::escape::{escape_control, escape_line};

/// Formats a value. One that is not a mapping gets no prefix.
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
    fn every_line_has_the_id() {
        let value = Value::from(map! {"m" => "a\n\nb\n", "n" => list!["x", 1], "o" => "", "p" => Value::Nil});
        assert_eq!(render(&value), "m: a\nm: \nm: b\nn: ['x', 1]\np: None");
        assert_eq!(render(&list![1]), "[1]");
    }
}
