//! Maps lines of rendered text to lines of the template: errors of the next renderer (YAML, JSON) name the line that an
//! author can change.
//!
//! The engine writes literal text as slices of its source, so the address of a slice is its position there, and the
//! source map leads on to the template. All else (expressions, macros, included templates) belongs to the literal text
//! before it.

use std::ops::Range;
use std::sync::Arc;

use super::syntax::{Document, SourceMap};

/// The maximum number of recorded pieces; text after them has no line.
const MAX_PIECES: usize = 65_536;

/// The source locations of a render's output.
#[derive(Debug, Clone, Default)]
pub struct SourceLines {
    template: Option<(Arc<Document>, Arc<SourceMap>)>,
    /// In the order of the output.
    pieces: Vec<Piece>,
}

/// Literal text: its positions in the output and in the engine's source, and its length, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    output: usize,
    source: usize,
    length: usize,
}

/// Records literal text while a template is rendered.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    /// The addresses of the engine's source.
    addresses: Range<usize>,
    pieces: Vec<Piece>,
}

impl Recorder {
    /// Creates a recorder for a template that the engine renders from this source.
    pub(super) fn new(source: &str) -> Self {
        let start = source.as_ptr().addr();
        Recorder { addresses: start..start + source.len(), pieces: Vec::new() }
    }

    /// Records text that is written at a position of the output.
    pub(super) fn wrote(&mut self, output: usize, text: &[u8]) {
        let start = text.as_ptr().addr();
        if !text.is_empty()
            && self.addresses.contains(&start)
            && start + text.len() <= self.addresses.end
            && self.pieces.len() < MAX_PIECES
        {
            self.pieces.push(Piece { output, source: start - self.addresses.start, length: text.len() });
        }
    }

    /// Returns the lines of a template.
    pub(super) fn finish(self, document: &Arc<Document>, map: &Arc<SourceMap>) -> SourceLines {
        SourceLines { template: Some((Arc::clone(document), Arc::clone(map))), pieces: self.pieces }
    }
}

impl SourceLines {
    /// Returns the line of the template that a line of the output comes from; both count from 1.
    pub fn line(&self, output: &str, line: usize) -> Option<usize> {
        let (document, map) = self.template.as_ref()?;
        let text = output.lines().nth(line.checked_sub(1)?)?;
        let start = text.as_ptr().addr() - output.as_ptr().addr();
        let at = start + (text.len() - text.trim_start().len());
        let after = self.pieces.partition_point(|piece| piece.output <= at);
        let piece = self.pieces.get(after.checked_sub(1)?)?;
        // An expression follows the literal text before it.
        let place = piece.source + (at - piece.output).min(piece.length);
        Some(document.line(map.source(place)))
    }
}

#[cfg(test)]
mod tests;
