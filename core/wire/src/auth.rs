//! Authentication: how a minion shows its key and gets session keys.

use brine_crypt::{Cipher, EncryptionAlgorithm, SignatureAlgorithm};
use brine_ids::MinionId;
use brine_value::{Map, Value, map, msgpack};
use sha2::{Digest, Sha256};

use super::envelope::algorithm;
use super::{WireError, field, optional, parsed};

/// A minion asks to be let in.
#[derive(Debug, Clone, PartialEq)]
pub struct AuthRequest {
    /// Who it says to be.
    pub id: MinionId,
    /// Its public key, PEM.
    pub public_key: String,
    /// Random text that the reply must carry.
    pub nonce: String,
    /// How the reply's keys are to be sealed.
    pub encryption: EncryptionAlgorithm,
    /// How the reply is to be signed.
    pub signature: SignatureAlgorithm,
    /// Random bytes sealed to the master's key, if the minion knows it: the master shows by returning
    /// them that it holds that key.
    pub token: Option<Vec<u8>>,
    /// The session ciphers that the minion allows, best first; nothing says that it is Salt's alone.
    pub ciphers: Vec<Cipher>,
    /// Grains that may let the key be accepted.
    pub autosign_grains: Map,
}

impl AuthRequest {
    /// Reads the fields of an `_auth` command.
    pub fn from_map(map: &Map) -> Result<Self, WireError> {
        let offered: Vec<String> = optional(map, "ciphers")?.unwrap_or_default();
        // A cipher that is not known here is one that cannot be chosen.
        let ciphers: Vec<Cipher> = offered.iter().filter_map(|name| name.parse().ok()).collect();
        if ciphers.is_empty() && !offered.is_empty() {
            return Err(WireError::Field { field: "ciphers", reason: "none of them is known here".into() });
        }
        Ok(AuthRequest {
            id: parsed(map, "id")?,
            public_key: field(map, "pub")?,
            nonce: field(map, "nonce")?,
            encryption: algorithm(map, "enc_algo")?,
            signature: algorithm(map, "sig_algo")?,
            token: map.get("token").and_then(Value::as_bytes).map(<[u8]>::to_vec),
            ciphers,
            autosign_grains: optional(map, "autosign_grains")?.unwrap_or_default(),
        })
    }

    /// The fields of the `_auth` command.
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
        if !self.ciphers.is_empty() {
            map.insert("ciphers".into(), self.ciphers.iter().map(|cipher| cipher.name()).collect());
        }
        if !self.autosign_grains.is_empty() {
            map.insert("autosign_grains".into(), self.autosign_grains.clone().into());
        }
        map
    }
}

/// What ties a reply to its request: the signed reply carries both, so that what was changed on its way to the
/// master is seen by the minion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    nonce: String,
    digest: Vec<u8>,
}

impl Binding {
    /// The binding of a request with these fields.
    pub fn of(request: &Map) -> Result<Self, WireError> {
        Ok(Binding { nonce: field(request, "nonce")?, digest: Sha256::digest(msgpack::pack_map(request)).to_vec() })
    }
}

/// The field of the reply that holds the digest of the request. Salt's masters send none.
const DIGEST: &str = "request";
/// The field of a reply that says more of why the minion may not come in than Salt's `ret`.
const REASON: &str = "reason";
const NO_CIPHER: &str = "ciphers";

/// What the master says to a minion that may not come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The key waits to be accepted.
    Pending,
    /// The key is rejected, or is not the one that was accepted.
    Rejected,
    /// There are as many minions as there may be.
    Full,
    /// The master allows none of the ciphers that the minion allows. To Salt's minions it is a rejection.
    NoCipher,
}

/// The signed content of the reply to `_auth`.
#[derive(Debug, Clone, PartialEq)]
pub enum AuthReply {
    /// Not now, or not at all.
    Refused(Verdict),
    /// The minion is in.
    Accepted(Box<Accepted>),
}

/// What a minion learns that is let in.
#[derive(Debug, Clone, PartialEq)]
pub struct Accepted {
    /// The master's public key, PEM.
    pub public_key: String,
    /// The signature of this text by the key that vouches for masters, as Base64.
    pub public_key_signature: Option<String>,
    /// The port that publishes go out on.
    pub publish_port: u16,
    /// The key of the publish stream, sealed to the minion's key.
    pub publish_key: Vec<u8>,
    /// The minion's token, sealed to its key, if it sent one that the master could read.
    pub token: Option<Vec<u8>>,
    /// The minion's own session key, sealed to its key.
    pub session_key: Vec<u8>,
    /// The master's X9.31 signature of the publish key's digest.
    pub signature: Vec<u8>,
    /// The cipher of both keys; nothing for Salt's.
    pub cipher: Cipher,
}

impl AuthReply {
    /// The map that is packed and signed.
    pub fn to_map(&self, binding: &Binding) -> Map {
        let mut map = match self {
            AuthReply::Refused(Verdict::Pending) => map! {"ret" => true},
            AuthReply::Refused(Verdict::Rejected) => map! {"ret" => false},
            AuthReply::Refused(Verdict::Full) => map! {"ret" => "full"},
            AuthReply::Refused(Verdict::NoCipher) => map! {"ret" => false, REASON => NO_CIPHER},
            AuthReply::Accepted(accepted) => accepted.to_map(),
        };
        map.insert("nonce".into(), binding.nonce.as_str().into());
        map.insert(DIGEST.into(), binding.digest.clone().into());
        map
    }

    /// Whether a signed map holds the digest of its request, as those of Brine's masters do.
    pub fn is_bound(map: &Map) -> bool {
        map.contains_key(DIGEST)
    }

    /// Reads the signed map, which must answer the request of this binding.
    pub fn from_map(map: &Map, binding: &Binding) -> Result<Self, WireError> {
        let theirs: String = field(map, "nonce")?;
        if !brine_crypt::token::constant_time_eq(&theirs, &binding.nonce) {
            return Err(WireError::Field { field: "nonce", reason: "it is not the one that was sent".into() });
        }
        let digest = map.get(DIGEST);
        if digest.is_some_and(|digest| digest.as_bytes() != Some(&binding.digest)) {
            return Err(WireError::Altered);
        }
        match map.get("ret") {
            Some(Value::Bool(true)) => return Ok(AuthReply::Refused(Verdict::Pending)),
            Some(Value::Bool(false)) if map.get(REASON).and_then(Value::as_str) == Some(NO_CIPHER) => {
                return Ok(AuthReply::Refused(Verdict::NoCipher));
            }
            Some(Value::Bool(false)) => return Ok(AuthReply::Refused(Verdict::Rejected)),
            Some(Value::Str(word)) if word == "full" => return Ok(AuthReply::Refused(Verdict::Full)),
            Some(other) => {
                return Err(WireError::Field { field: "ret", reason: format!("the master says {other}") });
            }
            None => {}
        }
        let bytes = |name| map.get(name).and_then(Value::as_bytes).map(<[u8]>::to_vec).ok_or(WireError::Missing(name));
        let cipher = match map.get("cipher") {
            None => Cipher::default(),
            // Who knows ciphers knows digests.
            Some(_) if digest.is_none() => return Err(WireError::Missing(DIGEST)),
            Some(_) => parsed(map, "cipher")?,
        };
        Ok(AuthReply::Accepted(Box::new(Accepted {
            public_key: field(map, "pub_key")?,
            public_key_signature: match map.get("pub_sig") {
                // Some of Salt's masters send bytes.
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
