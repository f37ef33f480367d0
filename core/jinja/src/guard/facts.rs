//! What one template does with its names: which name gets what from which others, and what each tag prints. `reader`
//! reads it from the syntax tree. Nothing here knows which names are untrusted; `solve` does.

use std::collections::BTreeSet;
use std::sync::Arc;

/// The name of what nobody can vouch for.
pub(super) const ANY: &str = "*";

/// The name of all that imported and included templates print.
pub(super) const INCLUDED: &str = "*included";

/// The language of an encoder's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoder {
    Yaml,
    Json,
}

pub(super) type Names = BTreeSet<String>;

/// What is known of a name from one of its assignments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Assigned {
    /// Nothing.
    Plain,
    /// It holds the output of an encoder.
    Encoded(Encoder),
    /// It holds text that a block of the template printed.
    Captured,
    /// It is a macro.
    Macro,
}

/// What a tag prints that has nothing around it that could change it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Direct {
    /// An expression with something around it.
    No,
    /// The output of an encoder.
    Encoded(Encoder),
    /// A variable.
    Name(String),
    /// What a macro of this name prints.
    Macro(String),
    /// What the engine itself puts in: `super()`, `loop(...)`, `self.block()`.
    Engine,
}

/// One tag that prints.
#[derive(Debug, Clone)]
pub(super) struct Emit {
    pub of: Names,
    pub direct: Direct,
    pub line: usize,
    /// The tag as its author wrote it.
    pub tag: Arc<str>,
}

/// What one template does.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// Tells it from others in one process.
    pub id: u64,
    /// A name, and what may come into it.
    pub(super) flows: Vec<(String, Names)>,
    /// What may be put into the things behind these names.
    pub(super) changes: Vec<(Names, Names)>,
    pub(super) assigned: Vec<(String, Assigned)>,
    /// Macros and their parameters.
    pub(super) macros: Vec<(String, Vec<String>)>,
    /// Calls by name, or of what is not known, with what their arguments hold.
    pub(super) calls: Vec<(Option<String>, Names)>,
    /// Names that are used for more than being called.
    pub(super) handed_on: Names,
    /// What the names of other templates come from.
    pub(super) imports: Vec<Names>,
    /// What it prints at its top.
    pub(super) top: Names,
    /// Its tags that print, and its filter blocks, in their order.
    pub(super) emits: Vec<Emit>,
    /// What it does that cannot be followed.
    pub(super) refused: Option<String>,
}
