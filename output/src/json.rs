//! Formats values as JSON, in the order of insertion unless `pretty` sorts them.

use brine_value::Value;
use brine_value::json::{sorted, to_json, to_json_pretty};

use super::Indent;
use crate::escape::escape_json;

/// Formats a value.
pub fn render(value: &Value, indent: Indent) -> String {
    let text = match indent {
        Indent::Default => to_json_pretty(value, 4),
        Indent::Pretty => to_json_pretty(&sorted(value), 4),
        Indent::Columns(columns) => {
            usize::try_from(columns).map_or_else(|_| to_json(value), |columns| to_json_pretty(value, columns))
        }
    };
    escape_json(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn indentation_is_four_or_as_given() {
        let value = Value::from(map! {"b" => list![1, list![]], "a" => "ü"});
        for (indent, text) in [
            (Indent::Default, "{\n    \"b\": [\n        1,\n        []\n    ],\n    \"a\": \"ü\"\n}"),
            (Indent::Columns(1), "{\n \"b\": [\n  1,\n  []\n ],\n \"a\": \"ü\"\n}"),
            (Indent::Columns(-1), r#"{"b": [1, []], "a": "ü"}"#),
            (Indent::Pretty, "{\n    \"a\": \"ü\",\n    \"b\": [\n        1,\n        []\n    ]\n}"),
        ] {
            assert_eq!(render(&value, indent), text);
        }
    }
}
