//! Returners whose servers do not answer: jobs and their returns do not wait for them, and nothing is lost.

use crate::support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::support::System;
use brine_value::{Value, json, map};

/// Well below the timeouts of requests to servers that do not answer, and well above the duration of a ping.
const SOON: Duration = Duration::from_secs(4);

/// A server that accepts connections and never answers.
fn silent_server() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Answers the requests of a listener, and returns their bodies.
fn answer(listener: TcpListener) -> Receiver<Value> {
    let (sender, bodies) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            if let Some(body) = read(stream)
                && sender.send(body).is_err()
            {
                return;
            }
        }
    });
    bodies
}

fn read(stream: TcpStream) -> Option<Value> {
    let mut stream = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while stream.read_line(&mut line).ok()? > 2 {
        let header = line.to_lowercase();
        if let Some(text) = header.strip_prefix("content-length:") {
            length = text.trim().parse().ok()?;
        }
        line.clear();
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").ok()?;
    json::from_json(&String::from_utf8(body).ok()?).ok()
}

async fn minion(system: &mut System, configuration: &str) {
    system.configure_minion("web1", configuration);
    let mut events = system.events("salt/minion/").await;
    system.spawn_minion("web1");
    events.until("salt/minion/web1/start").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_servers_delay_no_returns() {
    let (_silent, address) = silent_server();
    let options = format!(
        "event_return: [webhook, redis]\nwebhook.url: 'http://{address}/'\nredis.host: 127.0.0.1\nredis.port: {}\n",
        address.port()
    );
    let mut system = System::start(&options).await;
    minion(&mut system, &format!("webhook.url: 'http://{address}/'\n")).await;
    for _ in 0..3 {
        let start = Instant::now();
        let ping = system.salt_json(&["web1", "test.ping", "--return", "webhook"]);
        assert_eq!(ping, map! {"web1" => true}.into());
        assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_an_outage_are_delivered_afterwards_in_order() {
    // The port is free again: connections are refused.
    let (listener, address) = silent_server();
    drop(listener);
    let options = format!(
        "event_return: webhook\nevent_return_whitelist: ['mine/*', 'salt/master/returner/*']\nwebhook.url: 'http://{address}/'\n"
    );
    let system = System::start(&options).await;
    let mut events = system.events("salt/master/returner/").await;
    for number in 0..20 {
        let sent =
            system.tool("salt-run", &["event.send", &format!("mine/{number}"), &format!("{{number: {number}}}")]);
        assert!(sent.status.success());
    }
    let (_, failed) = events.until("salt/master/returner/failed").await;
    assert_eq!(failed.get("returner"), Some(&"webhook".into()));
    let bodies = answer(TcpListener::bind(address).unwrap());
    let mut numbers = Vec::new();
    while numbers.len() < 20 {
        let body = bodies.recv_timeout(Duration::from_secs(60)).unwrap();
        let is_mine = body.get("tag").and_then(Value::as_str).is_some_and(|tag| tag.starts_with("mine/"));
        numbers.extend(body.get("data").and_then(|data| data.get("number")?.as_i64()).filter(|_| is_mine));
    }
    assert_eq!(numbers, (0..20).collect::<Vec<i64>>());
    events.until("salt/master/returner/recovered").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_wait_on_disk_for_the_minions_own_returners() {
    let (listener, address) = silent_server();
    drop(listener);
    let mut system = System::start("").await;
    minion(&mut system, &format!("webhook.url: 'http://{address}/'\n")).await;
    for number in 0..5 {
        system.salt_json(&["web1", "test.echo", &format!("text {number}"), "--return", "webhook"]);
    }
    let waiting = system.path("web1/cache/returners/webhook");
    // Hidden files are not complete yet.
    let is_complete = |file: &std::fs::DirEntry| !file.file_name().as_encoded_bytes().starts_with(b".");
    let count = || std::fs::read_dir(&waiting).map_or(0, |files| files.flatten().filter(is_complete).count());
    support::until("the returns wait on disk", || count() == 5).await;
    // The stored return also survives a kill of the minion.
    system.kill_minion("web1");
    let mut events = system.events("salt/minion/").await;
    system.spawn_minion("web1");
    events.until("salt/minion/web1/start").await;
    let bodies = answer(TcpListener::bind(address).unwrap());
    for number in 0..5 {
        let body = bodies.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!(body.get("return"), Some(&format!("text {number}").into()));
    }
    support::until("nothing is left on disk", || count() == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_external_job_cache_has_jobs_and_returns_and_runners_read_from_it() {
    let database = "sqlite3.database: ROOT/jobs.db\n";
    let mut system = System::start(&format!("ext_job_cache: sqlite3\n{database}")).await;
    let lines = "return: rawfile_json\nrawfile_json.filename: ROOT/lines\n";
    minion(&mut system, &format!("{database}{lines}")).await;
    system.salt_json(&["web1", "test.echo", "text"]);
    let path = system.path("jobs.db").display().to_string();
    let options = brine_returners::Options::new(&map! {"sqlite3.database" => path}, None);
    let cache = brine_returners::open("sqlite3", &options).unwrap();
    let find = || {
        let jobs = cache.get_jids(None).ok()?;
        let job = jobs.into_iter().find(|job| *job.fun() == "test.echo".into())?;
        cache.get_jid(job.jid()).ok()?.get("web1").map(|_| job.jid().to_string())
    };
    support::until("job and return are in the external job cache", || find().is_some()).await;
    let jid = find().unwrap();
    let looked_up = system.tool("salt-run", &["jobs.lookup_jid", &jid, "--out=json"]);
    assert_eq!(json::from_json(&support::stdout(&looked_up)).unwrap(), map! {"web1" => "text"}.into());
    let is_there = |text: String| text.contains("test.echo");
    support::until("the minion's returner has the return", || {
        std::fs::read_to_string(system.path("lines")).is_ok_and(is_there)
    })
    .await;
}
