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
mod tests {
    use std::process::Command;

    use tempfile::TempDir;

    use super::*;
    use crate::Backend;
    use crate::{Options, Roots};
    use brine_value::{list, map};

    /// Creates a repository with a branch `master` of two files, a branch `dev`, and an annotated tag `v1`.
    fn repository() -> TempDir {
        let directory = tempfile::tempdir().unwrap();
        sh(
            &directory,
            "git init -q --initial-branch=master . && mkdir -p states/sub && echo one > states/a.sls && echo two > states/sub/b && echo top > top.sls",
        );
        sh(&directory, "ln -s /etc/passwd states/out && ln -s a.sls states/in && git add . && git commit -qm one");
        sh(
            &directory,
            "git tag -a -m message v1 && git checkout -qb dev && echo dev > states/a.sls && git commit -qam dev && git checkout -q master",
        );
        directory
    }

    fn sh(directory: &TempDir, command: &str) {
        let who =
            ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].map(|key| (key, "t"));
        let status = Command::new("sh").args(["-c", command]).current_dir(directory.path()).envs(who).status().unwrap();
        assert!(status.success(), "{command}");
    }

    fn url(repository: &TempDir) -> String {
        format!("file://{}", repository.path().display())
    }

    fn served(cache: &TempDir, remotes: Value, more: Map) -> Roots {
        let mut options = map! {"fileserver_backend" => list!["gitfs"], "gitfs_remotes" => remotes};
        options.extend(more);
        let gitfs = Gitfs::of(&options, cache.path()).unwrap().unwrap();
        assert!(gitfs.update());
        Roots { backends: vec![Backend::Git(gitfs)], ..Roots::new(IndexMap::new(), &Options::default()) }
    }

    fn text(roots: &Roots, path: &str, saltenv: &str) -> Option<String> {
        roots.find(path, saltenv).map(|found| fs::read_to_string(found.path).unwrap())
    }

    #[test]
    fn branches_and_tags_are_environments() {
        let (repository, cache) = (repository(), tempfile::tempdir().unwrap());
        let roots = served(&cache, list![url(&repository)], Map::new());
        assert_eq!(roots.envs(), ["base", "dev", "v1"]);
        for (env, wanted) in [("base", "one\n"), ("dev", "dev\n"), ("v1", "one\n"), ("none", ""), ("../x", "")] {
            assert_eq!(text(&roots, "states/a.sls", env).unwrap_or_default(), wanted, "{env}");
        }
        assert_eq!(roots.file_list("base", ""), ["states/a.sls", "states/in", "states/out", "states/sub/b", "top.sls"]);
        assert_eq!(text(&roots, "states/in", "base").as_deref(), Some("one\n"));
        assert_eq!(text(&roots, "states/out", "base"), None, "a link in a repository does not lead out of it");
        assert!(roots.hash("top.sls", "dev").unwrap().is_some());
    }

    #[test]
    fn pushed_commits_are_served_after_an_update() {
        let (repository, cache) = (repository(), tempfile::tempdir().unwrap());
        let roots = served(&cache, list![url(&repository)], Map::new());
        assert_eq!(text(&roots, "states/a.sls", "base").as_deref(), Some("one\n"));
        sh(&repository, "echo new > states/a.sls && git commit -qam new && git branch -qD dev");
        assert_eq!(text(&roots, "states/a.sls", "base").as_deref(), Some("one\n"));
        assert!(roots.update());
        assert!(!roots.update());
        assert_eq!(text(&roots, "states/a.sls", "base").as_deref(), Some("new\n"));
        assert_eq!(roots.envs(), ["base", "v1"]);
        fs::rename(repository.path().join(".git"), repository.path().join("gone")).unwrap();
        assert!(!roots.update(), "an unreachable remote keeps its last state");
        assert_eq!(text(&roots, "states/a.sls", "base").as_deref(), Some("new\n"));
        roots.clear_cache().unwrap();
        assert!(roots.envs().is_empty());
    }

    #[test]
    fn each_remote_has_its_own_options() {
        let (repository, cache) = (repository(), tempfile::tempdir().unwrap());
        let own = |more: Value| list![map! {url(&repository) => more}];
        for (remotes, more, env, path, wanted) in [
            (own(list![map! {"root" => "states"}]), Map::new(), "base", "a.sls", Some("one\n")),
            (
                own(list![map! {"mountpoint" => "salt://web/files"}]),
                Map::new(),
                "base",
                "web/files/top.sls",
                Some("top\n"),
            ),
            (own(list![map! {"base" => "dev"}]), Map::new(), "base", "states/a.sls", Some("dev\n")),
            (own(list![map! {"base" => "dev"}]), Map::new(), "master", "states/a.sls", Some("one\n")),
            (
                own(list![
                    map! {"saltenv" => list![map! {"prod" => list![map! {"ref" => "v1"}, map! {"root" => "states"}]}]}
                ]),
                map! {"gitfs_disable_saltenv_mapping" => true},
                "prod",
                "sub/b",
                Some("two\n"),
            ),
            (list![url(&repository)], map! {"gitfs_root" => "states"}, "dev", "a.sls", Some("dev\n")),
            (list![url(&repository)], map! {"gitfs_saltenv_blacklist" => list!["de*"]}, "dev", "top.sls", None),
            (list![url(&repository)], map! {"gitfs_saltenv_whitelist" => list!["base"]}, "dev", "top.sls", None),
            (list![url(&repository)], map! {"gitfs_ref_types" => list!["branch"]}, "v1", "top.sls", None),
            (list![url(&repository)], map! {"gitfs_root" => "nowhere"}, "base", "top.sls", None),
            (list![url(&repository)], map! {"gitfs_mountpoint" => "../out"}, "base", "top.sls", None),
        ] {
            let roots = served(&cache, remotes.clone(), more.clone());
            assert_eq!(text(&roots, path, env).as_deref(), wanted, "{remotes} {more:?} {env}");
        }
    }

    #[test]
    fn the_first_remote_that_has_a_file_serves_it() {
        let (first, second, cache) = (repository(), repository(), tempfile::tempdir().unwrap());
        sh(&second, "echo second > states/a.sls && echo more > more.sls && git add . && git commit -qm second");
        let roots = served(&cache, list![url(&first), url(&second)], Map::new());
        assert_eq!(text(&roots, "states/a.sls", "base").as_deref(), Some("one\n"));
        assert_eq!(text(&roots, "more.sls", "base").as_deref(), Some("more\n"));
    }

    #[test]
    fn gitfs_is_served_only_if_configured() {
        let directory = Path::new("/nonexistent");
        assert!(Gitfs::of(&Map::new(), directory).unwrap().is_none());
        assert!(Gitfs::of(&map! {"fileserver_backend" => list!["roots", "git"]}, directory).unwrap().is_some());
        let bad = map! {"fileserver_backend" => list!["gitfs"], "gitfs_remotes" => list!["--upload-pack=x"]};
        assert!(matches!(Gitfs::of(&bad, directory), Err(GitError::Options(_))));
    }
}
