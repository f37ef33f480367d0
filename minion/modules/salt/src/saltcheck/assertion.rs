//! One assertion about a result. Statuses and messages are Salt's.

use brine_value::{FromValue, Map, Value};
use brine_yaml::traverse;

/// The comparison of a result with the expected value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Equal,
    NotEqual,
    True,
    False,
    In,
    NotIn,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    Empty,
    NotEmpty,
}

impl Kind {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "assertEqual" => Kind::Equal,
            "assertNotEqual" => Kind::NotEqual,
            "assertTrue" => Kind::True,
            "assertFalse" => Kind::False,
            "assertIn" => Kind::In,
            "assertNotIn" => Kind::NotIn,
            "assertGreater" => Kind::Greater,
            "assertGreaterEqual" => Kind::GreaterEqual,
            "assertLess" => Kind::Less,
            "assertLessEqual" => Kind::LessEqual,
            "assertEmpty" => Kind::Empty,
            "assertNotEmpty" => Kind::NotEmpty,
            _ => return None,
        })
    }

    fn needs_expected(self) -> bool {
        !matches!(self, Kind::True | Kind::False | Kind::Empty | Kind::NotEmpty)
    }

    /// Whether the expected value is converted to the type of the result.
    fn casts(self) -> bool {
        self.needs_expected() && !matches!(self, Kind::In | Kind::NotIn)
    }

    fn symbol(self) -> &'static str {
        match self {
            Kind::Equal => "==",
            Kind::NotEqual => "!=",
            Kind::True => "True is",
            Kind::False => "False is",
            Kind::In => "IN",
            Kind::NotIn => "NOT IN",
            Kind::Greater => ">",
            Kind::GreaterEqual => ">=",
            Kind::Less => "<",
            Kind::LessEqual => "<=",
            Kind::Empty => "IS EMPTY",
            Kind::NotEmpty => "IS NOT EMPTY",
        }
    }
}

/// An assertion of a test.
#[derive(Debug)]
pub(super) struct Assertion {
    kind: Kind,
    expected: Value,
    /// The path of a part of the result, and the separator of its keys.
    pub(super) section: Option<(String, String)>,
}

impl Assertion {
    /// Parses an assertion. A test that applies states asserts a non-empty result. The error is a message.
    pub(super) fn read(group: &Map, is_state_apply: bool) -> Result<Self, String> {
        let name = group.get("assertion").map(ToString::to_string).unwrap_or_default();
        let kind = if is_state_apply { Some(Kind::NotEmpty) } else { Kind::named(&name) };
        let kind = kind.ok_or_else(|| format!("the assertion '{name}' is unknown"))?;
        let expected = super::field(group, "expected_return").cloned().unwrap_or_default();
        if kind.needs_expected() && expected.is_nil() {
            return Err(format!("{name} needs expected_return"));
        }
        let text = |name: &str| group.get(name).filter(|value| value.is_truthy()).map(ToString::to_string);
        let delimiter = text("assertion_section_delimiter").unwrap_or_else(|| ":".to_owned());
        Ok(Assertion { kind, expected, section: text("assertion_section").map(|path| (path, delimiter)) })
    }

    /// Returns the part of a result that is compared; False if the path is missing.
    pub(super) fn section(&self, result: &Value) -> Value {
        match &self.section {
            None => result.clone(),
            Some((path, delimiter)) => traverse(result, path, delimiter).cloned().unwrap_or(Value::Bool(false)),
        }
    }

    /// Returns the status of a result: `Pass`, or `Fail:` with the reason.
    pub(super) fn check(&self, result: &Value, shows_result: bool) -> String {
        let expected = self.expected_for(result);
        let failure = match self.kind {
            Kind::Equal => (expected != *result).then(|| {
                if shows_result {
                    format!("{expected} is not equal to {result}")
                } else {
                    "Result is not equal".to_owned()
                }
            }),
            Kind::NotEqual => (expected == *result).then(|| {
                if shows_result { format!("{expected} is equal to {result}") } else { "Result is equal".to_owned() }
            }),
            Kind::True => (*result != Value::Bool(true)).then(|| format!("{result} not True")),
            Kind::False => {
                // As in Salt, an empty string counts as False.
                let is_false = *result == Value::Bool(false) || result.as_str() == Some("");
                let value = if result.as_str().is_some() { Value::Bool(result.is_truthy()) } else { result.clone() };
                (!is_false).then(|| format!("{value} not False"))
            }
            Kind::In => (!contains(result, &expected)).then(|| {
                if shows_result { format!("{expected} not found in {result}") } else { "Result not found".to_owned() }
            }),
            Kind::NotIn => contains(result, &expected).then(|| {
                if shows_result { format!("{expected} was found in {result}") } else { "Result was found".to_owned() }
            }),
            Kind::Greater => failed_order(&expected, result, std::cmp::Ordering::is_gt),
            Kind::GreaterEqual => failed_order(&expected, result, std::cmp::Ordering::is_ge),
            Kind::Less => failed_order(&expected, result, std::cmp::Ordering::is_lt),
            Kind::LessEqual => failed_order(&expected, result, std::cmp::Ordering::is_le),
            Kind::Empty => result.is_truthy().then(|| format!("{result} is not empty")),
            Kind::NotEmpty => (!result.is_truthy()).then(|| "value is empty".to_owned()),
        };
        failure.map_or_else(|| "Pass".to_owned(), |reason| format!("Fail: {reason}"))
    }

