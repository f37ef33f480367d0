//! A static view of a template for tools: what it refers to, with ranges in the source, and the text that it would give,
//! with conditions decided statically.
//!
//! | part | answers |
//! |---|---|
//! | [`View::facts`] | variables, macros, imports, functions, filters, tests and look-ups, in the order of the source |
//! | [`View::skeleton`] | the text for one choice of branches, with placeholders for expressions |
//! | [`View::branches`] | the branches in which a position is |
//! | [`View::tokens`] | the words, numbers, strings and operators in tags |
//! | [`half`](fn@half) | the tokens of a tag that is still being typed |
//!
//! Nothing is run.
//!
//! # Examples
//! ```
//! use brine_jinja::view::View;
//!
//! let view = View::of("{% if a %}x: {{ b }}\n{% else %}y: 1\n{% endif %}");
//! assert_eq!(view.variants(), 2);
//! assert_eq!(view.skeleton(0, false).text, "x: \u{F0000}\n");
//! assert_eq!(view.skeleton(1, false).text, "y: 1\n");
//! assert_eq!(view.branches(12), [(0, 0)]);
//! ```

mod facts;
mod skeleton;
#[cfg(test)]
mod tests;
mod tokens;

use std::ops::Range;

use crate::environment::known_names;
use crate::syntax::Document;
use crate::syntax::nodes::{Body, Tag};

pub use facts::{Fact, Inclusion, Kind, Lookups, Root};
pub use skeleton::{Skeleton, is_dynamic, placeholders};
pub use tokens::{Half, TokenKind, half};

/// The maximum number of variants of a template.
pub const MAX_VARIANTS: usize = 6;

/// A template that was parsed, not run.
#[derive(Debug)]
pub struct View {
    document: Document,
    /// What the template refers to, in the order of the source.
    pub facts: Vec<Fact>,
    /// The printed expressions; a placeholder in a skeleton is the index of one.
    pub expressions: Vec<Expression>,
    /// The role of each tag.
    roles: Vec<Role>,
    branches: Vec<Branch>,
    /// Whether the text has parts that other templates write: `include`, `extends`, `block`.
    pub is_open: bool,
    variants: usize,
}

/// An expression that is printed, or a block whose text is known only when it is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    /// The tag.
    pub span: Range<usize>,
    /// The expression in it.
    pub inner: Range<usize>,
    /// Whether it may write more than one scalar: it is alone on its line, or encodes data.
    pub is_structural: bool,
}

/// A branch of a condition: the range of its text.
#[derive(Debug, Clone)]
struct Branch {
    of: usize,
    index: usize,
    span: Range<usize>,
}

/// The part of a tag in the structure of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Prints the expression of this index.
    Print(usize),
    Raw,
    /// Opens a condition with this number of branches, one of which may be empty.
    If {
        branches: usize,
    },
    /// Begins the next branch.
    Else,
    EndIf,
    /// Opens a block that is written.
    Open,
    /// Opens a block that is not written.
    Hide,
    /// Opens a block of which the expression of this index is written.
    Replace(usize),
    /// The alternative of a loop, which is not written.
    ElseOfLoop,
    /// Closes a block.
    Close,
    /// Writes nothing.
    Nothing,
}

impl View {
    /// Parses a template.
    pub fn of(source: &str) -> Self {
        Self::with_lookups(source, &[])
    }

    /// Parses a template; calls of these functions are look-ups.
    pub fn with_lookups(source: &str, lookups: Lookups) -> Self {
        let first = source.split_inclusive('\n').next().unwrap_or_default();
        let options = first.starts_with("#jinja2:").then_some((0, first.len()));
        let document = Document::parse(source, options, &known_names());
        let facts = facts::of(&document, lookups);
        let mut view = View {
            document,
            facts,
            expressions: Vec::new(),
            roles: Vec::new(),
            branches: Vec::new(),
            is_open: false,
            variants: 1,
        };
        view.read_blocks();
        view
    }

    /// Returns the source.
    pub fn source(&self) -> &str {
        self.document.source()
    }

    /// Returns Jinja's message for a template that cannot be parsed, and its position.
    pub fn error(&self) -> Option<(&str, usize)> {
        self.document.syntax_error()
    }

    /// Whether the template has tags.
    pub fn has_tags(&self) -> bool {
        !self.document.tags.is_empty()
    }

    /// Returns the ranges of all tags.
    pub fn tags(&self) -> impl Iterator<Item = Range<usize>> {
        self.document.tags.iter().map(|tag| tag.span.start..tag.span.end)
    }

    /// Returns the number of variants: the largest number of branches of a condition, bounded.
    pub fn variants(&self) -> usize {
        self.variants
    }

