//! Returners of web services: requests in the form that each service documents, and its errors.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use crate::support::{Request, Service, free_port, http_server};
use brine_event::Event;
use brine_job::{Load, Return};
use brine_returners::{Options, Returner, open};
use brine_value::{Map, Value, json, list, map};

const JID: &str = "20261120235852025555";

fn returner(name: &str, options: Map) -> Box<dyn Returner> {
    open(name, &Options::new(&map! {name => options, "id" => "web1"}, None)).unwrap()
}

fn returned(id: &str, value: impl Into<Value>) -> Return {
    let fields = map! {
        "jid" => JID, "id" => id, "fun" => "test.arg", "fun_args" => list!["a&b"], "return" => value.into(), "retcode" => 0,
    };
    Return::from_map(fields).unwrap()
}

fn form(request: &Request) -> Vec<(String, String)> {
    assert!(request.headers.contains("content-type: application/x-www-form-urlencoded"), "{request:?}");
    form_urlencoded::parse(request.body.as_bytes()).into_owned().collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// The text of the return of `returned("web1", true)`.
const TEXT: &str =
    "id: web1\r\nfunction: test.arg\r\nfunction args: ['a&b']\r\njid: 20261120235852025555\r\nreturn: True\r\n";

#[test]
fn slack_gets_a_message_of_the_bot() {
    let (url, requests) = http_server(|request| {
        let is_known = request.headers.contains("authorization: Bearer xoxb-1");
        (200, if is_known { r#"{"ok": true}"# } else { r#"{"ok": false, "error": "invalid_auth"}"# }.to_owned())
    });
    let options =
        map! {"api_url" => url, "api_key" => "xoxb-1", "username" => "salt", "as_user" => true, "channel" => "#ops"};
    returner("slack", options.clone()).returner(&returned("web1", true)).unwrap();
    let request = requests.recv().unwrap();
    assert_eq!(request.line, "POST /chat.postMessage");
    let expected = [("channel", "#ops"), ("username", "salt"), ("as_user", "True"), ("text", &format!("```{TEXT}```"))];
    assert_eq!(form(&request), pairs(&expected));
    let mut failing = options.clone();
    failing.insert("api_key".into(), "s3cret".into());
    let error = returner("slack", failing).returner(&returned("web1", true)).unwrap_err().to_string();
    assert!(error.contains("invalid_auth") && !error.contains("s3cret"), "{error}");
    let mut only_failed = options;
    only_failed.extend(map! {"only_show_failed" => true, "yaml_format" => true});
    let states = map! {"a" => map! {"result" => true}, "b" => map! {"result" => false}};
    requests.recv().unwrap();
    returner("slack", only_failed).returner(&returned("web1", states)).unwrap();
    let text = form(&requests.recv().unwrap()).pop().unwrap().1;
    assert!(text.ends_with("return: b:\n  result: false\n\r\n```"), "{text}");
}

#[test]
fn slack_webhook_gets_attachments() {
    let (url, requests) = http_server(|request| match request.line.as_str() {
        "POST /services/T0/B0/x" => (200, "ok".to_owned()),
        _ => (404, "no_team".to_owned()),
    });
    let hook = format!("{url}/services/T0/B0/x");
    returner("slack_webhook", map! {"webhook" => hook}).returner(&returned("web1", true)).unwrap();
    let fields = form(&requests.recv().unwrap());
    assert_eq!(fields[0].0, "payload");
    let payload = json::from_json(&fields[0].1).unwrap();
    let attachments = payload.get("attachments").and_then(Value::as_list).unwrap();
    assert_eq!(attachments[0].get("fallback"), Some(&"web1 | Succeeded".into()));
    let wrong = map! {"webhook" => format!("{url}/services/s3cret")};
    let error = returner("slack_webhook", wrong).returner(&returned("web1", true)).unwrap_err().to_string();
    assert!(error.ends_with("(slack_webhook) failed: status 404: no_team"), "{error}");
}

#[test]
fn telegram_gets_a_message_of_limited_length() {
    let (url, requests) = http_server(|_| (200, r#"{"ok":true}"#.to_owned()));
    let telegram = returner("telegram", map! {"api_url" => url, "token" => "1:s3cret", "chat_id" => -100_200});
    telegram.returner(&returned("web1", true)).unwrap();
    let request = requests.recv().unwrap();
    assert_eq!(request.line, "POST /bot1:s3cret/sendMessage");
    assert_eq!(form(&request), pairs(&[("chat_id", "-100200"), ("text", TEXT)]));
    telegram.returner(&returned("web1", "ü".repeat(10_000))).unwrap();
    assert_eq!(form(&requests.recv().unwrap())[1].1.chars().count(), 4096);
}

#[test]
fn mattermost_gets_returns_and_events() {
    let (url, requests) = http_server(|_| (200, "ok".to_owned()));
    let mattermost = returner("mattermost", map! {"api_url" => url, "hook" => "abc", "channel" => "ops"});
    mattermost.returner(&returned("web1", true)).unwrap();
    let request = requests.recv().unwrap();
    assert_eq!(request.line, "POST /hooks/abc");
    let payload = |request: &Request| json::from_json(&form(request)[0].1).unwrap();
    assert_eq!(payload(&request), map! {"channel" => "ops", "text" => format!("```{TEXT}```")}.into());
    mattermost.event_return(&[Event::from_map("salt/key", &map! {"act" => "accept"}).unwrap()]).unwrap();
    let text = payload(&requests.recv().unwrap()).get("text").unwrap().to_string();
    assert_eq!(text, "```tag: salt/key\r\nact: accept\r\n```");
}

#[test]
fn webhooks_get_json() {
    let (url, requests) = http_server(|request| (if request.body.contains("web2") { 503 } else { 201 }, String::new()));
    let options = map! {
        "url" => format!("{url}/in?token=s3cret"), "method" => "PUT", "headers" => map! {"X-Team" => "ops"}, "username" => "u",
        "password" => "p",
    };
    let webhook = returner("webhook", options);
    webhook.returner(&returned("web1", true)).unwrap();
    let request = requests.recv().unwrap();
    assert_eq!(request.line, "PUT /in?token=s3cret");
    assert!(
        request.headers.contains("x-team: ops") && request.headers.contains("authorization: Basic dTpw"),
        "{request:?}"
    );
    assert_eq!(json::from_json(&request.body).unwrap(), returned("web1", true).map().clone().into());
    assert!(!webhook.stores_events_together());
    webhook.event_return(&[Event::from_map("a/b", &map! {"x" => 1}).unwrap()]).unwrap();
    let body = json::from_json(&requests.recv().unwrap().body).unwrap();
    assert_eq!(body, map! {"tag" => "a/b", "data" => map! {"x" => 1}}.into());
    let error = webhook.returner(&returned("web2", true)).unwrap_err();
    assert!(error.is_outage() && !error.to_string().contains("s3cret"), "{error}");
}

#[test]
fn splunk_gets_documents_one_after_the_other() {
    let (url, requests) = http_server(|request| {
        if request.headers.contains("authorization: Splunk 0-1") {
            (200, r#"{"text":"Success","code":0}"#.to_owned())
        } else {
            (403, r#"{"text":"Invalid token","code":4}"#.to_owned())
        }
    });
    let opts = |token: &str| {
        let options = map! {"indexer" => url.as_str(), "token" => token, "index" => "main", "sourcetype" => "salt"};
        map! {"splunk_http_forwarder" => options, "id" => "boss"}
    };
    let splunk = open("splunk", &Options::new(&opts("0-1"), None)).unwrap();
    let events = [Event::from_map("a", &map! {"x" => 1}).unwrap(), Event::from_map("b", &map! {}).unwrap()];
    splunk.event_return(&events).unwrap();
    let request = requests.recv().unwrap();
    assert_eq!(request.line, "POST /services/collector/event");
    let documents: Vec<&str> = request.body.split_inclusive("\"host\": \"boss\"}").collect();
    assert_eq!(documents.len(), 2);
    let mut document = json::from_json(documents[0]).unwrap();
    assert!(document.as_map_mut().unwrap().shift_remove("time").is_some());
    let expected = map! {
        "index" => "main", "sourcetype" => "salt", "event" => map! {"tag" => "a", "data" => map! {"x" => 1}}, "host" => "boss",
    };
    assert_eq!(document, expected.into());
    splunk.returner(&returned("web1", true)).unwrap();
    assert!(requests.recv().unwrap().body.contains(r#""event": {"jid": "20261120235852025555", "id": "web1""#));
    let error = open("splunk", &Options::new(&opts("s3cret"), None)).unwrap().returner(&returned("web1", true));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("status 403: ") && error.contains("Invalid token") && !error.contains("s3cret"), "{error}");
}

#[test]
fn elasticsearch_gets_indexes_and_documents() {
    // The paths that exist.
    let documents = Mutex::new(std::collections::HashMap::<String, String>::new());
    let (url, requests) = http_server(move |request| {
        let (method, path) = request.line.split_once(' ').unwrap();
        let mut documents = documents.lock().unwrap();
        match method {
            "HEAD" => (if documents.contains_key(path) { 200 } else { 404 }, String::new()),
            "GET" => {
                documents.get(path).map_or((404, "{}".to_owned()), |body| (200, format!("{{\"_source\": {body}}}")))
            }
            "PUT" if path.contains("/_create/") && documents.contains_key(path) => (409, "{}".to_owned()),
            "PUT" => {
                if let Some((_, alias)) = path.split_once("/_alias") {
                    documents.insert(alias.to_owned(), String::new());
                }
                documents.insert(path.to_owned(), request.body.clone());
                (200, "{}".to_owned())
            }
            _ => (
                200,
                r#"{"items": [{"create": {"status": 201}}, {"create": {"status": 400, "error": "mapper"}}]}"#
                    .to_owned(),
            ),
        }
    });
    let nobody = format!("http://127.0.0.1:{}", free_port());
    let elastic = returner("elasticsearch", map! {"hosts" => list![nobody, url], "number_of_shards" => 3});
    let lines = |count: usize| -> Vec<String> { (0..count).map(|_| requests.recv().unwrap().line).collect() };
    elastic.returner(&returned("web1", map! {"a.b" => 1})).unwrap();
    elastic.returner(&returned("web1", "again")).unwrap();
    let document = format!("PUT /salt-test_arg/_create/{JID}_web1");
    let expected = [
        "HEAD /salt-test_arg",
        "PUT /salt-test_arg-v1",
        "PUT /salt-test_arg-v1/_alias/salt-test_arg",
        &document,
        "HEAD /salt-test_arg",
        &document,
    ];
    assert_eq!(lines(6), expected);
    let load = Load::from_map(map! {"jid" => JID, "fun" => "test.arg"}).unwrap();
    elastic.save_load(&load).unwrap();
    assert_eq!(elastic.get_load(load.jid()).unwrap(), Some(load));
    assert_eq!(elastic.get_load(&"20261120235852025556".parse().unwrap()).unwrap(), None);
    lines(6);
    let events = ["a", "b"].map(|tag| Event::from_map(tag, &map! {"x" => 1}).unwrap());
    let error = elastic.event_return(&events).unwrap_err().to_string();
    assert!(error.ends_with("failed: mapper"), "{error}");
    let bulk = lines(3).len();
    assert_eq!(bulk, 3);
    let request = requests.recv().unwrap();
    assert_eq!(request.line, "POST /salt-master-event-cache/_bulk");
    assert!(request.headers.contains("content-type: application/x-ndjson"), "{request:?}");
    let expected = "{\"create\": {}}\n{\"tag\": \"a\", \"data\": {\"x\": 1}}\n{\"create\": {}}\n{\"tag\": \"b\", \"data\": {\"x\": 1}}\n";
    assert_eq!(request.body, expected);
}

/// The directory of the npm packages that `tests/run` installs.
fn node_modules() -> std::path::PathBuf {
    let target = std::env::var("CARGO_TARGET_DIR").map_or_else(
        |_| Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("target"),
        std::path::PathBuf::from,
    );
    target.join("test-node")
}

#[test]
fn couchdb_has_the_returns_of_all_minions() {
    let directory = tempfile::tempdir().unwrap();
    let port = free_port();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/couchdb.js");
    let mut command = Command::new("node");
    command.arg(program).arg(port.to_string()).env("NODE_PATH", node_modules().join("node_modules"));
    let server = Service::start(command, "nodejs and npm, and run tests/run", directory.path(), port);
    let url = format!("http://127.0.0.1:{port}/");
    let couchdb = returner("couchdb", map! {"url" => url.as_str()});
    assert_eq!(couchdb.get_minions().unwrap(), []);
    // The first return creates the database and the views.
    for (id, value) in [("web2", "ü"), ("web1", "b"), ("web2", "again"), ("web1", "again")] {
        couchdb.returner(&returned(id, value)).unwrap();
    }
    couchdb.setup().unwrap();
    let jid = JID.parse().unwrap();
    let returns = couchdb.get_jid(&jid).unwrap();
    let values: Vec<_> =
        returns.iter().map(|(id, one)| (id.to_string(), one.get("return").unwrap().to_string())).collect();
    assert_eq!(values, [("web1".to_owned(), "b".to_owned()), ("web2".to_owned(), "ü".to_owned())]);
    let mut newer = returned("web1", "newer").into_map();
    newer.insert("jid".into(), "20261120235852025555_7".into());
    couchdb.returner(&Return::from_map(newer).unwrap()).unwrap();
    assert_eq!(couchdb.get_jid(&jid).unwrap().len(), 2);
    assert_eq!(couchdb.get_minions().unwrap(), ["web1", "web2"].map(|id| id.parse().unwrap()));
    assert_eq!(couchdb.get_fun("test.arg").unwrap().get("web1").unwrap().get("return"), Some(&"newer".into()));
    assert_eq!(couchdb.get_fun("test.ping").unwrap(), Map::new());
    let jobs = couchdb.get_jids(None).unwrap();
    assert_eq!(jobs.len(), 2);
    assert_eq!(jobs[1].minions(), ["web1", "web2"].map(|id| id.parse().unwrap()));
    let curl = Command::new("curl").arg("-s").arg(format!("{url}salt/{JID}")).output().unwrap().stdout;
    let document = json::from_json(&String::from_utf8(curl).unwrap()).unwrap();
    assert_eq!(document.get("id"), Some(&"web2".into()));
    assert!(document.get("timestamp").and_then(Value::as_f64).is_some_and(|time| time > 1e9), "{document}");
    server.stop();
    assert!(couchdb.returner(&returned("web3", 1)).unwrap_err().is_outage());
}
