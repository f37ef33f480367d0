//! Special cases of sessions: signed messages, filtered publishes, concurrent renewals.

use crate::support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::System;
use crate::support::raw::Raw;
use brine_agent::channel::ChannelError;
use brine_crypt::{Cipher, PrivateKey, SignatureAlgorithm};
use brine_value::{Map, Value, map};
use brine_wire::{Envelope, PublishRequest, TOPIC_BROADCAST, minion_topic, signed};
use brine_zmtp::{Endpoint, Limits, RequestClient, Subscriber, TransportError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

fn a_return(n: i64) -> Map {
    let jid = format!("2026112209000000000{n}");
    map! {"cmd" => "_return", "jid" => jid, "fun" => "test.ping", "return" => true, "retcode" => 0}
}

/// The master's replies to a return without a signature, with a valid one, and with invalid ones: by another key, and
/// of another return.
#[tokio::test(flavor = "multi_thread")]
async fn signatures_of_returns_are_verified_as_configured() {
    for (config, unsigned, bad) in [
        ("", true, true),
        ("require_minion_sign_messages: True\n", false, true),
        ("drop_messages_signature_fail: True\n", true, false),
        ("require_minion_sign_messages: True\ndrop_messages_signature_fail: True\n", false, false),
    ] {
        let system = System::start(config).await;
        let other = PrivateKey::generate(2048).unwrap();
        for cipher in [Cipher::Aes256Gcm, Cipher::AesCbcHmac] {
            let mut web1 = Raw::join(&system, cipher.name(), cipher).await;
            let mut ask = async |n: i64, sign: &dyn Fn(&mut Map, &PrivateKey)| {
                let mut load = web1.proven(a_return(n));
                sign(&mut load, &web1.key);
                web1.send(&web1.sealed(&load), load["nonce"].as_str().unwrap()).await
            };
            let algorithm = SignatureAlgorithm::default();
            assert_eq!(ask(1, &|_, _| {}).await, unsigned.into(), "{config} unsigned");
            assert_eq!(ask(2, &|load, key| signed::sign(load, key, algorithm).unwrap()).await, true.into(), "{config}");
            let by_another = ask(3, &|load, _| signed::sign(load, &other, algorithm).unwrap()).await;
            assert_eq!(by_another, bad.into(), "{config} by another key");
            let changed = ask(4, &|load, key| {
                signed::sign(load, key, algorithm).unwrap();
                load.insert("return".into(), "forged".into());
            })
            .await;
            assert_eq!(changed, bad.into(), "{config} changed");
            assert_eq!(
                ask(5, &|load, _| _ = load.insert("sig".into(), 1.into())).await,
                bad.into(),
                "{config} no bytes"
            );
            // Only returns require a signature.
            let event = map! {"cmd" => "_minion_event", "tag" => "my/tag", "data" => map! {}, "pretag" => Value::Nil};
            assert_eq!(web1.ask(event).await, true.into());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minion_signs_as_its_master_requires() {
    let mut system = System::start("require_minion_sign_messages: True\ndrop_messages_signature_fail: True\n").await;
    system.configure_minion("web1", "minion_sign_messages: True\n");
    let mut events = system.events("salt/minion/").await;
    system.spawn_minion("web1");
    events.until("salt/minion/web1/start").await;
    assert_eq!(system.salt_json(&["web1", "test.ping"]), map! {"web1" => true}.into());
    let root = system.path("web1/etc").display().to_string();
    let called = support::within_limit(support::BRINE).args(["salt-call", "-c", &root, "test.ping"]).output().unwrap();
    assert!(called.status.success(), "{}", support::stderr(&called));
    assert!(!system.master_log().contains("return refused"), "{}", system.master_log());
}

/// Concurrent requests of an unknown session share one authentication, and none fails.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_requests_renew_their_session_once() {
    let mut system = System::start("").await;
    for cipher in ["aes-256-gcm", "aes-192-cbc-hmac"] {
        let channel = system.channel(cipher, cipher);
        channel.authenticate().await.unwrap();
        let ask = || {
            let channel = Arc::clone(&channel);
            tokio::spawn(async move { channel.request(map! {"cmd" => "_file_envs"}).await.unwrap() })
        };
        for restart in [System::kill_master as fn(&mut System), System::stop_master] {
            restart(&mut system);
            system.start_master().await;
            let before = system.counter("brine_authentications_total");
            let asked: Vec<_> = (0..20).map(|_| ask()).collect();
            for answer in asked {
                assert_eq!(answer.await.unwrap(), brine_value::list!["base"]);
            }
            assert_eq!(system.counter("brine_authentications_total") - before, 1, "{cipher}");
        }
    }
}

/// The publish port with each value of `zmq_filtering`: the frames that two filtering minions, and one that subscribes
/// to everything, receive for jobs to either minion and to both.
#[tokio::test(flavor = "multi_thread")]
async fn filtering_subscribers_receive_their_own_publishes() {
    for filtering in [true, false] {
        let system = System::start(&format!("zmq_filtering: {filtering}\nciphers: [aes-192-cbc-hmac]\n")).await;
        let endpoint = Endpoint::Tcp("127.0.0.1".into(), system.publish_port);
        let topics = ["a", "b"].map(minion_topic);
        let mut subscribers = Vec::new();
        for id in ["a", "b"] {
            Raw::join(&system, id, Cipher::AesCbcHmac).await;
            let prefixes = [TOPIC_BROADCAST, minion_topic(id).as_bytes()].map(<[u8]>::to_vec);
            subscribers.push(Subscriber::connect(&endpoint, &prefixes, Limits::default()).await.unwrap());
        }
        subscribers.push(Subscriber::connect(&endpoint, &[b""], Limits::default()).await.unwrap());
        let client = RequestClient::new(system.request_endpoint(), Limits::default());
        for (tgt, kind) in [("a", "list"), ("[ab]", "pcre"), ("*", "glob"), ("a or b", "compound"), ("b", "list")] {
            let mut request = PublishRequest::new(tgt, "test.ping", "tester");
            (request.tgt_type, request.key) = (kind.to_owned(), Some(system.root_key()));
            client.request(Envelope::clear(request.to_map()), support::TIMEOUT).await.unwrap();
        }
        let (broadcast, [a, b]) = (Some("broadcast"), [&topics[0], &topics[1]].map(|topic| Some(topic.as_str())));
        let expected = if filtering {
            [vec![a, a, a, broadcast], vec![b, b, broadcast, b], vec![None; 5]]
        } else {
            [vec![broadcast; 5], vec![broadcast; 5], vec![None; 5]]
        };
        for (subscriber, expected) in subscribers.iter_mut().zip(expected) {
            for topic in expected {
                let frames = tokio::time::timeout(support::TIMEOUT, subscriber.recv()).await.unwrap().unwrap();
                let [before @ .., _] = &frames[..] else { panic!("no frames") };
                assert_eq!(before.first().map(|frame| std::str::from_utf8(frame).unwrap()), topic, "{filtering}");
            }
        }
    }
}

/// Forwards connections to a master; when `cut` is set, closes the connection of the next reply, once.
async fn proxy(master: u16, cut: Arc<AtomicBool>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (client, _) = listener.accept().await.unwrap();
            let server = TcpStream::connect(("127.0.0.1", master)).await.unwrap();
            let cut = Arc::clone(&cut);
            tokio::spawn(async move {
                let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
                    (client.into_split(), server.into_split());
                let replies = async {
                    let mut buffer = vec![0; 1 << 16];
                    loop {
                        let read = from_server.read(&mut buffer).await.unwrap_or(0);
                        if read == 0 || cut.swap(false, Ordering::Relaxed) {
                            return;
                        }
                        to_client.write_all(&buffer[..read]).await.unwrap();
                    }
                };
                tokio::select! {
                    _ = tokio::io::copy(&mut from_client, &mut to_server) => {}
                    () = replies => {}
                }
            });
        }
    });
    port
}

