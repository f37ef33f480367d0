//! Authentication: the `_auth` request of a minion and the master's reply.

use brine_crypt::{Cipher, EncryptionAlgorithm, SignatureAlgorithm};
use brine_ids::MinionId;
use brine_value::{Map, Value, map, msgpack};
use sha2::{Digest, Sha256};

use super::envelope::algorithm;
use super::{WireError, field, optional, parsed};

/// The field of [`AuthRequest::is_token_optional`], set by Brine's minions; Salt's masters ignore it.
const TOKEN_OPTIONAL: &str = "token_optional";

/// A minion's request for authentication.
#[derive(Debug, Clone, PartialEq)]
pub struct AuthRequest {
    /// The claimed minion id.
    pub id: MinionId,
    /// The minion's public key, in PEM.
    pub public_key: String,
    /// A nonce that the reply must repeat.
    pub nonce: String,
    /// The algorithm with which the master encrypts the keys in the reply.
    pub encryption: EncryptionAlgorithm,
    /// The algorithm with which the master signs the reply.
    pub signature: SignatureAlgorithm,
    /// Random bytes encrypted to the master's key, if the minion knows that key. The master proves that it holds the
    /// private key by returning them.
    pub token: Option<Vec<u8>>,
    /// Whether the master may ignore the token if it signs the digest of this request. The signature proves the same,
    /// and saves one of two private key operations.
    pub is_token_optional: bool,
    /// The session ciphers that the minion allows, in order of preference. If the field is missing, only Salt's.
    pub ciphers: Vec<Cipher>,
    /// Grains for automatic acceptance of the key (`autosign_grains`).
    pub autosign_grains: Map,
}

impl AuthRequest {
    /// Parses the fields of an `_auth` command.
    pub fn from_map(map: &Map) -> Result<Self, WireError> {
        let offered: Vec<String> = optional(map, "ciphers")?.unwrap_or_default();
        // Unknown ciphers are ignored, as they cannot be selected.
        let ciphers: Vec<Cipher> = offered.iter().filter_map(|name| name.parse().ok()).collect();
        if ciphers.is_empty() && !offered.is_empty() {
            return Err(WireError::Field { field: "ciphers", reason: "all of them are unknown".into() });
        }
        Ok(AuthRequest {
            id: parsed(map, "id")?,
            public_key: field(map, "pub")?,
            nonce: field(map, "nonce")?,
            encryption: algorithm(map, "enc_algo")?,
            signature: algorithm(map, "sig_algo")?,
            token: map.get("token").and_then(Value::as_bytes).map(<[u8]>::to_vec),
            is_token_optional: optional(map, TOKEN_OPTIONAL)?.unwrap_or_default(),
            ciphers,
            autosign_grains: optional(map, "autosign_grains")?.unwrap_or_default(),
        })
    }

    /// Returns the fields of the `_auth` command.
    pub fn to_map(&self) -> Map {
        let mut map = map! {
            "cmd" => "_auth",
            "id" => &self.id,
            "nonce" => &self.nonce,
            "pub" => &self.public_key,
            "enc_algo" => self.encryption.name(),
            "sig_algo" => self.signature.name(),
        };
        if let Some(token) = &self.token {
            map.insert("token".into(), token.clone().into());
        }
        if self.is_token_optional {
            map.insert(TOKEN_OPTIONAL.into(), true.into());
        }
        if !self.ciphers.is_empty() {
            map.insert("ciphers".into(), self.ciphers.iter().map(|cipher| cipher.name()).collect());
        }
        if !self.autosign_grains.is_empty() {
            map.insert("autosign_grains".into(), self.autosign_grains.clone().into());
        }
        map
    }
}

/// Binds a reply to its request: the signed reply carries the nonce and the request's digest, so that the minion
/// detects a request that was changed in transit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    nonce: String,
    digest: Vec<u8>,
}

impl Binding {
    /// Returns the binding of a request with these fields.
    pub fn of(request: &Map) -> Result<Self, WireError> {
        Ok(Binding { nonce: field(request, "nonce")?, digest: Sha256::digest(msgpack::pack_map(request)).to_vec() })
    }
}

/// The field of the reply with the digest of the request. Salt's masters do not send it.
const DIGEST: &str = "request";
/// The field of the reply with a more precise reason for the refusal than Salt's `ret`.
const REASON: &str = "reason";
const NO_CIPHER: &str = "ciphers";

/// The reason why the master refuses authentication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthRefusal {
    /// The key is pending acceptance.
    Pending,
    /// The key is rejected, or differs from the accepted one.
    Rejected,
    /// The maximum number of minions is reached (`max_minions`).
    Full,
    /// The minion offers no cipher that the master allows. Salt's minions receive it as a rejection.
    NoCipher,
}

/// The signed content of the reply to `_auth`.
#[derive(Debug, Clone, PartialEq)]
pub enum AuthReply {
    /// The authentication is refused.
    Refused(AuthRefusal),
    /// The minion is authenticated.
    Accepted(Box<Accepted>),
}

