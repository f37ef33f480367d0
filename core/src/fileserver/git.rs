//! Salt's `gitfs` backend: branches and tags of repositories as environments, by the program git.
//!
//! Each remote is a bare repository in the cache. When an environment is asked for the first time after it has changed,
//! its commit is unpacked into a folder of its own, which never changes again; the rest of the file server sees folders.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use indexmap::IndexMap;
use parking_lot::{Mutex, RwLock};
use sha2::{Digest, Sha256};

use crate::crypt::token::hex;
use crate::files;
use crate::glob::fnmatch;
use crate::value::{FromValue, Map, Value};

/// What is wrong with a remote or its options.
#[derive(Debug, thiserror::Error)]
pub enum GitfsError {
    /// The options make no sense.
    #[error("gitfs_remotes: {0}")]
    Options(String),
    /// Git was not started.
    #[error("git cannot be run for the gitfs remote {remote}: {source}")]
    Start {
        /// Which remote.
        remote: String,
        /// What the system says.
        source: io::Error,
    },
    /// Git ended with an error.
    #[error("the gitfs remote {remote} cannot be used: {told}")]
    Git {
        /// Which remote.
        remote: String,
        /// What git said.
        told: String,
    },
    /// A folder of the cache cannot be made or written.
    #[error("{path}: {source}")]
    Cache {
        /// Which one.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// How a part of a repository becomes an environment; what is not said is as for the remote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Mapping {
    /// The branch, tag or commit.
    reference: Option<String>,
    /// The folder of the repository that is served.
    root: Option<String>,
    /// The folder of the environment that it is in.
    mountpoint: Option<String>,
}

/// A repository.
#[derive(Debug, Clone)]
struct Remote {
    url: String,
    /// What tells apart two remotes with the same URL.
    name: Option<String>,
    /// The branch that is the environment `base`.
    base: String,
    all: Mapping,
    environments: IndexMap<String, Mapping>,
    /// Whether branches and tags are environments without being named.
    maps_all: bool,
    kinds: Vec<String>,
    checks_certificate: bool,
    key: Option<String>,
}

/// A commit, and the parts of it that are served.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Tree {
    remote: usize,
    commit: String,
    root: String,
    mountpoint: String,
}

/// The repositories of `gitfs_remotes`.
#[derive(Debug)]
pub struct Gitfs {
    remotes: Vec<Remote>,
    cache: PathBuf,
    allowed: Vec<String>,
    denied: Vec<String>,
    environments: RwLock<IndexMap<String, Vec<Tree>>>,
    /// Held while a tree is unpacked or the cache is changed.
    working: Mutex<()>,
}

/// A value of a remote's own option, or of the option for all.
fn option(own: &Map, options: &Map, name: &str) -> Option<Value> {
    let all = options.get(format!("gitfs_{name}").as_str());
    own.get(name).or(all).filter(|value| !value.is_nil()).cloned()
}

/// A list of one-key mappings, or one mapping.
fn pairs(value: &Value) -> Map {
    match value {
        Value::Map(map) => map.clone(),
        Value::List(items) => {
            items.iter().filter_map(Value::as_map).flatten().map(|(k, v)| (k.clone(), v.clone())).collect()
        }
        _ => Map::new(),
    }
}

impl Mapping {
    fn read(value: &Value) -> Self {
        let given = pairs(value);
        let text = |name: &str| given.get(name).map(ToString::to_string);
        Mapping { reference: text("ref"), root: text("root"), mountpoint: text("mountpoint") }
    }
}

