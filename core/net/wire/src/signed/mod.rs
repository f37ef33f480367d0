//! Signatures of minions' messages (`minion_sign_messages`): by the minion's own key, in the field `sig`, inside the
//! encryption.
//!
//! The signature covers the packed load without the fields that masters remove before verification. Salt's minions send
//! the load in an older encoding than they sign, without a type for bytes, so the received load is packed again for
//! verification.

use brine_crypt::{CryptError, PrivateKey, PublicKey, SignatureAlgorithm};
use brine_value::{Map, Value, msgpack};

const SIGNATURE: &str = "sig";

/// The fields that a signature does not cover.
const UNSIGNED: &[&str] = &["nonce", "tok", SIGNATURE];

/// An unverified signature, with the bytes that it covers.
#[derive(Debug)]
pub struct Signed {
    covered: Vec<u8>,
    /// The signature; `None` if the field does not contain bytes.
    signature: Option<Vec<u8>>,
}

/// Signs a load and adds the signature. The load must be complete otherwise. Takes milliseconds (RSA).
pub fn sign(load: &mut Map, key: &PrivateKey, algorithm: SignatureAlgorithm) -> Result<(), CryptError> {
    let signature = key.sign(&covered(load), algorithm)?;
    load.shift_remove(SIGNATURE);
    load.insert(SIGNATURE.into(), signature.into());
    Ok(())
}

impl Signed {
    /// Returns the signature of a load, if present.
    pub fn of(load: &Map) -> Option<Self> {
        let signature = load.get(SIGNATURE)?.as_bytes().map(<[u8]>::to_vec);
        Some(Signed { covered: covered(load), signature })
    }

    /// Returns the number of covered bytes.
    pub fn size(&self) -> usize {
        self.covered.len()
    }

    /// Verifies the signature of the load with this key.
    pub fn is_valid(&self, key: &PublicKey, algorithm: SignatureAlgorithm) -> bool {
        self.signature.as_ref().is_some_and(|signature| key.verify(&self.covered, signature, algorithm).is_ok())
    }
}

/// Returns the bytes that a signature of this load covers.
fn covered(load: &Map) -> Vec<u8> {
    let is_covered = |key: &Value| !key.as_str().is_some_and(|key| UNSIGNED.contains(&key));
    let mut packed = Vec::with_capacity(128);
    msgpack::pack_map_len(&mut packed, load.keys().filter(|key| is_covered(key)).count());
    for (key, value) in load.iter().filter(|(key, _)| is_covered(key)) {
        msgpack::pack_into(&mut packed, key);
        msgpack::pack_into(&mut packed, value);
    }
    packed
}

#[cfg(test)]
mod tests;
