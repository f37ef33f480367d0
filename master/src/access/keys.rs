//! The key files of the users of `publisher_acl`, and the users' access to the master's files and sockets.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;

use brine_bus::SocketNames;
use brine_config::MasterConfig;
use brine_crypt::token;
use brine_system::files::{self, FileError};
use brine_value::Value;
use brine_zmtp::Endpoint;
use nix::unistd::User;

/// Creates or reads the key file of each local user named in `publisher_acl`, readable by that user only.
pub(super) fn user_keys(config: &MasterConfig) -> Result<Vec<(String, String)>, FileError> {
    let mut keys = Vec::new();
    let own = crate::process_user();
    for name in config.publisher_acl.keys().filter_map(Value::as_str) {
        if name == own || Some(name) == config.user.as_deref() || name.contains('/') {
            continue;
        }
        let Ok(Some(user)) = User::from_name(name) else {
            tracing::warn!(user = name, "publisher_acl: the user does not exist on this host");
            continue;
        };
        let path = config.cachedir.join(format!(".{name}_key"));
        let key = if let Some(key) = files::read_if_exists(&path)?.filter(|key| key.len() >= 32) {
            key
        } else {
            let key = token::root_key();
            files::write_atomic(&path, key.as_bytes(), 0o400)?;
            key
        };
        chown_key(&path, &user);
        keys.push((name.to_owned(), key));
    }
    Ok(keys)
}

fn chown_key(path: &Path, user: &User) {
    if let Err(error) = chown(path, Some(user.uid.as_raw()), None) {
        tracing::warn!(user = user.name, path = %path.display(), %error, "publisher_acl: changing the owner of the user's key failed");
    }
}

/// Grants the users of `publisher_acl` access to their keys and the event socket. As in Salt, they may traverse the
/// directories but not list them, and the group of the master's user may subscribe to events.
pub(crate) fn open_to_users(config: &MasterConfig) -> Result<(), FileError> {
    if config.publisher_acl.is_empty() && config.external_auth.is_empty() {
        return Ok(());
    }
    let events = SocketNames::master().publish_endpoint(&config.sock_dir);
    let mut modes = vec![(config.cachedir.clone(), 0o711), (config.sock_dir.clone(), 0o711)];
    if let Endpoint::Ipc(path) = events {
        modes.push((path, 0o660));
    }
    for (path, mode) in modes {
        std::fs::set_permissions(&path, Permissions::from_mode(mode))
            .map_err(FileError::at("change the mode of", &path))?;
    }
    Ok(())
}
