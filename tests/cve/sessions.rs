//! A man in the middle: forged, changed and replayed messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use brine_agent::channel::Channel;
use brine_config::MinionConfig;
use brine_crypt::{Cipher, PrivateKey};
use brine_value::{Map, Value, map, msgpack};
use brine_wire::TOPIC_GCM;
use brine_zmtp::{Bounds, Endpoint, Handler, Limits, Listener, Peer, RequestClient, Router, Subscriber, Worker};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::cve::{REFUSED, SECRET, is_refusal};
use crate::support::raw::Raw;
use crate::support::{System, TIMEOUT, stdout, until};

/// Changes a reply, given the request's envelope and the master's reply.
type Change = Box<dyn Fn(&Map, Bytes) -> Bytes + Send + Sync>;

/// A man in the middle: forwards requests to a master and changes the replies.
struct ManInTheMiddle {
    master: RequestClient,
    change: Change,
}

impl Handler for ManInTheMiddle {
    async fn handle(&self, _: Peer, request: Bytes, _: Worker) -> Option<Bytes> {
        let envelope = msgpack::unpack_map(&request).unwrap();
        let reply = self.master.request(request, TIMEOUT).await.ok()?;
        Some((self.change)(&envelope, reply))
    }
}

/// Listens on an address for a master's minions.
async fn man_in_the_middle(system: &System, host: &str, port: u16, change: Change) {
    let listener = Listener::bind(&Endpoint::Tcp(host.into(), port)).await.unwrap();
    let master = RequestClient::new(system.request_endpoint(), Limits::default());
    let handler = Arc::new(ManInTheMiddle { master, change });
    tokio::spawn(Router::serve(listener, handler, 4, Limits::default(), Bounds::default(), CancellationToken::new()));
}

/// Creates a minion with this cipher whose master is at that port.
fn channel(system: &System, cipher: Cipher, port: u16) -> Arc<Channel> {
    let config = MinionConfig {
        pki_dir: system.path(&format!("{cipher}/pki")),
        master_port: port,
        ciphers: vec![cipher.to_string()],
        ..MinionConfig::default()
    };
    Arc::new(
        Channel::new(format!("web-{cipher}").parse().unwrap(), Arc::new(config), "127.0.0.1", crate::support::crypto())
            .unwrap(),
    )
}

fn is_auth(envelope: &Map) -> bool {
    envelope.get("enc") == Some(&"clear".into())
}

/// An attack on replies other than those of an authentication.
#[derive(Clone, Copy, PartialEq)]
enum Attack {
    None,
    Flip(usize),
    Replay,
}

/// Returns a minion behind a man in the middle, and the handle to select the attack.
async fn attacked(system: &System, cipher: Cipher) -> (Arc<Channel>, Arc<Mutex<Attack>>) {
    let attack = Arc::new(Mutex::new(Attack::None));
    let (reported, last) = (Arc::clone(&attack), Mutex::new(None::<Bytes>));
    let change: Change = Box::new(move |envelope, reply| {
        if is_auth(envelope) {
            return reply;
        }
        match *reported.lock() {
            Attack::None => {
                *last.lock() = Some(reply.clone());
                reply
            }
            Attack::Flip(at) => {
                let mut bytes = reply.to_vec();
                let at = bytes.len() * at / 8;
                bytes[at] ^= 1;
                bytes.into()
            }
            Attack::Replay => last.lock().clone().unwrap(),
        }
    });
    let port = crate::support::free_port();
    man_in_the_middle(system, "127.0.0.1", port, change).await;
    let channel = channel(system, cipher, port);
    channel.authenticate().await.unwrap();
    (channel, attack)
}

