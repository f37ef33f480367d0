//! Signatures of a minion's messages (`minion_sign_messages`), beside their encryption: by the minion's own key, in the
//! field `sig`.
//!
//! Signed is the packed load without the fields that masters remove before they verify. Verification takes the bytes as
//! they were received, so that no value is packed in another way than by its sender.

use super::WireError;
use crate::crypt::{CryptError, PrivateKey, PublicKey, SignatureAlgorithm};
use crate::value::msgpack::{self, UnpackError};
use crate::value::{Map, Value};

/// The field of the signature.
const SIGNATURE: &str = "sig";

/// The fields that a signature does not cover.
const UNSIGNED: &[&str] = &["nonce", "tok", SIGNATURE];

/// The verdict on a message's signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signature {
    /// There is none.
    Missing,
    /// The sender's key has signed the message.
    Valid,
    /// The signature is not that of this message by this key.
    Invalid,
}

/// Signs a load that is otherwise complete. RSA takes milliseconds.
pub fn sign(load: &mut Map, key: &PrivateKey, algorithm: SignatureAlgorithm) -> Result<(), CryptError> {
    load.shift_remove(SIGNATURE);
    let part = covered(&msgpack::pack_map(load)).map_err(|_| CryptError::Malformed("a message that can be signed"))?;
    load.insert(SIGNATURE.into(), key.sign(&part, algorithm)?.into());
    Ok(())
}

/// Verifies the signature of a packed load.
///
/// # Errors
/// The load is not a packed mapping.
pub fn verify(packed: &[u8], key: &PublicKey, algorithm: SignatureAlgorithm) -> Result<Signature, WireError> {
    let mut signature = None;
    msgpack::scan(packed, |entry| {
        if entry.key == Some(SIGNATURE) {
            signature = Some(entry.value);
        }
    })?;
    let Some(signature) = signature else { return Ok(Signature::Missing) };
    let valid = match msgpack::unpack(signature)? {
        Value::Bytes(signature) => key.verify(&covered(packed)?, &signature, algorithm).is_ok(),
        _ => false,
    };
    Ok(if valid { Signature::Valid } else { Signature::Invalid })
}

/// Returns the bytes that a signature covers: the packed load without some fields.
fn covered(packed: &[u8]) -> Result<Vec<u8>, UnpackError> {
    let is_covered = |entry: &msgpack::Entry<'_>| !entry.key.is_some_and(|key| UNSIGNED.contains(&key));
    let mut count = 0;
    let (_, header) = msgpack::scan(packed, |entry| count += u32::from(is_covered(&entry)))?;
    let mut part = Vec::with_capacity(packed.len());
    msgpack::pack_map_len(&mut part, count);
    let mut start = header;
    msgpack::scan(packed, |entry| {
        let end = entry.offset + entry.value.len();
        if is_covered(&entry) {
            part.extend_from_slice(&packed[start..end]);
        }
        start = end;
    })?;
    Ok(part)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::map;

    static KEY: LazyLock<PrivateKey> = LazyLock::new(|| PrivateKey::generate(2048).unwrap());
    const ALGORITHM: SignatureAlgorithm = SignatureAlgorithm::Pkcs1v15Sha1;

    fn check(load: &Map) -> Signature {
        verify(&msgpack::pack_map(load), &KEY.public(), ALGORITHM).unwrap()
    }

    #[test]
    fn a_signature_covers_all_fields_but_those_that_masters_remove() {
        let mut load = map! {"cmd" => "_return", "nonce" => "n", "id" => "web1", "tok" => vec![1u8], "return" => 1.5};
        assert_eq!(check(&load), Signature::Missing);
        sign(&mut load, &KEY, ALGORITHM).unwrap();
        assert_eq!(check(&load), Signature::Valid);
        for (field, signature) in [
            ("nonce", Signature::Valid),
            ("tok", Signature::Valid),
            ("cmd", Signature::Invalid),
            ("id", Signature::Invalid),
            ("return", Signature::Invalid),
            ("sig", Signature::Invalid),
        ] {
            let mut changed = load.clone();
            changed.insert(field.into(), "changed".into());
            assert_eq!(check(&changed), signature, "{field}");
        }
        let mut longer = load.clone();
        longer.insert("fun".into(), "test.ping".into());
        assert_eq!(check(&longer), Signature::Invalid);
        let other = PrivateKey::generate(2048).unwrap().public();
        assert_eq!(verify(&msgpack::pack_map(&load), &other, ALGORITHM).unwrap(), Signature::Invalid);
        sign(&mut longer, &KEY, ALGORITHM).unwrap();
        assert_eq!(check(&longer), Signature::Valid);
    }

    /// The bytes that Salt signs: the packed load without `nonce` and `tok`, in the order of its fields.
    #[test]
    fn the_covered_bytes_are_the_load_as_salts_minions_pack_it() {
        let whole =
            map! {"jid" => "1", "nonce" => "n", "return" => true, "tok" => vec![2u8; 300], "x" => vec![3u8; 300]};
        let mut part = whole.clone();
        part.shift_remove("nonce");
        part.shift_remove("tok");
        assert_eq!(covered(&msgpack::pack_map(&whole)).unwrap(), msgpack::pack_map(&part));
        let many: Map = (0..20).map(|n: i64| (n.to_string().into(), n.into())).collect();
        assert_eq!(covered(&msgpack::pack_map(&many)).unwrap(), msgpack::pack_map(&many));
        assert!(covered(b"\x81\xa1a").is_err());
        assert!(verify(b"\x01", &KEY.public(), ALGORITHM).is_err());
    }
}
