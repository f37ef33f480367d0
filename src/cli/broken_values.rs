//! Words of a command line that begin like a mapping and are none: they are passed as text, as in Salt.

use brine_function::arguments::parse_value;
use brine_value::Value;

use crate::ui::print_plain_error;

/// The number of characters of a word that are shown.
const SHOWN: usize = 12;

/// Names such words on stderr.
pub(super) fn report(words: &[String]) {
    for word in words {
        let value = value_of(word);
        if is_broken(value) {
            let why = match value.matches('{').count().cmp(&value.matches('}').count()) {
                std::cmp::Ordering::Greater => "a '}' is missing",
                std::cmp::Ordering::Less => "there is a '}' too many",
                std::cmp::Ordering::Equal => "look at its colons, commas and quotes",
            };
            // Secrets may follow.
            let start: String = value.chars().take(SHOWN).collect();
            print_plain_error(format_args!(
                "WARNING: '{start}' begins like a mapping and is passed as text, because it is no valid YAML: {why}"
            ));
        }
    }
}

/// Returns the value of `name=value`, or the word.
fn value_of(word: &str) -> &str {
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    word.split_once('=').filter(|(name, _)| is_name(name)).map_or(word, |(_, value)| value)
}

fn is_broken(value: &str) -> bool {
    // Templates and blocks of a shell are meant as text.
    let is_meant = ["{{", "{%", "{#", "{ "].iter().any(|start| value.starts_with(start));
    value.starts_with('{') && value.contains(':') && !is_meant && matches!(parse_value(value), Value::Str(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_mappings_are_recognised() {
        for (word, expected) in [
            ("{a: 1", true),
            ("pillar={a: 1", true),
            ("pillar={a: 1}}", true),
            ("{a: b: c}", true),
            ("{a: 1}", false),
            ("pillar={\"a\": [1, 2]}", false),
            ("{{ data.id }}: x", false),
            ("{ echo a: b; }", false),
            ("a{b:", false),
            ("x == {a: 1", false),
        ] {
            assert_eq!(is_broken(value_of(word)), expected, "{word}");
        }
    }
}
