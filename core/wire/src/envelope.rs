//! The outer form of every request: in clear, or sealed for one session.

use std::str::FromStr;

use brine_crypt::{EncryptionAlgorithm, SignatureAlgorithm};
use brine_ids::MinionId;
use brine_value::msgpack::{self, Budget};
use brine_value::{Map, Value};
use bytes::Bytes;

use super::{WireError, optional, parsed, quoted, reason};

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
        /// What is sealed: a part of the message.
        load: Bytes,
        /// The protocol version of the sender.
        version: i64,
        /// How a reply that only the minion's key opens is to be sealed.
        encryption: EncryptionAlgorithm,
        /// How such a reply is to be signed.
        signature: SignatureAlgorithm,
    },
}

impl Envelope {
    /// Parses a request. Only the fields of the envelope are decoded; the load of one in clear may take so much memory.
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
                // Bytes that happen to be text arrive as text from older peers.
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

    /// Packs a request in clear.
    pub fn clear(load: Map) -> Vec<u8> {
        msgpack::pack_map(&brine_value::map! {"enc" => "clear", "load" => load, "version" => PROTOCOL_VERSION})
    }
}

/// The longest field of an envelope beside its load.
const LONGEST_FIELD: usize = 1024;

/// The fields of an envelope, not decoded; others are not looked at.
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
                // The last one of a name counts.
                self.small.retain(|(known, _)| *known != name);
                self.small.push((name, entry.value));
            }
            None => {}
        }
    }

    fn fields(&self) -> Result<Map, WireError> {
        let decoded = self.small.iter().map(|(field, packed)| {
            if packed.len() > LONGEST_FIELD {
                let reason = format!("expected at most {LONGEST_FIELD} bytes, got {}", packed.len());
                return Err(WireError::Field { field, reason });
            }
            Ok(((*field).into(), msgpack::unpack(packed)?))
        });
        decoded.collect()
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
        Some(text) => text.parse().map_err(|error: T::Err| WireError::Field { field: name, reason: reason(&error) }),
    }
}

/// Packs a sealed request of a minion.
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
