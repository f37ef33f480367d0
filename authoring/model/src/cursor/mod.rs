//! What may be typed at a position, also in a text that is typed in half: the place in the data or in a tag.
//!
//! The text is read with a mark in the place of the word at the position, completed by a colon or a quote and without
//! what is below it where that is needed.

mod data;
mod template;
#[cfg(test)]
mod tests;

use std::ops::Range;

use brine_jinja::view::Root;

/// A step from the root of the data to a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Into the value of a key.
    Key(String),
    /// Into an item of a list.
    Item,
}

/// What may be typed in a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InTag {
    /// The word of a statement.
    Statement,
    /// A variable, and within the brackets of a call, an argument of this function.
    Variable {
        /// The execution function that is called.
        call: Option<String>,
    },
    /// An execution function; `module.` is written outside of the range if it stands there as an attribute.
    Function {
        /// The module that stands before the range.
        module: Option<String>,
    },
    /// A key of the pillar or the grains.
    Key {
        /// The mapping.
        root: Root,
        /// The keys above.
        above: Vec<String>,
        /// Whether a key below another one is written with a colon.
        is_path: bool,
    },
    /// A filter.
    Filter,
    /// A test.
    Test,
    /// The path of a template.
    Template,
    /// A name of another template.
    Member {
        /// The variable that the template is imported as.
        variable: String,
    },
    /// A name that is imported from a template.
    Imported {
        /// The path of the template.
        template: String,
    },
    /// Nothing that is known.
    Nothing,
}

/// A position at which something is typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cursor {
    /// In the data.
    Data {
        /// The way from the root.
        path: Vec<Step>,
        /// Whether the word is a key with its colon.
        is_key: bool,
        /// Whether other text than white space follows the word on its line, such as a colon.
        is_followed: bool,
        /// Whether the word is within quotes.
        is_quoted: bool,
        /// The bytes of the word that is replaced.
        word: Range<usize>,
    },
    /// In a tag.
    Tag {
        /// What may be typed.
        what: InTag,
        /// The bytes of the word that is replaced.
        word: Range<usize>,
    },
}

impl Cursor {
    /// Returns the place of a position; `None` if nothing is known about it.
    ///
    /// ```
    /// use brine_authoring_model::cursor::{Cursor, Step};
    ///
    /// let text = "web:\n  pkg.ins\n  file.managed: []\n";
    /// let Some(Cursor::Data { path, word, .. }) = Cursor::at(text, 14) else { panic!() };
    /// assert_eq!((path, &text[word]), (vec![Step::Key("web".to_owned())], "pkg.ins"));
    /// ```
    pub fn at(text: &str, at: usize) -> Option<Self> {
        if !text.is_char_boundary(at) {
            return None;
        }
        match template::at(text, at) {
            Some((what, word)) => Some(Cursor::Tag { what, word }),
            None => data::at(text, at),
        }
    }
}
