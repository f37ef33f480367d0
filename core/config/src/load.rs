//! Reading configuration: the file, its drop-ins, and what is wrong with them.

use std::path::{Path, PathBuf};

use brine_text::glob;
use brine_value::{FromValue, Map, Value};
use brine_yaml::{Located, YamlError};

use super::known;
use super::options::Options;
use super::{MasterConfig, MinionConfig};

/// Options that drop-ins add to instead of replacing: each drop-in brings its own reactions.
const LISTS_THAT_GROW: &[&str] = &["reactor", "reactor_rules"];

/// A configuration, and what should be said about it.
#[derive(Debug)]
pub struct Loaded<T> {
    /// The configuration.
    pub config: T,
    /// What is not an error but probably a mistake.
    pub warnings: Vec<Warning>,
    /// The files that were read, in the order in which they count.
    pub files: Vec<PathBuf>,
}

/// Something in the configuration that is probably a mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// The directory does not exist: everything is default.
    NoDirectory(PathBuf),
    /// An option that neither Brine nor Salt knows.
    Unknown {
        /// The file it is in.
        file: PathBuf,
        /// The line it is on.
        line: usize,
        /// Its name.
        name: String,
        /// The known name that is most like it.
        nearest: Option<&'static str>,
    },
    /// An option that Salt heeds and Brine does not.
    Unused {
        /// The file it is in.
        file: PathBuf,
        /// The line it is on.
        line: usize,
        /// Its name.
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

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file is not YAML.
    #[error("{path}:{}: {}\n{}", .error.line, .error.message, .error.snippet())]
    Yaml {
        /// Which file.
        path: PathBuf,
        /// Where and why.
        error: Box<YamlError>,
    },
    /// A file is YAML, but no mapping.
    #[error("{path}: a configuration is a mapping of option to value, this is of type {got}")]
    NotAMapping {
        /// Which file.
        path: PathBuf,
        /// What it is instead.
        got: &'static str,
    },
    /// An option has a value of the wrong type.
    #[error("{path}:{line}: option '{name}': expected {expected}, got {got}")]
    WrongType {
        /// Which file.
        path: PathBuf,
        /// On which line.
        line: usize,
        /// Which option.
        name: &'static str,
        /// What would be right, in words.
        expected: &'static str,
        /// What it is instead.
        got: &'static str,
    },
}

struct File {
    path: PathBuf,
    located: Located,
}

impl MasterConfig {
    /// Reads `master` and `master.d/*.conf` in a folder; `overrides` count before both.
    pub fn load(directory: &Path, overrides: &Map) -> Result<Loaded<Self>, ConfigError> {
        load(directory, overrides)
    }
}

impl MinionConfig {
    /// Reads `minion` and `minion.d/*.conf` in a folder; `overrides` count before both.
    pub fn load(directory: &Path, overrides: &Map) -> Result<Loaded<Self>, ConfigError> {
        load(directory, overrides)
    }

    /// The same configuration with what a file says over it, as a state run's `localconfig` has it.
    pub fn with_file(&self, path: &Path) -> Result<Self, ConfigError> {
        let file = read(path.to_owned())?;
        let mut given = self.opts.clone();
        given.extend(file.located.value.as_map().cloned().unwrap_or_default());
        made(given, &[file], &self.config_dir)
    }
}

fn load<T: Options>(directory: &Path, overrides: &Map) -> Result<Loaded<T>, ConfigError> {
    let mut warnings = Vec::new();
    if !directory.is_dir() {
        warnings.push(Warning::NoDirectory(directory.to_owned()));
    }
    let files = files(directory, T::FILE)?;
    let mut given = Map::new();
    for File { path, located } in &files {
        let Some(map) = located.value.as_map() else { continue };
        for (key, value) in map {
            warnings.extend(key.as_str().and_then(|name| warning::<T>(path, located, name, value)));
            merge(&mut given, key, value);
        }
    }
    for (key, value) in overrides {
        given.insert(key.clone(), value.clone());
    }
    let config = made(given, &files, directory)?;
    Ok(Loaded { config, warnings, files: files.into_iter().map(|file| file.path).collect() })
}

/// A configuration of what is given; `files` are where it is from.
fn made<T: Options>(given: Map, files: &[File], directory: &Path) -> Result<T, ConfigError> {
    let mut config = T::from_given(&given).map_err(|bad| {
        // The last file that gives the option is the one that counts.
        let place = files.iter().rev().find(|file| file.located.value.get(bad.name).is_some());
        ConfigError::WrongType {
            path: place.map_or_else(|| "command line".into(), |file| file.path.clone()),
            line: place.map_or(0, |file| line_of(&file.located, bad.name)),
            name: bad.name,
            expected: bad.error.expected,
            got: bad.error.got,
        }
    })?;
    config.finish(directory);
    config.fill_opts(given);
    Ok(config)
}

