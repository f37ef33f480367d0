//! Lines and columns of bytes in a text.

/// A position in a text, counted from 1; the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
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
