//! The outputter `table`: formats each list of rows as a table with borders, below the keys that lead to it.
//!
//! Mirrors Salt's outputter and its options (`out.table.*`). All lines of a wrapped cell are shown; Salt truncates each
//! row to the lines of its shortest cell.

use brine_value::{FromValue, Map, Value};

use super::text::sorted_items;
use crate::escape::escape_control;
use crate::{Colour, Colours};

/// The maximum indentation and the maximum width of cells, in columns.
const MAX_COLUMNS: i64 = 1000;

/// The alignment of text within a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Justify {
    /// Centred.
    #[default]
    Center,
    /// Left-aligned.
    Left,
    /// Right-aligned.
    Right,
}

/// The options of the outputter, configured as `out.table.NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableOptions {
    /// `nested_indent`: the indentation of all lines, in columns.
    pub indent: usize,
    /// `has_header`: whether a rule follows the heading if `separate_rows` is off.
    pub has_header: bool,
    /// `row_delimiter`: the text that rules consist of.
    pub row_delimiter: String,
    /// `delim`: the text between columns.
    pub delim: String,
    /// `justify`: the alignment of text in cells.
    pub justify: Justify,
    /// `separate_rows`: whether there are rules between rows.
    pub separate_rows: bool,
    /// `prefix`: the text before each row.
    pub prefix: String,
    /// `suffix`: the text after each row.
    pub suffix: String,
    /// `width`: the width in columns beyond which a cell is wrapped.
    pub width: usize,
    /// `rows_key`: if set, only the rows under this key are shown.
    pub rows_key: Option<String>,
    /// `labels_key`: the key of the heading, beside the rows.
    pub labels_key: Option<String>,
    /// `title`: the title of the rows under `rows_key`.
    pub title: Option<String>,
}

impl Default for TableOptions {
    fn default() -> Self {
        TableOptions {
            indent: 0,
            has_header: true,
            row_delimiter: "-".into(),
            delim: " | ".into(),
            justify: Justify::Center,
            separate_rows: true,
            prefix: "| ".into(),
            suffix: " |".into(),
            width: 50,
            rows_key: None,
            labels_key: None,
            title: None,
        }
    }
}

impl TableOptions {
    /// Sets an option by its name after `out.table.`. Values of a wrong type are ignored.
    pub(crate) fn set(&mut self, name: &str, value: &Value) {
        let text = || value.as_str().map(|text| escape_control(text).into_owned());
        let columns =
            || i64::from_value(value).map(|columns| usize::try_from(columns.clamp(0, MAX_COLUMNS)).unwrap_or(0));
        let switch = || bool::from_value(value);
        match name {
            "nested_indent" => self.indent = columns().unwrap_or(self.indent),
            "width" => self.width = columns().unwrap_or(self.width),
            "has_header" => self.has_header = switch().unwrap_or(self.has_header),
            "separate_rows" => self.separate_rows = switch().unwrap_or(self.separate_rows),
            "row_delimiter" => self.row_delimiter = text().unwrap_or_else(|| self.row_delimiter.clone()),
            "delim" => self.delim = text().unwrap_or_else(|| self.delim.clone()),
            "prefix" => self.prefix = text().unwrap_or_else(|| self.prefix.clone()),
            "suffix" => self.suffix = text().unwrap_or_else(|| self.suffix.clone()),
            "justify" => match value.as_str().map(str::to_ascii_lowercase).as_deref() {
                Some("left") => self.justify = Justify::Left,
                Some("right") => self.justify = Justify::Right,
                Some("center") => self.justify = Justify::Center,
                _ => {}
            },
            "rows_key" => self.rows_key = value.as_str().map(str::to_owned),
            "labels_key" => self.labels_key = value.as_str().map(str::to_owned),
            "title" => self.title = text(),
            _ => {}
        }
    }
}

/// Formats a value; `None` if it contains a list that cannot be shown as rows.
///
/// Rows are mappings (whose keys become the heading), strings (one column), or lists of strings. As in Salt, scalars
/// and lists with rows of different types are not shown.
pub fn render(value: &Value, options: &TableOptions, colours: Colours) -> Option<String> {
    let mut out = Tables { options, colours, lines: Vec::new() };
    if let (Some(title), Some(_)) = (&options.title, &options.rows_key) {
        out.line(options.indent, Colour::White, title, "\n");
    }
    out.value(value, options.indent)?;
    Some(out.lines.join("\n"))
}

struct Tables<'a> {
    options: &'a TableOptions,
    colours: Colours,
    lines: Vec<String>,
}

