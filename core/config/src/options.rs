//! How options are declared, and the types they have beyond the plain ones.

use std::path::{Path, PathBuf};

use brine_value::{FromValue, Map, Value};
use indexmap::IndexMap;

/// Folders by environment: `file_roots` and `pillar_roots`.
pub type Roots = IndexMap<String, Vec<PathBuf>>;

/// What an option is, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionDoc {
    /// Its name.
    pub name: &'static str,
    /// Its documentation, line by line.
    pub doc: &'static [&'static str],
    /// What is expected, in words.
    pub expected: &'static str,
}

impl FromValue for PathBuf {
    const EXPECTED: &'static str = "a path";
    fn from_value(value: &Value) -> Option<Self> {
        value.as_str().map(PathBuf::from)
    }
}

impl From<PathBuf> for Value {
    fn from(path: PathBuf) -> Self {
        Value::Str(path.to_string_lossy().into_owned())
    }
}

impl FromValue for Roots {
    const EXPECTED: &'static str = "a mapping of environment to a list of folders";
    fn from_value(value: &Value) -> Option<Self> {
        value.as_map()?.iter().map(|(key, value)| Some((String::from_value(key)?, Vec::from_value(value)?))).collect()
    }
}

impl From<Roots> for Value {
    fn from(roots: Roots) -> Self {
        let pairs = roots.into_iter().map(|(environment, folders)| (environment.into(), folders.into_iter().collect()));
        Value::Map(pairs.collect())
    }
}

/// Brings a path below `root_dir`, as Salt does with all of its own folders: one that is below it
/// already stays as it is.
pub(super) fn below_root(root: &Path, path: &Path) -> PathBuf {
    let relative = path.strip_prefix(root).unwrap_or(path);
    let relative = relative.strip_prefix("/").unwrap_or(relative);
    if relative.as_os_str().is_empty() { root.to_owned() } else { root.join(relative) }
}

/// As [`below_root`] for a log file: an empty one stays so, and an address of a syslog is no path.
pub(super) fn log_below_root(root: &Path, path: &Path) -> PathBuf {
    let is_file = !path.as_os_str().is_empty() && !path.to_string_lossy().contains("://");
    if is_file { below_root(root, path) } else { path.to_owned() }
}

/// One option could not be read.
pub(super) struct BadOption {
    pub name: &'static str,
    pub error: brine_value::WrongType,
}

/// What `options!` makes of a declaration, seen by the loader.
pub(super) trait Options: Sized {
    /// All options, in the order of their declaration.
    const DOCS: &'static [OptionDoc];
    /// `master` or `minion`: the name of the file.
    const FILE: &'static str;

    /// Reads what is given, the rest is default.
    fn from_given(given: &Map) -> Result<Self, BadOption>;

    /// Brings folders below `root_dir`, fills in what depends on other options and on the folder
    /// that the configuration was read from.
    fn finish(&mut self, directory: &Path);

    /// All options with their values, under what was given beside them.
    fn fill_opts(&mut self, given: Map);
}

/// Declares a configuration: a struct with a field an option, its defaults and its documentation.
macro_rules! options {
    (
        $(#[doc = $struct_doc:literal])*
        $name:ident for $file:literal;
        $($(#[doc = $doc:literal])* $option:ident: $type:ty = $default:expr,)*
    ) => {
        $(#[doc = $struct_doc])*
        #[derive(Debug, Clone)]
        pub struct $name {
            $($(#[doc = $doc])* pub $option: $type,)*
            /// Every option by name, also those that only modules know: `opts` in templates.
            pub opts: brine_value::Map,
            /// The folder that the configuration was read from.
            pub config_dir: std::path::PathBuf,
        }

        impl Default for $name {
            fn default() -> Self {
                let mut config = $name {
                    $($option: $default,)*
                    opts: brine_value::Map::new(),
                    config_dir: super::DEFAULT_DIRECTORY.into(),
                };
                $crate::options::Options::fill_opts(&mut config, brine_value::Map::new());
                config
            }
        }

        impl $crate::options::Options for $name {
            const FILE: &'static str = $file;
            const DOCS: &'static [$crate::OptionDoc] = &[$($crate::OptionDoc {
                name: stringify!($option),
                doc: &[$($doc),*],
                expected: <$type as brine_value::FromValue>::EXPECTED,
            }),*];

            fn from_given(given: &brine_value::Map) -> Result<Self, $crate::options::BadOption> {
                let mut config = Self::default();
                $(if let Some(value) = given.get(stringify!($option)).filter(|value| !value.is_nil()) {
                    config.$option = <$type as brine_value::FromValue>::try_from_value(value)
                        .map_err(|error| $crate::options::BadOption { name: stringify!($option), error })?;
                })*
                Ok(config)
            }

            fn finish(&mut self, directory: &std::path::Path) {
                self.config_dir = directory.to_owned();
                self.finish_paths();
            }

            fn fill_opts(&mut self, given: brine_value::Map) {
                self.opts = given;
                $(self.opts.insert(stringify!($option).into(), self.$option.clone().into());)*
                self.opts.insert("config_dir".into(), self.config_dir.clone().into());
                self.opts.insert("conf_file".into(), self.config_dir.join($file).into());
            }
        }

        impl $name {
            /// What each option is.
            pub fn docs() -> &'static [$crate::OptionDoc] {
                <Self as $crate::options::Options>::DOCS
            }
        }
    };
}

pub(super) use options;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_brought_below_the_root_once() {
        for (root, path, result) in [
            ("/", "/etc/salt/pki", "/etc/salt/pki"),
            ("/tmp/x", "/etc/salt/pki", "/tmp/x/etc/salt/pki"),
            ("/tmp/x", "/tmp/x/pki", "/tmp/x/pki"),
            ("/tmp/x", "pki", "/tmp/x/pki"),
        ] {
            assert_eq!(below_root(Path::new(root), Path::new(path)), Path::new(result));
        }
    }
}
