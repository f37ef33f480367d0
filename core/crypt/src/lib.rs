//! How messages are sealed and who sealed them: RSA identities, their signatures, session ciphers.
//!
//! | module | owns |
//! |---|---|
//! | [`PrivateKey`], [`PublicKey`] | RSA keys as PEM files; encryption and signatures in Salt's algorithms |
//! | `x931` | the padding of Salt's tokens, which no library has |
//! | [`Session`] | one symmetric key with its cipher: Salt's AES-CBC with HMAC, or AES-256-GCM |
//! | [`token`] | random texts and their comparison |
//!
//! RSA's private operations take about a millisecond and key generation much longer: callers on the
//! asynchronous runtime hand them to a blocking thread.

mod algorithm;
mod crypticle;
mod gcm;
mod identity;
mod passphrase;
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

/// Why something could not be sealed, opened, signed or verified.
///
/// For texts from the network it does not matter to the peer which one it was: say no more to it
/// than that the message was bad.
#[derive(Debug, thiserror::Error)]
pub enum CryptError {
    /// The text was sealed with another key or for another purpose, or was changed on its way.
    #[error("the message cannot be opened with this key: it was sealed with another one, or changed on its way")]
    WrongKey,
    /// The signature is not that of this key over this data.
    #[error("the signature does not belong to this data and this key")]
    BadSignature,
    /// The padding within is not what it should be, although the key is right.
    #[error("the message is padded wrongly")]
    BadPadding,
    /// The reply answers another request than the one that was made.
    #[error("the message carries another nonce than the request did: it may be a replay")]
    WrongNonce,
    /// The bytes do not have the shape of what they should be.
    #[error("this is not {0}")]
    Malformed(&'static str),
    /// A key in PEM form cannot be used.
    #[error("this is not a usable RSA key: {0}")]
    BadKey(&'static str),
    /// No key of this length is made.
    #[error("an RSA key has 2048 to 8192 bits, not {0}: correct `keysize`")]
    BadKeySize(usize),
    /// The data does not fit into one RSA operation with this key.
    #[error("{0} bytes are too many or too few for one operation with this RSA key")]
    BadLength(usize),
    /// An algorithm or cipher that is not known here.
    #[error("the algorithm '{0}' is not known here")]
    UnknownAlgorithm(String),
    /// A key file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// What is in a key file is no key.
    #[error("{path}: {source}")]
    KeyFile {
        /// The file.
        path: String,
        /// What is wrong with its content.
        source: Box<CryptError>,
    },
}
