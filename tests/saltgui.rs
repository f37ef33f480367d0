//! The REST API used by SaltGUI: `tests/saltgui/cases.json` has the requests that its pages send, recorded in
//! Chromium, and the fields of the answers that they read.

use crate::support;

use std::collections::HashMap;
use std::process::Stdio;
use std::time::Instant;

use crate::support::TIMEOUT;
use crate::support::api::{Api, Response};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};

const CONFIG: &str = "id: gui_master
api_pidfile: api.pid
api_logfile: ''
sharedsecret: hush
nodegroups: {web: 'L@m1'}
state_events: True
saltgui_templates: {ping: {command: test.ping, target: '*'}}
netapi_enable_clients: [local, local_async, runner, wheel]
external_auth:
  file:
    ^filename: ROOT/users
    fred: ['.*', '@runner', '@wheel', '@jobs']
reactor:
  - 'go/*': [ROOT/go.sls]
rest_cherrypy:
  host: 127.0.0.1
  port: PORT
  disable_ssl: True
  app: ROOT/gui/index.html
  static: ROOT/gui/static
  static_path: /static
";

const FILES: [(&str, &str); 7] = [
    ("users", "fred:one\n"),
    ("gui/index.html", "<!DOCTYPE html><title>page</title><script src='static/page.js'></script>"),
    ("gui/static/page.js", "const page = 1;"),
    ("srv/salt/one.sls", "it_works:\n  test.succeed_with_changes: []\n"),
    ("srv/salt/orch.sls", "step1:\n  salt.function:\n    - name: test.ping\n    - tgt: m1\n"),
    ("srv/pillar/top.sls", "base: {'*': [data]}\n"),
    ("srv/pillar/data.sls", "colour: blue\n"),
];

const MINION: &str = "mine_functions: {test.ping: [], alias: [{mine_function: test.echo}, a]}
beacons: {status: [{interval: 30}]}
schedule: {job1: {function: test.ping, seconds: 3600, run_on_start: False}}
";

async fn start() -> Api {
    let mut api = Api::start(CONFIG, &FILES, &[]).await;
    for id in ["m1", "m2"] {
        api.system.configure_minion(id, MINION);
        let mut events = api.system.events("salt/minion/").await;
        api.system.spawn_minion(id);
        events.until(&format!("salt/minion/{id}/start")).await;
    }
    api
}

