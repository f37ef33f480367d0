//! Decryption of PGP messages by the program `gpg`: the renderer `gpg`, and `decrypt_pillar`.

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
    #[error("Could not decrypt a value with the keys in {keydir}: {message}")]
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
        let decrypted = pattern.replace_all(text, |found: &Captures<'_>| match self.decrypt_message(&found[0]) {
            Ok(decrypted) => decrypted,
            Err(error) => {
                failed.get_or_insert(error);
                found[0].to_vec()
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
        let output = processes::output_of(&mut command, message).map_err(failed)?;
        if !output.status.success() || output.stdout.is_empty() {
            let message = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
            return Err(GpgError::Undecryptable { keydir: self.keydir.clone(), message });
        }
        Ok(output.stdout)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::process::Stdio;
    use std::sync::Arc;

    use super::*;
    use crate::render::Sls;
    use brine_jinja::{Context, Host};
    use brine_value::{list, map};

    /// A keyring of its own, and a message encrypted for it.
    struct Keys(tempfile::TempDir);

    impl Keys {
        fn new() -> Self {
            let private = std::fs::Permissions::from_mode(0o700);
            let keys = Keys(tempfile::Builder::new().permissions(private).tempdir().unwrap());
            keys.gpg(
                &["--passphrase", "", "--quick-generate-key", "me@example.com", "default", "default", "never"],
                "",
            );
            keys
        }

        fn gpg(&self, args: &[&str], input: &str) -> String {
            let mut child = Command::new("gpg")
                .arg("--homedir")
                .arg(self.0.path())
                .args(["--batch", "--quiet", "--trust-model", "always", "--pinentry-mode", "loopback"])
                .args(args)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("gpg is not installed: run tests/run, or apt-get install gnupg");
            child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success());
            String::from_utf8(output.stdout).unwrap()
        }

        fn encrypt(&self, text: &str) -> String {
            self.gpg(&["--armor", "--encrypt", "--recipient", "me@example.com"], text)
        }

        fn opts(&self) -> Map {
            map! {"gpg_keydir" => self.0.path().to_owned()}
        }
    }

    impl Drop for Keys {
        fn drop(&mut self) {
            _ = Command::new("gpgconf").arg("--homedir").arg(self.0.path()).args(["--kill", "all"]).status();
        }
    }

    #[test]
    fn messages_are_decrypted_at_every_depth() {
        let keys = Keys::new();
        let (word, line) = (keys.encrypt("swordfish\n"), keys.encrypt("two").trim().replace('\n', "\\n"));
        let gpg = Gpg::of(&keys.opts());
        let mut value = map! {"a" => list![word.as_str(), 7], "b" => map! {"c" => format!("one {line} three")}}.into();
        gpg.decrypt(&mut value).unwrap();
        assert_eq!(value, map! {"a" => list!["swordfish", 7], "b" => map! {"c" => "one two three"}}.into());

        let sls = format!("#!yaml|gpg\na: |\n  {}\n", word.trim().replace('\n', "\n  "));
        let sls = Sls::compile("s", &sls, "jinja|yaml").unwrap().with_gpg(Arc::new(Gpg::of(&keys.opts())));
        let host = Host::new();
        assert_eq!(sls.render(&Context::new("base"), &host), Ok(map! {"a" => "swordfish"}.into()));

        let mut opts = keys.opts();
        opts.insert("gpg_cache".into(), true.into());
        let caching = Gpg::of(&opts);
        caching.decrypt(&mut word.as_str().into()).unwrap();
        drop(keys);
        let mut again = word.as_str().into();
        caching.decrypt(&mut again).unwrap();
        assert_eq!(again, "swordfish".into());
    }

    #[test]
    fn a_failed_decryption_is_an_error_if_it_must_succeed() {
        let (keys, others) = (Keys::new(), Keys::new());
        let message = others.encrypt("swordfish");
        let mut value = Value::from(message.trim());
        let mut opts = keys.opts();
        opts.insert("gpg_decrypt_must_succeed".into(), false.into());
        Gpg::of(&opts).decrypt(&mut value).unwrap();
        assert_eq!(value, message.trim().into());

        let error = Gpg::of(&keys.opts()).decrypt(&mut value).unwrap_err();
        assert!(
            matches!(&error, GpgError::Undecryptable { message, .. } if message.contains("No secret key")),
            "{error}"
        );
    }

    #[test]
    fn a_missing_program_is_always_an_error() {
        let message = "-----BEGIN PGP MESSAGE-----\n\nx\n-----END PGP MESSAGE-----";
        let opts = map! {"gpg_decrypt_must_succeed" => false};
        let gpg = Gpg { program: Path::new("/nonexistent/gpg").into(), ..Gpg::of(&opts) };
        assert_eq!(gpg.decrypt(&mut message.into()), Err(GpgError::Missing));
        assert_eq!(gpg.decrypt(&mut "not encrypted".into()), Ok(()));
    }
}
