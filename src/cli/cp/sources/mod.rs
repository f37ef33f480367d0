//! The files below the sources of a copy.

use std::fs;
use std::path::{Path, PathBuf};

use super::SourceError;

/// The maximum size of files that are sent without `--chunked`, in bytes: they are one job.
const MAX_SINGLE_JOB_SIZE: u64 = 1 << 20;

/// Returns the content of a small text file.
pub(super) fn small(source: &str) -> Result<String, SourceError> {
    let not_small = |reason: &str| SourceError::NotSmall(format!("{source} {reason}: use the option --chunked"));
    let unavailable = |_| SourceError::NoFile(format!("The referenced file, {source} is not available."));
    let status = fs::metadata(source).map_err(unavailable)?;
    if status.is_dir() {
        return Err(not_small("is a directory"));
    }
    if status.len() > MAX_SINGLE_JOB_SIZE {
        return Err(not_small("is larger than 1 MiB"));
    }
    let bytes = fs::read(source).map_err(unavailable)?;
    String::from_utf8(bytes).map_err(|_| not_small("is not text"))
}

/// A file or an empty directory.
#[derive(Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) path: PathBuf,
    /// The last component of the source that it belongs to.
    pub(super) name: String,
    /// Its path below the source, unless it is the source.
    pub(super) below: Option<String>,
}

/// The files and empty directories of the sources.
#[derive(Debug, Default)]
pub(super) struct SourceFiles {
    pub(super) files: Vec<Entry>,
    pub(super) empty: Vec<Entry>,
}

impl SourceFiles {
    pub(super) fn below(sources: &[String]) -> Result<Self, SourceError> {
        let mut source_files = SourceFiles::default();
        for source in sources {
            let path = Path::new(source);
            // `.` and `..` have no name of their own.
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            let name = name.or_else(|| Some(fs::canonicalize(path).ok()?.file_name()?.to_string_lossy().into_owned()));
            source_files.add(path, path, &name.unwrap_or_default())?;
        }
        Ok(source_files)
    }

    fn add(&mut self, path: &Path, source: &Path, name: &str) -> Result<(), SourceError> {
        let missing = |_| SourceError::NoFile(format!("{} does not exist", path.display()));
        let below = path.strip_prefix(source).ok().filter(|below| !below.as_os_str().is_empty());
        let below = below.map(|below| below.to_string_lossy().into_owned());
        let entry = Entry { path: path.to_owned(), name: name.to_owned(), below };
        if !fs::metadata(path).map_err(missing)?.is_dir() {
            self.files.push(entry);
            return Ok(());
        }
        let children = fs::read_dir(path).map_err(missing)?;
        let mut children: Vec<PathBuf> = children.filter_map(|child| Some(child.ok()?.path())).collect();
        children.sort();
        if children.is_empty() {
            self.empty.push(entry);
        }
        // A link to a parent directory would be followed endlessly.
        let is_loop = |child: &PathBuf| child.is_symlink() && child.is_dir();
        children.iter().filter(|child| !is_loop(child)).try_for_each(|child| self.add(child, source, name))
    }
}

#[cfg(test)]
mod tests;
