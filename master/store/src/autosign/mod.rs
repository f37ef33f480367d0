//! Rules that accept or reject keys without an operator: `autosign_file`, `autoreject_file`, the directory
//! `minions_autosign`, and `autosign_grains_dir`. `keys` applies them.

use std::collections::{HashMap, HashSet};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use brine_config::MasterConfig;
use brine_ids::MinionId;
use brine_text::glob::Glob;
use brine_text::python_regex::Regex;
use brine_value::{Map, Value};

/// The maximum size of a file with ids, in bytes.
const MAX_FILE: u64 = 16 << 20;

/// The rules, with cached files, which are read again when they change.
pub struct Autosign {
    directory: PathBuf,
    files: HashMap<PathBuf, (Version, Names)>,
}

/// The rule that accepted a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AcceptedBy {
    /// `auto_accept`.
    AutoAccept,
    /// `open_mode`.
    OpenMode,
    /// `autosign_file`, or a file in `minions_autosign`.
    File(PathBuf),
    /// A file in `autosign_grains_dir`: the name of the grain.
    Grain(String),
}

impl std::fmt::Display for AcceptedBy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AcceptedBy::AutoAccept => f.write_str("auto_accept"),
            AcceptedBy::OpenMode => f.write_str("open_mode"),
            AcceptedBy::File(file) => write!(f, "autosign file {}", file.display()),
            AcceptedBy::Grain(name) => write!(f, "autosign grain {name}"),
        }
    }
}

/// The version of a file, from its metadata.
type Version = (i64, i64, u64, u64, u32);

impl Autosign {
    /// Creates the rules. `directory` holds the files that accept a minion once.
    pub fn new(directory: PathBuf) -> Self {
        Autosign { directory, files: HashMap::new() }
    }

    /// Returns the directory of the files that accept a minion once.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether `autoreject_file` lists a minion.
    pub fn rejects(&mut self, config: &MasterConfig, id: &MinionId) -> bool {
        config.autoreject_file.as_deref().is_some_and(|file| self.is_named(config, file, id))
    }

    /// Returns the rule that accepts a minion: `auto_accept`, `autosign_file`, a file in `minions_autosign` (which is
    /// removed) or one of the grains that it sent.
    pub fn accepts(&mut self, config: &MasterConfig, id: &MinionId, grains: &Map) -> Option<AcceptedBy> {
        if config.auto_accept {
            return Some(AcceptedBy::AutoAccept);
        }
        if let Some(file) = config.autosign_file.as_deref().filter(|file| self.is_named(config, file, id)) {
            return Some(AcceptedBy::File(file.to_owned()));
        }
        if self.take_stub(config, id) {
            return Some(AcceptedBy::File(self.directory.join(id.as_str())));
        }
        matching_grain(config, grains).map(AcceptedBy::Grain)
    }

    fn is_named(&mut self, config: &MasterConfig, file: &Path, id: &MinionId) -> bool {
        let Ok(status) = fs::metadata(file) else { return false };
        let version = (status.mtime(), status.mtime_nsec(), status.size(), status.ino(), status.mode());
        if self.files.get(file).is_none_or(|(read, _)| *read != version) {
            let names = read_names(config, file, &status);
            self.files.insert(file.to_owned(), (version, names));
        }
        self.files.get(file).is_some_and(|(_, names)| names.contain(id.as_str()))
    }

    /// Removes a minion's file in `minions_autosign`. Returns whether it was younger than `autosign_timeout` minutes.
    fn take_stub(&self, config: &MasterConfig, id: &MinionId) -> bool {
        let stub = self.directory.join(id.as_str());
        let Ok(status) = fs::symlink_metadata(&stub) else { return false };
        let lifetime = Duration::from_secs(config.autosign_timeout.saturating_mul(60));
        let age = status.modified().ok().and_then(|time| SystemTime::now().duration_since(time).ok());
        let expired = !lifetime.is_zero() && age.is_some_and(|age| age > lifetime);
        if expired {
            tracing::warn!(file = %stub.display(), "autosign file has expired");
        }
        match fs::remove_file(&stub) {
            Ok(()) => status.is_file() && !expired,
            Err(error) => {
                // A remaining file would accept any further minion with that id.
                tracing::error!(file = %stub.display(), %error, "removing an autosign file failed: it is ignored");
                false
            }
        }
    }
}

/// Whether a file is writable only by its owner, and with `permissive_pki_access` by its group. Whoever can write the
/// file decides which minions are accepted.
fn is_safe(config: &MasterConfig, file: &Path, status: &Metadata) -> bool {
    let forbidden = if config.permissive_pki_access { 0o002 } else { 0o022 };
    let safe = status.is_file() && status.mode() & forbidden == 0 && status.size() <= MAX_FILE;
    if !safe {
        tracing::warn!(
            file = %file.display(), mode = format!("{:04o}", status.mode() & 0o7777),
            "the file is ignored: users other than its owner may write to it (chmod go-w), or it is too large"
        );
    }
    safe
}

/// Returns the lines of a file without comments and blank ones.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn read_names(config: &MasterConfig, file: &Path, status: &Metadata) -> Names {
    if !is_safe(config, file, status) {
        return Names::default();
    }
    match fs::read_to_string(file) {
        Ok(text) => Names::parse(&text),
        Err(error) => {
            tracing::warn!(file = %file.display(), %error, "reading a file of minion ids failed: it is ignored");
            Names::default()
        }
    }
}

/// The minion ids and patterns in a file.
#[derive(Default)]
struct Names {
    exact: HashSet<String>,
    globs: Vec<Glob>,
    regexes: Vec<Regex>,
}

impl Names {
    /// Parses lines of ids, globs or regular expressions. As in Salt, a line that is not a plain id counts as both a
    /// glob and a regular expression; the latter has to match the whole id. Unlike in Salt, the dots of a plain id are
    /// literal, and both sides of `a|b` have to match the whole id.
    fn parse(text: &str) -> Self {
        let mut names = Names::default();
        let is_plain = |line: &str| line.chars().all(|c| c.is_alphanumeric() || " ._-@:,".contains(c));
        for line in lines(text) {
            if is_plain(line) {
                names.exact.insert(line.to_owned());
            } else {
                names.globs.extend(Glob::new(line));
                names.regexes.extend(Regex::full(line));
            }
        }
        names
    }

    fn contain(&self, id: &str) -> bool {
        self.exact.contains(id)
            || self.globs.iter().any(|glob| glob.is_match(id))
            // A match that exceeds its limits counts as no match.
            || self.regexes.iter().any(|regex| regex.is_match_at_start(id).unwrap_or(false))
    }
}

/// Returns the name of a grain whose value, as sent by the minion, is listed in the file of that name in
/// `autosign_grains_dir`.
fn matching_grain(config: &MasterConfig, grains: &Map) -> Option<String> {
    let directory = config.autosign_grains_dir.as_deref().filter(|_| !grains.is_empty())?;
    // Iterates over the files, not over the grains, which are untrusted.
    fs::read_dir(directory).ok()?.filter_map(Result::ok).find_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let value = grains.get(&Value::from(name.as_str()))?.to_string();
        let path = entry.path();
        let status = fs::metadata(&path).ok()?;
        let matches = is_safe(config, &path, &status)
            && fs::read_to_string(&path).is_ok_and(|text| lines(&text).any(|line| line == value));
        matches.then_some(name)
    })
}

#[cfg(test)]
mod tests;
