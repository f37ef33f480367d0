//! `ssh`: authorized keys of users, host keys, and known hosts.

pub mod authorized;
mod hosts;
pub mod known;
mod private;
pub(crate) mod state;

use std::path::Path;

use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::accounts::{Account, Accounts};
use brine_system::files::{Attributes, Entry, FileError, Flush, Links};
use brine_system::user_files;
use brine_value::{Map, Value};
use indexmap::IndexMap;

use authorized::{Key, Outcome};
use brine_modules_files::cmd::{self, CommandArgs};

pub(super) static MODULE: Module = Module {
    functions: &[&FUNCTIONS],
    states: &[&state::auth::FUNCTIONS, &state::known_hosts::FUNCTIONS],
    ..Module::EMPTY
};

/// Execution functions of `ssh`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "ssh",
    [
        auth_keys,
        check_key,
        check_key_file,
        set_auth_key,
        set_auth_key_from_file,
        rm_auth_key,
        rm_auth_key_from_file,
        host_keys,
        user_keys,
        private::key_is_encrypted,
        hosts::get_known_host_entries,
        hosts::recv_known_host_entries,
        hosts::check_known_host,
        hosts::set_known_host,
        hosts::rm_known_host,
        hosts::hash_known_hosts
    ]
);

/// Return the authorized keys of a user, or of several users by name.
///
/// CLI Example:
///
///     salt '*' ssh.auth_keys root
///     salt '*' ssh.auth_keys user='[user1, user2]'
#[function]
pub fn auth_keys(
    _context: &Context,
    /// User whose keys they are.
    #[default]
    user: Value,
    /// Path of the file, relative to the user's home directory.
    #[default(".ssh/authorized_keys".into())]
    config: String,
    /// Hash of fingerprints: `sha256` by default, `md5`.
    fingerprint_hash_type: Option<String>,
) -> CallResult {
    let hash = fingerprint_hash_type.as_deref();
    let of = |user: &str| match authorized::File::of(user, &config).ok().flatten() {
        Some(file) => authorized::describe(&file.keys()?, hash),
        None => Ok(Map::new()),
    };
    let users: Vec<String> = match &user {
        Value::List(users) => users.iter().map(ToString::to_string).collect(),
        one if one.is_truthy() => return Ok(of(&one.to_string())?.into()),
        _ => Accounts::read().users.into_iter().map(|user| user.name).collect(),
    };
    let mut keys_by_user = Map::new();
    for user in users {
        let keys = of(&user)?;
        if !keys.is_empty() {
            keys_by_user.insert(user.into(), keys.into());
        }
    }
    Ok(keys_by_user.into())
}

/// Check whether a key would have to be added for a user (`add`), updated (`update`), or neither (`exists`).
/// `cache_keys` and `fingerprint_hash_type` are without effect: keys are compared as they are.
///
/// CLI Example:
///
///     salt '*' ssh.check_key <user> <key> <enc> <comment> <options>
#[function]
pub fn check_key(
    _context: &Context,
    /// User whose keys they are.
    user: String,
    /// Key.
    key: String,
    /// Type of the key.
    enc: String,
    /// Comment of the key.
    comment: String,
    /// Options of the key.
    options: Vec<String>,
    /// Path of the file, relative to the user's home directory.
    #[default(".ssh/authorized_keys".into())]
    config: String,
    #[keywords] _kwargs: Map,
) -> CallResult {
    let key = Key { options, enc, key, comment };
    Ok(check(&user, &config, &key)?.into())
}

/// The arguments that name a file of keys.
#[derive(Args)]
pub struct KeyFileArgs {
    /// User who logs in with the keys.
    user: String,
    /// URL of the file.
    source: String,
    /// Path of the file of authorized keys, below the home directory of the user.
    #[default(".ssh/authorized_keys".into())]
    config: String,
    /// Environment of the file server.
    #[default("base".into())]
    saltenv: String,
    /// Further arguments, ignored.
    #[keywords]
    _kwargs: Map,
}

