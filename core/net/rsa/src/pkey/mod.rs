//! The keys of certificates: RSA, elliptic curves and Ed25519, with every hash function that certificates are signed
//! with.

use std::ffi::{c_int, c_long};
use std::ptr::{self, NonNull};
use std::slice;

use aws_lc_sys as lc;

/// The maximum size of parsed input: far above any key or container.
pub(crate) const MAX_INPUT: usize = 1 << 20;

/// The algorithm of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// RSA.
    Rsa,
    /// ECDSA on one of NIST's curves.
    Ec,
    /// Ed25519.
    Ed25519,
}

/// A NIST elliptic curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curve {
    /// secp256r1.
    P256,
    /// secp384r1.
    P384,
    /// secp521r1.
    P521,
}

impl Curve {
    fn nid(self) -> c_int {
        match self {
            Curve::P256 => lc::NID_X9_62_prime256v1,
            Curve::P384 => lc::NID_secp384r1,
            Curve::P521 => lc::NID_secp521r1,
        }
    }
}

/// A hash function of signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Digest {
    Md5,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
    Sha512_224,
    Sha512_256,
    Sha3_224,
    Sha3_256,
    Sha3_384,
    Sha3_512,
}

impl Digest {
    pub(crate) fn evp(self) -> *const lc::EVP_MD {
        // SAFETY: all take no arguments and return a pointer to a constant.
        unsafe {
            match self {
                Digest::Md5 => lc::EVP_md5(),
                Digest::Sha1 => lc::EVP_sha1(),
                Digest::Sha224 => lc::EVP_sha224(),
                Digest::Sha256 => lc::EVP_sha256(),
                Digest::Sha384 => lc::EVP_sha384(),
                Digest::Sha512 => lc::EVP_sha512(),
                Digest::Sha512_224 => lc::EVP_sha512_224(),
                Digest::Sha512_256 => lc::EVP_sha512_256(),
                Digest::Sha3_224 => lc::EVP_sha3_224(),
                Digest::Sha3_256 => lc::EVP_sha3_256(),
                Digest::Sha3_384 => lc::EVP_sha3_384(),
                Digest::Sha3_512 => lc::EVP_sha3_512(),
            }
        }
    }

    /// Returns the digest of data.
    pub fn of(self, data: &[u8]) -> Vec<u8> {
        let mut out = vec![0; 64];
        let mut length = 0;
        // SAFETY: the input is only read, its length is passed along, and no digest is longer than 64 bytes.
        let status = unsafe {
            let (data, size) = (data.as_ptr().cast(), data.len());
            lc::EVP_Digest(data, size, out.as_mut_ptr(), &raw mut length, self.evp(), ptr::null_mut())
        };
        out.truncate(if status == 1 { length as usize } else { 0 });
        out
    }
}

/// The padding of an RSA signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// PKCS#1 v1.5, or the only form of signatures of ECDSA and Ed25519.
    Default,
    /// PSS, with a salt of any length.
    Pss,
}

/// Owns an `EVP_PKEY`.
struct Pkey(NonNull<lc::EVP_PKEY>);

impl Drop for Pkey {
    fn drop(&mut self) {
        // SAFETY: the pointer is owned and freed here alone.
        unsafe { lc::EVP_PKEY_free(self.0.as_ptr()) }
    }
}

// SAFETY: nothing changes a key after it was created, and AWS-LC allows concurrent use of such keys.
unsafe impl Send for Pkey {}
// SAFETY: as above.
unsafe impl Sync for Pkey {}

impl Pkey {
    /// Takes ownership of a pointer from AWS-LC. `None` if it is null, or its algorithm is not supported.
    fn from_raw(key: *mut lc::EVP_PKEY) -> Option<Pkey> {
        let key = NonNull::new(key).map(Pkey);
        key.filter(|key| key.kind().is_some()).or_else(failed)
    }

    fn kind(&self) -> Option<KeyKind> {
        // SAFETY: the pointer is valid as long as `self`.
        match unsafe { lc::EVP_PKEY_id(self.0.as_ptr()) } {
            lc::EVP_PKEY_RSA => Some(KeyKind::Rsa),
            lc::EVP_PKEY_EC => Some(KeyKind::Ec),
            lc::EVP_PKEY_ED25519 => Some(KeyKind::Ed25519),
            _ => None,
        }
    }

    fn bits(&self) -> usize {
        // SAFETY: as above.
        usize::try_from(unsafe { lc::EVP_PKEY_bits(self.0.as_ptr()) }).unwrap_or(0)
    }

