//! X.509: certificates, signing requests, revocation lists, and the files of private keys.
//!
//! | module | owns |
//! |---|---|
//! | `der` | DER: tags, lengths, values |
//! | `name`, `general_name` | distinguished names and general names |
//! | `extension`, `points` | extensions from arguments |
//! | `known` | the names of extensions and of the words in them |
//! | `show` | formatting of extensions in results |
//! | `certificate`, `request`, `revocation` | the three signed structures |
//! | `signature` | signature algorithms |
//! | `keys`, `pkcs8`, `pkcs12` | private keys, alone and in containers, with passwords |
//! | `pem` | PEM |
//!
//! This crate opens no files, and reads the time only in [`now`]. Names of fields and messages are Salt's.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]
#![warn(clippy::self_named_module_files)]

mod arguments;
mod builder;
mod certificate;
mod der;
mod extension;
mod general_name;
mod key_files;
mod keys;
mod known;
mod name;
pub mod pem;
mod pkcs12;
mod pkcs8;
mod points;
mod request;
mod revocation;
mod show;
mod signature;

pub use brine_rsa::{Digest, KeyKind};
pub use builder::Issuer;
pub use certificate::{Certificate, Encoding, Loaded, Plan, serial_number};
pub use der::{parse_time, show_time};
pub use extension::{Extension, changes};
pub use key_files::LoadedKey;
pub use keys::{PrivateKey, PublicKey};
pub use known::{AllowedIn, LONG_NAMES, Named, known, named};
pub use name::{Name, attribute_names};
pub use pkcs12::Container;
pub use request::{Request, RequestPlan};
pub use revocation::{Entry, RevocationList, RevocationPlan, entry_changes};
pub use signature::{DIGESTS, digest};

/// The errors of reading and building structures.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum X509Error {
    /// The password of a key or container is wrong.
    #[error("Bad decrypt - is the password correct?")]
    WrongPassword,
    /// A key is encrypted, and no password is given.
    #[error("Private key is encrypted. Please provide a password.")]
    MissingPassword,
    /// A key is not encrypted, but a password is given.
    #[error("Private key is unencrypted. Please remove the password.")]
    NeedlessPassword,
    /// The bytes cannot be parsed as this structure.
    #[error("{0}")]
    Unreadable(&'static str),
    /// An argument is invalid.
    #[error("{0}")]
    Invalid(String),
}

/// The result of reading or building a structure.
pub type Result<T> = std::result::Result<T, X509Error>;

/// Returns the current time in seconds since 1970.
pub fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

/// Formats bytes as colon-separated hexadecimal digits: `AB:CD`.
pub fn pretty_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":")
}

fn invalid(message: impl Into<String>) -> X509Error {
    X509Error::Invalid(message.into())
}

#[cfg(test)]
mod tests;