/// Check each key in a file, as `check_key`. `fingerprint_hash_type` is without effect.
///
/// CLI Example:
///
///     salt '*' ssh.check_key_file root salt://ssh/keyfile
#[function]
pub fn check_key_file(context: &Context, #[args] file: KeyFileArgs) -> CallResult {
    let KeyFileArgs { user, source, config, saltenv, .. } = file;
    let mut report = Map::new();
    for (name, key) in keys_of(context, &source, &saltenv)?.unwrap_or_default() {
        report.insert(name.into(), check(&user, &config, &key)?.into());
    }
    Ok(report.into())
}

/// The arguments of `ssh.set_auth_key`.
#[derive(Args)]
pub struct SetAuthKeyArgs {
    /// User who logs in with the key.
    user: String,
    /// Public key.
    key: String,
    /// Type of the key, if the key does not name its own.
    #[default("ssh-rsa".into())]
    enc: String,
    /// Comment of the key.
    #[default]
    comment: String,
    #[args]
    file: authorized::FileArgs,
}

/// Add an authorized key of a user. `cache_keys` is without effect.
///
/// CLI Example:
///
///     salt '*' ssh.set_auth_key <user> '<key>' enc='dsa'
#[function]
pub fn set_auth_key(_context: &Context, #[args] args: SetAuthKeyArgs) -> CallResult {
    let outcome = set_key(
        &args.user,
        &args.file.config,
        Key { options: args.file.options, enc: args.enc, key: args.key, comment: args.comment },
        args.file.fingerprint_hash_type.as_deref(),
    )?;
    Ok(outcome.as_str().into())
}

/// Add the authorized keys of a user from a file.
///
/// CLI Example:
///
///     salt '*' ssh.set_auth_key_from_file <user> salt://ssh_keys/<user>.id_rsa.pub
#[function]
pub fn set_auth_key_from_file(
    context: &Context,
    /// User whose keys they are.
    user: String,
    /// URL of the file of keys.
    source: String,
    /// Path of the file, relative to the user's home directory.
    #[default(".ssh/authorized_keys".into())]
    config: String,
    /// Environment of the file server.
    #[default("base".into())]
    saltenv: String,
    /// Hash of fingerprints: `sha256` by default, `md5`.
    fingerprint_hash_type: Option<String>,
    /// Options of the key.
    #[default]
    options: Vec<String>,
    #[keywords] _kwargs: Map,
) -> CallResult {
    let Some(keys) = keys_of(context, &source, &saltenv)? else {
        return Err(CallError::Execution("Failed to pull key file from salt file server".into()));
    };
    Ok(set_keys(&user, &config, keys, &options, fingerprint_hash_type.as_deref())?.as_str().into())
}

/// Remove an authorized key of a user. `fingerprint_hash_type` is without effect.
///
/// CLI Example:
///
///     salt '*' ssh.rm_auth_key <user> <key>
#[function]
pub fn rm_auth_key(
    _context: &Context,
    /// User whose keys they are.
    user: String,
    /// Key.
    key: String,
    /// Path of the file, relative to the user's home directory.
    #[default(".ssh/authorized_keys".into())]
    config: String,
    #[keywords] _kwargs: Map,
) -> CallResult {
    Ok(remove_key(&user, &config, &key)?.as_str().into())
}

/// Remove the authorized keys of a user that are in a file. `fingerprint_hash_type` is without effect.
///
/// CLI Example:
///
///     salt '*' ssh.rm_auth_key_from_file <user> salt://ssh_keys/<user>.id_rsa.pub
#[function]
pub fn rm_auth_key_from_file(context: &Context, #[args] file: KeyFileArgs) -> CallResult {
    let KeyFileArgs { user, source, config, saltenv, .. } = file;
    let Some(keys) = keys_of(context, &source, &saltenv)? else {
        return Err(CallError::Execution("Failed to pull key file from salt file server".into()));
    };
    Ok(remove_keys(&user, &config, &keys)?.as_str().into())
}

