//! Salt's `gitfs` backend: serves branches and tags of repositories as environments, using the program git.
//!
//! Each remote is a bare repository in the cache. The first request for an environment after a change unpacks its
//! commit into a directory of its own, which never changes again; the rest of the file server serves directories.

mod repository;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use brine_config::opts::modules;
use brine_text::glob::fnmatch;
use brine_value::{FromValue, Map, Value};
use indexmap::IndexMap;
use parking_lot::RwLock;

use repository::pairs;
pub use repository::{GitError, OwnOptions, Repository, Tree, named_with_options};

/// The mapping of a part of a repository to an environment. Unset fields default to those of the remote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Mapping {
    /// The branch, tag or commit.
    reference: Option<String>,
    /// The directory of the repository that is served.
    root: Option<String>,
    /// The path below `salt://` at which the directory is served.
    mountpoint: Option<String>,
}

/// A repository with its mapping to environments.
#[derive(Debug)]
struct Remote {
    repository: Repository,
    /// The branch that becomes the environment `base`.
    base: String,
    all: Mapping,
    environments: IndexMap<String, Mapping>,
    /// Whether all branches and tags become environments.
    maps_all: bool,
    kinds: Vec<String>,
}

/// The repositories of `gitfs_remotes`.
#[derive(Debug)]
pub struct Gitfs {
    remotes: Vec<Remote>,
    cache: PathBuf,
    allowed: Vec<String>,
    denied: Vec<String>,
    /// The trees of each environment, with the index of their remote.
    environments: RwLock<IndexMap<String, Vec<(usize, Tree)>>>,
}

impl Mapping {
    fn read(value: &Value) -> Self {
        let given = pairs(value);
        let text = |name: &str| given.get(name).map(ToString::to_string);
        Mapping { reference: text("ref"), root: text("root"), mountpoint: text("mountpoint") }
    }
}

impl Remote {
    fn read(value: &Value, options: &Map, cache: &Path) -> Result<Self, GitError> {
        let (url, own) = named_with_options(value).ok_or_else(|| GitError::Options("a remote has no URL".into()))?;
        let own = OwnOptions { own, all: options, prefix: "gitfs_" };
        let mut environments = IndexMap::new();
        for given in [Some(&modules::gitfs_saltenv(options)), own.own.get("saltenv")].into_iter().flatten() {
            for (name, mapping) in pairs(given) {
                environments.insert(name.to_string(), Mapping::read(&mapping));
            }
        }
        let kinds = own.get("ref_types").and_then(|kinds| Vec::from_value(&kinds));
        Ok(Remote {
            base: own.text("base").unwrap_or_else(|| "master".into()),
            all: Mapping { reference: None, root: own.text("root"), mountpoint: own.text("mountpoint") },
            environments,
            maps_all: !own.flag("disable_saltenv_mapping", false),
            kinds: kinds.unwrap_or_else(|| ["branch", "tag", "sha"].map(str::to_owned).into()),
            repository: Repository::new(&url, &own, cache)?,
        })
    }

    /// Returns the trees of the environments that these references define, with the index of the remote.
    fn trees(&self, number: usize, references: &IndexMap<String, String>) -> IndexMap<String, (usize, Tree)> {
        let mut trees = IndexMap::new();
        let mut add = |environment: &str, commit: &str| {
            let own = self.environments.get(environment).cloned().unwrap_or_default();
            let part = |own: Option<String>, all: &Option<String>| own.or_else(|| all.clone()).unwrap_or_default();
            let (root, mountpoint) = (part(own.root, &self.all.root), part(own.mountpoint, &self.all.mountpoint));
            let tree = (number, Tree::new(commit, &root, &mountpoint));
            trees.entry(environment.to_owned()).or_insert(tree);
        };
        for (environment, mapping) in &self.environments {
            let Some(reference) = &mapping.reference else { continue };
            let is_commit = reference.len() == 40 && reference.chars().all(|c| c.is_ascii_hexdigit());
            let is_allowed = is_commit && self.kinds.iter().any(|kind| kind == "sha");
            if let Some(commit) = references.get(reference).or(is_allowed.then_some(reference)) {
                add(environment, commit);
            }
        }
        for (name, commit) in references {
            if *name == self.base {
                add("base", commit);
            } else if self.maps_all {
                add(name, commit);
            }
        }
        trees
    }
}

impl Gitfs {
    /// Creates the configured remotes, with their cache below `cachedir`; `None` if `fileserver_backend` does not
    /// contain `gitfs`.
    pub fn of(options: &Map, cachedir: &Path) -> Result<Option<Self>, GitError> {
        if !super::backends(options).iter().any(|name| name == "gitfs") {
            return Ok(None);
        }
        let remotes = modules::gitfs_remotes(options);
        let remotes = remotes.as_list().unwrap_or_default();
        let cache = cachedir.join("gitfs");
        Ok(Some(Gitfs {
            remotes: remotes.iter().map(|remote| Remote::read(remote, options, &cache)).collect::<Result<_, _>>()?,
            cache,
            allowed: modules::gitfs_saltenv_whitelist(options),
            denied: modules::gitfs_saltenv_blacklist(options),
            environments: RwLock::default(),
        }))
    }

    /// Fetches all remotes. Logs the error of an unreachable one and continues to serve its last state. Returns whether
    /// any environment has changed.
    pub fn update(&self) -> bool {
        let mut environments: IndexMap<String, Vec<(usize, Tree)>> = IndexMap::new();
        for (number, remote) in self.remotes.iter().enumerate() {
            if let Err(error) = remote.repository.fetch() {
                tracing::error!(%error, "fetching a gitfs remote failed: its last state is served");
            }
            let references = remote.repository.references(&remote.kinds).unwrap_or_default();
            for (name, tree) in remote.trees(number, &references) {
                if self.is_served(&name) {
                    environments.entry(name).or_default().push(tree);
                }
            }
        }
        let mut served = self.environments.write();
        let changed = *served != environments;
        *served = environments;
        changed
    }

    fn is_served(&self, environment: &str) -> bool {
        let fits = |patterns: &[String]| patterns.iter().any(|pattern| fnmatch(pattern, environment));
        (self.allowed.is_empty() || fits(&self.allowed)) && !fits(&self.denied)
    }

    /// Returns the environments.
    pub fn envs(&self) -> Vec<String> {
        self.environments.read().keys().cloned().collect()
    }

    /// Returns the directories of an environment, in the order of the remotes. Logs and omits trees that cannot be
    /// unpacked.
    pub fn roots_of(&self, saltenv: &str) -> Vec<PathBuf> {
        let trees = self.environments.read().get(saltenv).cloned().unwrap_or_default();
        let unpacked = |(number, tree): &(usize, Tree)| {
            let remote = self.remotes.get(*number)?;
            remote
                .repository
                .unpacked(tree)
                .inspect_err(|error| tracing::error!(saltenv, %error, "serving an environment of gitfs failed"))
                .ok()
        };
        trees.iter().filter_map(unpacked).collect()
    }

    /// Removes the unpacked directories of commits that are no longer served.
    pub fn clean(&self) {
        for (number, remote) in self.remotes.iter().enumerate() {
            let environments = self.environments.read();
            let served = environments.values().flatten().filter(|(of, _)| *of == number);
            remote.repository.keep_only(&served.map(|(_, tree)| tree.commit.clone()).collect());
        }
    }

    /// Removes the whole cache.
    pub fn clear(&self) -> io::Result<()> {
        self.environments.write().clear();
        match fs::remove_dir_all(&self.cache) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
