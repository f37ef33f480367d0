//! Requisites: dependencies of a state on other states.

use std::collections::HashMap;

use brine_text::glob::{Glob, is_pattern};
use brine_value::Value;

use super::low::Chunk;

macro_rules! kinds {
    ($($(#[$meta:meta])* $kind:ident = $name:literal,)*) => {
        /// The kind of a requisite.
        ///
        /// The variants are ordered by strength, which decides how far the order of a dependant pulls a state forward.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum RequisiteKind {
            $($(#[$meta])* $kind,)*
        }

        use RequisiteKind::{$($kind),*};

        impl RequisiteKind {
            /// All kinds, weakest first.
            pub const ALL: [RequisiteKind; [$($kind),*].len()] = [$($kind),*];

            /// Returns the keyword in SLS files.
            pub fn name(self) -> &'static str {
                match self {
                    $($kind => $name,)*
                }
            }
        }
    };
}

kinds! {
    /// This state runs only if any of them failed.
    Onfail = "onfail",
    /// Same as onfail.
    OnfailAny = "onfail_any",
    /// This state runs only if all of them failed.
    OnfailAll = "onfail_all",
    /// All must have succeeded.
    Require = "require",
    /// Any must have succeeded.
    RequireAny = "require_any",
    /// This state runs only if they changed something.
    Onchanges = "onchanges",
    /// Same as onchanges.
    OnchangesAny = "onchanges_any",
    /// Like require; changes in them also run `mod_watch` of this state.
    Watch = "watch",
    /// Like require_any; changes in them also run `mod_watch` of this state.
    WatchAny = "watch_any",
    /// This state runs before them, and only if they would change something.
    Prereq = "prereq",
    /// The inverse of prereq; not available in SLS files.
    Prerequired = "prerequired",
    /// Changes in them run `mod_watch` of this state at the end of the run.
    Listen = "listen",
}

impl RequisiteKind {
    /// The kinds that decide whether a state runs, in the order of their lookup.
    pub(super) const RUNNING: [RequisiteKind; 10] =
        [Require, RequireAny, Watch, WatchAny, Prereq, Onfail, OnfailAny, OnfailAll, Onchanges, OnchangesAny];

    /// Parses an argument name: `require`, `watch_any`, ...
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the kind without `_any` or `_all`.
    #[must_use]
    pub fn base(self) -> Self {
        match self {
            OnfailAny | OnfailAll => Onfail,
            RequireAny => Require,
            OnchangesAny => Onchanges,
            WatchAny => Watch,
            other => other,
        }
    }
}

/// A reference to one or more states.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reference {
    /// The state module, `sls`, or `id` for any.
    pub module: String,
    /// The id or name, or the name of the SLS; may be a glob.
    pub name: String,
}

impl Reference {
    /// Whether this refers to an SLS and all its states.
    pub fn is_sls(&self) -> bool {
        self.module == "sls"
    }

    /// Whether the name is a glob.
    pub fn is_pattern(&self) -> bool {
        is_pattern(&self.name)
    }

    /// Returns the indices of the matching chunks, ascending.
    pub(super) fn find(&self, chunks: &[Chunk], index: &ChunkIndex) -> Vec<usize> {
        let is_of_module =
            |position: &usize| self.module == "id" || self.is_sls() || self.module == chunks[*position].state;
        if let Some(glob) = self.is_pattern().then(|| Glob::new(&self.name).ok()).flatten() {
            let matches = |text: &String| glob.is_match(text);
            let fits = |position: &usize| {
                let chunk = &chunks[*position];
                if self.is_sls() {
                    return matches(&chunk.sls) || chunk.included_from.iter().any(matches);
                }
                matches(&chunk.id) || matches(&chunk.name)
            };
            return (0..chunks.len()).filter(is_of_module).filter(fits).collect();
        }
        let named = if self.is_sls() { &index.of_sls } else { &index.of_name };
        named.get(&self.name).into_iter().flatten().copied().filter(is_of_module).collect()
    }
}

/// An index of chunks, so that the cost of a reference does not depend on their number.
pub(super) struct ChunkIndex {
    /// The indices of chunks by id and name.
    of_name: HashMap<String, Vec<usize>>,
    /// The indices of chunks by their SLS, and by the SLS files that include it.
    of_sls: HashMap<String, Vec<usize>>,
}

impl ChunkIndex {
    pub fn of(chunks: &[Chunk]) -> Self {
        fn note(places: &mut HashMap<String, Vec<usize>>, text: &str, index: usize) {
            match places.get_mut(text) {
                Some(all) if all.last() == Some(&index) => {}
                Some(all) => all.push(index),
                None => _ = places.insert(text.to_owned(), vec![index]),
            }
        }
        let (mut of_name, mut of_sls) = (HashMap::new(), HashMap::new());
        for (index, chunk) in chunks.iter().enumerate() {
            for name in [&chunk.id, &chunk.name] {
                note(&mut of_name, name, index);
            }
            for sls in [&chunk.sls].into_iter().chain(&chunk.included_from) {
                note(&mut of_sls, sls, index);
            }
        }
        ChunkIndex { of_name, of_sls }
    }
}

/// A requisite of a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requisite {
    /// The kind.
    pub kind: RequisiteKind,
    /// The referenced states.
    pub reference: Reference,
    /// The indices of the matching chunks, once all chunks are known.
    pub chunks: Vec<usize>,
}

/// Parses the requisites of a kind from a chunk's arguments. Errors are in Salt's wording.
pub(super) fn of_kind(chunk: &Chunk, kind: RequisiteKind) -> Result<Vec<Requisite>, String> {
    let mut requisites = Vec::new();
    for item in chunk.args.get(kind.name()).and_then(Value::as_list).unwrap_or_default() {
        let (module, name) = match item {
            Value::Map(map) => match map.first() {
                // The function of a reference is ignored.
                Some((module, name)) => (module.to_string().split('.').next().unwrap_or_default().to_owned(), name),
                None => continue,
            },
            bare => ("id".to_owned(), bare),
        };
        match name {
            Value::Nil => {}
            Value::Str(name) => {
                let reference = Reference { module, name: name.clone() };
                requisites.push(Requisite { kind, reference, chunks: Vec::new() });
            }
            _ => {
                return Err(format!(
                    "Requisite [{}: {module}] in state [{}] in SLS [{}] must have a string as the value",
                    kind.name(),
                    chunk.name,
                    chunk.shown_sls()
                ));
            }
        }
    }
    Ok(requisites)
}

/// Returns the items of `listen` or `listen_in`. The module of a bare string is empty: it may refer to a state of any
/// module.
pub(super) fn listen_references(value: Option<&Value>) -> Vec<Reference> {
    let items = value.and_then(Value::as_list).unwrap_or_default().iter();
    let references = items.flat_map(|item| match item {
        Value::Map(map) => map.iter().map(|(module, name)| (module.to_string(), name.to_string())).collect(),
        bare => vec![(String::new(), bare.to_string())],
    });
    references.map(|(module, name)| Reference { module, name }).collect()
}
