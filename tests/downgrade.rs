//! A man in the middle changes unencrypted parts of an authentication: the session either has the strongest cipher that
//! both ends allow, or is not established. Minions of both ciphers coexist.

use crate::support;

use std::sync::Arc;

use crate::support::{System, TIMEOUT, stdout};
use brine_agent::channel::Channel;
use brine_config::MinionConfig;
use brine_crypt::{Cipher, PrivateKey, PublicKey, Session};
use brine_value::{Map, Value, list, map, msgpack};
use brine_wire::{Accepted, AuthReply, AuthRequest, Binding, TOPIC_GCM};
use brine_zmtp::{Bounds, Endpoint, Handler, Limits, Listener, Peer, RequestClient, Router, Subscriber, Worker};
use bytes::Bytes;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

type Change = fn(&mut Map);

/// The attacks on authentications: changes to the unpacked request and the unpacked reply.
#[derive(Clone, Copy)]
struct Changes {
    request: Change,
    reply: Change,
    /// Whether the last reply is replayed instead of a request to the master.
    replay: bool,
}

const NOTHING: Changes = Changes { request: |_| {}, reply: |_| {}, replay: false };

/// A man in the middle between minions and the master.
struct ManInTheMiddle {
    master: RequestClient,
    changes: Mutex<Changes>,
    last: Mutex<Option<Bytes>>,
}

impl ManInTheMiddle {
    async fn start(system: &System) -> (Arc<Self>, u16) {
        let port = support::free_port();
        let listener = Listener::bind(&Endpoint::Tcp("127.0.0.1".into(), port)).await.unwrap();
        let master = RequestClient::new(system.request_endpoint(), Limits::default());
        let middle = Arc::new(ManInTheMiddle { master, changes: Mutex::new(NOTHING), last: Mutex::default() });
        tokio::spawn(Router::serve(
            listener,
            Arc::clone(&middle),
            4,
            Limits::default(),
            Bounds::default(),
            CancellationToken::new(),
        ));
        (middle, port)
    }

    fn set_changes(&self, changes: Changes) {
        *self.changes.lock() = changes;
    }
}

impl Handler for ManInTheMiddle {
    async fn handle(&self, _: Peer, request: Bytes, _: Worker) -> Option<Bytes> {
        let mut envelope = msgpack::unpack_map(&request).unwrap();
        if envelope.get("enc") != Some(&"clear".into()) {
            return self.master.request(request, TIMEOUT).await.ok();
        }
        let changes = *self.changes.lock();
        if changes.replay {
            return self.last.lock().clone();
        }
        (changes.request)(&mut envelope);
        let reply = self.master.request(msgpack::pack_map(&envelope), TIMEOUT).await.ok()?;
        let Ok(mut map) = msgpack::unpack_map(&reply) else { return Some(reply) };
        (changes.reply)(&mut map);
        let reply = Bytes::from(msgpack::pack_map(&map));
        *self.last.lock() = Some(reply.clone());
        Some(reply)
    }
}

fn load(envelope: &mut Map) -> &mut Map {
    envelope.get_mut("load").unwrap().as_map_mut().unwrap()
}

/// Changes the signed part of the master's reply.
fn signed(reply: &mut Map, change: impl Fn(&mut Map)) {
    let mut inner = msgpack::unpack_map(reply["load"].as_bytes().unwrap()).unwrap();
    change(&mut inner);
    reply.insert("load".into(), msgpack::pack_map(&inner).into());
}

