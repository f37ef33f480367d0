//! Webhooks of the REST API: those that are answered with success are in the journal, and signatures are for one path
//! and one time.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::support::api::Api;
use crate::support::{TIMEOUT, stdout};
use brine_digest::{Digest, hex};
use brine_value::{Value, json};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const CONFIG: &str = "api_pidfile: api.pid
api_logfile: ''
event_journal_hours: 1000
external_auth:
  file:
    ^filename: ROOT/users
    fred: ['.*']
rest_cherrypy:
  host: 127.0.0.1
  port: PORT
  disable_ssl: True
";
/// The number of times that the master is killed.
const KILLS: usize = 6;
const SENDERS: usize = 8;

async fn start(options: &str) -> Api {
    Api::start(&format!("{CONFIG}{options}"), &[("users", "fred:one\n")], &[]).await
}

/// Sends a webhook and returns the status and head of the response; `None` if there is none.
async fn send(address: &str, path: &str, headers: &str, body: &str) -> Option<(u16, String)> {
    let sending = async {
        let mut peer = TcpStream::connect(address).await.ok()?;
        let head = format!(
            "POST /hook/{path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        peer.write_all(head.as_bytes()).await.ok()?;
        let mut answer = String::new();
        peer.read_to_string(&mut answer).await.ok()?;
        let status = answer.get(9..12)?.parse().ok()?;
        Some((status, answer))
    };
    tokio::time::timeout(TIMEOUT, sending).await.ok()?
}

/// Returns the tags of all webhooks in the journal.
fn stored(api: &Api) -> Vec<String> {
    let (mut since, mut hooks) = (1, Vec::new());
    loop {
        let page = api.system.tool("salt-run", &["event_bus.since", &since.to_string(), "limit=2000", "--out=json"]);
        let page = json::from_json(&stdout(&page)).unwrap();
        let events = page.as_list().unwrap();
        let Some(last) = events.last() else { return hooks };
        since = last.get("seq").and_then(Value::as_i64).unwrap() + 1;
        let tags = events.iter().map(|event| event.get("tag").unwrap().to_string());
        hooks.extend(tags.filter(|tag| tag.starts_with("salt/netapi/hook/")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_answered_with_success_survive_kills_of_the_master() {
    let mut api = start("  webhook_disable_auth: True\n").await;
    let address = api.url.strip_prefix("http://").unwrap().to_owned();
    let acknowledged = Arc::new(Mutex::new(Vec::new()));
    let others = Arc::new(Mutex::new(HashSet::new()));
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| {
            let (address, acknowledged, others) = (address.clone(), Arc::clone(&acknowledged), Arc::clone(&others));
            tokio::spawn(async move {
                for number in 0.. {
                    let path = format!("{sender}/{number}");
                    match send(&address, &path, "", "{}").await {
                        Some((200, _)) => acknowledged.lock().push(format!("salt/netapi/hook/{path}")),
                        Some((503, head)) => {
                            assert!(head.to_ascii_lowercase().contains("retry-after: "), "{head}");
                            tokio::time::sleep(Duration::from_millis(10)).await;
                        }
                        other => _ = others.lock().insert(other.map(|(status, _)| status)),
                    }
                }
            })
        })
        .collect();
    let count = || acknowledged.lock().len();
    for kill in 0..KILLS {
        // At another moment each time: some webhooks are on their way.
        let before = count();
        crate::support::until("webhooks are answered", || count() >= before + 50 + 37 * kill).await;
        api.system.kill_master();
        api.system.start_master().await;
    }
    let before = count();
    crate::support::until("webhooks are answered", || count() >= before + 50).await;
    senders.iter().for_each(tokio::task::JoinHandle::abort);
    for sender in senders {
        _ = sender.await;
    }
    let stored: HashSet<String> = stored(&api).into_iter().collect();
    let acknowledged = acknowledged.lock().clone();
    let lost: Vec<&String> = acknowledged.iter().filter(|tag| !stored.contains(*tag)).collect();
    assert!(lost.is_empty(), "{} of {} are lost: {lost:?}", lost.len(), acknowledged.len());
    assert!(others.lock().is_empty(), "{:?}", others.lock());
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_that_cannot_be_stored_may_be_repeated() {
    let mut api = start("  webhook_secrets:\n    one: first\n").await;
    let address = api.url.strip_prefix("http://").unwrap().to_owned();
    let signature = hex(Digest::Sha256.hmac(b"first", b"{}").unwrap());
    let signed = format!("X-Hub-Signature-256: sha256={signature}\r\n");
    api.system.kill_master();
    let (status, head) = send(&address, "one", &signed, "{}").await.unwrap();
    assert_eq!(status, 503, "{head}");
    assert!(head.to_ascii_lowercase().contains("retry-after: 5"), "{head}");
    api.system.start_master().await;
    // The failed attempt does not count as published.
    let (status, body) = send(&address, "one", &signed, "{}").await.unwrap();
    assert!(status == 200 && !body.contains("duplicate"), "{body}");
    let (status, body) = send(&address, "one", &signed, "{}").await.unwrap();
    assert!(status == 200 && body.contains("duplicate"), "{body}");
    assert_eq!(stored(&api), ["salt/netapi/hook/one"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn signatures_are_for_one_path_and_one_time() {
    let options = "  webhook_secrets:\n    github/a: first\n    github/b: second\n    'ci/*': third\n    'open/*': {secret: fourth, signs: body, repeats: True}\n";
    let api = start(options).await;
    let address = api.url.strip_prefix("http://").unwrap().to_owned();
    let body = r#"{"ref": "main"}"#;
    let hmac = |secret: &str, signed: &str| hex(Digest::Sha256.hmac(secret.as_bytes(), signed.as_bytes()).unwrap());
    let of_body = |secret: &str| format!("X-Hub-Signature-256: sha256={}\r\n", hmac(secret, body));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let of_request = |time: u64, path: &str| {
        format!(
            "X-Brine-Timestamp: {time}\r\nX-Brine-Signature: {}\r\n",
            hmac("third", &format!("{time}\n{path}\n{body}"))
        )
    };
    for (path, headers, status, is_repeated) in [
        ("github/a", of_body("first"), 200, false),
        ("github/b", of_body("first"), 401, false),
        ("github/a", of_body("first"), 200, true),
        ("github/b", of_body("second"), 200, false),
        ("ci/a", of_body("third"), 401, false),
        ("ci/a", of_request(now, "ci/a"), 200, false),
        ("ci/a", of_request(now, "ci/a"), 200, true),
        ("ci/a", of_request(now + 1, "ci/a"), 200, false),
        ("ci/b", of_request(now, "ci/a"), 401, false),
        ("ci/b", of_request(now - 400, "ci/b"), 401, false),
        ("ci/b", of_request(now + 400, "ci/b"), 401, false),
        ("open/a", of_body("fourth"), 200, false),
        ("open/b", of_body("fourth"), 200, false),
        ("open/a", of_body("fourth"), 200, false),
    ] {
        let (actual, answer) = send(&address, path, &headers, body).await.unwrap();
        assert_eq!((actual, answer.contains("duplicate")), (status, is_repeated), "{path} {headers} {answer}");
    }
    let tags = ["github/a", "github/b", "ci/a", "ci/a", "open/a", "open/b", "open/a"];
    assert_eq!(stored(&api), tags.map(|path| format!("salt/netapi/hook/{path}")));
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_that_nest_too_deep_are_refused_for_good() {
    let api = start("  webhook_disable_auth: True\n").await;
    let address = api.url.strip_prefix("http://").unwrap().to_owned();
    for (levels, status, expected) in [
        (99, 200, "success"),
        (100, 400, "it nests deeper than 100 levels"),
        (127, 400, "it nests deeper than 100 levels"),
        (128, 400, "Invalid JSON document"),
    ] {
        let body = json::to_json(&brine_value::levels::nested(levels));
        let (actual, answer) = send(&address, "deep", "", &body).await.unwrap();
        assert!(actual == status && answer.contains(expected), "{levels}: {answer}");
    }
    assert_eq!(stored(&api), ["salt/netapi/hook/deep"]);
}
