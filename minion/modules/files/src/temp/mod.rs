//! `temp`: temporary files and directories.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_system::user_files;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `temp`.
pub static FUNCTIONS: Functions<Context> = registry!("temp", [dir, file]);

/// The arguments that name a temporary path.
#[derive(Args)]
pub struct NameArgs {
    /// End of the name.
    #[default]
    suffix: String,
    /// Start of the name.
    #[default("tmp".into())]
    prefix: String,
    /// Parent directory; default: the directory for temporary files.
    parent: Option<String>,
}

/// The number of random names that are tried.
const ATTEMPTS: u32 = 100;

impl NameArgs {
    /// Creates something under a random name, and returns its path.
    fn create(self, make: impl Fn(&Path) -> std::io::Result<()>) -> CallResult {
        for part in [&self.suffix, &self.prefix] {
            if part.contains('/') {
                return Err(CallError::Execution(format!(
                    "'{part}' cannot be part of a file name: name the directory as 'parent'"
                )));
            }
        }
        let parent = self.parent.filter(|parent| !parent.is_empty());
        let parent = parent.map_or_else(std::env::temp_dir, PathBuf::from);
        let mut attempt = 1;
        loop {
            let name = format!("{}{:012x}{}", self.prefix, rand::random::<u64>() >> 16, self.suffix);
            let path = parent.join(name);
            match make(&path) {
                Ok(()) => return Ok(path.into()),
                Err(error) if error.kind() == ErrorKind::AlreadyExists && attempt < ATTEMPTS => attempt += 1,
                Err(error) => {
                    let message = format!("creating a temporary path in {} failed: {error}", parent.display());
                    return Err(CallError::Execution(message));
                }
            }
        }
    }
}

/// Create a temporary directory, and return its path. Only its owner can use it.
///
/// CLI Example:
///
///     salt '*' temp.dir
///     salt '*' temp.dir prefix='mytemp-' parent='/var/run/'
#[function]
pub fn dir(_context: &Context, #[args] name: NameArgs) -> CallResult {
    name.create(|path| user_files::create_dir(path, 0o700))
}

/// Create a temporary file, and return its path. Only its owner can use it.
///
/// CLI Example:
///
///     salt '*' temp.file
///     salt '*' temp.file prefix='mytemp-' parent='/var/run/'
#[function]
pub fn file(_context: &Context, #[args] name: NameArgs) -> CallResult {
    name.create(|path| user_files::create_new(path, 0o600).map(|_| ()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use brine_function::Args;
    use brine_value::map;

    use crate::testing::context;

    #[test]
    fn files_and_directories_are_private() {
        let (directory, context) = (tempfile::tempdir().unwrap(), context(&[]));
        for (function, mode) in [("temp.file", 0o600), ("temp.dir", 0o700)] {
            let keyword = map! {"prefix" => "a-", "suffix" => "-x", "parent" => directory.path().to_path_buf()};
            let path = context.call(function, Args { keyword, ..Args::default() }).unwrap().to_string();
            let name = path.rsplit('/').next().unwrap();
            assert!(name.starts_with("a-") && name.strip_suffix("-x").is_some(), "{path}");
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode, "{path}");
        }
        for keyword in [map! {"prefix" => "../a"}, map! {"parent" => "/nonexistent"}] {
            assert!(context.call("temp.file", Args { keyword, ..Args::default() }).is_err());
        }
    }
}