/// The reply to an authenticated minion.
#[derive(Debug, Clone, PartialEq)]
pub struct Accepted {
    /// The master's public key, in PEM.
    pub public_key: String,
    /// The signature of the public key by the master's signing key, as Base64.
    pub public_key_signature: Option<String>,
    /// The port of the publish stream.
    pub publish_port: u16,
    /// The key of the publish stream, encrypted to the minion's key.
    pub publish_key: Vec<u8>,
    /// The minion's token, encrypted to its key, if the request contained one that the master could decrypt.
    pub token: Option<Vec<u8>>,
    /// The minion's session key, encrypted to its key.
    pub session_key: Vec<u8>,
    /// The master's X9.31 signature of the publish key's digest.
    pub signature: Vec<u8>,
    /// The cipher of both keys. The reply names it unless it is Salt's.
    pub cipher: Cipher,
}

impl AuthReply {
    /// Returns the map that is packed and signed.
    pub fn to_map(&self, binding: &Binding) -> Map {
        let mut map = match self {
            AuthReply::Refused(AuthRefusal::Pending) => map! {"ret" => true},
            AuthReply::Refused(AuthRefusal::Rejected) => map! {"ret" => false},
            AuthReply::Refused(AuthRefusal::Full) => map! {"ret" => "full"},
            AuthReply::Refused(AuthRefusal::NoCipher) => map! {"ret" => false, REASON => NO_CIPHER},
            AuthReply::Accepted(accepted) => accepted.to_map(),
        };
        map.insert("nonce".into(), binding.nonce.as_str().into());
        map.insert(DIGEST.into(), binding.digest.clone().into());
        map
    }

    /// Whether a signed map contains the digest of its request, which Brine's masters send.
    pub fn is_bound(map: &Map) -> bool {
        map.contains_key(DIGEST)
    }

    /// Parses the signed map, which must match this binding.
    pub fn from_map(map: &Map, binding: &Binding) -> Result<Self, WireError> {
        let theirs: String = field(map, "nonce")?;
        if !brine_crypt::token::constant_time_eq(&theirs, &binding.nonce) {
            return Err(WireError::Field { field: "nonce", reason: "expected that of the request".into() });
        }
        let digest = map.get(DIGEST);
        if digest.is_some_and(|digest| digest.as_bytes() != Some(&binding.digest)) {
            return Err(WireError::Altered);
        }
        match map.get("ret") {
            Some(Value::Bool(true)) => return Ok(AuthReply::Refused(AuthRefusal::Pending)),
            Some(Value::Bool(false)) if map.get(REASON).and_then(Value::as_str) == Some(NO_CIPHER) => {
                return Ok(AuthReply::Refused(AuthRefusal::NoCipher));
            }
            Some(Value::Bool(false)) => return Ok(AuthReply::Refused(AuthRefusal::Rejected)),
            Some(Value::Str(word)) if word == "full" => return Ok(AuthReply::Refused(AuthRefusal::Full)),
            Some(other) => {
                return Err(WireError::Field { field: "ret", reason: format!("the master says {other}") });
            }
            None => {}
        }
        let bytes = |name| map.get(name).and_then(Value::as_bytes).map(<[u8]>::to_vec).ok_or(WireError::Missing(name));
        let cipher = match map.get("cipher") {
            None => Cipher::default(),
            // A peer that negotiates ciphers also sends the digest.
            Some(_) if digest.is_none() => return Err(WireError::Missing(DIGEST)),
            Some(_) => parsed(map, "cipher")?,
        };
        Ok(AuthReply::Accepted(Box::new(Accepted {
            public_key: field(map, "pub_key")?,
            public_key_signature: match map.get("pub_sig") {
                // Some versions of Salt's master send bytes.
                Some(Value::Bytes(bytes)) => Some(String::from_utf8_lossy(bytes).into_owned()),
                _ => optional(map, "pub_sig")?,
            },
            publish_port: field(map, "publish_port")?,
            publish_key: bytes("aes")?,
            token: map.get("token").and_then(Value::as_bytes).map(<[u8]>::to_vec),
            session_key: bytes("session")?,
            signature: bytes("sig")?,
            cipher,
        })))
    }
}

impl Accepted {
    fn to_map(&self) -> Map {
        let mut map = map! {
            "enc" => "pub",
            "pub_key" => &self.public_key,
            "publish_port" => self.publish_port,
            "aes" => self.publish_key.clone(),
            "session" => self.session_key.clone(),
            "sig" => self.signature.clone(),
        };
        if let Some(signature) = &self.public_key_signature {
            map.insert("pub_sig".into(), signature.into());
        }
        if let Some(token) = &self.token {
            map.insert("token".into(), token.clone().into());
        }
        if self.cipher != Cipher::default() {
            map.insert("cipher".into(), self.cipher.name().into());
        }
        map
    }
}
