//! RSA by AWS-LC, and the keys of certificates. Private key operations run in constant time, blinded, and checked
//! against computation faults; all operations are several times faster than in the `rsa` crate. AWS-LC's safe interface
//! supports neither signatures of SHA-1 digests nor decryption with SHA-224, both of which Salt's protocol requires.
//!
//! The only crate of Brine with `unsafe` code. It contains only calls of AWS-LC: it neither parses formats nor makes
//! decisions.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

mod password;
mod pkey;
#[cfg(test)]
mod tests;

use std::ffi::{c_long, c_uint};
use std::ops::RangeInclusive;
use std::ptr::{self, NonNull};

use aws_lc_sys as lc;

pub use password::{Cipher, hmac, pbkdf2};
pub use pkey::{Curve, Digest, KeyKind, Padding, PrivateKey, VerifyingKey};
use pkey::{MAX_INPUT, bytes_of, failed, reader};

/// The accepted sizes of keys, in bits. The time of an operation grows with the cube of the size, and peers send their
/// keys before they are authenticated.
const BITS: RangeInclusive<u32> = 1024..=8192;

/// A hash function of Salt's paddings and signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    /// SHA-1, Salt's default.
    Sha1,
    /// SHA-224, for hosts whose FIPS mode forbids SHA-1.
    Sha224,
}

impl Hash {
    fn nid(self) -> i32 {
        match self {
            Hash::Sha1 => lc::NID_sha1,
            Hash::Sha224 => lc::NID_sha224,
        }
    }

    fn digest(self) -> *const lc::EVP_MD {
        // SAFETY: both take no arguments and return a pointer to a constant.
        unsafe {
            match self {
                Hash::Sha1 => lc::EVP_sha1(),
                Hash::Sha224 => lc::EVP_sha224(),
            }
        }
    }

    /// Returns the length of a digest in bytes.
    fn length(self) -> usize {
        match self {
            Hash::Sha1 => 20,
            Hash::Sha224 => 28,
        }
    }
}

/// A private RSA key.
pub struct Key {
    /// Owned; it owns `rsa` too.
    key: NonNull<lc::EVP_PKEY>,
    rsa: NonNull<lc::RSA>,
}

// SAFETY: AWS-LC's keys may be used by several threads concurrently as long as none mutates them, and nothing after
// `from_der` does; the blinding factors inside are protected by a lock of AWS-LC's own.
unsafe impl Send for Key {}
// SAFETY: as above.
unsafe impl Sync for Key {}

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: the pointer is from `EVP_PKEY_new` and is freed here alone; it frees `rsa` too.
        unsafe { lc::EVP_PKEY_free(self.key.as_ptr()) }
    }
}

/// Frees the context of one operation.
struct Operation(NonNull<lc::EVP_PKEY_CTX>);

impl Drop for Operation {
    fn drop(&mut self) {
        // SAFETY: the pointer is from `EVP_PKEY_CTX_new` and is freed here alone.
        unsafe { lc::EVP_PKEY_CTX_free(self.0.as_ptr()) }
    }
}

impl Key {
    /// Parses a key in PKCS#1 or PKCS#8 form. `None` if it is invalid, its numbers are inconsistent or its size is not
    /// accepted.
    pub fn from_der(der: &[u8]) -> Option<Key> {
        let length = c_long::try_from(der.len()).ok().filter(|_| der.len() <= MAX_INPUT)?;
        let mut at = der.as_ptr();
        // SAFETY: pointer and length are of one slice, which is only read.
        let key = Self::from_raw(unsafe { lc::d2i_AutoPrivateKey(ptr::null_mut(), &raw mut at, length) })?;
        (at == der.as_ptr_range().end).then_some(key)
    }

    /// Takes ownership of a pointer from AWS-LC. `None` if it is null, or not an RSA key of an accepted size.
    fn from_raw(key: *mut lc::EVP_PKEY) -> Option<Key> {
        let Some(key) = NonNull::new(key) else { return failed() };
        // SAFETY: the pointer is valid, and freed here unless it moves to the result.
        unsafe {
            let is_rsa = lc::EVP_PKEY_id(key.as_ptr()) == lc::EVP_PKEY_RSA;
            let rsa = NonNull::new(lc::EVP_PKEY_get0_RSA(key.as_ptr())).filter(|_| is_rsa);
            let Some(rsa) = rsa else {
                lc::EVP_PKEY_free(key.as_ptr());
                return failed();
            };
            Some(Key { key, rsa }).filter(|_| BITS.contains(&lc::RSA_bits(rsa.as_ptr())))
        }
    }

