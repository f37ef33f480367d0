//! The keys of local programs: the root key, the key of the REST API, and those of the users of `publisher_acl`; and the
//! users' access to the master's files and sockets.

use std::path::{Path, PathBuf};

use brine_bus::SocketNames;
use brine_config::{InvalidOption, MasterConfig};
use brine_crypt::token;
use brine_system::files::{self, FileError, Links};
use brine_system::user_files;
use brine_value::Value;
use brine_zmtp::Endpoint;
use nix::unistd::{Group, User};

/// The keys of the master's own programs.
pub struct LocalKeys {
    /// The root key: its owner may do everything.
    pub root: String,
    /// The key of the REST API: its owner may name the address of a user who logs in, read the journal, and revoke
    /// tokens that it knows.
    pub api: String,
}

impl LocalKeys {
    /// Reads the keys; creates those that are missing. The user of the REST API can read its key.
    pub fn open(config: &MasterConfig) -> Result<Self, FileError> {
        let root = key(&root_key_path(&config.cachedir, config.user.as_deref()))?;
        let path = api_key_path(&config.cachedir);
        let api = key(&path)?;
        if let Some(name) = config.api_user.as_deref() {
            give_to_api(&path, name);
        }
        Ok(LocalKeys { root, api })
    }
}

/// Reads a key; creates it if it is missing.
fn key(path: &Path) -> Result<String, FileError> {
    if let Some(key) = files::read_if_exists(path)?.filter(|key| key.len() >= 32) {
        return Ok(key);
    }
    let key = token::root_key();
    files::write_atomic(path, key.as_bytes(), 0o400)?;
    Ok(key)
}

/// Makes the key readable for the user of the REST API.
fn give_to_api(path: &Path, name: &str) {
    let result = api_user(name).and_then(|user| match user {
        Some(user) if nix::unistd::geteuid().is_root() => {
            user_files::set_owner(path, Some(user.uid.as_raw()), None, Links::Keep)
        }
        // A master that is not root cannot give files away, but to a group that it is a member of.
        Some(user) => user_files::set_owner(path, None, Some(user.gid.as_raw()), Links::Keep)
            .and_then(|()| user_files::set_mode(path, 0o440, Links::Keep)),
        None => Ok(()),
    });
    log_not_given(path, name, result);
}

/// Returns the user of the REST API; `None` if it is the master's own.
fn api_user(name: &str) -> std::io::Result<Option<User>> {
    if name == process_user() {
        return Ok(None);
    }
    let user = User::from_name(name)?;
    user.map(Some).ok_or_else(|| std::io::Error::other("the user does not exist on this host"))
}

fn log_not_given(path: &Path, name: &str, result: std::io::Result<()>) {
    if let Err(error) = result {
        tracing::error!(
            user = name, path = %path.display(), %error,
            "option 'api_user': salt-api gets no access to a file: start the master as root, or add the master's user to the group of the API's user"
        );
    }
}

/// Creates or reads the key file of each local user named in `publisher_acl`, readable by that user only.
pub(super) fn user_keys(config: &MasterConfig) -> Result<Vec<(String, String)>, FileError> {
    let mut keys = Vec::new();
    let own = process_user();
    for name in config.publisher_acl.keys().filter_map(Value::as_str) {
        if name == own || Some(name) == config.user.as_deref() || name.contains('/') {
            continue;
        }
        let Ok(Some(user)) = User::from_name(name) else {
            tracing::warn!(user = name, "publisher_acl: the user does not exist on this host");
            continue;
        };
        let path = config.cachedir.join(format!(".{name}_key"));
        let key = key(&path)?;
        chown_key(&path, &user);
        keys.push((name.to_owned(), key));
    }
    Ok(keys)
}

fn chown_key(path: &Path, user: &User) {
    if let Err(error) = user_files::set_owner(path, Some(user.uid.as_raw()), None, Links::Keep) {
        tracing::warn!(user = user.name, path = %path.display(), %error, "publisher_acl: changing the owner of the user's key failed");
    }
}

/// Whether users other than the master's own have rights on this host.
fn has_users(config: &MasterConfig) -> bool {
    !config.publisher_acl.is_empty() || !config.external_auth.is_empty() || config.api_user.is_some()
}

/// Returns the group of the option `sock_group`, if users other than the master's own have rights.
///
/// # Errors
/// The group does not exist, or the user of the REST API is not in it.
pub fn socket_group(config: &MasterConfig) -> Result<Option<u32>, InvalidOption> {
    let named = config.sock_group.as_deref().filter(|name| !name.is_empty() && has_users(config));
    let Some(name) = named else { return Ok(None) };
    let invalid = |reason: String| InvalidOption { option: "sock_group", reason };
    let group = match Group::from_name(name) {
        Ok(Some(group)) => group,
        Ok(None) => {
            let advice = format!("create it by `groupadd --system {name}`, or name another one");
            return Err(invalid(format!("the group '{name}' does not exist on this host: {advice}")));
        }
        Err(error) => return Err(invalid(format!("looking up the group '{name}' failed: {error}"))),
    };
    let api = config.api_user.as_deref().and_then(|user| User::from_name(user).ok().flatten());
    let is_outside = |user: &User| !user.uid.is_root() && user.gid != group.gid && !group.mem.contains(&user.name);
    if let Some(user) = api.filter(|user| user.name != process_user() && is_outside(user)) {
        let user = user.name;
        return Err(invalid(format!(
            "the user '{user}' of the option 'api_user' is not in the group '{name}', and salt-api would receive no \
             events: add it by `usermod --append --groups {name} {user}`"
        )));
    }
    Ok(Some(group.gid.as_raw()))
}