/// Asserts that a reply is accepted once and only unchanged.
async fn assert_bound(channel: &Arc<Channel>, attack: &Mutex<Attack>, load: Map) {
    *attack.lock() = Attack::None;
    let honest = channel.request(load.clone()).await.unwrap();
    for forged in [Attack::Replay, Attack::Flip(1), Attack::Flip(4), Attack::Flip(7)] {
        *attack.lock() = forged;
        let answer = channel.request(load.clone()).await;
        assert!(
            answer.as_ref().is_err()
                || answer.as_ref().is_ok_and(|answer| forged != Attack::Replay && *answer == honest),
            "{load:?}: {answer:?}"
        );
    }
    *attack.lock() = Attack::None;
    assert_eq!(channel.request(load).await.unwrap(), honest);
}

/// Pillar was not bound to the request: another one could be substituted.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2022_22934_pillar_of_a_man_in_the_middle_is_refused() {
    let system = System::start("").await;
    system.write("srv/pillar/top.sls", "base: {'*': [one]}\n");
    system.write("srv/pillar/one.sls", &format!("secret: {SECRET}\n"));
    for cipher in Cipher::ALL {
        let (channel, attack) = attacked(&system, *cipher).await;
        let load = map! {"cmd" => "_pillar", "grains" => map! {}, "saltenv" => "base", "pillarenv" => Value::Nil, "pillar_override" => map! {}, "ver" => "2"};
        assert_bound(&channel, &attack, load).await;
    }
}

/// Replies to `_auth` were not signed: anyone could stop minions in the master's name.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2022_22935_forged_authentication_replies_stop_no_minion() {
    const FORGED: usize = 4;
    let mut system = System::start("").await;
    // First contact without the man in the middle: the master's key is known from then on.
    system.start_minion("web1").await;
    system.kill_minion("web1");
    let key = std::fs::read(system.path("web1/pki/minion_master.pub")).unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let thief = PrivateKey::generate(2048).unwrap();
    let forge: Change = Box::new(move |envelope, reply| {
        if !is_auth(envelope) {
            return reply;
        }
        let nonce = envelope["load"].get("nonce").cloned().unwrap_or_default();
        let load = |ret: Value| msgpack::pack_map(&map! {"ret" => ret, "nonce" => nonce.clone()});
        let forged = match counted.fetch_add(1, Ordering::Relaxed) {
            0 => msgpack::pack_map(&map! {"enc" => "clear", "load" => map! {"ret" => false, "nonce" => nonce.clone()}}),
            1 => msgpack::pack_map(&map! {"enc" => "clear", "load" => load("full".into()), "sig" => b"x".to_vec()}),
            2 => {
                let load = load(false.into());
                let sig = thief.sign(&load, brine_crypt::SignatureAlgorithm::default()).unwrap();
                msgpack::pack_map(&map! {"enc" => "clear", "load" => load, "sig" => sig})
            }
            3 => b"garbage".to_vec(),
            _ => return reply,
        };
        forged.into()
    });
    man_in_the_middle(&system, "127.0.0.2", system.ret_port, forge).await;
    let publishes = tokio::net::TcpListener::bind(("127.0.0.2", system.publish_port)).await.unwrap();
    let port = system.publish_port;
    tokio::spawn(async move {
        while let Ok((mut minion, _)) = publishes.accept().await {
            let mut master = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut minion, &mut master).await });
        }
    });
    let etc = system.path("web1/etc/minion");
    let config = std::fs::read_to_string(&etc).unwrap().replace("master: 127.0.0.1", "master: 127.0.0.2");
    std::fs::write(etc, config).unwrap();
    let mut events = system.events("salt/minion/").await;
    system.spawn_minion("web1");
    events.until("salt/minion/web1/start").await;
    assert!(count.load(Ordering::Relaxed) > FORGED, "all forged replies were sent");
    assert_eq!(std::fs::read(system.path("web1/pki/minion_master.pub")).unwrap(), key);
    until("the minion runs jobs", || system.salt_json(&["web1", "test.ping"]) == map! {"web1" => true}.into()).await;
}

