//! The file server: Salt's backends `roots`, `gitfs` and `minionfs`, and copies of the files of others, shared by the master
//! and the masterless minion. Finds, reads, hashes and lists files; the transport is the caller's responsibility.
//!
//! Paths and environments come from minions and are untrusted: neither a path nor an environment that replaces
//! `__env__` can lead out of `file_roots` (Salt checks only the path). Links are under the operator's control: with
//! `fileserver_followsymlinks`, on by default as in Salt, they may lead out of their root; otherwise only links within
//! the root are followed.
//!
//! All functions block: asynchronous callers use a blocking thread.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

mod git;
mod hashes;
mod lists;
mod minionfs;
mod mirror;

use std::fs::{self, File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use brine_config::opts::modules;
use brine_config::{ANY_ENVIRONMENT, in_environment};
use brine_digest::Digest;
use brine_system::files::{self, FileError};
use brine_text::glob::Glob;
use brine_text::python_regex::Regex;
use brine_value::Map;
use indexmap::IndexMap;

pub use git::{GitError, Gitfs, Unreachable, unreachable};
pub use git::{RemoteOptions, Repository, Tree, named_with_options};
pub use lists::FileLists;
pub use mirror::Mirror;

use hashes::Hashes;
use minionfs::{Minionfs, Pushed};

/// The size of one chunk sent to a minion, in bytes (`file_buffer_size`).
pub const BUFFER_SIZE: u64 = 262_144;

/// The options of the file server, by their configuration names.
#[derive(Debug, Clone)]
pub struct Options {
    /// `fileserver_followsymlinks`: whether links may lead out of their root, and are followed in listings.
    pub follow_symlinks: bool,
    /// `fileserver_ignoresymlinks`: whether listings omit links.
    pub ignore_symlinks: bool,
    /// `file_ignore_glob`: files that match are neither found nor listed. As in Salt, finding matches the full path,
    /// listing the path below the root.
    pub ignore_globs: Vec<String>,
    /// `file_ignore_regex`: the same as unanchored regular expressions.
    pub ignore_regexes: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Options { follow_symlinks: true, ignore_symlinks: false, ignore_globs: Vec::new(), ignore_regexes: Vec::new() }
    }
}

/// The built-in backends.
const BUILT_IN: [&str; 3] = ["roots", "gitfs", "minionfs"];

/// Returns whether a backend is built in; further ones are custom modules.
pub fn is_built_in(backend: &str) -> bool {
    BUILT_IN.contains(&backend)
}

/// Returns the configured backends in order (`fileserver_backend`), by the names of [`is_built_in`].
pub fn backends(options: &Map) -> Vec<String> {
    let names = modules::fileserver_backend(options);
    let names = if names.is_empty() { modules::fileserver_backend(&Map::new()) } else { names };
    let full_name = |name: String| match name.as_str() {
        "git" => "gitfs".into(),
        name if minionfs::NAMES.contains(&name) => "minionfs".into(),
        _ => name,
    };
    names.into_iter().map(full_name).collect()
}

/// Returns the copies of the configured backends that are not built in.
pub fn mirrors(config: &Map, cachedir: &Path) -> Vec<Mirror> {
    let backends = backends(config);
    let others = backends.iter().filter(|name| !is_built_in(name));
    others.filter_map(|name| Mirror::of(name, cachedir)).collect()
}

/// Creates the configured file server. Custom backends serve the files of their [`Mirror`]. Does not fetch repositories:
/// see [`Roots::update`].
pub fn configured(
    file_roots: IndexMap<String, Vec<PathBuf>>,
    options: &Options,
    config: &Map,
    cachedir: &Path,
) -> Result<Roots, GitError> {
    let backends = backends(config);
    let has_roots = backends.iter().any(|name| name == "roots");
    let roots = Roots::new(if has_roots { file_roots } else { IndexMap::new() }, options);
    let mut order = Vec::new();
    for name in &backends {
        match name.as_str() {
            "roots" => order.push(Backend::Roots),
            "gitfs" => order.extend(Gitfs::of(config, cachedir)?.map(Backend::Git)),
            "minionfs" => order.push(Backend::Minions(Minionfs::of(config, cachedir))),
            name => order.extend(Mirror::of(name, cachedir).map(Backend::Mirror)),
        }
    }
    Ok(Roots { backends: order, ..roots }.with_hash_kind(hash_kind(config)))
}

