//! The REST API against everything that clients without a login can send at once, and against users that do not read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::TIMEOUT;
use crate::support::api::Api;
use brine_bus::SocketNames;
use brine_event::Event;
use brine_tls::{Verified, Verifier};
use brine_value::{list, map};
use brine_zmtp::Push;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

const CONFIG: &str = "api_pidfile: api.pid
api_logfile: ''
netapi_enable_clients: [local, runner]
external_auth:
  file:
    ^filename: ROOT/users
    fred: ['.*', '@runner', {events: ['*']}]
rest_cherrypy:
  host: 127.0.0.1
  port: PORT
";
const PLAIN: &str = "  disable_ssl: True\n";
/// The memory in which the API survives, in bytes. The rest of 64 MB is for the program itself and the kernel's sockets.
const MEMORY: usize = 40 << 20;
/// The same through TLS, whose sessions take some more.
const MEMORY_OF_TLS: usize = 52 << 20;
/// The clients of each kind that send at the same time.
const CLIENTS: usize = 40;
/// How long they send.
const FLOOD: Duration = Duration::from_secs(12);

async fn start(options: &str) -> Api {
    Api::start(&format!("{CONFIG}{options}"), &[("users", "fred:one\n")], &[]).await
}

/// Returns the allocated memory of a process, in bytes: without the pages of its program, which differ by build.
fn memory(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<usize>().unwrap() << 10
}

/// Watches the memory of a process.
struct Watch(tokio::task::JoinHandle<()>, Arc<AtomicUsize>);

impl Watch {
    fn start(pid: u32) -> Self {
        let peak = Arc::new(AtomicUsize::new(memory(pid)));
        let watched = Arc::clone(&peak);
        let watching = tokio::spawn(async move {
            let mut samples = tokio::time::interval(Duration::from_millis(10));
            loop {
                samples.tick().await;
                watched.fetch_max(memory(pid), Ordering::Relaxed);
            }
        });
        Watch(watching, peak)
    }

    /// Returns the largest memory, in bytes.
    fn peak(self) -> usize {
        self.0.abort();
        self.1.load(Ordering::Relaxed)
    }
}

fn address(api: &Api) -> String {
    api.url.split_once("://").unwrap().1.to_owned()
}

fn request(path: &str, kind: &str, length: usize) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: test\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n")
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Connects to the API, through TLS if there is a connector.
async fn connect(address: &str, tls: Option<&TlsConnector>) -> Option<Box<dyn Stream>> {
    let peer = TcpStream::connect(address).await.ok()?;
    match tls {
        None => Some(Box::new(peer)),
        Some(tls) => Some(Box::new(tls.connect("localhost".try_into().ok()?, peer).await.ok()?)),
    }
}

