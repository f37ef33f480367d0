//! The private directory that holds the files of a test, in the place of the host's root.

use std::path::{Path, PathBuf};

use brine_system::files::Links;
use brine_system::user_files;
use brine_value::{Map, Value};
use indexmap::IndexMap;
use tempfile::TempDir;

use crate::format::FileOnHost;

/// The private directory; removed on drop.
pub struct Root {
    directory: TempDir,
    root: PathBuf,
}

impl Root {
    /// Creates the directory with these files.
    pub fn create(files: &IndexMap<String, FileOnHost>) -> std::io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("brine-test-").tempdir()?;
        let root = user_files::real(directory.path())?.join("root");
        let this = Root { directory, root };
        user_files::create_dir(&this.root, 0o700)?;
        for (path, file) in files {
            let place = this.path(path);
            match &file.text {
                Some(text) => {
                    this.make_parents(path)?;
                    user_files::write(&place, text)?;
                }
                None => user_files::create_dir_all(&place)?,
            }
            if let Some(mode) = file.mode.or(file.text.as_ref().map(|_| 0o644)) {
                user_files::set_mode(&place, mode, Links::Follow)?;
            }
        }
        Ok(this)
    }

    /// Returns the directory of the minion's cache.
    pub fn cache(&self) -> PathBuf {
        self.directory.path().join("cache")
    }

    /// Returns the place of a path of the host. It stays in the directory.
    pub fn path(&self, path: &str) -> PathBuf {
        let parts = Path::new(path).components().filter_map(|part| match part {
            std::path::Component::Normal(name) => Some(name),
            _ => None,
        });
        self.root.join(parts.collect::<PathBuf>())
    }

    /// Creates the directories above a path.
    pub fn make_parents(&self, path: &str) -> std::io::Result<()> {
        match self.path(path).parent() {
            Some(parent) => user_files::create_dir_all(parent),
            None => Ok(()),
        }
    }

    /// Returns a value with the paths of the host in the place of those in the directory.
    pub fn shown(&self, value: Value) -> Value {
        match value {
            Value::Str(text) => {
                let root = self.root.display().to_string();
                if text == root { "/".into() } else { text.replace(&root, "").into() }
            }
            Value::List(items) => items.into_iter().map(|item| self.shown(item)).collect(),
            Value::Map(map) => {
                map.into_iter().map(|(key, value)| (self.shown(key), self.shown(value))).collect::<Map>().into()
            }
            other => other,
        }
    }
}
