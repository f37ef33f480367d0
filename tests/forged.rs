//! Forged requests of an accepted minion: other names, other proofs, replayed requests. They are refused, logged and
//! counted.

use crate::support;

use std::sync::Arc;

use crate::support::raw::Raw;
use crate::support::{System, stdout};
use brine_agent::channel::Channel;
use brine_config::MinionConfig;
use brine_crypt::{Cipher, PrivateKey, SignatureAlgorithm};
use brine_value::{Map, Value, list, map, msgpack};
use brine_wire::{Envelope, TOPIC_GCM, purpose};
use brine_zmtp::{Endpoint, Limits, RequestClient, Subscriber};

/// The reply to a forged request.
const REFUSED: &str = "bad load";

/// Asserts that requests are refused this often, with this message in the log.
async fn refused(system: &System, count: i64, words: &str, forge: impl Future<Output = ()>) {
    let before = system.counter("brine_requests_refused_total");
    forge.await;
    assert_eq!(system.counter("brine_requests_refused_total") - before, count, "{words}");
    assert!(system.master_log().contains(words), "{words}: {}", system.master_log());
}

/// Returns a command of each kind that would act in the name of its minion.
fn commands() -> Vec<Map> {
    vec![
        map! {"cmd" => "_return", "jid" => "20261120235852025555", "fun" => "test.ping", "return" => "forged", "retcode" => 0},
        map! {"cmd" => "_minion_event", "tag" => "forged", "data" => map! {}},
        map! {"cmd" => "_pillar", "grains" => map! {}, "saltenv" => "base"},
        map! {"cmd" => "_mine", "data" => map! {"forged" => 1}},
        map! {"cmd" => "_mine_flush"},
        map! {"cmd" => "_file_recv", "path" => list!["forged"], "loc" => 0, "data" => b"x".to_vec(), "size" => 1},
        map! {"cmd" => "minion_pub", "fun" => "test.ping", "arg" => list![], "tgt" => "*", "ret" => ""},
        map! {"cmd" => "pub_ret", "jid" => "20261120235852025555"},
        map! {"cmd" => "revoke_auth"},
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_in_another_minions_name_are_refused() {
    let mut system = System::start("file_recv: True\npeer: {web1: [test.ping]}\n").await;
    system.start_minion("web1").await;
    let mut events = system.events("").await;
    let web1 = "web1".parse().unwrap();
    for cipher in Cipher::ALL {
        let mut rogue = Raw::join(&system, &format!("rogue-{cipher}"), *cipher).await;
        let each = i64::try_from(commands().len()).unwrap();
        // Its own session, with another minion's id in the load.
        refused(&system, each, "the message names another sender: 'web1'", async {
            for command in commands() {
                let mut load = rogue.proven(command.clone());
                load.insert("id".into(), "web1".into());
                assert_eq!(rogue.send(&rogue.sealed(&load), "").await, REFUSED.into(), "{cipher} {command:?}");
            }
        })
        .await;
        // Another minion's id on the envelope, or in both: the session is not that minion's.
        let words = match cipher {
            Cipher::Aes256Gcm => "decryption failed",
            Cipher::AesCbcHmac => "expected a message of AES-256-GCM",
        };
        refused(&system, each * 2, words, async {
            for command in commands() {
                for within in ["web1", rogue.id.clone().as_str()] {
                    let mut load = rogue.proven(command.clone());
                    load.insert("id".into(), within.into());
                    let sealed = rogue.session.seal(&msgpack::pack_map(&load), None, &purpose::request(&web1));
                    let mut envelope = rogue.sealed(&load);
                    envelope.extend(map! {"id" => "web1", "load" => sealed});
                    assert_eq!(rogue.send(&envelope, "").await, REFUSED.into(), "{cipher} {command:?}");
                }
            }
        })
        .await;
        assert_eq!(rogue.ask(map! {"cmd" => "_minion_event", "tag" => "own", "data" => map! {}}).await, true.into());
    }
    // Only permitted requests had an effect.
    for _ in Cipher::ALL {
        loop {
            let (tag, data) = events.next().await;
            assert!(!format!("{tag}{data:?}").contains("forged") && !tag.contains("/ret/web1"), "{tag} {data:?}");
            if tag == "own" {
                break;
            }
        }
    }
    assert!(!system.path("cache/minions/web1/files").exists());
    assert!(stdout(&system.tool("salt-key", &["-l", "acc"])).contains("web1"));
    assert_eq!(system.salt_json(&["web1", "test.ping"]), map! {"web1" => true}.into());
}

#[tokio::test(flavor = "multi_thread")]
async fn stale_and_foreign_proofs_are_refused() {
    let system = System::start("request_server_ttl: 60\n").await;
    let ping = || map! {"cmd" => "_file_envs"};
    let [mut old, mut new] =
        [Raw::join(&system, "old", Cipher::AesCbcHmac).await, Raw::join(&system, "new", Cipher::Aes256Gcm).await];
    // Salt's cipher: a token proves the key, a time that the request is recent.
    let other = PrivateKey::generate(2048).unwrap();
    let long_ago = jiff::Timestamp::now().as_second() - 61;
    for (field, value, words) in [
        ("tok", other.sign_x931(b"salt").unwrap().into(), "the token does not prove"),
        ("tok", new.key.sign_x931(b"salt").unwrap().into(), "the token does not prove"),
        ("tok", Value::Nil, "the token does not prove"),
        ("ts", long_ago.into(), "the message is too old"),
        ("ts", Value::Nil, "the message is too old"),
    ] {
        refused(&system, 1, words, async {
            let mut load = old.proven(ping());
            load.insert(field.into(), value);
            assert_eq!(old.send(&old.sealed(&load), "").await, REFUSED.into(), "{words}");
        })
        .await;
    }
    // AES-256-GCM: each serial number is accepted once.
    let load = new.proven(ping());
    let (sealed, again) = (new.sealed(&load), new.sealed(&load));
    assert_eq!(new.send(&sealed, load["nonce"].as_str().unwrap()).await, list!["base"]);
    for (envelope, words) in [(&sealed, "the message is a replay"), (&again, "the message is a replay")] {
        refused(&system, 1, words, async {
            assert_eq!(new.send(envelope, "").await, REFUSED.into());
        })
        .await;
    }
    // A message encrypted for one purpose is not accepted for another.
    refused(&system, 1, "decryption failed", async {
        let mut envelope = new.sealed(&load);
        let load = msgpack::pack_map(&new.proven(ping()));
        let reply = new.session.seal(&load, None, &purpose::reply(&new.id));
        envelope.insert("load".into(), reply.into());
        assert_eq!(new.send(&envelope, "").await, REFUSED.into());
    })
    .await;
    for minion in [&mut old, &mut new] {
        // An older protocol with fewer proofs.
        refused(&system, 1, "protocol version 2 is too old", async {
            let load = minion.proven(ping());
            let mut envelope = minion.sealed(&load);
            envelope.insert("version".into(), 2.into());
            assert_eq!(minion.send(&envelope, "").await, REFUSED.into());
        })
        .await;
        assert_eq!(minion.ask(ping()).await, list!["base"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_that_are_paths_are_refused() {
    let system = System::start("").await;
    let client = RequestClient::new(system.request_endpoint(), Limits::default());
    let pem = PrivateKey::generate(2048).unwrap().public().to_pem();
    let long = "x".repeat(300);
    for id in ["../web1", "/etc/passwd", "a/b", "a\\b", "..", ".", "", ".hidden", "a\0b", "a\nb", &long] {
        refused(&system, 1, "cannot be a minion id", async {
            let load = map! {"cmd" => "_auth", "id" => id, "pub" => &pem, "nonce" => "n"};
            let answer = client.request(Envelope::clear(load), support::TIMEOUT).await.unwrap();
            assert_eq!(msgpack::unpack(&answer).unwrap(), REFUSED.into(), "{id:?}");
        })
        .await;
    }
    let count_keys = |directory: &str| std::fs::read_dir(system.path(directory)).map_or(0, Iterator::count);
    assert_eq!(
        ["pki/minions", "pki/minions_pre", "pki/minions_denied", "pki/minions_rejected"].map(count_keys),
        [0; 4]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn job_ids_that_are_paths_are_refused() {
    let system = System::start("order_masters: True\n").await;
    let mut rogue = Raw::join(&system, "rogue", Cipher::AesCbcHmac).await;
    for jid in ["../../../owned", "/owned", "20261121\0", "..", "2026112100000000000/", "x".repeat(300).as_str()] {
        for cmd in ["_return", "pub_ret", "_syndic_return"] {
            refused(&system, 1, "job id", async {
                let returned = if cmd == "_syndic_return" { map! {"web1" => true}.into() } else { Value::Bool(true) };
                let load = map! {"cmd" => cmd, "jid" => jid, "fun" => "test.ping", "return" => returned};
                let answer = rogue.ask(load).await;
                assert!(!answer.is_truthy(), "{cmd} {jid}: {answer}");
            })
            .await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_without_a_minion_or_job_are_refused() {
    let system = System::start("order_masters: True\n").await;
    let mut rogue = Raw::join(&system, "rogue", Cipher::Aes256Gcm).await;
    for (load, words) in [
        (map! {"cmd" => "_return", "fun" => "test.ping", "return" => true}, "return refused: it has no job id"),
        (
            map! {"cmd" => "_return", "jid" => 5, "fun" => "test.ping", "return" => true},
            "return refused: it has no job id",
        ),
        (
            map! {"cmd" => "_syndic_return", "jid" => "20261120235852025555", "return" => map! {"../web1" => true}},
            "return of a syndic refused: the minion id is invalid",
        ),
        (map! {"cmd" => "_syndic_return", "jid" => "20261120235852025555"}, "has no field 'return'"),
    ] {
        refused(&system, 1, words, async {
            assert!(!rogue.ask(load.clone()).await.is_truthy(), "{load:?}");
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_for_files_outside_of_the_roots_are_logged() {
    let system = System::start("fileserver_followsymlinks: False\n").await;
    system.write("srv/secret", "secret");
    system.write("srv/salt/open.txt", "open");
    std::os::unix::fs::symlink(system.path("srv"), system.path("srv/salt/out")).unwrap();
    let mut rogue = Raw::join(&system, "rogue", Cipher::Aes256Gcm).await;
    let absolute = system.path("srv/secret").display().to_string();
    let out = ["../secret", "a/../../secret", &absolute, "x\0", "|../secret", "open.txt?saltenv=../..", "out/secret"];
    let words = "outside of the file roots";
    for (at, path) in out.iter().enumerate() {
        for cmd in ["_serve_file", "_file_hash", "_file_hash_and_stat", "_file_find"] {
            refused(&system, 1, words, async {
                let load = map! {"cmd" => cmd, "path" => *path, "saltenv" => "base", "loc" => 0};
                assert!(!rogue.ask(load).await.to_string().contains("secret\""), "{cmd} {path}");
            })
            .await;
        }
        if at < 2 {
            for cmd in ["_file_list", "_dir_list", "_file_list_emptydirs", "_symlink_list"] {
                refused(&system, 1, words, async {
                    let load = map! {"cmd" => cmd, "prefix" => *path, "saltenv" => "base"};
                    assert!(!rogue.ask(load).await.is_truthy(), "{cmd} {path}");
                })
                .await;
            }
        }
    }
    refused(&system, 1, words, async {
        let load = map! {"cmd" => "_serve_file", "path" => "open.txt", "saltenv" => "../..", "loc" => 0};
        assert_eq!(rogue.ask(load).await, map! {"data" => b"".to_vec(), "dest" => ""}.into());
    })
    .await;
    // A request for a missing file is not counted as an attack.
    refused(&system, 0, words, async {
        for (path, saltenv) in [("none", "base"), ("", "base"), ("open.txt", "none"), ("./open.txt", "base")] {
            rogue.ask(map! {"cmd" => "_serve_file", "path" => path, "saltenv" => saltenv, "loc" => 0}).await;
        }
        rogue.ask(map! {"cmd" => "_file_list", "prefix" => "/open", "saltenv" => "base"}).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publish_is_accepted_once() {
    for algorithm in SignatureAlgorithm::ALL {
        let system = System::start(&format!("publish_signing_algorithm: {algorithm}\n")).await;
        publishes_are_accepted_once(&system, *algorithm).await;
    }
}

async fn publishes_are_accepted_once(system: &System, algorithm: SignatureAlgorithm) {
    let endpoint = Endpoint::Tcp("127.0.0.1".into(), system.publish_port);
    for cipher in Cipher::ALL {
        let topic: &[u8] = if *cipher == Cipher::Aes256Gcm { TOPIC_GCM } else { b"" };
        let mut publishes = Subscriber::connect(&endpoint, &[topic], Limits::default()).await.unwrap();
        let channel = channel(system, *cipher);
        channel.authenticate().await.unwrap();
        assert!(system.tool("salt", &["--async", channel_id(*cipher).as_str(), "test.ping"]).status.success());
        let frames = tokio::time::timeout(support::TIMEOUT, publishes.recv()).await.unwrap().unwrap();
        let payload = frames.last().unwrap();
        let envelope = msgpack::unpack(payload).unwrap();
        assert_eq!(envelope.get("sig_algo"), Some(&algorithm.name().into()), "{cipher}");
        assert_eq!(channel.open_publish(payload).unwrap().fun, "test.ping".into());
        for _ in 0..2 {
            let refused = channel.open_publish(payload).unwrap_err().to_string();
            assert!(refused.contains("a publish is a replay"), "{cipher}: {refused}");
            // A new session does not make a replayed message acceptable.
            channel.authenticate().await.unwrap();
        }
    }
}

fn channel_id(cipher: Cipher) -> String {
    format!("web-{cipher}")
}

/// Creates a regular minion that requires signed publishes.
fn channel(system: &System, cipher: Cipher) -> Arc<Channel> {
    let config = MinionConfig {
        pki_dir: system.path(&format!("{cipher}/pki")),
        master_port: system.ret_port,
        ciphers: vec![cipher.to_string()],
        sign_pub_messages: cipher == Cipher::AesCbcHmac,
        ..MinionConfig::default()
    };
    Arc::new(
        Channel::new(channel_id(cipher).parse().unwrap(), Arc::new(config), "127.0.0.1", support::crypto()).unwrap(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn minions_cannot_forge_publishes_of_the_master() {
    let system = System::start("").await;
    for cipher in Cipher::ALL {
        let rogue = Raw::join(&system, &format!("rogue-{cipher}"), *cipher).await;
        let channel = channel(&system, *cipher);
        channel.authenticate().await.unwrap();
        let job = map! {
            "jid" => "20261120235852025555", "fun" => "cmd.run", "arg" => list!["id"], "tgt" => "*", "tgt_type" => "glob",
            "serial" => i64::MAX,
        };
        // Every minion has the key of the publish stream: it protects against unauthenticated peers, not against
        // minions.
        let sealed = rogue.publish.seal(&msgpack::pack_map(&job), None, purpose::PUBLISH);
        let algorithm = SignatureAlgorithm::default();
        let signed = map! {"sig" => rogue.key.sign(&sealed, algorithm).unwrap(), "sig_algo" => algorithm.name()};
        for (more, said) in [(map! {}, "is not signed with the master's key"), (signed, "the signature is invalid")] {
            let mut envelope = map! {"enc" => "aes", "load" => sealed.clone()};
            envelope.extend(more);
            let refused = channel.open_publish(&msgpack::pack_map(&envelope)).unwrap_err().to_string();
            assert!(refused.contains(said), "{cipher}: {refused}");
        }
    }
}
