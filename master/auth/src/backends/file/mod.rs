//! `file`: users and passwords in a file: delimiter-separated fields, or an htpasswd or htdigest file of Apache.
//!
//! Options, as in Salt: `^filename`, `^filetype` (text, htpasswd, htdigest), `^hashtype` (plaintext or a digest such as
//! sha256), `^field_separator`, `^username_field`, `^password_field`, `^realm`.

use std::path::PathBuf;

use brine_crypt::token::constant_time_eq;
use brine_digest::{Digest, hex};
use brine_value::Map;

use super::{Backend, BackendError, Proven, htpasswd};
use crate::names::UserName;

/// The maximum size of the file, in bytes.
const MAX_FILE: u64 = 16 << 20;

pub(super) struct PasswordFile {
    path: PathBuf,
    format: Format,
}

enum Format {
    /// Delimiter-separated fields; field numbers start at 0.
    Fields {
        separator: String,
        user: usize,
        password: usize,
        digest: Option<Digest>,
    },
    Htpasswd,
    Htdigest {
        realm: String,
    },
}

impl PasswordFile {
    pub fn new(options: &Map) -> Result<Self, BackendError> {
        let text = |name: &str| options.get(name).map(ToString::to_string);
        let invalid = |option, reason: String| BackendError::Option { system: "file", option, reason };
        let path = text("^filename").ok_or_else(|| invalid("^filename", "is missing".to_owned()))?;
        let field = |option: &'static str, default: usize| match text(option).map(|text| text.parse::<usize>()) {
            None => Ok(default - 1),
            Some(Ok(number)) if number > 0 => Ok(number - 1),
            Some(_) => Err(invalid(option, "expected a number from 1 on".to_owned())),
        };
        let format = match text("^filetype").as_deref().unwrap_or("text") {
            "text" => Format::Fields {
                separator: text("^field_separator")
                    .filter(|separator| !separator.is_empty())
                    .unwrap_or_else(|| ":".to_owned()),
                user: field("^username_field", 1)?,
                password: field("^password_field", 2)?,
                digest: match text("^hashtype").as_deref().unwrap_or("plaintext") {
                    "plaintext" => None,
                    name => Some(Digest::named(name).ok_or_else(|| {
                        invalid(
                            "^hashtype",
                            format!("'{name}' is unknown: expected plaintext or a digest such as sha256"),
                        )
                    })?),
                },
            },
            "htpasswd" => Format::Htpasswd,
            "htdigest" => Format::Htdigest {
                realm: text("^realm")
                    .ok_or_else(|| invalid("^realm", "is missing: htdigest requires it".to_owned()))?,
            },
            other => {
                return Err(invalid("^filetype", format!("'{other}' is unknown: expected text, htpasswd or htdigest")));
            }
        };
        Ok(PasswordFile { path: path.into(), format })
    }

    fn read(&self) -> Result<String, BackendError> {
        let read = || {
            let length = std::fs::metadata(&self.path)?.len();
            if length > MAX_FILE {
                return Err(std::io::Error::other(format!("it exceeds {MAX_FILE} bytes")));
            }
            std::fs::read_to_string(&self.path)
        };
        read().map_err(|source| BackendError::File { path: self.path.clone(), source })
    }
}

impl Backend for PasswordFile {
    fn authenticate(&self, user: &str, password: &str) -> Result<Option<Proven>, BackendError> {
        let text = self.read()?;
        let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let is_right = match &self.format {
            Format::Fields { separator, user: user_field, password: password_field, digest } => {
                let field = |line: &'_ str, at| line.split(separator.as_str()).nth(at).map(str::to_owned);
                let of_user = lines().find(|line| field(line, *user_field).as_deref() == Some(user));
                let credential = digest.map_or_else(|| password.to_owned(), |digest| hex(digest.of(password)));
                of_user
                    .and_then(|line| field(line, *password_field))
                    .is_some_and(|stored| !stored.is_empty() && constant_time_eq(stored, credential))
            }
            Format::Htpasswd => {
                let entry = lines().find_map(|line| line.split_once(':').filter(|(name, _)| *name == user));
                entry.is_some_and(|(_, hash)| htpasswd::is_password(hash, password))
            }
            Format::Htdigest { realm } => {
                let start = format!("{user}:{realm}:");
                let credential = hex(Digest::Md5.of(format!("{start}{password}")));
                // The separator cannot be part of a field.
                !user.contains(':')
                    && lines()
                        .find_map(|line| line.strip_prefix(&start))
                        .is_some_and(|stored| constant_time_eq(stored, credential))
            }
        };
        // Names in the file match exactly.
        Ok(is_right.then(|| Proven { name: Some(UserName::found(user)), ..Proven::default() }))
    }
}

#[cfg(test)]
mod tests;
