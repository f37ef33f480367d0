//! The files that states and templates are made of: Salt's `roots` and `gitfs` backends, shared by the master and
//! the masterless minion. Finds, reads, hashes and lists; what travels is the caller's business.
//!
//! Paths and environments come from minions, so nothing here leads out of `file_roots` by its name:
//! neither a path nor an environment that fills in for `__env__` (where Salt looks at the path alone).
//! Links are the operator's own: `fileserver_followsymlinks` is on as in Salt, and then a link may
//! lead out of its root; where it is off, only links that stay within are followed.
//!
//! Everything here blocks: callers on the asynchronous runtime hand it to a blocking thread.

mod git;
mod hashes;
mod lists;

use std::fs::{self, File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use brine_config::opts::modules;
use brine_digest::Digest;
use brine_system::files::{self, FileError};
use brine_text::glob::Glob;
use brine_value::Map;
use fancy_regex::Regex;
use indexmap::IndexMap;

pub use git::{GitError, Gitfs};
pub use git::{OwnOptions, Repository, Tree, named_with_options};
pub use lists::FileLists;

use hashes::Hashes;

/// How many bytes one answer to a minion holds (`file_buffer_size`).
pub const BUFFER_SIZE: u64 = 262_144;

/// The environment whose folders serve for all that are not named, with their name filled in.
const ANY_ENVIRONMENT: &str = "__env__";

/// The options of the file server, by their names in the configuration.
#[derive(Debug, Clone)]
pub struct Options {
    /// `fileserver_followsymlinks`: whether links may lead out of their root, and are walked in lists.
    pub follow_symlinks: bool,
    /// `fileserver_ignoresymlinks`: whether lists leave links out.
    pub ignore_symlinks: bool,
    /// `file_ignore_glob`: files that match are neither found nor listed. Found files are matched with
    /// their whole path, listed ones with the path below their root, as in Salt.
    pub ignore_globs: Vec<String>,
    /// `file_ignore_regex`: the same as regular expressions, which match anywhere.
    pub ignore_regexes: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Options { follow_symlinks: true, ignore_symlinks: false, ignore_globs: Vec::new(), ignore_regexes: Vec::new() }
    }
}

/// The backends that a configuration asks for (`fileserver_backend`), in their order: `roots`, `gitfs`.
pub fn backends(options: &Map) -> Vec<String> {
    let given = modules::fileserver_backend(options);
    let given = if given.is_empty() { modules::fileserver_backend(&Map::new()) } else { given };
    given.into_iter().map(|name| if name == "git" { "gitfs".into() } else { name }).collect()
}

/// The file server that a configuration describes; backends that there are not are left out, and reported by
/// the crate `check`. Repositories are not fetched yet: [`Roots::update`] does that.
pub fn configured(
    file_roots: IndexMap<String, Vec<PathBuf>>,
    options: &Options,
    config: &Map,
    cachedir: &Path,
) -> Result<Roots, GitError> {
    let backends = backends(config);
    let place = |name: &str| backends.iter().position(|backend| backend == name);
    let roots = Roots::new(if place("roots").is_some() { file_roots } else { IndexMap::new() }, options);
    let git_first = place("roots").is_none_or(|roots| place("gitfs").is_some_and(|git| git < roots));
    let roots = roots.with_hash_kind(hash_kind(config));
    Ok(match Gitfs::of(config, cachedir)? {
        Some(gitfs) => roots.with_git(gitfs, git_first),
        None => roots,
    })
}

/// The kind of hashes that a configuration asks for (`hash_type`).
pub fn hash_kind(config: &Map) -> Digest {
    let name = modules::hash_type(config);
    Digest::named(&name).unwrap_or_else(|| {
        tracing::warn!(hash_type = %name, "there are no hashes of this kind: those of files are SHA-256");
        Digest::Sha256
    })
}

/// A folder that is served.
struct Root {
    path: PathBuf,
    /// Whether links may lead out of it.
    follow_symlinks: bool,
}

/// The folders of each environment (`file_roots`), those of repositories (`gitfs_remotes`), and what is in them.
#[derive(Debug)]
pub struct Roots {
    environments: IndexMap<String, Vec<PathBuf>>,
    git: Option<Gitfs>,
    git_first: bool,
    follow_symlinks: bool,
    ignore_symlinks: bool,
    ignore_globs: Vec<Glob>,
    ignore_regexes: Vec<Regex>,
    hashes: Hashes,
}

