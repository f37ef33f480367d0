//! The outputter `table`: each list of rows as a table with borders, below the keys of its path.
//!
//! Mirrors Salt's outputter with its default options. All lines of a wrapped cell are shown; Salt shows only as many as
//! the shortest cell of the row has.

use brine_value::{Map, Value};

use super::text::sorted_items;
use crate::escape::escape_control;
use crate::{Colour, Colours};

/// The width from which a cell is wrapped.
const CELL_WIDTH: usize = 50;

/// Formats a value; `None` if it has a list that cannot be shown as rows.
///
/// Rows are mappings (their keys are the heading), strings (one column), or lists of strings. As in Salt, lists whose
/// rows are of different types, and scalars, are not shown.
pub fn render(value: &Value, colours: Colours) -> Option<String> {
    let mut out = Tables { colours, lines: Vec::new() };
    out.value(value, 0)?;
    Some(out.lines.join("\n"))
}

struct Tables {
    colours: Colours,
    lines: Vec<String>,
}

impl Tables {
    fn line(&mut self, indent: usize, colour: Colour, text: &str, suffix: &str) {
        self.lines.push(format!("{:indent$}{}{suffix}", "", self.colours.paint(colour, text)));
    }

    fn value(&mut self, value: &Value, indent: usize) -> Option<()> {
        match value {
            Value::Map(map) => {
                for (key, value) in sorted_items(map) {
                    self.line(indent, Colour::DarkGray, &escape_control(&key.to_string()), ":");
                    self.line(indent, Colour::DarkGray, "----------", "");
                    match value {
                        Value::List(rows) => self.rows(rows, indent + 4)?,
                        other => self.value(other, indent + 4)?,
                    }
                }
            }
            Value::List(rows) => self.rows(rows, indent + 4)?,
            _ => {}
        }
        Some(())
    }

    fn rows(&mut self, rows: &[Value], indent: usize) -> Option<()> {
        let Some(first) = rows.first() else { return Some(()) };
        if rows.iter().any(|row| std::mem::discriminant(row) != std::mem::discriminant(first)) {
            return Some(());
        }
        let mut cells: Vec<Vec<String>> = first.as_map().map(heading).into_iter().collect();
        for row in rows {
            cells.push(row_of(row)?);
        }
        self.table(&cells, indent)
    }

