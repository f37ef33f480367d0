//! Lines and columns of bytes in a text.

/// A position in a text, counted from 1; the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// What columns count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Units {
    /// Bytes of UTF-8.
    Bytes,
    /// Units of UTF-16.
    Utf16,
    /// Characters.
    Characters,
}

impl Units {
    /// Returns the length of a text.
    pub fn length(self, text: &str) -> usize {
        match self {
            Units::Bytes => text.len(),
            Units::Utf16 => text.encode_utf16().count(),
            Units::Characters => text.chars().count(),
        }
    }
}

/// The starts of the lines of a text.
#[derive(Debug, Clone)]
pub struct Lines(Vec<usize>);

impl Lines {
    /// Reads the lines of a text.
    pub fn of(text: &str) -> Self {
        Lines(std::iter::once(0).chain(text.match_indices('\n').map(|(end, _)| end + 1)).collect())
    }

    /// Returns the number of lines; a text that ends with a line end has an empty last one.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the byte at which a line starts, counted from 1.
    pub fn start(&self, line: usize) -> Option<usize> {
        self.0.get(line.checked_sub(1)?).copied()
    }

    /// Returns the line of a byte, counted from 0, and its column there, counted from 0 in these units.
    ///
    /// ```
    /// use brine_authoring_model::{Lines, lines::Units};
    ///
    /// let text = "a\nb\u{1F600} c\n";
    /// let lines = Lines::of(text);
    /// assert_eq!(lines.place(text, 8, Units::Utf16), (1, 4));
    /// assert_eq!(lines.place(text, 8, Units::Bytes), (1, 6));
    /// assert_eq!(lines.byte(text, (1, 4), Units::Utf16), 8);
    /// assert_eq!(lines.byte(text, (1, 99), Units::Utf16), 9);
    /// assert_eq!(lines.byte(text, (9, 0), Units::Utf16), text.len());
    /// ```
    pub fn place(&self, text: &str, at: usize, units: Units) -> (usize, usize) {
        let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        let line = self.0.partition_point(|start| *start <= at).saturating_sub(1);
        let start = self.0.get(line).copied().unwrap_or_default();
        (line, units.length(text.get(start..at).unwrap_or_default()))
    }

    /// Returns the byte of a line and column, counted from 0 in these units; the nearest one before what is not in the
    /// text.
    pub fn byte(&self, text: &str, (line, column): (usize, usize), units: Units) -> usize {
        let Some(start) = self.0.get(line).copied().filter(|start| *start <= text.len()) else { return text.len() };
        let end = self.0.get(line + 1).map_or(text.len(), |next| next - 1).min(text.len());
        let inside = text.get(start..end).unwrap_or_default();
        let inside = inside.strip_suffix('\r').unwrap_or(inside);
        let mut count = 0;
        for (at, c) in inside.char_indices() {
            count += units.length(c.encode_utf8(&mut [0; 4]));
            if count > column {
                return start + at;
            }
        }
        start + inside.len()
    }

    /// Returns the position of a byte.
    ///
    /// ```
    /// use brine_authoring_model::{Lines, Position};
    ///
    /// let text = "a\nbü c\n";
    /// assert_eq!(Lines::of(text).position(text, 5), Position { line: 2, column: 3 });
    /// ```
    pub fn position(&self, text: &str, at: usize) -> Position {
        let line = self.0.partition_point(|start| *start <= at);
        let start = self.0.get(line.saturating_sub(1)).copied().unwrap_or_default();
        let column = text.get(start..at.min(text.len())).map_or(1, |before| before.chars().count() + 1);
        Position { line, column }
    }
}
