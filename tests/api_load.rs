//! The REST API under hostile and heavy load: slow requests, silent connections and thousands of event streams.

use std::time::Duration;

use crate::support::TIMEOUT;
use crate::support::api::{Api, fire};
use brine_value::{Value, list, map};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const CONFIG: &str = "api_pidfile: api.pid
api_logfile: ''
netapi_enable_clients: [local, runner]
external_auth:
  file:
    ^filename: ROOT/users
    fred: ['.*', '@runner']
rest_cherrypy:
  host: 127.0.0.1
  port: PORT
  disable_ssl: True
";
/// The file descriptors that the test needs in addition to those of its streams.
const OWN_DESCRIPTORS: usize = 500;
const STREAMS: usize = 10_000;
const SLOW_PEERS: usize = 500;

async fn start(options: &str, minions: &[&str]) -> Api {
    Api::start(&format!("{CONFIG}{options}"), &[("users", "fred:one\n")], minions).await
}

async fn connect(api: &Api, head: &str) -> TcpStream {
    let mut peer = TcpStream::connect(api.url.strip_prefix("http://").unwrap()).await.unwrap();
    peer.write_all(head.as_bytes()).await.unwrap();
    peer
}

/// Reads until the input contains the text, and returns everything that was read.
async fn read_until(peer: &mut TcpStream, text: &str) -> String {
    let (mut read, mut chunk) = (Vec::new(), [0; 4096]);
    let reading = async {
        while !String::from_utf8_lossy(&read).contains(text) {
            let count = peer.read(&mut chunk).await.unwrap();
            assert!(count > 0, "the stream ended before {text}: {}", String::from_utf8_lossy(&read));
            read.extend_from_slice(&chunk[..count]);
        }
        String::from_utf8_lossy(&read).into_owned()
    };
    tokio::time::timeout(TIMEOUT, reading).await.unwrap()
}

/// Returns the limit of open files of this process, which the API inherits.
fn descriptors() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap_or(usize::MAX)
}

fn ping(api: &Api, token: &str) -> Value {
    let call = list![map! {"client" => "local", "tgt" => "*", "fun" => "test.ping"}];
    api.post("/", token, &call).first()
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_idle_event_streams_are_served_beside_requests() {
    let count = STREAMS.min(descriptors().saturating_sub(OWN_DESCRIPTORS));
    assert!(count >= 500, "too few file descriptors for this test: raise ulimit -n");
    let api = start("", &["m1"]).await;
    let token = api.login("fred", "one");
    let head = format!("GET /events HTTP/1.1\r\nHost: test\r\nX-Auth-Token: {token}\r\n\r\n");
    let mut streams = Vec::with_capacity(count);
    for _ in 0..count {
        let mut stream = connect(&api, &head).await;
        read_until(&mut stream, "retry: 400").await;
        streams.push(stream);
    }
    assert_eq!(ping(&api, &token), map! {"m1" => true}.into());
    fire(&api, "my/last");
    let mut reading: JoinSet<()> = JoinSet::new();
    for mut stream in streams {
        reading.spawn(async move {
            read_until(&mut stream, "tag: my/last").await;
        });
    }
    let received = reading.join_all().await;
    assert_eq!(received.len(), count);
    // The connections are closed, so new ones are accepted.
    assert_eq!(ping(&api, &token), map! {"m1" => true}.into());
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_peers_are_closed_and_others_are_served() {
    let api = start("  head_timeout: 2\n  body_timeout: 2\n  max_connections: 2000\n", &["m1"]).await;
    let token = api.login("fred", "one");
    let body = "POST /run HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n[";
    let heads = ["POST /run HTTP/1.1\r\nHost: test\r\nX-Slow: ", body, ""];
    let mut peers: JoinSet<Vec<u8>> = JoinSet::new();
    for number in 0..SLOW_PEERS {
        let (kind, mut peer) = (number % heads.len(), connect(&api, heads[number % heads.len()]).await);
        peers.spawn(async move {
            let (mut receiver, mut sender) = peer.split();
            let mut answer = Vec::new();
            let mut next = tokio::time::interval(Duration::from_millis(200));
            let trickle = async {
                // The third kind of peer sends nothing at all.
                while kind < 2 && sender.write_all(b"x").await.is_ok() {
                    next.tick().await;
                }
                std::future::pending::<()>().await;
            };
            tokio::select! {
                _ = tokio::time::timeout(TIMEOUT, receiver.read_to_end(&mut answer)) => {}
                () = trickle => {}
            }
            assert!(kind != 1 || answer.is_empty() || answer.starts_with(b"HTTP/1.1 408"), "{answer:?}");
            answer
        });
    }
    assert_eq!(ping(&api, &token), map! {"m1" => true}.into());
    // Each ends because the server closes it: `TIMEOUT` is far above both timeouts.
    let ended = tokio::time::timeout(TIMEOUT / 2, peers.join_all()).await.unwrap();
    assert_eq!(ended.len(), SLOW_PEERS);
    assert_eq!(ping(&api, &token), map! {"m1" => true}.into());
}
