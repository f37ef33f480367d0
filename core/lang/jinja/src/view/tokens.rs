//! The tokens of tags, for tools that colour and complete them.

use std::ops::Range;

use super::{Role, View};
use crate::syntax::tokens::{Ending, tokenize};

pub use crate::syntax::tokens::Kind as TokenKind;

/// The beginning of a tag, up to the position at which it is typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Half {
    /// Whether it is a statement, `{% %}`.
    pub is_statement: bool,
    /// The tokens before the position.
    pub tokens: Vec<(TokenKind, Range<usize>)>,
    /// The first byte in the string that is open at the position.
    pub string: Option<usize>,
}

/// Returns the tag in which a position is; `None` in text and in comments.
///
/// ```
/// use brine_jinja::view::half;
///
/// let tag = half("a: {{ salt['pkg.", 16).unwrap();
/// assert_eq!((tag.tokens.len(), tag.string), (2, Some(12)));
/// assert_eq!(half("a: {{ b }} c", 11), None);
/// ```
pub fn half(source: &str, at: usize) -> Option<Half> {
    let before = source.get(..at)?;
    let start = before.rfind("{{").max(before.rfind("{%"))?;
    if before.rfind("{#").is_some_and(|comment| !before[comment..].contains("#}") && comment < start) {
        return None;
    }
    let is_statement = before[start..].starts_with("{%");
    let (tokens, ending) = tokenize(before, start, if is_statement { "%}" } else { "}}" });
    let string = match ending {
        Ending::Closed(_) => return None,
        Ending::Bad { at, .. } if before[at..].starts_with(['\'', '"']) => Some(at + 1),
        // The closing delimiter is typed in part.
        Ending::Bad { at, .. } if at + 1 < before.len() => return None,
        Ending::Bad { .. } | Ending::Unfinished => None,
    };
    let tokens = tokens.into_iter().map(|token| (token.kind, token.span.start..token.span.end)).collect();
    Some(Half { is_statement, tokens, string })
}

impl View {
    /// Returns the tokens of all tags, in order.
    pub fn tokens(&self) -> impl Iterator<Item = (TokenKind, Range<usize>)> {
        let tokens = self.document.tags.iter().flat_map(|tag| &tag.tokens);
        tokens.map(|token| (token.kind, token.span.start..token.span.end))
    }

    /// Returns the ranges of all blocks, from the start of the opening tag to the end of the closing one.
    pub fn blocks(&self) -> Vec<Range<usize>> {
        let (mut open, mut blocks) = (Vec::new(), Vec::new());
        for (tag, role) in self.document.tags.iter().zip(&self.roles) {
            match role {
                Role::If { .. } | Role::Open | Role::Hide | Role::Replace(_) => open.push(tag.span.start),
                Role::EndIf | Role::Close => blocks.extend(open.pop().map(|start| start..tag.span.end)),
                Role::Raw => blocks.push(tag.span.start..tag.span.end),
                Role::Print(_) | Role::Else | Role::ElseOfLoop | Role::Nothing => {}
            }
        }
        blocks
    }
}
