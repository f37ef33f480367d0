//! Local copies of the files of custom backends, which are modules in `_fileserver`. The master updates the copies, and
//! serves requests from them.

use std::fs;
use std::path::{Path, PathBuf};

use brine_system::files;

/// The directory of all copies, below the cache directory.
const DIRECTORY: &str = "fileserver";

/// The copies of the files of one backend: a directory for each environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    name: String,
    directory: PathBuf,
}

impl Mirror {
    /// Returns the copies of a backend; `None` if its name cannot be the name of a module.
    pub fn of(name: &str, cachedir: &Path) -> Option<Self> {
        let is_plain = !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        is_plain.then(|| Mirror { name: name.to_owned(), directory: cachedir.join(DIRECTORY).join(name) })
    }

    /// Returns the name of the backend.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the directory that contains those of the environments.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the environments that have copies.
    pub fn envs(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let names =
            entries.filter(|entry| entry.path().is_dir()).filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| self.root(name).is_some()).collect()
    }

    /// Returns the directory of an environment, which need not exist; `None` if its name is not a valid file name.
    pub fn root(&self, saltenv: &str) -> Option<PathBuf> {
        let is_name = !saltenv.starts_with('.') && !saltenv.contains('/') && files::relative_path(saltenv).is_some();
        is_name.then(|| self.directory.join(saltenv))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_escape_the_directory_have_no_copies() {
        let cache = Path::new("/cache");
        for name in ["", "..", "a/b", "a.b", "-x", "\0"] {
            assert_eq!(Mirror::of(name, cache), None, "{name}");
        }
        let mirror = Mirror::of("racks_1", cache).unwrap();
        assert_eq!(mirror.root("base"), Some("/cache/fileserver/racks_1/base".into()));
        for saltenv in ["", ".", "..", ".part", "a/b", "/a", "../x"] {
            assert_eq!(mirror.root(saltenv), None, "{saltenv}");
        }
    }
}
