//! Decryption of PGP messages by the program `gpg`: the renderer `gpg`, and `decrypt_pillar` with it.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use brine_config::DEFAULT_DIRECTORY;
use brine_config::opts::{modules, shared};
use brine_system::processes;
use brine_value::{Map, Value};
use parking_lot::Mutex;
use regex::bytes::{Captures, Regex};

/// Matches a PGP message.
static PGP_MESSAGE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new("(?s)-----BEGIN PGP MESSAGE-----.*?-----END PGP MESSAGE-----").ok());

/// The timeout of decrypting a message: an agent may hang.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The error of decrypting a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GpgError {
    /// `gpg` is not installed.
    #[error("GPG unavailable: install gnupg, some values are encrypted with PGP")]
    Missing,
    /// `gpg` failed to start.
    #[error("running gpg failed: {0}")]
    Run(String),
    /// `gpg` failed to decrypt the message.
    #[error("Could not decrypt cipher with the keys in {keydir}: {message}")]
    Undecryptable {
        /// `gpg_keydir`.
        keydir: PathBuf,
        /// The output of `gpg`.
        message: String,
    },
}

/// The settings of decryption.
#[derive(Debug)]
pub struct Gpg {
    program: PathBuf,
    /// The directory of the keys.
    keydir: PathBuf,
    /// Whether a message that cannot be decrypted is an error; it is left encrypted otherwise.
    must_succeed: bool,
    /// The time for which plaintext is cached in memory; `None` disables the cache. Plaintext is never written to disk.
    cache_ttl: Option<Duration>,
    cache: Mutex<HashMap<Vec<u8>, Decrypted>>,
}

/// The time of decryption and the plaintext.
type Decrypted = (Instant, Vec<u8>);

impl Default for Gpg {
    fn default() -> Self {
        Gpg::of(&brine_value::map! {"config_dir" => DEFAULT_DIRECTORY})
    }
}

impl Gpg {
    /// Reads the options `gpg_keydir`, `gpg_decrypt_must_succeed`, `gpg_cache` and `gpg_cache_ttl`.
    pub fn of(opts: &Map) -> Self {
        Gpg {
            program: "gpg".into(),
            keydir: shared::gpg_keydir(opts).unwrap_or_else(|| modules::config_dir(opts).join("gpgkeys")),
            must_succeed: shared::gpg_decrypt_must_succeed(opts),
            cache_ttl: shared::gpg_cache(opts).then(|| Duration::from_secs(shared::gpg_cache_ttl(opts))),
            cache: Mutex::default(),
        }
    }

    /// Whether a value contains a PGP message, at any depth.
    pub(crate) fn contains_message(value: &Value) -> bool {
        match value {
            Value::Map(map) => map.values().any(Self::contains_message),
            Value::List(items) => items.iter().any(Self::contains_message),
            other => {
                other.as_bytes().is_some_and(|text| PGP_MESSAGE.as_ref().is_none_or(|message| message.is_match(text)))
            }
        }
    }

    /// Decrypts all PGP messages in a value, at every depth.
    pub fn decrypt(&self, value: &mut Value) -> Result<(), GpgError> {
        match value {
            Value::Map(map) => map.values_mut().try_for_each(|value| self.decrypt(value)),
            Value::List(items) => items.iter_mut().try_for_each(|item| self.decrypt(item)),
            Value::Str(_) | Value::Bytes(_) => {
                let text = value.as_bytes().unwrap_or_default();
                if let Some(decrypted) = self.decrypt_text(text)? {
                    *value = String::from_utf8(decrypted).map_or_else(|error| error.into_bytes().into(), Value::from);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Returns the text with its PGP messages decrypted and without trailing newlines; `None` if it contains no
    /// message.
    fn decrypt_text(&self, text: &[u8]) -> Result<Option<Vec<u8>>, GpgError> {
        let Some(pattern) = PGP_MESSAGE.as_ref().filter(|pattern| pattern.is_match(text)) else { return Ok(None) };
        let mut failed = None;
        let decrypted = pattern.replace_all(text, |captures: &Captures<'_>| match self.decrypt_message(&captures[0]) {
            Ok(decrypted) => decrypted,
            Err(error) => {
                failed.get_or_insert(error);
                captures[0].to_vec()
            }
        });
        match failed {
            Some(error) if self.must_succeed || !matches!(error, GpgError::Undecryptable { .. }) => return Err(error),
            Some(error) => tracing::warn!(%error, "decrypting a value failed: it is left encrypted"),
            None => {}
        }
        let end = decrypted.iter().rposition(|byte| *byte != b'\n').map_or(0, |last| last + 1);
        Ok(Some(decrypted[..end].to_vec()))
    }

    fn decrypt_message(&self, message: &[u8]) -> Result<Vec<u8>, GpgError> {
        // A message on one line of YAML has escaped newlines.
        let message = match std::str::from_utf8(message) {
            Ok(text) => text.replace("\\n", "\n").into_bytes(),
            Err(_) => message.to_vec(),
        };
        let Some(cache_ttl) = self.cache_ttl else { return self.run(&message) };
        if let Some((when, decrypted)) = self.cache.lock().get(&message)
            && when.elapsed() < cache_ttl
        {
            return Ok(decrypted.clone());
        }
        let decrypted = self.run(&message)?;
        let mut cache = self.cache.lock();
        cache.retain(|_, (when, _)| when.elapsed() < cache_ttl);
        cache.insert(message, (Instant::now(), decrypted.clone()));
        Ok(decrypted)
    }

    fn run(&self, message: &[u8]) -> Result<Vec<u8>, GpgError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => GpgError::Missing,
            _ => GpgError::Run(error.to_string()),
        };
        let mut command = Command::new(&self.program);
        command
            .arg("--homedir")
            .arg(&self.keydir)
            // There is no terminal for a passphrase prompt.
            .args(["--batch", "--no-tty", "--pinentry-mode", "error", "--decrypt"]);
        let output = processes::output_of(&mut command, message, TIMEOUT).map_err(failed)?;
        if !output.status.success() || output.stdout.is_empty() {
            let message = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
            return Err(GpgError::Undecryptable { keydir: self.keydir.clone(), message });
        }
        Ok(output.stdout)
    }
}

#[cfg(test)]
mod tests;