    /// Generates a key with the exponent 65537. `None` if its size is not accepted.
    pub fn generate(bits: u16) -> Option<Key> {
        if !BITS.contains(&bits.into()) {
            return None;
        }
        // SAFETY: all pointers created here are checked for null and freed here, except `rsa`, which belongs to `key`
        // if it was assigned.
        let key = unsafe {
            let (rsa, exponent, key) = (lc::RSA_new(), lc::BN_new(), lc::EVP_PKEY_new());
            let succeeded = !rsa.is_null()
                && !exponent.is_null()
                && !key.is_null()
                && lc::BN_set_word(exponent, 65537) == 1
                && lc::RSA_generate_key_ex(rsa, i32::from(bits), exponent, ptr::null_mut()) == 1
                && lc::EVP_PKEY_assign_RSA(key, rsa) == 1;
            lc::BN_free(exponent);
            if !succeeded {
                lc::RSA_free(rsa);
                lc::EVP_PKEY_free(key);
                return failed();
            }
            key
        };
        Self::from_raw(key)
    }

    /// Returns the key in PKCS#1 form.
    pub fn to_der(&self) -> Option<Vec<u8>> {
        // SAFETY: the pointer is valid; it is only read.
        bytes_of(|out| unsafe { lc::RSA_marshal_private_key(out, self.rsa.as_ptr()) })
    }

    /// Returns the public key.
    pub fn public(&self) -> Option<PublicKey> {
        PublicKey::from_der(&self.spki()?)
    }

    fn spki(&self) -> Option<Vec<u8>> {
        // SAFETY: as above.
        bytes_of(|out| unsafe { lc::EVP_marshal_public_key(out, self.key.as_ptr()) })
    }

    /// Returns the size of the modulus, and so of each signature, in bytes.
    pub fn size(&self) -> usize {
        // SAFETY: the pointer is valid as long as `self`.
        unsafe { lc::RSA_size(self.rsa.as_ptr()) as usize }
    }

    /// Decrypts data that was encrypted with OAEP and the same hash. `None` on failure.
    pub fn decrypt_oaep(&self, data: &[u8], hash: Hash) -> Option<Vec<u8>> {
        let mut plain = vec![0; self.size()];
        let mut length = plain.len();
        // SAFETY: all pointers are valid as long as `self` and the two buffers, whose lengths are passed along; AWS-LC
        // writes at most `length` bytes and stores the actual number in it.
        let succeeded = unsafe {
            let context = Operation(NonNull::new(lc::EVP_PKEY_CTX_new(self.key.as_ptr(), ptr::null_mut()))?);
            let context = context.0.as_ptr();
            lc::EVP_PKEY_decrypt_init(context) == 1
                && lc::EVP_PKEY_CTX_set_rsa_padding(context, lc::RSA_PKCS1_OAEP_PADDING) == 1
                && lc::EVP_PKEY_CTX_set_rsa_oaep_md(context, hash.digest()) == 1
                && lc::EVP_PKEY_CTX_set_rsa_mgf1_md(context, hash.digest()) == 1
                && lc::EVP_PKEY_decrypt(context, plain.as_mut_ptr(), &raw mut length, data.as_ptr(), data.len()) == 1
        };
        Self::result(succeeded, plain, length)
    }

    /// Signs a digest with PKCS#1 v1.5. `None` if its length is not the hash function's.
    pub fn sign_pkcs1(&self, digest: &[u8], hash: Hash) -> Option<Vec<u8>> {
        if digest.len() != hash.length() {
            return None;
        }
        let mut signature = vec![0; self.size()];
        let mut length: c_uint = 0;
        // SAFETY: pointers are valid as above; AWS-LC writes as many bytes as the modulus has.
        let succeeded = unsafe {
            let (digest, size) = (digest.as_ptr(), digest.len());
            lc::RSA_sign(hash.nid(), digest, size, signature.as_mut_ptr(), &raw mut length, self.rsa.as_ptr()) == 1
        };
        Self::result(succeeded, signature, length as usize)
    }

    /// Signs a padded block that is as long as the modulus. `None` if its length differs, or its number exceeds the
    /// modulus.
    pub fn sign_block(&self, block: &[u8]) -> Option<Vec<u8>> {
        let mut signature = vec![0; self.size()];
        let mut length = 0;
        // SAFETY: pointers are valid as above; AWS-LC writes at most `size` bytes.
        let succeeded = unsafe {
            let (rsa, out, size) = (self.rsa.as_ptr(), signature.as_mut_ptr(), signature.len());
            let (block, bytes) = (block.as_ptr(), block.len());
            lc::RSA_sign_raw(rsa, &raw mut length, out, size, block, bytes, lc::RSA_NO_PADDING) == 1
        };
        Self::result(succeeded, signature, length)
    }

    /// Returns the first `length` bytes if the operation succeeded.
    fn result(succeeded: bool, mut bytes: Vec<u8>, length: usize) -> Option<Vec<u8>> {
        if !succeeded {
            return failed();
        }
        bytes.truncate(length);
        Some(bytes)
    }
}

/// A public RSA key.
pub struct PublicKey(Key);

