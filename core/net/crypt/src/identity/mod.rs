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
mod tests;
