//! How the program git reaches a remote: credentials, SSH keys, proxy, and whether certificates are verified. Secrets
//! are in the environment of git, which only the same user and root can read, and in no command line.

use std::fmt;
use std::path::Path;
use std::process::Command;

use brine_system::files::{self, FileError};
use brine_system::processes;
use brine_text::shell;
use brine_value::percent_encoded;

use super::repository::{GitError, RemoteOptions};

/// The program that git and ssh ask for secrets. It answers the prompts of git for the password of the remote's own
/// protocol and host, which a redirect can change, and those of ssh for the passphrase of a key.
const ASKPASS: &str = r#"#!/bin/sh
case "$1" in
"Password for '$BRINE_GIT_PROTOCOL://"*"@$BRINE_GIT_HOST': ") printf '%s\n' "$BRINE_GIT_PASSWORD" ;;
"Enter passphrase"*) printf '%s\n' "$BRINE_GIT_PASSPHRASE" ;;
*) exit 1 ;;
esac
"#;

/// The access to one remote.
pub(super) struct Access {
    checks_certificate: bool,
    /// The URL of the proxy for `http://` and `https://`.
    proxy: Option<String>,
    login: Option<Login>,
    ssh: Option<SshKey>,
}

/// The user's password for a host.
struct Login {
    protocol: String,
    host: String,
    password: String,
}

/// The key for SSH remotes.
struct SshKey {
    /// The file of the private key, or of the public key of one that the agent holds.
    file: String,
    /// Whether the agent's other keys are left out.
    is_only: bool,
    passphrase: Option<String>,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("checks_certificate", &self.checks_certificate).finish_non_exhaustive()
    }
}

impl Access {
    /// Reads the options of a remote. Returns the access, and the URL with the user's name.
    ///
    /// # Errors
    /// A password for a remote without encryption, which only `insecure_auth` permits.
    pub(super) fn of(url: &str, options: &RemoteOptions<'_>) -> Result<(Self, String), GitError> {
        let web = url.split_once("://").filter(|(protocol, _)| ["http", "https"].contains(protocol));
        let (mut login, mut url) = (None, url.to_owned());
        if let (Some(user), Some((protocol, rest))) = (options.text("user"), web) {
            if protocol == "http" && !options.flag("insecure_auth", false) {
                let message = format!(
                    "{url}: authentication over http is disabled: use https or ssh, or set {}insecure_auth, or \
                     insecure_auth of this remote, to True",
                    options.prefix
                );
                return Err(GitError::Options(message));
            }
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = authority.rsplit('@').next().unwrap_or(authority);
            let password = options.text("password").unwrap_or_default();
            login = Some(Login { protocol: protocol.to_owned(), host: host.to_owned(), password });
            url = format!("{protocol}://{}@{host}{path}", percent_encoded(&user));
        }
        let key = |name: &str, is_only| Some((options.text(name)?, is_only));
        let ssh = key("privkey", false).or_else(|| key("pubkey", true)).map(|(file, is_only)| SshKey {
            file,
            is_only,
            passphrase: options.text("passphrase"),
        });
        let checks_certificate = options.flag("ssl_verify", true);
        Ok((Access { checks_certificate, proxy: options.text("proxy"), login, ssh }, url))
    }

    fn needs_askpass(&self) -> bool {
        self.login.is_some() || self.ssh.as_ref().is_some_and(|ssh| ssh.passphrase.is_some())
    }

    /// Writes the program that answers prompts into a private directory, if there are secrets.
    pub(super) fn prepare(&self, directory: &Path) -> Result<(), FileError> {
        let program = directory.join("askpass");
        if !self.needs_askpass() || files::read_if_exists(&program)?.as_deref() == Some(ASKPASS) {
            return Ok(());
        }
        processes::write_program(|| files::write_atomic(&program, ASKPASS.as_bytes(), 0o700))
    }

    /// Adds options and environment to a command `git`, which has no subcommand yet.
    pub(super) fn apply(&self, command: &mut Command, directory: &Path) {
        command.env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
        // A web server that sends nothing for this time does not hold up the other remotes until the timeout.
        command.env("GIT_HTTP_LOW_SPEED_LIMIT", "1").env("GIT_HTTP_LOW_SPEED_TIME", "300");
        if !self.checks_certificate {
            command.args(["-c", "http.sslVerify=false"]);
        }
        if let Some(proxy) = &self.proxy {
            command.env("http_proxy", proxy).env("https_proxy", proxy);
        }
        if self.needs_askpass() {
            let program = directory.join("askpass");
            command.env("GIT_ASKPASS", &program).env("SSH_ASKPASS", &program).env("SSH_ASKPASS_REQUIRE", "force");
            // Older releases of `ssh` use the program only if there is a display.
            command.env("DISPLAY", ":0");
        }
        if let Some(Login { protocol, host, password }) = &self.login {
            // No helper may store the password, and the prompt must end with the host.
            command.args(["-c", "credential.helper=", "-c", "credential.useHttpPath=false"]);
            command.env("BRINE_GIT_PROTOCOL", protocol).env("BRINE_GIT_HOST", host).env("BRINE_GIT_PASSWORD", password);
        }
        if let Some(SshKey { file, is_only, passphrase }) = &self.ssh {
            // Without a passphrase there are no prompts; with one, a server cannot make them up.
            let prompts = match passphrase {
                None => "-oBatchMode=yes",
                Some(passphrase) => {
                    command.env("BRINE_GIT_PASSPHRASE", passphrase);
                    "-oPreferredAuthentications=publickey"
                }
            };
            let only = if *is_only { " -oIdentitiesOnly=yes" } else { "" };
            command.env("GIT_SSH_COMMAND", format!("ssh {prompts}{only} -i {}", shell::quote(file)));
        }
    }

    /// Adds the environment that keeps git and ssh from asking whoever sits at the terminal.
    pub(super) fn never_prompt(&self, command: &mut Command) {
        if !self.needs_askpass() {
            command.env("GIT_ASKPASS", "false").env("SSH_ASKPASS", "false").env("SSH_ASKPASS_REQUIRE", "force");
        }
        let is_chosen = ["GIT_SSH_COMMAND", "GIT_SSH"].iter().any(|name| std::env::var_os(name).is_some());
        if self.ssh.is_none() && !is_chosen {
            command.env("GIT_SSH_COMMAND", "ssh -oBatchMode=yes");
        }
    }
}

#[cfg(test)]
mod tests;
