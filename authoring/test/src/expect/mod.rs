//! Expected and actual data: states in the form of SLS files, and differences as lines.

mod shape;

use brine_value::{Map, Value, python};
use brine_yaml::{Style, dump};
use similar::{ChangeTag, TextDiff};

pub use shape::{chunk_as_sls, expected_state, shown};

/// One failed expectation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// What is wrong.
    pub message: String,
    /// The lines of a difference: `-` expected, `+` actual.
    pub difference: Vec<String>,
}

impl Failed {
    /// Creates a failure without a difference.
    pub fn new(message: impl Into<String>) -> Self {
        Failed { message: message.into(), difference: Vec::new() }
    }

    /// Creates a failure with the difference of two texts.
    pub fn differs(message: impl Into<String>, expected: &str, actual: &str) -> Self {
        Failed { message: message.into(), difference: difference(expected, actual) }
    }

    /// Creates a failure with the difference of data.
    pub fn of_data(message: impl Into<String>, expected: &Value, actual: &Value) -> Self {
        Self::differs(message, &yaml(expected), &yaml(actual))
    }
}

/// Returns data as text.
pub fn yaml(value: &Value) -> String {
    dump(value, Style::BLOCK)
}

/// The number of unchanged lines around a change.
const AROUND: usize = 3;

/// Returns the difference of two texts in lines.
pub fn difference(expected: &str, actual: &str) -> Vec<String> {
    let diff = TextDiff::from_lines(expected, actual);
    let mut lines = Vec::new();
    for (index, group) in diff.grouped_ops(AROUND).iter().enumerate() {
        if index > 0 {
            lines.push("...".to_owned());
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            lines.push(format!("{sign} {}", change.value().trim_end_matches(['\n', '\r'])));
        }
    }
    if lines.is_empty() && expected != actual {
        // Only ends of lines differ.
        lines.extend([format!("- {}", python::repr(&expected.into())), format!("+ {}", python::repr(&actual.into()))]);
    }
    lines
}

/// Whether a value has what is expected: mappings may have more keys.
pub fn has(actual: &Value, expected: &Value) -> bool {
    match (actual, expected) {
        (Value::Map(actual), Value::Map(expected)) => {
            expected.iter().all(|(key, value)| actual.get(key).is_some_and(|actual| has(actual, value)))
        }
        (actual, expected) => actual == expected,
    }
}

/// Returns the part of a value that has the keys of the expected one, to show their difference.
pub fn comparable(actual: &Value, expected: &Value) -> Value {
    match (actual, expected) {
        (Value::Map(actual), Value::Map(expected)) => {
            let shared = expected
                .iter()
                .filter_map(|(key, value)| actual.get(key).map(|actual| (key.clone(), comparable(actual, value))));
            shared.collect::<Map>().into()
        }
        (actual, _) => actual.clone(),
    }
}

#[cfg(test)]
mod tests {
    use brine_value::map;

    use super::*;

    #[test]
    fn mappings_may_have_more_keys() {
        let actual = map! {"a" => map! {"x" => 1, "y" => 2}, "b" => 3}.into();
        for (expected, is_in) in
            [(map! {"a" => map! {"x" => 1}}, true), (map! {"a" => map! {"x" => 2}}, false), (map! {"c" => 1}, false)]
        {
            assert_eq!(has(&actual, &expected.clone().into()), is_in, "{expected:?}");
        }
        assert_eq!(comparable(&actual, &map! {"a" => map! {"y" => 9}}.into()), map! {"a" => map! {"y" => 2}}.into());
    }

    #[test]
    fn differences_show_expected_and_actual_lines() {
        assert_eq!(difference("a\nb\n", "a\nc\n"), ["  a", "- b", "+ c"]);
        assert_eq!(difference("a\n", "a"), ["- a", "+ a"]);
        assert_eq!(difference("a\n", "a\n"), Vec::<String>::new());
    }
}
