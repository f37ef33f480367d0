//! Sealing: encryption and authentication of secrets in the store, with a key that only the master's user can read
//! (`sealing.key` in `pki_dir`).

use std::path::Path;

use brine_crypt::{Cipher, CryptError, Session};
use brine_system::files::{self, FileError};

/// The file of the key.
const FILE: &str = "sealing.key";

/// The key of sealed data. Clones share it.
#[derive(Debug, Clone)]
pub struct Sealing(Session);

impl Sealing {
    /// Reads the key from a directory; generates it if it is missing. An unusable key is replaced: what it has sealed is
    /// lost.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn open(directory: &Path) -> Result<Self, FileError> {
        let path = directory.join(FILE);
        if let Some(text) = files::read_if_exists(&path)? {
            match Session::from_key_text(text.trim()) {
                Ok(key) if key.cipher() == Cipher::Aes256Gcm => return Ok(Sealing(key)),
                _ => {
                    tracing::error!(path = %path.display(), "the key of sealed arguments is invalid and is replaced: masked jobs from before are not delivered late");
                }
            }
        }
        let key = Session::generate(Cipher::Aes256Gcm);
        files::write_atomic(&path, key.key_text().as_bytes(), 0o400)?;
        Ok(Sealing(key))
    }

    /// Encrypts data, bound to its purpose and name.
    pub fn seal(&self, purpose: &str, name: &str, data: &[u8]) -> Vec<u8> {
        self.0.seal(data, Some(name), purpose.as_bytes())
    }

    /// Decrypts data that was sealed for the same purpose and name.
    ///
    /// # Errors
    /// The data was sealed with another key, for another purpose or name, or changed.
    pub fn unseal(&self, purpose: &str, name: &str, sealed: &[u8]) -> Result<Vec<u8>, CryptError> {
        self.0.open(sealed, Some(name), purpose.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn sealed_data_opens_with_the_same_key_purpose_and_name_only() {
        let directory = tempfile::tempdir().unwrap();
        let sealing = Sealing::open(directory.path()).unwrap();
        let mode = std::fs::metadata(directory.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o400);
        let sealed = sealing.seal("a", "1", b"secret");
        assert!(!sealed.windows(6).any(|part| part == b"secret"));
        let again = Sealing::open(directory.path()).unwrap();
        assert_eq!(again.unseal("a", "1", &sealed).unwrap(), b"secret");
        assert!(again.unseal("b", "1", &sealed).is_err() && again.unseal("a", "2", &sealed).is_err());
        let other = tempfile::tempdir().unwrap();
        assert!(Sealing::open(other.path()).unwrap().unseal("a", "1", &sealed).is_err());
    }

    #[test]
    fn an_invalid_key_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(FILE), "x").unwrap();
        let sealed = Sealing::open(directory.path()).unwrap().seal("a", "1", b"x");
        assert_eq!(Sealing::open(directory.path()).unwrap().unseal("a", "1", &sealed).unwrap(), b"x");
    }
}
