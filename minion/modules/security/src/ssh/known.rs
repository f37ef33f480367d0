//! Known hosts files, with `ssh-keygen` and `ssh-keyscan`.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use brine_context::Context;
use brine_function::{Args, CallError};
use brine_host::accounts::{Account, Accounts};
use brine_host::programs::{argument, program};
use brine_system::files::{FileError, Links};
use brine_system::user_files;
use brine_value::{Map, Value, map};

use super::{authorized, create_own_dir, set_owner, write_own};

/// Maximum number of attempts for a host that does not answer.
const ATTEMPTS: usize = 5;

/// The arguments that describe a host and a file of known hosts.
#[derive(Args)]
pub struct HostArgs {
    /// Fingerprint that the key of the host must have.
    pub(crate) fingerprint: Option<String>,
    /// Public key of the host; retrieved from the host by default.
    pub(crate) key: Option<String>,
    /// Port of the host's SSH server.
    pub(crate) port: Option<u16>,
    /// Type of the key, such as `ssh-ed25519`.
    pub(crate) enc: Option<String>,
    /// Path of the file, relative to the user's home directory.
    pub(crate) config: Option<String>,
    /// Whether host names are stored as hashes.
    #[default(true)]
    pub(crate) hash_known_hosts: bool,
    /// Seconds to wait for the host.
    #[default(5)]
    pub(crate) timeout: u32,
    /// Hash of fingerprints: `sha256` by default, `md5`.
    pub(crate) fingerprint_hash_type: Option<String>,
}

/// A key of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Host name, or its hash.
    pub hostname: String,
    /// Type of the key.
    pub enc: String,
    /// Key in base64.
    pub key: String,
    /// Fingerprint; `None` for a key given by an argument.
    pub fingerprint: Option<String>,
    /// Port, if the file includes it.
    pub port: Option<u16>,
}

impl Entry {
    /// Returns the entry as in `ssh.get_known_host_entries`.
    pub fn describe(&self) -> Map {
        let mut report = map! {"hostname" => &self.hostname, "enc" => &self.enc, "key" => &self.key};
        report.extend(self.fingerprint.iter().map(|fingerprint| ("fingerprint".into(), fingerprint.into())));
        report.extend(self.port.map(|port| ("port".into(), port.into())));
        report
    }
}

/// Returns entries in Salt's form: null if there are none.
pub fn describe(entries: &[Entry]) -> Value {
    if entries.is_empty() { Value::Nil } else { entries.iter().map(Entry::describe).collect() }
}

/// A host and its expected key.
#[derive(Debug, Default)]
pub struct KnownHost {
    /// Host name.
    pub name: String,
    /// Port, if it is not the default.
    pub port: Option<u16>,
    /// Type of the key.
    pub enc: Option<String>,
    /// The key.
    pub key: Option<String>,
    /// Fingerprint of the key.
    pub fingerprint: Option<String>,
    /// Hash type of the fingerprint.
    pub hash: Option<String>,
}

impl KnownHost {
    /// Returns the name as in known hosts files: `[name]:port` unless the port is 22.
    fn written(&self) -> Result<String, CallError> {
        let name = argument(&self.name)?;
        Ok(match self.port.filter(|port| *port != 22) {
            Some(port) => format!("[{name}]:{port}"),
            None => name,
        })
    }
}

/// Outcome for a host.
#[derive(Debug)]
pub enum Outcome {
    /// It was known already, by these keys.
    Exists(Vec<String>),
    /// Its entries were changed.
    Updated {
        /// Previous entries.
        old: Vec<Entry>,
        /// Current entries.
        new: Vec<Entry>,
    },
    /// It was removed; the output of `ssh-keygen`.
    Removed(String),
    /// The operation failed.
    Failed(String),
}

impl From<Outcome> for Value {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Exists(keys) => map! {"status" => "exists", "keys" => keys}.into(),
            Outcome::Updated { old, new } => {
                map! {"status" => "updated", "old" => describe(&old), "new" => describe(&new)}.into()
            }
            Outcome::Removed(comment) => map! {"status" => "removed", "comment" => comment}.into(),
            Outcome::Failed(error) => map! {"status" => "error", "error" => error}.into(),
        }
    }
}

