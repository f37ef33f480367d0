//! A cached repository, managed by the program git: fetches, lists references, unpacks trees.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use brine_digest::hex;
use brine_system::{files, processes};
use brine_value::{FromValue, Map, Value};
use indexmap::IndexMap;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::access::Access;

/// The refspecs without `refspecs`: branches and tags. Salt's prefix of branches, `refs/remotes/origin/`, is written
/// where a bare repository has its branches.
const REFSPECS: [&str; 2] = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"];

/// The time that git may take for one command without `timeout`: a first fetch of a large repository is slow.
const TIMEOUT: Duration = Duration::from_secs(1800);

/// The time for one try to reach a remote.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// An error of a remote or its options.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The options are invalid.
    #[error("a git remote: {0}")]
    Options(String),
    /// Git failed to start.
    #[error("running git for the remote {remote} failed: {source}")]
    Start {
        /// The remote.
        remote: String,
        /// The system's error.
        source: io::Error,
    },
    /// Git exited with an error.
    #[error("the git remote {remote} failed: {output}")]
    Git {
        /// The remote.
        remote: String,
        /// Git's error output.
        output: String,
    },
    /// A directory of the cache cannot be created or written.
    #[error("{path}: {source}")]
    Cache {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// The options of one remote: its own, over the defaults for all remotes.
pub struct RemoteOptions<'a> {
    /// The remote's own options.
    pub own: Map,
    /// The configuration, which contains the defaults.
    pub all: &'a Map,
    /// The prefix of the defaults' names: `gitfs_`, `git_pillar_`.
    pub prefix: &'a str,
}

/// The options that a remote of gitfs and of git_pillar may have.
const NAMES: &[&str] = &[
    "all_saltenvs",
    "base",
    "depth",
    "disable_saltenv_mapping",
    "fallback",
    "insecure_auth",
    "mountpoint",
    "name",
    "passphrase",
    "password",
    "privkey",
    "proxy",
    "pubkey",
    "ref_types",
    "refspecs",
    "root",
    "ssl_verify",
    "timeout",
    "update_interval",
    "user",
];
const GITFS_NAMES: &[&str] = &["saltenv", "saltenv_blacklist", "saltenv_whitelist"];
const GIT_PILLAR_NAMES: &[&str] = &["branch", "env"];

