//! A session: one symmetric key with its cipher. Master and minion encrypt requests and replies with one, the master's
//! publishes with another.

use std::fmt;

use super::crypticle::Crypticle;
use super::gcm::Gcm;
use super::{Cipher, CryptError};

/// A symmetric key and its cipher. Cheap to clone; `Debug` shows only the cipher.
#[derive(Clone)]
pub struct Session(Key);

#[derive(Clone)]
enum Key {
    Crypticle(Crypticle),
    Gcm(Gcm),
}

impl Session {
    /// Generates a key for this cipher.
    pub fn generate(cipher: Cipher) -> Self {
        Session(match cipher {
            Cipher::AesCbcHmac => Key::Crypticle(Crypticle::generate()),
            Cipher::Aes256Gcm => Key::Gcm(Gcm::generate()),
        })
    }

    /// Derives a key of Salt's cipher from a secret and the parts of its context. Equal inputs yield equal keys.
    /// Without the secret, a key cannot be distinguished from a random one.
    pub fn derived(secret: &[u8], parts: &[&[u8]]) -> Self {
        Session(Key::Crypticle(Crypticle::derived(secret, parts)))
    }

    /// Decodes a key written by [`Session::key_text`] or by Salt. The format identifies the cipher.
    pub fn from_key_text(text: &str) -> Result<Self, CryptError> {
        match Gcm::from_key_text(text) {
            Some(key) => key.map(|key| Session(Key::Gcm(key))),
            None => Crypticle::from_key_text(text).map(|key| Session(Key::Crypticle(key))),
        }
    }

    /// Encodes the key, for a file or, encrypted, for a peer. Keys of Salt's cipher are in Salt's format; others start
    /// with the cipher's name.
    pub fn key_text(&self) -> String {
        match &self.0 {
            Key::Crypticle(key) => key.key_text(),
            Key::Gcm(key) => key.key_text(),
        }
    }

    /// Returns the cipher of this session.
    pub fn cipher(&self) -> Cipher {
        match self.0 {
            Key::Crypticle(_) => Cipher::AesCbcHmac,
            Key::Gcm(_) => Cipher::Aes256Gcm,
        }
    }

    /// Encrypts and authenticates a message.
    ///
    /// `nonce` is that of the answered request (see [`token::nonce`](super::token::nonce)). Salt's cipher prepends it
    /// to the message, so it must have 32 characters there; AES-256-GCM authenticates it and does not send it.
    ///
    /// `aad` names the purpose and the minion. AES-256-GCM authenticates it; Salt's cipher cannot and ignores it.
    pub fn seal(&self, plaintext: &[u8], nonce: Option<&str>, aad: &[u8]) -> Vec<u8> {
        match &self.0 {
            Key::Crypticle(key) => key.seal(plaintext, nonce),
            Key::Gcm(key) => key.seal(plaintext, nonce, aad),
        }
    }

    /// Decrypts a message that was sealed with the same key, nonce and `aad`.
    ///
    /// # Errors
    /// A wrong nonce is [`CryptError::WrongNonce`] with Salt's cipher, and [`CryptError::WrongKey`] with AES-256-GCM,
    /// which cannot distinguish the cause.
    pub fn open(&self, text: &[u8], nonce: Option<&str>, aad: &[u8]) -> Result<Vec<u8>, CryptError> {
        match &self.0 {
            Key::Crypticle(key) => key.open(text, nonce),
            Key::Gcm(key) => key.open(text, nonce, aad),
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({})", self.cipher())
    }
}

#[cfg(test)]
mod tests;