fn line_of(located: &Located, name: &str) -> usize {
    located.position(&[name.into()]).map_or(0, |position| position.line)
}

/// The main file, the drop-ins in order of their names, and what the main file includes.
fn files(directory: &Path, name: &str) -> Result<Vec<File>, ConfigError> {
    let mut files = Vec::new();
    let main = directory.join(name);
    if main.exists() {
        files.push(read(main)?);
    }
    let said =
        |option| files.first().and_then(|main: &File| Vec::<String>::from_value(main.located.value.get(option)?));
    let drop_ins = said("default_include").unwrap_or_else(|| vec![format!("{name}.d/*.conf")]);
    let patterns = drop_ins.into_iter().chain(said("include").unwrap_or_default());
    let paths: Vec<_> = patterns.flat_map(|pattern| glob::paths(directory, &pattern)).collect();
    for path in paths {
        files.push(read(path)?);
    }
    Ok(files)
}

fn read(path: PathBuf) -> Result<File, ConfigError> {
    let text = std::fs::read_to_string(&path).map_err(|source| ConfigError::Read { path: path.clone(), source })?;
    let located = brine_yaml::load_located(&text)
        .map_err(|error| ConfigError::Yaml { path: path.clone(), error: Box::new(error) })?;
    match &located.value {
        Value::Map(_) | Value::Nil => Ok(File { path, located }),
        other => Err(ConfigError::NotAMapping { path, got: other.type_name() }),
    }
}