/// Sends a request as a browser does for SaltGUI: JSON with the content type of plain text.
fn send(api: &Api, case: &Value, session: &str, variables: &HashMap<String, String>) -> Response {
    let mut words = vec!["-X".to_owned(), case["method"].as_str().unwrap().to_owned()];
    for header in [
        "Accept: application/json".to_owned(),
        "Cache-Control: no-cache".to_owned(),
        format!("X-Auth-Token: {session}"),
        format!("Cookie: session_id={session}"),
        format!("Origin: {}", api.url),
        "Sec-Fetch-Site: same-origin".to_owned(),
    ] {
        words.extend(["-H".to_owned(), header]);
    }
    if !case["body"].is_null() {
        let body = filled(&case["body"].to_string(), variables);
        words.extend(["-H", "Content-Type: text/plain;charset=UTF-8", "--data-binary", &body].map(str::to_owned));
    }
    api.curl(case["path"].as_str().unwrap(), &words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Replaces `{name}` by a value of an earlier answer.
fn filled(text: &str, variables: &HashMap<String, String>) -> String {
    variables.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

/// Returns whether a field has the value, or the type of value, that SaltGUI expects.
fn matches_expected(actual: Option<&Value>, expected: &Value) -> bool {
    let Some(actual) = actual else { return false };
    let text = actual.as_str().unwrap_or_default();
    match expected["type"].as_str() {
        None => actual == expected,
        Some("string") => actual.is_string(),
        Some("number") => actual.is_number(),
        Some("array") => actual.is_array(),
        Some("object") => actual.is_object(),
        Some("jid") => text.len() == 20 && text.bytes().all(|byte| byte.is_ascii_digit()),
        Some("fingerprint") => {
            text.len() == 95 && text.split(':').all(|byte| byte.len() == 2 && u8::from_str_radix(byte, 16).is_ok())
        }
        Some(other) => panic!("unknown type '{other}'"),
    }
}

/// Returns the fields of an answer that differ from those that SaltGUI expects.
fn mismatches(response: &Response, case: &Value, variables: &HashMap<String, String>) -> Vec<String> {
    let status = case["status"].as_u64().unwrap_or(200);
    if u64::from(response.status) != status {
        return vec![format!("unexpected status {}: {}", response.status, response.body)];
    }
    let Some(reads) = case["reads"].as_object() else { return Vec::new() };
    let answer: Value = serde_json::from_str(&response.body).unwrap();
    let wrong = reads.iter().filter_map(|(at, expected)| {
        let at = filled(at, variables);
        let actual = answer.pointer(&at);
        (!matches_expected(actual, expected)).then(|| format!("{at} is {actual:?} instead of {expected}"))
    });
    wrong.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_receive_the_fields_that_they_read() {
    let api = start().await;
    for id in ["new1", "new2"] {
        std::fs::create_dir_all(api.system.path("pki/minions_pre")).unwrap();
        std::fs::copy(api.system.path("m1/pki/minion.pub"), api.system.path(&format!("pki/minions_pre/{id}"))).unwrap();
    }
    let cases: Vec<Value> = serde_json::from_str(include_str!("saltgui/cases.json")).unwrap();
    let (mut session, mut variables, mut all) = (String::new(), HashMap::new(), Vec::new());
    for case in &cases {
        let begin = Instant::now();
        let (response, wrong) = loop {
            let response = send(&api, case, &session, &variables);
            let wrong = mismatches(&response, case, &variables);
            // Returns of jobs come later.
            if wrong.is_empty() || case["until"] != true || begin.elapsed() > TIMEOUT {
                break (response, wrong);
            }
        };
        all.extend(wrong.into_iter().map(|text| format!("{}: {text}", case["name"])));
        let data: Value = serde_json::from_str(&response.body).unwrap_or_default();
        for (name, at) in case["keep"].as_object().into_iter().flatten() {
            let value = data.pointer(at.as_str().unwrap()).and_then(Value::as_str).unwrap_or_default();
            variables.insert(name.clone(), value.to_owned());
        }
        if case["cookie"] == true {
            session = data["return"][0]["token"].as_str().unwrap_or_default().to_owned();
            let cookie = response.header("set-cookie").unwrap_or_default();
            assert!(cookie.starts_with(&format!("session_id={session};")), "{cookie}");
        }
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn browsers_get_the_page_and_its_files() {
    let api = Api::start(CONFIG, &FILES, &[]).await;
    let page = api.curl("/", &["-H", "Accept: text/html,application/xhtml+xml,*/*;q=0.8"]);
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html")));
    assert!(page.body.contains("<title>page</title>"));
    let script = api.curl("/static/page.js", &["-H", "Accept: */*"]);
    assert_eq!((script.status, script.body.as_str()), (200, "const page = 1;"));
    assert!(script.header("content-type").unwrap().contains("javascript"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_event_stream_shows_jobs_live() {
    let api = start().await;
    let session = api.login("fred", "one");
    let mut child = tokio::process::Command::new("curl")
        .args(["-sSN", &format!("{}/events", api.url), "-H", "Accept: text/event-stream", "-H"])
        .arg(format!("Cookie: session_id={session}"))
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = tokio::time::timeout(TIMEOUT, lines.next_line()).await.unwrap().unwrap();
    assert_eq!(first.as_deref(), Some("retry: 400"));
    let output = api.system.tool_async("salt", &["--async", "m1", "state.apply", "one"]).await;
    let jid = support::stdout(&output).split_whitespace().last().unwrap().to_owned();
    let mut progress = 0;
    loop {
        let line = tokio::time::timeout(TIMEOUT, lines.next_line()).await.unwrap().unwrap().unwrap();
        let Some(text) = line.strip_prefix("data: ") else { continue };
        let event: Value = serde_json::from_str(text).unwrap();
        let (tag, data) = (event["tag"].as_str().unwrap(), &event["data"]);
        if tag == format!("salt/job/{jid}/prog/m1/{progress}") {
            // SaltGUI counts finished states by these events, because the master has `state_events`.
            assert!(data["data"]["ret"].is_object() && data["data"]["len"] == 1, "{data}");
            progress += 1;
        }
        if tag == format!("salt/job/{jid}/ret/m1") {
            assert_eq!(progress, 1, "{text}");
            for name in ["jid", "id", "fun", "fun_args", "return", "retcode", "success", "_stamp"] {
                assert!(!data[name].is_null(), "{name} {data}");
            }
            break;
        }
    }
}