/// Returns the configured hash algorithm (`hash_type`), SHA-256 if it is unknown.
pub fn hash_kind(config: &Map) -> Digest {
    let name = modules::hash_type(config);
    Digest::named(&name).unwrap_or_else(|| {
        tracing::warn!(hash_type = %name, "unknown hash_type: files are hashed with SHA-256");
        Digest::Sha256
    })
}

/// A served directory.
struct Root {
    path: PathBuf,
    /// The path at which its files are served; empty for the root of the environment.
    mountpoint: String,
    /// Whether minions pushed its files.
    is_pushed: bool,
    /// Whether links may lead out of this directory.
    follow_symlinks: bool,
}

impl Root {
    /// Returns the path below the directory at which a served path is found; `None` if it is not served from here.
    fn path_of<'p>(&self, served: &'p str) -> Option<&'p str> {
        minionfs::below(&self.mountpoint, served).filter(|path| self.may_serve(path))
    }

    /// Returns whether a file of this path may be served.
    fn may_serve(&self, path: &str) -> bool {
        !self.is_pushed || minionfs::may_serve(path)
    }
}

/// A source of files.
#[derive(Debug)]
enum Backend {
    /// The directories of `file_roots`.
    Roots,
    /// The repositories of `gitfs_remotes`.
    Git(Gitfs),
    /// The files that minions pushed.
    Minions(Minionfs),
    /// The copies of another backend.
    Mirror(Mirror),
}

/// The file server: the directories of each environment (`file_roots`), the repositories (`gitfs_remotes`), and the
/// copies of the files of custom backends.
#[derive(Debug)]
pub struct Roots {
    environments: IndexMap<String, Vec<PathBuf>>,
    /// The backends, in order of precedence.
    backends: Vec<Backend>,
    follow_symlinks: bool,
    ignore_symlinks: bool,
    ignore_globs: Vec<Glob>,
    ignore_regexes: Vec<Regex>,
    hashes: Hashes,
}

/// A file found by [`Roots::find`].
#[derive(Debug, Clone)]
pub struct FoundFile {
    /// The path on disk.
    pub path: PathBuf,
    /// The normalised path below the root: `rel` in Salt's replies.
    pub relative: String,
    /// The metadata when the file was found.
    pub metadata: Metadata,
}

impl FoundFile {
    /// Returns the `stat` list of Salt's replies: mode, inode, device, links, user, group, size, and the times of
    /// access, change and creation in seconds.
    pub fn stat(&self) -> [i64; 10] {
        let stat = &self.metadata;
        [
            stat.mode().into(),
            stat.ino() as i64,
            stat.dev() as i64,
            stat.nlink() as i64,
            stat.uid().into(),
            stat.gid().into(),
            stat.size() as i64,
            stat.atime(),
            stat.mtime(),
            stat.ctime(),
        ]
    }
}

/// A part of a file. Empty data means that the offset is at or behind the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The bytes.
    pub data: Vec<u8>,
    /// The file's path below its root (`dest`).
    pub relative: String,
}

impl Roots {
    /// Creates a file server for these directories. Logs and omits invalid patterns, as Salt does.
    pub fn new(roots: IndexMap<String, Vec<PathBuf>>, options: &Options) -> Self {
        let unusable = |pattern: &str, error: &dyn std::fmt::Display| {
            tracing::warn!(pattern, %error, "invalid pattern of files to ignore: it is omitted");
        };
        let glob = |pattern: &String| Glob::new(pattern).inspect_err(|error| unusable(pattern, error)).ok();
        let regex = |pattern: &String| Regex::new(pattern).inspect_err(|error| unusable(pattern, error)).ok();
        Roots {
            environments: roots,
            backends: vec![Backend::Roots],
            follow_symlinks: options.follow_symlinks,
            ignore_symlinks: options.ignore_symlinks,
            ignore_globs: options.ignore_globs.iter().filter_map(glob).collect(),
            ignore_regexes: options.ignore_regexes.iter().filter_map(regex).collect(),
            hashes: Hashes::new(Digest::Sha256),
        }
    }

    fn git(&self) -> Option<&Gitfs> {
        self.backends.iter().find_map(|backend| if let Backend::Git(git) = backend { Some(git) } else { None })
    }