/// A known hosts file.
#[derive(Debug)]
pub struct File {
    user: Option<Account>,
    path: PathBuf,
}

/// Returns the standard output and error of a program.
fn output(context: &Context, words: &[String]) -> Result<String, CallError> {
    let mut program = program(words, &[]);
    program.merge = true;
    Ok(context.run_program(&program).map_err(CallError::execution)?.stdout)
}

fn parse(text: &str, hash: Option<&str>) -> Result<Vec<Entry>, CallError> {
    let mut entries = Vec::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [hostname, enc, key] = words[..] else { continue };
        if let Some(fingerprint) = authorized::fingerprint(key, hash)? {
            let [hostname, enc, key] = [hostname, enc, key].map(str::to_owned);
            entries.push(Entry { hostname, enc, key, fingerprint: Some(fingerprint), port: None });
        }
    }
    Ok(entries)
}

/// Retrieves the keys of a host.
pub fn scan(context: &Context, host: &KnownHost, hashed: bool, timeout: u32) -> Result<Vec<Entry>, CallError> {
    let mut words = vec!["ssh-keyscan".to_owned()];
    words.extend(host.port.iter().flat_map(|port| ["-p".to_owned(), port.to_string()]));
    words.extend(host.enc.iter().flat_map(|enc| ["-t".to_owned(), enc.clone()]));
    words.extend(hashed.then(|| "-H".to_owned()));
    words.extend(["-T".to_owned(), timeout.to_string(), argument(&host.name)?]);
    let mut text = String::new();
    for _ in 0..ATTEMPTS {
        text = output(context, &words)?;
        if !text.is_empty() {
            break;
        }
    }
    parse(&text, host.hash.as_deref())
}

impl File {
    /// Returns the file of a user, or of the system. The error is Salt's message.
    pub fn of(user: Option<&str>, config: Option<&str>) -> Result<Self, String> {
        let user = user.filter(|user| !user.is_empty());
        let path = match (user, config.filter(|config| !config.is_empty())) {
            (_, Some(config)) => config,
            (Some(_), None) => ".ssh/known_hosts",
            (None, None) => "/etc/ssh/ssh_known_hosts",
        };
        let account = user.and_then(|user| Accounts::read().user(user).cloned());
        let path = match (&account, user) {
            (Some(account), _) => Path::new(&account.home).join(path),
            (None, _) if path.starts_with('/') => path.into(),
            (None, Some(user)) => return Err(format!("User {user} does not exist")),
            (None, None) => return Err("Cannot determine absolute path to file.".into()),
        };
        Ok(File { user: account, path })
    }

    fn missing(&self) -> Option<Outcome> {
        let missing = || Outcome::Failed(format!("Known hosts file {} does not exist", self.path.display()));
        (!self.path.is_file()).then(missing)
    }

    fn keygen(&self, context: &Context, option: &str, host: Option<&KnownHost>) -> Result<String, CallError> {
        let mut words = vec!["ssh-keygen".to_owned(), option.to_owned()];
        words.extend(host.map(KnownHost::written).transpose()?);
        // ssh-keygen follows the links of others.
        let path =
            user_files::real(&self.path).map_err(FileError::at("read", &self.path)).map_err(CallError::execution)?;
        words.extend(["-f".to_owned(), path.display().to_string()]);
        output(context, &words)
    }

    /// Returns the entries of a host.
    pub fn entries(&self, context: &Context, host: &KnownHost) -> Result<Vec<Entry>, CallError> {
        parse(&self.keygen(context, "-F", Some(host))?, host.hash.as_deref())
    }

