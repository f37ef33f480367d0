use std::sync::LazyLock;

use brine_value::map;

use super::*;

static KEY: LazyLock<PrivateKey> = LazyLock::new(|| PrivateKey::generate(2048).unwrap());

fn seal(session: &Session, id: &MinionId, load: Map) -> Vec<u8> {
    session.seal(&msgpack::pack_map(&load), None, &purpose::request(id))
}

fn id(name: &str) -> MinionId {
    name.parse().unwrap()
}

#[test]
fn a_request_decrypts_once_and_its_reply_has_its_nonce() {
    let (sessions, web1) = (Sessions::new(), id("web1"));
    let session = sessions.begin(&web1, Arc::new(KEY.public()), Cipher::Aes256Gcm);
    let request = seal(&session, &web1, map! {"cmd" => "x", "serial" => 1, "nonce" => "n"});
    let opened = sessions.open(&web1, &request).unwrap();
    let Ok(Value::Bytes(reply)) = msgpack::unpack(&opened.reply(&true.into())) else { panic!("no bytes") };
    assert_eq!(session.open(&reply, Some("n"), &purpose::reply(&web1)).unwrap(), msgpack::pack(&true.into()));
    assert!(session.open(&reply, Some("other"), &purpose::reply(&web1)).is_err());
    assert!(matches!(sessions.open(&web1, &request), Err(SessionError::Replay)));
    let unnumbered = seal(&session, &web1, map! {"cmd" => "x"});
    assert!(matches!(sessions.open(&web1, &unnumbered), Err(SessionError::Replay)));
}

#[test]
fn members_of_a_cluster_open_requests_of_each_others_sessions() {
    let (here, there, web1, key) = (Sessions::new(), Sessions::new(), id("web1"), Arc::new(KEY.public()));
    there.adopt(here.share());
    assert!(here.are_shared() && there.are_shared() && !Sessions::new().are_shared());
    let session = here.begin(&web1, Arc::clone(&key), Cipher::AesCbcHmac);
    let request = seal(&session, &web1, map! {"cmd" => "x"});
    assert!(matches!(there.open(&web1, &request), Err(SessionError::NoSession)));
    // The request can be decrypted, but has no token.
    assert!(matches!(there.open_shared(&web1, Arc::clone(&key), &request), Err(SessionError::BadToken)));
    let other = Arc::new(PrivateKey::generate(2048).unwrap().public());
    for (id, key) in [(id("web2"), Arc::clone(&key)), (web1.clone(), other)] {
        assert!(matches!(there.open_shared(&id, key, &request), Err(SessionError::Crypt(_))), "{id}");
    }
    let gcm = here.begin(&web1, Arc::clone(&key), Cipher::Aes256Gcm);
    let request = seal(&gcm, &web1, map! {"cmd" => "x", "serial" => 1});
    assert!(matches!(there.open_shared(&web1, Arc::clone(&key), &request), Err(SessionError::Crypt(_))));
    // A rotation changes the keys.
    here.rotate();
    assert_ne!(here.begin(&web1, key, Cipher::AesCbcHmac).key_text(), session.key_text());
}

#[test]
fn processes_of_a_minion_share_a_session_with_salts_cipher_until_rotation() {
    let (sessions, web1, key) = (Sessions::new(), id("web1"), Arc::new(KEY.public()));
    let begin = |cipher| sessions.begin(&web1, Arc::clone(&key), cipher).key_text();
    let first = begin(Cipher::AesCbcHmac);
    assert_eq!(begin(Cipher::AesCbcHmac), first);
    sessions.rotate();
    let second = begin(Cipher::AesCbcHmac);
    assert_ne!(second, first);
    assert_eq!(begin(Cipher::AesCbcHmac), second);
    sessions.end(&web1);
    assert_ne!(begin(Cipher::AesCbcHmac), second);
    // Sessions with numbered requests are not shared.
    assert_ne!(begin(Cipher::Aes256Gcm), begin(Cipher::Aes256Gcm));
    let other = Arc::new(PrivateKey::generate(2048).unwrap().public());
    let third = begin(Cipher::AesCbcHmac);
    assert_ne!(sessions.begin(&web1, other, Cipher::AesCbcHmac).key_text(), third);
}

