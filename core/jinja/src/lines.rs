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
mod tests {

    use crate::{Context, Host, Template};
    use brine_value::map;

    #[test]
    fn output_lines_map_to_template_lines() {
        let source = "{% set n = 2 %}\n{% macro m(x) %}\n{{ x }}: 1\n{% endmacro %}\nfirst: 1\n{% for i in range(n) %}\nitem{{ i }}:\n  {{ text }}\n{% endfor %}\n{{ m('of_macro') }}\nlast: [\n";
        let template = Template::compile("t", source).unwrap();
        let mut context = Context::new("base");
        context.set_all(&map! {"text" => "one\ntwo"});
        let host = Host::new();
        let (text, lines) = template.render_mapped(&context, &host).unwrap();
        let found = |wanted: &str, nth: usize| {
            let (at, _) = text.lines().enumerate().filter(|(_, line)| line.trim() == wanted).nth(nth).unwrap();
            lines.line(&text, at + 1)
        };
        for (wanted, nth, expected) in [
            ("first: 1", 0, 5),
            ("item0:", 0, 7),
            ("item1:", 0, 7),
            ("one", 0, 8),
            ("two", 1, 8),
            ("of_macro: 1", 0, 10),
            ("last: [", 0, 11),
        ] {
            assert_eq!(found(wanted, nth), Some(expected), "{wanted}\n{text}");
        }
        assert_eq!((lines.line(&text, 0), lines.line(&text, 1000)), (None, None));
    }

    #[test]
    fn the_options_line_counts() {
        let host = Host::new();
        let source = "#jinja2: {\"trim_blocks\": true}\n{% if true %}\na: 1\n{% endif %}\n";
        let (text, lines) =
            Template::compile("t", source).unwrap().render_mapped(&Context::new("base"), &host).unwrap();
        assert_eq!((text.lines().next(), lines.line(&text, 1)), (Some("a: 1"), Some(3)));
    }

    #[test]
    fn literal_text_keeps_its_lines() {
        let host = Host::new();
        let (text, lines) = Template::compile("t", "a: 1\nb: 2\n\n  c: 3")
            .unwrap()
            .render_mapped(&Context::new("base"), &host)
            .unwrap();
        assert_eq!(
            (1..=4).map(|line| lines.line(&text, line)).collect::<Vec<_>>(),
            [Some(1), Some(2), Some(3), Some(4)]
        );
    }
}