impl Remote {
    fn read(value: &Value, options: &Map) -> Result<Self, GitfsError> {
        let (url, own) = match value {
            Value::Map(map) => match map.first() {
                Some((url, own)) => (url.to_string(), pairs(own)),
                None => return Err(GitfsError::Options("a remote has no URL".into())),
            },
            url => (url.to_string(), Map::new()),
        };
        let text =
            |name: &str| option(&own, options, name).map(|value| value.to_string()).filter(|text| !text.is_empty());
        let flag = |name: &str, default| {
            option(&own, options, name).and_then(|value| bool::from_value(&value)).unwrap_or(default)
        };
        let mut environments = IndexMap::new();
        for given in [options.get("gitfs_saltenv"), own.get("saltenv")].into_iter().flatten() {
            for (name, mapping) in pairs(given) {
                environments.insert(name.to_string(), Mapping::read(&mapping));
            }
        }
        let kinds = option(&own, options, "ref_types").and_then(|kinds| Vec::from_value(&kinds));
        let mut remote = Remote {
            name: own.get("name").map(ToString::to_string),
            base: text("base").unwrap_or_else(|| "master".into()),
            all: Mapping { reference: None, root: text("root"), mountpoint: text("mountpoint") },
            environments,
            maps_all: !flag("disable_saltenv_mapping", false),
            kinds: kinds.unwrap_or_else(|| ["branch", "tag", "sha"].map(str::to_owned).into()),
            checks_certificate: flag("ssl_verify", true),
            key: text("privkey"),
            url,
        };
        if let (Some(user), Some((protocol, rest))) = (text("user"), remote.url.split_once("://")) {
            let password = text("password").unwrap_or_default();
            remote.url = format!("{protocol}://{user}:{password}@{rest}");
        }
        if remote.url.starts_with('-') {
            return Err(GitfsError::Options(format!("{} is no URL", remote.url)));
        }
        Ok(remote)
    }

    /// The remote as it may be told: without a password.
    fn told(&self) -> String {
        match (self.url.split_once("://"), self.url.rsplit_once('@')) {
            (Some((protocol, _)), Some((_, place))) => format!("{protocol}://{place}"),
            _ => self.url.clone(),
        }
    }