/// Return the keys of this host.
///
/// CLI Example:
///
///     salt '*' ssh.host_keys
///     salt '*' ssh.host_keys private=False certs=False
#[function]
pub fn host_keys(
    _context: &Context,
    /// Directory of the host's keys.
    keydir: Option<String>,
    /// Whether private keys are returned, too.
    #[default(true)]
    private: bool,
    /// Whether certificates are returned, too.
    #[default(true)]
    certs: bool,
) -> CallResult {
    let directory = keydir.filter(|directory| !directory.is_empty()).unwrap_or_else(|| "/etc/ssh".into());
    let entries =
        std::fs::read_dir(&directory).map_err(|error| CallError::Execution(format!("{directory}: {error}")))?;
    let mut keys = Map::new();
    for entry in entries.flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        let Some((kind, end)) = file.strip_prefix("ssh_host_").and_then(|name| name.rsplit_once("_key")) else {
            continue;
        };
        let public = if end.starts_with(".pub") || end.starts_with("-cert.pub") { end } else { "" };
        if (public.is_empty() && !private) || (public.starts_with("-cert") && !certs) {
            continue;
        }
        let text = std::fs::read(entry.path()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).trim().to_owned();
        // The data after this line is binary.
        let old = "SSH PRIVATE KEY FILE FORMAT 1.1";
        let text = if text.starts_with(&format!("{old}\n")) { old.to_owned() } else { text };
        keys.insert(format!("{kind}{public}").into(), text.into());
    }
    Ok(keys.into())
}

/// Return the keys in the home directories of users, by user and file.
///
/// CLI Example:
///
///     salt '*' ssh.user_keys
///     salt '*' ssh.user_keys user=user1 pubfile=/home/user1/.ssh/id_rsa.pub prvfile=False
#[function]
pub fn user_keys(
    _context: &Context,
    /// User whose keys they are.
    #[default]
    user: Vec<String>,
    /// Path of the file of the public key.
    #[default]
    pubfile: Value,
    /// Path of the file of the private key, or false for none.
    #[default]
    prvfile: Value,
) -> CallResult {
    let accounts = Accounts::read();
    let is_asked = |account: &&Account| user.is_empty() || user.contains(&account.name);
    let mut files = Vec::new();
    for (asked, ending) in [(pubfile, ".pub"), (prvfile, "")] {
        match asked {
            Value::Bool(false) => {}
            one if one.is_truthy() => files.push(one.to_string()),
            _ => files.extend(["rsa", "dsa", "ecdsa", "ed25519"].map(|kind| format!("id_{kind}{ending}"))),
        }
    }
    let mut keys_by_user = Map::new();
    for account in accounts.users.iter().filter(is_asked) {
        let mut keys = Map::new();
        for file in &files {
            let path = Path::new(&account.home).join(".ssh").join(file);
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            keys.extend(std::fs::read_to_string(&path).ok().map(|text| (name.into(), text.trim().into())));
        }
        if !keys.is_empty() {
            keys_by_user.insert(account.name.as_str().into(), keys.into());
        }
    }
    Ok(keys_by_user.into())
}

/// Returns the owner of a user's files: the user, if the minion runs as root.
fn owned_by(user: &Account, mode: Option<u32>) -> Attributes {
    let is_root = nix::unistd::geteuid().is_root();
    Attributes { uid: is_root.then_some(user.uid), gid: is_root.then_some(user.gid), mode }
}

/// Creates a directory of a user, which only the user can read.
fn create_own_dir(directory: &Path, user: &Account) -> Result<(), CallError> {
    user_files::create_dir_all_with(directory, owned_by(user, Some(0o700)))
        .map(|_| ())
        .map_err(FileError::at("create", directory))
        .map_err(CallError::execution)
}

