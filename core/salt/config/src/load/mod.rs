//! Reads a configuration: the main file, its drop-ins and includes. Warns about probable mistakes.

mod examine;

use std::path::{Path, PathBuf};

use brine_text::glob;
use brine_text::nearest::nearest;
use brine_value::{FromValue, Map, Value};
use brine_yaml::{Located, YamlError};

use super::known;
use super::options::{ANOTHER_WORD, BadOption, Options};
use super::{MasterConfig, MinionConfig, Status, transport};

pub use examine::{Mistake, examine};

/// The options that drop-ins extend instead of replace, so that each drop-in can add its own reactions.
const APPENDED_LISTS: &[&str] = &["reactor", "reactor_rules"];

/// A configuration with its warnings.
#[derive(Debug)]
pub struct Loaded<T> {
    /// The configuration.
    pub config: T,
    /// The warnings about probable mistakes.
    pub warnings: Vec<Warning>,
    /// The files that were read, in order of precedence, lowest first.
    pub files: Vec<PathBuf>,
}

/// A probable mistake in the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// The directory does not exist; all options have their defaults.
    NoDirectory(PathBuf),
    /// An option that is neither Brine's nor Salt's.
    Unknown {
        /// The file.
        file: PathBuf,
        /// The line.
        line: usize,
        /// The name of the option.
        name: String,
        /// The most similar known name.
        nearest: Option<&'static str>,
    },
    /// An option that has an effect in Salt and none in Brine.
    Unused {
        /// The file.
        file: PathBuf,
        /// The line.
        line: usize,
        /// The name of the option.
        name: String,
    },
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Warning::NoDirectory(path) => {
                write!(f, "CONFIG '{}' directory does not exist.", path.display())
            }
            Warning::Unknown { file, line, name, nearest } => {
                write!(f, "{}:{line}: unknown option '{name}'", file.display())?;
                nearest.map_or(Ok(()), |nearest| write!(f, ": did you mean '{nearest}'?"))
            }
            Warning::Unused { file, line, name } => {
                write!(f, "{}:{line}: Salt's option '{name}' has no effect in Brine", file.display())
            }
        }
    }
}

/// The errors of loading a configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("reading {path} failed: {source}")]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A file is not YAML.
    #[error("{path}:{}: {}\n{}{hint}", .error.line, .error.message, .error.snippet())]
    Yaml {
        /// The path of the file.
        path: PathBuf,
        /// The position and the message.
        error: Box<YamlError>,
        /// A line with the usual cause; empty if it is unknown.
        hint: String,
    },
    /// A file is YAML, but not a mapping.
    #[error("{path}: the configuration is invalid: expected a mapping of option to value, got {got}")]
    NotAMapping {
        /// The path of the file.
        path: PathBuf,
        /// The actual type.
        got: &'static str,
    },
    /// An option has a value of the wrong type.
    #[error("{path}:{line}: option '{name}': expected {expected}, got {got}")]
    WrongType {
        /// The path of the file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// The name of the option.
        name: &'static str,
        /// The expected type, in words.
        expected: &'static str,
        /// The actual type, or the number.
        got: String,
    },
    /// Several options have a value of the wrong type, one a line.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Several(Vec<ConfigError>),
    /// TLS is configured for `transport: tcp`.
    #[error(
        "option 'ssl': Brine has no TLS for `transport: tcp`: remove 'ssl', or set `transport: zeromq` (jobs and returns \
         are encrypted with both)"
    )]
    NoTls,
}

struct File {
    path: PathBuf,
    located: Located,
}

impl MasterConfig {
    /// Reads `master` and `master.d/*.conf` in a directory; `overrides` take precedence.
    pub fn load(directory: &Path, overrides: &Map) -> Result<Loaded<Self>, ConfigError> {
        load(directory, overrides)
    }
}

impl MinionConfig {
    /// Reads `minion` and `minion.d/*.conf` in a directory; `overrides` take precedence.
    pub fn load(directory: &Path, overrides: &Map) -> Result<Loaded<Self>, ConfigError> {
        load(directory, overrides)
    }

    /// Returns the configuration with the options of a file merged over it, for `localconfig` of a state run.
    pub fn with_file(&self, path: &Path) -> Result<Self, ConfigError> {
        let file = read(path.to_owned())?;
        let mut options = self.opts.clone();
        options.extend(file.located.value.as_map().cloned().unwrap_or_default());
        build(options, &[file], &self.config_dir)
    }
}

fn load<T: Options>(directory: &Path, overrides: &Map) -> Result<Loaded<T>, ConfigError> {
    let mut warnings = Vec::new();
    if !directory.is_dir() {
        warnings.push(Warning::NoDirectory(directory.to_owned()));
    }
    let files = files(directory, T::FILE)?;
    let mut options = Map::new();
    for File { path, located } in &files {
        let Some(map) = located.value.as_map() else { continue };
        for (key, value) in map {
            warnings.extend(key.as_str().and_then(|name| warning::<T>(path, located, name, value)));
            merge(&mut options, key, value);
        }
    }
    for (key, value) in overrides {
        options.insert(key.clone(), value.clone());
    }
    let config = build(options, &files, directory)?;
    Ok(Loaded { config, warnings, files: files.into_iter().map(|file| file.path).collect() })
}

