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
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use brine_value::{Map, map};

    use super::*;

    fn access(url: &str, options: &Map) -> Result<(Access, String), GitError> {
        Access::of(url, &RemoteOptions { own: Map::new(), all: options, prefix: "gitfs_" })
    }

    #[test]
    fn passwords_are_sent_unencrypted_only_if_that_is_permitted() {
        let login = |more: Map| {
            let mut options = map! {"gitfs_user" => "a@b", "gitfs_password" => "secret"};
            options.extend(more);
            options
        };
        for (url, options, expected) in [
            ("https://h/x.git", login(map! {}), Some("https://a%40b@h/x.git")),
            ("https://b:c@h/x@y.git", login(map! {}), Some("https://a%40b@h/x@y.git")),
            ("http://h/x.git", login(map! {}), None),
            ("http://h/x.git", login(map! {"gitfs_insecure_auth" => true}), Some("http://a%40b@h/x.git")),
            ("http://h/x.git", map! {}, Some("http://h/x.git")),
            ("ssh://git@h/x.git", login(map! {}), Some("ssh://git@h/x.git")),
            ("/srv/x.git", login(map! {}), Some("/srv/x.git")),
        ] {
            assert_eq!(access(url, &options).ok().map(|(_, url)| url).as_deref(), expected, "{url} {options:?}");
        }
    }

    #[test]
    fn secrets_answer_the_prompts_of_their_own_remote_alone() {
        let directory = tempfile::tempdir().unwrap();
        let options = map! {
            "gitfs_user" => "me", "gitfs_password" => "a 'b' %s", "gitfs_privkey" => "/k", "gitfs_passphrase" => "$(id)",
        };
        let (access, _) = access("https://git.example:8443/x.git", &options).unwrap();
        access.prepare(directory.path()).unwrap();
        let program = directory.path().join("askpass");
        assert_eq!(program.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        let mut git = Command::new("git");
        access.apply(&mut git, directory.path());
        assert!(git.get_args().all(|word| !word.to_string_lossy().contains("%s")));
        let environment: Vec<_> = git.get_envs().filter_map(|(name, value)| Some((name, value?))).collect();
        for (prompt, expected) in [
            ("Password for 'https://me@git.example:8443': ", "a 'b' %s\n"),
            ("Password for 'https://me@evil.example': ", ""),
            ("Password for 'http://me@git.example:8443': ", ""),
            ("Username for 'https://git.example:8443': ", ""),
            ("Enter passphrase for key '/k': ", "$(id)\n"),
            ("me@git.example's password: ", ""),
            ("Are you sure you want to continue connecting (yes/no/[fingerprint])? ", ""),
        ] {
            let answer = Command::new(&program).arg(prompt).envs(environment.iter().copied()).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&answer.stdout), expected, "{prompt}");
        }
    }

    #[test]
    fn ssh_uses_the_configured_key() {
        for (options, expected) in [
            (map! {"gitfs_privkey" => "/a b"}, "ssh -oBatchMode=yes -i '/a b'"),
            (map! {"gitfs_privkey" => "/k", "gitfs_pubkey" => "/k.pub"}, "ssh -oBatchMode=yes -i /k"),
            (map! {"gitfs_pubkey" => "/k.pub"}, "ssh -oBatchMode=yes -oIdentitiesOnly=yes -i /k.pub"),
            (
                map! {"gitfs_privkey" => "/k", "gitfs_passphrase" => "p"},
                "ssh -oPreferredAuthentications=publickey -i /k",
            ),
        ] {
            let mut git = Command::new("git");
            access("git@h:x", &options).unwrap().0.apply(&mut git, Path::new("/d"));
            let set = git.get_envs().find(|(name, _)| *name == "GIT_SSH_COMMAND").and_then(|(_, value)| value);
            assert_eq!(set.unwrap().to_str(), Some(expected), "{options:?}");
        }
    }
}
