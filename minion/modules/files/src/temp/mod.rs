//! `temp`: temporary files and directories.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};

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

impl NameArgs {
    /// Returns a builder for paths with this prefix and suffix, and the parent directory.
    fn builder(&self) -> Result<(tempfile::Builder<'_, '_>, PathBuf), CallError> {
        for part in [&self.suffix, &self.prefix] {
            if part.contains('/') {
                return Err(CallError::Execution(format!(
                    "'{part}' cannot be part of a file name: name the directory as 'parent'"
                )));
            }
        }
        let parent = self.parent.as_ref().filter(|parent| !parent.is_empty());
        let mut builder = tempfile::Builder::new();
        builder.prefix(&self.prefix).suffix(&self.suffix);
        Ok((builder, parent.map_or_else(std::env::temp_dir, PathBuf::from)))
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
    let (mut builder, parent) = name.builder()?;
    let owner_only = Permissions::from_mode(0o700);
    let made = builder.permissions(owner_only).tempdir_in(&parent);
    Ok(made.map_err(|error| failed(&parent, &error))?.keep().into())
}

/// Create a temporary file, and return its path. Only its owner can use it.
///
/// CLI Example:
///
///     salt '*' temp.file
///     salt '*' temp.file prefix='mytemp-' parent='/var/run/'
#[function]
pub fn file(_context: &Context, #[args] name: NameArgs) -> CallResult {
    let (builder, parent) = name.builder()?;
    let made = builder.tempfile_in(&parent);
    let kept = made.map_err(|error| failed(&parent, &error))?.keep();
    Ok(kept.map_err(|error| failed(&parent, &error.error))?.1.into())
}

fn failed(parent: &Path, error: &std::io::Error) -> CallError {
    CallError::Execution(format!("creating a temporary path in {} failed: {error}", parent.display()))
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
