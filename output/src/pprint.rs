//! Formats values as Python's `pprint` does: 80 columns, sorted keys, long strings wrapped at spaces.

use brine_value::python::repr;
use brine_value::{Map, Value};

use super::text::lines_with_ends;
use crate::escape::escape_control;

const WIDTH: usize = 80;

/// Formats a value.
pub fn render(value: &Value) -> String {
    let mut printer = Printer { out: String::new() };
    printer.value(&sorted(value), 0, 0, true);
    // The literals already escape most unsafe characters, but not all.
    escape_control(&printer.out).into_owned()
}

/// Returns a copy with mappings sorted as by Python's `pprint`: by type if keys are not comparable, then by key.
fn sorted(value: &Value) -> Value {
    match value {
        Value::List(items) => Value::List(items.iter().map(sorted).collect()),
        Value::Map(map) => {
            let mut items: Vec<_> = map.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            items.sort_by(|(a, _), (b, _)| compare(a, b));
            Value::Map(items.into_iter().collect())
        }
        other => other.clone(),
    }
}

fn compare(a: &Value, b: &Value) -> std::cmp::Ordering {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => a.type_name().cmp(b.type_name()).then_with(|| a.to_string().cmp(&b.to_string())),
    }
}

struct Printer {
    out: String,
}

impl Printer {
    /// Formats a value that starts in column `indent`, with `allowance` columns reserved for closing brackets.
    fn value(&mut self, value: &Value, indent: usize, allowance: usize, top: bool) {
        let text = repr(value);
        if fits(&text, indent + allowance) {
            self.out.push_str(&text);
            return;
        }
        match value {
            Value::Map(map) if !map.is_empty() => self.map(map, indent, allowance),
            Value::List(items) if !items.is_empty() => self.list(items, indent, allowance),
            Value::Str(text) => self.text(text, indent, allowance, top),
            _ => self.out.push_str(&text),
        }
    }

    fn map(&mut self, map: &Map, indent: usize, allowance: usize) {
        self.out.push('{');
        for (number, (key, value)) in map.iter().enumerate() {
            self.separator(number, indent);
            let key = repr(key);
            let column = indent + 1 + key.chars().count() + 2;
            self.out.push_str(&key);
            self.out.push_str(": ");
            let allowance = if number + 1 == map.len() { allowance + 1 } else { 1 };
            self.value(value, column, allowance, false);
        }
        self.out.push('}');
    }

    fn list(&mut self, items: &[Value], indent: usize, allowance: usize) {
        self.out.push('[');
        for (number, item) in items.iter().enumerate() {
            self.separator(number, indent);
            let allowance = if number + 1 == items.len() { allowance + 1 } else { 1 };
            self.value(item, indent + 1, allowance, false);
        }
        self.out.push(']');
    }

    fn separator(&mut self, number: usize, indent: usize) {
        if number > 0 {
            self.out.push_str(",\n");
            self.out.extend(std::iter::repeat_n(' ', indent + 1));
        }
    }

    /// Formats a long string as several literals, one per line, in parentheses at the top level.
    fn text(&mut self, text: &str, indent: usize, allowance: usize, top: bool) {
        let (indent, allowance) = if top { (indent + 1, allowance + 1) } else { (indent, allowance) };
        let pieces = pieces(text, indent, allowance);
        let (open, close) = if top && pieces.len() > 1 { ("(", ")") } else { ("", "") };
        self.out.push_str(open);
        self.out.push_str(&pieces.join(&format!("\n{:indent$}", "")));
        self.out.push_str(close);
    }
}

/// Splits a long string into literals: one for each line, and more for long lines.
fn pieces(text: &str, indent: usize, allowance: usize) -> Vec<String> {
    let literal = |text: &str| repr(&Value::from(text));
    let mut pieces = Vec::new();
    let lines = lines_with_ends(text);
    for (number, line) in lines.iter().enumerate() {
        let last_line = number + 1 == lines.len();
        let whole = literal(line);
        if fits(&whole, indent + if last_line { allowance } else { 0 }) {
            pieces.push(whole);
            continue;
        }
        let words = words(line);
        let mut current = String::new();
        for (number, word) in words.iter().enumerate() {
            let last = last_line && number + 1 == words.len();
            let longer = format!("{current}{word}");
            if fits(&literal(&longer), indent + if last { allowance } else { 0 }) {
                current = longer;
            } else {
                if !current.is_empty() {
                    pieces.push(literal(&current));
                }
                (*word).clone_into(&mut current);
            }
        }
        if !current.is_empty() {
            pieces.push(literal(&current));
        }
    }
    pieces
}

/// Splits a line into words, each with its trailing spaces; leading spaces are a separate word.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = 0;
    let mut blank = false;
    for (at, c) in line.char_indices() {
        if blank && !c.is_whitespace() {
            words.push(&line[start..at]);
            start = at;
        }
        blank = c.is_whitespace();
    }
    if start < line.len() {
        words.push(&line[start..]);
    }
    words
}

fn fits(text: &str, taken: usize) -> bool {
    text.chars().count() + taken <= WIDTH
}

#[cfg(test)]
mod tests {
    use brine_value::map;

    use super::*;

    #[test]
    fn short_values_stay_on_one_line_sorted() {
        let value = Value::from(map! {10 => 1, "b" => map!{"d" => 1, "c" => Value::Nil}, 9 => 2, "a" => "x"});
        assert_eq!(render(&value), "{9: 2, 10: 1, 'a': 'x', 'b': {'c': None, 'd': 1}}");
    }

    #[test]
    fn long_strings_are_wrapped_at_spaces_in_parentheses() {
        insta::assert_snapshot!(render(&Value::from("word ".repeat(20))), @"
        ('word word word word word word word word word word word word word word word '
         'word word word word word ')
        ");
        insta::assert_snapshot!(render(&Value::from(map! {"k" => "line one\n".repeat(10) + &"x".repeat(90)})), @r"
        {'k': 'line one\n'
              'line one\n'
              'line one\n'
              'line one\n'
              'line one\n'
              'line one\n'
              'line one\n'
              'line one\n'
              'line one\n'
              'line one\n'
              'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'}
        ");
    }
}
