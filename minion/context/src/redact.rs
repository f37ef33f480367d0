//! Masks secrets in text for logs: SLS files, commands and states may contain values of the pillar. All values are
//! masked, as passwords cannot be recognised.

use brine_value::{Map, Value};

/// The replacement of a value of the pillar.
const MASK: &str = "****";
/// The minimum length of masked values; shorter ones are part of too many words.
const MIN_LENGTH: usize = 4;
/// The maximum number of logged lines of a text, and of bytes.
const MAX_LINES: usize = 500;
const MAX_BYTES: usize = 64 << 10;

/// The values of a pillar, longest first.
pub struct Redactor(Vec<String>);

impl Redactor {
    /// Creates a redactor for text that may contain values of this pillar.
    pub fn of(pillar: &Map) -> Self {
        let mut values = Vec::new();
        pillar.values().for_each(|value| collect(value, &mut values));
        values.sort_unstable_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        Redactor(values)
    }

    /// Returns the text with values masked.
    pub fn hide(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for value in &self.0 {
            if text.contains(value.as_str()) {
                text = text.replace(value.as_str(), MASK);
            }
        }
        text
    }

    /// Returns the text with values masked, split into a bounded number of lines, for one log line each.
    pub fn lines(&self, text: &str) -> Vec<String> {
        let end = (0..=MAX_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        let safe_text = self.hide(&text[..end]);
        let mut lines: Vec<String> = safe_text.lines().take(MAX_LINES).map(str::to_owned).collect();
        let left = text.lines().count() - lines.len().min(text.lines().count());
        if left > 0 {
            lines.push(format!("... {left} more lines"));
        }
        lines
    }
}

/// Collects the lines of all strings and numbers in a value.
fn collect(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Map(map) => map.values().for_each(|value| collect(value, into)),
        Value::List(items) => items.iter().for_each(|value| collect(value, into)),
        Value::Bool(_) | Value::Nil => {}
        scalar => {
            let text = scalar.to_string();
            into.extend(text.lines().map(str::trim).filter(|line| line.len() >= MIN_LENGTH).map(str::to_owned));
        }
    }
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn values_of_the_pillar_are_masked_everywhere() {
        let redactor = Redactor::of(&map! {
            "password" => "s3cret", "users" => list![map! {"pin" => 123_456, "key" => "BEGIN\n  line one\n  line two\nEND"}],
            "on" => true, "short" => "abc", "longer" => "s3cret-and-more"
        });
        assert_eq!(
            redactor.hide("mysql -ps3cret; s3cret-and-more 123456\n    line one\nabc True"),
            "mysql -p****; **** ****\n    ****\nabc True"
        );
    }

    #[test]
    fn long_texts_are_bounded() {
        let redactor = Redactor::of(&Map::new());
        let lines = redactor.lines(&"x\n".repeat(600));
        assert_eq!((lines.len(), lines[500].as_str()), (501, "... 100 more lines"));
        assert!(redactor.lines(&"é".repeat(100_000)).iter().map(String::len).sum::<usize>() <= MAX_BYTES);
        assert_eq!(redactor.lines("a\nb"), ["a", "b"]);
    }
}