    /// Whether a host is known by the expected key; `None` if the file does not contain the host.
    pub fn contains(&self, context: &Context, host: &KnownHost) -> Result<Option<bool>, CallError> {
        let entries = self.entries(context, host)?;
        let fits = |entry: &Entry| match (&host.key, &host.fingerprint) {
            (Some(key), _) => entry.key == *key,
            (None, Some(fingerprint)) => entry.fingerprint.as_ref() == Some(fingerprint),
            (None, None) => true,
        };
        Ok((!entries.is_empty()).then(|| entries.iter().any(fits)))
    }

    /// Removes a host.
    pub fn remove(&self, context: &Context, host: &KnownHost) -> Result<Outcome, CallError> {
        if let Some(missing) = self.missing() {
            return Ok(missing);
        }
        let comment = self.keygen(context, "-R", Some(host))?;
        self.chown();
        Ok(Outcome::Removed(comment))
    }

    /// Hashes host names, and returns the output of `ssh-keygen`.
    pub fn hash_names(&self, context: &Context) -> Result<Value, CallError> {
        if let Some(missing) = self.missing() {
            return Ok(missing.into());
        }
        let before = std::fs::metadata(&self.path).map(|status| status.permissions());
        let comment = self.keygen(context, "-H", None)?;
        if let Ok(before) = before {
            user_files::set_mode(&self.path, before.mode() & 0o777, Links::Follow)
                .map_err(FileError::at("change the mode of", &self.path))
                .map_err(CallError::execution)?;
        }
        self.chown();
        Ok(map! {"status" => "updated", "comment" => comment}.into())
    }

    fn chown(&self) {
        if let Some(user) = &self.user {
            set_owner(&self.path, user);
        }
    }

    /// Adds a host by the given key, or by the keys it presents.
    pub fn set(&self, context: &Context, host: &KnownHost, hashed: bool, timeout: u32) -> Result<Outcome, CallError> {
        if hashed && host.port.is_some_and(|port| port != 22) {
            let error = "argument port can not be used in conjunction with argument hash_known_hosts";
            return Ok(Outcome::Failed(error.into()));
        }
        let old = self.entries(context, host)?;
        let of_kind = old.iter().filter(|entry| host.enc.as_ref().is_none_or(|enc| *enc == entry.enc));
        let stored: Vec<String> = of_kind.map(|entry| entry.key.clone()).collect();
        let is_known = match (&host.fingerprint, &host.key) {
            _ if old.is_empty() => false,
            (Some(fingerprint), _) if old.iter().all(|entry| entry.fingerprint.as_ref() != Some(fingerprint)) => false,
            (_, Some(key)) if !stored.contains(key) => false,
            // Without an expected key, the host's current key may differ from the stored one.
            (None, None) => false,
            _ => true,
        };
        if is_known {
            return Ok(Outcome::Exists(stored));
        }
        let mut new = match &host.key {
            Some(key) => vec![Entry {
                hostname: host.name.clone(),
                enc: host.enc.clone().unwrap_or_default(),
                key: key.clone(),
                fingerprint: None,
                port: None,
            }],
            None => scan(context, host, hashed, timeout)?,
        };
        if new.is_empty() {
            return Ok(Outcome::Failed("Unable to receive remote host keys".into()));
        }
        if let (Some(fingerprint), None) = (&host.fingerprint, &host.key) {
            if new.iter().all(|entry| entry.fingerprint.as_ref() != Some(fingerprint)) {
                return Ok(Outcome::Failed(
                    "Remote host public keys found but none of their fingerprints match the one you have provided"
                        .into(),
                ));
            }
        } else if host.key.is_none()
            && !old.is_empty()
            && new.iter().all(|entry| stored.contains(&entry.key))
            && stored.iter().all(|key| new.iter().any(|entry| entry.key == *key))
        {
            return Ok(Outcome::Exists(stored));
        }
        for entry in new.iter_mut().filter(|entry| !hashed && !entry.hostname.contains(':')) {
            entry.port = host.port.filter(|port| *port != 22);
        }
        self.write(context, host, &new, hashed)?;
        Ok(Outcome::Updated { old, new })
    }

