//! Private keys with a passphrase in Salt's format: PKCS#1 encrypted with AES-256-CBC, and OpenSSL's key derivation by
//! MD5. This protects a key in a backup, but not against a brute-force attack on the passphrase.

use aes::Aes256;
use aes::cipher::block_padding::Pkcs7;
use aes::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};
use base64::{Engine, prelude::BASE64_STANDARD};
use md5::{Digest, Md5};

use super::pem::body;
use super::{CryptError, token};

/// The error for a key in another format.
pub(super) const FORM: &str =
    "it is encrypted in another format than Salt's: convert it (openssl rsa -aes256 -traditional)";
/// The error for a wrong passphrase.
pub(super) const WRONG: &str = "the passphrase in `key_pass` is not that of the key";

const BEGIN: &str = "-----BEGIN RSA PRIVATE KEY-----";
const END: &str = "-----END RSA PRIVATE KEY-----";
const HEADERS: [&str; 2] = ["Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-256-CBC,"];

/// An encrypted private key.
pub(super) struct Sealed {
    iv: [u8; 16],
    text: Vec<u8>,
}

impl Sealed {
    /// Parses a PEM text; `None` if the key is not encrypted.
    pub fn from_pem(text: &str) -> Result<Option<Self>, CryptError> {
        if !text.contains("ENCRYPTED\n") && !text.contains("ENCRYPTED\r") {
            return Ok(None);
        }
        let parts = || {
            let (_, rest) = text.split_once(BEGIN)?;
            let (within, _) = rest.split_once(END)?;
            let (_, rest) = within.split_once(HEADERS[1])?;
            let (iv, packed) = rest.split_once(['\r', '\n'])?;
            let packed: String = packed.split_whitespace().collect();
            let iv = u128::from_str_radix(iv.trim(), 16).ok().filter(|_| iv.trim().len() == 32)?;
            Some(Sealed { iv: iv.to_be_bytes(), text: BASE64_STANDARD.decode(packed).ok()? })
        };
        parts().map(Some).ok_or(CryptError::BadKey(FORM))
    }

    /// Returns the PEM text.
    pub fn to_pem(&self) -> String {
        let iv = brine_digest::hex(self.iv).to_uppercase();
        format!("{BEGIN}\n{}\n{}{iv}\n\n{}{END}\n", HEADERS[0], HEADERS[1], body(&self.text))
    }

    /// Encrypts a key with a passphrase.
    pub fn seal(der: &[u8], passphrase: &str) -> Self {
        let iv = token::random_bytes::<16>();
        let cipher = cbc::Encryptor::<Aes256>::new(&derive(passphrase, &iv).into(), &iv.into());
        Sealed { iv, text: cipher.encrypt_padded_vec::<Pkcs7>(der) }
    }

    /// Decrypts the key. A wrong passphrase mostly fails at the padding, else the result is not a valid key.
    pub fn open(&self, passphrase: &str) -> Result<Vec<u8>, CryptError> {
        let cipher = cbc::Decryptor::<Aes256>::new(&derive(passphrase, &self.iv).into(), &self.iv.into());
        cipher.decrypt_padded_vec::<Pkcs7>(&self.text).map_err(|_| CryptError::BadKey(WRONG))
    }
}

/// Derives the AES key from a passphrase: the salt is the start of the IV.
fn derive(passphrase: &str, iv: &[u8; 16]) -> [u8; 32] {
    let mut key = [0; 32];
    let round =
        |before: &[u8]| Md5::new().chain_update(before).chain_update(passphrase).chain_update(&iv[..8]).finalize();
    let first = round(&[]);
    key[..16].copy_from_slice(&first);
    key[16..].copy_from_slice(&round(&first));
    key
}

#[cfg(test)]
mod tests {
    use crate::PrivateKey;
    use crate::rsa::tests::KEY;

    #[test]
    fn a_key_is_decrypted_only_by_its_passphrase() {
        // Written by the library that Salt uses.
        let salts = include_str!("testdata/identity.passphrase.pem");
        let own = KEY.to_pem_with("pass word").unwrap();
        for text in [salts, &own, &salts.replace('\n', "\r\n")] {
            let opened = PrivateKey::from_pem_with(text, Some("pass word")).unwrap();
            assert_eq!(opened.public(), KEY.public());
            let message = |passphrase| PrivateKey::from_pem_with(text, passphrase).unwrap_err().to_string();
            assert_eq!(
                message(Some("password")),
                "this is not a usable RSA key: the passphrase in `key_pass` is not that of the key"
            );
            assert!(message(None).contains("give it as `key_pass`"));
        }
        assert_eq!(PrivateKey::from_pem_with(&KEY.to_pem().unwrap(), Some("any")).unwrap().public(), KEY.public());
    }

    #[test]
    fn another_format_is_reported() {
        let text = include_str!("testdata/identity.passphrase.pem").replace("AES-256", "DES-EDE3");
        let message = PrivateKey::from_pem_with(&text, Some("pass word")).unwrap_err().to_string();
        assert!(message.contains("another format than Salt's"), "{message}");
    }
}
