//! Master and minions with `transport: tcp`: streams of msgpack messages in place of ZeroMQ.

use crate::support;

use crate::support::syndic::{Syndic, below};
use crate::support::{BRINE, System, stderr, stdout, text, within_limit};
use brine_value::{Value, list, map};

const TCP: &str = "transport: tcp\n";
/// Minions by id, each with a cipher of its own: publishes with AES-256-GCM have a topic.
const MINIONS: [(&str, &str); 2] = [("gcm", "ciphers: [aes-256-gcm]\n"), ("cbc", "ciphers: [aes-192-cbc-hmac]\n")];

/// Starts a master and its minions, and waits for their start events.
async fn start(extra: &str) -> System {
    let mut system = System::new(&format!("auto_accept: True\n{TCP}{extra}"));
    system.write("srv/pillar/top.sls", "base: {'*': [data]}\n");
    system.write("srv/pillar/data.sls", "greeting: hello {{ grains.id }}\n");
    system.write("srv/salt/files/conf", "{{ pillar.greeting }}\n");
    system.write(
        "srv/salt/web.sls",
        "ROOT/out/{{ grains.id }}:\n  file.managed: [{source: 'salt://files/conf'}, {template: jinja}, {makedirs: True}]\n",
    );
    system.start_master().await;
    let mut events = system.events("salt/minion/").await;
    for (id, ciphers) in MINIONS {
        system.configure_minion(id, &format!("{TCP}{extra}{ciphers}"));
        system.spawn_minion(id);
        events.until(&format!("salt/minion/{id}/start")).await;
    }
    system
}

fn of_all(value: impl Into<Value> + Clone) -> Value {
    MINIONS.iter().map(|(id, _)| ((*id).into(), value.clone().into())).collect::<brine_value::Map>().into()
}