/// Each attack, and the minion's errors: with a known master key, and at the first contact.
const ATTACKS: &[(&str, Changes, [&str; 2])] = &[
    (
        "the offered ciphers are removed",
        Changes { request: |envelope| _ = load(envelope).shift_remove("ciphers"), ..NOTHING },
        [ALTERED, ALTERED],
    ),
    (
        "the offered ciphers are weaker",
        Changes {
            request: |envelope| _ = load(envelope).insert("ciphers".into(), list!["aes-192-cbc-hmac"]),
            ..NOTHING
        },
        [ALTERED, ALTERED],
    ),
    (
        "the offered ciphers are reordered",
        Changes {
            request: |envelope| {
                _ = load(envelope).insert("ciphers".into(), list!["aes-192-cbc-hmac", "aes-256-gcm"]);
            },
            ..NOTHING
        },
        [ALTERED, ALTERED],
    ),
    (
        "another encryption algorithm is requested",
        Changes { request: |envelope| _ = load(envelope).insert("enc_algo".into(), "OAEP-SHA224".into()), ..NOTHING },
        [ALTERED, ALTERED],
    ),
    (
        "another signature algorithm is requested",
        Changes {
            request: |envelope| _ = load(envelope).insert("sig_algo".into(), "PKCS1v15-SHA224".into()),
            ..NOTHING
        },
        [ALTERED, ALTERED],
    ),
    (
        "an unknown algorithm is requested",
        Changes { request: |envelope| _ = load(envelope).insert("sig_algo".into(), "NONE".into()), ..NOTHING },
        [REFUSED, REFUSED],
    ),
    (
        "an older protocol version is claimed",
        Changes { request: |envelope| _ = envelope.insert("version".into(), 2.into()), ..NOTHING },
        [REFUSED, REFUSED],
    ),
    (
        "the token is removed",
        Changes { request: |envelope| _ = load(envelope).shift_remove("token"), ..NOTHING },
        // An empty string means no error at the first contact.
        [ALTERED, ""],
    ),
    (
        "the cipher is removed from the reply",
        Changes { reply: |reply| signed(reply, |inner| _ = inner.shift_remove("cipher")), ..NOTHING },
        [SIGNATURE, SIGNATURE],
    ),
    (
        "the cipher in the reply is replaced",
        Changes {
            reply: |reply| signed(reply, |inner| _ = inner.insert("cipher".into(), "aes-192-cbc-hmac".into())),
            ..NOTHING
        },
        [SIGNATURE, SIGNATURE],
    ),
    (
        "the reply imitates that of a Salt master",
        Changes {
            reply: |reply| {
                signed(reply, |inner| inner.retain(|name, _| !matches!(name.as_str(), Some("cipher" | "request"))));
            },
            ..NOTHING
        },
        [SIGNATURE, SIGNATURE],
    ),
    (
        "the reply is not signed",
        Changes { reply: |reply| _ = reply.shift_remove("sig"), ..NOTHING },
        [UNSIGNED, REFUSED],
    ),
    (
        "the reply is one of an older protocol",
        Changes {
            reply: |reply| {
                let mut inner = msgpack::unpack_map(reply["load"].as_bytes().unwrap()).unwrap();
                inner.retain(|name, _| !matches!(name.as_str(), Some("cipher" | "request" | "session" | "nonce")));
                *reply = inner;
            },
            ..NOTHING
        },
        [UNSIGNED, REFUSED],
    ),
    (
        "the reply is an unsigned rejection",
        Changes { reply: |reply| *reply = map! {"enc" => "clear", "load" => map! {"ret" => false}}, ..NOTHING },
        [UNSIGNED, "has rejected this minion's key"],
    ),
    ("an old reply is replayed", Changes { replay: true, ..NOTHING }, [NONCE, NONCE]),
];

const ALTERED: &str = "the request was modified in transit";
const SIGNATURE: &str = "the signature is invalid for this data";
const UNSIGNED: &str = "is not signed with the master's key";
const REFUSED: &str = "the master refuses the request";
const NONCE: &str = "'nonce' is invalid: expected that of the request";

