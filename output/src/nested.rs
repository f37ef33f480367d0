//! The default outputter: indented mappings and lists, one item a line.

use brine_value::Value;

use super::OutputOptions;
use super::text::{lines, sorted_items};
use crate::escape::escape_control;
use crate::{Colour, Colours};

/// Formats a value.
pub fn render(value: &Value, options: &OutputOptions) -> String {
    let key = if options.retcode == 0 { Colour::Cyan } else { Colour::Red };
    // The separators of nested lists are green, or red for a failed job.
    let mark = if options.retcode == 0 { Colour::Green } else { Colour::Red };
    let mut out = Nested { colours: options.colours, key, mark, lines: Vec::new() };
    out.value(value, 0, "");
    out.lines.join("\n")
}

/// Formats a value for embedding in other text, indented. A mapping starts with a line of dashes.
pub fn render_indented(value: &Value, indent: usize, colours: Colours) -> String {
    let mut out = Nested { colours, key: Colour::Cyan, mark: Colour::Green, lines: Vec::new() };
    out.value(value, indent, "");
    out.lines.join("\n")
}

struct Nested {
    colours: Colours,
    key: Colour,
    mark: Colour,
    lines: Vec<String>,
}

impl Nested {
    fn line(&mut self, indent: usize, colour: Colour, text: &str, suffix: &str) {
        self.lines.push(format!("{:indent$}{}{suffix}", "", self.colours.paint(colour, text)));
    }

    fn value(&mut self, value: &Value, indent: usize, prefix: &str) {
        match value {
            Value::Nil | Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Big(_) | Value::Float(_) => {
                self.line(indent, Colour::LightYellow, &format!("{prefix}{value}"), "");
            }
            Value::Str(text) => self.text(text, indent, prefix),
            Value::Bytes(bytes) => self.text(&String::from_utf8_lossy(bytes), indent, prefix),
            Value::List(items) => {
                for item in items {
                    if matches!(item, Value::List(_) | Value::Map(_)) {
                        self.line(indent, self.mark, "|_", "");
                        self.value(item, indent + 2, "");
                    } else {
                        self.value(item, indent, "- ");
                    }
                }
            }
            Value::Map(map) => {
                if indent > 0 {
                    self.line(indent, self.key, "----------", "");
                }
                for (key, value) in sorted_items(map) {
                    self.line(indent, self.key, &escape_control(&key.to_string()), ":");
                    self.value(value, indent + 4, "");
                }
            }
        }
    }

    fn text(&mut self, text: &str, indent: usize, prefix: &str) {
        for (number, line) in lines(text).into_iter().enumerate() {
            let prefix = if number == 0 { prefix } else { &"    "[..prefix.len()] };
            self.line(indent, Colour::Green, &format!("{prefix}{}", escape_control(line)), "");
        }
    }
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn keys_and_marks_of_a_failed_job_are_red() {
        let value = Value::from(map! {"m" => map!{"a" => list![1, list!["x"]]}});
        let options = OutputOptions { colours: Colours::ON, retcode: 1, ..OutputOptions::default() };
        insta::assert_snapshot!(render(&value, &options).replace('\x1b', "^"), @"
        ^[0;31mm^[0;0m:
            ^[0;31m----------^[0;0m
            ^[0;31ma^[0;0m:
                ^[0;1;33m- 1^[0;0m
                ^[0;31m|_^[0;0m
                  ^[0;32m- x^[0;0m
        ");
    }

    #[test]
    fn control_characters_and_bytes_are_escaped() {
        let value = Value::from(map! {"a\x1b[1m" => "x\x1b[2Jy", "b" => vec![0xffu8, b'b']});
        assert_eq!(render(&value, &OutputOptions::default()), "a?[1m:\n    x?[2Jy\nb:\n    \u{fffd}b");
    }

    #[test]
    fn empty_values_have_salts_format() {
        for (value, text) in [
            (list!["", list![], Value::map(), Value::Nil, list![""]], "|_\n|_\n  ----------\n- None\n|_"),
            (Value::from(map! {"m" => ""}), "m:"),
            (Value::from(map! {"m" => list![]}), "m:"),
            (Value::from(map! {"m" => Value::map()}), "m:\n    ----------"),
            (Value::from("plain"), "plain"),
        ] {
            assert_eq!(render(&value, &OutputOptions::default()), text);
        }
    }
}