    /// Returns the branches in which a position is, from the outermost: the number of the condition and of the branch.
    /// Two positions with different branches of one condition are never in the same text.
    pub fn branches(&self, at: usize) -> Vec<(usize, usize)> {
        let inside = self.branches.iter().filter(|branch| branch.span.contains(&at));
        inside.map(|branch| (branch.of, branch.index)).collect()
    }

    /// Whether a text with one of these positions always has the other: the branches of one begin with those of the
    /// other.
    pub fn are_together(&self, one: usize, other: usize) -> bool {
        let (one, other) = (self.branches(one), self.branches(other));
        one.iter().zip(&other).all(|(one, other)| one == other)
    }

    fn read_blocks(&mut self) {
        // The open blocks: the tag, and for a condition its number and the start of the branch.
        type OpenBlock = (usize, Option<(usize, usize, usize)>);
        let mut open: Vec<OpenBlock> = Vec::new();
        let mut conditions = 0;
        let mut counts: Vec<usize> = Vec::new();
        for (number, tag) in self.document.tags.iter().enumerate() {
            let word = self.document.word(tag);
            let role = match &tag.body {
                Body::Print(printed) => {
                    let inner = printed.as_ref().map_or(tag.span, |printed| printed.span);
                    let is_structural = is_structural(self.document.source(), tag, inner.of(self.document.source()));
                    self.expressions.push(Expression {
                        span: tag.span.start..tag.span.end,
                        inner: inner.start..inner.end,
                        is_structural,
                    });
                    Role::Print(self.expressions.len() - 1)
                }
                Body::Raw => Role::Raw,
                Body::Unfinished => Role::Nothing,
                Body::Block(statement) => match word {
                    "if" => {
                        open.push((number, Some((conditions, 0, tag.span.end))));
                        conditions += 1;
                        counts.push(1);
                        Role::If { branches: 1 }
                    }
                    "elif" | "else" => match open.last_mut() {
                        Some((_, Some((of, index, start)))) => {
                            self.branches.push(Branch { of: *of, index: *index, span: *start..tag.span.start });
                            *index += 1;
                            *start = tag.span.end;
                            counts[*of] += 1;
                            if word == "else" {
                                // No branch is empty.
                                counts[*of] |= 1 << 16;
                            }
                            Role::Else
                        }
                        Some((_, None)) => Role::ElseOfLoop,
                        None => Role::Nothing,
                    },
                    "endif" => match open.pop() {
                        Some((opened, Some((of, index, start)))) => {
                            self.branches.push(Branch { of, index, span: start..tag.span.start });
                            let is_complete = counts[of] >= 1 << 16;
                            let branches = (counts[of] & 0xffff) + usize::from(!is_complete);
                            self.roles[opened] = Role::If { branches };
                            self.variants = self.variants.max(branches.min(MAX_VARIANTS));
                            Role::EndIf
                        }
                        _ => Role::Nothing,
                    },
                    "include" | "extends" => {
                        self.is_open = true;
                        Role::Nothing
                    }
                    "for" | "with" | "block" | "profile" => {
                        open.push((number, None));
                        Role::Open
                    }
                    "macro" | "load_yaml" | "load_json" | "load_text" => {
                        open.push((number, None));
                        Role::Hide
                    }
                    "set" if matches!(statement, Some(crate::syntax::nodes::Statement::Capture { .. })) => {
                        open.push((number, None));
                        Role::Hide
                    }
                    "call" | "filter" => {
                        open.push((number, None));
                        let span = tag.span.start..tag.span.end;
                        self.expressions.push(Expression { inner: span.clone(), span, is_structural: true });
                        Role::Replace(self.expressions.len() - 1)
                    }
                    word if word.starts_with("end") => {
                        open.pop();
                        Role::Close
                    }
                    _ => Role::Nothing,
                },
            };
            self.roles.push(role);
        }
        self.branches.sort_by_key(|branch| (branch.span.start, std::cmp::Reverse(branch.span.end)));
    }
}

/// Whether a printed expression may be more than one scalar.
fn is_structural(source: &str, tag: &Tag, expression: &str) -> bool {
    let start = source[..tag.span.start].rfind('\n').map_or(0, |end| end + 1);
    let end = source[tag.span.end..].find('\n').map_or(source.len(), |end| tag.span.end + end);
    let (before, after) = (&source[start..tag.span.start], &source[tag.span.end..end]);
    let is_quiet = |text: &str| text.trim().is_empty() || text.trim_start().starts_with(['{', '#']);
    let encodes = expression.rsplit('|').next().map(str::trim).is_some_and(|last| {
        expression.contains('|')
            && ["yaml", "json", "tojson", "indent", "dict_to_sls_yaml_params"].iter().any(|name| {
                last.strip_prefix(name).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
            })
    });
    encodes || is_quiet(before) && is_quiet(after)
}
