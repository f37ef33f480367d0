//! The symbols of a file: each id, function, argument, reference, key and word of a template that means something, with
//! its range. [`Occurrence`]s are what editors ask about; [`resolve`] finds where they are defined, [`references`] where
//! they are used.

mod read;
pub mod references;
pub mod resolve;
#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::file::File;

/// What a part of a file means.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Symbol {
    /// A state by its id or name.
    Id {
        /// The id or name.
        name: String,
        /// The module that a requisite demands.
        module: Option<String>,
    },
    /// A state function by its full name.
    State(String),
    /// A reaction of a reactor file: its kind (`local`, `runner`, `wheel`, `caller`) and function.
    Reaction {
        /// The kind.
        kind: String,
        /// The function; empty for reactions without one.
        function: String,
    },
    /// An argument of a state.
    Argument {
        /// The full name of the state function.
        function: String,
        /// The name of the argument.
        name: String,
    },
    /// A requisite keyword.
    Keyword(String),
    /// An SLS by its name as it is written.
    Sls(String),
    /// A pillar SLS by its name as it is written.
    PillarSls(String),
    /// A file below `salt://`, without the scheme.
    Served(String),
    /// A file by its path on the host: a reactor file in a configuration.
    Path(String),
    /// A key of the pillar.
    Pillar(Vec<String>),
    /// A grain.
    Grain(Vec<String>),
    /// A variable or a macro of this template.
    Variable(String),
    /// A variable or a macro of another template.
    Member {
        /// The path of the template as it is written.
        template: String,
        /// The name there.
        name: String,
    },
    /// An execution function.
    Function(String),
    /// A keyword argument of an execution function.
    Parameter {
        /// The full name of the function.
        function: String,
        /// The name of the argument.
        name: String,
    },
    /// A filter of Jinja.
    Filter(String),
    /// A test of Jinja.
    Test(String),
}

/// A symbol at a place of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// The bytes, without quotes.
    pub span: Range<usize>,
    /// What it means.
    pub symbol: Symbol,
    /// Whether it is defined here.
    pub is_definition: bool,
}

impl File {
    /// Returns all symbols of the file, sorted by place.
    pub fn symbols(&self) -> Vec<Occurrence> {
        read::symbols(self)
    }

    /// Returns the innermost symbol at a position, or the one that ends there.
    pub fn symbol_at(&self, at: usize) -> Option<Occurrence> {
        let around =
            self.symbols().into_iter().filter(|occurrence| occurrence.span.start <= at && at <= occurrence.span.end);
        // Of two that touch, the one that begins at the position.
        around.min_by_key(|occurrence| (at == occurrence.span.end, occurrence.span.len()))
    }
}