fn ping(system: &System) -> Value {
    let output = system.tool("salt", &["*", "test.ping", "-t", "1", "--static", "--out=json"]);
    brine_value::json::from_json(&stdout(&output)).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_states_and_events() {
    let system = start("").await;
    assert_eq!(system.salt_json(&["*", "test.ping"]), of_all(true));
    for target in [&["-G", "kernel:Linux"][..], &["-L", "gcm,cbc"], &["-C", "gcm or cbc"]] {
        assert_eq!(system.salt_json(&[target, &["test.ping"]].concat()), of_all(true), "{target:?}");
    }
    // The first run makes changes, the second one does not.
    for changed in [true, false] {
        for (id, _) in MINIONS {
            let returned = system.salt_json(&[id, "state.apply", "web"]);
            let (_, state) = returned.get(id).and_then(Value::as_map).unwrap().iter().next().unwrap();
            assert_eq!(state.get("result"), Some(&true.into()), "{returned}");
            assert_eq!(state.get("changes").is_some_and(Value::is_truthy), changed, "{returned}");
            let path = system.path(&format!("out/{id}"));
            assert_eq!(std::fs::read_to_string(path).unwrap(), format!("hello {id}\n"));
        }
    }
    let mut events = system.events("my/tag").await;
    for (id, _) in MINIONS {
        assert_eq!(system.salt_json(&[id, "event.send", "my/tag", "{a: 1}"]), map! {id => true}.into());
        let (_, event) = events.until("my/tag").await;
        assert_eq!(text(&event, "id"), id);
    }
    // More than an unauthenticated peer may send.
    let large = system.salt_json(&["*", "cmd.run", "head -c 900000 /dev/zero | tr '\\0' x"]);
    assert_eq!(large, of_all("x".repeat(900_000)));
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_runners_and_salt_call() {
    let system = start("peer: {'.*': ['test.*']}\n").await;
    let keys = system.tool_async("salt-key", &["-L", "--out=json"]).await;
    let keys = brine_value::json::from_json(&stdout(&keys)).unwrap();
    assert_eq!(keys.get("minions"), Some(&list!["cbc", "gcm"]));
    let up = system.tool_async("salt-run", &["manage.up", "--out=json"]).await;
    assert_eq!(brine_value::json::from_json(&stdout(&up)).unwrap_or_default(), list!["cbc", "gcm"], "{}", stderr(&up));
    assert_eq!(system.salt_json(&["gcm", "publish.publish", "*", "test.ping"]).get("gcm"), Some(&of_all(true)));
    for (id, _) in MINIONS {
        let etc = system.path(&format!("{id}/etc")).display().to_string();
        let call = |words: &[&str]| {
            within_limit(BRINE).args(["salt-call", "-c", &etc, "--out=json"]).args(words).output().unwrap()
        };
        let output = tokio::task::block_in_place(|| call(&["pillar.get", "greeting", "unmask=True"]));
        let said = brine_value::json::from_json(&stdout(&output)).unwrap_or_default();
        assert_eq!(said, map! {"local" => format!("hello {id}")}.into(), "{}", stderr(&output));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn filtered_publishes() {
    let system = start("zmq_filtering: True\n").await;
    assert_eq!(system.salt_json(&["*", "test.ping"]), of_all(true));
    assert_eq!(system.salt_json(&["cbc", "test.ping"]), map! {"cbc" => true}.into());
    assert_eq!(system.salt_json(&["-G", "kernel:Linux", "test.ping"]), of_all(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn minions_reconnect_after_the_master_was_down() {
    let mut system = start("").await;
    assert_eq!(ping(&system), of_all(true));
    for stop in [System::stop_master, System::kill_master] {
        stop(&mut system);
        system.start_master().await;
        support::until("the minions reconnect", || ping(&system) == of_all(true)).await;
    }
    // Rotated keys are fetched, too.
    let mut events = system.events("salt/auth").await;
    system.write("cache/.dfn", "");
    for _ in MINIONS {
        events.until("salt/auth").await;
    }
    support::until("the minions have the new keys", || ping(&system) == of_all(true)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_reach_minions_below_a_syndic() {
    let upper = System::start(&format!("order_masters: True\nsyndic_wait: 15\n{TCP}")).await;
    let mut lower = below(&[upper.ret_port], TCP);
    lower.start_master().await;
    let mut started = lower.events("salt/minion/").await;
    lower.configure_minion("web1", TCP);
    lower.spawn_minion("web1");
    started.until("salt/minion/web1/start").await;
    let mut started = upper.events("salt/syndic/").await;
    lower.write("etc/minion.d/tcp.conf", TCP);
    let _syndic = Syndic::start(&lower, "s1").await;
    started.until("salt/syndic/s1/start").await;
    assert_eq!(upper.salt_json(&["web1", "test.ping"]), map! {"web1" => true}.into());
    let mut events = upper.events("my/tag").await;
    assert_eq!(upper.salt_json(&["web1", "event.send", "my/tag"]), map! {"web1" => true}.into());
    events.until("my/tag").await;
}

/// Peers without a key, on both ports: each loses only its own connections.
#[tokio::test(flavor = "multi_thread")]
async fn hostile_peers_do_not_disturb_minions() {
    use std::io::{ErrorKind, Read, Write};
    use std::net::TcpStream;
    let system = start("message_timeout: 2\n").await;
    let start = b"\x82\xa4head\x80\xa4body";
    let mut open = Vec::new();
    for port in [system.ret_port, system.publish_port] {
        for bytes in [
            // A greeting of ZeroMQ, another protocol, and a reserved byte.
            b"\xff\0\0\0\0\0\0\0\x01\x7f".to_vec(),
            b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            [&start[..], b"\xc1"].concat(),
            // Announced lengths of 4 GB, and nested lists.
            [&start[..], b"\xc6\xff\xff\xff\xff"].concat(),
            [&start[..], b"\xdf\xff\xff\xff\xff"].concat(),
            [&start[..], &vec![0x91; 100_000]].concat(),
        ] {
            let mut peer = TcpStream::connect(("127.0.0.1", port)).unwrap();
            // The master may have closed the connection before everything is sent.
            _ = peer.write_all(&bytes);
            open.push(peer);
        }
        // Incomplete messages, and connections that send nothing.
        for sent in (0..200).map(|n| n % 13) {
            let mut peer = TcpStream::connect(("127.0.0.1", port)).unwrap();
            peer.write_all(&start[..sent.min(start.len())]).unwrap();
            open.push(peer);
        }
    }
    for _ in 0..3 {
        assert_eq!(system.salt_json(&["*", "test.ping"]), of_all(true));
    }
    // Whatever is not a message ends its connection, an incomplete one after the timeout.
    for mut peer in open.drain(..6) {
        peer.set_read_timeout(Some(support::TIMEOUT)).unwrap();
        let ended = peer.read_to_end(&mut Vec::new());
        let is_open = ended.is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
        assert!(!is_open, "the connection stays open");
    }
    assert_eq!(system.salt_json(&["*", "test.ping"]), of_all(true));
    assert!(!system.master_log().contains("panicked"));
}

#[tokio::test(flavor = "multi_thread")]
async fn different_transports_are_named_in_the_log() {
    for (master, minion, message) in [
        (TCP, "", "be a master with `transport: tcp`: set the same transport on both sides"),
        ("", TCP, "the peer speaks ZeroMQ, and this side has `transport: tcp`"),
    ] {
        let mut system = System::start(master).await;
        system.configure_minion("web1", minion);
        system.spawn_minion("web1");
        support::until("the minion names the transport", || system.minion_log("web1").contains(message)).await;
        if !master.is_empty() {
            let named = || system.master_log().contains("the peer speaks ZeroMQ");
            support::until("the master names the transport", named).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unsupported_transports_are_refused() {
    for (config, message) in [
        ("transport: ws\n", "option 'transport': expected zeromq or tcp, got ws, which Brine does not support"),
        ("transport: tcp\nssl: {certfile: /c, keyfile: /k}\n", "option 'ssl': Brine has no TLS for `transport: tcp`"),
    ] {
        let system = System::new(config);
        system.configure_minion("web1", config);
        for (tool, etc) in
            [("salt-master", system.etc()), ("salt-minion", system.path("web1/etc").display().to_string())]
        {
            let output = within_limit(BRINE).args([tool, "-c", &etc]).output().unwrap();
            assert!(!output.status.success() && stderr(&output).contains(message), "{tool}: {}", stderr(&output));
        }
    }
}
