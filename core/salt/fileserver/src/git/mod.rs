//! Salt's `gitfs` backend: serves branches and tags of repositories as environments, using the program git.
//!
//! Each remote is a bare repository in the cache. The first request for an environment after a change unpacks its
//! commit into a directory of its own, which never changes again; the rest of the file server serves directories.

mod access;
mod probe;
mod repository;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use brine_config::opts::modules;
use brine_text::glob::fnmatch;
use brine_value::{Map, Value};
use indexmap::{IndexMap, IndexSet};
use parking_lot::RwLock;

pub use probe::{Unreachable, unreachable};
use repository::pairs;
pub use repository::{GitError, RemoteOptions, Repository, Tree, named_with_options};

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
    /// The reference that is served in every environment (`all_saltenvs`).
    everywhere: Option<String>,
    /// The reference that is served in environments that the repository lacks.
    fallback: Option<String>,
    kinds: Vec<String>,
    /// Globs of the only environments that are served; none for all.
    allowed: Vec<String>,
    /// Globs of environments that are not served.
    denied: Vec<String>,
}

/// The state of the remotes after their last fetch.
#[derive(Debug, Default, PartialEq, Eq)]
struct Served {
    /// The trees of each environment, with the index of their remote.
    environments: IndexMap<String, Vec<(usize, Tree)>>,
    /// The commits of `fallback`, by the index of their remote.
    fallbacks: IndexMap<usize, String>,
}

/// The repositories of `gitfs_remotes`.
#[derive(Debug)]
pub struct Gitfs {
    remotes: Vec<Remote>,
    cache: PathBuf,
    served: RwLock<Served>,
}

impl Mapping {
    fn read(value: &Value) -> Self {
        let options = pairs(value);
        let text = |name: &str| options.get(name).map(ToString::to_string);
        Mapping { reference: text("ref"), root: text("root"), mountpoint: text("mountpoint") }
    }
}

impl Remote {
    fn read(value: &Value, options: &Map, cache: &Path) -> Result<Self, GitError> {
        let (url, own) = named_with_options(value).ok_or_else(|| GitError::Options("a remote has no URL".into()))?;
        let own = RemoteOptions { own, all: options, prefix: "gitfs_" };
        let mut environments = IndexMap::new();
        for saltenvs in [Some(&modules::gitfs_saltenv(options)), own.own.get("saltenv")].into_iter().flatten() {
            for (name, mapping) in pairs(saltenvs) {
                environments.insert(name.to_string(), Mapping::read(&mapping));
            }
        }
        Ok(Remote {
            base: own.text("base").unwrap_or_else(|| "master".into()),
            all: Mapping { reference: None, root: own.text("root"), mountpoint: own.text("mountpoint") },
            environments,
            maps_all: !own.flag("disable_saltenv_mapping", false),
            everywhere: own.own.get("all_saltenvs").map(ToString::to_string),
            fallback: own.text("fallback"),
            kinds: own.kinds(),
            allowed: own.list("saltenv_whitelist"),
            denied: own.list("saltenv_blacklist"),
            repository: Repository::new(&url, &own, cache)?,
        })
    }

    fn is_served(&self, environment: &str) -> bool {
        let fits = |patterns: &[String]| patterns.iter().any(|pattern| fnmatch(pattern, environment));
        (self.allowed.is_empty() || fits(&self.allowed)) && !fits(&self.denied)
    }

    /// Whether the environment of this name can be a reference of the repository.
    fn maps(&self, environment: &str) -> bool {
        let mapping = self.environments.get(environment).and_then(|mapping| mapping.reference.as_ref());
        self.maps_all || environment == "base" || mapping.is_some()
    }

    /// Returns the commit of a branch, a tag or, if `ref_types` permits it, a commit's own hash.
    fn commit(&self, reference: &str, references: &IndexMap<String, String>) -> Option<String> {
        let is_commit = reference.len() == 40 && reference.chars().all(|c| c.is_ascii_hexdigit());
        let is_allowed = is_commit && self.kinds.iter().any(|kind| kind == "sha");
        references.get(reference).cloned().or_else(|| is_allowed.then(|| reference.to_owned()))
    }

    /// Returns the tree of a commit in an environment.
    fn tree(&self, environment: &str, commit: &str) -> Tree {
        let own = self.environments.get(environment).cloned().unwrap_or_default();
        let part = |own: Option<String>, all: &Option<String>| own.or_else(|| all.clone()).unwrap_or_default();
        Tree::new(commit, &part(own.root, &self.all.root), &part(own.mountpoint, &self.all.mountpoint))
    }