    /// Returns the comparison in words, for `output_details`.
    pub(super) fn details(&self, result: &Value, shows_result: bool) -> String {
        let expected = self.expected_for(result);
        let expected = if expected.is_nil() { String::new() } else { format!("{expected} ") };
        let result = if shows_result { result.to_string() } else { "hidden".to_owned() };
        format!("{expected}{} {result}", self.kind.symbol())
    }

    /// Returns the expected value, converted to the type of the result if possible.
    fn expected_for(&self, result: &Value) -> Value {
        let expected = &self.expected;
        if !self.kind.casts() {
            return expected.clone();
        }
        let cast = match result {
            Value::Bool(_) => Some(Value::Bool(expected.is_truthy() && expected.as_str() != Some("False"))),
            Value::Str(_) => Some(expected.to_string().into()),
            Value::Int(_) | Value::UInt(_) => match expected {
                Value::Str(text) => text.trim().parse::<i64>().ok().map(Value::from),
                Value::Bool(flag) => Some(i64::from(*flag).into()),
                #[expect(clippy::cast_possible_truncation, reason = "as Python's int()")]
                Value::Float(number) => Some((*number as i64).into()),
                other => Some(other.clone()),
            },
            Value::Float(_) => match expected {
                Value::Str(text) => text.trim().parse::<f64>().ok().map(Value::from),
                other => f64::from_value(other).map(Value::from),
            },
            _ => None,
        };
        cast.unwrap_or_else(|| expected.clone())
    }
}

/// Whether a result contains a value: as an item, a key or a substring.
fn contains(result: &Value, value: &Value) -> bool {
    match result {
        Value::List(items) => items.contains(value),
        Value::Map(map) => map.contains_key(value),
        Value::Str(text) => value.as_str().is_some_and(|part| text.contains(part)),
        _ => false,
    }
}

/// Returns the failure message unless the order of the expected value and the result satisfies `holds`. Salt's message
/// is the same for all four comparisons.
fn failed_order(expected: &Value, result: &Value, holds: impl Fn(std::cmp::Ordering) -> bool) -> Option<String> {
    let order = match (expected, result) {
        (Value::Str(one), Value::Str(other)) => Some(one.cmp(other)),
        _ => f64::from_value(expected).zip(f64::from_value(result)).and_then(|(one, other)| one.partial_cmp(&other)),
    };
    (!order.is_some_and(holds)).then(|| format!("{result} not False"))
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn results_are_compared_as_salt_does() {
        let nil = || Value::Nil;
        for (name, expected, result, status) in [
            ("assertEqual", "5".into(), Value::from(5), "Pass"),
            ("assertEqual", 5.into(), "5".into(), "Pass"),
            ("assertEqual", "False".into(), false.into(), "Pass"),
            ("assertEqual", "x".into(), 5.into(), "Fail: x is not equal to 5"),
            ("assertNotEqual", 5.into(), 5.into(), "Fail: 5 is equal to 5"),
            ("assertTrue", nil(), true.into(), "Pass"),
            ("assertTrue", nil(), 1.into(), "Fail: 1 not True"),
            ("assertFalse", nil(), "".into(), "Pass"),
            ("assertFalse", nil(), "x".into(), "Fail: True not False"),
            ("assertIn", "a".into(), list!["a", "b"], "Pass"),
            ("assertIn", "a".into(), map! {"a" => 1}.into(), "Pass"),
            ("assertIn", "z".into(), "abc".into(), "Fail: z not found in abc"),
            ("assertNotIn", "b".into(), "abc".into(), "Fail: b was found in abc"),
            ("assertGreater", 3.into(), 2.into(), "Pass"),
            ("assertGreaterEqual", 2.into(), 2.into(), "Pass"),
            ("assertLess", 2.into(), 2.into(), "Fail: 2 not False"),
            ("assertLessEqual", 2.5.into(), 2.0.into(), "Fail: 2.0 not False"),
            ("assertEmpty", nil(), list![], "Pass"),
            ("assertEmpty", nil(), "x".into(), "Fail: x is not empty"),
            ("assertNotEmpty", nil(), "".into(), "Fail: value is empty"),
        ] {
            let group = map! {"assertion" => name, "expected_return" => expected};
            assert_eq!(Assertion::read(&group, false).unwrap().check(&result, true), status, "{name}");
        }
        for group in [map! {"assertion" => "assertEqual"}, map! {"assertion" => "assertNothing"}, Map::new()] {
            assert!(Assertion::read(&group, false).is_err());
        }
        assert!(Assertion::read(&Map::new(), true).is_ok());
    }
}
