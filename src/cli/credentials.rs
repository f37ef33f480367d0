//! Credentials of the tools' users for the master: the key of a local user, a password of an `external_auth` backend
//! (`-a`), or the token of an earlier authentication (`-T`).

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use brine_config::MasterConfig;
use brine_system::files;
use brine_wire::{Proof, TokenRequest};
use clap::Args;

use super::client::{ClientError, MasterClient, user};

/// The options of `salt`, `salt-run` and `salt-key` for users of `external_auth`.
#[derive(Args, Debug, Default)]
pub(super) struct Credentials {
    /// Authenticate by this system of the master's external_auth, such as file
    #[arg(short = 'a', long = "auth", aliases = ["eauth", "external-auth"], value_name = "SYSTEM")]
    eauth: Option<String>,
    /// Keep a token, which replaces the password from then on
    #[arg(short = 'T', long, requires = "eauth")]
    make_token: bool,
    /// The user's name; asked for if it is not given
    #[arg(long, value_name = "NAME", requires = "eauth")]
    username: Option<String>,
    /// The user's password, which other users see in the list of processes; without it, it is asked for, or read from
    /// stdin
    #[arg(long, value_name = "PASSWORD", requires = "eauth")]
    password: Option<String>,
}

impl Credentials {
    /// Whether the user names a backend of `external_auth`.
    pub fn is_given(&self) -> bool {
        self.eauth.is_some()
    }

    /// Creates a client in the user's name, and prompts for missing credentials. Without `-a` it uses the key of the
    /// user, or else a stored token.
    pub async fn client(&self, config: &MasterConfig) -> Result<MasterClient, ClientError> {
        let stored_token = || Ok::<_, ClientError>(kept_token(config).map(Proof::Token));
        let Some(eauth) = &self.eauth else {
            return match MasterClient::new(config) {
                Err(error @ ClientError::NoKey(_)) => match stored_token()? {
                    Some(token) => Ok(MasterClient::with_proof(config, token)),
                    None => Err(error),
                },
                client => client,
            };
        };
        if self.make_token {
            let client = MasterClient::with_proof(config, self.ask(eauth)?);
            let token = client.make_token().await?;
            keep_token(config, &token)?;
            return Ok(MasterClient::with_proof(config, Proof::Token(token)));
        }
        match stored_token()?.filter(|_| self.username.is_none()) {
            Some(token) => Ok(MasterClient::with_proof(config, token)),
            None => Ok(MasterClient::with_proof(config, self.ask(eauth)?)),
        }
    }

    fn ask(&self, eauth: &str) -> Result<Proof, ClientError> {
        let username = self.username.clone().map_or_else(|| prompt("username: ", false), Ok)?;
        let username = if username.is_empty() { user() } else { username };
        let password = self.password.clone().map_or_else(|| prompt("password: ", true), Ok)?;
        Ok(Proof::Password { eauth: eauth.to_owned(), username, password })
    }
}

/// Prompts on the terminal; without one, reads a line from standard input.
fn prompt(question: &str, is_secret: bool) -> Result<String, ClientError> {
    let read = || {
        let mut line = String::new();
        if !std::io::stdin().is_terminal() {
            std::io::stdin().read_line(&mut line)?;
        } else if is_secret {
            return rpassword::prompt_password(question);
        } else {
            crate::ui::print_plain_error(question);
            std::io::stdin().read_line(&mut line)?;
        }
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    };
    read().map_err(|error: std::io::Error| {
        ClientError::Refused(format!("reading the user's name or password failed: {error}"))
    })
}

/// Returns the file with the token: `token_file`, or `salt_token` in the user's configuration directory of Salt, or
/// `.salt_token`.
fn token_file(config: &MasterConfig) -> Option<PathBuf> {
    let home = || std::env::var_os("HOME").map(PathBuf::from);
    if let Some(named) = &config.token_file {
        return Some(match named.strip_prefix("~/") {
            Some(rest) => home()?.join(rest),
            None => named.into(),
        });
    }
    let directory =
        std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).or_else(|| Some(home()?.join(".config")))?.join("salt");
    Some(if directory.is_dir() { directory.join("salt_token") } else { home()?.join(".salt_token") })
}

/// Returns the stored token, unless it has certainly expired.
fn kept_token(config: &MasterConfig) -> Option<String> {
    let path = token_file(config)?;
    let age = std::fs::metadata(&path).ok()?.modified().ok()?.elapsed().unwrap_or_default();
    let token = std::fs::read_to_string(path).ok()?.trim().to_owned();
    (age < Duration::from_secs(config.token_expire) && !token.is_empty()).then_some(token)
}

fn keep_token(config: &MasterConfig, token: &str) -> Result<(), ClientError> {
    let path = token_file(config)
        .ok_or_else(|| ClientError::Refused("storing the token failed: HOME is not set".to_owned()))?;
    files::write_atomic(&path, token.as_bytes(), 0o600)
        .map_err(|error| ClientError::Refused(format!("storing the token failed: {error}")))
}

impl MasterClient {
    async fn make_token(&self) -> Result<String, ClientError> {
        let Some(proof) = self.proof() else { return Err(ClientError::Unauthorised) };
        self.token(TokenRequest { proof: proof.clone(), expire: None }).await
    }
}
