//! Finds the custom modules that may be loaded: Python files and packages in the directories of each kind, whose owner
//! and mode are checked.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::Uid;

/// The maximum number of files of one kind that are loaded.
const MAX_FILES: usize = 10_000;

/// The files of each kind, such as `modules`, in order of precedence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files(pub BTreeMap<&'static str, Vec<PathBuf>>);

impl Files {
    /// Finds the files in the directories of each kind. Of several files with the same name, the first one is used.
    ///
    /// Omits files and directories that users other than root and this process's user can write, and logs an error for
    /// each.
    pub fn find(directories: &[(&'static str, PathBuf)]) -> Self {
        let [files] = Self::find_each(directories, [is_module]);
        files
    }

    /// As [`Files::find`]. Also returns the programs in other languages in these directories: executable files without
    /// an extension.
    pub fn find_with_programs(directories: &[(&'static str, PathBuf)]) -> [Self; 2] {
        Self::find_each(directories, [is_module, is_program])
    }

    fn find_each<const N: usize>(directories: &[(&'static str, PathBuf)], forms: [fn(&Path) -> bool; N]) -> [Self; N] {
        let mut all = [const { Files(BTreeMap::new()) }; N];
        // On most hosts the directory of all synced modules is missing.
        let mut missing: BTreeSet<_> = directories.iter().filter_map(|(_, directory)| directory.parent()).collect();
        missing.retain(|parent| !parent.exists());
        let is_missing = |directory: &Path| directory.parent().is_some_and(|parent| missing.contains(parent));
        for (kind, directory) in directories.iter().filter(|(_, directory)| !is_missing(directory)) {
            let paths = in_directory(directory);
            for (is_one, files) in forms.iter().zip(&mut all) {
                let of_form = paths.iter().filter(|path| is_one(path));
                let safe = of_form.filter(|path| path.metadata().is_ok_and(|status| is_safe(path, &status)));
                let modules = files.0.entry(*kind).or_default();
                for path in safe {
                    if modules.len() < MAX_FILES && !modules.iter().any(|other| stem(other) == stem(path)) {
                        modules.push(path.clone());
                    }
                }
            }
        }
        for files in &mut all {
            files.0.retain(|_, paths| !paths.is_empty());
        }
        all
    }

    /// Whether there are no files.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the files of a kind.
    pub fn of(&self, kind: &str) -> &[PathBuf] {
        self.0.get(kind).map_or(&[], Vec::as_slice)
    }
}

/// Returns the file name up to its first dot, which is the name of the module.
pub(crate) fn stem(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()?.split('.').next()
}

/// Returns the paths in a directory, sorted; empty if other users can write the directory.
fn in_directory(directory: &Path) -> Vec<PathBuf> {
    let Ok(status) = directory.metadata() else { return Vec::new() };
    if !is_safe(directory, &status) {
        return Vec::new();
    }
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn is_module(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    let named = |extension: &str| path.extension().is_some_and(|suffix| suffix == extension);
    let is_package = || !name.contains('.') && path.join("__init__.py").is_file();
    !name.starts_with(['_', '.']) && (named("py") || named("so") || is_package())
}

fn is_program(path: &Path) -> bool {
    let has_plain_name = path
        .file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| !name.contains('.') && !name.starts_with('_'));
    has_plain_name && path.metadata().is_ok_and(|status| status.is_file() && status.permissions().mode() & 0o111 != 0)
}

/// Whether only root and this process's user can write a file or directory. Logs an error otherwise.
fn is_safe(path: &Path, status: &Metadata) -> bool {
    let own = Uid::effective().as_raw();
    let is_safe = (status.uid() == 0 || status.uid() == own) && status.permissions().mode() & 0o022 == 0;
    if !is_safe {
        let (owner, mode) = (status.uid(), format!("{:o}", status.permissions().mode() & 0o7777));
        tracing::error!(path = %path.display(), owner, mode, "module not loaded: others than its user can write it");
    }
    is_safe
}