    /// Returns the trees of the environments that these references define.
    fn trees(&self, references: &IndexMap<String, String>) -> IndexMap<String, Tree> {
        let mut trees = IndexMap::new();
        let mut add = |environment: &str, commit: &str| {
            trees.entry(environment.to_owned()).or_insert_with(|| self.tree(environment, commit));
        };
        for (environment, mapping) in &self.environments {
            let Some(reference) = &mapping.reference else { continue };
            if let Some(commit) = self.commit(reference, references) {
                add(environment, &commit);
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
            served: RwLock::default(),
        }))
    }

    /// Tries to reach the remotes, except directories of this host that do not exist. Returns those that cannot be used.
    pub fn unreachable(&self) -> Vec<Unreachable> {
        let repositories = self.remotes.iter().map(|remote| &remote.repository);
        unreachable(repositories.filter(|one| one.directory_of_host().is_none_or(Path::is_dir)))
    }

    /// Fetches all remotes. Logs the error of an unreachable one and continues to serve its last state. Returns whether
    /// any environment has changed.
    pub fn update(&self) -> bool {
        let fetched = self.remotes.iter().map(|remote| {
            if let Err(error) = remote.repository.fetch() {
                tracing::error!(%error, "fetching a gitfs remote failed: its last state is served");
            }
            let references = remote.repository.references(&remote.kinds).unwrap_or_default();
            (remote, remote.trees(&references), references)
        });
        let fetched: Vec<_> = fetched.collect();
        let names = fetched.iter().flat_map(|(remote, trees, _)| trees.keys().filter(|name| remote.is_served(name)));
        let names: IndexSet<&String> = names.collect();
        let mut now = Served::default();
        for (number, (remote, trees, references)) in fetched.iter().enumerate() {
            let commit = |reference: &Option<String>| remote.commit(reference.as_ref()?, references);
            now.fallbacks.extend(commit(&remote.fallback).map(|commit| (number, commit)));
            let everywhere = commit(&remote.everywhere);
            for name in names.iter().copied().filter(|name| remote.is_served(name)) {
                let tree = match &remote.everywhere {
                    Some(_) => everywhere.as_ref().map(|commit| remote.tree(name, commit)),
                    None => trees.get(name).cloned(),
                };
                if let Some(tree) = tree {
                    now.environments.entry(name.clone()).or_default().push((number, tree));
                }
            }
        }
        let mut served = self.served.write();
        let changed = *served != now;
        *served = now;
        changed
    }

    /// Returns the environments.
    pub fn envs(&self) -> Vec<String> {
        self.served.read().environments.keys().cloned().collect()
    }

    /// Returns the trees of an environment in the order of the remotes, with the remote of each. Minions choose the
    /// name: nothing is kept for one that is unknown.
    fn trees_of(&self, saltenv: &str) -> Vec<(&Remote, Tree)> {
        let served = self.served.read();
        let trees = served.environments.get(saltenv).map(Vec::as_slice).unwrap_or_default();
        let tree = |(number, remote): (usize, &Remote)| {
            let own = trees.iter().find(|(of, _)| *of == number).map(|(_, tree)| tree.clone());
            own.or_else(|| {
                let commit = served.fallbacks.get(&number)?;
                (remote.is_served(saltenv) && remote.maps(saltenv)).then(|| remote.tree(saltenv, commit))
            })
        };
        self.remotes.iter().enumerate().filter_map(|(number, remote)| Some((remote, tree((number, remote))?))).collect()
    }

    /// Returns the directories of an environment, in the order of the remotes. Logs and omits trees that cannot be
    /// unpacked.
    pub fn roots_of(&self, saltenv: &str) -> Vec<PathBuf> {
        let unpacked = |(remote, tree): (&Remote, Tree)| {
            remote
                .repository
                .unpacked(&tree)
                .inspect_err(|error| tracing::error!(saltenv, %error, "serving an environment of gitfs failed"))
                .ok()
        };
        self.trees_of(saltenv).into_iter().filter_map(unpacked).collect()
    }

    /// Removes the unpacked directories of commits that are no longer served.
    pub fn clean(&self) {
        for (number, remote) in self.remotes.iter().enumerate() {
            let served = self.served.read();
            let trees = served.environments.values().flatten().filter(|(of, _)| *of == number);
            let commits = trees.map(|(_, tree)| &tree.commit).chain(served.fallbacks.get(&number));
            remote.repository.keep_only(&commits.cloned().collect());
        }
    }

    /// Removes the whole cache.
    pub fn clear(&self) -> io::Result<()> {
        *self.served.write() = Served::default();
        match fs::remove_dir_all(&self.cache) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