#[test]
fn processes_of_a_minion_do_not_end_each_others_sessions() {
    let (sessions, web1, key) = (Sessions::new(), id("web1"), Arc::new(KEY.public()));
    let mut serial = 0;
    let mut works = |session: &Session| {
        serial += 1;
        let load = map! {"cmd" => "x", "serial" => serial, "tok" => KEY.sign_x931(b"salt").unwrap()};
        sessions.open(&web1, &seal(session, &web1, load)).is_ok()
    };
    let daemon = sessions.begin(&web1, Arc::clone(&key), Cipher::Aes256Gcm);
    let call = sessions.begin(&web1, Arc::clone(&key), Cipher::Aes256Gcm);
    let salts = sessions.begin(&web1, Arc::clone(&key), Cipher::AesCbcHmac);
    assert!(works(&daemon) && works(&call) && works(&salts) && works(&daemon));
    // Unproven sessions, which anyone with the public key can begin, evict none in use.
    for _ in 0..3 * MAX_PER_MINION {
        sessions.begin(&web1, Arc::clone(&key), Cipher::Aes256Gcm);
    }
    assert!(works(&daemon) && works(&call));
    // Beyond the limit, unused proven sessions are evicted.
    for _ in 0..3 * MAX_PER_MINION {
        let another = sessions.begin(&web1, Arc::clone(&key), Cipher::Aes256Gcm);
        assert!(works(&another) && works(&daemon));
    }
    assert!(!works(&call));
    let count = |proven| sessions.minions.lock()[&web1].iter().filter(|entry| entry.proven == proven).count();
    assert_eq!((count(true), count(false)), (MAX_PER_MINION, MAX_PER_MINION - 1));
    // Two processes that begin at the same time do not evict each other, however many have ended before.
    let (one, two) = [(); 2].map(|()| sessions.begin(&web1, Arc::clone(&key), Cipher::Aes256Gcm)).into();
    assert!(works(&one) && works(&two) && works(&daemon));
    // A rotation or a new key of the minion ends all sessions.
    sessions.rotate();
    assert!(works(&daemon));
    let after = sessions.begin(&web1, key, Cipher::Aes256Gcm);
    assert!(works(&after) && !works(&daemon));
    let other = Arc::new(PrivateKey::generate(2048).unwrap().public());
    let after_key = sessions.begin(&web1, other, Cipher::Aes256Gcm);
    assert!(works(&after_key) && !works(&after));
}

#[test]
fn requests_that_are_tampered_with_or_of_another_minion_are_refused() {
    let (sessions, web1, db1) = (Sessions::new(), id("web1"), id("db1"));
    let session = sessions.begin(&web1, Arc::new(KEY.public()), Cipher::Aes256Gcm);
    sessions.begin(&db1, Arc::new(KEY.public()), Cipher::Aes256Gcm);
    let request = seal(&session, &web1, map! {"cmd" => "x", "serial" => 1});
    for at in 0..request.len() {
        let mut tampered = request.clone();
        tampered[at] ^= 1;
        assert!(matches!(sessions.open(&web1, &tampered), Err(SessionError::Crypt(_))), "byte {at}");
    }
    assert!(matches!(sessions.open(&db1, &request), Err(SessionError::Crypt(_))));
    assert!(matches!(sessions.open(&id("nobody"), &request), Err(SessionError::NoSession)));
    let forged = seal(&session, &web1, map! {"cmd" => "x", "serial" => 2, "id" => "db1"});
    assert!(matches!(sessions.open(&web1, &forged), Err(SessionError::ForeignId(name)) if name == "db1"));
    assert!(sessions.knows_all(&["web1".into(), "db1".into()]) && !sessions.knows_all(&["db2".into()]));
    sessions.end(&web1);
    assert!(!sessions.knows_all(&["web1".into()]));
    assert!(matches!(sessions.open(&web1, &request), Err(SessionError::NoSession)));
}

#[test]
fn salts_cipher_needs_the_proof_of_the_minions_key() {
    let (sessions, web1) = (Sessions::new(), id("web1"));
    let session = sessions.begin(&web1, Arc::new(KEY.public()), Cipher::AesCbcHmac);
    let good = map! {"cmd" => "x", "tok" => KEY.sign_x931(b"salt").unwrap()};
    assert!(sessions.open(&web1, &seal(&session, &web1, good)).is_ok());
    for bad in [map! {"cmd" => "x"}, map! {"cmd" => "x", "tok" => KEY.sign_x931(b"pepper").unwrap()}] {
        assert!(matches!(sessions.open(&web1, &seal(&session, &web1, bad)), Err(SessionError::BadToken)));
    }
}
