//! The entries of `reactor:`, which bind event tags to SLS files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use brine_text::glob::{GlobError, GlobSet};
use brine_value::{Map, Value};

use crate::limits::{Limits, LimitsError};

/// The tag of the reactor's error events.
pub(crate) const ERROR_TAG: &str = "salt/reactor/error";

/// The entries, with all patterns compiled into one glob set, so that the cost of an event does not grow with the
/// entries that do not match it.
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
    /// The files as configured: paths, globs of paths, `salt://` paths.
    pub files: Vec<String>,
    pub(crate) limits: Option<Limits>,
}

/// An invalid `reactor:`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// It is not a list of mappings.
    #[error("'reactor' is invalid: expected a list of `tag pattern: [SLS files]`, entry {number} is of type {got}")]
    Shape {
        /// The number of the entry, from 1.
        number: usize,
        /// The type of the value.
        got: &'static str,
    },
    /// The files of a pattern are not paths.
    #[error("'reactor': the files of '{pattern}' are invalid: expected a list of paths, got {got}")]
    Files {
        /// The pattern.
        pattern: String,
        /// The value.
        got: String,
    },
    /// A pattern cannot be compiled.
    #[error("'reactor': {0}")]
    Pattern(#[from] GlobError),
    /// The file that the option names cannot be used.
    #[error("'reactor' names the file {}: {reason}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error.
        reason: String,
    },
    /// The limits of an entry are invalid.
    #[error(transparent)]
    Limits(#[from] LimitsError),
}

/// Sets the limits of entries. Returns the errors of invalid ones.
fn bind_limits(opts: &Map, entries: &mut [Entry]) -> Vec<LimitsError> {
    let slots = entries.iter_mut().map(|entry| (&*entry.pattern, &mut entry.limits));
    Limits::bind(opts, &mut slots.collect::<Vec<_>>())
}

impl Entries {
    /// Parses the option: a list of one-key mappings, one mapping, or the path of a YAML file with either.
    pub fn from_config(option: &Value) -> Result<Self, EntryError> {
        Self::with_limits(option, &Map::new())
    }

    /// Parses `reactor` and the limits of its entries from the options of a configuration.
    pub fn from_opts(opts: &Map) -> Result<Self, EntryError> {
        Self::with_limits(&brine_config::opts::master::reactor(opts), opts)
    }

    /// Parses the options as [`Entries::from_opts`], without invalid entries and limits, and returns the errors of these.
    ///
    /// # Errors
    /// The option is no list of entries.
    pub fn usable(opts: &Map) -> Result<(Self, Vec<EntryError>), EntryError> {
        let (mut entries, mut errors) = (Vec::new(), Vec::new());
        for entry in read(&brine_config::opts::master::reactor(opts))? {
            match entry {
                Ok(entry) => entries.push(entry),
                Err(error) => errors.push(error),
            }
        }
        errors.extend(bind_limits(opts, &mut entries).into_iter().map(EntryError::from));
        Ok((Self::new(entries)?, errors))
    }

    fn with_limits(option: &Value, opts: &Map) -> Result<Self, EntryError> {
        let mut entries = read(option)?.into_iter().collect::<Result<Vec<_>, _>>()?;
        match bind_limits(opts, &mut entries).into_iter().next() {
            Some(error) => Err(error.into()),
            None => Self::new(entries),
        }
    }

    fn new(entries: Vec<Entry>) -> Result<Self, EntryError> {
        let set = GlobSet::new(entries.iter().map(|entry| &*entry.pattern))?;
        Ok(Entries { set, entries: entries.into_iter().map(Arc::new).collect() })
    }

    /// Returns the entries with another one appended.
    pub fn with(&self, pattern: &str, files: Vec<String>) -> Result<Self, EntryError> {
        let mut entries: Vec<_> = self.entries.iter().map(|entry| Entry::clone(entry)).collect();
        entries.push(Entry { pattern: pattern.into(), files, limits: None });
        Self::new(entries)
    }

    /// Returns the entries without those of a pattern.
    pub fn without(&self, pattern: &str) -> Result<Self, EntryError> {
        let rest = self.entries.iter().filter(|entry| &*entry.pattern != pattern);
        Self::new(rest.map(|entry| Entry::clone(entry)).collect())
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns whether an entry has exactly this pattern.
    pub fn has_pattern(&self, pattern: &str) -> bool {
        self.entries.iter().any(|entry| &*entry.pattern == pattern)
    }

    /// Returns all entries, in the order of the configuration.
    pub fn all(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// Returns the entries that react to a tag. Errors of the reactor must not loop: they have reactions only if an
    /// entry names their tag literally.
    pub fn reacting(&self, tag: &str) -> Vec<Arc<Entry>> {
        if tag == ERROR_TAG && !self.has_pattern(ERROR_TAG) { Vec::new() } else { self.matching(tag) }
    }

    /// Returns the entries whose patterns match a tag, in the order of the configuration.
    pub fn matching(&self, tag: &str) -> Vec<Arc<Entry>> {
        self.set.matches(tag).into_iter().map(|index| Arc::clone(&self.entries[index])).collect()
    }
}

impl From<&Entries> for Value {
    /// Returns the entries in the form of the option and of `reactor.list`.
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

/// Parses the entries of the option, each on its own.
fn read(option: &Value) -> Result<Vec<Result<Entry, EntryError>>, EntryError> {
    match option {
        Value::Str(path) if !path.is_empty() => read_data(&from_file(Path::new(path))?),
        option => read_data(option),
    }
}

fn read_data(option: &Value) -> Result<Vec<Result<Entry, EntryError>>, EntryError> {
    let listed = match option {
        Value::Nil => &[],
        Value::List(list) => list.as_slice(),
        Value::Map(_) => std::slice::from_ref(option),
        other => return Err(EntryError::Shape { number: 1, got: other.type_name() }),
    };
    let entries = listed.iter().enumerate().flat_map(|(index, one)| match one {
        Value::Map(map) => map.iter().map(|(pattern, files)| entry(&pattern.to_string(), files)).collect::<Vec<_>>(),
        other => vec![Err(EntryError::Shape { number: index + 1, got: other.type_name() })],
    });
    Ok(entries.collect())
}

fn entry(pattern: &str, files: &Value) -> Result<Entry, EntryError> {
    // Checked alone, so that an invalid pattern leaves out its own entry only.
    GlobSet::new([pattern])?;
    Ok(Entry { pattern: pattern.into(), files: files_of(pattern, files)?, limits: None })
}

/// Parses the files of a pattern: one path, or a list of them; none is what remains after an operator has commented out
/// all of them.
pub(crate) fn files_of(pattern: &str, files: &Value) -> Result<Vec<String>, EntryError> {
    let invalid = |got: &Value| EntryError::Files { pattern: pattern.to_owned(), got: got.to_string() };
    let path = |file: &Value| file.as_str().map(str::to_owned).ok_or_else(|| invalid(file));
    match files {
        Value::Nil => Ok(Vec::new()),
        Value::List(files) => files.iter().map(path).collect(),
        one => Ok(vec![path(one)?]),
    }
}