impl Tables<'_> {
    fn line(&mut self, indent: usize, colour: Colour, text: &str, suffix: &str) {
        self.lines.push(format!("{:indent$}{}{suffix}", "", self.colours.paint(colour, text)));
    }

    fn value(&mut self, value: &Value, indent: usize) -> Option<()> {
        let options = self.options;
        match (value, &options.rows_key) {
            (Value::Map(map), Some(key)) => match map.get(key.as_str()) {
                Some(rows) => self.nested_value(map, rows, indent),
                None => sorted_items(map).into_iter().try_for_each(|(_, value)| self.value(value, indent)),
            },
            (Value::Map(map), None) => sorted_items(map).into_iter().try_for_each(|(key, value)| {
                self.line(indent, Colour::DarkGray, &escape_control(&key.to_string()), ":");
                self.line(indent, Colour::DarkGray, "----------", "");
                self.nested_value(map, value, indent)
            }),
            (Value::List(rows), None) => self.rows(rows, None, indent + 4),
            _ => Some(()),
        }
    }

    /// Formats a value of a mapping.
    fn nested_value(&mut self, map: &Map, value: &Value, indent: usize) -> Option<()> {
        match value {
            Value::List(rows) => {
                let labels = self.options.labels_key.as_deref().and_then(|key| map.get(key));
                self.rows(rows, labels, indent + 4)
            }
            other => self.value(other, indent + 4),
        }
    }

    fn rows(&mut self, rows: &[Value], labels: Option<&Value>, indent: usize) -> Option<()> {
        let Some(first) = rows.first() else { return Some(()) };
        if rows.iter().any(|row| std::mem::discriminant(row) != std::mem::discriminant(first)) {
            return Some(());
        }
        let labels = labels.filter(|labels| labels.is_truthy()).and_then(row_of);
        let heading = labels.or_else(|| first.as_map().map(heading));
        let has_heading = heading.is_some();
        let mut cells: Vec<Vec<String>> = heading.into_iter().collect();
        for row in rows {
            cells.push(row_of(row)?);
        }
        self.table(&cells, has_heading, indent)
    }

    fn table(&mut self, rows: &[Vec<String>], has_heading: bool, indent: usize) -> Option<()> {
        let options = self.options;
        let columns = rows.iter().map(Vec::len).min().filter(|columns| *columns > 0)?;
        let wrapped = |row: &Vec<String>| row.iter().map(|cell| wrap(cell, options.width)).collect();
        let rows: Vec<Vec<Vec<String>>> = rows.iter().map(wrapped).collect();
        let columns_of = |text: &str| text.chars().count();
        let width = |column: usize| {
            let lines = rows.iter().flat_map(|row| &row[column]);
            lines.map(|line| columns_of(line)).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let between = columns_of(&options.delim) * (columns - 1);
        let around = columns_of(&options.prefix) + columns_of(&options.suffix);
        let rule = options.row_delimiter.repeat(around + widths.iter().sum::<usize>() + between);
        if options.separate_rows {
            self.line(indent, Colour::LightGray, &rule, "");
        }
        for (at, row) in rows.iter().enumerate() {
            for number in 0..row.iter().map(Vec::len).max().unwrap_or(0) {
                let cell = |(cell, width): (&Vec<String>, &usize)| {
                    justified(cell.get(number).map_or("", String::as_str), *width, options.justify)
                };
                let line: Vec<String> = row.iter().zip(&widths).map(cell).collect();
                let line = format!("{}{}{}", options.prefix, line.join(&options.delim), options.suffix);
                self.line(indent, Colour::White, &line, "");
            }
            if options.separate_rows || (at == 0 && has_heading && options.has_header) {
                self.line(indent, Colour::LightGray, &rule, "");
            }
        }
        Some(())
    }
}

/// Returns the keys of a row as titles: `last_move` is `Last Move`.
fn heading(row: &Map) -> Vec<String> {
    sorted_items(row).into_iter().map(|(key, _)| title(&key.to_string().replace('_', " "))).collect()
}

/// Returns the cells of a row; `None` if it is empty, or an item of a list is not a string.
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
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut words = text.split(' ');
    let mut out = words.next().unwrap_or_default().to_owned();
    for word in words {
        let columns = |text: &str| text.chars().count();
        let last = out.rsplit('\n').next().map_or(0, columns);
        let next = word.split('\n').next().map_or(0, columns);
        out.push(if last + next >= width { '\n' } else { ' ' });
        out.push_str(word);
    }
    out.split('\n').map(str::to_owned).collect()
}

/// Fills a text with spaces to a width.
fn justified(text: &str, width: usize, justify: Justify) -> String {
    match justify {
        Justify::Center => centred(text, width),
        Justify::Left => format!("{text:<width$}"),
        Justify::Right => format!("{text:>width$}"),
    }
}

/// Centres a text as Python's `str.center` does: a surplus space goes to the left if the width is odd.
fn centred(text: &str, width: usize) -> String {
    let pad = width.saturating_sub(text.chars().count());
    let left = pad / 2 + (pad & width & 1);
    format!("{:left$}{text}{:right$}", "", "", right = pad - left)
}

#[cfg(test)]
mod tests;