impl RemoteOptions<'_> {
    /// Refuses options that do not exist, as Salt does: a misspelt `root` would serve the whole repository.
    fn check_names(&self, url: &str) -> Result<(), GitError> {
        let further = if self.prefix == "gitfs_" { GITFS_NAMES } else { GIT_PILLAR_NAMES };
        let is_known = |name: &str| NAMES.contains(&name) || further.contains(&name);
        let Some(name) = self.own.keys().find(|name| !name.as_str().is_some_and(is_known)) else { return Ok(()) };
        let mut known = [NAMES, further].concat();
        known.sort_unstable();
        Err(GitError::Options(format!(
            "the remote {url} has the unknown option '{name}': expected {}",
            known.join(", ")
        )))
    }

    /// Returns an option: the remote's own, or the default.
    pub fn get(&self, name: &str) -> Option<Value> {
        let all = || self.all.get(format!("{}{name}", self.prefix).as_str());
        self.own.get(name).or_else(all).filter(|value| !value.is_nil()).cloned()
    }

    /// Returns an option as a non-empty string.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(|value| value.to_string()).filter(|text| !text.is_empty())
    }

    /// Returns an option as a boolean.
    pub fn flag(&self, name: &str, default: bool) -> bool {
        self.get(name).and_then(|value| bool::from_value(&value)).unwrap_or(default)
    }

    /// Returns an option as a list of strings; empty if it is not set.
    pub fn list(&self, name: &str) -> Vec<String> {
        self.get(name).and_then(|value| Vec::from_value(&value)).unwrap_or_default()
    }

    /// Returns `ref_types`: the kinds of references that can be named.
    pub fn kinds(&self) -> Vec<String> {
        let kinds = self.list("ref_types");
        if kinds.is_empty() { ["branch", "tag", "sha"].map(str::to_owned).into() } else { kinds }
    }

    /// Returns the refspecs that are fetched, in the layout of the cached repository.
    fn refspecs(&self) -> Result<Vec<String>, GitError> {
        let refspecs = self.list("refspecs");
        if refspecs.is_empty() {
            return Ok(REFSPECS.map(str::to_owned).into());
        }
        refspecs.iter().map(|refspec| self.refspec(refspec)).collect()
    }

    fn refspec(&self, refspec: &str) -> Result<String, GitError> {
        let of_cache = |(source, destination): (&str, &str)| {
            let branch = destination.strip_prefix("refs/remotes/origin/").map(|branch| format!("refs/heads/{branch}"));
            let tag = destination.strip_prefix("refs/tags/").map(|_| destination.to_owned());
            branch.or(tag).map(|destination| format!("{source}:{destination}"))
        };
        let excluded = refspec.starts_with('^').then(|| refspec.to_owned());
        excluded.or_else(|| refspec.split_once(':').and_then(of_cache)).ok_or_else(|| {
            GitError::Options(format!(
                "{}refspecs: '{refspec}' is invalid: expected a destination below refs/remotes/origin/ or refs/tags/, \
                 such as +refs/pull/*/head:refs/remotes/origin/pr/*",
                self.prefix
            ))
        })
    }

    /// Returns `timeout`: the time that git may take for one command.
    fn timeout(&self) -> Result<Duration, GitError> {
        let Some(value) = self.get("timeout") else { return Ok(TIMEOUT) };
        let seconds = u64::from_value(&value).filter(|seconds| *seconds > 0);
        seconds.map(Duration::from_secs).ok_or_else(|| {
            GitError::Options(format!("{}timeout: expected a positive number of seconds, got {value}", self.prefix))
        })
    }

    /// Returns `depth`: the number of commits of each reference that are fetched; 0 for all.
    fn depth(&self) -> Result<u32, GitError> {
        let Some(value) = self.get("depth") else { return Ok(0) };
        u32::from_value(&value).ok_or_else(|| {
            GitError::Options(format!("{}depth: expected a non-negative integer, got {value}", self.prefix))
        })
    }
}

/// Parses a remote from the configuration: a name, or a name with options.
pub fn named_with_options(value: &Value) -> Option<(String, Map)> {
    match value {
        Value::Map(map) => map.first().map(|(name, own)| (name.to_string(), pairs(own))),
        name => Some((name.to_string(), Map::new())),
    }
}

/// Merges a list of one-key mappings, or returns the mapping.
pub fn pairs(value: &Value) -> Map {
    match value {
        Value::Map(map) => map.clone(),
        Value::List(items) => {
            items.iter().filter_map(Value::as_map).flatten().map(|(k, v)| (k.clone(), v.clone())).collect()
        }
        _ => Map::new(),
    }
}

/// A commit, the directory of it that is served, and its mountpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The commit's full hash.
    pub commit: String,
    root: String,
    mountpoint: String,
}

impl Tree {
    /// Creates the tree of a commit: its directory `root`, served below `mountpoint`.
    pub fn new(commit: &str, root: &str, mountpoint: &str) -> Self {
        Tree {
            commit: commit.to_owned(),
            root: root.trim_matches('/').to_owned(),
            mountpoint: mountpoint.strip_prefix("salt://").unwrap_or(mountpoint).trim_matches('/').to_owned(),
        }
    }
}

/// A bare repository in the cache.
#[derive(Debug)]
pub struct Repository {
    url: String,
    access: Access,
    refspecs: Vec<String>,
    /// The number of commits of each reference that are fetched; 0 for all.
    depth: u32,
    /// The directory of the repository.
    directory: PathBuf,
    /// The time that git may take for one command.
    timeout: Duration,
    /// Held while a tree is unpacked or removed.
    working: Mutex<()>,
}