/// Writes a file of a user; without a user, an existing file keeps its owner. A new file has mode 0600.
fn write_own(path: &Path, bytes: &[u8], user: Option<&Account>) -> Result<(), CallError> {
    let attributes = user.map_or_else(Attributes::default, |user| owned_by(user, None));
    Entry::resolve(path, Links::Follow)
        .and_then(|entry| user_files::write_with(entry, bytes, attributes, 0o600, Flush::Now))
        .map_err(FileError::at("write", path))
        .map_err(CallError::execution)
}

/// Makes a user the owner of a file or directory, if the minion runs as root.
fn set_owner(path: &Path, user: &Account) {
    if nix::unistd::geteuid().is_root()
        && let Err(error) = user_files::set_owner(path, Some(user.uid), Some(user.gid), Links::Follow)
    {
        tracing::warn!(path = %path.display(), user = user.name, %error, "changing the owner failed");
    }
}

/// Predicts the outcome of [`set_key`]; a missing user has no keys.
pub fn would_set_key(user: &str, config: &str, key: &Key) -> Result<Outcome, CallError> {
    let key = Key { enc: authorized::full_kind(&key.enc)?.to_owned(), ..key.clone() };
    authorized::File::of(user, config).ok().flatten().map_or(Ok(Outcome::New), |file| file.would_set(&key))
}

fn check(user: &str, config: &str, key: &Key) -> Result<&'static str, CallError> {
    Ok(match would_set_key(user, config, key)? {
        Outcome::New => "add",
        Outcome::Replaced => "update",
        _ => "exists",
    })
}

/// Returns the keys in a file of the file server or of this host; none if it does not exist.
pub fn keys_of(context: &Context, source: &str, saltenv: &str) -> Result<Option<IndexMap<String, Key>>, CallError> {
    let content = cmd::script_content(context, source, saltenv, &CommandArgs::read(&Map::new())?)?;
    Ok(content.map(|content| authorized::keys(&String::from_utf8_lossy(&content))))
}

/// Adds an authorized key of a user; its type may be abbreviated.
pub fn set_key(user: &str, config: &str, key: Key, hash: Option<&str>) -> Result<Outcome, CallError> {
    if key.key.split_whitespace().count() > 1 {
        return Ok(Outcome::Invalid);
    }
    let key = Key { enc: authorized::full_kind(&key.enc)?.to_owned(), ..key };
    let Some(file) = authorized::File::of(user, config)? else { return Ok(Outcome::Failed) };
    if authorized::fingerprint(&key.key, hash)?.is_none() {
        return Ok(Outcome::NoKey);
    }
    file.set(&key)
}

/// Adds authorized keys of a user; `options` replace their own.
pub fn set_keys(
    user: &str,
    config: &str,
    keys: IndexMap<String, Key>,
    options: &[String],
    hash: Option<&str>,
) -> Result<Outcome, CallError> {
    let mut all = Vec::new();
    for (_, mut key) in keys {
        if !options.is_empty() {
            key.options = options.to_vec();
        }
        all.push(set_key(user, config, key, hash)?);
    }
    let order = [Outcome::Failed, Outcome::Replaced, Outcome::New];
    let empty = if all.is_empty() { Outcome::Failed } else { Outcome::Unchanged };
    Ok(order.into_iter().find(|outcome| all.contains(outcome)).unwrap_or(empty))
}

/// Removes an authorized key of a user.
pub fn remove_key(user: &str, config: &str, key: &str) -> Result<Outcome, CallError> {
    authorized::File::of(user, config).ok().flatten().map_or(Ok(Outcome::Absent), |file| file.remove(key))
}

/// Removes several authorized keys of a user.
pub fn remove_keys(user: &str, config: &str, keys: &IndexMap<String, Key>) -> Result<Outcome, CallError> {
    let mut all = Vec::new();
    for key in keys.keys() {
        all.push(remove_key(user, config, key)?);
    }
    let empty = if all.is_empty() { Outcome::Failed } else { Outcome::Absent };
    Ok([Outcome::NotRemoved, Outcome::Removed].into_iter().find(|outcome| all.contains(outcome)).unwrap_or(empty))
}
