use super::*;
use crate::rsa::tests::made_by_salt;

const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc=";
const NONCE: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn messages_of_salt_are_decrypted() {
    let key = Crypticle::from_key_text(KEY).unwrap();
    assert_eq!(key.open(&made_by_salt("crypticle"), None).unwrap(), b"\x81\xa3fun\xa9test.ping");
    let reply = key.open(&made_by_salt("crypticle_nonce"), Some(NONCE)).unwrap();
    assert_eq!(reply, [&b"\x99"[..], &b"\xa1x".repeat(9)].concat());
}

#[test]
fn a_reply_to_another_request_is_refused() {
    let key = Crypticle::from_key_text(KEY).unwrap();
    let other = NONCE.replace('0', "1");
    for (text, nonce) in [("crypticle_nonce", &other[..]), ("crypticle", NONCE), ("crypticle_nonce", "")] {
        assert!(matches!(key.open(&made_by_salt(text), Some(nonce)), Err(CryptError::WrongNonce)), "{text}");
    }
}

#[test]
fn the_ciphertext_has_salts_layout() {
    let key = Crypticle::from_key_text(KEY).unwrap();
    for (length, expected) in [(0, 16), (7, 16), (8, 32), (23, 32), (24, 48)] {
        assert_eq!(key.seal(&vec![1; length], None).len(), 16 + expected + 32, "{length}");
    }
    assert_eq!(key.key_text(), KEY);
}

#[test]
fn an_authenticated_message_with_invalid_content_is_refused() {
    let key = Crypticle::from_key_text(KEY).unwrap();
    let sign = |sealed: &[u8]| [sealed, &key.mac.clone().chain_update(sealed).finalize().into_bytes()[..]].concat();
    let unmarked = cbc::Encryptor::inner_iv_init(key.aes.clone(), &[0; 16].into())
        .encrypt_padded_vec::<Pkcs7>(b"no mark in front");
    assert!(matches!(key.open(&sign(&[0; 3]), None), Err(CryptError::Malformed(_))));
    assert!(matches!(key.open(&sign(&[0; 16]), None), Err(CryptError::BadPadding)));
    assert!(matches!(key.open(&sign(&[0; 33]), None), Err(CryptError::BadPadding)));
    assert!(matches!(key.open(&sign(&[&[0; 16][..], &unmarked].concat()), None), Err(CryptError::Malformed(_))));
}