/// Returns a connector that accepts any certificate.
fn tls() -> TlsConnector {
    let config =
        rustls::ClientConfig::builder_with_provider(brine_tls::provider()).with_safe_default_protocol_versions();
    let verifier = Verifier::new(Verified::Nothing, None);
    let config = config.unwrap().dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

/// Sends bytes, and returns the status of the response, if there is one.
async fn exchange(address: &str, sent: &[u8]) -> Option<u16> {
    exchange_through(None, address, sent).await
}

async fn exchange_through(tls: Option<&TlsConnector>, address: &str, sent: &[u8]) -> Option<u16> {
    let exchange = async {
        let (mut receiver, mut sender) = tokio::io::split(connect(address, tls).await?);
        let mut head = [0; 12];
        let (_, read) = tokio::join!(sender.write_all(sent), receiver.read_exact(&mut head));
        read.ok()?;
        std::str::from_utf8(&head[9..]).ok()?.parse().ok()
    };
    tokio::time::timeout(TIMEOUT, exchange).await.ok()?
}

const JSON: &str = "application/json";
const YAML: &str = "application/x-yaml";
const FORM: &str = "application/x-www-form-urlencoded";

/// Returns everything that clients without a login may send: the name, the request, and whether the client sends the
/// last byte.
fn hostile_requests() -> Vec<(&'static str, Vec<u8>, bool)> {
    let size = 1_000_000;
    let repeated = |text: &str, size: usize| text.repeat(size / text.len());
    let with =
        |path: &str, kind: &str, body: &str| [request(path, kind, body.len()), body.to_owned()].concat().into_bytes();
    let bomb = |levels: usize| {
        let level = |i: usize| format!("a{i}: &a{i} [{}]\n", vec![format!("*a{}", i - 1); 9].join(","));
        format!("a0: &a0 [x,x,x,x,x,x,x,x,x]\n{}", (1..levels).map(level).collect::<String>())
    };
    let argument = format!(
        r#"[{{"client":"local","tgt":"*","fun":"test.ping","arg":["a=[{}]"],"eauth":"file","username":"x","password":"y"}}]"#,
        repeated("x,", 200_000)
    );
    let arguments = format!(
        r#"[{{"client":"local","tgt":"*","fun":"test.ping","arg":[{}"1"],"eauth":"file","username":"x","password":"y"}}]"#,
        repeated(r#""a=[1]","#, size - 1000)
    );
    vec![
        ("stalled bodies", with("/run", JSON, &"x".repeat(900_000)), false),
        ("stalled logins", with("/login", JSON, &"x".repeat(4000)), false),
        ("empty lists", with("/run", JSON, &format!("[{}1]", repeated("[],", size))), true),
        ("mappings", with("/run", JSON, &format!("[{}1]", repeated(r#"{"":1},"#, size))), true),
        ("numbers as text", with("/hook", "text/plain", &format!("[{}1]", repeated("1,", size))), true),
        ("aliases", with("/run", YAML, &bomb(7)), true),
        ("aliases at a login", with("/login", YAML, &bomb(7)), true),
        ("letters", with("/run", YAML, &format!("[{}]", repeated("a,", size))), true),
        ("nulls", with("/keys", YAML, &repeated("- \n", 4000)), true),
        (
            "anchors",
            with(
                "/run",
                YAML,
                &format!("[{}]", (0..70_000).map(|n| format!("&{n:x} a,")).collect::<Vec<_>>().concat()),
            ),
            true,
        ),
        ("forms", with("/run", FORM, &repeated("arg=1&", 65_000)), true),
        ("fields", with("/run", FORM, &(0..100_000).map(|n| format!("{n}=1&")).collect::<Vec<_>>().concat()), true),
        ("an argument", with("/run", JSON, &argument), true),
        ("arguments", with("/run", JSON, &arguments), true),
        ("a large head", format!("GET / HTTP/1.1\r\nHost: test\r\nX-A: {}", "x".repeat(15_000)).into_bytes(), false),
        (
            "many headers",
            format!("GET / HTTP/1.1\r\nHost: test\r\n{}\r\n", repeated("A: b\r\n", 15_000)).into_bytes(),
            true,
        ),
        (
            "pipelined requests",
            repeated("GET /openapi.json HTTP/1.1\r\nHost: test\r\n\r\n", 200_000).into_bytes(),
            false,
        ),
    ]
}

/// Sends requests without a pause until it is over.
async fn flood(
    address: String,
    tls: Option<TlsConnector>,
    (name, mut sent, is_whole): (&'static str, Vec<u8>, bool),
    is_over: Arc<AtomicBool>,
) -> usize {
    if !is_whole {
        sent.pop();
    }
    let mut count = 0;
    while !is_over.load(Ordering::Relaxed) {
        let mut answer = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(3), async {
            let Some(peer) = connect(&address, tls.as_ref()).await else { return };
            let (mut receiver, mut sender) = tokio::io::split(peer);
            // A client that does not read fills the buffers, too.
            if is_whole {
                let (_, _) = tokio::join!(sender.write_all(&sent), receiver.read_to_end(&mut answer));
            } else {
                _ = sender.write_all(&sent).await;
                std::future::pending::<()>().await;
            }
        });
        _ = ended.await;
        assert!(!answer.starts_with(b"HTTP/1.1 500"), "{name}: {}", String::from_utf8_lossy(&answer));
        count += 1;
    }
    count
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_without_a_login_do_not_exhaust_memory_or_delay_others() {
    strangers_do_no_harm(PLAIN, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_without_a_login_do_not_exhaust_memory_through_tls() {
    strangers_do_no_harm("", Some(tls())).await;
}

/// Sends all hostile requests from many clients, and expects that the API stays small and serves others.
async fn strangers_do_no_harm(options: &str, tls: Option<TlsConnector>) {
    let allowed = if tls.is_some() { MEMORY_OF_TLS } else { MEMORY };
    let mut api = start(options).await;
    let (pid, target) = (api.child.id(), address(&api));
    let token = api.login("fred", "one");
    let watch = Watch::start(pid);
    let is_over = Arc::new(AtomicBool::new(false));
    let mut floods = JoinSet::new();
    for sent in hostile_requests() {
        for _ in 0..CLIENTS {
            floods.spawn(flood(target.clone(), tls.clone(), sent.clone(), Arc::clone(&is_over)));
        }
    }
    // Meanwhile users log in and are served. A new connection may be closed in favour of others of its address.
    let login = map! {"username" => "fred", "password" => "one", "eauth" => "file"};
    let body = brine_value::json::to_json(&login.into());
    let login = format!("{}{body}", request("/login", JSON, body.len()));
    let ask = format!("GET /stats HTTP/1.1\r\nHost: test\r\nX-Auth-Token: {token}\r\nConnection: close\r\n\r\n");
    let (begun, mut logins, mut answers) = (Instant::now(), 0, 0);
    // On a busy host a login takes longer: the flood goes on until enough have succeeded.
    while begun.elapsed() < FLOOD || (logins.min(answers) <= 3 && begun.elapsed() < FLOOD * 6) {
        logins += usize::from(exchange_through(tls.as_ref(), &target, login.as_bytes()).await == Some(200));
        answers += usize::from(exchange_through(tls.as_ref(), &target, ask.as_bytes()).await == Some(200));
    }
    is_over.store(true, Ordering::Relaxed);
    let sent: usize = floods.join_all().await.into_iter().sum();
    assert!(sent > 2 * 17 * CLIENTS, "{sent} requests");
    assert!(logins > 3 && answers > 3, "{logins} logins and {answers} answers beside {sent} requests");
    assert!(api.child.try_wait().unwrap().is_none(), "the API has ended");
    let peak = watch.peak();
    println!("{sent} requests, {logins} logins, {answers} answers, peak {} kB", peak >> 10);
    assert!(peak < allowed, "the API took {} kB", peak >> 10);
    let ended = api.get("/stats", &token);
    assert_eq!(ended.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_hostile_body_is_refused() {
    let api = start(PLAIN).await;
    let target = address(&api);
    for (name, sent, is_whole) in hostile_requests().into_iter().filter(|(_, _, is_whole)| *is_whole) {
        let status = exchange(&target, &sent).await;
        assert!(matches!(status, Some(400 | 401 | 413 | 431)), "{name}: {status:?} {is_whole}");
    }
    let body = "x".repeat(4097);
    for path in ["/login", "/token", "/keys"] {
        let sent = format!("{}{body}", request(path, JSON, body.len()));
        assert_eq!(exchange(&target, sent.as_bytes()).await, Some(413), "{path}");
    }
    // Memory that was taken is released: a body of the largest size is accepted.
    let large = format!("[\"{}\"]", "x".repeat(1_000_000));
    let sent = format!("{}{large}", request("/run", JSON, large.len()));
    assert_eq!(exchange(&target, sent.as_bytes()).await, Some(400));
}

#[tokio::test(flavor = "multi_thread")]
async fn large_forms_do_not_delay_other_requests() {
    let api = start(PLAIN).await;
    let target = address(&api);
    let form = "arg=1&".repeat(65_000 / 6);
    let sent = [request("/run", FORM, form.len()), form].concat();
    let is_over = Arc::new(AtomicBool::new(false));
    let refused = Arc::new(AtomicUsize::new(0));
    let mut senders = JoinSet::new();
    for _ in 0..16 {
        let (target, sent, is_over, refused) =
            (target.clone(), sent.clone(), Arc::clone(&is_over), Arc::clone(&refused));
        senders.spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                refused
                    .fetch_add(usize::from(exchange(&target, sent.as_bytes()).await == Some(413)), Ordering::Relaxed);
            }
        });
    }
    let ask = b"GET /login HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
    let (start, mut times) = (Instant::now(), Vec::new());
    // Each sender has sent several forms.
    while times.len() < 200 || refused.load(Ordering::Relaxed) <= 16 && start.elapsed() < TIMEOUT {
        let begun = Instant::now();
        assert_eq!(exchange(&target, ask).await, Some(200));
        times.push(begun.elapsed());
    }
    is_over.store(true, Ordering::Relaxed);
    senders.join_all().await;
    times.sort();
    assert!(refused.load(Ordering::Relaxed) > 16, "{refused:?} forms");
    assert!(times[times.len() / 2] < Duration::from_millis(500), "median {:?}", times[times.len() / 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_are_strict() {
    let api = start(PLAIN).await;
    let target = address(&api);
    for (head, status) in [
        ("GET /login HTTP/1.1\r\nHost: a\r\n\r\n", 200),
        ("\r\nGET /login HTTP/1.1\r\nHost: a\r\n\r\n", 200),
        ("GET /login HTTP/1.0\r\n\r\n", 200),
        ("GET /login HTTP/1.1\r\n\r\n", 400),
        ("GET /login HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        ("GET /login HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        ("GET /login HTTP/1.1\nHost: a\n\n", 400),
        ("GET /login HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", 400),
        ("GET /login HTTP/1.1\r\nHost: a\r\n\n", 400),
        ("GET /login HTTP/1.1\r\nHost: a\rX: y\r\n\r\n", 400),
    ] {
        assert_eq!(exchange(&target, head.as_bytes()).await, Some(status), "{head:?}");
    }
    // Several requests on a connection, with bodies that contain line feeds.
    let mut peer = TcpStream::connect(&target).await.unwrap();
    let body = "a: b\nc: d\n\n";
    let post = format!("{}{body}", request("/login", YAML, body.len()));
    let get = "GET /login HTTP/1.1\r\nHost: a\r\n\r\n";
    peer.write_all(format!("{get}{post}{get}{post}GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n{get}").as_bytes())
        .await
        .unwrap();
    let mut answers = Vec::new();
    tokio::time::timeout(TIMEOUT, peer.read_to_end(&mut answers)).await.unwrap().unwrap();
    let answers = String::from_utf8_lossy(&answers);
    let statuses: Vec<&str> = answers.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
    assert_eq!(statuses, ["200", "401", "200", "401", "400"], "{answers}");
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_that_are_not_read_hold_little_memory_and_miss_nothing() {
    const STREAMS: usize = 300;
    const EVENTS: usize = 2000;
    let api = start(PLAIN).await;
    let token = api.login("fred", "one");
    let since =
        |seq: u64| format!("GET /events?since={seq}&tag=my/* HTTP/1.1\r\nHost: test\r\nX-Auth-Token: {token}\r\n\r\n");
    let mut push = Push::connect(&SocketNames::master().pull_endpoint(&api.system.path("run"))).await.unwrap();
    // More than the ring and all buffers hold.
    for number in 0..EVENTS {
        let event = Event::from_map(&format!("my/{number}"), &map! {"text" => "x".repeat(16_000)}).unwrap();
        push.send(event.frame()).await.unwrap();
    }
    let (before, watch) = (memory(api.child.id()), Watch::start(api.child.id()));
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        let mut stream = TcpStream::connect(address(&api)).await.unwrap();
        stream.write_all(since(1).as_bytes()).await.unwrap();
        streams.push(stream);
    }
    // A client that reads gets all events, beside those that do not.
    let mut reader = TcpStream::connect(address(&api)).await.unwrap();
    reader.write_all(since(1).as_bytes()).await.unwrap();
    let (mut received, mut chunk, mut rest) = (0, vec![0; 1 << 16], String::new());
    let reading = async {
        while received < EVENTS {
            let count = reader.read(&mut chunk).await.unwrap();
            assert!(count > 0, "the stream ended after {received} events");
            rest.push_str(&String::from_utf8_lossy(&chunk[..count]));
            while let Some(at) = rest.find("\ntag: my/") {
                let Some(end) = rest[at + 9..].find('\n') else { break };
                assert_eq!(rest[at + 9..at + 9 + end].parse::<usize>().unwrap(), received);
                received += 1;
                rest.drain(..at + 9 + end);
            }
        }
    };
    tokio::time::timeout(TIMEOUT, reading).await.unwrap();
    let growth = watch.peak() - before;
    println!("{STREAMS} streams: {} kB", growth >> 10);
    assert!(growth < 40 << 20, "the API grew by {} kB", growth >> 10);
    assert_eq!(api.post("/", &token, &list![map! {"client" => "runner", "fun" => "manage.up"}]).status, 200);
    drop(streams);
}
