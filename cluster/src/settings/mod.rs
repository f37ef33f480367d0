//! The option `cluster` of the master.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use brine_system::files;
use brine_value::{FromValue, Map, Value};

use crate::seal::Seal;

/// The minimum length of a secret, in characters: 128 random bits in hexadecimal.
const MIN_SECRET_LENGTH: usize = 32;

/// The error of the option `cluster`.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(String);

/// The settings of a master's cluster membership.
#[derive(Clone)]
pub struct Settings {
    /// The name of the cluster: part of the names of its streams and buckets.
    pub name: String,
    /// The name of this master in the cluster.
    pub member: String,
    /// The addresses of NATS servers.
    pub servers: Vec<String>,
    /// Encrypts everything that is stored on these servers.
    pub(crate) seal: Seal,
    pub(crate) login: Option<(String, String)>,
    pub(crate) token: Option<String>,
    pub(crate) credentials: Option<PathBuf>,
    pub(crate) tls: bool,
    pub(crate) authorities: Option<PathBuf>,
    pub(crate) certificate: Option<(PathBuf, PathBuf)>,
    /// The number of servers that store each message.
    pub(crate) sync_handle: usize,
    /// The time after which an unresponsive leader is replaced.
    pub(crate) lease: Duration,
    /// The retention time of events.
    pub(crate) history: Duration,
    /// The maximum age of other members' jobs that are still published to the local minions.
    pub(crate) catch_up: Duration,
}

impl Settings {
    /// Parses the option; returns `None` if it is empty. `own_id` is the default of `member`, `pki_dir` the directory
    /// of the secret.
    ///
    /// # Errors
    /// The option is invalid, or the secret cannot be used.
    pub fn read(option: &Map, own_id: &str, pki_dir: &Path, catch_up: Duration) -> Result<Option<Self>, SettingsError> {
        const KNOWN: &[&str] = &[
            "name",
            "member",
            "servers",
            "secret_file",
            "username",
            "password",
            "token",
            "credentials",
            "tls",
            "ca_bundle",
            "certificate",
            "private_key",
            "replicas",
            "lease",
            "event_hours",
        ];
        if option.is_empty() {
            return Ok(None);
        }
        if let Some(unknown) = option.keys().map(ToString::to_string).find(|name| !KNOWN.contains(&name.as_str())) {
            return Err(SettingsError(format!("'{unknown}' is unknown: expected one of {}", KNOWN.join(", "))));
        }
        let text = |name: &str| option.get(name).filter(|value| !value.is_nil()).map(ToString::to_string);
        let path = |name: &str| text(name).map(PathBuf::from);
        let servers: Vec<String> = match option.get("servers") {
            Some(Value::List(all)) => all.iter().map(ToString::to_string).collect(),
            Some(Value::Str(one)) => one.split(',').map(|one| one.trim().to_owned()).collect(),
            _ => Vec::new(),
        };
        if servers.is_empty() || servers.iter().any(|server| server.parse::<async_nats::ServerAddr>().is_err()) {
            return Err(SettingsError("'servers' is invalid: expected URLs such as nats://host:4222".into()));
        }
        let number = |name: &str, default: u64| match option.get(name) {
            None => Ok(default),
            Some(value) => u64::from_value(value)
                .filter(|number| *number > 0)
                .ok_or_else(|| SettingsError(format!("'{name}' is invalid: expected a number above 0, got {value}"))),
        };
        let (name, member) = (text("name").unwrap_or_else(|| "brine".into()), text("member"));
        let member = member.unwrap_or_else(|| own_id.to_owned());
        let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        if name.is_empty() || !is_plain(&name) {
            return Err(SettingsError(format!("'name' is invalid: expected letters, digits, - and _, got '{name}'")));
        }
        if member.is_empty() || member.len() > 255 {
            return Err(SettingsError("'member' is invalid: expected 1 to 255 bytes".into()));
        }
        let certificate = match (path("certificate"), path("private_key")) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => return Err(SettingsError("'certificate' and 'private_key' need each other".into())),
        };
        let (sync_handle, lease, hours) = (number("replicas", 1)?, number("lease", 5)?, number("event_hours", 24)?);
        let secret = path("secret_file").unwrap_or_else(|| pki_dir.join("cluster.secret"));
        Ok(Some(Settings {
            seal: Seal::new(&name, &read_secret(&secret)?),
            name,
            member,
            servers,
            login: text("username").zip(text("password")),
            token: text("token"),
            credentials: path("credentials"),
            tls: option.get("tls").is_some_and(Value::is_truthy),
            authorities: path("ca_bundle"),
            certificate,
            sync_handle: usize::try_from(sync_handle.min(5)).unwrap_or(1),
            lease: Duration::from_secs(lease),
            history: Duration::from_secs(hours.saturating_mul(3600)),
            catch_up,
        }))
    }
}

/// Reads the secret of a cluster from a file that only the master's user may read.
fn read_secret(path: &Path) -> Result<String, SettingsError> {
    let text = files::read_if_exists(path).map_err(|error| SettingsError(error.to_string()))?;
    let file = path.display();
    let Some(text) = text else {
        return Err(SettingsError(format!(
            "the secret of the cluster is missing: create {file} on one master, with mode 0600 and the output of \
             `openssl rand -hex 32`, and copy it to the others"
        )));
    };
    let mode = std::fs::metadata(path).map(|data| data.permissions().mode()).unwrap_or_default();
    if mode & 0o077 != 0 {
        return Err(SettingsError(format!("{file} can be read by others: run chmod 600 {file}")));
    }
    let secret = text.trim();
    if secret.len() < MIN_SECRET_LENGTH {
        return Err(SettingsError(format!(
            "the secret in {file} is too short: expected at least {MIN_SECRET_LENGTH} characters, such as the output of \
             `openssl rand -hex 32`"
        )));
    }
    Ok(secret.to_owned())
}

#[cfg(test)]
mod tests;
