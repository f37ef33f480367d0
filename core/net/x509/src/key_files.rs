//! Private keys in files: PEM, DER or PKCS#12, with passwords.

use crate::keys::PrivateKey;
use crate::pkcs8;
use crate::pkcs12::Container;
use crate::{Result, X509Error, invalid, pem};

/// A private key, and the encoding of its file.
pub struct LoadedKey {
    /// The key.
    pub key: PrivateKey,
    /// The encoding: `pem`, `der` or `pkcs12`.
    pub encoding: &'static str,
}

impl PrivateKey {
    /// Parses a key in PEM, DER or PKCS#12.
    ///
    /// # Errors
    /// The password is missing, wrong, or given although the key is not encrypted; or the bytes are not a private key.
    pub fn load(bytes: &[u8], password: Option<&str>) -> Result<LoadedKey> {
        if pem::is_pem(bytes) {
            return Ok(LoadedKey { key: from_pem(bytes, password)?, encoding: "pem" });
        }
        if let Some(container) = Container::open(bytes, password)? {
            let missing = || invalid("PKCS12-encoded blob does not contain a private key.");
            return Ok(LoadedKey { key: container.key.ok_or_else(missing)?, encoding: "pkcs12" });
        }
        if pkcs8::is_encrypted(bytes) {
            let key = decrypted(pkcs8::decrypt(bytes, password.ok_or(X509Error::MissingPassword)?))?;
            return Ok(LoadedKey { key, encoding: "der" });
        }
        let unreadable = X509Error::Unreadable("Could not deserialize binary data, neither as DER nor PKCS#12.");
        let key = Self::from_der(bytes).ok_or(unreadable)?;
        if password.is_some() {
            return Err(X509Error::NeedlessPassword);
        }
        Ok(LoadedKey { key, encoding: "der" })
    }
}

fn from_pem(bytes: &[u8], password: Option<&str>) -> Result<PrivateKey> {
    let unreadable = X509Error::Unreadable("Could not load PEM-encoded private key");
    let block = pem::blocks(bytes).into_iter().find(|block| block.label.ends_with("PRIVATE KEY"));
    let block = block.ok_or_else(|| unreadable.clone())?;
    let is_new = block.label == "ENCRYPTED PRIVATE KEY";
    if is_new || pkcs8::has_old_encryption(&block) {
        let password = password.ok_or(X509Error::MissingPassword)?;
        return decrypted(if is_new {
            pkcs8::decrypt(&block.bytes, password)
        } else {
            pkcs8::decrypt_old(&block, password)
        });
    }
    let key = PrivateKey::from_der(&block.bytes).ok_or(unreadable)?;
    if password.is_some() { Err(X509Error::NeedlessPassword) } else { Ok(key) }
}

fn decrypted(plain: Option<Vec<u8>>) -> Result<PrivateKey> {
    // With a wrong password, the padding may be valid by chance.
    plain.and_then(|plain| PrivateKey::from_der(&plain)).ok_or(X509Error::WrongPassword)
}
