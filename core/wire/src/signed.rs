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
    msgpack::pack_map_len(&mut packed, load.keys().filter(|key| is_covered(key)).count() as u32);
    for (key, value) in load.iter().filter(|(key, _)| is_covered(key)) {
        msgpack::pack_into(&mut packed, key);
        msgpack::pack_into(&mut packed, value);
    }
    packed
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use brine_value::map;

    static KEY: LazyLock<PrivateKey> = LazyLock::new(|| PrivateKey::generate(2048).unwrap());
    const ALGORITHM: SignatureAlgorithm = SignatureAlgorithm::Pkcs1v15Sha1;

    fn is_valid(load: &Map) -> bool {
        Signed::of(load).unwrap().is_valid(&KEY.public(), ALGORITHM)
    }

    #[test]
    fn a_signature_covers_all_fields_but_those_that_masters_remove() {
        let mut load = map! {"cmd" => "_return", "nonce" => "n", "id" => "web1", "tok" => vec![1u8], "return" => 1.5};
        assert!(Signed::of(&load).is_none());
        sign(&mut load, &KEY, ALGORITHM).unwrap();
        assert!(is_valid(&load));
        for (field, valid) in
            [("nonce", true), ("tok", true), ("cmd", false), ("id", false), ("return", false), ("sig", false)]
        {
            let mut changed = load.clone();
            changed.insert(field.into(), "changed".into());
            assert_eq!(is_valid(&changed), valid, "{field}");
        }
        let mut longer = load.clone();
        longer.insert("fun".into(), "test.ping".into());
        assert!(!is_valid(&longer));
        let other = PrivateKey::generate(2048).unwrap().public();
        assert!(!Signed::of(&load).unwrap().is_valid(&other, ALGORITHM));
        sign(&mut longer, &KEY, ALGORITHM).unwrap();
        assert!(is_valid(&longer));
    }

    /// Salt signs the load without `nonce` and `tok`, in the order of its fields, and sends strings of 32 to 255 bytes
    /// in the older msgpack encoding.
    #[test]
    fn the_covered_bytes_do_not_depend_on_how_the_load_was_packed() {
        let text = "x".repeat(40);
        let whole = map! {"jid" => "1", "nonce" => "n", "return" => text.as_str(), "tok" => vec![2u8; 300]};
        let part = map! {"jid" => "1", "return" => text.as_str()};
        assert_eq!(covered(&whole), msgpack::pack_map(&part));
        let older = [&b"\x82\xa3jid\xa11\xa6return\xda\x00\x28"[..], text.as_bytes()].concat();
        assert_ne!(older, msgpack::pack_map(&part));
        assert_eq!(covered(&msgpack::unpack_map(&older).unwrap()), msgpack::pack_map(&part));
    }
}
