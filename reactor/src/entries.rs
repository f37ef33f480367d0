//! Which SLS files belong to which event tags.

use std::path::PathBuf;

use brine_core::Value;
use brine_core::glob::{GlobError, GlobSet};

/// The `reactor:` of a configuration: all patterns compiled into one set, so that an event costs the
/// same however many entries do not match it.
#[derive(Debug)]
pub struct Entries {
    set: GlobSet,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    pattern: String,
    files: Vec<PathBuf>,
}

/// The `reactor:` of a configuration is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// It is not a list of mappings.
    #[error("'reactor' is a list of `tag pattern: [SLS files]`, entry {place} is of type {got}")]
    Shape {
        /// Which entry, from 1.
        place: usize,
        /// What it is instead.
        got: &'static str,
    },
    /// The files of a pattern are not paths.
    #[error("'reactor': the files of '{pattern}' are a list of paths, got {got}")]
    Files {
        /// Which pattern.
        pattern: String,
        /// What they are instead.
        got: String,
    },
    /// A pattern cannot be compiled.
    #[error("'reactor': {0}")]
    Pattern(#[from] GlobError),
}

impl Entries {
    /// Reads the option: a list of one-key mappings, or one mapping.
    pub fn from_config(option: &Value) -> Result<Self, EntryError> {
        let mut entries = Vec::new();
        match option {
            Value::Nil => {}
            Value::Map(map) => entries_of(map, &mut entries)?,
            Value::List(list) => {
                for (i, one) in list.iter().enumerate() {
                    let shape = || EntryError::Shape { place: i + 1, got: one.type_name() };
                    entries_of(one.as_map().ok_or_else(shape)?, &mut entries)?;
                }
            }
            other => return Err(EntryError::Shape { place: 1, got: other.type_name() }),
        }
        let set = GlobSet::new(entries.iter().map(|entry| &entry.pattern))?;
        Ok(Entries { set, entries })
    }

    /// Whether nothing is bound.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether an entry names exactly this tag.
    pub fn names(&self, tag: &str) -> bool {
        self.entries.iter().any(|entry| entry.pattern == tag)
    }

    /// The patterns that match a tag, each with its files, in the order of the configuration.
    pub fn matching(&self, tag: &str) -> Vec<(&str, &[PathBuf])> {
        let places = self.set.matches(tag);
        places
            .into_iter()
            .map(|place| (self.entries[place].pattern.as_str(), self.entries[place].files.as_slice()))
            .collect()
    }
}

fn entries_of(map: &brine_core::Map, entries: &mut Vec<Entry>) -> Result<(), EntryError> {
    for (pattern, files) in map {
        let pattern = pattern.to_string();
        let wrong = |got: &Value| EntryError::Files { pattern: pattern.clone(), got: got.to_string() };
        let path = |file: &Value| file.as_str().map(PathBuf::from).ok_or_else(|| wrong(file));
        let files = match files {
            Value::List(files) => files.iter().map(path).collect::<Result<_, _>>()?,
            one => vec![path(one)?],
        };
        entries.push(Entry { pattern, files });
    }
    Ok(())
}
