//! The text of a template for one choice of branches, with placeholders for expressions, and its map to the source.

use std::ops::Range;

use super::{Role, View};

/// The first placeholder: the characters of a private plane, which YAML accepts and nobody writes.
const FIRST: u32 = 0xF_0000;
/// The number of placeholders.
const COUNT: usize = 0xFFFD;

/// The text of a template for one choice of branches.
#[derive(Debug, Clone, Default)]
pub struct Skeleton {
    /// The text; a placeholder is one character.
    pub text: String,
    /// The copies of the source and the placeholders, in order: start in the text, and range in the source.
    pieces: Vec<(usize, Range<usize>)>,
}

/// Whether a text has a placeholder: it is known only when the template is run.
pub fn is_dynamic(text: &str) -> bool {
    placeholders(text).next().is_some()
}

/// Returns the expressions whose placeholders are in a text, by their index.
pub fn placeholders(text: &str) -> impl Iterator<Item = usize> {
    // All placeholders begin with this byte, as do few other characters.
    let may = text.as_bytes().contains(&0xF3);
    let indexes = text.chars().filter_map(|c| (c as u32).checked_sub(FIRST)).map(|index| index as usize);
    indexes.filter(|index| *index < COUNT).filter(move |_| may)
}

impl Skeleton {
    /// Returns the position in the source of a position in the text.
    pub fn source(&self, at: usize) -> usize {
        let after = self.pieces.partition_point(|(start, _)| *start <= at);
        let Some((start, range)) = after.checked_sub(1).and_then(|index| self.pieces.get(index)) else { return 0 };
        (range.start + (at - start)).min(range.end)
    }

    /// Returns the range in the source of a range in the text.
    pub fn range(&self, span: &Range<usize>) -> Range<usize> {
        let start = self.source(span.start);
        if span.is_empty() {
            return start..start;
        }
        // The end of the last character, which may be a placeholder for a whole tag.
        let after = self.pieces.partition_point(|(begin, _)| *begin < span.end);
        let end = match after.checked_sub(1).and_then(|index| self.pieces.get(index)) {
            Some((begin, range)) => {
                let is_placeholder =
                    self.text[*begin..].chars().next().is_some_and(|c| is_dynamic(c.encode_utf8(&mut [0; 4])));
                if is_placeholder { range.end } else { (range.start + (span.end - begin)).min(range.end) }
            }
            None => start,
        };
        start..end.max(start)
    }

    /// Whether a range of the source is copied to the text as it is.
    pub fn writes(&self, span: &Range<usize>) -> bool {
        let is_copied =
            |start: usize| self.text[start..].chars().next().is_some_and(|c| !is_dynamic(c.encode_utf8(&mut [0; 4])));
        let mut pieces = self.pieces.iter();
        pieces.any(|(start, range)| range.start <= span.start && span.end <= range.end && is_copied(*start))
    }

    fn literal(&mut self, source: &str, range: Range<usize>) {
        if !range.is_empty() {
            self.pieces.push((self.text.len(), range.clone()));
            self.text.push_str(&source[range]);
        }
    }

    fn placeholder(&mut self, index: usize, range: Range<usize>) {
        self.pieces.push((self.text.len(), range));
        let code = FIRST + u32::try_from(index.min(COUNT - 1)).unwrap_or_default();
        self.text.extend(char::from_u32(code));
    }
}

/// An open block while a skeleton is written.
struct Frame {
    /// Whether its text is written now.
    is_shown: bool,
    /// For a condition: the current branch and the chosen one.
    branch: Option<(usize, usize)>,
}

impl View {
    /// Returns the text for a variant: every condition takes the branch of this number, or its last one. Bodies of loops
    /// are written once. Without structure, expressions that may write more than a scalar are left out.
    pub fn skeleton(&self, variant: usize, without_structure: bool) -> Skeleton {
        let source = self.document.source();
        let mut out = Skeleton::default();
        let mut frames: Vec<Frame> = Vec::new();
        let is_shown = |frames: &[Frame]| frames.iter().all(|frame| frame.is_shown);
        let mut at = 0;
        for (tag, role) in self.document.tags.iter().zip(&self.roles) {
            if is_shown(&frames) {
                self.text(&mut out, at, tag.span.start);
            }
            let span = tag.span.start..tag.span.end;
            at = tag.span.end;
            match *role {
                Role::Print(index) => {
                    let is_left_out = without_structure && self.expressions[index].is_structural;
                    if is_shown(&frames) && !is_left_out {
                        out.placeholder(index, span);
                    }
                }
                Role::Raw if is_shown(&frames) => {
                    let text = &source[span.clone()];
                    let start = text.find("%}").map_or(span.end, |end| span.start + end + 2);
                    let end = text.rfind("{%").map_or(span.end, |end| span.start + end);
                    out.literal(source, start..end.max(start));
                }
                Role::If { branches } => {
                    let chosen = variant.min(branches - 1);
                    frames.push(Frame { is_shown: chosen == 0, branch: Some((0, chosen)) });
                }
                Role::Else => {
                    if let Some(Frame { is_shown, branch: Some((current, chosen)) }) = frames.last_mut() {
                        *current += 1;
                        *is_shown = current == chosen;
                    }
                }
                Role::Open => frames.push(Frame { is_shown: true, branch: None }),
                Role::Hide => frames.push(Frame { is_shown: false, branch: None }),
                Role::Replace(index) => {
                    if is_shown(&frames) && !without_structure {
                        out.placeholder(index, span);
                    }
                    frames.push(Frame { is_shown: false, branch: None });
                }
                Role::ElseOfLoop => {
                    if let Some(frame) = frames.last_mut() {
                        frame.is_shown = false;
                    }
                }
                Role::EndIf | Role::Close => _ = frames.pop(),
                Role::Raw | Role::Nothing => {}
            }
        }
        if is_shown(&frames) {
            self.text(&mut out, at, source.len());
        }
        out
    }

    /// Writes the text between two tags, without comments and the whitespace that tags remove.
    fn text(&self, out: &mut Skeleton, start: usize, end: usize) {
        let source = self.document.source();
        let mut at = start;
        let mut is_trimmed = is_trimming_end(source, start);
        while at <= end {
            let comment = source[at..end].find("{#").map(|begin| at + begin);
            let stop = comment.unwrap_or(end);
            let mut range = at..stop;
            let follows = source.get(stop + 2..).is_some_and(|rest| rest.starts_with('-')) && stop < source.len();
            if follows {
                range.end = range.start + source[range.clone()].trim_end().len();
            }
            if is_trimmed {
                range.start = range.end - source[range.clone()].trim_start().len();
            }
            out.literal(source, range);
            let Some(comment) = comment else { break };
            let Some(length) = source[comment..end].find("#}") else { break };
            at = comment + length + 2;
            is_trimmed = is_trimming_end(source, at);
        }
    }
}

/// Whether the tag or comment that ends here removes the whitespace after it.
fn is_trimming_end(source: &str, end: usize) -> bool {
    ["-%}", "-}}", "-#}"].iter().any(|closing| source[..end].ends_with(closing))
}
