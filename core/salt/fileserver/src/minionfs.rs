//! The backend `minionfs`: serves the files that minions pushed to the master (`cp.push`) as
//! `salt://<minionfs_mountpoint>/<minion id>/<path>`, in one environment.
//!
//! Their content is that of minions, so the names that a state run or a sync reads by itself are not served: `top.sls`,
//! as in Salt, and directories of modules (`_modules`), which a minion with such an id could have.

use std::fs;
use std::path::{Path, PathBuf};

use brine_config::opts::modules;
use brine_system::files;
use brine_target::matches_expression;
use brine_value::Map;

/// The names by which `fileserver_backend` selects the backend.
pub(crate) const NAMES: [&str; 2] = ["minionfs", "minion"];

/// The files that minions pushed.
#[derive(Debug)]
pub(crate) struct Minionfs {
    /// The directory with one subdirectory for each minion.
    minions: PathBuf,
    environment: String,
    /// The served directory of all minions, without slashes at its ends; empty for the root of the environment.
    mountpoint: String,
    allowed: Vec<String>,
    denied: Vec<String>,
}

/// The pushed files of one minion.
pub(crate) struct Pushed {
    /// The directory of the files.
    pub directory: PathBuf,
    /// The path at which they are served.
    pub mountpoint: String,
}

impl Minionfs {
    /// Reads the options of the backend; `cachedir` is that of the master.
    pub fn of(options: &Map, cachedir: &Path) -> Self {
        let mountpoint = modules::minionfs_mountpoint(options);
        let mountpoint = mountpoint.strip_prefix("salt://").unwrap_or(&mountpoint);
        Minionfs {
            minions: cachedir.join("minions"),
            environment: modules::minionfs_env(options),
            mountpoint: mountpoint.trim_matches('/').to_owned(),
            allowed: modules::minionfs_whitelist(options),
            denied: modules::minionfs_blacklist(options),
        }
    }

    /// Returns the environment that has the files.
    pub fn environment(&self) -> &str {
        &self.environment
    }

    /// Returns the files of all served minions, sorted by id.
    pub fn all(&self, saltenv: &str) -> Vec<Pushed> {
        let entries = fs::read_dir(&self.minions).into_iter().flatten().flatten();
        let mut ids: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        ids.sort();
        ids.iter().filter_map(|id| self.pushed(saltenv, id)).collect()
    }

    /// Returns the files of the minion that a served path belongs to.
    pub fn for_path(&self, saltenv: &str, path: &str) -> Option<Pushed> {
        self.pushed(saltenv, below(&self.mountpoint, path)?.split_once('/')?.0)
    }

    fn pushed(&self, saltenv: &str, id: &str) -> Option<Pushed> {
        let is_id = !id.starts_with('.') && !id.contains('/') && files::relative_path(id).is_some();
        if saltenv != self.environment || !is_id {
            return None;
        }
        let mountpoint = if self.mountpoint.is_empty() { id.to_owned() } else { format!("{}/{id}", self.mountpoint) };
        let directory = self.minions.join(id).join("files");
        // Few minions have pushed files: the expressions are matched last.
        let is_served = !mountpoint.starts_with('_') && directory.is_dir() && self.is_exposed(id);
        is_served.then_some(Pushed { directory, mountpoint })
    }

    fn is_exposed(&self, id: &str) -> bool {
        let any = |list: &[String]| list.iter().any(|expression| matches_expression(expression, id));
        !any(&self.denied) && (self.allowed.is_empty() || any(&self.allowed))
    }
}

/// Returns the rest of a path below a mount point; the empty one is the root of the environment.
pub(crate) fn below<'p>(mountpoint: &str, path: &'p str) -> Option<&'p str> {
    if mountpoint.is_empty() { Some(path) } else { path.strip_prefix(mountpoint)?.strip_prefix('/') }
}

/// Returns whether a pushed file of this path may be served.
pub(crate) fn may_serve(path: &str) -> bool {
    path.rsplit('/').next() != Some("top.sls")
}
