//! The macros that declare options and read single ones, and the types of their values.

use std::path::{Path, PathBuf};

use brine_value::{FromValue, Map, WrongType};
use indexmap::IndexMap;

/// Directories by environment: `file_roots` and `pillar_roots`.
pub type Roots = IndexMap<String, Vec<PathBuf>>;

/// The key in [`Roots`] of the directories for all environments without an entry of their own, and the placeholder of the
/// environment's name in the paths of these directories. The configuration of pillar sources uses the same placeholder.
pub const ANY_ENVIRONMENT: &str = "__env__";

/// Returns directories of [`ANY_ENVIRONMENT`] as they are for an environment of this name.
pub fn in_environment(directories: &[PathBuf], name: &str) -> Vec<PathBuf> {
    let named = |directory: &PathBuf| directory.to_string_lossy().replace(ANY_ENVIRONMENT, name).into();
    directories.iter().map(named).collect()
}

/// What an option has got that expects one of some words: errors show it.
pub(super) const ANOTHER_WORD: &str = "another word";

/// The documentation of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionDoc {
    /// The name.
    pub name: &'static str,
    /// The description, line by line.
    pub doc: &'static [&'static str],
    /// A description of the type of its value.
    pub expected: &'static str,
}

/// Prefixes a path with `root_dir`, as Salt does with its own directories, unless it has the prefix already.
pub(super) fn below_root(root: &Path, path: &Path) -> PathBuf {
    let relative = path.strip_prefix(root).unwrap_or(path);
    let relative = relative.strip_prefix("/").unwrap_or(relative);
    if relative.as_os_str().is_empty() { root.to_owned() } else { root.join(relative) }
}

/// As [`below_root`], for a log file. Returns an empty path, or the address of a syslog server, unchanged.
pub(super) fn log_below_root(root: &Path, path: &Path) -> PathBuf {
    let is_file = !path.as_os_str().is_empty() && !path.to_string_lossy().contains("://");
    if is_file { below_root(root, path) } else { path.to_owned() }
}

/// Reads an option from `opts`; an option that is not set, or whose value has another type, has its default.
pub(super) fn read<T: FromValue>(opts: &Map, name: &str, default: impl FnOnce() -> T) -> T {
    opts.get(name).filter(|value| !value.is_nil()).and_then(T::from_value).unwrap_or_else(default)
}

/// The error of an option whose value has the wrong type.
#[derive(Debug, thiserror::Error)]
#[error("option '{name}': {error}")]
pub struct BadOption {
    /// The name of the option.
    pub name: &'static str,
    /// The expected and the actual type.
    pub error: WrongType,
}

/// The error of an option whose value has the right type, and cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("option '{option}': {reason}")]
pub struct InvalidOption {
    /// The name of the option.
    pub option: &'static str,
    /// The error and its remedy.
    pub reason: String,
}

/// Reads an option from `opts`; `None` if it is not set, or an empty string. A value of another type is an error.
pub(super) fn checked<T: FromValue>(opts: &Map, name: &'static str) -> Result<Option<T>, BadOption> {
    let value = opts.get(name).filter(|value| !value.is_nil() && value.as_str() != Some(""));
    value.map(|value| T::try_from_value(value).map_err(|error| BadOption { name, error })).transpose()
}

/// The interface of a configuration to the loader, implemented by `options!`.
pub(super) trait Options: Sized {
    /// The documentation of all options, in the order of their declaration.
    const DOCS: &'static [OptionDoc];
    /// The name of the main file: `master` or `minion`.
    const FILE: &'static str;

    /// Converts the given options; the others keep their defaults. Returns all errors.
    fn from_given(options: &Map) -> Result<Self, Vec<BadOption>>;

    /// Prefixes paths with `root_dir` and sets options that depend on others or on the configuration directory.
    fn finish(&mut self, directory: &Path);

    /// Fills `opts` with the values of all options and with the given options that are not declared.
    fn fill_opts(&mut self, options: Map);
}

/// Declares a configuration: a struct with one field per option, its default and its documentation.
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
            /// All options by name, including those of modules: `opts` in templates.
            pub opts: brine_value::Map,
            /// The configuration directory.
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

            fn from_given(given: &brine_value::Map) -> Result<Self, Vec<$crate::options::BadOption>> {
                let mut config = Self::default();
                let mut bad = Vec::new();
                $(if let Some(value) = given.get(stringify!($option)).filter(|value| !value.is_nil()) {
                    match <$type as brine_value::FromValue>::try_from_value(value) {
                        Ok(value) => config.$option = value,
                        Err(error) => bad.push($crate::options::BadOption { name: stringify!($option), error }),
                    }
                })*
                if bad.is_empty() { Ok(config) } else { Err(bad) }
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
                self.finish_opts();
            }
        }

        impl $name {
            /// Returns the documentation of all options, in the order of their declaration.
            pub fn docs() -> &'static [$crate::OptionDoc] {
                <Self as $crate::options::Options>::DOCS
            }
        }

        #[doc = concat!("Reads single options of a ", $file, " from `opts`.")]
        pub mod opts {
            use super::*;

            $crate::options::readers! { $($(#[doc = $doc])* $option: $type = $default,)* }
        }
    };
}

/// Declares functions that each read one option from `opts`, typed and with its default.
macro_rules! readers {
    ($($(#[doc = $doc:literal])* $option:ident $(as $name:literal)?: $type:ty = $default:expr,)*) => {
        $(
            $(#[doc = $doc])*
            pub fn $option(opts: &brine_value::Map) -> $type {
                $crate::options::read(opts, $crate::options::name!($option $($name)?), || $default)
            }
        )*
    };
}

/// Returns the name of an option: that of its function, or the literal if there is one, such as a name with a dot.
macro_rules! name {
    ($option:ident) => {
        stringify!($option)
    };
    ($option:ident $name:literal) => {
        $name
    };
}

pub(super) use {name, options, readers};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_prefixed_once() {
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