    fn spki(&self) -> Option<Vec<u8>> {
        // SAFETY: the pointer is valid; it is only read.
        bytes_of(|out| unsafe { lc::EVP_marshal_public_key(out, self.0.as_ptr()) })
    }
}

/// Returns `None` after clearing AWS-LC's error queue of this thread.
pub(crate) fn failed<T>() -> Option<T> {
    // SAFETY: it takes no arguments and touches only thread-local data.
    unsafe { lc::ERR_clear_error() };
    None
}

/// Collects what a function writes into a growing buffer. `None` if it returns 0.
pub(crate) fn bytes_of(write: impl FnOnce(*mut lc::CBB) -> c_int) -> Option<Vec<u8>> {
    // SAFETY: zero is the initial state of a CBB. The buffer belongs to `cbb` until `CBB_finish` hands it over, and is
    // freed once in either case.
    unsafe {
        let mut cbb: lc::CBB = std::mem::zeroed();
        if lc::CBB_init(&raw mut cbb, 256) != 1 {
            return failed();
        }
        let (mut data, mut length) = (ptr::null_mut(), 0);
        if write(&raw mut cbb) != 1 || lc::CBB_finish(&raw mut cbb, &raw mut data, &raw mut length) != 1 {
            lc::CBB_cleanup(&raw mut cbb);
            return failed();
        }
        let bytes = if data.is_null() { Vec::new() } else { slice::from_raw_parts(data, length).to_vec() };
        lc::OPENSSL_free(data.cast());
        Some(bytes)
    }
}

/// Returns a reader of bytes.
pub(crate) fn reader(bytes: &[u8]) -> lc::CBS {
    // SAFETY: pointer and length are of one slice; the callers keep it until they have read.
    unsafe {
        let mut cbs: lc::CBS = std::mem::zeroed();
        lc::CBS_init(&raw mut cbs, bytes.as_ptr(), bytes.len());
        cbs
    }
}

/// A private key.
pub struct PrivateKey(Pkey);

impl PrivateKey {
    /// Generates an RSA key with the exponent 65537. `None` if AWS-LC does not support this size.
    pub fn generate_rsa(bits: u16) -> Option<PrivateKey> {
        Self::from_der(&crate::Key::generate(bits)?.to_der()?)
    }

    /// Generates a key on an elliptic curve.
    pub fn generate_ec(curve: Curve) -> Option<PrivateKey> {
        Self::generate(lc::EVP_PKEY_EC, |context| {
            // SAFETY: the caller passes a valid context.
            unsafe { lc::EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, curve.nid()) }
        })
    }

    /// Generates an Ed25519 key.
    pub fn generate_ed25519() -> Option<PrivateKey> {
        Self::generate(lc::EVP_PKEY_ED25519, |_| 1)
    }

    fn generate(id: c_int, set: impl FnOnce(*mut lc::EVP_PKEY_CTX) -> c_int) -> Option<PrivateKey> {
        let mut key = ptr::null_mut();
        // SAFETY: the context is checked for null and freed by `Operation`; `key` is owned by the result.
        unsafe {
            let context = crate::Operation(NonNull::new(lc::EVP_PKEY_CTX_new_id(id, ptr::null_mut()))?);
            let context = context.0.as_ptr();
            let succeeded = lc::EVP_PKEY_keygen_init(context) == 1
                && set(context) == 1
                && lc::EVP_PKEY_keygen(context, &raw mut key) == 1;
            if !succeeded {
                return failed();
            }
        }
        Pkey::from_raw(key).map(PrivateKey)
    }

    /// Parses an unencrypted key in PKCS#8, PKCS#1 or SEC 1 form. `None` if it is invalid or of another algorithm.
    pub fn from_der(der: &[u8]) -> Option<PrivateKey> {
        let length = c_long::try_from(der.len()).ok().filter(|_| der.len() <= MAX_INPUT)?;
        let mut at = der.as_ptr();
        // SAFETY: pointer and length are of one slice, which is only read.
        let key = unsafe { lc::d2i_AutoPrivateKey(ptr::null_mut(), &raw mut at, length) };
        Pkey::from_raw(key).map(PrivateKey)
    }

    /// Returns the key in PKCS#8 form.
    pub fn to_der(&self) -> Option<Vec<u8>> {
        // SAFETY: the pointer is valid; it is only read.
        bytes_of(|out| unsafe { lc::EVP_marshal_private_key(out, self.0.0.as_ptr()) })
    }

    /// Returns the algorithm.
    pub fn kind(&self) -> KeyKind {
        self.0.kind().unwrap_or(KeyKind::Rsa)
    }

    /// Returns the length of the modulus or of the curve's order in bits.
    pub fn bits(&self) -> usize {
        self.0.bits()
    }

    /// Returns the public key in DER (SubjectPublicKeyInfo).
    pub fn public_der(&self) -> Option<Vec<u8>> {
        self.0.spki()
    }

    /// Signs a message; `digest` is `None` for Ed25519. `None` if the key cannot sign with this hash function.
    pub fn sign(&self, message: &[u8], digest: Option<Digest>) -> Option<Vec<u8>> {
        self.sign_padded(message, digest, Padding::Default)
    }

    /// As [`PrivateKey::sign`]; an RSA signature with the padding PSS has the longest salt that the key permits.
    pub fn sign_padded(&self, message: &[u8], digest: Option<Digest>, padding: Padding) -> Option<Vec<u8>> {
        let mut signature = vec![0; 1024];
        let mut length = signature.len();
        // SAFETY: the context is freed here; the context of the key belongs to it; all other pointers are valid
        // throughout, and AWS-LC writes at most `length` bytes.
        let succeeded = unsafe {
            let context = NonNull::new(lc::EVP_MD_CTX_new())?;
            let hash = digest.map_or(ptr::null(), Digest::evp);
            let (none, key) = (ptr::null_mut(), self.0.0.as_ptr());
            let mut options = ptr::null_mut();
            let succeeded = lc::EVP_DigestSignInit(context.as_ptr(), &raw mut options, hash, none, key) == 1
                && (padding == Padding::Default
                    || (lc::EVP_PKEY_CTX_set_rsa_padding(options, lc::RSA_PKCS1_PSS_PADDING) == 1
                        && lc::EVP_PKEY_CTX_set_rsa_pss_saltlen(options, lc::RSA_PSS_SALTLEN_AUTO) == 1))
                && {
                    let (out, message, size) = (signature.as_mut_ptr(), message.as_ptr(), message.len());
                    lc::EVP_DigestSign(context.as_ptr(), out, &raw mut length, message, size) == 1
                };
            lc::EVP_MD_CTX_free(context.as_ptr());
            succeeded
        };
        if !succeeded {
            return failed();
        }
        signature.truncate(length);
        Some(signature)
    }
}