/// A request is repeated once if its connection ends before the reply, unless it starts a job or a runner. The
/// repetition is not refused as a replay: the session continues.
#[tokio::test(flavor = "multi_thread")]
async fn unanswered_request_is_repeated_once_unless_it_starts_a_job_or_runner() {
    let system = System::start("peer_run: {'.*': ['test.*']}\n").await;
    let cut = Arc::new(AtomicBool::new(false));
    let port = proxy(system.ret_port, Arc::clone(&cut)).await;
    for cipher in ["aes-256-gcm", "aes-192-cbc-hmac"] {
        let channel = system.channel_by(port, cipher, cipher);
        channel.authenticate().await.unwrap();
        let counters = ["brine_authentications_total", "brine_requests_refused_total"];
        let before = counters.map(|name| system.counter(name));
        cut.store(true, Ordering::Relaxed);
        let answer = channel.request(map! {"cmd" => "_file_envs"}).await.unwrap();
        assert_eq!(answer, brine_value::list!["base"], "{cipher}");
        assert!(!cut.load(Ordering::Relaxed));
        cut.store(true, Ordering::Relaxed);
        let load = map! {"cmd" => "minion_runner", "fun" => "test.arg", "arg" => brine_value::list![]};
        let error = channel.request(load.clone()).await.unwrap_err();
        assert!(matches!(error, ChannelError::Transport(TransportError::Unanswered { .. })), "{cipher}: {error}");
        assert!(channel.request(load).await.unwrap().is_truthy());
        assert_eq!(counters.map(|name| system.counter(name)), before, "{cipher}");
    }
}
