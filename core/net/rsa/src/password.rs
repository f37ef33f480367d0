//! The primitives for encrypting private keys with passwords: block ciphers, key derivation and HMAC. The formats are
//! parsed elsewhere.

use std::ffi::{c_int, c_uint};
use std::ptr::{self, NonNull};

use aws_lc_sys as lc;

use crate::pkey::{Digest, failed};

/// A block cipher in CBC mode with PKCS#7 padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Cipher {
    Aes128,
    Aes192,
    Aes256,
    TripleDes,
}

impl Cipher {
    fn evp(self) -> *const lc::EVP_CIPHER {
        // SAFETY: all take no arguments and return a pointer to a constant.
        unsafe {
            match self {
                Cipher::Aes128 => lc::EVP_aes_128_cbc(),
                Cipher::Aes192 => lc::EVP_aes_192_cbc(),
                Cipher::Aes256 => lc::EVP_aes_256_cbc(),
                Cipher::TripleDes => lc::EVP_des_ede3_cbc(),
            }
        }
    }

    /// Returns the length of a key in bytes.
    pub fn key_length(self) -> usize {
        match self {
            Cipher::Aes128 => 16,
            Cipher::Aes192 | Cipher::TripleDes => 24,
            Cipher::Aes256 => 32,
        }
    }

    /// Returns the length of a block, and so of an initialization vector, in bytes.
    pub fn block(self) -> usize {
        if self == Cipher::TripleDes { 8 } else { 16 }
    }

    /// Encrypts data. `None` if the length of the key or of the initialization vector is wrong.
    pub fn encrypt(self, key: &[u8], iv: &[u8], data: &[u8]) -> Option<Vec<u8>> {
        self.run(key, iv, data, true)
    }

    /// Decrypts data. `None` if the padding is invalid, as with a wrong key, or if a length is wrong.
    pub fn decrypt(self, key: &[u8], iv: &[u8], data: &[u8]) -> Option<Vec<u8>> {
        self.run(key, iv, data, false)
    }

    fn run(self, key: &[u8], iv: &[u8], data: &[u8], encrypts: bool) -> Option<Vec<u8>> {
        let size = c_int::try_from(data.len()).ok().filter(|size| *size < c_int::MAX - 64)?;
        if key.len() != self.key_length() || iv.len() != self.block() {
            return None;
        }
        let mut out = vec![0; data.len() + 2 * self.block()];
        let (mut head, mut tail) = (0, 0);
        // SAFETY: the lengths of key and vector are the cipher's. An update writes at most one block more than it
        // reads, and the final call at most one block. The context is freed here.
        let succeeded = unsafe {
            let context = NonNull::new(lc::EVP_CIPHER_CTX_new())?;
            let (cipher, none, way) = (self.evp(), ptr::null_mut(), c_int::from(encrypts));
            let succeeded = lc::EVP_CipherInit_ex(context.as_ptr(), cipher, none, key.as_ptr(), iv.as_ptr(), way) == 1
                && lc::EVP_CipherUpdate(context.as_ptr(), out.as_mut_ptr(), &raw mut head, data.as_ptr(), size) == 1
                && {
                    let rest = out.as_mut_ptr().add(usize::try_from(head).unwrap_or(0));
                    lc::EVP_CipherFinal_ex(context.as_ptr(), rest, &raw mut tail) == 1
                };
            lc::EVP_CIPHER_CTX_free(context.as_ptr());
            succeeded
        };
        if !succeeded {
            return failed();
        }
        out.truncate(usize::try_from(head + tail).unwrap_or(0));
        Some(out)
    }
}

/// Derives a key from a password by PBKDF2.
pub fn pbkdf2(digest: Digest, password: &[u8], salt: &[u8], iterations: u32, length: usize) -> Option<Vec<u8>> {
    let mut key = vec![0; length];
    // SAFETY: all pointers are of slices whose lengths are passed along.
    let succeeded = unsafe {
        let (password, size) = (password.as_ptr().cast(), password.len());
        let (salt, salt_size) = (salt.as_ptr(), salt.len());
        let hash = digest.evp();
        lc::PKCS5_PBKDF2_HMAC(password, size, salt, salt_size, iterations, hash, length, key.as_mut_ptr()) == 1
    };
    if succeeded { Some(key) } else { failed() }
}

/// Returns the HMAC of data.
pub fn hmac(digest: Digest, key: &[u8], data: &[u8]) -> Option<Vec<u8>> {
    let mut out = vec![0; 64];
    let mut length: c_uint = 0;
    // SAFETY: all pointers are of slices whose lengths are passed along; no HMAC is longer than 64 bytes.
    let mac = unsafe {
        let (key, size) = (key.as_ptr().cast(), key.len());
        lc::HMAC(digest.evp(), key, size, data.as_ptr(), data.len(), out.as_mut_ptr(), &raw mut length)
    };
    if mac.is_null() {
        return failed();
    }
    out.truncate(length as usize);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ciphers_decrypt_what_they_encrypt() {
        for cipher in [Cipher::Aes128, Cipher::Aes192, Cipher::Aes256, Cipher::TripleDes] {
            let (key, iv) = (vec![7; cipher.key_length()], vec![9; cipher.block()]);
            for length in [0, 1, 15, 16, 17, 1000] {
                let data = vec![3; length];
                let sealed = cipher.encrypt(&key, &iv, &data).unwrap();
                assert_eq!(cipher.decrypt(&key, &iv, &sealed).unwrap(), data);
                assert_eq!(cipher.decrypt(&key, &iv, &sealed[1..]), None);
            }
            assert_eq!(cipher.encrypt(&key[1..], &iv, b""), None);
            assert_eq!(cipher.decrypt(&key, &iv[1..], b""), None);
        }
    }

    #[test]
    fn derived_keys_and_hmacs_are_those_of_the_standards() {
        // RFC 6070 and RFC 4231
        let key = pbkdf2(Digest::Sha1, b"password", b"salt", 2, 20).unwrap();
        assert_eq!(key[..4], [0xea, 0x6c, 0x01, 0x4d]);
        let code = hmac(Digest::Sha256, &[0x0b; 20], b"Hi There").unwrap();
        assert_eq!(code[..4], [0xb0, 0x34, 0x4c, 0x61]);
    }
}
