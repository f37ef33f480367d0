//! Requests of unauthenticated peers and hostile minions are refused, logged and counted, without other effects.

use crate::support;

use crate::support::{System, TIMEOUT, crypto, stdout};
use brine_value::{Value, map, msgpack};
use brine_wire::{Envelope, PublishRequest};
use brine_zmtp::{Limits, RequestClient};
use tokio::io::AsyncWriteExt;

async fn ask(system: &System, request: Vec<u8>) -> Value {
    let client = RequestClient::new(system.request_endpoint(), Limits::default());
    msgpack::unpack(&client.request(request, TIMEOUT).await.unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_requests_are_refused_and_the_master_keeps_serving() {
    let mut system = System::start("max_message_size: 1000000\n").await;
    system.start_minion("web1").await;
    let before = system.counter("brine_requests_refused_total");
    let bad_load = Value::from("bad load");
    let sealed = |id: &str, load: &[u8]| {
        msgpack::pack_map(&map! {"enc" => "aes", "id" => id, "load" => load.to_vec(), "version" => 3})
    };
    let requests = [
        b"garbage".to_vec(),
        vec![0x81, 0xa3],
        Envelope::clear(map! {"cmd" => "_prep_auth_info"}),
        Envelope::clear(map! {"cmd" => "__getattribute__"}),
        Envelope::clear(map! {"cmd" => "_return", "id" => "web1", "jid" => "20261120235852025555", "return" => 1}),
        Envelope::clear(map! {"cmd" => "_minion_event", "id" => "web1", "tag" => "x", "data" => map!{}}),
        Envelope::clear(map! {"nothing" => 1}),
        Envelope::clear(map! {"cmd" => "publish", "tgt" => "*", "fun" => "test.ping", "jid" => "../../x"}),
        sealed("web1", b"not sealed by anybody"),
        sealed("nobody", b"x"),
        sealed("../web1", b"x"),
        msgpack::pack_map(&map! {"enc" => "aes", "id" => "web1", "load" => vec![0u8; 64], "version" => 2}),
    ];
    let count = i64::try_from(requests.len()).unwrap();
    for request in requests {
        assert_eq!(ask(&system, request).await, bad_load);
    }
    assert_eq!(system.counter("brine_requests_refused_total") - before, count);
    assert!(system.master_log().contains("request refused"));
    assert_eq!(system.salt_json(&["web1", "test.ping"]), map! {"web1" => true}.into());
}

#[tokio::test(flavor = "multi_thread")]
async fn publishes_and_calls_require_the_root_key() {
    let mut system = System::start("").await;
    system.start_minion("web1").await;
    let before = system.counter("brine_requests_refused_total");
    let target = system.path("owned").display().to_string();
    let mut publish = PublishRequest::new("*", "cmd.run", "root");
    publish.arg = vec![format!("touch {target}").into()];
    for key in [None, Some(String::new()), Some("wrong".repeat(20))] {
        publish.key = key.clone();
        let mut calls = vec![(publish.to_map(), "AuthenticationError")];
        for cmd in ["runner", "wheel"] {
            let call =
                map! {"cmd" => cmd, "fun" => "key.delete", "kwarg" => map!{"match" => "*"}, "key" => key.clone()};
            let mut own = call.clone();
            own.insert("async".into(), false.into());
            calls.extend([(call, "UserAuthenticationError"), (own, "UserAuthenticationError")]);
        }
        for (call, name) in calls {
            // Calls without `async` are those of Salt's clients, whose replies have no envelope.
            let is_salt = call.get("cmd") != Some(&"publish".into()) && !call.contains_key("async");
            let answer = ask(&system, Envelope::clear(call)).await;
            let reply = if is_salt { &answer } else { answer.get("load").unwrap() };
            assert_eq!(reply.get("error").unwrap().get("name"), Some(&name.into()));
        }
    }
    assert_eq!(system.counter("brine_requests_refused_total") - before, 15);
    assert!(system.master_log().contains("a request of a client is refused"));
    assert_eq!(system.salt_json(&["web1", "test.ping"]), map! {"web1" => true}.into());
    assert!(!system.path("owned").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn oversized_and_broken_frames_end_only_their_connection() {
    let mut system = System::start("max_message_size: 100000\n").await;
    system.start_minion("web1").await;
    for port in [system.ret_port, system.publish_port] {
        for hostile in [&b"\x02\x7f\xff\xff\xff\xff\xff\xff\xff"[..], b"GET / HTTP/1.1\r\n\r\n", b"\x00"] {
            let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let mut greeting = [0; 64];
            (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
            greeting[12..16].copy_from_slice(b"NULL");
            stream.write_all(&greeting).await.unwrap();
            stream.write_all(hostile).await.unwrap();
        }
    }
    let client = RequestClient::new(system.request_endpoint(), Limits::default());
    assert!(client.request(vec![0; 200_000], TIMEOUT).await.is_err());
    assert_eq!(system.salt_json(&["web1", "test.ping"]), map! {"web1" => true}.into());
    assert!(system.counter("brine_connections_refused_total") >= 1);
}

/// A hostile minion with its own keys.
mod rogue {
    use std::path::Path;
    use std::sync::Arc;

    use brine_agent::channel::Channel;
    use brine_config::MinionConfig;

    pub async fn join(directory: &Path, id: &str, port: u16) -> Arc<Channel> {
        let config = MinionConfig { pki_dir: directory.join("rogue"), master_port: port, ..MinionConfig::default() };
        let channel = Arc::new(
            Channel::new(id.parse().unwrap(), Arc::new(config), "127.0.0.1", crate::support::crypto()).unwrap(),
        );
        channel.authenticate().await.unwrap();
        channel
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minion_cannot_impersonate_another() {
    let mut system = System::start("").await;
    system.start_minion("web1").await;
    let rogue = rogue::join(&system.path(""), "rogue", system.ret_port).await;
    let mut events = system.events("").await;
    let event = |tag: &str| map! {"cmd" => "_minion_event", "tag" => tag, "data" => map!{}};
    for tag in
        ["salt/minion/web1/start", "salt/auth", "salt/key", "salt/job/20261120235852025555/ret/web1", "salt/run/1/ret"]
    {
        assert_eq!(rogue.request(event(tag)).await.unwrap(), Value::Bool(false), "{tag}");
    }
    assert_eq!(system.counter("brine_events_refused_total"), 5);
    assert!(system.master_log().contains("event refused: the tag belongs to the master or to another minion"));
    let own = map! {"cmd" => "_minion_event", "tag" => "mine", "data" => map!{"x" => 1}};
    assert_eq!(rogue.request(own).await.unwrap(), Value::Bool(true));
    loop {
        let (tag, data) = events.next().await;
        assert!(!tag.ends_with("/ret/web1") && tag != "salt/minion/web1/start", "{tag}");
        if tag == "mine" {
            assert_eq!(support::text(&data, "id"), "rogue");
            break;
        }
    }
    for path in ["../etc/master", "/etc/passwd", "a/../../etc/master", "\0"] {
        let load = map! {"cmd" => "_serve_file", "path" => path, "saltenv" => "base", "loc" => 0};
        let answer = rogue.request(load).await.unwrap();
        assert_eq!(answer.get("data").and_then(Value::as_bytes).unwrap_or_default(), b"", "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_key_is_denied() {
    let mut system = System::start("").await;
    system.start_minion("web1").await;
    let mut events = system.events("salt/auth").await;
    let config = brine_config::MinionConfig {
        pki_dir: system.path("thief"),
        master_port: system.ret_port,
        ..Default::default()
    };
    let channel =
        brine_agent::channel::Channel::new("web1".parse().unwrap(), std::sync::Arc::new(config), "127.0.0.1", crypto())
            .unwrap();
    let refused = std::sync::Arc::new(channel).authenticate().await.unwrap_err();
    assert!(refused.to_string().contains("has rejected this minion's key"), "{refused}");
    let (_, data) = events.until("salt/auth").await;
    assert_eq!((support::text(&data, "act"), support::text(&data, "result")), ("denied".into(), "False".into()));
    assert!(stdout(&system.tool("salt-key", &["-l", "den"])).contains("web1"));
    assert_eq!(system.salt_json(&["web1", "test.ping"]), map! {"web1" => true}.into());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_is_trusted_only_with_a_valid_key_signature() {
    use brine_crypt::PrivateKey;

    let signs = System::start("master_sign_pubkey: True\n").await;
    let plain = System::start("").await;
    let another = PrivateKey::generate(2048).unwrap().public().to_pem();
    let voucher = std::fs::read_to_string(signs.path("pki/master_sign.pub")).unwrap();
    let master_key = std::fs::read_to_string(signs.path("pki/master.pub")).unwrap();
    // The minion's configuration: the signing key, the master's key, whether it verifies signatures, and always; and
    // its error.
    let cases = [
        (&signs, Some(&voucher), None, true, false, ""),
        (&signs, Some(&voucher), Some(&another), true, false, ""),
        (&signs, Some(&another), Some(&master_key), true, false, ""),
        (&signs, Some(&another), Some(&master_key), true, true, "the signature is not of that key and this one"),
        (&signs, Some(&another), None, true, false, "the signature is not of that key and this one"),
        (&signs, None, None, true, false, "copy this file from the master"),
        (&signs, Some(&voucher), None, false, false, "to this minion and set verify_master_pubkey_sign"),
        (&plain, Some(&voucher), None, true, false, "set master_sign_pubkey there"),
        (&plain, None, Some(&another), false, false, "only if the master's key was replaced on purpose"),
    ];
    for (number, (system, voucher, master, verify, always, reported)) in cases.into_iter().enumerate() {
        let pki_dir = system.path(&format!("minion{number}"));
        std::fs::create_dir(&pki_dir).unwrap();
        for (name, pem) in [("master_sign.pub", voucher), ("minion_master.pub", master)] {
            if let Some(pem) = pem {
                std::fs::write(pki_dir.join(name), pem).unwrap();
            }
        }
        let config = brine_config::MinionConfig {
            pki_dir,
            master_port: system.ret_port,
            verify_master_pubkey_sign: verify,
            always_verify_signature: always,
            ..Default::default()
        };
        let id = format!("minion{number}").parse().unwrap();
        let channel =
            brine_agent::channel::Channel::new(id, std::sync::Arc::new(config), "127.0.0.1", crypto()).unwrap();
        let said = std::sync::Arc::new(channel).authenticate().await;
        let said = said.err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(said.is_empty(), reported.is_empty(), "{number}: {said}");
        assert!(said.contains(reported), "{number}: {said}");
    }
}
