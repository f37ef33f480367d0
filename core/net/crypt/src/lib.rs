//! Encryption and authentication: RSA identities, their signatures, session ciphers.
//!
//! | module | owns |
//! |---|---|
//! | [`PrivateKey`], [`PublicKey`] | RSA keys as PEM files; encryption and signatures in Salt's algorithms |
//! | `x931` | the padding of Salt's tokens, which no library implements |
//! | [`Session`] | one symmetric key with its cipher: Salt's AES-CBC with HMAC, or AES-256-GCM |
//! | [`token`] | random strings and their comparison in constant time |
//!
//! RSA's private operations take about a millisecond and key generation much longer: asynchronous callers use a
//! blocking thread.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

mod algorithm;
mod crypticle;
mod gcm;
mod identity;
mod passphrase;
mod pem;
mod replay;
mod rsa;
mod session;
pub mod token;
mod x931;

use brine_system::files::FileError;

pub use algorithm::{Cipher, EncryptionAlgorithm, SignatureAlgorithm};
pub use replay::ReplayWindow;
pub use rsa::{PrivateKey, PublicKey};
pub use session::Session;

/// The errors of encryption, decryption, signing and verification.
///
/// Must not be reported to the peer in detail: the peer learns only that the message was invalid.
#[derive(Debug, thiserror::Error)]
pub enum CryptError {
    /// Authentication failed: the message was sealed with another key or for another purpose, or modified.
    #[error("decryption failed: the message was encrypted with another key, or modified in transit")]
    WrongKey,
    /// The signature does not match the key and the data.
    #[error("the signature is invalid for this data and this key")]
    BadSignature,
    /// The padding is invalid, although the key is right.
    #[error("the message's padding is invalid")]
    BadPadding,
    /// The nonce is not the request's.
    #[error("the message's nonce is not that of the request: it may be a replay")]
    WrongNonce,
    /// The bytes do not have the expected format.
    #[error("invalid data: expected {0}")]
    Malformed(&'static str),
    /// A PEM file holds no usable key.
    #[error("this is not a usable RSA key: {0}")]
    BadKey(&'static str),
    /// The key size is out of range.
    #[error("`keysize` {0} is invalid: expected 2048 to 8192 bits")]
    BadKeySize(usize),
    /// The data does not fit into one RSA operation with this key.
    #[error("data of {0} bytes does not fit into one operation with this RSA key")]
    BadLength(usize),
    /// The algorithm or cipher is unknown.
    #[error("unknown algorithm '{0}'")]
    UnknownAlgorithm(String),
    /// A key file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A key file is invalid.
    #[error("{path}: {source}")]
    KeyFile {
        /// The file.
        path: String,
        /// The error in its content.
        source: Box<CryptError>,
    },
}
