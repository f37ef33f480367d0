//! The cipher between Brine's daemons: AES-256-GCM with extended nonces.
//!
//! Layout: version (1) | nonce (24) | ciphertext | tag (16).
//!
//! A GCM nonce must never repeat under one key, and 96 bits are too few for random nonces during the life of a session.
//! Counters would have to be coordinated between the two ends that share a key, and persisted over restarts. So nonces
//! have 192 random bits: the first half derives a key for this message, the second half is that key's nonce. This is
//! XAES-256-GCM (<https://c2sp.org/XAES-256-GCM>), safe for 2^80 messages per key, without state.
//!
//! The tag authenticates the version, the nonce of the request that is answered, and the caller's associated data
//! (purpose, minion id). A message does not decrypt in another context.

use aes::Aes256;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes_gcm::Aes256Gcm;
use aes_gcm::aead::{Aead, Payload};
use base64::{Engine, prelude::BASE64_STANDARD};

use super::CryptError;
use super::token::random_bytes;

const VERSION: u8 = 1;
const KEY: usize = 32;
const NONCE: usize = 24;
/// The prefix of an encoded key. It contains a colon, which Base64 does not, to distinguish it from Salt's keys.
const MARK: &str = "aes-256-gcm:";

/// One key of the cipher.
#[derive(Clone)]
pub(super) struct Gcm {
    key: [u8; KEY],
    /// The block cipher that derives the message keys.
    deriver: Aes256,
    /// The CMAC subkey for the last block.
    subkey: [u8; 16],
}

impl Gcm {
    pub(super) fn generate() -> Self {
        Self::new(random_bytes())
    }

    fn new(key: [u8; KEY]) -> Self {
        let deriver = Aes256::new(&key.into());
        let mut block = [0; 16].into();
        deriver.encrypt_block(&mut block);
        // Doubles in GF(2^128), without a branch on the secret.
        let secret = u128::from_be_bytes(block.into());
        let doubled = (secret << 1) ^ ((secret >> 127) * 0x87);
        Gcm { key, deriver, subkey: doubled.to_be_bytes() }
    }

    /// Decodes a key; `None` if the text is for another cipher.
    pub(super) fn from_key_text(text: &str) -> Option<Result<Self, CryptError>> {
        let key = BASE64_STANDARD.decode(text.trim().strip_prefix(MARK)?);
        let bad = CryptError::Malformed("a session key of AES-256-GCM: Base64 of 32 bytes");
        Some(key.ok().and_then(|key| key.try_into().ok()).map(Self::new).ok_or(bad))
    }

    pub(super) fn key_text(&self) -> String {
        format!("{MARK}{}", BASE64_STANDARD.encode(self.key))
    }

    pub(super) fn seal(&self, message: &[u8], nonce: Option<&str>, aad: &[u8]) -> Vec<u8> {
        let random: [u8; NONCE] = random_bytes();
        let bound = bind(nonce, aad);
        // Fails only for messages of 64 GiB or more; an empty result never decrypts.
        let Some(sealed) = self.seal_with(&random, message, &bound) else { return Vec::new() };
        [&[VERSION][..], &random, &sealed].concat()
    }

    pub(super) fn open(&self, text: &[u8], nonce: Option<&str>, aad: &[u8]) -> Result<Vec<u8>, CryptError> {
        let malformed = CryptError::Malformed("a message of AES-256-GCM in version 1");
        let Some((random, sealed)) = text.strip_prefix(&[VERSION]).and_then(<[u8]>::split_first_chunk::<NONCE>) else {
            return Err(malformed);
        };
        let payload = Payload { msg: sealed, aad: &bind(nonce, aad) };
        let (_, own) = halves(random);
        self.message_cipher(random).decrypt(&own.into(), payload).map_err(|_| CryptError::WrongKey)
    }

    fn seal_with(&self, random: &[u8; NONCE], message: &[u8], aad: &[u8]) -> Option<Vec<u8>> {
        let (_, own) = halves(random);
        self.message_cipher(random).encrypt(&own.into(), Payload { msg: message, aad }).ok()
    }

    /// Derives the cipher of one message: CMAC in counter mode (NIST SP 800-108) over the nonce's first half.
    fn message_cipher(&self, random: &[u8; NONCE]) -> Aes256Gcm {
        let (context, _) = halves(random);
        let mut key = [0; KEY];
        for (counter, half) in [1, 2].into_iter().zip(key.chunks_exact_mut(16)) {
            let mut block = [0; 16];
            block[..4].copy_from_slice(&[0, counter, b'X', 0]);
            block[4..].copy_from_slice(&context);
            block.iter_mut().zip(&self.subkey).for_each(|(byte, mask)| *byte ^= mask);
            let mut block = block.into();
            self.deriver.encrypt_block(&mut block);
            half.copy_from_slice(&block);
        }
        Aes256Gcm::new(&key.into())
    }
}

/// Splits a nonce into the half that derives the message key, and the half that is its nonce.
fn halves(random: &[u8; NONCE]) -> ([u8; 12], [u8; 12]) {
    (std::array::from_fn(|i| random[i]), std::array::from_fn(|i| random[i + 12]))
}

/// Encodes the associated data with length prefixes, so that no two inputs yield the same bytes.
fn bind(nonce: Option<&str>, aad: &[u8]) -> Vec<u8> {
    let nonce = nonce.unwrap_or_default().as_bytes();
    [&[VERSION][..], &(nonce.len() as u64).to_be_bytes(), nonce, aad].concat()
}

#[cfg(test)]
mod tests;
