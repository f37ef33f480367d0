//! Private replies: encrypted to the minion's own key, and signed by the master. They carry the pillar, which Salt does
//! not encrypt with the session key, but with a key for each reply.

use brine_crypt::{Cipher, CryptError, EncryptionAlgorithm, PrivateKey, PublicKey, Session, SignatureAlgorithm, token};
use brine_value::{Map, Value, map, msgpack};

use super::{WireError, field};

/// The field of the encrypted part; private replies carry only pillar.
const PART: &str = "pillar";

/// The reason why a private reply is rejected.
#[derive(Debug, thiserror::Error)]
pub enum PrivateError {
    /// Decryption or verification failed.
    #[error(transparent)]
    Crypt(#[from] CryptError),
    /// A field is missing or invalid.
    #[error(transparent)]
    Wire(#[from] WireError),
}

/// Encrypts and packs a value for a minion. `nonce` is that of the request.
pub fn seal(
    value: &Value,
    nonce: &str,
    minion: &PublicKey,
    master: &PrivateKey,
    encryption: EncryptionAlgorithm,
    signature: SignatureAlgorithm,
) -> Result<Vec<u8>, CryptError> {
    let session = Session::generate(Cipher::AesCbcHmac);
    let key = minion.encrypt(session.key_text().as_bytes(), encryption)?;
    let data = msgpack::pack_map(&map! {"key" => key.clone(), PART => value.clone(), "nonce" => nonce});
    let sig = master.sign(&data, signature)?;
    let sealed = session.seal(&msgpack::pack_map(&map! {"data" => data, "sig" => sig}), None, &[]);
    Ok(msgpack::pack_map(&map! {"key" => key, PART => sealed}))
}

/// Whether a reply is private.
pub fn is_private(answer: &Map) -> bool {
    ["key", PART].iter().all(|name| answer.get(*name).is_some_and(|part| part.as_bytes().is_some()))
}

/// Decrypts a private reply to the request with this nonce.
pub fn open(
    answer: &Map,
    nonce: &str,
    minion: &PrivateKey,
    master: &PublicKey,
    encryption: EncryptionAlgorithm,
    signature: SignatureAlgorithm,
) -> Result<Value, PrivateError> {
    let text = String::from_utf8(minion.decrypt(bytes(answer, "key")?, encryption)?);
    let session = Session::from_key_text(&text.map_err(|_| CryptError::Malformed("the key of a private reply"))?)?;
    let signed = msgpack::unpack_map(&session.open(bytes(answer, PART)?, None, &[])?).map_err(WireError::from)?;
    let data = bytes(&signed, "data")?;
    master.verify(data, bytes(&signed, "sig")?, signature)?;
    let mut inner = msgpack::unpack_map(data).map_err(WireError::from)?;
    // The signature covers the key and the nonce, so that a replayed reply is rejected.
    if bytes(&inner, "key")? != bytes(answer, "key")? {
        return Err(CryptError::WrongKey.into());
    }
    if !token::constant_time_eq(field::<String>(&inner, "nonce")?, nonce) {
        return Err(CryptError::WrongNonce.into());
    }
    Ok(inner.swap_remove(PART).ok_or(WireError::Missing(PART))?)
}

fn bytes<'a>(map: &'a Map, name: &'static str) -> Result<&'a [u8], WireError> {
    map.get(name).and_then(Value::as_bytes).ok_or(WireError::Missing(name))
}

#[cfg(test)]
mod tests;