impl PublicKey {
    /// Parses a key in DER (SubjectPublicKeyInfo) or PKCS#1 form. `None` if it is invalid or its size is not accepted.
    pub fn from_der(der: &[u8]) -> Option<PublicKey> {
        if der.len() > MAX_INPUT {
            return None;
        }
        let mut cbs = reader(der);
        // SAFETY: the slice outlives the calls and is only read.
        let key = unsafe { lc::EVP_parse_public_key(&raw mut cbs) };
        // SAFETY: as above.
        let is_whole = unsafe { lc::CBS_len(&raw const cbs) } == 0;
        match Key::from_raw(key) {
            Some(key) => is_whole.then_some(PublicKey(key)),
            None => Self::from_pkcs1(der),
        }
    }

    fn from_pkcs1(der: &[u8]) -> Option<PublicKey> {
        // SAFETY: pointer and length are of one slice, which is only read. `rsa` has one owner at each moment: it moves
        // to `key` if `EVP_PKEY_assign_RSA` returns 1, and is freed here otherwise, as is `key`.
        let key = unsafe {
            let (rsa, key) = (lc::RSA_public_key_from_bytes(der.as_ptr(), der.len()), lc::EVP_PKEY_new());
            if rsa.is_null() || key.is_null() || lc::EVP_PKEY_assign_RSA(key, rsa) != 1 {
                lc::RSA_free(rsa);
                lc::EVP_PKEY_free(key);
                return failed();
            }
            key
        };
        Key::from_raw(key).map(PublicKey)
    }

    /// Returns the key in DER (SubjectPublicKeyInfo), in its canonical form.
    pub fn to_der(&self) -> Option<Vec<u8>> {
        self.0.spki()
    }

    /// Returns the modulus, big-endian and without leading zeros.
    pub fn modulus(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.size()];
        // SAFETY: the number is part of the key, and has as many bytes as the size of the key says.
        unsafe { lc::BN_bn2bin(lc::RSA_get0_n(self.0.rsa.as_ptr()), bytes.as_mut_ptr()) };
        bytes
    }

    /// Returns the size of the modulus in bytes.
    pub fn size(&self) -> usize {
        self.0.size()
    }

    /// Encrypts with OAEP. `None` if the data is too long for the key.
    pub fn encrypt_oaep(&self, data: &[u8], hash: Hash) -> Option<Vec<u8>> {
        let mut sealed = vec![0; self.size()];
        let mut length = sealed.len();
        // SAFETY: all pointers are valid as long as `self` and the two buffers, whose lengths are passed along; AWS-LC
        // writes at most `length` bytes and stores the actual number in it.
        let succeeded = unsafe {
            let context = Operation(NonNull::new(lc::EVP_PKEY_CTX_new(self.0.key.as_ptr(), ptr::null_mut()))?);
            let context = context.0.as_ptr();
            lc::EVP_PKEY_encrypt_init(context) == 1
                && lc::EVP_PKEY_CTX_set_rsa_padding(context, lc::RSA_PKCS1_OAEP_PADDING) == 1
                && lc::EVP_PKEY_CTX_set_rsa_oaep_md(context, hash.digest()) == 1
                && lc::EVP_PKEY_CTX_set_rsa_mgf1_md(context, hash.digest()) == 1
                && lc::EVP_PKEY_encrypt(context, sealed.as_mut_ptr(), &raw mut length, data.as_ptr(), data.len()) == 1
        };
        Key::result(succeeded, sealed, length)
    }

    /// Verifies the PKCS#1 v1.5 signature of a digest.
    pub fn verify_pkcs1(&self, digest: &[u8], signature: &[u8], hash: Hash) -> bool {
        if digest.len() != hash.length() {
            return false;
        }
        // SAFETY: pointers are valid as above, and are only read.
        let succeeded = unsafe {
            let (digest, size) = (digest.as_ptr(), digest.len());
            let (signature, length) = (signature.as_ptr(), signature.len());
            lc::RSA_verify(hash.nid(), digest, size, signature, length, self.0.rsa.as_ptr()) == 1
        };
        succeeded || failed::<()>().is_some()
    }

    /// Returns the padded block that was signed with [`Key::sign_block`]. `None` if the signature is not as long as the
    /// modulus, or its number exceeds the modulus.
    pub fn recover_block(&self, signature: &[u8]) -> Option<Vec<u8>> {
        let mut block = vec![0; self.size()];
        let mut length = 0;
        // SAFETY: pointers are valid as above; AWS-LC writes at most `size` bytes.
        let succeeded = unsafe {
            let (rsa, out, size) = (self.0.rsa.as_ptr(), block.as_mut_ptr(), block.len());
            let (signature, bytes) = (signature.as_ptr(), signature.len());
            lc::RSA_verify_raw(rsa, &raw mut length, out, size, signature, bytes, lc::RSA_NO_PADDING) == 1
        };
        Key::result(succeeded, block, length)
    }
}