/// Grants the users of `publisher_acl` and the REST API access to their keys and the event socket. As in Salt, they may
/// traverse the directories but not list them, and the group of the master's user may subscribe to events; with
/// `api_user` it is the group of that user. With `group`, that of [`socket_group`], only its members may enter the
/// directory of the sockets. The socket is to be bound already, in a private directory.
pub fn open_to_users(config: &MasterConfig, group: Option<u32>) -> Result<(), FileError> {
    if !has_users(config) {
        return Ok(());
    }
    let directory_mode = if group.is_some() { 0o710 } else { 0o711 };
    let mut modes = Vec::new();
    if let Endpoint::Ipc(path) = SocketNames::master().publish_endpoint(&config.sock_dir) {
        match (group, config.api_user.as_deref()) {
            (Some(group), _) => {
                for path in [&path, &config.sock_dir] {
                    user_files::set_owner(path, None, Some(group), Links::Follow)
                        .map_err(FileError::at("give to the group of the option 'sock_group'", path))?;
                }
            }
            (None, Some(name)) => {
                let group = api_user(name).map(|user| user.map(|user| user.gid.as_raw()));
                log_not_given(
                    &path,
                    name,
                    group.and_then(|group| {
                        group.map_or(Ok(()), |group| user_files::set_owner(&path, None, Some(group), Links::Keep))
                    }),
                );
            }
            (None, None) => {}
        }
        modes.push((path, 0o660));
    }
    // The directories are opened last: nobody meets a socket of the wrong group.
    modes.extend([(config.cachedir.clone(), 0o711), (config.sock_dir.clone(), directory_mode)]);
    for (path, mode) in modes {
        user_files::set_mode(&path, mode, Links::Follow).map_err(FileError::at("change the mode of", &path))?;
    }
    Ok(())
}

/// Returns the path of the root key, which authorises local tools: `.<user>_key` for the current user, or for the
/// configured user if the current one is root.
pub fn root_key_path(cachedir: &Path, user: Option<&str>) -> PathBuf {
    let own = process_user();
    cachedir.join(format!(".{}_key", user.filter(|_| own == "root").unwrap_or(&own)))
}

/// Returns the path of the key of the REST API. The keys of users end with `_key`.
pub fn api_key_path(cachedir: &Path) -> PathBuf {
    cachedir.join(".salt-api.key")
}

/// Returns the name of the user that runs this process.
pub fn process_user() -> String {
    let user = User::from_uid(nix::unistd::geteuid()).ok().flatten();
    user.map_or_else(|| "root".to_owned(), |user| user.name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;
    use std::os::unix::net::UnixListener;

    use brine_value::{Map, list, map};

    use super::*;

    #[test]
    fn sockets_belong_to_the_configured_group() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        let rights = map! {"fred" => list!["test.ping"]};
        let config = |group: Option<&str>, publisher_acl: Map| MasterConfig {
            cachedir: at.join("cache"),
            sock_dir: at.join("run"),
            sock_group: group.map(str::to_owned),
            publisher_acl,
            ..MasterConfig::default()
        };
        let unknown = socket_group(&config(Some("nosuch-group"), rights.clone())).unwrap_err().to_string();
        assert!(unknown.starts_with("option 'sock_group': the group 'nosuch-group' does not exist"), "{unknown}");
        assert!(unknown.contains("groupadd --system nosuch-group"), "{unknown}");
        // Without users it has no effect.
        assert_eq!(socket_group(&config(Some("nosuch-group"), Map::new())).unwrap(), None);
        let with = config(Some("daemon"), rights.clone());
        let group = socket_group(&with).unwrap().unwrap();
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        for path in [&with.cachedir, &with.sock_dir] {
            files::create_private_dir(path).unwrap();
        }
        let Endpoint::Ipc(socket) = SocketNames::master().publish_endpoint(&with.sock_dir) else { unreachable!() };
        let _bound = UnixListener::bind(&socket).unwrap();
        let of = |path: &Path| std::fs::metadata(path).map(|status| (status.gid(), status.mode() & 0o777)).unwrap();
        open_to_users(&with, Some(group)).unwrap();
        assert_eq!((of(&socket), of(&with.sock_dir)), ((group, 0o660), (group, 0o710)));
        assert_eq!(of(&with.cachedir).1, 0o711);
        open_to_users(&config(None, rights), None).unwrap();
        assert_eq!((of(&socket).1, of(&with.sock_dir).1), (0o660, 0o711));
    }
}