fn channel(system: &System, name: &str, port: u16, ciphers: &[&str]) -> Arc<Channel> {
    let config = MinionConfig {
        pki_dir: system.path(&format!("{name}/pki")),
        master_port: port,
        ciphers: ciphers.iter().map(ToString::to_string).collect(),
        ..MinionConfig::default()
    };
    Arc::new(Channel::new(name.parse().unwrap(), Arc::new(config), "127.0.0.1", support::crypto()).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_man_in_the_middle_cannot_downgrade_a_session() {
    let system = System::start("").await;
    let (middle, port) = ManInTheMiddle::start(&system).await;
    let both = MinionConfig::default().ciphers;
    let both: Vec<&str> = both.iter().map(String::as_str).collect();
    let known = channel(&system, "known", port, &both);
    known.authenticate().await.unwrap();
    for (at, (attack, changes, expected)) in ATTACKS.iter().enumerate() {
        let fresh = channel(&system, &format!("new{at}"), port, &both);
        for (minion, expected) in [&known, &fresh].into_iter().zip(expected) {
            middle.set_changes(*changes);
            match (minion.authenticate().await, *expected) {
                (Ok(()), "") => assert_eq!(minion.cipher(), Some(Cipher::Aes256Gcm), "{attack}"),
                (Ok(()), _) => panic!("{attack}: the attack is not detected, the cipher is {:?}", minion.cipher()),
                (Err(error), expected) => {
                    assert!(!expected.is_empty() && error.to_string().contains(expected), "{attack}: {error}");
                }
            }
            // Without an attack they agree on the strongest cipher.
            middle.set_changes(NOTHING);
            minion.authenticate().await.unwrap();
            assert_eq!(minion.cipher(), Some(Cipher::Aes256Gcm), "{attack}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minion_reports_changed_replies_and_retries() {
    let mut system = System::start("").await;
    let (middle, port) = ManInTheMiddle::start(&system).await;
    let ports = format!("master_port: {port}\npublish_port: {}\n", system.publish_port);
    let file = system.configure_minion("web1", &ports).join("minion");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace(&format!("master_port: {}\n", system.ret_port), "")).unwrap();
    middle.set_changes(ATTACKS[0].1);
    let mut events = system.events("salt/minion/").await;
    system.spawn_minion("web1");
    support::until("the minion logs the modification", || system.minion_log("web1").contains(ALTERED)).await;
    assert!(!system.minion_log("web1").contains("the minion is ready"));
    middle.set_changes(NOTHING);
    events.until("salt/minion/web1/start").await;
    assert!(system.master_log().contains("cipher=aes-256-gcm"), "{}", system.master_log());
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_without_a_common_cipher_get_an_error() {
    for (allowed, offers) in
        [("aes-256-gcm", &[&["aes-192-cbc-hmac"][..], &[]][..]), ("aes-192-cbc-hmac", &[&["aes-256-gcm"][..]])]
    {
        let system = System::start(&format!("ciphers: [{allowed}]\n")).await;
        for (at, offer) in offers.iter().enumerate() {
            let minion = channel(&system, &format!("m{at}"), system.ret_port, offer);
            let before = system.counter("brine_authentications_refused_total");
            let refused = minion.authenticate().await.unwrap_err().to_string();
            assert!(refused.contains("compare it with the master's"), "{offer:?}: {refused}");
            assert!(minion.cipher().is_none());
            assert_eq!(system.counter("brine_authentications_refused_total"), before + 1);
        }
        support::until("the refusal is logged", || system.master_log().contains("offers no cipher")).await;
    }
}

/// Replies to authentications as Salt's masters do, and may claim a cipher.
struct SaltMaster {
    key: PrivateKey,
    claims: Option<Cipher>,
}

impl Handler for SaltMaster {
    async fn handle(&self, _: Peer, request: Bytes, _: Worker) -> Option<Bytes> {
        let mut envelope = msgpack::unpack_map(&request).unwrap();
        let asked = AuthRequest::from_map(load(&mut envelope)).unwrap();
        let minion = PublicKey::from_pem(&asked.public_key).unwrap();
        let key = Session::generate(self.claims.unwrap_or_default()).key_text();
        let seal = |text: &[u8]| minion.encrypt(text, asked.encryption).unwrap();
        let reply = AuthReply::Accepted(Box::new(Accepted {
            public_key: self.key.public().to_pem(),
            public_key_signature: None,
            publish_port: 4505,
            publish_key: seal(key.as_bytes()),
            token: asked.token.map(|token| seal(&self.key.decrypt(&token, asked.encryption).unwrap())),
            session_key: seal(key.as_bytes()),
            signature: self.key.sign_x931(brine_digest::hex(Sha256::digest(&key)).as_bytes()).unwrap(),
            cipher: self.claims.unwrap_or_default(),
        }));
        let mut reply = reply.to_map(&Binding::of(load(&mut envelope)).unwrap());
        reply.shift_remove("request");
        let packed = msgpack::pack_map(&reply);
        let sig = self.key.sign(&packed, asked.signature).unwrap();
        Some(msgpack::pack_map(&map! {"enc" => "clear", "load" => packed, "sig" => sig}).into())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_salt_master_gets_its_own_cipher_if_that_is_allowed() {
    let system = System::new("");
    let key = PrivateKey::generate(2048).unwrap();
    let both = ["aes-256-gcm", "aes-192-cbc-hmac"];
    for (at, (claims, allowed, expected)) in [
        (None, &both[..], ""),
        (None, &both[..1], "allows none of the ciphers that the option 'ciphers' allows here (aes-256-gcm)"),
        (Some(Cipher::Aes256Gcm), &both[..], "the message has no field 'request'"),
    ]
    .into_iter()
    .enumerate()
    {
        let port = support::free_port();
        let listener = Listener::bind(&Endpoint::Tcp("127.0.0.1".into(), port)).await.unwrap();
        let master = Arc::new(SaltMaster { key: key.clone(), claims });
        tokio::spawn(Router::serve(
            listener,
            master,
            1,
            Limits::default(),
            Bounds::default(),
            CancellationToken::new(),
        ));
        let minion = channel(&system, &format!("m{at}"), port, allowed);
        // At the first contact, and with a known key.
        for _ in 0..2 {
            match minion.authenticate().await {
                Ok(()) => assert_eq!((minion.cipher(), expected), (Some(Cipher::AesCbcHmac), "")),
                Err(error) => assert!(!expected.is_empty() && error.to_string().contains(expected), "{error}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_cipher_is_a_configuration_error() {
    let system = System::start("").await;
    let minion = channel(&system, "m", system.ret_port, &["aes-256-gcm", "rot13"]);
    let refused = minion.authenticate().await.unwrap_err().to_string();
    assert!(refused.contains("unknown algorithm 'rot13'"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publish_is_sent_once_for_each_cipher_in_use() {
    let mut system = System::start("").await;
    let endpoint = Endpoint::Tcp("127.0.0.1".into(), system.publish_port);
    // One subscriber subscribes as Salt's minions do, the other as Brine's.
    let mut plain = Subscriber::connect(&endpoint, &[b""], Limits::default()).await.unwrap();
    let mut named = Subscriber::connect(&endpoint, &[TOPIC_GCM], Limits::default()).await.unwrap();
    let start = async |system: &mut System, id: &str, cipher: &str| {
        system.configure_minion(id, &format!("ciphers: [{cipher}]\n"));
        let mut events = system.events("salt/minion/").await;
        system.spawn_minion(id);
        events.until(&format!("salt/minion/{id}/start")).await;
    };
    start(&mut system, "new", "aes-256-gcm").await;
    assert_eq!(system.salt_json(&["*", "test.ping"]), map! {"new" => true}.into());
    // So far no minion has Salt's cipher: the first publish with it is the first job after such a minion has joined.
    start(&mut system, "old", "aes-192-cbc-hmac").await;
    let both = map! {"new" => true, "old" => true};
    for _ in 0..3 {
        let Value::Map(answers) = system.salt_json(&["*", "test.ping"]) else { panic!("no answers") };
        assert!(
            both.iter().all(|(id, expected)| answers.get(id) == Some(expected)) && answers.len() == 2,
            "{answers:?}"
        );
    }
    let mut counted = [0, 0];
    for (subscriber, count) in [&mut plain, &mut named].into_iter().zip(&mut counted) {
        while let Ok(frames) = tokio::time::timeout(std::time::Duration::from_millis(500), subscriber.recv()).await {
            let frames = frames.unwrap();
            assert_eq!(frames.len(), if frames[0] == TOPIC_GCM { 2 } else { 1 });
            *count += 1;
        }
    }
    assert_eq!(counted, [3, 4]);
    for id in ["new", "old"] {
        let log = system.minion_log(id);
        assert!(
            !log.contains("ERROR")
                && !log.contains("WARN")
                && !log.contains("cannot be opened")
                && !log.contains("decrypting a publish failed"),
            "{log}"
        );
    }
    assert!(stdout(&system.tool("salt-run", &["manage.up"])).contains("old"));
}
