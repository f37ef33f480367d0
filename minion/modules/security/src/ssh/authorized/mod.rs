//! The format of `authorized_keys` files.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use brine_function::{Args, CallError, Others, ParamList};
use brine_host::accounts::{Account, Accounts};
use brine_system::files::FileError;
use brine_system::user_files;
use brine_value::{Map, map};
use indexmap::IndexMap;
use regex::Regex;

use super::{create_own_dir, write_own};
use brine_modules_files::file::hex_digest;

/// Matches a line: the options, then the key with its type and comment.
#[allow(clippy::unwrap_used)] // A pattern that is written here.
static LINE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^(.*?)\s?((?:sk-)?(?:ssh-|ecds)[\w@.-]+\s.+)$").unwrap());

/// The arguments that describe a key in a file of authorized keys.
#[derive(Args)]
pub struct FileArgs {
    /// Options of the key, such as `no-pty`.
    #[default]
    pub(crate) options: Vec<String>,
    /// Path of the file of keys, relative to the user's home directory.
    #[default(".ssh/authorized_keys".into())]
    pub(crate) config: String,
    /// Hash of fingerprints: `sha256` by default, `md5`.
    pub(crate) fingerprint_hash_type: Option<String>,
    /// Further arguments, ignored.
    #[keywords(further_present)]
    _kwargs: Map,
}

/// A key in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Options of the key.
    pub options: Vec<String>,
    /// Type, such as `ssh-ed25519`.
    pub enc: String,
    /// Key in base64.
    pub key: String,
    /// Comment.
    pub comment: String,
}

impl Key {
    /// Parses a line that includes the type of its key.
    pub fn parse(line: &str) -> Option<Self> {
        let captures = LINE.captures(line.trim())?;
        let options = captures[1].split(',').filter(|option| !option.is_empty()).map(str::to_owned).collect();
        let mut words = captures[2].split_whitespace().map(str::to_owned);
        let (enc, key) = (words.next()?, words.next()?);
        Some(Key { options, enc, key, comment: words.collect::<Vec<_>>().join(" ") })
    }

    /// Renders the line.
    pub fn render(&self) -> String {
        let options = if self.options.is_empty() { String::new() } else { format!("{} ", self.options.join(",")) };
        format!("{options}{} {} {}\n", self.enc, self.key, self.comment)
    }

    /// Returns the key as in `ssh.auth_keys`; `None` if it is not base64.
    fn describe(&self, hash: Option<&str>) -> Result<Option<Map>, CallError> {
        Ok(fingerprint(&self.key, hash)?.map(|fingerprint| {
            map! {
                "enc" => &self.enc,
                "comment" => &self.comment,
                "options" => self.options.clone(),
                "fingerprint" => fingerprint,
            }
        }))
    }
}

/// Outcome for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was added.
    New,
    /// Its options, type or comment were changed.
    Replaced,
    /// It was present already.
    Unchanged,
    /// There is no such user, or no home directory.
    Failed,
    /// The key contains whitespace.
    Invalid,
    /// The key is not base64.
    NoKey,
    /// It was removed.
    Removed,
    /// It was absent already.
    Absent,
    /// It was not removed, because the file cannot be written.
    NotRemoved,
}

impl Outcome {
    /// Returns the outcome as in Salt.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::New => "new",
            Outcome::Replaced => "replace",
            Outcome::Unchanged => "no change",
            Outcome::Failed => "fail",
            Outcome::Invalid => "invalid",
            Outcome::NoKey => "Invalid public key",
            Outcome::Removed => "Key removed",
            Outcome::Absent => "Key not present",
            Outcome::NotRemoved => "Key not removed",
        }
    }
}

/// Returns the full name of a key type.
pub fn full_kind(enc: &str) -> Result<&str, CallError> {
    const KEY_TYPES: [&str; 19] = [
        "ssh-rsa",
        "ssh-dss",
        "ecdsa-sha2-nistp521",
        "ecdsa-sha2-nistp384",
        "ecdsa-sha2-nistp256",
        "ssh-ed25519",
        "rsa-sha2-512",
        "rsa-sha2-256",
        "rsa-sha2-512-cert-v01@openssh.com",
        "rsa-sha2-256-cert-v01@openssh.com",
        "ssh-rsa-cert-v01@openssh.com",
        "ecdsa-sha2-nistp256-cert-v01@openssh.com",
        "ecdsa-sha2-nistp384-cert-v01@openssh.com",
        "ecdsa-sha2-nistp521-cert-v01@openssh.com",
        "sk-ecdsa-sha2-nistp256@openssh.com",
        "sk-ecdsa-sha2-nistp256-cert-v01@openssh.com",
        "ssh-ed25519-cert-v01@openssh.com",
        "sk-ssh-ed25519@openssh.com",
        "sk-ssh-ed25519-cert-v01@openssh.com",
    ];
    match enc {
        "r" | "rsa" => Ok("ssh-rsa"),
        "d" | "dsa" | "dss" => Ok("ssh-dss"),
        "e" | "ecdsa" => Ok("ecdsa-sha2-nistp256"),
        "ed25519" => Ok("ssh-ed25519"),
        full if KEY_TYPES.contains(&full) => Ok(full),
        other => Err(CallError::Execution(format!("Incorrect encryption key type '{other}'."))),
    }
}