impl Repository {
    /// Creates a repository cached below `cache`. The option `name` distinguishes remotes of the same URL.
    pub fn new(url: &str, options: &RemoteOptions<'_>, cache: &Path) -> Result<Self, GitError> {
        options.check_names(url)?;
        let (access, url) = Access::of(url, options)?;
        if url.starts_with('-') {
            return Err(GitError::Options(format!("{url} is not a URL")));
        }
        let name = options.own.get("name").map(ToString::to_string).unwrap_or_default();
        let (refspecs, depth, timeout) = (options.refspecs()?, options.depth()?, options.timeout()?);
        let mut identity = format!("{url} {name}");
        if refspecs != REFSPECS {
            // References of other refspecs must not stay.
            identity = format!("{identity} {}", refspecs.join(" "));
        }
        Ok(Repository {
            directory: cache.join(hex(Sha256::digest(identity))),
            access,
            refspecs,
            depth,
            timeout,
            working: Mutex::default(),
            url,
        })
    }

    /// Returns the directory of the repository.
    pub fn place(&self) -> &Path {
        &self.directory
    }

    fn bare(&self) -> PathBuf {
        self.directory.join("repository")
    }

    /// Returns the remote's URL without a password, for messages.
    pub fn describe(&self) -> String {
        match (self.url.split_once("://"), self.url.rsplit_once('@')) {
            (Some((protocol, _)), Some((_, address))) => format!("{protocol}://{address}"),
            _ => self.url.clone(),
        }
    }

    /// Returns the remote if it is a directory of this host.
    pub fn directory_of_host(&self) -> Option<&Path> {
        Some(Path::new(self.url.strip_prefix("file://").unwrap_or(&self.url))).filter(|path| path.is_absolute())
    }

    fn git(&self, words: &[&str]) -> Result<String, GitError> {
        let mut command = Command::new("git");
        command.arg("--git-dir").arg(self.bare()).stdin(Stdio::null());
        self.access.apply(&mut command, &self.bare());
        let start = |source| GitError::Start { remote: self.describe(), source };
        let output = processes::output(command.args(words), self.timeout).map_err(start)?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr).trim().replace(&self.url, &self.describe());
            return Err(GitError::Git { remote: self.describe(), output: stderr });
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Fetches the remote's current references.
    pub fn fetch(&self) -> Result<(), GitError> {
        let _working = self.working.lock();
        let bare = self.bare();
        let failed = |error: files::FileError| GitError::Cache { path: bare.clone(), source: io::Error::other(error) };
        if !bare.join("HEAD").is_file() {
            files::create_private_dir(&bare).map_err(failed)?;
            self.git(&["init", "--quiet", "--bare"])?;
        }
        self.access.prepare(&bare).map_err(failed)?;
        let depth = match self.depth {
            // Git's file that lists the commits without their parents.
            0 if bare.join("shallow").exists() => Some("--unshallow".to_owned()),
            0 => None,
            depth => Some(format!("--depth={depth}")),
        };
        let options = ["fetch", "--quiet", "--prune", "--force"].into_iter().chain(depth.as_deref());
        let words: Vec<&str> =
            options.chain(["--", self.url.as_str()]).chain(self.refspecs.iter().map(String::as_str)).collect();
        self.git(&words).map(|_| ())
    }

    /// Tries to reach the remote with its credentials, and never prompts. Leaves nothing on this host.
    ///
    /// # Errors
    /// What git says, or that nothing has answered within five seconds.
    pub fn probe(&self) -> Result<(), GitError> {
        let start = |source| GitError::Start { remote: self.describe(), source };
        let place = tempfile::tempdir().map_err(start)?;
        self.access.prepare(place.path()).map_err(|error| start(io::Error::other(error)))?;
        let mut command = Command::new("git");
        command.current_dir(place.path()).env("GIT_CEILING_DIRECTORIES", "/").stdin(Stdio::null());
        self.access.apply(&mut command, place.path());
        self.access.never_prompt(&mut command);
        // One reference is enough; a repository without any answers, too.
        command.args(["ls-remote", "--quiet", "--", self.url.as_str(), "HEAD"]);
        let output = processes::output(&mut command, self.timeout.min(PROBE_TIMEOUT)).map_err(start)?;
        if output.status.success() {
            return Ok(());
        }
        let stderr = String::from_utf8_lossy(&output.stderr).trim().replace(&self.url, &self.describe());
        Err(GitError::Git { remote: self.describe(), output: stderr })
    }

