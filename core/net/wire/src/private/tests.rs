use std::sync::LazyLock;

use super::*;

static KEYS: LazyLock<[PrivateKey; 2]> =
    LazyLock::new(|| [PrivateKey::generate(2048).unwrap(), PrivateKey::generate(2048).unwrap()]);
const NONCE: &str = "0123456789abcdef0123456789abcdef";

fn sealed(encryption: EncryptionAlgorithm, signature: SignatureAlgorithm) -> Map {
    let [master, minion] = &*KEYS;
    let value = map! {"secret" => "s"}.into();
    msgpack::unpack_map(&seal(&value, NONCE, &minion.public(), master, encryption, signature).unwrap()).unwrap()
}

#[test]
fn a_private_reply_is_decrypted_by_its_minion() {
    let [master, minion] = &*KEYS;
    for encryption in EncryptionAlgorithm::ALL {
        for signature in SignatureAlgorithm::ALL {
            let reply = sealed(*encryption, *signature);
            assert!(is_private(&reply));
            let opened = open(&reply, NONCE, minion, &master.public(), *encryption, *signature).unwrap();
            assert_eq!(opened, map! {"secret" => "s"}.into());
        }
    }
}

#[test]
fn replies_of_another_key_or_request_are_refused() {
    let [master, minion] = &*KEYS;
    let (e, s) = (EncryptionAlgorithm::default(), SignatureAlgorithm::default());
    let reply = sealed(e, s);
    let tried = |reply: &Map, nonce: &str, minion: &PrivateKey, master: &PrivateKey| {
        open(reply, nonce, minion, &master.public(), e, s).unwrap_err().to_string()
    };
    assert_eq!(tried(&reply, &NONCE.replace('0', "1"), minion, master), CryptError::WrongNonce.to_string());
    assert_eq!(tried(&reply, NONCE, master, master), CryptError::WrongKey.to_string());
    assert_eq!(tried(&reply, NONCE, minion, minion), CryptError::BadSignature.to_string());
    // The key of one reply with the content of another.
    let mut mixed = sealed(e, s);
    mixed.insert(PART.into(), reply[PART].clone());
    assert_eq!(tried(&mixed, NONCE, minion, master), CryptError::WrongKey.to_string());
    assert!(!is_private(&map! {"key" => "text", PART => map!{}}));
}