/// Returns the fingerprint of a key, as pairs of hex digits; `None` if it is not base64.
pub fn fingerprint(key: &str, hash: Option<&str>) -> Result<Option<String>, CallError> {
    let form = hash.filter(|hash| !hash.is_empty()).unwrap_or("sha256").to_lowercase();
    let Ok(raw) = STANDARD.decode(key) else { return Ok(None) };
    let digits = hex_digest(&raw, &form)
        .map_err(|_| CallError::Execution(format!("The fingerprint_hash_type {form} is not supported.")))?;
    let pairs: Vec<&str> = (0..digits.len()).step_by(2).filter_map(|at| digits.get(at..at + 2)).collect();
    Ok(Some(pairs.join(":")))
}

/// Parses the keys of a file, by key.
pub fn keys(text: &str) -> IndexMap<String, Key> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let usable = |key: &Key| STANDARD.decode(&key.key).is_ok();
    lines.filter_map(Key::parse).filter(usable).map(|key| (key.key.clone(), key)).collect()
}

/// Returns keys as in `ssh.auth_keys`.
pub fn describe(keys: &IndexMap<String, Key>, hash: Option<&str>) -> Result<Map, CallError> {
    let mut report = Map::new();
    for (name, key) in keys {
        report.extend(key.describe(hash)?.map(|key| (name.as_str().into(), key.into())));
    }
    Ok(report)
}

/// A user's `authorized_keys` file.
#[derive(Debug)]
pub struct File {
    user: Account,
    path: PathBuf,
}

impl File {
    /// Returns the file for a path such as `.ssh/authorized_keys`, `%h/keys` or `/etc/keys/%u` of a user. `None` if
    /// there is no such user.
    pub fn of(user: &str, config: &str) -> Result<Option<Self>, CallError> {
        let accounts = Accounts::read();
        let Some(user) = accounts.user(user).cloned() else { return Ok(None) };
        let mut path = String::new();
        let mut chars = config.chars();
        while let Some(c) = chars.next() {
            match if c == '%' { chars.next() } else { None } {
                None if c == '%' => {
                    let error = "AuthorizedKeysFile path: Last character can't be escape character";
                    return Err(CallError::Execution(error.into()));
                }
                None => path.push(c),
                Some('%') => path.push('%'),
                Some('u') => path.push_str(&user.name),
                Some('h') => path.push_str(&user.home),
                Some(other) => {
                    let error = format!("AuthorizedKeysFile path: unknown token character \"%{other}\"");
                    return Err(CallError::Execution(error));
                }
            }
        }
        let path = Path::new(&user.home).join(path);
        Ok(Some(File { user, path }))
    }

    /// Returns the keys; a missing file has none.
    pub fn keys(&self) -> Result<IndexMap<String, Key>, CallError> {
        Ok(keys(&self.text()?))
    }

    fn text(&self) -> Result<String, CallError> {
        if !self.path.is_file() {
            return Ok(String::new());
        }
        user_files::read_to_string(&self.path).map_err(FileError::at("read", &self.path)).map_err(CallError::execution)
    }

    /// Predicts the outcome of [`File::set`].
    pub fn would_set(&self, key: &Key) -> Result<Outcome, CallError> {
        Ok(match self.keys()?.get(&key.key) {
            None => Outcome::New,
            Some(have) if have.render() == key.render() => Outcome::Unchanged,
            Some(_) => Outcome::Replaced,
        })
    }

    /// Adds or changes a key.
    pub fn set(&self, key: &Key) -> Result<Outcome, CallError> {
        let text = self.text()?;
        let line = key.render();
        match self.would_set(key)? {
            Outcome::New => {}
            Outcome::Replaced => {
                self.write(&with_replaced_key(&text, &key.key, &line))?;
                return Ok(Outcome::Replaced);
            }
            outcome => return Ok(outcome),
        }
        let home = Path::new(&self.user.home);
        if self.path.starts_with(home) && !home.is_dir() {
            return Ok(Outcome::Failed);
        }
        let directory = self.path.parent().unwrap_or(home);
        if !directory.is_dir() {
            create_own_dir(directory, &self.user)?;
        }
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        self.write(&format!("{text}{end}{line}"))?;
        Ok(Outcome::New)
    }

    /// Removes a key.
    pub fn remove(&self, key: &str) -> Result<Outcome, CallError> {
        let text = self.text()?;
        if !keys(&text).contains_key(key) {
            return Ok(Outcome::Absent);
        }
        if let Err(error) = self.write(&with_replaced_key(&text, key, "")) {
            tracing::warn!(%error, "removing a key failed");
            return Ok(Outcome::NotRemoved);
        }
        Ok(Outcome::Removed)
    }

    fn write(&self, text: &str) -> Result<(), CallError> {
        let is_new = !self.path.is_file();
        write_own(&self.path, text.as_bytes(), is_new.then_some(&self.user))
    }
}

/// Returns the text with the line of a key replaced. Surrounding whitespace and empty lines are removed.
fn with_replaced_key(text: &str, key: &str, line: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let put = |have: &str| {
        let is_it = !have.starts_with('#') && Key::parse(have).is_some_and(|other| other.key == key);
        if is_it { line.to_owned() } else { format!("{have}\n") }
    };
    lines.map(put).collect()
}

/// Describes the further arguments of `ssh_auth.present`.
pub(crate) fn further_present(params: &mut ParamList) {
    params.others(Others::Unused);
}

#[cfg(test)]
mod tests;
