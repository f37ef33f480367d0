//! Connections that successive calls share (`ssh_control_persist`). The first connection to a host stays open for a
//! while, so that the next call skips the key exchange, which takes most of its time.
//!
//! The settings follow an include of the user's own configuration, so that `ControlMaster`, `ControlPath` and
//! `ControlPersist` there take precedence. Calls with different options of `ssh` never share a connection: a call that
//! checks host keys does not use one that was opened without the check.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use brine_digest::{Digest, hex};
use brine_system::files::{self, FileError};

use crate::command::{self, Options};
use crate::roster::RosterHost;
use crate::temporary::Temporary;

/// The maximum length of the socket directory's path: with the name that `ssh` appends, the path must fit into a socket
/// address.
const MAX_DIRECTORY_LENGTH: usize = 41;

/// The settings of shared connections.
#[derive(Debug)]
pub struct Multiplexing {
    /// The directory of the sockets, which only this user can enter.
    sockets: PathBuf,
    /// The directory of the configuration files, removed on drop.
    files: Temporary,
    seconds: u64,
}

impl Multiplexing {
    /// Creates the directories. Returns `None` if sharing is disabled (0 seconds), or if no directory has a path short
    /// enough for sockets.
    ///
    /// # Errors
    /// A directory cannot be created.
    pub fn new(seconds: u64) -> Result<Option<Self>, FileError> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let runtime = variable("XDG_RUNTIME_DIR").filter(|path| path.is_dir());
        let Some(base) = runtime.or_else(|| variable("HOME").map(|home| home.join(".cache"))) else { return Ok(None) };
        let sockets = base.join("brine-control");
        // A percent sign in `ControlPath` would start a token.
        let has_token = sockets.to_string_lossy().contains('%');
        if seconds == 0 || has_token || sockets.as_os_str().len() > MAX_DIRECTORY_LENGTH {
            return Ok(None);
        }
        Self::at(sockets, seconds).map(Some)
    }

    fn at(sockets: PathBuf, seconds: u64) -> Result<Self, FileError> {
        files::create_private_dir(&sockets)?;
        let files = Temporary::new();
        let files = files.map_err(FileError::at("write to", std::env::temp_dir()))?;
        Ok(Multiplexing { sockets, files, seconds })
    }

    /// Returns the configuration file for calls of this host. Writes it if it does not exist yet for these options.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) async fn configuration(&self, host: &RosterHost, options: &Options) -> std::io::Result<PathBuf> {
        let text = self.text(host, options);
        let path = self.files.path().join(&hex(Digest::Sha256.of(&text))[..16]);
        if !tokio::fs::try_exists(&path).await? {
            // Several calls may write it at the same time: write to a temporary file and rename it.
            let new = path.with_extension(format!("{:016x}", rand::random::<u64>()));
            // The directory is private.
            #[allow(clippy::disallowed_methods)]
            tokio::fs::write(&new, text).await?;
            tokio::fs::rename(&new, &path).await?;
        }
        Ok(path)
    }

    fn text(&self, host: &RosterHost, options: &Options) -> String {
        // The token `%C` already covers host, port and user.
        let anywhere = RosterHost { host: String::new(), user: None, port: None, ..host.clone() };
        let options = command::arguments(&anywhere, options, None, "").join("\0");
        let mut text = String::new();
        let included = match &host.config_file {
            Some(file) => vec![file.as_str()],
            None => vec!["~/.ssh/config", "/etc/ssh/ssh_config"],
        };
        for file in included {
            _ = writeln!(text, "Include {}", quoted(Path::new(file)));
        }
        let name = self.sockets.join(format!("{}-%C", &hex(Digest::Sha256.of(options))[..8]));
        _ = write!(
            text,
            "Host *\nControlMaster auto\nControlPath {}\nControlPersist {}\n",
            quoted(&name),
            self.seconds
        );
        text
    }
}

/// Quotes a path for a configuration file of `ssh`.
fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.display().to_string().replace('\\', "\\\\").replace('"', "\\\""))
}

/// Whether the errors of `ssh` mean that a shared connection is broken, such as after a restart of the host.
pub(crate) fn is_broken(errors: &str) -> bool {
    errors.lines().any(|line| line.starts_with("mux_client_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn hosts_share_a_file_unless_their_options_differ() {
        let directory = tempfile::tempdir().unwrap();
        let shared = Multiplexing::at(directory.path().join("s"), 60).unwrap();
        let checked = Options::default();
        let path = async |host: RosterHost, options: &Options| shared.configuration(&host, options).await.unwrap();
        let named = |name: &str| RosterHost { host: name.to_owned(), ..RosterHost::default() };
        let first = path(named("a"), &checked).await;
        assert_eq!(first, path(RosterHost { port: Some(2222), user: Some("me".into()), ..named("b") }, &checked).await);
        let unchecked = Options { no_host_keys: true, ..Options::default() };
        for (host, options) in [
            (named("a"), &unchecked),
            (RosterHost { key: Some("/k".into()), ..named("a") }, &checked),
            (RosterHost { ssh_options: vec!["ProxyJump=b".into()], ..named("a") }, &checked),
            (RosterHost { config_file: Some("/a \"b\"".into()), ..named("a") }, &checked),
        ] {
            assert_ne!(first, path(host, options).await);
        }
        let text = std::fs::read_to_string(&first).unwrap();
        assert!(text.starts_with("Include \"~/.ssh/config\"\nInclude \"/etc/ssh/ssh_config\"\nHost *\n"), "{text}");
        let own = shared.text(&RosterHost { config_file: Some("/a \"b\"".into()), ..named("a") }, &checked);
        assert!(own.starts_with("Include \"/a \\\"b\\\"\"\nHost *\n"), "{own}");
    }

    #[test]
    fn a_broken_connection_is_distinguished_from_an_unreachable_host() {
        for (errors, expected) in [
            ("mux_client_read_packet: read header failed: Broken pipe\n", true),
            ("ssh: connect to host a port 22: Connection refused\n", false),
            ("", false),
        ] {
            assert_eq!(is_broken(errors), expected, "{errors}");
        }
    }
}
