use super::*;
use brine_digest::hex;

#[test]
fn the_published_vectors_of_xaes_match() {
    let nonce = b"ABCDEFGHIJKLMNOPQRSTUVWX";
    for (key, aad, expected) in [
        (1, "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"),
        (3, "c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"),
    ] {
        let sealed = Gcm::new([key; KEY]).seal_with(nonce, b"XAES-256-GCM", aad.as_bytes()).unwrap();
        assert_eq!(hex(&sealed), expected);
    }
}

#[test]
fn a_message_decrypts_only_for_its_purpose() {
    let key = Gcm::generate();
    let text = key.seal(b"message", Some("ab"), b"reply web1");
    assert_eq!(key.open(&text, Some("ab"), b"reply web1").unwrap(), b"message");
    for (nonce, aad) in [
        (None, &b"reply web1"[..]),
        (None, b"abreply web1"),
        (Some("abr"), b"eply web1"),
        (Some("ab"), b"reply web2"),
        (Some("ac"), b"reply web1"),
        (Some("ab"), b""),
    ] {
        assert!(matches!(key.open(&text, nonce, aad), Err(CryptError::WrongKey)), "{nonce:?} {aad:?}");
    }
}

#[test]
fn a_ciphertext_of_another_version_is_refused() {
    let key = Gcm::generate();
    let mut text = key.seal(b"message", None, b"");
    assert_eq!(text.len(), 1 + NONCE + 7 + 16);
    text[0] = 2;
    assert!(matches!(key.open(&text, None, b""), Err(CryptError::Malformed(_))));
}
