//! Positions of the protocol: lines and columns in the units that client and server agreed on.

use std::ops::Range;

use brine_authoring_model::Lines;
use brine_authoring_model::lines::Units;
use lsp_types::{Position, Range as Lsp};

/// Returns the position of a byte.
pub(crate) fn position(text: &str, lines: &Lines, at: usize, units: Units) -> Position {
    let (line, column) = lines.place(text, at, units);
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Position { line: number(line), character: number(column) }
}

/// Returns the range of bytes.
pub(crate) fn range(text: &str, lines: &Lines, span: &Range<usize>, units: Units) -> Lsp {
    let start = position(text, lines, span.start, units);
    Lsp { start, end: position(text, lines, span.end.max(span.start), units) }
}

/// Returns the byte of a position.
pub(crate) fn byte(text: &str, lines: &Lines, at: Position, units: Units) -> usize {
    lines.byte(text, (at.line as usize, at.character as usize), units)
}
