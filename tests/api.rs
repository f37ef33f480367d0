//! The REST API as curl, browsers and other clients use it: the real salt-api with a master and minions.

use crate::support;

use std::process::Stdio;

use crate::support::api::{Api, fire, serve, sorted};
use crate::support::{TIMEOUT, until};
use brine_digest::{Digest, hex};
use brine_value::{Value, json, list, map};
use futures::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

const CONFIG: &str = "api_pidfile: api.pid
api_logfile: ''
netapi_enable_clients: [local, local_async, local_batch, local_subset, runner, runner_async, wheel, wheel_async, ssh]
external_auth:
  file:
    ^filename: ROOT/users
    fred: ['.*', '@runner', '@wheel', '@jobs']
    ann: [test.ping]
    joe: [test.ping, {events: ['my/*']}]
    '*': [sys.doc]
";

async fn start(options: &str, minions: &[&str]) -> Api {
    let section = format!("rest_cherrypy:\n  host: 127.0.0.1\n  port: PORT\n{options}");
    Api::start(&format!("{CONFIG}{section}"), &[("users", "fred:one\nann:two\njoe:three\neve:thr33\n")], minions).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_curl_calls_of_the_documentation_work() {
    let api = start("", &["web1", "db1"]).await;
    let key = std::fs::metadata(api.system.path("pki/api.key")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&key.permissions()) & 0o777, 0o600);

    let welcome = api.curl("/", &[]);
    assert_eq!(welcome.data().get("return"), Some(&"Welcome".into()));
    let asked = api.curl("/login", &[]);
    assert_eq!((asked.status, asked.header("www-authenticate")), (200, Some("Session")));

    let login = api.curl(
        "/login",
        &["-H", "Accept: application/x-yaml", "-d", "username=fred", "-d", "password=one", "-d", "eauth=file"],
    );
    assert_eq!(login.status, 200, "{login:?}");
    let token = login.header("x-auth-token").unwrap().to_owned();
    assert_eq!(token.len(), 40);
    let session = &brine_yaml::load(&login.body).unwrap();
    let session = &session.get("return").unwrap().as_list().unwrap()[0];
    assert_eq!(session.get("user"), Some(&"fred".into()));
    assert_eq!(session.get("perms"), Some(&list![".*", "@jobs", "@runner", "@wheel"]));
    let cookie = login.header("set-cookie").unwrap();
    for word in [&format!("session_id={token};"), "HttpOnly", "SameSite=Strict", "Secure"] {
        assert!(cookie.contains(word), "{cookie}");
    }

    // A form, with the header and with the cookie.
    let pong = map! {"web1" => true, "db1" => true};
    let ping = ["-d", "client=local", "-d", "tgt=*", "-d", "fun=test.ping"];
    for credential in [format!("X-Auth-Token: {token}"), format!("Cookie: session_id={token}")] {
        let response = api.curl("/", &[&["-H", &credential][..], &ping].concat());
        assert_eq!(sorted(response.first()), sorted(pong.clone().into()), "{response:?}");
    }
    // Pages of other sites cannot use the cookie.
    let forged = ["-H", &format!("Cookie: session_id={token}"), "-H", "Origin: https://evil.example"];
    assert_eq!(api.curl("/", &[&forged[..], &ping].concat()).status, 403);

    let started = api.post("/minions", &token, &list![map! {"tgt" => "*", "fun" => "status.diskusage"}]);
    assert_eq!(started.status, 202, "{started:?}");
    let jid = started.first().get("jid").unwrap().to_string();
    let link = started.data().get("_links").unwrap().get("jobs").unwrap().as_list().unwrap()[0].clone();
    assert_eq!(link.get("href"), Some(&format!("/jobs/{jid}").into()));
    until("both minions have returned", || {
        api.get(&format!("/jobs/{jid}"), &token).first().as_map().unwrap().len() == 2
    })
    .await;
    let job = api.get(&format!("/jobs/{jid}"), &token).data();
    let info = job.get("info").unwrap().as_list().unwrap()[0].clone();
    assert_eq!((info.get("Function"), info.get("User")), (Some(&"status.diskusage".into()), Some(&"fred".into())));
    let unknown = api.get("/jobs/20200101000000000000", &token).data();
    assert_eq!(unknown.get("return"), Some(&list![Value::map()]));

    let credentials = map! {"client" => "local", "tgt" => "web1", "fun" => "test.ping", "username" => "fred", "password" => "one", "eauth" => "file"};
    let run = api.post("/run", "", &list![credentials.clone()]);
    assert_eq!(run.first(), map! {"web1" => true}.into(), "{run:?}");

    // Requests of pepper and SaltGUI: JSON as text/plain, one mapping, `batch: null`, positional keywords.
    let body = json::to_json(
        &map! {"client" => "local", "tgt" => "web1", "fun" => "test.arg", "arg" => list!["1", "x=2"], "batch" => Value::Nil, "full_return" => true}
            .into(),
    );
    let words = ["-H", &format!("X-Auth-Token: {token}"), "-H", "Content-Type: text/plain;charset=UTF-8", "-d", &body];
    let full = api.curl("/", &words).first();
    let one = full.get("web1").unwrap();
    assert_eq!((one.get("retcode"), one.get("jid").is_some()), (Some(&0.into()), true));
    assert_eq!(one.get("ret").unwrap().get("kwargs").unwrap().get("x"), Some(&2.into()));

    assert_eq!(api.get("/minions/web1", &token).first().get("web1").unwrap().get("id"), Some(&"web1".into()));
    let keys = api.get("/keys", &token).data().get("return").unwrap().clone();
    assert_eq!(sorted(keys.get("minions").unwrap().clone()), list!["db1", "web1"]);
    let finger = api.get("/keys/web1", &token).data();
    assert!(finger.get("return").unwrap().get("minions").unwrap().get("web1").unwrap().to_string().contains(':'));

    // After the logout neither the session nor its token is valid.
    let out = api.curl("/logout", &["-X", "POST", "-H", &format!("X-Auth-Token: {token}")]);
    assert_eq!(out.data(), map! {"return" => "Your token has been cleared"}.into());
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!(api.get("/stats", &token).status, 401);
    let tokens = support::stdout(&api.system.tool("salt-run", &["auth.list_tokens", "--out=json"]));
    assert_eq!(json::from_json(&tokens).unwrap(), Value::map());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_client_answers_in_salts_form() {
    let api = start("  disable_ssl: True\n", &["web1", "web2"]).await;
    let token = api.login("fred", "one");
    let answer = |chunk: brine_value::Map| api.post("/", &token, &chunk.into());
    let local = |client: &str, more: brine_value::Map| {
        let mut chunk = map! {"client" => client, "tgt" => "web*", "fun" => "test.ping"};
        chunk.extend(more);
        answer(chunk)
    };
    let started = local("local_async", map! {}).first();
    assert_eq!(
        (started.get("jid").unwrap().to_string().len(), started.get("minions").unwrap().as_list().unwrap().len()),
        (20, 2)
    );
    assert_eq!(local("local_async", map! {"tgt" => "nobody"}).first(), Value::map());
    assert_eq!(local("local", map! {"tgt" => "nobody"}).first(), Value::map());
    let batch = local("local_batch", map! {"batch" => "100%"}).data();
    assert_eq!(batch.get("return").unwrap().as_list().unwrap().len(), 2, "{batch}");
    let parts = local("local_batch", map! {"batch" => "1", "batch_wait" => 1}).data();
    assert_eq!(parts.get("return").unwrap().as_list().unwrap().len(), 2, "{parts}");
    let subset = local("local_subset", map! {"sub" => "1"}).first();
    assert_eq!(subset.as_map().unwrap().len(), 1);
    let missing = local("local", map! {"tgt" => list!["web1", "web9"], "tgt_type" => "list"}).first();
    assert_eq!(missing.get("web1"), Some(&true.into()));
    assert!(missing.get("web9").unwrap().to_string().starts_with("Minion did not return. [No response]"));
    let several =
        local("local", map! {"fun" => list!["test.ping", "test.echo"], "arg" => list![list![], list!["hi"]]}).first();
    assert_eq!(several.get("web1"), Some(&map! {"test.ping" => true, "test.echo" => "hi"}.into()));
    let alias = local("local", map! {"tgt" => "web1,web2", "expr_form" => "list"}).first();
    assert_eq!(alias.as_map().unwrap().len(), 2);
    let unknown = local("local", map! {"fun" => "no.such"});
    assert_eq!((unknown.status, unknown.first().get("web1")), (200, Some(&"'no.such' is not available.".into())));

    let jobs = answer(map! {"client" => "runner", "fun" => "jobs.list_jobs", "search_function" => list!["test.echo*"]});
    assert_eq!(jobs.first().as_map().unwrap().len(), 1, "{jobs:?}");
    assert_eq!(answer(map! {"client" => "runner", "fun" => "no.such"}).status, 400);
    let full = answer(map! {"client" => "runner", "fun" => "manage.up", "full_return" => true}).first();
    assert!(full.get("tag").unwrap().to_string().ends_with("/ret"));
    assert_eq!(full.get("data").unwrap().get("success"), Some(&true.into()));
    let wheel = answer(map! {"client" => "wheel", "fun" => "key.list_all"}).first();
    let data = wheel.get("data").unwrap();
    assert_eq!(
        (data.get("fun"), data.get("user"), data.get("tag")),
        (Some(&"wheel.key.list_all".into()), Some(&"fred".into()), wheel.get("tag"))
    );
    assert_eq!(data.get("return").unwrap().get("minions_pre"), Some(&list![]));
    for (client, tag) in [("runner_async", "salt/run/"), ("wheel_async", "salt/wheel/")] {
        let fun = if client == "runner_async" { "manage.up" } else { "key.list_all" };
        let started = answer(map! {"client" => client, "fun" => fun}).first();
        assert_eq!(started.get("tag").unwrap().to_string(), format!("{tag}{}", started.get("jid").unwrap()));
    }
    // The results of a lowstate are in the order of its chunks.
    let both = api.post(
        "/",
        &token,
        &list![
            map! {"client" => "local", "tgt" => "web1", "fun" => "test.ping"},
            map! {"client" => "runner", "fun" => "test.arg", "arg" => list!["1"]},
        ],
    );
    assert_eq!(both.data().get("return").unwrap().as_list().unwrap().len(), 2);

    // Pages of jobs, with filters.
    let page = api.get("/jobs?function=test.ping&user=fred&limit=2", &token).data();
    let of = |page: &Value| page.get("return").unwrap().as_list().unwrap()[0].as_map().unwrap().clone();
    let newest = of(&page);
    assert_eq!(newest.len(), 2, "{page}");
    let next = page.get("next").unwrap().to_string();
    let older = of(&api.get(&format!("/jobs?function=test.ping&limit=2&before={next}"), &token).data());
    assert!(older.keys().all(|jid| !newest.contains_key(jid)) && !older.is_empty());
    assert_eq!(of(&api.get("/jobs?user=nobody", &token).data()).len(), 0);
    let failed = of(&api.get("/jobs?failed=true", &token).data());
    assert!(failed.values().any(|job| job.get("Function") == Some(&"no.such".into())), "{failed:?}");
    assert_eq!(api.get("/jobs?x=1", &token).status, 400);

    // A key pair for a new minion.
    let words =
        ["-d", "mid=new1", "-d", "username=fred", "-d", "password=one", "-d", "eauth=file", "-d", "keysize=2048"];
    let made = api.curl("/keys", &words);
    assert_eq!((made.status, made.header("content-type")), (200, Some("application/x-tar")), "{}", made.body);
    assert!(made.body.contains("minion.pem") && made.body.contains("PRIVATE KEY"));
    let keys = api.get("/keys", &token).data().get("return").unwrap().get("minions").unwrap().clone();
    assert!(keys.as_list().unwrap().contains(&"new1".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_have_salts_status() {
    let mut api = start("  disable_ssl: True\n  max_request_body_size: 2000\n", &["web1"]).await;
    let token = api.login("ann", "two");
    let ping = map! {"client" => "local", "tgt" => "*", "fun" => "test.ping"};
    assert_eq!(api.post("/", &token, &ping.clone().into()).status, 200);
    let with = |name: &str, value: Value| {
        let mut chunk = ping.clone();
        chunk.insert(name.into(), value);
        Value::from(chunk)
    };
    for (path, token, body, status, text) in [
        ("/", "", with("fun", "test.ping".into()), 401, "No permission -- see authorization schemes"),
        ("/", "abcdef", with("fun", "test.ping".into()), 401, "No permission -- see authorization schemes"),
        ("/", &token, with("fun", "cmd.run".into()), 401, "Authorization error occurred."),
        ("/", &token, map! {"client" => "runner", "fun" => "jobs.active"}.into(), 401, "Authentication failure of type \"token\" occurred for user ann."),
        ("/", &token, map! {"client" => "wheel", "fun" => "key.list_all"}.into(), 401, "Authentication failure of type \"token\" occurred for user ann."),
        ("/", &token, with("client", "nothing".into()), 400, "Invalid client specified: 'nothing'"),
        ("/", &token, with("client", "ssh".into()), 400, "reading the roster "),
        ("/", &token, with("fun", Value::Nil), 400, "The chunk lacks 'fun'"),
        ("/", &token, with("tgt", Value::Nil), 400, "The chunk lacks 'tgt'"),
        ("/", &token, list![], 200, ""),
        ("/", &token, "text".into(), 400, "Lowstates must be a list"),
        ("/", &token, with("arg", list!["x".repeat(3000)]), 413, "The body is larger than 2000 bytes"),
        ("/run", "", with("fun", "test.ping".into()), 401, "No authentication credentials given"),
        ("/run", "", with("token", "no hexadecimal".into()), 401, "Invalid token"),
        ("/run", "", with("token", token.as_str().into()), 401, "Authentication failure"),
        ("/run", "", map! {"client" => "local", "tgt" => "*", "fun" => "test.ping", "eauth" => "file", "username" => "ann", "password" => "gu3ss"}.into(), 401, "Authentication error occurred."),
        ("/login", "", map! {"username" => "ann", "password" => "gu3ss", "eauth" => "file"}.into(), 401, "Could not authenticate using provided credentials"),
        ("/login", "", map! {"username" => "ann", "password" => "two", "eauth" => "pam"}.into(), 401, "Could not authenticate using provided credentials"),
        ("/login", "", map! {"username" => "ann"}.into(), 401, "Could not authenticate using provided credentials"),
        ("/token", "", map! {"username" => "ann"}.into(), 400, "Require \"username\", \"password\", and \"eauth\" params"),
    ] {
        let response = api.post(path, token, &body);
        assert_eq!(response.status, status, "{path} {body} {response:?}");
        let report = response.data().get("return").unwrap().to_string();
        let is_told = report.contains(text) || (text == "Authentication failure" && report.starts_with("Authentication "));
        assert!(is_told, "{path} {body} {report}");
    }
    // `/run` accepts tokens of `/token` instead of a session.
    let made = api.post("/token", "", &map! {"username" => "ann", "password" => "two", "eauth" => "file"}.into());
    let secret = made.data().as_list().unwrap()[0].get("token").unwrap().clone();
    assert_eq!(secret.to_string().len(), 64);
    let run = api.post("/run", "", &with("token", secret.clone()));
    assert_eq!(run.first(), map! {"web1" => true}.into(), "{run:?}");
    // rest_tornado's clients send such a token as the header.
    assert_eq!(api.post("/", &secret.to_string(), &ping.clone().into()).status, 200);

    // A chunked body is limited as well.
    let large = "x".repeat(10_000);
    let words = ["-H", "Transfer-Encoding: chunked", "-H", &format!("X-Auth-Token: {token}"), "--data-binary", "@-"];
    assert_eq!(api.curl_with_input("/", &words, &large).status, 413);
    assert_eq!(
        api.curl("/", &["-H", "Content-Type: application/xml", "-H", &format!("X-Auth-Token: {token}"), "-d", "<a/>"])
            .status,
        406
    );
    let log = std::fs::read_to_string(api.system.path("api.log")).unwrap();
    assert!(!log.contains(&token) && !log.contains("gu3ss"), "{log}");

    api.system.stop_master();
    assert_eq!(api.post("/", &secret.to_string(), &ping.into()).status, 503);
}

/// The lines of `/events`.
pub struct Lines {
    _child: tokio::process::Child,
    lines: tokio::io::Lines<BufReader<tokio::process::ChildStdout>>,
}

impl Lines {
    pub async fn follow(api: &Api, path: &str, headers: &[&str]) -> Self {
        let mut command = tokio::process::Command::new("curl");
        command.args(["-ksSN", "-i", &format!("{}{path}", api.url)]).stdout(Stdio::piped()).kill_on_drop(true);
        for header in headers {
            command.args(["-H", header]);
        }
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut lines = Lines { _child: child, lines };
        assert_eq!(lines.until("HTTP/1.1 ").await, "HTTP/1.1 200 OK");
        assert_eq!(lines.until("retry:").await, "retry: 400");
        lines
    }

    pub async fn next(&mut self) -> Option<String> {
        tokio::time::timeout(TIMEOUT, self.lines.next_line()).await.unwrap().unwrap()
    }

    /// Returns the next line with this beginning.
    pub async fn until(&mut self, start: &str) -> String {
        loop {
            let line = self.next().await.unwrap_or_else(|| panic!("the stream ended before {start}"));
            if line.starts_with(start) {
                return line;
            }
        }
    }

    /// Returns the number and data of the next event with this tag.
    pub async fn event(&mut self, tag: &str) -> (u64, Value) {
        let mut seq = 0;
        loop {
            let line = self.next().await.unwrap_or_else(|| panic!("the stream ended before {tag}"));
            if let Some(id) = line.strip_prefix("id: ") {
                seq = id.parse().unwrap();
            }
            if line == format!("tag: {tag}") {
                let data = json::from_json(self.until("data: ").await.strip_prefix("data: ").unwrap()).unwrap();
                assert_eq!(data.get("tag"), Some(&tag.into()));
                return (seq, data.get("data").unwrap().clone());
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_followed_over_a_reconnect_without_a_gap() {
    let mut api = start("  disable_ssl: True\n", &[]).await;
    let token = api.login("fred", "one");
    let header = format!("X-Auth-Token: {token}");
    let mut lines = Lines::follow(&api, "/events", &[&header]).await;
    fire(&api, "my/one");
    let (seq, data) = lines.event("my/one").await;
    assert_eq!((data.get("a"), data.get("_seq")), (Some(&1.into()), Some(&seq.into())));
    drop(lines);
    fire(&api, "my/two");
    // A browser sends the number of the last event; no event is lost by a restart of the API and of the master.
    for restart in [false, true] {
        if restart {
            api.child.kill().unwrap();
            api.child.wait().unwrap();
            api.system.stop_master();
            api.system.start_master().await;
            _ = std::fs::remove_file(api.system.path("api.pid"));
            api.child = serve(&api.system).await;
        }
        let header = format!("X-Auth-Token: {}", api.login("fred", "one"));
        let last = format!("Last-Event-ID: {seq}");
        let mut lines = Lines::follow(&api, "/events?tag=my/*", &[&header, &last]).await;
        let id = lines.until("id: ").await;
        assert!(id.strip_prefix("id: ").unwrap().parse::<u64>().unwrap() > seq);
        assert_eq!(lines.until("tag: ").await, "tag: my/two");
        fire(&api, "other/three");
        fire(&api, "my/three");
        assert_eq!(lines.until("tag: ").await, "tag: my/three");
        let mut past = Lines::follow(&api, &format!("/events?since={seq}&tag=my/*"), &[&header]).await;
        for tag in ["tag: my/one", "tag: my/two", "tag: my/three"] {
            assert_eq!(past.until("tag: ").await, tag);
        }
        if !restart {
            let span = Lines::follow(&api, "/events?since=10m&tag=my/one", &[&header]).await.event("my/one").await;
            assert_eq!(span.0, seq);
        }
    }
    let token = api.login("fred", "one");
    for (path, status) in [("/events?token=abc", 400), ("/events?since=yesterday", 400), ("/events?x=1", 400)] {
        assert_eq!(api.get(path, &token).status, status, "{path}");
    }
    // The stream ends with the session.
    let header = format!("Cookie: session_id={token}");
    let mut lines = Lines::follow(&api, "/events", &[&header]).await;
    assert_eq!(api.curl("/logout", &["-X", "POST", "-H", &format!("X-Auth-Token: {token}")]).status, 200);
    while lines.next().await.is_some() {}
}

#[tokio::test(flavor = "multi_thread")]
async fn users_see_the_events_that_their_entries_permit() {
    let api = start("  disable_ssl: True\n", &[]).await;
    let header = format!("X-Auth-Token: {}", api.login("joe", "three"));
    let mut lines = Lines::follow(&api, "/events", &[&header]).await;
    fire(&api, "other/event");
    fire(&api, "my/event");
    // The calls that publish the events are events, too.
    assert_eq!(lines.until("tag: ").await, "tag: my/event");
}

#[tokio::test(flavor = "multi_thread")]
async fn web_sockets_wait_for_the_client() {
    let api = start("  disable_ssl: True\n", &[]).await;
    let token = api.login("fred", "one");
    let address = api.url.replace("http://", "ws://");
    for (path, answer, prefix) in [
        (format!("/ws/{token}"), Some("server received message"), "data: "),
        (format!("/all_events/{token}"), None, ""),
    ] {
        let (mut socket, _) = tokio_tungstenite::connect_async(format!("{address}{path}")).await.unwrap();
        socket.send(Message::text("websocket client ready")).await.unwrap();
        if let Some(answer) = answer {
            assert_eq!(socket.next().await.unwrap().unwrap(), Message::text(answer));
        }
        fire(&api, "my/event");
        loop {
            let message = tokio::time::timeout(TIMEOUT, socket.next()).await.unwrap().unwrap().unwrap();
            let Message::Text(text) = message else { continue };
            let event = json::from_json(text.strip_prefix(prefix).unwrap().trim()).unwrap();
            if event.get("tag") == Some(&"my/event".into()) {
                break;
            }
        }
    }
    for (path, status) in [("/ws/abc", 401), ("/ws/no-hex", 404), ("/all_events/xyz", 404), ("/ws", 401)] {
        let error = tokio_tungstenite::connect_async(format!("{address}{path}")).await.unwrap_err();
        let tokio_tungstenite::tungstenite::Error::Http(response) = error else { panic!("{path}: {error}") };
        assert_eq!(response.status().as_u16(), status, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_publish_events() {
    let options = "  disable_ssl: True\n  webhook_secrets:\n    signed/x: s3cret\n";
    let api = start(options, &[]).await;
    let token = api.login("ann", "two");
    let mut events = api.system.events("salt/netapi/hook").await;
    let header = format!("X-Auth-Token: {token}");
    let body = r#"{"revision": "aa22", "result": true}"#;
    let json = ["-H", "Content-Type: application/json", "-H", "X-My-Secret-Key: F0f", "-d", body];
    assert_eq!(api.curl("/hook/company/build", &json).status, 401);
    let fired = api.curl("/hook/company/build/", &[&json[..], &["-H", &header]].concat());
    assert_eq!(fired.data(), map! {"success" => true}.into());
    let (tag, data) = events.next().await;
    assert_eq!((tag.as_str(), data.get("body")), ("salt/netapi/hook/company/build", Some(&body.into())));
    assert_eq!(data.get("post").unwrap().get("revision"), Some(&"aa22".into()));
    let headers = data.get("headers").unwrap();
    assert_eq!(headers.get("X-My-Secret-Key"), Some(&"F0f".into()));
    assert_eq!(headers.get("X-Auth-Token"), None);

    // A path with a secret requires the signature, also with a login.
    let signature = hex(Digest::Sha256.hmac(b"s3cret", body.as_bytes()).unwrap());
    let signed = format!("X-Hub-Signature-256: sha256={signature}");
    assert_eq!(api.curl("/hook/signed/x", &[&json[..], &["-H", &header]].concat()).status, 401);
    assert_eq!(api.curl("/hook/signed/x", &[&json[..4], &["-H", &signed, "-d", "{}"]].concat()).status, 401);
    assert_eq!(api.curl("/hook/signed/x", &[&json[..], &["-H", &signed]].concat()).status, 200);
    let (tag, data) = events.next().await;
    assert_eq!(tag, "salt/netapi/hook/signed/x");
    assert_eq!(data.get("headers").unwrap().get("X-Hub-Signature-256"), None);

    let empty = api.curl("/hook", &["-X", "POST", "-H", &header]);
    assert_eq!(empty.status, 200);
    let (tag, data) = events.next().await;
    assert_eq!((tag.as_str(), data.get("post")), ("salt/netapi/hook", Some(&Value::map())));
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_requests_do_not_affect_others() {
    let options = "  disable_ssl: True\n  static: ROOT/static\n  max_connections: 20\n";
    let api = start(options, &[]).await;
    api.system.write("static/ok.txt", "fine");
    assert_eq!(api.curl("/static/ok.txt", &[]).body, "fine");
    for path in [
        "/static/../users",
        "/static/..%2fusers",
        "/static/%2e%2e/users",
        "/static//etc/passwd",
        "/static/..%5cusers",
        "/static/%00",
    ] {
        let response = api.curl(path, &[]);
        assert!(matches!(response.status, 400 | 404), "{path} {response:?}");
        assert!(!response.body.contains("fred"), "{path}");
    }
    let address = api.url.strip_prefix("http://").unwrap();
    for garbage in ["GET\r\n\r\n", "\u{16}\u{3}\u{1}\0\0", "GET / HTTP/9.9\r\n\r\n"] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(garbage.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        _ = tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut answer)).await.unwrap();
    }
    // An endless head is refused.
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    let line = format!("X-Filler: {}\r\n", "x".repeat(1000));
    for _ in 0..1000 {
        if stream.write_all(line.as_bytes()).await.is_err() {
            break;
        }
    }
    let mut answer = Vec::new();
    _ = tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut answer)).await.unwrap();
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 431"), "{}", String::from_utf8_lossy(&answer));
    // Connections over the limit are closed at once; earlier ones continue.
    let mut idle = Vec::new();
    for _ in 0..30 {
        idle.push(TcpStream::connect(address).await.unwrap());
    }
    let mut closed = 0;
    for stream in &mut idle {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.ok();
        let mut byte = [0];
        let read = tokio::time::timeout(TIMEOUT, stream.read(&mut byte)).await.unwrap();
        closed += usize::from(!matches!(read, Ok(1)));
    }
    assert!((10..30).contains(&closed), "{closed}");
    drop(idle);
    until("the API answers", || api.curl_status("/") == Some(200)).await;
}