    fn table(&mut self, rows: &[Vec<String>], indent: usize) -> Option<()> {
        let columns = rows.iter().map(Vec::len).min().filter(|columns| *columns > 0)?;
        let rows: Vec<Vec<Vec<String>>> = rows.iter().map(|row| row.iter().map(|cell| wrap(cell)).collect()).collect();
        let width = |column: usize| {
            let lines = rows.iter().flat_map(|row| &row[column]);
            lines.map(|line| line.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        // Two characters before the first column, two after the last, three between columns.
        let rule = "-".repeat(4 + widths.iter().sum::<usize>() + 3 * (columns - 1));
        self.line(indent, Colour::LightGray, &rule, "");
        for row in &rows {
            for number in 0..row.iter().map(Vec::len).max().unwrap_or(0) {
                let cell = |(cell, width): (&Vec<String>, &usize)| {
                    centred(cell.get(number).map_or("", String::as_str), *width)
                };
                let line: Vec<String> = row.iter().zip(&widths).map(cell).collect();
                self.line(indent, Colour::White, &format!("| {} |", line.join(" | ")), "");
            }
            self.line(indent, Colour::LightGray, &rule, "");
        }
        Some(())
    }
}

/// Returns the keys of a row as titles: `last_move` is `Last Move`.
fn heading(row: &Map) -> Vec<String> {
    sorted_items(row).into_iter().map(|(key, _)| title(&key.to_string().replace('_', " "))).collect()
}

/// Returns the cells of a row; `None` if it has none, or an item of a list is not a string.
fn row_of(row: &Value) -> Option<Vec<String>> {
    let cells: Vec<String> = match row {
        Value::Map(map) => sorted_items(map).into_iter().map(|(_, value)| value.to_string()).collect(),
        Value::Str(text) => vec![text.clone()],
        Value::List(cells) => cells.iter().map(|cell| cell.as_str().map(str::to_owned)).collect::<Option<_>>()?,
        _ => return None,
    };
    Some(cells.into_iter().map(|cell| escape_control(&cell).into_owned()).collect())
}

/// Capitalises each word, as Python's `str.title` does.
fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut within = false;
    for character in text.chars() {
        if within {
            out.extend(character.to_lowercase());
        } else {
            out.extend(character.to_uppercase());
        }
        within = character.is_alphabetic();
    }
    out
}

/// Wraps the text of a cell at spaces.
fn wrap(text: &str) -> Vec<String> {
    let mut words = text.split(' ');
    let mut out = words.next().unwrap_or_default().to_owned();
    for word in words {
        let columns = |text: &str| text.chars().count();
        let last = out.rsplit('\n').next().map_or(0, columns);
        let next = word.split('\n').next().map_or(0, columns);
        out.push(if last + next >= CELL_WIDTH { '\n' } else { ' ' });
        out.push_str(word);
    }
    out.split('\n').map(str::to_owned).collect()
}

/// Centres a text as Python's `str.center` does: the odd space is on the left if the width is odd.
fn centred(text: &str, width: usize) -> String {
    let pad = width.saturating_sub(text.chars().count());
    let left = pad / 2 + (pad & width & 1);
    format!("{:left$}{text}{:right$}", "", "", right = pad - left)
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    fn plain(value: impl Into<Value>) -> Option<String> {
        render(&value.into(), Colours::OFF)
    }

    #[test]
    fn mappings_have_a_heading() {
        let rows = list![map! {"mac_x" => "40:A6", "active" => true}, map! {"mac_x" => "1", "active" => false}];
        let lines = [
            "m1:",
            "----------",
            "    out:",
            "    ----------",
            "        ------------------",
            "        | Active | Mac X |",
            "        ------------------",
            "        |  True  | 40:A6 |",
            "        ------------------",
            "        | False  |   1   |",
            "        ------------------",
        ];
        assert_eq!(plain(map! {"m1" => map!{"out" => rows}}).unwrap(), lines.join("\n"));
    }

    #[test]
    fn texts_are_one_column_and_long_ones_are_wrapped() {
        let long = format!("{} tail", "x".repeat(48));
        let shown = plain(map! {"m" => list![long, "b"]}).unwrap();
        let middle: Vec<&str> = shown.lines().skip(3).map(str::trim).collect();
        assert_eq!(middle[0].trim_matches(['|', ' ']), "x".repeat(48));
        assert_eq!(middle[1].trim_matches(['|', ' ']), "tail");
        assert!(middle[2].starts_with("----"));
    }

    #[test]
    fn rows_of_lists_have_no_heading() {
        let rule = format!("    {}", "-".repeat(9));
        assert_eq!(
            plain(list![list!["a", "b"], list!["c", "d"]]).unwrap(),
            [rule.as_str(), "    | a | b |", &rule, "    | c | d |", &rule].join("\n")
        );
    }

    #[test]
    fn other_values() {
        assert_eq!(plain(map! {"m" => true}).unwrap(), "m:\n----------");
        assert_eq!(plain(map! {"m" => list![1, "x"]}).unwrap(), "m:\n----------", "rows of two kinds");
        assert_eq!(plain(map! {"m" => list![1, 2]}), None);
        assert_eq!(plain(map! {"m" => list![list![1]]}), None);
        assert_eq!(plain(map! {"m" => list![Map::new()]}), None);
    }

    #[test]
    fn centring_matches_python() {
        for (text, width, want) in [("ab", 5, "  ab "), ("a", 4, " a  "), ("abc", 3, "abc"), ("a", 2, "a ")] {
            assert_eq!(centred(text, width), want);
        }
    }
}
