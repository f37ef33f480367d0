//! Which SLS files belong to which event tags.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use brine_text::glob::{GlobError, GlobSet};
use brine_value::{Map, Value};

use crate::limits::{Limits, LimitsError};
use crate::run::ERROR_TAG;

/// The `reactor:` of a configuration: all patterns compiled into one set, so that an event costs the
/// same however many entries do not match it.
#[derive(Debug)]
pub struct Entries {
    set: GlobSet,
    entries: Vec<Arc<Entry>>,
}

/// One pattern with its files.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The glob over the whole tag.
    pub pattern: Arc<str>,
    /// The files as they are written: paths, globs of paths, `salt://` paths.
    pub files: Vec<String>,
    pub(crate) limits: Option<Limits>,
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
    /// The file that the option names cannot be used.
    #[error("'reactor' names the file {}: {reason}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The limits of an entry cannot be understood.
    #[error(transparent)]
    Limits(#[from] LimitsError),
}

impl Entries {
    /// Reads the option: a list of one-key mappings, one mapping, or the path of a YAML file with either.
    pub fn from_config(option: &Value) -> Result<Self, EntryError> {
        Self::with_limits(option, &Map::new())
    }

    /// Reads the options of a configuration: `reactor`, and the limits of its entries.
    pub fn from_opts(opts: &Map) -> Result<Self, EntryError> {
        Self::with_limits(opts.get("reactor").unwrap_or(&Value::Nil), opts)
    }

    fn with_limits(option: &Value, opts: &Map) -> Result<Self, EntryError> {
        let mut entries = Vec::new();
        match option {
            Value::Str(path) if !path.is_empty() => read(&from_file(Path::new(path))?, &mut entries)?,
            option => read(option, &mut entries)?,
        }
        Limits::bind(opts, &mut entries)?;
        Self::new(entries)
    }

    fn new(entries: Vec<Entry>) -> Result<Self, EntryError> {
        let set = GlobSet::new(entries.iter().map(|entry| &*entry.pattern))?;
        Ok(Entries { set, entries: entries.into_iter().map(Arc::new).collect() })
    }

    /// The same with one more at the end.
    pub fn with(&self, pattern: &str, files: Vec<String>) -> Result<Self, EntryError> {
        let mut entries: Vec<_> = self.entries.iter().map(|entry| Entry::clone(entry)).collect();
        entries.push(Entry { pattern: pattern.into(), files, limits: None });
        Self::new(entries)
    }

    /// The same without those of this pattern.
    pub fn without(&self, pattern: &str) -> Result<Self, EntryError> {
        let rest = self.entries.iter().filter(|entry| &*entry.pattern != pattern);
        Self::new(rest.map(|entry| Entry::clone(entry)).collect())
    }

    /// Whether nothing is bound.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether an entry names exactly this pattern.
    pub fn names(&self, pattern: &str) -> bool {
        self.entries.iter().any(|entry| &*entry.pattern == pattern)
    }

    /// All entries, in the order of the configuration.
    pub fn all(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// Returns the entries that react to events of this tag: those that match. An error must not lead to itself: only an
    /// entry that names its tag reacts to it, and then all that match do.
    pub fn reacting(&self, tag: &str) -> Vec<Arc<Entry>> {
        if tag == ERROR_TAG && !self.names(ERROR_TAG) { Vec::new() } else { self.matching(tag) }
    }

    /// The entries whose patterns match a tag, in the order of the configuration.
    pub fn matching(&self, tag: &str) -> Vec<Arc<Entry>> {
        self.set.matches(tag).into_iter().map(|place| Arc::clone(&self.entries[place])).collect()
    }
}

impl From<&Entries> for Value {
    /// As the option is written, and as `reactor.list` gives it.
    fn from(entries: &Entries) -> Self {
        let one = |entry: &Arc<Entry>| {
            let files = entry.files.clone();
            Value::Map([(Value::from(&*entry.pattern), Value::from(files))].into_iter().collect())
        };
        entries.entries.iter().map(one).collect()
    }
}

fn from_file(path: &Path) -> Result<Value, EntryError> {
    let failed = |reason: String| EntryError::File { path: path.to_owned(), reason };
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    brine_yaml::load(&text).map_err(|error| failed(format!("line {}: {}", error.line, error.message)))
}

fn read(option: &Value, entries: &mut Vec<Entry>) -> Result<(), EntryError> {
    match option {
        Value::Nil => Ok(()),
        Value::Map(map) => entries_of(map, entries),
        Value::List(list) => {
            for (i, one) in list.iter().enumerate() {
                let shape = || EntryError::Shape { place: i + 1, got: one.type_name() };
                entries_of(one.as_map().ok_or_else(shape)?, entries)?;
            }
            Ok(())
        }
        other => Err(EntryError::Shape { place: 1, got: other.type_name() }),
    }
}

fn entries_of(map: &Map, entries: &mut Vec<Entry>) -> Result<(), EntryError> {
    for (pattern, files) in map {
        let pattern = pattern.to_string();
        let files = files_of(&pattern, files)?;
        entries.push(Entry { pattern: pattern.into(), files, limits: None });
    }
    Ok(())
}

/// The files of a pattern: one path, or a list of them.
pub(crate) fn files_of(pattern: &str, files: &Value) -> Result<Vec<String>, EntryError> {
    let wrong = |got: &Value| EntryError::Files { pattern: pattern.to_owned(), got: got.to_string() };
    let path = |file: &Value| file.as_str().map(str::to_owned).ok_or_else(|| wrong(file));
    match files {
        Value::List(files) => files.iter().map(path).collect(),
        one => Ok(vec![path(one)?]),
    }
}