    fn git(&self, folder: &Path, words: &[&str]) -> Result<String, GitfsError> {
        let mut command = Command::new("git");
        command.arg("--git-dir").arg(folder).stdin(Stdio::null()).env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
        if !self.checks_certificate {
            command.args(["-c", "http.sslVerify=false"]);
        }
        if let Some(key) = &self.key {
            let key = key.replace('\'', r"'\''");
            command.env("GIT_SSH_COMMAND", format!("ssh -oBatchMode=yes -i '{key}'"));
        }
        let start = |source| GitfsError::Start { remote: self.told(), source };
        let output = command.args(words).output().map_err(start)?;
        if !output.status.success() {
            let told = String::from_utf8_lossy(&output.stderr).trim().replace(&self.url, &self.told());
            return Err(GitfsError::Git { remote: self.told(), told });
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Where it is kept, below the cache.
    fn folder(&self) -> String {
        hex(Sha256::digest(format!("{} {}", self.url, self.name.as_deref().unwrap_or_default())))
    }

    /// The commits of branches and tags, by name; of the same name the branch counts.
    fn references(&self, bare: &Path) -> Result<IndexMap<String, String>, GitfsError> {
        let format = "--format=%(refname) %(objectname) %(*objectname)";
        let listed = self.git(bare, &["for-each-ref", format, "refs/heads", "refs/tags"])?;
        let mut found = IndexMap::new();
        for line in listed.lines() {
            let mut words = line.split(' ');
            let (Some(name), Some(object)) = (words.next(), words.next()) else { continue };
            // What a tag with a message means is behind it.
            let commit = words.next().filter(|peeled| !peeled.is_empty()).unwrap_or(object);
            let (kind, name) = match (name.strip_prefix("refs/heads/"), name.strip_prefix("refs/tags/")) {
                (Some(branch), _) => ("branch", branch),
                (_, Some(tag)) => ("tag", tag),
                _ => continue,
            };
            if self.kinds.iter().any(|wanted| wanted == kind) {
                found.entry(name.to_owned()).or_insert_with(|| commit.to_owned());
            }
        }
        Ok(found)
    }

    /// The environments that these references make, as commit, root and mountpoint.
    fn trees(&self, number: usize, references: &IndexMap<String, String>) -> IndexMap<String, Tree> {
        let mut trees = IndexMap::new();
        let mut add = |environment: &str, commit: &str| {
            let own = self.environments.get(environment).cloned().unwrap_or_default();
            let part = |own: Option<String>, all: &Option<String>| own.or_else(|| all.clone()).unwrap_or_default();
            let mountpoint = part(own.mountpoint, &self.all.mountpoint);
            let tree = Tree {
                remote: number,
                commit: commit.to_owned(),
                root: part(own.root, &self.all.root).trim_matches('/').to_owned(),
                mountpoint: mountpoint.strip_prefix("salt://").unwrap_or(&mountpoint).trim_matches('/').to_owned(),
            };
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
    /// The repositories that a configuration names, kept below `cachedir`; nothing if `gitfs` is not one of its
    /// `fileserver_backend`s.
    pub fn of(options: &Map, cachedir: &Path) -> Result<Option<Self>, GitfsError> {
        if !super::backends(options).iter().any(|name| name == "gitfs") {
            return Ok(None);
        }
        let remotes = options.get("gitfs_remotes").and_then(Value::as_list).unwrap_or_default();
        let list = |name: &str| options.get(name).and_then(Vec::from_value).unwrap_or_default();
        Ok(Some(Gitfs {
            remotes: remotes.iter().map(|remote| Remote::read(remote, options)).collect::<Result<_, _>>()?,
            cache: cachedir.join("gitfs"),
            allowed: list("gitfs_saltenv_whitelist"),
            denied: list("gitfs_saltenv_blacklist"),
            environments: RwLock::default(),
            working: Mutex::default(),
        }))
    }

    /// Fetches all remotes. One that cannot be reached keeps what it had, and is told of in the log. Says whether
    /// something has changed.
    pub fn update(&self) -> bool {
        let _working = self.working.lock();
        let mut environments: IndexMap<String, Vec<Tree>> = IndexMap::new();
        for (number, remote) in self.remotes.iter().enumerate() {
            if let Err(error) = self.fetch(remote) {
                tracing::error!(%error, "a gitfs remote cannot be fetched: what it had before is served");
            }
            let references = remote.references(&self.bare(remote)).unwrap_or_default();
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

    fn bare(&self, remote: &Remote) -> PathBuf {
        self.cache.join(remote.folder()).join("repository")
    }

    fn fetch(&self, remote: &Remote) -> Result<(), GitfsError> {
        let bare = self.bare(remote);
        if !bare.join("HEAD").is_file() {
            let failed = |source| GitfsError::Cache { path: bare.clone(), source };
            files::create_private_dir(&bare).map_err(|error| failed(io::Error::other(error)))?;
            remote.git(&bare, &["init", "--quiet", "--bare"])?;
        }
        let words = [
            "fetch",
            "--quiet",
            "--prune",
            "--force",
            "--",
            &remote.url,
            "+refs/heads/*:refs/heads/*",
            "+refs/tags/*:refs/tags/*",
        ];
        remote.git(&bare, &words).map(|_| ())
    }

    /// The environments.
    pub fn envs(&self) -> Vec<String> {
        self.environments.read().keys().cloned().collect()
    }

    /// The folders of an environment, in the order of the remotes. Those that cannot be unpacked are told of in the log.
    pub fn roots_of(&self, saltenv: &str) -> Vec<PathBuf> {
        let trees = self.environments.read().get(saltenv).cloned().unwrap_or_default();
        let unpacked = |tree: &Tree| {
            self.unpacked(tree)
                .inspect_err(|error| tracing::error!(saltenv, %error, "an environment of gitfs cannot be served"))
                .ok()
        };
        trees.iter().filter_map(unpacked).collect()
    }

    /// The folder with a tree, which is made if it is not there.
    fn unpacked(&self, tree: &Tree) -> Result<PathBuf, GitfsError> {
        let Some(remote) = self.remotes.get(tree.remote) else {
            return Err(GitfsError::Options("a remote is gone".into()));
        };
        let parts = hex(Sha256::digest(format!("{}\n{}", tree.root, tree.mountpoint)));
        let name = format!("{}-{}", tree.commit, &parts[..16]);
        let target = self.cache.join(remote.folder()).join(&name);
        if target.is_dir() {
            return Ok(target);
        }
        let _working = self.working.lock();
        if target.is_dir() {
            return Ok(target);
        }
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| GitfsError::Cache { path, source }
        };
        let draft = self.cache.join(remote.folder()).join(format!("{name}.{}", std::process::id()));
        let Some(mountpoint) = files::relative_path(&tree.mountpoint).or(tree.mountpoint.is_empty().then(PathBuf::new))
        else {
            return Err(GitfsError::Options(format!("the mountpoint {} is no folder of salt://", tree.mountpoint)));
        };
        let folder = draft.join(mountpoint);
        fs::create_dir_all(&folder).map_err(failed(&folder))?;
        let archive = draft.with_extension("tar");
        let part = format!("{}:{}", tree.commit, tree.root);
        let done = remote
            .git(&self.bare(remote), &["archive", "--format=tar", "-o", &archive.to_string_lossy(), &part])
            .and_then(|_| {
                let mut tar = Command::new("tar");
                tar.arg("--extract").arg("--no-same-owner").arg("--file").arg(&archive).arg("--directory").arg(&folder);
                let output = tar.stdin(Stdio::null()).output().map_err(failed(&folder))?;
                let told = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                if output.status.success() { Ok(()) } else { Err(GitfsError::Git { remote: remote.told(), told }) }
            });
        _ = fs::remove_file(&archive);
        if let Err(error) = done {
            _ = fs::remove_dir_all(&draft);
            return Err(error);
        }
        // Another process may have been quicker.
        if fs::rename(&draft, &target).is_err() {
            _ = fs::remove_dir_all(&draft);
        }
        Ok(target)
    }

    /// Removes what was unpacked of commits that are no longer served.
    pub fn clean(&self) {
        let _working = self.working.lock();
        let commits: BTreeSet<String> =
            self.environments.read().values().flatten().map(|tree| tree.commit.clone()).collect();
        for remote in &self.remotes {
            let entries = fs::read_dir(self.cache.join(remote.folder())).into_iter().flatten().flatten();
            for entry in entries {
                let name = entry.file_name().to_string_lossy().into_owned();
                let is_tree = name.split_once('-').is_some_and(|(commit, _)| !commits.contains(commit));
                if is_tree {
                    _ = fs::remove_dir_all(entry.path());
                }
            }
        }
    }

    /// Removes all that is kept.
    pub fn clear(&self) -> io::Result<()> {
        let _working = self.working.lock();
        self.environments.write().clear();
        match fs::remove_dir_all(&self.cache) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::fileserver::{Options, Roots};
    use crate::{list, map};

    /// A repository with a branch `master` of two files, a branch `dev`, and a tag `v1` with a message.
    fn repository() -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        sh(
            &folder,
            "git init -q --initial-branch=master . && mkdir -p states/sub && echo one > states/a.sls && echo two > states/sub/b && echo top > top.sls",
        );
        sh(&folder, "ln -s /etc/passwd states/out && ln -s a.sls states/in && git add . && git commit -qm one");
        sh(
            &folder,
            "git tag -a -m message v1 && git checkout -qb dev && echo dev > states/a.sls && git commit -qam dev && git checkout -q master",
        );
        folder
    }

    fn sh(folder: &TempDir, command: &str) {
        let who =
            ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].map(|key| (key, "t"));
        let status = Command::new("sh").args(["-c", command]).current_dir(folder.path()).envs(who).status().unwrap();
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
        Roots::new(IndexMap::new(), &Options::default()).with_git(gitfs, false)
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
    fn what_is_pushed_is_served_after_an_update() {
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
        assert!(!roots.update(), "a remote that is away keeps what it had");
        assert_eq!(text(&roots, "states/a.sls", "base").as_deref(), Some("new\n"));
        roots.clear_cache().unwrap();
        assert!(roots.envs().is_empty());
    }

    #[test]
    fn remotes_have_options_of_their_own() {
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
    fn it_is_a_backend_that_is_asked_for() {
        let folder = Path::new("/nonexistent");
        assert!(Gitfs::of(&Map::new(), folder).unwrap().is_none());
        assert!(Gitfs::of(&map! {"fileserver_backend" => list!["roots", "git"]}, folder).unwrap().is_some());
        let bad = map! {"fileserver_backend" => list!["gitfs"], "gitfs_remotes" => list!["--upload-pack=x"]};
        assert!(matches!(Gitfs::of(&bad, folder), Err(GitfsError::Options(_))));
    }
}