    /// Returns the commits of branches and tags by name; a branch takes precedence over a tag.
    pub fn references(&self, kinds: &[String]) -> Result<IndexMap<String, String>, GitError> {
        let format = "--format=%(refname) %(objectname) %(*objectname)";
        let listed = self.git(&["for-each-ref", format, "refs/heads", "refs/tags"])?;
        let mut references = IndexMap::new();
        for line in listed.lines() {
            let mut words = line.split(' ');
            let (Some(name), Some(object)) = (words.next(), words.next()) else { continue };
            // An annotated tag is followed by its peeled commit.
            let commit = words.next().filter(|peeled| !peeled.is_empty()).unwrap_or(object);
            let (kind, name) = match (name.strip_prefix("refs/heads/"), name.strip_prefix("refs/tags/")) {
                (Some(branch), _) => ("branch", branch),
                (_, Some(tag)) => ("tag", tag),
                _ => continue,
            };
            if kinds.iter().any(|other| other == kind) {
                references.entry(name.to_owned()).or_insert_with(|| commit.to_owned());
            }
        }
        Ok(references)
    }

    /// Returns the directory of a tree, unpacking it if necessary.
    pub fn unpacked(&self, tree: &Tree) -> Result<PathBuf, GitError> {
        let parts = hex(Sha256::digest(format!("{}\n{}", tree.root, tree.mountpoint)));
        let name = format!("{}-{}", tree.commit, &parts[..16]);
        let target = self.directory.join(&name);
        if target.is_dir() {
            return Ok(target);
        }
        let _working = self.working.lock();
        if target.is_dir() {
            return Ok(target);
        }
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| GitError::Cache { path, source }
        };
        let draft = self.directory.join(format!("{name}.{}", std::process::id()));
        let Some(mountpoint) = files::relative_path(&tree.mountpoint).or(tree.mountpoint.is_empty().then(PathBuf::new))
        else {
            return Err(GitError::Options(format!("the mountpoint {} is not a path below salt://", tree.mountpoint)));
        };
        let directory = draft.join(mountpoint);
        fs::create_dir_all(&directory).map_err(failed(&directory))?;
        let archive = draft.with_extension("tar");
        let part = format!("{}:{}", tree.commit, tree.root);
        let result = self.git(&["archive", "--format=tar", "-o", &archive.to_string_lossy(), &part]).and_then(|_| {
            let mut tar = Command::new("tar");
            tar.arg("--extract").arg("--no-same-owner").arg("--file").arg(&archive).arg("--directory").arg(&directory);
            let output = processes::output(tar.stdin(Stdio::null()), self.timeout).map_err(failed(&directory))?;
            let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            if output.status.success() {
                Ok(())
            } else {
                Err(GitError::Git { remote: self.describe(), output: stderr })
            }
        });
        _ = fs::remove_file(&archive);
        if let Err(error) = result {
            _ = fs::remove_dir_all(&draft);
            return Err(error);
        }
        // Another process may have unpacked it first.
        if fs::rename(&draft, &target).is_err() {
            _ = fs::remove_dir_all(&draft);
        }
        Ok(target)
    }

    /// Removes the unpacked trees of all other commits.
    pub fn keep_only(&self, commits: &BTreeSet<String>) {
        let _working = self.working.lock();
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_tree = name.split_once('-').is_some_and(|(commit, _)| !commits.contains(commit));
            if is_tree {
                _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}