/// A public key.
pub struct VerifyingKey(Pkey);

impl VerifyingKey {
    /// Parses a key in DER (SubjectPublicKeyInfo). `None` if it is invalid or of another algorithm.
    pub fn from_der(der: &[u8]) -> Option<VerifyingKey> {
        if der.len() > MAX_INPUT {
            return None;
        }
        let mut cbs = reader(der);
        // SAFETY: the slice outlives the call and is only read.
        let key = unsafe { lc::EVP_parse_public_key(&raw mut cbs) };
        Pkey::from_raw(key).map(VerifyingKey)
    }

    /// Returns the key in DER, in its canonical form.
    pub fn to_der(&self) -> Option<Vec<u8>> {
        self.0.spki()
    }

    /// Returns the algorithm.
    pub fn kind(&self) -> KeyKind {
        self.0.kind().unwrap_or(KeyKind::Rsa)
    }

    /// Returns the length of the modulus or of the curve's order in bits.
    pub fn bits(&self) -> usize {
        self.0.bits()
    }

    /// Verifies the signature of a message.
    pub fn verify(&self, message: &[u8], signature: &[u8], digest: Option<Digest>, padding: Padding) -> bool {
        // SAFETY: the context is freed here; the context of the key belongs to it; all other pointers are valid
        // throughout and only read.
        let succeeded = unsafe {
            let Some(context) = NonNull::new(lc::EVP_MD_CTX_new()) else { return false };
            let hash = digest.map_or(ptr::null(), Digest::evp);
            let (none, key) = (ptr::null_mut(), self.0.0.as_ptr());
            let mut options = ptr::null_mut();
            let succeeded = lc::EVP_DigestVerifyInit(context.as_ptr(), &raw mut options, hash, none, key) == 1
                && (padding == Padding::Default
                    || (lc::EVP_PKEY_CTX_set_rsa_padding(options, lc::RSA_PKCS1_PSS_PADDING) == 1
                        && lc::EVP_PKEY_CTX_set_rsa_pss_saltlen(options, lc::RSA_PSS_SALTLEN_AUTO) == 1))
                && {
                    let (signature, length) = (signature.as_ptr(), signature.len());
                    let (message, size) = (message.as_ptr(), message.len());
                    lc::EVP_DigestVerify(context.as_ptr(), signature, length, message, size) == 1
                };
            lc::EVP_MD_CTX_free(context.as_ptr());
            succeeded
        };
        succeeded || failed::<()>().is_some()
    }
}

#[cfg(test)]
mod tests;
