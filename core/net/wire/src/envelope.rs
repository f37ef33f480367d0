//! The envelope of every request, unencrypted or encrypted for a session.

use std::str::FromStr;

use brine_crypt::{EncryptionAlgorithm, SignatureAlgorithm};
use brine_ids::MinionId;
use brine_value::msgpack::{self, Budget};
use brine_value::{Map, Value};
use bytes::Bytes;

use super::{WireError, optional, parsed, quoted, reason};

/// The protocol version of this crate.
pub const PROTOCOL_VERSION: i64 = 3;

/// A request as received from the network.
#[derive(Debug, Clone, PartialEq)]
pub enum Envelope {
    /// Unencrypted: authentication, and clients that present a key.
    Clear {
        /// The command with its fields.
        load: Map,
        /// The protocol version of the sender.
        version: i64,
    },
    /// Encrypted with a minion's session key.
    Sealed {
        /// The claimed minion id.
        id: MinionId,
        /// The encrypted part of the message.
        load: Bytes,
        /// The protocol version of the sender.
        version: i64,
        /// The algorithm with which private replies (to the minion's key) are encrypted.
        encryption: EncryptionAlgorithm,
        /// The algorithm with which private replies are signed.
        signature: SignatureAlgorithm,
    },
}

impl Envelope {
    /// Parses a request. Decodes only the fields of the envelope; an unencrypted load is decoded within this budget.
    pub fn unpack(bytes: &Bytes, budget: Budget) -> Result<Self, WireError> {
        let mut packed = Packed::default();
        msgpack::scan(bytes, |entry| packed.take(entry))?;
        let fields = packed.fields()?;
        let version = optional(&fields, "version")?.unwrap_or(0);
        let load = packed.load.ok_or(WireError::Missing("load"));
        match fields.get("enc") {
            Some(Value::Str(enc)) if enc == "clear" => {
                let load = msgpack::unpack_within(load?, budget)?;
                let Value::Map(load) = load else {
                    return Err(WireError::Field { field: "load", reason: "expected a mapping".into() });
                };
                Ok(Envelope::Clear { load, version })
            }
            Some(Value::Str(enc)) if enc == "aes" => {
                let id = parsed(&fields, "id")?;
                let encryption = algorithm(&fields, "enc_algo")?;
                let signature = algorithm(&fields, "sig_algo")?;
                // Older peers send bytes that are valid UTF-8 as a string.
                let load = msgpack::content(load?)
                    .ok_or(WireError::Field { field: "load", reason: "expected bytes".into() })?;
                Ok(Envelope::Sealed { id, load: bytes.slice_ref(load), version, encryption, signature })
            }
            Some(other) => {
                let reason = format!("expected clear or aes, got {}", quoted(&other.to_string()));
                Err(WireError::Field { field: "enc", reason })
            }
            None => Err(WireError::Missing("enc")),
        }
    }

    /// Packs an unencrypted request.
    pub fn clear(load: Map) -> Vec<u8> {
        msgpack::pack_map(&brine_value::map! {"enc" => "clear", "load" => load, "version" => PROTOCOL_VERSION})
    }
}

/// The maximum length of an envelope's field other than the load.
const MAX_FIELD: usize = 1024;

/// The fields of an envelope, still packed; unknown fields are ignored.
#[derive(Default)]
struct Packed<'a> {
    small: Vec<(&'static str, &'a [u8])>,
    load: Option<&'a [u8]>,
}

impl<'a> Packed<'a> {
    fn take(&mut self, entry: msgpack::Entry<'a>) {
        const SMALL: [&str; 5] = ["version", "enc", "id", "enc_algo", "sig_algo"];
        match entry.key {
            Some("load") => self.load = Some(entry.value),
            Some(key) => {
                let Some(name) = SMALL.into_iter().find(|name| *name == key) else { return };
                // The last field of a name takes precedence.
                self.small.retain(|(other, _)| *other != name);
                self.small.push((name, entry.value));
            }
            None => {}
        }
    }

    fn fields(&self) -> Result<Map, WireError> {
        let decoded = self.small.iter().map(|(field, packed)| {
            if packed.len() > MAX_FIELD {
                let reason = format!("expected at most {MAX_FIELD} bytes, got {}", packed.len());
                return Err(WireError::Field { field, reason });
            }
            Ok(((*field).into(), msgpack::unpack(packed)?))
        });
        decoded.collect()
    }
}

/// Parses the algorithm in this field; the default if the field is missing.
pub(super) fn algorithm<T>(map: &Map, name: &'static str) -> Result<T, WireError>
where
    T: FromStr + Default,
    T::Err: std::fmt::Display,
{
    match optional::<String>(map, name)? {
        None => Ok(T::default()),
        Some(text) => text.parse().map_err(|error: T::Err| WireError::Field { field: name, reason: reason(&error) }),
    }
}

/// Packs an encrypted request of a minion.
pub fn encrypted(id: &MinionId, load: Vec<u8>, enc_algo: &str, sig_algo: &str) -> Vec<u8> {
    msgpack::pack_map(&brine_value::map! {
        "enc" => "aes",
        "load" => load,
        "version" => PROTOCOL_VERSION,
        "id" => id,
        "enc_algo" => enc_algo,
        "sig_algo" => sig_algo,
    })
}
