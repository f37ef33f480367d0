//! Limits on the resources of a master that unauthenticated peers can use: memory, time, connections. Other peers are
//! still served.

use crate::support::raw::{Ask, Raw};
use crate::support::zmtp::{Peer, REMOTE};
use crate::support::{System, TIMEOUT};
use brine_crypt::{Cipher, PrivateKey};
use brine_value::{Value, map, msgpack};
use futures::FutureExt;

async fn requests(system: &System, source: &str) -> Peer {
    Peer::tcp(source, system.ret_port, "REQ").await.unwrap()
}

/// Returns the resident memory of the master in bytes: current (`VmRSS:`), or peak (`VmHWM:`).
fn memory(system: &System, field: &str) -> i64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", system.master_pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<i64>().unwrap() << 10
}

fn bad_load() -> Vec<u8> {
    msgpack::pack(&"bad load".into())
}

#[tokio::test(flavor = "multi_thread")]
async fn large_messages_of_unauthenticated_peers_are_answered_and_dropped() {
    let mut system = System::start("").await;
    system.start_minion("web1").await;
    let before = memory(&system, "VmRSS:");
    let mut nested = b"\xdf\xff\xff\xff\xff".repeat(120);
    nested.resize(62_000_000, 0xc0);
    let mut peer = requests(&system, REMOTE).await;
    assert_eq!(peer.request(&nested).await, Some(bad_load()));
    // From the master's own host the message is decoded, within its memory limit.
    let flat = [&b"\xdd\x03\xb2\x0b\x80"[..], &vec![0xc0; 62_000_000]].concat();
    for content in [&nested, &flat] {
        assert_eq!(requests(&system, "127.0.0.1").await.request(content).await, Some(bad_load()));
    }
    let grown = memory(&system, "VmHWM:") - before;
    println!("{} MB for a message of 62 MB", grown >> 20);
    assert!(grown < 100 << 20, "{grown} bytes");
    assert_eq!(system.counter("brine_messages_dropped_total"), 1);
    assert_eq!(system.salt_json(&["web1", "test.ping"]), map! {"web1" => true}.into());
}

/// Sends each request over a new connection, like Salt's minions.
fn connection_per_request(system: &System) -> Ask {
    let port = system.ret_port;
    Box::new(move |request| {
        async move {
            let mut peer = Peer::tcp(REMOTE, port, "REQ").await.unwrap();
            peer.request(&request).await.unwrap().into()
        }
        .boxed()
    })
}

/// Like Salt's minions: one connection for each request, and a large return is the first after a restart.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_return_is_accepted_once_its_minion_has_authenticated_again() {
    let mut system = System::start("max_event_size: 20000000\n").await;
    let key = PrivateKey::generate(2048).unwrap();
    let mut minion = Raw::join_by(connection_per_request(&system), "web1", key, Cipher::AesCbcHmac).await;
    let load = |n: usize| {
        map! {
            "cmd" => "_return", "jid" => format!("2026112023585202555{n}"), "fun" => "test.arg", "fun_args" => Value::List(vec![]),
            "return" => "x".repeat(5_000_000), "retcode" => 0, "success" => true,
        }
    };
    assert_eq!(minion.ask(load(1)).await, Value::Bool(true));
    system.kill_master();
    system.start_master().await;
    assert_eq!(minion.ask(load(2)).await, Value::from("bad load"));
    assert_eq!(system.counter("brine_messages_dropped_total"), 1);
    let mut again = Raw::join_by(connection_per_request(&system), "web1", minion.key, Cipher::AesCbcHmac).await;
    assert_eq!(again.ask(load(2)).await, Value::Bool(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn incomplete_messages_time_out_and_idle_connections_stay() {
    let system = System::start("message_timeout: 1\n").await;
    let mut idle = requests(&system, REMOTE).await;
    let mut halves = Vec::new();
    for (source, size, sent) in
        [(REMOTE, 60_000, 50_000), (REMOTE, 60_000_000, 1_000_000), ("127.0.0.1", 60_000_000, 59_000_000)]
    {
        let mut peer = requests(&system, source).await;
        peer.begin(size, sent).await;
        halves.push(peer);
    }
    for mut peer in halves {
        assert_eq!(tokio::time::timeout(TIMEOUT, peer.frame()).await.expect("the connection is closed"), None);
    }
    assert!(system.master_log().contains("the peer did not finish a message within 1s"));
    assert!(idle.answers_ping().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_of_one_address_are_bounded() {
    let mut system = System::start("max_connections_per_address: 5\n").await;
    let mut open = Vec::new();
    for port in [system.ret_port, system.publish_port].repeat(2) {
        let socket_type = if port == system.ret_port { "REQ" } else { "SUB" };
        open.push(Peer::tcp(REMOTE, port, socket_type).await.unwrap());
    }
    open.push(requests(&system, REMOTE).await);
    for port in [system.ret_port, system.publish_port] {
        assert!(Peer::tcp(REMOTE, port, "DEALER").await.is_none());
    }
    assert!(system.master_log().contains("its address has 5 connections (max_connections_per_address)"));
    // The minion and the tools use another address.
    system.start_minion("web1").await;
    assert_eq!(system.counter("brine_connections_limited_total"), 2);
    open.clear();
    while Peer::tcp(REMOTE, system.ret_port, "REQ").await.is_none() {}
}

#[tokio::test(flavor = "multi_thread")]
async fn heartbeats_are_answered_on_every_socket() {
    let system = System::start("").await;
    let unix = |name: &str| system.path("run").join(name);
    let peers = [
        Peer::tcp(REMOTE, system.ret_port, "DEALER").await,
        Peer::tcp(REMOTE, system.publish_port, "SUB").await,
        Peer::unix(&unix("master_event_pub.ipc"), "SUB").await,
        Peer::unix(&unix("master_event_pull.ipc"), "PUSH").await,
        Peer::unix(&unix("publish_pull.ipc"), "PUSH").await,
    ];
    for peer in peers {
        let mut peer = peer.unwrap();
        let pinged = tokio::time::timeout(TIMEOUT, peer.answers_ping()).await;
        assert!(pinged.expect("the master replies"));
    }
}
