//! Salt's cipher: AES-192-CBC, then HMAC-SHA256 over the IV and the ciphertext.
//!
//! Layout: `IV (16) | ciphertext | MAC (32)`. Plaintext: the constant `pickle::` (historical: nothing is pickled), in
//! replies the request's nonce of 32 characters, then the message.

use aes::Aes192;
use aes::cipher::block_padding::Pkcs7;
use aes::cipher::{BlockModeDecrypt, BlockModeEncrypt, InnerIvInit, KeyInit};
use base64::{Engine, prelude::BASE64_STANDARD};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

use super::CryptError;
use super::token::{NONCE_LENGTH, constant_time_eq, random_bytes};

const AES_KEY: usize = 24;
const HMAC_KEY: usize = 32;
const IV: usize = 16;
const MAC: usize = 32;
const MARK: &[u8] = b"pickle::";

/// One key of Salt's cipher.
#[derive(Clone)]
pub(super) struct Crypticle {
    key: [u8; AES_KEY + HMAC_KEY],
    aes: Aes192,
    mac: Hmac<Sha256>,
}

/// Returns a key of HMAC-SHA256 as a block of the hash: a shorter key is padded with zeros.
fn padded(key: &[u8]) -> [u8; 64] {
    let mut block = [0; 64];
    block[..key.len()].copy_from_slice(key);
    block
}

impl Crypticle {
    pub(super) fn generate() -> Self {
        Self::new(random_bytes())
    }

    /// Derives a key from a secret and its context by HMAC-SHA256 with a counter.
    pub(super) fn derived(secret: &[u8], parts: &[&[u8]]) -> Self {
        let mut key = [0; AES_KEY + HMAC_KEY];
        for (counter, block) in (1_u8..).zip(key.chunks_mut(MAC)) {
            // A digest has the size of HMAC's key.
            let mut mac = Hmac::<Sha256>::new(&padded(&Sha256::digest(secret)).into());
            mac.update(&[counter]);
            for part in parts {
                mac.update(&(part.len() as u64).to_be_bytes());
                mac.update(part);
            }
            let digest = mac.finalize().into_bytes();
            block.copy_from_slice(&digest[..block.len()]);
        }
        Self::new(key)
    }

    fn new(key: [u8; AES_KEY + HMAC_KEY]) -> Self {
        let aes: [u8; AES_KEY] = std::array::from_fn(|i| key[i]);
        Crypticle { key, aes: Aes192::new(&aes.into()), mac: Hmac::new(&padded(&key[AES_KEY..]).into()) }
    }

    pub(super) fn from_key_text(text: &str) -> Result<Self, CryptError> {
        let key = BASE64_STANDARD.decode(text.trim()).map_err(|_| CryptError::Malformed(NOT_A_KEY))?;
        key.try_into().map(Self::new).map_err(|_| CryptError::Malformed(NOT_A_KEY))
    }

    pub(super) fn key_text(&self) -> String {
        BASE64_STANDARD.encode(self.key)
    }

    pub(super) fn seal(&self, message: &[u8], nonce: Option<&str>) -> Vec<u8> {
        let plaintext = [MARK, nonce.unwrap_or_default().as_bytes(), message].concat();
        let iv: [u8; IV] = random_bytes();
        let encryptor = cbc::Encryptor::inner_iv_init(self.aes.clone(), &iv.into());
        let mut text = iv.to_vec();
        text.extend(encryptor.encrypt_padded_vec::<Pkcs7>(&plaintext));
        let mac = self.mac.clone().chain_update(&text).finalize().into_bytes();
        text.extend(mac);
        text
    }

    pub(super) fn open(&self, text: &[u8], nonce: Option<&str>) -> Result<Vec<u8>, CryptError> {
        let (sealed, mac) = text.split_last_chunk::<MAC>().ok_or(CryptError::Malformed(NOT_A_TEXT))?;
        // In constant time, and before decryption.
        self.mac.clone().chain_update(sealed).verify_slice(mac).map_err(|_| CryptError::WrongKey)?;
        let (iv, ciphertext) = sealed.split_first_chunk::<IV>().ok_or(CryptError::Malformed(NOT_A_TEXT))?;
        let decryptor = cbc::Decryptor::inner_iv_init(self.aes.clone(), iv.into());
        let mut plaintext = decryptor.decrypt_padded_vec::<Pkcs7>(ciphertext).map_err(|_| CryptError::BadPadding)?;
        let mut start = MARK.len();
        if !plaintext.starts_with(MARK) {
            return Err(CryptError::Malformed(NOT_A_TEXT));
        }
        if let Some(nonce) = nonce {
            let actual = plaintext.get(start..start + NONCE_LENGTH).ok_or(CryptError::WrongNonce)?;
            if !constant_time_eq(actual, nonce) {
                return Err(CryptError::WrongNonce);
            }
            start += NONCE_LENGTH;
        }
        Ok(plaintext.split_off(start))
    }
}

const NOT_A_KEY: &str = "a session key of AES-192-CBC with HMAC: Base64 of 56 bytes";
const NOT_A_TEXT: &str = "a message of Salt's session cipher";

#[cfg(test)]
mod tests;
