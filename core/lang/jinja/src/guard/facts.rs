//! The data flow of one template: the sources of each name, and the output of each tag. `reader` reads it from the
//! syntax tree. `solve` decides which names are untrusted.

use std::collections::BTreeSet;
use std::sync::Arc;

/// The source of values of unknown origin.
pub(super) const ANY: &str = "*";

/// The source of all output of imported and included templates.
pub(super) const INCLUDED: &str = "*included";

/// The language of an encoder's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoder {
    Yaml,
    Json,
}

pub(super) type Names = BTreeSet<String>;

/// The kind of an assigned value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Assigned {
    /// No special kind.
    Plain,
    /// The output of an encoder.
    Encoded(Encoder),
    /// Text captured from a block of the template.
    Captured,
    /// A macro.
    Macro,
}

/// The value of a tag that prints it directly, with no other output around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Direct {
    /// An expression with something around it.
    No,
    /// The output of an encoder.
    Encoded(Encoder),
    /// A variable.
    Name(String),
    /// The output of a macro of this name.
    Macro(String),
    /// Output of the engine itself: `super()`, `loop(...)`, `self.block()`.
    Engine,
}

/// One printing tag.
#[derive(Debug, Clone)]
pub(super) struct Emit {
    pub of: Names,
    pub direct: Direct,
    pub line: usize,
    /// The tag's source.
    pub tag: Arc<str>,
}

/// The data flow of one template.
#[derive(Debug, Default)]
pub(crate) struct DataFlow {
    /// A process-wide unique id.
    pub id: u64,
    /// Names with the sources of their values.
    pub(super) flows: Vec<(String, Names)>,
    /// Names of objects that are changed in place, with the sources of the new content.
    pub(super) changes: Vec<(Names, Names)>,
    pub(super) assigned: Vec<(String, Assigned)>,
    /// Macros and their parameters.
    pub(super) macros: Vec<(String, Vec<String>)>,
    /// Calls by name, or of unknown functions, with the sources of their arguments.
    pub(super) calls: Vec<(Option<String>, Names)>,
    /// Names that are used other than in calls: a macro among them may be called with any argument.
    pub(super) referenced: Names,
    /// The sources of the names of other templates.
    pub(super) imports: Vec<Names>,
    /// The sources of its output outside of blocks.
    pub(super) top: Names,
    /// Its printing tags and filter blocks, in order.
    pub(super) emits: Vec<Emit>,
    /// The globals of the engine among its names.
    pub(super) globals: Names,
    /// A construct that cannot be tracked.
    pub(super) refused: Option<String>,
}

impl DataFlow {
    /// Returns all names that are sources of values.
    pub(super) fn mentioned(&self) -> impl Iterator<Item = &str> {
        let flows = self.flows.iter().map(|(_, of)| of);
        let changes = self.changes.iter().flat_map(|(things, of)| [things, of]);
        let calls = self.calls.iter().map(|(_, of)| of);
        let emits = self.emits.iter().map(|emit| &emit.of);
        let all = flows.chain(changes).chain(calls).chain(&self.imports).chain([&self.top]).chain(emits);
        all.flatten().map(String::as_str)
    }

    /// Returns the names that tags print directly.
    pub(super) fn printed(&self) -> impl Iterator<Item = &str> {
        self.emits.iter().filter_map(|emit| match &emit.direct {
            Direct::Name(name) | Direct::Macro(name) => Some(name.as_str()),
            Direct::No | Direct::Encoded(_) | Direct::Engine => None,
        })
    }
}

/// Returns the name of a module in the name of its output.
pub(super) fn bare(name: &str) -> &str {
    name.strip_prefix('#').unwrap_or(name)
}
