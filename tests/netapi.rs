//! Compares responses of the REST API with those of Salt's rest_cherrypy, recorded by `tests/netapi/record`.

use std::collections::HashMap;

use crate::support::api::{Api, Response};
use crate::support::until;
use brine_value::{Map, Value, json, list, map};
use regex::Regex;

const CONFIG: &str = "api_pidfile: api.pid
api_logfile: ''
sharedsecret: secret
netapi_enable_clients: [local, local_async, local_batch, local_subset, runner, runner_async, wheel, wheel_async]
external_auth:
  sharedsecret:
    admin: ['.*', '@runner', '@wheel', '@jobs']
    ops: ['test.*']
rest_cherrypy: {port: PORT, host: 127.0.0.1, disable_ssl: True}
";

/// Cases with a different status than Salt's.
const OTHER_STATUS: &[(&str, u16)] = &[
    // A method that a resource does not have.
    ("wrong method", 405),
    // A malformed chunk is the client's error.
    ("local without a target", 400),
    ("local without a function", 400),
    ("runner that is unknown", 400),
    ("keys with a wrong password", 401),
];

/// Cases with another message than Salt's, or another list of clients (Salt's list contains a method that is not a
/// client).
const OTHER_TEXT: &[&str] = &[
    "root",
    "root as yaml",
    "root as html",
    "unknown path",
    "unacceptable answer",
    // The session is checked once for all resources.
    "keys without a session",
];

/// Masks values that differ between runs, like `mask` of `tests/netapi/record`, and the names of the masters' own keys.
struct Masks(Vec<(Regex, &'static str)>);

impl Masks {
    fn new() -> Self {
        let masks = [
            (r"\b\d{20}\b", "<jid>"),
            (r"\b[0-9a-f]{64}\b", "<token>"),
            (r"\b[0-9a-f]{40}\b", "<session>"),
            (r"\b(?:[0-9a-f]{2}:){31}[0-9a-f]{2}\b", "<fingerprint>"),
            (r"\d{4}-\d\d-\d\dT[0-9:.]+(?:\+00:00)?", "<time>"),
            (r"\d{4}, [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d\.\d{6}", "<time>"),
        ];
        Masks(masks.into_iter().map(|(pattern, name)| (Regex::new(pattern).unwrap(), name)).collect())
    }

    fn text(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (pattern, name)| pattern.replace_all(&text, *name).into_owned())
    }

    fn value(&self, value: &Value) -> Value {
        match value {
            Value::Str(text) => self.text(text).into(),
            Value::List(all) => all.iter().map(|one| self.value(one)).collect(),
            Value::Map(map) => {
                // Salt's minions pass the fields of the job to functions that accept any keywords.
                let own = map.iter().filter(|(name, _)| !name.as_str().is_some_and(|name| name.starts_with("__pub_")));
                let pair = |(name, value): (&Value, &Value)| {
                    let masked = match name.as_str() {
                        Some("start" | "expire") => "<seconds>".into(),
                        Some("local") if value.as_list().is_some() => "<keys of the master>".into(),
                        _ => self.value(value),
                    };
                    (self.value(name), masked)
                };
                Value::Map(own.map(pair).collect())
            }
            other => other.clone(),
        }
    }
}

fn text<'a>(case: &'a Value, name: &str) -> Option<&'a str> {
    case.get(name).and_then(Value::as_str)
}

/// Sends the request of a case.
fn ask(api: &Api, case: &Value, sessions: &mut HashMap<String, String>, jid: &str) -> Response {
    let mut words = vec!["-X".to_owned(), text(case, "method").unwrap().to_owned()];
    let mut header = |name: &str, value: &str| words.extend(["-H".to_owned(), format!("{name}: {value}")]);
    header("Accept", text(case, "accept").unwrap_or("application/json"));
    let kind = text(case, "type").or(case.get("json").map(|_| "application/json"));
    header("Content-Type", kind.unwrap_or_default());
    if let Some(user) = text(case, "login") {
        let session = sessions.entry(user.to_owned()).or_insert_with(|| {
            let login = map! {"username" => user, "password" => "secret", "eauth" => "sharedsecret"};
            api.post("/login", "", &login.into()).header("x-auth-token").unwrap().to_owned()
        });
        header("X-Auth-Token", session);
    }
    if let Some(token) = text(case, "token") {
        header("X-Auth-Token", token);
    }
    let body = case.get("json").map(json::to_json).or_else(|| text(case, "body").map(str::to_owned));
    if let Some(body) = body {
        words.extend(["--data-binary".to_owned(), body]);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    api.curl(&text(case, "path").unwrap().replace("{jid}", jid), &words)
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_match_salt() {
    let api = Api::start(CONFIG, &[], &["m1", "m2"]).await;
    let cases = json::from_json(include_str!("netapi/cases.json")).unwrap();
    let salts = json::from_json(include_str!("netapi/salt.json")).unwrap();
    let (masks, mut sessions, mut jid) = (Masks::new(), HashMap::new(), String::new());
    let mut differences = Vec::new();
    for case in cases.as_list().unwrap() {
        let name = text(case, "name").unwrap();
        let expected = salts.get(name).unwrap();
        let response = ask(&api, case, &mut sessions, &jid);
        let status = OTHER_STATUS.iter().find(|(case, _)| *case == name).map(|(_, status)| i64::from(*status));
        let status = status.or(expected.get("status").and_then(Value::as_i64)).unwrap();
        if i64::from(response.status) != status {
            differences.push(format!("{name}: status {} instead of {status}: {}", response.status, response.body));
            continue;
        }
        if name == "local_async" {
            response.first().get("jid").unwrap().to_string().clone_into(&mut jid);
            until("the minions have returned", || {
                api.get(&format!("/jobs/{jid}"), &sessions["admin"]).first().as_map().unwrap().len() == 2
            })
            .await;
        }
        if OTHER_TEXT.contains(&name) || OTHER_STATUS.iter().any(|(case, _)| *case == name) {
            continue;
        }
        let salts_body = expected.get("body").cloned().unwrap_or_default();
        let (ours, theirs) = match text(expected, "type").unwrap() {
            "application/json" => {
                let mut data = response.data();
                if let Some(only) = case.get("only") {
                    data = only_fields(&data, only);
                }
                (json::sorted(&masks.value(&data)), json::sorted(&masks.value(&salts_body)))
            }
            "text/html" => (response.data().get("return").cloned().unwrap_or_default(), salts_body),
            "application/x-tar" => (Value::Nil, Value::Nil),
            _ => (masks.text(&response.body).into(), salts_body),
        };
        if ours != theirs {
            differences.push(format!("{name}:\n  brine {ours}\n  salt  {theirs}"));
        }
        for (header, value) in expected.get("headers").and_then(Value::as_map).into_iter().flatten() {
            let actual = response.header(&header.to_string());
            if actual != value.as_str() {
                differences.push(format!("{name}: {header} is {actual:?} instead of {value}"));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Returns the response with only these fields of each minion.
fn only_fields(data: &Value, only: &Value) -> Value {
    let first = data.get("return").unwrap().as_list().unwrap()[0].as_map().unwrap().clone();
    let fields = |of_minion: &Value| -> Value {
        let names = only.as_list().unwrap().iter();
        Value::Map(
            names.map(|name| (name.clone(), of_minion.get(name.as_str().unwrap()).cloned().unwrap())).collect::<Map>(),
        )
    };
    let minions: Map = first.iter().map(|(id, of_minion)| (id.clone(), fields(of_minion))).collect();
    map! {"return" => list![minions]}.into()
}