/// Returns what an option of a wrong type has got.
fn got(bad: &BadOption, options: &Map) -> String {
    match options.get(bad.name) {
        Some(number @ (Value::Int(_) | Value::UInt(_) | Value::Float(_))) => number.to_string(),
        // Words and numbers are no secrets.
        Some(Value::Str(word)) if bad.error.got == ANOTHER_WORD || is_number(bad.error.expected) => format!("'{word}'"),
        _ => bad.error.got.to_owned(),
    }
}

/// Whether an option is a number or a boolean, by the description of its type.
fn is_number(expected: &str) -> bool {
    ["number", "integer", "boolean", "seconds", "port"].iter().any(|word| expected.contains(word))
}

/// Builds a configuration from the given options; `files` are their sources, for error messages.
fn build<T: Options>(options: Map, files: &[File], directory: &Path) -> Result<T, ConfigError> {
    let wrong = |bad: &BadOption| {
        // The last file with the option takes precedence.
        let source = files.iter().rev().find(|file| file.located.value.get(bad.name).is_some());
        ConfigError::WrongType {
            path: source.map_or_else(|| "command line".into(), |file| file.path.clone()),
            line: source.map_or(0, |file| line_of(&file.located, bad.name)),
            name: bad.name,
            expected: bad.error.expected,
            got: got(bad, &options),
        }
    };
    let mut config = T::from_given(&options).map_err(|all| {
        let mut errors: Vec<ConfigError> = all.iter().map(wrong).collect();
        if errors.len() == 1 { errors.remove(0) } else { ConfigError::Several(errors) }
    })?;
    if transport::needs_tls(&options) {
        return Err(ConfigError::NoTls);
    }
    config.finish(directory);
    config.fill_opts(options);
    Ok(config)
}

fn line_of(located: &Located, name: &str) -> usize {
    located.position(&[name.into()]).map_or(0, |position| position.line)
}

/// Reads the main file, the drop-ins sorted by name, and the includes of the main file.
fn files(directory: &Path, name: &str) -> Result<Vec<File>, ConfigError> {
    let mut files = Vec::new();
    let main = directory.join(name);
    if main.exists() {
        files.push(read(main)?);
    }
    let patterns_of =
        |option| files.first().and_then(|main: &File| Vec::<String>::from_value(main.located.value.get(option)?));
    let drop_ins = patterns_of("default_include").unwrap_or_else(|| vec![format!("{name}.d/*.conf")]);
    let patterns = drop_ins.into_iter().chain(patterns_of("include").unwrap_or_default());
    let paths: Vec<_> = patterns.flat_map(|pattern| glob::paths(directory, &pattern)).collect();
    for path in paths {
        files.push(read(path)?);
    }
    Ok(files)
}

fn read(path: PathBuf) -> Result<File, ConfigError> {
    let text = std::fs::read_to_string(&path).map_err(|source| ConfigError::Read { path: path.clone(), source })?;
    let located = brine_yaml::load_located(&text).map_err(|error| {
        let hint = error.hint(&text).map(|hint| format!("\n  hint: {hint}")).unwrap_or_default();
        ConfigError::Yaml { path: path.clone(), error: Box::new(error), hint }
    })?;
    match &located.value {
        Value::Map(_) | Value::Nil => Ok(File { path, located }),
        other => Err(ConfigError::NotAMapping { path, got: other.type_name() }),
    }
}

/// Merges an option of a later file over those of earlier ones; mappings are merged recursively.
fn merge(into: &mut Map, key: &Value, value: &Value) {
    let grows = key.as_str().is_some_and(|name| APPENDED_LISTS.contains(&name));
    match (into.get_mut(key), value) {
        (Some(have), more) if grows && !have.is_nil() && more.as_str().is_none() && have.as_str().is_none() => {
            let list = one_key_maps(have.clone()).into_iter().chain(one_key_maps(more.clone())).collect();
            *have = Value::List(list);
        }
        (Some(Value::Map(have)), Value::Map(more)) => {
            for (key, value) in more {
                merge(have, key, value);
            }
        }
        _ => _ = into.insert(key.clone(), value.clone()),
    }
}

/// Returns entries as a list of one-key mappings, whether they were written as a list or as a mapping.
fn one_key_maps(value: Value) -> Vec<Value> {
    match value {
        Value::List(list) => list,
        Value::Map(map) => map.into_iter().map(|(key, value)| Value::Map(Map::from_iter([(key, value)]))).collect(),
        Value::Nil => Vec::new(),
        one => vec![one],
    }
}

/// Returns the warning about an option, if it is probably a mistake.
fn warning<T: Options>(file: &Path, located: &Located, name: &str, value: &Value) -> Option<Warning> {
    // Modules and returners have their own options, with the module's name before a dot.
    if name.contains('.') {
        return None;
    }
    // Profiles of `sdb` have user-defined names.
    if value.get("driver").is_some_and(|driver| driver.as_str().is_some()) {
        return None;
    }
    let status = known::status::<T>(name);
    let (file, line, name) = (file.to_owned(), line_of(located, name), name.to_owned());
    match status {
        None => {
            let names = T::DOCS.iter().map(|doc| doc.name).chain(known::salt_options());
            let nearest = nearest(&name, names);
            return Some(Warning::Unknown { file, line, name, nearest });
        }
        Some(Status::Used { .. }) => return None,
        Some(Status::Ignored) => {}
    }
    (!known::is_default(&name, value)).then_some(Warning::Unused { file, line, name })
}

#[cfg(test)]
mod tests;