/// Later files count before earlier ones; mappings are merged.
fn merge(into: &mut Map, key: &Value, value: &Value) {
    let grows = key.as_str().is_some_and(|name| LISTS_THAT_GROW.contains(&name));
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

/// Entries as a list, whether they were written as one or as a mapping.
fn one_key_maps(value: Value) -> Vec<Value> {
    match value {
        Value::List(list) => list,
        Value::Map(map) => map.into_iter().map(|(key, value)| Value::Map(Map::from_iter([(key, value)]))).collect(),
        Value::Nil => Vec::new(),
        one => vec![one],
    }
}

/// What is to be said of an option, if anything is.
fn warning<T: Options>(file: &Path, located: &Located, name: &str, value: &Value) -> Option<Warning> {
    // Modules and returners have options of their own, with their name in front of a dot.
    if name.contains('.') || T::DOCS.iter().any(|doc| doc.name == name) {
        return None;
    }
    let (file, line, name) = (file.to_owned(), line_of(located, name), name.to_owned());
    if known::SALT.binary_search(&name.as_str()).is_err() {
        let nearest = nearest::<T>(&name);
        return Some(Warning::Unknown { file, line, name, nearest });
    }
    let asks_for_something = !(value.is_nil() || matches!(value, Value::Bool(false)) || is_empty(value));
    let done_anyway = known::USED.contains(&name.as_str())
        || values(value)
            .all(|value| known::AS_IT_IS.iter().any(|(known, is)| *known == name && value.as_str() == Some(is)));
    (asks_for_something && !done_anyway).then_some(Warning::Unused { file, line, name })
}

fn is_empty(value: &Value) -> bool {
    value.as_map().is_some_and(Map::is_empty) || value.as_list().is_some_and(<[_]>::is_empty)
}

/// A value, or those in a list.
fn values(value: &Value) -> impl Iterator<Item = &Value> {
    let list = value.as_list();
    list.into_iter().flatten().chain(list.is_none().then_some(value))
}

fn nearest<T: Options>(name: &str) -> Option<&'static str> {
    let names = T::DOCS.iter().map(|doc| doc.name).chain(known::SALT.iter().copied());
    let scored = names.map(|known| (strsim::damerau_levenshtein(known, name), known));
    scored.min().filter(|(distance, _)| *distance <= 1 + name.len() / 4).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_value::map;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    fn master(files: &[(&str, &str)]) -> (Result<Loaded<MasterConfig>, ConfigError>, String) {
        let folder = folder(files);
        let path = folder.path().display().to_string();
        (MasterConfig::load(folder.path(), &Map::new()), path)
    }

    #[test]
    fn reactor_entries_grow_in_whatever_form_they_are_written() {
        for (main, drop_in) in [
            ("{a: [/1.sls], b: /2.sls}", "[{a: [/3.sls]}]"),
            ("[{a: [/1.sls]}, {b: /2.sls}]", "{a: [/3.sls]}"),
            ("{a: [/1.sls], b: /2.sls}", "{a: [/3.sls]}"),
        ] {
            let (loaded, _) = master(&[
                ("master", &format!("reactor: {main}\n")),
                ("master.d/x.conf", &format!("reactor: {drop_in}\n")),
            ]);
            let list = brine_value::list![
                map! {"a" => brine_value::list!["/1.sls"]},
                map! {"b" => "/2.sls"},
                map! {"a" => brine_value::list!["/3.sls"]}
            ];
            assert_eq!(loaded.unwrap().config.reactor, list, "{main} and {drop_in}");
        }
    }

    #[test]
    fn defaults_are_salts_and_drop_ins_are_merged() {
        let (loaded, path) = master(&[
            ("master", "root_dir: /tmp/r\nworker_threads: 2\nnodegroups: {a: 'x*'}\nreactor:\n  - 'a': [/1.sls]\n"),
            ("master.d/b.conf", "worker_threads: 3\nnodegroups: {b: 'y*'}\nreactor:\n  - 'b': [/2.sls]\n"),
            ("master.d/ignored.txt", "worker_threads: 4\n"),
        ]);
        let Loaded { config, warnings, .. } = loaded.unwrap();
        assert_eq!(warnings, []);
        assert_eq!((config.ret_port, config.worker_threads), (4506, 3));
        assert_eq!(config.pki_dir, Path::new("/tmp/r/etc/salt/pki/master"));
        assert_eq!(config.nodegroups, map! {"a" => "x*", "b" => "y*"});
        assert_eq!(config.reactor.as_list().unwrap().len(), 2);
        assert_eq!(config.opts.get("conf_file"), Some(&format!("{path}/master").into()));
        assert_eq!(config.opts.get("ret_port"), Some(&4506.into()));
    }

    #[test]
    fn an_unknown_option_is_told_with_its_nearest() {
        let (loaded, path) = master(&[(
            "master",
            "# comment\nworker_thread: 2\nredis.host: x\nzmq_filtering: False\nqqqqqqqqqqqq: 1\n",
        )]);
        let texts: Vec<_> = loaded.unwrap().warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                format!("{path}/master:2: unknown option 'worker_thread': did you mean 'worker_threads'?"),
                format!("{path}/master:5: unknown option 'qqqqqqqqqqqq'"),
            ]
        );
    }

    #[test]
    fn more_files_are_included() {
        let (loaded, _) = master(&[
            ("master", "include: [more/*.yml, none]\ndefault_include: drop.d/*.conf\nworker_threads: 1\n"),
            ("drop.d/a.conf", "worker_threads: 2\ntimeout: 2\n"),
            ("more/b.yml", "worker_threads: 3\n"),
            ("master.d/c.conf", "worker_threads: 4\n"),
        ]);
        let Loaded { config, warnings, .. } = loaded.unwrap();
        assert_eq!((config.worker_threads, config.timeout), (3, 2));
        assert_eq!(warnings, []);
    }

    #[test]
    fn what_salt_heeds_and_brine_does_not_is_told() {
        let (loaded, path) = master(&[
            (
                "master",
                "transport: zeromq\nfileserver_backend: [roots, gitfs]\next_pillar: [{cmd_yaml: ls}]\nengines: [{a: {}}]\nmine_functions: {a: []}\nexternal_auth: {}\nsyndic_master: null\n",
            ),
            // Which backends there are is examined with the values (`check.rs`).
            ("master.d/s3.conf", "fileserver_backend: [roots, s3fs]\n"),
        ]);
        let texts: Vec<_> = loaded.unwrap().warnings.iter().map(ToString::to_string).collect();
        assert_eq!(texts, [format!("{path}/master:4: Salt's option 'engines' has no effect in Brine")]);
    }

    #[test]
    fn what_is_wrong_is_told_with_file_and_line() {
        for (files, message) in [
            (
                &[("master", "a.b: 1\nworker_threads: many\n")][..],
                "/master:2: option 'worker_threads': expected a whole number that is not negative, got str",
            ),
            (
                &[("master", ""), ("master.d/x.conf", "\nfile_roots: /srv\n")],
                "/master.d/x.conf:2: option 'file_roots': expected a mapping of environment to a list of folders, got str",
            ),
            (&[("master", "- a\n")], "/master: a configuration is a mapping of option to value, this is of type list"),
            (&[("master", "a: b: c\n")], "/master:1: mapping values are not allowed in this context\na: b: c\n    ^"),
        ] {
            let (loaded, path) = master(files);
            let text = loaded.unwrap_err().to_string();
            assert_eq!(text.strip_prefix(&path), Some(message));
        }
    }

    #[test]
    fn a_missing_folder_means_defaults() {
        let loaded = MinionConfig::load(Path::new("/nonexistent"), &map! {"id" => "m1"}).unwrap();
        assert_eq!(loaded.warnings[0].to_string(), "CONFIG '/nonexistent' directory does not exist.");
        assert_eq!(loaded.config.id.as_deref(), Some("m1"));
        assert_eq!(loaded.config.master, ["salt"]);
    }

    #[test]
    fn the_known_names_are_sorted() {
        assert!(known::SALT.is_sorted());
    }
}
