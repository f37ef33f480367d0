//! The REST API as a part of the load: a client that sends webhooks, and one that follows events and continues after
//! each interruption with `Last-Event-ID`.

use std::sync::Arc;
use std::time::Duration;

use brine_value::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::record::{Kind, Record};
use crate::support::TIMEOUT;

/// Pause after a failure, so that an absent API does not make the load spin.
const PAUSE: Duration = Duration::from_millis(50);
/// The user of both clients, and the file with its password.
pub const USERS: &str = "fred:one\n";
/// The options of the master for the API, which listens at `PORT`.
pub const OPTIONS: &str = "api_pidfile: api.pid
api_logfile: ''
external_auth:
  file:
    ^filename: ROOT/users
    fred: ['.*', {events: ['*']}]
rest_cherrypy:
  host: 127.0.0.1
  port: PORT
  disable_ssl: True
  webhook_disable_auth: True
";

/// Sends a request by HTTP 1.0, after whose response the server closes the connection.
async fn send(port: u16, request: &str, headers: &str, body: &str) -> Option<BufReader<TcpStream>> {
    let mut peer = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    let length = body.len();
    let head = format!("{request} HTTP/1.0\r\nHost: test\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
    peer.write_all(head.as_bytes()).await.ok()?;
    Some(BufReader::new(peer))
}

/// Sends a request and returns the body of its successful response.
async fn ask(port: u16, request: &str, body: &str) -> Option<String> {
    let asking = async {
        let mut response = String::new();
        let headers = "Content-Type: application/json\r\nAccept: application/json\r\n";
        send(port, request, headers, body).await?.read_to_string(&mut response).await.ok()?;
        let (head, body) = response.split_once("\r\n\r\n")?;
        (head.get(9..12) == Some("200")).then(|| body.to_owned())
    };
    tokio::time::timeout(TIMEOUT, asking).await.ok()?
}

/// Sends webhooks, one after the other. One that is answered with success is durable.
pub async fn hooks(port: u16, record: Arc<Record>) {
    loop {
        let number = record.number();
        if ask(port, &format!("POST /hook/fault/{number}"), "{}").await.is_some() {
            record.acknowledge(Kind::Hook, number);
            tokio::time::sleep(Duration::from_millis(10)).await;
        } else {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Follows the events of the load, and records the number of each.
pub async fn follow(port: u16, record: Arc<Record>) {
    let mut last = None;
    loop {
        if let Some(token) = token(port).await {
            _ = stream(port, &token, &mut last, &record).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn token(port: u16) -> Option<String> {
    let login = r#"{"username": "fred", "password": "one", "eauth": "file"}"#;
    let answer = json::from_json(&ask(port, "POST /login", login).await?).ok()?;
    Some(answer.get("return")?.as_list()?.first()?.get("token")?.as_str()?.to_owned())
}

/// Reads a stream of events until it ends.
async fn stream(port: u16, token: &str, last: &mut Option<u64>, record: &Record) -> Option<()> {
    let last_event = last.map_or_else(String::new, |last| format!("Last-Event-ID: {last}\r\n"));
    let headers = format!("X-Auth-Token: {token}\r\n{last_event}");
    let mut lines = send(port, "GET /events?tag=fault/*", &headers, "").await?.lines();
    while let Some(line) = lines.next_line().await.ok()? {
        if let Some(seq) = line.strip_prefix("id: ").and_then(|seq| seq.trim().parse().ok()) {
            *last = Some(seq);
            record.streamed(seq);
        }
    }
    Some(())
}
