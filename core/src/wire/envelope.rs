//! The outer form of every request: in clear, or sealed for one session.

use std::str::FromStr;

use super::{WireError, field, optional, parsed};
use crate::crypt::{EncryptionAlgorithm, SignatureAlgorithm};
use crate::minion_id::MinionId;
use crate::value::{Map, Value, msgpack};

/// The protocol version that is spoken.
pub const PROTOCOL_VERSION: i64 = 3;

/// A request as it comes from the network.
#[derive(Debug, Clone, PartialEq)]
pub enum Envelope {
    /// Readable by everybody: authentication, and clients that show a key of their own.
    Clear {
        /// The command with its fields.
        load: Map,
        /// The protocol version of the sender.
        version: i64,
    },
    /// Sealed with the session key of a minion.
    Sealed {
        /// Who says to have sealed it.
        id: MinionId,
        /// What is sealed.
        load: Vec<u8>,
        /// The protocol version of the sender.
        version: i64,
        /// How a reply that only the minion's key opens is to be sealed.
        encryption: EncryptionAlgorithm,
        /// How such a reply is to be signed.
        signature: SignatureAlgorithm,
    },
}

impl Envelope {
    /// Reads a request.
    pub fn unpack(bytes: &[u8]) -> Result<Self, WireError> {
        let mut map = msgpack::unpack_map(bytes)?;
        let version = optional(&map, "version")?.unwrap_or(0);
        let enc: String = field(&map, "enc")?;
        match enc.as_str() {
            "clear" => match map.swap_remove("load") {
                Some(Value::Map(load)) => Ok(Envelope::Clear { load, version }),
                Some(_) => Err(WireError::Field { field: "load", reason: "expected a mapping".into() }),
                None => Err(WireError::Missing("load")),
            },
            "aes" => {
                let id = parsed(&map, "id")?;
                let encryption = algorithm(&map, "enc_algo")?;
                let signature = algorithm(&map, "sig_algo")?;
                let sealed = |load| Ok(Envelope::Sealed { id, load, version, encryption, signature });
                match map.swap_remove("load") {
                    Some(Value::Bytes(load)) => sealed(load),
                    // Bytes that happen to be text arrive as text from older peers.
                    Some(Value::Str(load)) => sealed(load.into_bytes()),
                    Some(_) => Err(WireError::Field { field: "load", reason: "expected bytes".into() }),
                    None => Err(WireError::Missing("load")),
                }
            }
            other => Err(WireError::Field { field: "enc", reason: format!("'{other}' is neither clear nor aes") }),
        }
    }

    /// Packs a request in clear.
    pub fn clear(load: Map) -> Vec<u8> {
        msgpack::pack_map(&crate::map! {"enc" => "clear", "load" => load, "version" => PROTOCOL_VERSION})
    }
}

/// The algorithm of this name in the message; the default if it names none.
pub(super) fn algorithm<T>(map: &Map, name: &'static str) -> Result<T, WireError>
where
    T: FromStr + Default,
    T::Err: std::fmt::Display,
{
    match optional::<String>(map, name)? {
        None => Ok(T::default()),
        Some(text) => text.parse().map_err(|error: T::Err| WireError::Field { field: name, reason: error.to_string() }),
    }
}

/// Packs a sealed request of a minion.
pub fn encrypted(id: &MinionId, load: Vec<u8>, enc_algo: &str, sig_algo: &str) -> Vec<u8> {
    msgpack::pack_map(&crate::map! {
        "enc" => "aes",
        "load" => load,
        "version" => PROTOCOL_VERSION,
        "id" => id,
        "enc_algo" => enc_algo,
        "sig_algo" => sig_algo,
    })
}