    /// Returns the copies of backends that are not built in.
    pub fn mirrors(&self) -> impl Iterator<Item = &Mirror> {
        self.backends
            .iter()
            .filter_map(|backend| if let Backend::Mirror(mirror) = backend { Some(mirror) } else { None })
    }

    /// Sets the hash algorithm; the default is SHA-256.
    #[must_use]
    pub fn with_hash_kind(self, kind: Digest) -> Self {
        Roots { hashes: Hashes::new(kind), ..self }
    }

    /// Returns the hash algorithm.
    pub fn hash_kind(&self) -> Digest {
        self.hashes.kind
    }

    /// Whether repositories are served.
    pub fn has_git(&self) -> bool {
        self.git().is_some()
    }

    /// Fetches the repositories and removes unpacked commits that are no longer served. Returns whether anything
    /// changed.
    pub fn update(&self) -> bool {
        let Some(git) = self.git() else { return false };
        let changed = git.update();
        if changed {
            git.clean();
        }
        changed
    }

    /// Removes the cache of the repositories.
    pub fn clear_cache(&self) -> std::io::Result<()> {
        self.git().map_or(Ok(()), Gitfs::clear)
    }

    /// Returns the environments, sorted.
    pub fn envs(&self) -> Vec<String> {
        let mut names: Vec<_> = self.environments.keys().cloned().collect();
        names.extend(self.git().into_iter().flat_map(Gitfs::envs));
        names.extend(self.mirrors().flat_map(Mirror::envs));
        names.extend(self.backends.iter().filter_map(|backend| match backend {
            Backend::Minions(minions) => Some(minions.environment().to_owned()),
            _ => None,
        }));
        names.sort();
        names.dedup();
        names
    }

    /// Returns the first match for a path in the environment's roots. A suffix `?saltenv=` names another environment; a
    /// leading `|` makes a question mark part of the name.
    pub fn find(&self, path: &str, saltenv: &str) -> Option<FoundFile> {
        let (path, saltenv) = split_query(path, saltenv);
        let clean = files::relative_path(path)?;
        let relative = clean.to_str()?;
        self.roots_for(saltenv, relative).iter().find_map(|root| {
            let path = root.path_of(relative)?;
            let whole = root.path.join(path);
            if self.is_ignored(&whole.to_string_lossy()) {
                return None;
            }
            let path = if root.follow_symlinks { whole } else { files::path_within(&root.path, path)? };
            let metadata = fs::metadata(&path).ok().filter(Metadata::is_file)?;
            Some(FoundFile { path, relative: relative.to_owned(), metadata })
        })
    }

    /// Whether a path or an environment leads out of the roots, by its text or by a link that is not followed. Only an
    /// attacker requests such a path.
    pub fn leads_out(&self, path: &str, saltenv: &str) -> bool {
        let (path, saltenv) = split_query(path, saltenv);
        let by_link = |root: &Root| {
            let is_link = |path| root.path.join(path).exists() && files::path_within(&root.path, path).is_none();
            !root.follow_symlinks && root.path_of(path).is_some_and(is_link)
        };
        files::leads_out(path)
            || files::leads_out(saltenv)
            || !path.is_empty() && self.roots_for(saltenv, path).iter().any(by_link)
    }

    /// Returns at most `size` bytes of a file from the offset `loc`, or `None` if there is no such file.
    pub fn read_chunk(&self, path: &str, saltenv: &str, loc: u64, size: u64) -> Result<Option<Chunk>, FileError> {
        let Some(entry) = self.find(path, saltenv) else { return Ok(None) };
        let mut data = Vec::new();
        // Not every file system can seek past the end.
        if loc < entry.metadata.len() {
            let mut file = File::open(&entry.path).map_err(FileError::at("read", &entry.path))?;
            file.seek(SeekFrom::Start(loc))
                .and_then(|_| file.take(size).read_to_end(&mut data))
                .map_err(FileError::at("read", &entry.path))?;
        }
        Ok(Some(Chunk { data, relative: entry.relative }))
    }

    /// Returns the hash of a file in hexadecimal, or `None` if there is no such file. Cached until the file changes.
    pub fn hash(&self, path: &str, saltenv: &str) -> Result<Option<String>, FileError> {
        self.find(path, saltenv).map(|entry| self.hashes.of(&entry.path)).transpose()
    }

