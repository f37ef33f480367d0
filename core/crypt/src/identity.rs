//! An identity on disk: `<name>.pem` and `<name>.pub` in the directory of keys, in Salt's layout.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use brine_system::files::{self, FileError};

use super::{CryptError, PrivateKey};

impl PrivateKey {
    /// Reads `<name>.pem` in `dir`, or generates a key of this many bits and writes it with mode 0400. Concurrent
    /// processes end up with the same key. Also writes `<name>.pub` (0644) if it is missing or belongs to another key.
    pub fn load_or_generate(dir: impl AsRef<Path>, name: &str, bits: usize) -> Result<Self, CryptError> {
        Self::load_or_generate_with(dir, name, bits, None)
    }

    /// As [`PrivateKey::load_or_generate`], with the passphrase for reading and writing the file.
    pub fn load_or_generate_with(
        dir: impl AsRef<Path>,
        name: &str,
        bits: usize,
        passphrase: Option<&str>,
    ) -> Result<Self, CryptError> {
        let private = dir.as_ref().join(format!("{name}.pem"));
        let key = match Self::load(&private, passphrase)? {
            Some(key) => key,
            None => Self::generate_at(&private, bits, passphrase)?,
        };
        let public = dir.as_ref().join(format!("{name}.pub"));
        let text = key.public().to_pem();
        let current = fs::read(&public).unwrap_or_default();
        if current.trim_ascii() != text.trim().as_bytes() {
            files::write_atomic(&public, text.as_bytes(), 0o644)?;
        }
        Ok(key)
    }

    /// Generates and writes a key, or reads the key of another process that was faster.
    fn generate_at(path: &Path, bits: usize, passphrase: Option<&str>) -> Result<Self, CryptError> {
        let made = Self::generate(bits)?;
        let text = passphrase.map_or_else(|| made.to_pem(), |passphrase| made.to_pem_with(passphrase))?;
        if files::write_new(path, text.as_bytes(), 0o400)? {
            return Ok(made);
        }
        let gone = || FileError::at("read", path)(ErrorKind::NotFound.into());
        Ok(Self::load(path, passphrase)?.ok_or_else(gone)?)
    }

    /// Reads a private key, or `None` if the file does not exist. Ignores the passphrase if the key is not encrypted.
    pub fn load(path: impl AsRef<Path>, passphrase: Option<&str>) -> Result<Option<Self>, CryptError> {
        let path = path.as_ref();
        let Some(text) = files::read_if_exists(path)? else { return Ok(None) };
        Self::from_pem_with(&text, passphrase)
            .map(Some)
            .map_err(|source| CryptError::KeyFile { path: path.display().to_string(), source: source.into() })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::rsa::tests::PEM;

    #[test]
    fn an_identity_is_generated_once_and_then_read() {
        let dir = tempfile::tempdir().unwrap();
        let made: Vec<_> = std::thread::scope(|scope| {
            let start = || scope.spawn(|| PrivateKey::load_or_generate(&dir, "minion", 2048).unwrap().public());
            let running = [start(), start()];
            running.map(|thread| thread.join().unwrap()).into()
        });
        assert_eq!(made[0], made[1]);
        let again = PrivateKey::load_or_generate(&dir, "minion", 2048).unwrap();
        assert_eq!(again.public(), made[0]);
        for (name, mode) in [("minion.pem", 0o400), ("minion.pub", 0o644)] {
            let found = fs::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o7777;
            assert_eq!(found, mode, "{name}");
        }
    }

    #[test]
    fn a_missing_or_wrong_public_file_is_rewritten() {
        let dir = tempfile::tempdir().unwrap();
        let public = dir.path().join("master.pub");
        fs::write(dir.path().join("master.pem"), PEM).unwrap();
        for wrong in [None, Some("of another key")] {
            let _ = wrong.map(|text| fs::write(&public, text));
            let key = PrivateKey::load_or_generate(&dir, "master", 2048).unwrap();
            assert_eq!(fs::read_to_string(&public).unwrap(), key.public().to_pem());
        }
    }

    #[test]
    fn a_damaged_file_is_named_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("master.pem");
        fs::write(&path, "not a key").unwrap();
        let message = PrivateKey::load_or_generate(&dir, "master", 2048).unwrap_err().to_string();
        let message = message.replace(&*dir.path().to_string_lossy(), "DIR");
        insta::assert_snapshot!(message, @"DIR/master.pem: this is not a usable RSA key: it has no BEGIN and END line of a PEM file");
        assert_eq!(fs::read_to_string(&path).unwrap(), "not a key");
        assert!(PrivateKey::load(dir.path().join("none.pem"), None).unwrap().is_none());
    }
}