/// Jobs and replies of the file server could be replayed.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2022_22936_publishes_and_replies_are_accepted_once() {
    let system = System::start("").await;
    system.write("srv/salt/one.txt", "one");
    for cipher in Cipher::ALL {
        let (channel, attack) = attacked(&system, *cipher).await;
        let load = map! {"cmd" => "_serve_file", "path" => "one.txt", "saltenv" => "base", "loc" => 0};
        assert_bound(&channel, &attack, load).await;

        let endpoint = Endpoint::Tcp("127.0.0.1".into(), system.publish_port);
        let topic: &[u8] = if *cipher == Cipher::Aes256Gcm { TOPIC_GCM } else { b"" };
        let mut publishes = Subscriber::connect(&endpoint, &[topic], Limits::default()).await.unwrap();
        assert!(system.tool("salt", &["--async", &format!("web-{cipher}"), "test.ping"]).status.success());
        let frames = tokio::time::timeout(TIMEOUT, publishes.recv()).await.unwrap().unwrap();
        let payload = frames.last().unwrap();
        let opened = match channel.open_publish(payload) {
            // The deletion of a key at the end of the round before has changed the keys of publishes only now.
            Err(_) => {
                channel.authenticate().await.unwrap();
                channel.open_publish(payload)
            }
            opened => opened,
        };
        assert_eq!(opened.unwrap().fun, "test.ping".into());
        assert!(channel.open_publish(payload).is_err(), "{cipher}: a publish is taken twice");
        channel.authenticate().await.unwrap();
        assert!(channel.open_publish(payload).is_err(), "{cipher}: a publish is taken again by another session");
        assert!(system.tool("salt-key", &["-y", "-d", &format!("web-{cipher}")]).status.success());
    }
}

/// Requests could be replayed.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2024_38823_requests_are_accepted_once() {
    let system = System::start("request_server_ttl: 60\n").await;
    let event = || map! {"cmd" => "_minion_event", "tag" => "mine/x", "data" => map! {}};
    let mut new = Raw::join(&system, "new", Cipher::Aes256Gcm).await;
    let load = new.proven(event());
    let envelope = new.sealed(&load);
    assert!(!is_refusal(&new.send(&envelope, load["nonce"].as_str().unwrap()).await));
    assert_eq!(new.send(&envelope, "").await, REFUSED.into());
    // Requests with Salt's cipher have no serial number: they expire after `request_server_ttl`.
    let mut old = Raw::join(&system, "old", Cipher::AesCbcHmac).await;
    for ts in [Value::from(jiff::Timestamp::now().as_second() - 61), Value::Nil, "now".into()] {
        let mut load = old.proven(event());
        load.insert("ts".into(), ts);
        assert_eq!(old.send(&old.sealed(&load), "").await, REFUSED.into());
    }
    assert!(!is_refusal(&old.ask(event()).await));
}

/// An older protocol version circumvented the token of CVE-2024-38822.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2025_62349_older_protocols_are_refused() {
    let system = System::start("").await;
    for cipher in Cipher::ALL {
        let mut minion = Raw::join(&system, &format!("old-{cipher}"), *cipher).await;
        for version in [Some(0), Some(1), Some(2), Some(-1), None] {
            let load = minion.proven(map! {"cmd" => "_mine_flush"});
            let mut envelope = minion.sealed(&load);
            envelope.shift_remove("version");
            envelope.extend(version.map(|version| ("version".into(), version.into())));
            assert_eq!(minion.send(&envelope, "").await, REFUSED.into(), "{version:?}");
        }
        assert!(!is_refusal(&minion.ask(map! {"cmd" => "_mine_flush"}).await));
        let log = system.master_log();
        assert!(log.lines().any(|line| line.contains("too old") && line.contains(&format!("old-{cipher}"))), "{log}");
    }
    assert!(!stdout(&system.tool("salt-key", &["-L"])).is_empty());
}