    /// Returns the paths, below their roots, of all files whose path starts with the prefix, sorted. Includes hidden
    /// files.
    pub fn file_list(&self, saltenv: &str, prefix: &str) -> Vec<String> {
        with_prefix(self.lists(saltenv).files, prefix)
    }

    /// As [`Roots::file_list`], for all directories.
    pub fn dir_list(&self, saltenv: &str, prefix: &str) -> Vec<String> {
        with_prefix(self.lists(saltenv).dirs, prefix)
    }

    /// As [`Roots::file_list`], for all empty directories.
    pub fn empty_dirs(&self, saltenv: &str, prefix: &str) -> Vec<String> {
        with_prefix(self.lists(saltenv).empty_dirs, prefix)
    }

    /// Returns the links whose path starts with the prefix, with their targets.
    pub fn symlink_list(&self, saltenv: &str, prefix: &str) -> IndexMap<String, String> {
        let prefix = prefix.trim_matches('/');
        self.lists(saltenv).links.into_iter().filter(|(path, _)| path.starts_with(prefix)).collect()
    }

    /// Returns the roots of an environment; none if it is unknown or its name is invalid.
    fn roots_of(&self, saltenv: &str) -> Vec<Root> {
        self.roots(saltenv, |minions| minions.all(saltenv))
    }

    /// Returns the roots of an environment that may have this path.
    fn roots_for(&self, saltenv: &str, path: &str) -> Vec<Root> {
        self.roots(saltenv, |minions| minions.for_path(saltenv, path).into_iter().collect())
    }

    fn roots(&self, saltenv: &str, pushed: impl Fn(&Minionfs) -> Vec<Pushed>) -> Vec<Root> {
        // Committers to a repository, minions, and files of other backends must not be able to name the rest of the host.
        let of = |path, follow_symlinks| Root { path, mountpoint: String::new(), is_pushed: false, follow_symlinks };
        let roots = |backend: &Backend| match backend {
            Backend::Roots => {
                self.directories_of(saltenv).into_iter().map(|path| of(path, self.follow_symlinks)).collect()
            }
            Backend::Git(git) => git.roots_of(saltenv).into_iter().map(|path| of(path, false)).collect(),
            Backend::Minions(minions) => pushed(minions)
                .into_iter()
                .map(|Pushed { directory, mountpoint }| Root { mountpoint, is_pushed: true, ..of(directory, false) })
                .collect(),
            Backend::Mirror(mirror) => {
                mirror.root(saltenv).filter(|root| root.is_dir()).map(|path| of(path, false)).into_iter().collect()
            }
        };
        self.backends.iter().flat_map(|backend| -> Vec<Root> { roots(backend) }).collect()
    }

    fn directories_of(&self, saltenv: &str) -> Vec<PathBuf> {
        if let Some(roots) = self.environments.get(saltenv) {
            return roots.clone();
        }
        let (Some(roots), Some(_)) = (self.environments.get(ANY_ENVIRONMENT), files::relative_path(saltenv)) else {
            return Vec::new();
        };
        in_environment(roots, saltenv)
    }

    fn is_ignored(&self, path: &str) -> bool {
        // A regular expression that exceeds its backtracking limit counts as a match: the file stays hidden.
        self.ignore_regexes.iter().any(|regex| regex.is_match(path).unwrap_or(true))
            || self.ignore_globs.iter().any(|glob| glob.is_match(path))
    }
}

fn with_prefix(paths: impl IntoIterator<Item = String>, prefix: &str) -> Vec<String> {
    let prefix = prefix.trim_matches('/');
    paths.into_iter().filter(|path| path.starts_with(prefix)).collect()
}

/// Splits the query from a path. Returns the path, and the environment that the query names, or else `saltenv`.
fn split_query<'a>(path: &'a str, saltenv: &'a str) -> (&'a str, &'a str) {
    if let Some(verbatim) = path.strip_prefix('|') {
        return (verbatim, saltenv);
    }
    let Some((path, query)) = path.split_once('?') else { return (path, saltenv) };
    let named = query.split(['&', '?']).find_map(|option| option.strip_prefix("saltenv="));
    (path, named.unwrap_or(saltenv))
}

#[cfg(test)]
mod tests;
