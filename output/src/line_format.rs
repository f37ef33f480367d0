//! The custom format of terse states in `state_tabular`: replacement fields in braces, as in Python's `str.format`.

use brine_value::{FromValue, Map, Value};

use crate::escape::escape_control;

/// A parsed format.
#[derive(Debug, Clone, PartialEq)]
pub struct LineFormat(Vec<Piece>);

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Text(String),
    Field(Field),
}

/// A field: `{4:7}` or `{6[duration]!s:>7}`.
#[derive(Debug, Clone, PartialEq)]
struct Field {
    index: usize,
    /// The key in the state's return.
    key: Option<String>,
    fill: char,
    /// `<`, `>` or `^`; by default numbers are aligned to the right and text to the left.
    align: Option<char>,
    width: usize,
    precision: Option<usize>,
}

/// The index of the state's return among the fields.
const DATA: usize = 6;
/// The maximum width of a field.
const MAX_WIDTH: usize = 1000;

impl LineFormat {
    /// Parses a format. Returns `None` if it is malformed or has an unknown field.
    pub fn parse(text: &str) -> Option<Self> {
        let (mut pieces, mut rest, mut numbered) = (Vec::new(), text, 0);
        let mut literal = String::new();
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            let brace = rest.get(at..=at)?;
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                literal.push_str(brace);
                rest = after;
                continue;
            }
            let (field, after) = rest.split_once('}').filter(|_| brace == "{")?;
            pieces.push(Piece::Text(std::mem::take(&mut literal)));
            pieces.push(Piece::Field(Field::parse(field, &mut numbered)?));
            rest = after;
        }
        literal.push_str(rest);
        pieces.push(Piece::Text(literal));
        Some(LineFormat(pieces))
    }

    /// Formats a state. The fields are the colour, name, module, function and result of the state, the end of the
    /// colour, and the state's return, accessed by key.
    pub fn format(&self, fields: [&str; DATA], data: &Map) -> String {
        let mut line = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => line.push_str(text),
                Piece::Field(field) => match &field.key {
                    Some(key) => field.write(data.get(key.as_str()).unwrap_or(&Value::Nil), &mut line),
                    None => {
                        field.pad(field.cut(fields.get(field.index).copied().unwrap_or_default()), false, &mut line);
                    }
                },
            }
        }
        line
    }
}

impl Field {
    /// Parses the text between the braces. `numbered` counts the fields without an index.
    fn parse(text: &str, numbered: &mut usize) -> Option<Self> {
        let (name, spec) = text.split_once(':').unwrap_or((text, ""));
        let name = name.strip_suffix("!s").or_else(|| name.strip_suffix("!r")).unwrap_or(name);
        let (index, key) = match name.split_once('[') {
            Some((index, key)) => (index, Some(key.strip_suffix(']')?.to_owned())),
            None => (name, None),
        };
        let index = if index.is_empty() {
            *numbered += 1;
            *numbered - 1
        } else {
            index.parse().ok()?
        };
        if index > DATA || (index == DATA) != key.is_some() {
            return None;
        }
        let mut field = Field { index, key, fill: ' ', align: None, width: 0, precision: None };
        let is_align = |letter: &char| "<>^".contains(*letter);
        let letters: Vec<char> = spec.chars().collect();
        let rest = match letters[..] {
            [fill, align, ..] if is_align(&align) => {
                (field.fill, field.align) = (fill, Some(align));
                &letters[2..]
            }
            [align, ..] if is_align(&align) => {
                field.align = Some(align);
                &letters[1..]
            }
            _ => &letters[..],
        };
        let rest: String = rest.iter().collect();
        let rest = rest.strip_suffix(['s', 'd', 'f']).unwrap_or(&rest);
        let (width, precision) = rest.split_once('.').map_or((rest, None), |(width, digits)| (width, Some(digits)));
        let number = |digits: &str| digits.parse().ok().filter(|number| *number <= MAX_WIDTH);
        if !width.is_empty() {
            field.width = number(width)?;
        }
        if let Some(digits) = precision {
            field.precision = Some(number(digits)?);
        }
        Some(field)
    }

    /// Truncates a text to the precision.
    fn cut<'a>(&self, text: &'a str) -> &'a str {
        let end = self.precision.and_then(|length| text.char_indices().nth(length));
        end.map_or(text, |(end, _)| &text[..end])
    }

    fn write(&self, value: &Value, line: &mut String) {
        let is_number = matches!(value, Value::Int(_) | Value::Float(_));
        let text = match (f64::from_value(value).filter(|_| is_number), self.precision) {
            (Some(number), Some(digits)) => format!("{number:.digits$}"),
            _ => self.cut(&value.to_string()).to_owned(),
        };
        self.pad(&escape_control(&text), is_number, line);
    }

    /// Writes a text, padded to the width of the field.
    fn pad(&self, text: &str, is_number: bool, line: &mut String) {
        let missing = self.width.saturating_sub(text.chars().count());
        let before = match self.align {
            Some('>') => missing,
            Some('^') => missing / 2,
            None if is_number => missing,
            Some(_) | None => 0,
        };
        line.extend(std::iter::repeat_n(self.fill, before));
        line.push_str(text);
        line.extend(std::iter::repeat_n(self.fill, missing - before));
    }
}

#[cfg(test)]
mod tests {
    use brine_value::map;

    use super::*;

    #[test]
    fn fields_are_aligned_as_by_python() {
        let data = map! {"duration" => 1.25, "comment" => "done", "__run_num__" => 3};
        for (format, line) in [
            ("{0}{4:8}|{2}.{3} {1}{5}", "<Clean   |pkg.installed vim>"),
            ("{} {} {}", "< vim pkg"),
            ("{6[duration]!s:>7} ms {6[__run_num__]:4}|{6[nope]}|", "   1.25 ms    3|None|"),
            ("{6[duration]:.1f} {6[comment]:*^8.3} {2:_<5}{{}}", "1.2 **don*** pkg__{}"),
            ("plain", "plain"),
        ] {
            let parsed = LineFormat::parse(format).unwrap_or_else(|| panic!("{format}"));
            assert_eq!(parsed.format(["<", "vim", "pkg", "installed", "Clean", ">"], &data), line, "{format}");
        }
    }

    #[test]
    fn invalid_formats_are_rejected() {
        for format in ["{", "}", "{7}", "{name}", "{6}", "{0[x]}", "{1:x}", "{1:9999999}", "{1", "{6[x}", "{{}"] {
            assert_eq!(LineFormat::parse(format), None, "{format}");
        }
    }
}