    /// Replaces the entries of a host.
    fn write(&self, context: &Context, host: &KnownHost, new: &[Entry], hashed: bool) -> Result<(), CallError> {
        let mut text = String::new();
        let is_new = !self.path.is_file();
        if is_new {
            let directory = self.path.parent().unwrap_or(Path::new("/"));
            match &self.user {
                _ if directory.is_dir() => {}
                Some(user) => create_own_dir(directory, user)?,
                None => user_files::create_dir_all(directory)
                    .map_err(FileError::at("create", directory))
                    .map_err(CallError::execution)?,
            }
        } else {
            let gone = line_numbers(&self.keygen(context, "-F", Some(host))?, host.enc.as_deref());
            let have = user_files::read_to_string(&self.path)
                .map_err(FileError::at("read", &self.path))
                .map_err(CallError::execution)?;
            let lines = have.split_inclusive('\n').enumerate().filter(|(at, _)| !gone.contains(&(at + 1)));
            text = lines.map(|(_, line)| line).collect();
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
        }
        for entry in new {
            let name = match entry.port {
                Some(port) => format!("[{}]:{port}", entry.hostname),
                None => entry.hostname.clone(),
            };
            text = format!("{text}{name} {} {}\n", entry.enc, entry.key);
        }
        write_own(&self.path, text.as_bytes(), self.user.as_ref())?;
        if host.key.is_some() && hashed {
            self.hash_names(context)?;
        }
        Ok(())
    }
}

/// Returns the type of a key in base64, which it begins with: `ssh-ed25519`, for example.
pub(crate) fn type_of_key(key: &str) -> Option<String> {
    let bytes = BASE64_STANDARD.decode(key.trim()).ok()?;
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let name = rest.get(..usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-@.".contains(byte);
    (!name.is_empty() && name.iter().all(is_name)).then(|| String::from_utf8_lossy(name).into_owned())
}

/// Returns the line numbers in the output of `ssh-keygen -F`: each precedes the entry it refers to.
fn line_numbers(text: &str, enc: Option<&str>) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let number = |pair: &[&str]| {
        let [reported, line] = pair else { return None };
        let kind = line.split_whitespace().rev().nth(1);
        if enc.is_some() && kind != enc { None } else { reported.split_whitespace().last()?.parse().ok() }
    };
    lines.chunks(2).filter_map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_begins_with_its_type() {
        let encoded = |bytes: &[u8]| BASE64_STANDARD.encode(bytes);
        for (key, kind) in [
            ("AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl".to_owned(), Some("ssh-ed25519")),
            (encoded(b"\0\0\0\x07ssh-rsa..."), Some("ssh-rsa")),
            (encoded(b"\0\0\0\x09ssh-rsa"), None),
            (encoded(b"\0\0\0\x03a b"), None),
            (encoded(b"\0\0"), None),
            ("not base64!".to_owned(), None),
        ] {
            assert_eq!(type_of_key(&key).as_deref(), kind, "{key}");
        }
    }

    #[test]
    fn output_of_ssh_keygen_is_parsed() {
        let text = "# Host h found: line 2\nh ssh-rsa AAAA\n# Host h found: line 5\nh ssh-ed25519 BBBB\n";
        assert_eq!(line_numbers(text, None), [2, 5]);
        assert_eq!(line_numbers(text, Some("ssh-ed25519")), [5]);
        assert_eq!(parse(text, None).unwrap().len(), 2);
    }

    #[test]
    fn files_belong_to_users_or_the_system() {
        let path = |user, config| File::of(user, config).map(|file| file.path.display().to_string());
        assert_eq!(path(None, None).unwrap(), "/etc/ssh/ssh_known_hosts");
        assert_eq!(path(Some("root"), None).unwrap(), "/root/.ssh/known_hosts");
        assert_eq!(path(Some("root"), Some("/known")).unwrap(), "/known");
        assert_eq!(path(None, Some("known")).unwrap_err(), "Cannot determine absolute path to file.");
        assert_eq!(path(Some("nobody_here"), None).unwrap_err(), "User nobody_here does not exist");
    }
}