/// A file that was asked for.
#[derive(Debug, Clone)]
pub struct FoundFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its path below its root, cleaned: `rel` of Salt's answers.
    pub relative: String,
    /// Its state when it was found.
    pub metadata: Metadata,
}

impl FoundFile {
    /// Mode, inode, device, links, user, group, size, and the times of access, change and creation in
    /// seconds: the `stat` list of Salt's answers.
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

/// A part of a file. Empty data means that the place asked for is at the end or behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The bytes.
    pub data: Vec<u8>,
    /// The file's path below its root (`dest`).
    pub relative: String,
}

impl Roots {
    /// Serves these folders. Patterns that cannot be used are told and left out, as Salt does.
    pub fn new(roots: IndexMap<String, Vec<PathBuf>>, options: &Options) -> Self {
        let unusable = |pattern: &str, error: &dyn std::fmt::Display| {
            tracing::warn!(pattern, %error, "a pattern of files to ignore cannot be used and is left out");
        };
        let glob = |pattern: &String| Glob::new(pattern).inspect_err(|error| unusable(pattern, error)).ok();
        let regex = |pattern: &String| Regex::new(pattern).inspect_err(|error| unusable(pattern, error)).ok();
        Roots {
            environments: roots,
            git: None,
            git_first: false,
            follow_symlinks: options.follow_symlinks,
            ignore_symlinks: options.ignore_symlinks,
            ignore_globs: options.ignore_globs.iter().filter_map(glob).collect(),
            ignore_regexes: options.ignore_regexes.iter().filter_map(regex).collect(),
            hashes: Hashes::new(Digest::Sha256),
        }
    }

    /// Serves repositories too, before or behind the folders.
    #[must_use]
    pub fn with_git(self, git: Gitfs, first: bool) -> Self {
        Roots { git: Some(git), git_first: first, ..self }
    }

    /// Has hashes be of another kind than SHA-256.
    #[must_use]
    pub fn with_hash_kind(self, kind: Digest) -> Self {
        Roots { hashes: Hashes::new(kind), ..self }
    }

    /// Of which kind hashes are.
    pub fn hash_kind(&self) -> Digest {
        self.hashes.kind
    }

    /// Whether there are repositories.
    pub fn has_git(&self) -> bool {
        self.git.is_some()
    }

    /// Fetches the repositories, and removes what is no longer served. Says whether something has changed.
    pub fn update(&self) -> bool {
        let Some(git) = &self.git else { return false };
        let changed = git.update();
        if changed {
            git.clean();
        }
        changed
    }

    /// Removes what is kept of the repositories.
    pub fn clear_cache(&self) -> std::io::Result<()> {
        self.git.as_ref().map_or(Ok(()), Gitfs::clear)
    }

    /// The environments, sorted.
    pub fn envs(&self) -> Vec<String> {
        let mut names: Vec<_> = self.environments.keys().cloned().collect();
        names.extend(self.git.iter().flat_map(Gitfs::envs));
        names.sort();
        names.dedup();
        names
    }

    /// The first file of that path in the environment's roots. `?saltenv=` behind the path names
    /// another environment, `|` in front of it says that a question mark is part of the name.
    pub fn find(&self, path: &str, saltenv: &str) -> Option<FoundFile> {
        let (path, saltenv) = split_query(path, saltenv);
        let clean = files::relative_path(path)?;
        let relative = clean.to_str()?;
        self.roots_of(saltenv).iter().find_map(|root| {
            let whole = root.path.join(&clean);
            if self.is_ignored(&whole.to_string_lossy()) {
                return None;
            }
            let path = if root.follow_symlinks { whole } else { files::path_within(&root.path, relative)? };
            let metadata = fs::metadata(&path).ok().filter(Metadata::is_file)?;
            Some(FoundFile { path, relative: relative.to_owned(), metadata })
        })
    }

