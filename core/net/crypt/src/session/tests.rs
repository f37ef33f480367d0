use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::token;

fn sessions() -> Vec<Session> {
    Cipher::ALL.iter().map(|cipher| Session::generate(*cipher)).collect()
}

#[test]
fn a_session_is_restored_from_its_key_text() {
    for session in sessions() {
        let again = Session::from_key_text(&format!("{}\n", session.key_text())).unwrap();
        assert_eq!(again.cipher(), session.cipher());
        assert_eq!(again.open(&session.seal(b"x", None, b"a"), None, b"a").unwrap(), b"x");
    }
}

#[test]
fn invalid_keys_are_refused() {
    let short = "AAECAwQFBgcICQoLDA0ODw==";
    for text in ["", "?", short, "aes-256-gcm:", &format!("aes-256-gcm:{short}"), "aes-128-gcm:AAAA"] {
        assert!(matches!(Session::from_key_text(text), Err(CryptError::Malformed(_))), "{text}");
    }
}

#[test]
fn a_session_can_be_shared_and_never_shows_its_key() {
    fn shared<T: Send + Sync + Clone>(_: &T) {}
    for session in sessions() {
        shared(&session);
        assert_eq!(format!("{session:?}"), format!("Session({})", session.cipher()));
    }
}

#[test]
fn encryption_is_randomised() {
    for session in sessions() {
        assert_ne!(session.seal(b"x", None, b""), session.seal(b"x", None, b""));
    }
}

proptest! {
    #[test]
    fn messages_are_decrypted_only_with_the_same_key(message in vec(any::<u8>(), 0..200), aad in "[a-z ]{0,9}", reply: bool) {
        let nonce = token::nonce();
        let nonce = reply.then_some(&nonce[..]);
        for (session, other) in sessions().into_iter().zip(sessions()) {
            let text = session.seal(&message, nonce, aad.as_bytes());
            prop_assert_eq!(&session.open(&text, nonce, aad.as_bytes()).unwrap(), &message);
            prop_assert!(matches!(other.open(&text, nonce, aad.as_bytes()), Err(CryptError::WrongKey)));
        }
    }

    #[test]
    fn a_changed_bit_or_truncation_is_detected(message in vec(any::<u8>(), 0..64), at: prop::sample::Index) {
        for session in sessions() {
            let text = session.seal(&message, None, b"");
            let mut changed = text.clone();
            let bit = at.index(text.len() * 8);
            changed[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(session.open(&changed, None, b"").is_err());
            prop_assert!(session.open(&text[..at.index(text.len())], None, b"").is_err());
        }
    }

    #[test]
    fn any_bytes_are_refused(bytes in vec(any::<u8>(), 0..200), nonce in prop::option::of(".{0,40}")) {
        for session in sessions() {
            prop_assert!(session.open(&bytes, nonce.as_deref(), b"").is_err());
        }
    }

    #[test]
    fn any_key_text_is_parsed_or_refused(text in ".*") {
        let _ = (Session::from_key_text(&text), Session::from_key_text(&format!("aes-256-gcm:{text}")));
    }
}