    /// Whether a path or an environment leads out of the roots, by its text or by a link that is not followed: there
    /// is nothing to find, and only who means harm asks for it.
    pub fn leads_out(&self, path: &str, saltenv: &str) -> bool {
        let (path, saltenv) = split_query(path, saltenv);
        let by_link = |root: &Root| {
            !root.follow_symlinks && root.path.join(path).exists() && files::path_within(&root.path, path).is_none()
        };
        files::leads_out(path)
            || files::leads_out(saltenv)
            || !path.is_empty() && self.roots_of(saltenv).iter().any(by_link)
    }

    /// At most `size` bytes of a file from the place `loc` on, or nothing if there is no such file.
    pub fn read_chunk(&self, path: &str, saltenv: &str, loc: u64, size: u64) -> Result<Option<Chunk>, FileError> {
        let Some(found) = self.find(path, saltenv) else { return Ok(None) };
        let mut data = Vec::new();
        // Not every file system lets one go to a place behind the end.
        if loc < found.metadata.len() {
            let mut file = File::open(&found.path).map_err(FileError::at("read", &found.path))?;
            file.seek(SeekFrom::Start(loc))
                .and_then(|_| file.take(size).read_to_end(&mut data))
                .map_err(FileError::at("read", &found.path))?;
        }
        Ok(Some(Chunk { data, relative: found.relative }))
    }

    /// The hash of a file in hexadecimal, or nothing if there is no such file. Computed once for
    /// each state of a file.
    pub fn hash(&self, path: &str, saltenv: &str) -> Result<Option<String>, FileError> {
        self.find(path, saltenv).map(|found| self.hashes.of(&found.path)).transpose()
    }

    /// The paths below their roots of all files whose path starts with the prefix, sorted. Those whose
    /// names start with a dot too.
    pub fn file_list(&self, saltenv: &str, prefix: &str) -> Vec<String> {
        with_prefix(self.lists(saltenv).files, prefix)
    }

    /// As [`Roots::file_list`], of all folders.
    pub fn dir_list(&self, saltenv: &str, prefix: &str) -> Vec<String> {
        with_prefix(self.lists(saltenv).dirs, prefix)
    }

    /// As [`Roots::file_list`], of all folders with nothing in them.
    pub fn empty_dirs(&self, saltenv: &str, prefix: &str) -> Vec<String> {
        with_prefix(self.lists(saltenv).empty_dirs, prefix)
    }

    /// Where each link leads whose path starts with the prefix.
    pub fn symlink_list(&self, saltenv: &str, prefix: &str) -> IndexMap<String, String> {
        let prefix = prefix.trim_matches('/');
        self.lists(saltenv).links.into_iter().filter(|(path, _)| path.starts_with(prefix)).collect()
    }

    /// The roots of an environment; none if it is not known or is not a name.
    fn roots_of(&self, saltenv: &str) -> Vec<Root> {
        let own = self.folders_of(saltenv).into_iter();
        let own = own.map(|path| Root { path, follow_symlinks: self.follow_symlinks });
        // Who writes to a repository may not read the rest of the host.
        let git = self.git.iter().flat_map(|git| git.roots_of(saltenv));
        let git = git.map(|path| Root { path, follow_symlinks: false });
        if self.git_first { git.chain(own).collect() } else { own.chain(git).collect() }
    }

    fn folders_of(&self, saltenv: &str) -> Vec<PathBuf> {
        if let Some(roots) = self.environments.get(saltenv) {
            return roots.clone();
        }
        let (Some(roots), Some(_)) = (self.environments.get(ANY_ENVIRONMENT), files::relative_path(saltenv)) else {
            return Vec::new();
        };
        let fill = |root: &PathBuf| root.to_string_lossy().replace(ANY_ENVIRONMENT, saltenv).into();
        roots.iter().map(fill).collect()
    }

    fn is_ignored(&self, path: &str) -> bool {
        // A pattern that takes too long on a path counts as a match: what was to be hidden stays so.
        self.ignore_regexes.iter().any(|regex| regex.is_match(path).unwrap_or(true))
            || self.ignore_globs.iter().any(|glob| glob.is_match(path))
    }
}

fn with_prefix(paths: impl IntoIterator<Item = String>, prefix: &str) -> Vec<String> {
    let prefix = prefix.trim_matches('/');
    paths.into_iter().filter(|path| path.starts_with(prefix)).collect()
}

/// A path without what follows its question mark, and the environment that is named there.
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
