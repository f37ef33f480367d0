//! The key of the REST API: it names the addresses of users and publishes webhooks, and permits nothing else.

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use brine_value::{Map, Value, list, map, msgpack};
use brine_wire::{Envelope, Forwarded, HookEvent};
use brine_zmtp::{Limits, RequestClient};

use crate::support::api::Api;
use crate::support::{System, TIMEOUT, until};

const CONFIG: &str = "external_auth:
  file:
    ^filename: ROOT/users
    fred: ['.*', '@runner', '@wheel']
";

const API: &str = "api_pidfile: ROOT/api.pid
netapi_enable_clients: [local, runner]
rest_cherrypy:
  port: PORT
  disable_ssl: True
  webhook_disable_auth: True
";

fn api_key(system: &System) -> String {
    std::fs::read_to_string(brine_master_access::access::api_key_path(&system.path("cache"))).unwrap()
}

async fn ask(system: &System, load: Map) -> Value {
    let client = RequestClient::new(system.request_endpoint(), Limits::default());
    let reply = client.request(Envelope::clear(load), Duration::from_secs(60)).await.unwrap();
    msgpack::unpack(&reply).unwrap()
}

fn password(password: &str) -> Map {
    map! {"cmd" => "mk_token", "eauth" => "file", "username" => "fred", "password" => password}
}

/// Returns the name of the error in a reply.
fn refusal(reply: &Value) -> Option<String> {
    let error = reply.get("load").unwrap_or(reply).get("error")?;
    error.get("name").map(ToString::to_string)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stolen_key_publishes_no_jobs_and_calls_no_functions() {
    let mut system = System::new(CONFIG);
    system.write("users", "fred:pw\n");
    system.start_master().await;
    let path = brine_master_access::access::api_key_path(&system.path("cache"));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o400);
    let key = api_key(&system);
    assert_ne!(key, system.root_key());
    let call = |cmd: &str, fun: &str, arg: Value| {
        map! {"cmd" => cmd, "fun" => fun, "arg" => arg, "kwarg" => map! {}, "async" => false, "key" => key.clone(), "user" => "root"}
    };
    let publish = |user: &str| {
        map! {"cmd" => "publish", "tgt" => "*", "fun" => "test.ping", "arg" => list![], "key" => key.clone(), "user" => user}
    };
    for load in [
        publish("root"),
        publish("salt-api"),
        call("runner", "jobs.active", list![]),
        call("runner", "event.send", list!["x/y"]),
        call("runner", "salt.cmd", list!["cmd.run", "id"]),
        call("runner", "auth.list_tokens", list![]),
        call("runner", "auth.del_tokens", list!["fred"]),
        call("runner", "event_bus.replay", list![1]),
        call("wheel", "key.list_all", list![]),
        call("wheel", "event_bus.since", list![1]),
        call("wheel", "auth.del_token", list!["x"]),
    ] {
        let reply = ask(&system, load.clone()).await;
        assert!(refusal(&reply).is_some(), "{load:?}: {reply}");
    }
    // What the API needs on its own behalf.
    for (fun, arg) in [("event_bus.since", list![1]), ("auth.del_token", list!["0".repeat(64)])] {
        let reply = ask(&system, call("runner", fun, arg)).await;
        let data = reply.get("load").unwrap().get("data").unwrap();
        assert_eq!(data.get("success"), Some(&true.into()), "{fun}: {reply}");
    }
    // A forwarded request has the rights of its user alone.
    let address = "198.51.100.7".parse().unwrap();
    let forwarded = |load| Forwarded::to_map(&key, address, load);
    let mut by_root = publish("root");
    by_root.insert("key".into(), system.root_key().into());
    for load in [forwarded(publish("root")), forwarded(by_root), forwarded(call("runner", "jobs.active", list![]))] {
        assert_eq!(ask(&system, load).await, "bad load".into());
    }
    // Webhooks have tags of their own.
    let hook = |key: &str, tag: &str| HookEvent::to_map(key, tag, map! {"post" => map! {"_stamp" => 1}});
    assert_eq!(ask(&system, hook(&key, "salt/job/20261122000000000000/ret/web1")).await, "bad load".into());
    let published = ask(&system, hook(&key, "salt/netapi/hook/x")).await;
    assert_eq!(published.get("load").unwrap().get("success"), Some(&true.into()), "{published}");
    for wrong in ["", "x", &system.root_key()] {
        let refused = ask(&system, hook(wrong, "salt/netapi/hook/x")).await;
        assert_eq!(refusal(&refused).as_deref(), Some("UserAuthenticationError"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_api_names_the_address_of_a_user() {
    let mut system = System::new(CONFIG);
    system.write("users", "fred:pw\n");
    system.start_master().await;
    let mut denied = system.events("brine/access/denied").await;
    let (key, address) = (api_key(&system), "198.51.100.7");
    let forwarded = |key: &str, load| Forwarded::to_map(key, address.parse().unwrap(), load);
    let mut claimed = password("wrong");
    claimed.insert("address".into(), address.into());
    for (load, expected) in [
        (claimed, "127.0.0.1"),
        (forwarded(&"0".repeat(key.len()), password("pw")), "127.0.0.1"),
        (forwarded(&key, password("wrong")), address),
    ] {
        let reply = ask(&system, load.clone()).await;
        assert!(reply.get("token").is_none(), "{reply}");
        let (_, event) = denied.next().await;
        let seen = event.get("address").unwrap().to_string();
        assert!(seen == expected || seen.starts_with(&format!("{expected}:")), "{load:?}: {seen}");
    }
    // Further failures, and this address has to wait; the user from elsewhere has not. The right password is tried at
    // once, because the first pause is as short as the delay of a refusal; on a slow machine once more.
    let (begun, throttled) = (Instant::now(), || system.master_log().matches("too many failures").count());
    loop {
        let before = throttled();
        let guesses = (0..8).map(|_| ask(&system, forwarded(&key, password("wrong"))));
        let right = async {
            until("a guess is throttled", || throttled() > before).await;
            ask(&system, forwarded(&key, password("pw"))).await
        };
        let (guessed, right) = futures::join!(futures::future::join_all(guesses), right);
        assert!(guessed.iter().all(|reply| reply.get("token").is_none()), "{guessed:?}");
        if right.get("token").is_none() {
            break;
        }
        assert!(begun.elapsed() < TIMEOUT, "{}", system.master_log());
    }
    let log = system.master_log();
    let throttled = log.lines().find(|line| line.contains("too many failures")).unwrap_or_else(|| panic!("{log}"));
    assert!(throttled.contains(&format!("peer={address} ")), "{throttled}");
    let elsewhere = Forwarded::to_map(&key, "203.0.113.9".parse().unwrap(), password("pw"));
    assert!(ask(&system, elsewhere).await.get("token").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_works_without_the_root_key() {
    let mut api = Api::start(&format!("{CONFIG}{API}"), &[("users", "fred:pw\n")], &["web1"]).await;
    let root = brine_master_access::access::root_key_path(&api.system.path("cache"), None);
    std::fs::rename(&root, api.system.path("hidden")).unwrap();
    _ = api.child.kill();
    _ = api.child.wait();
    api.child = crate::support::api::serve(&api.system).await;
    let token = api.login("fred", "pw");
    let ping = api.post("/", &token, &list![map! {"client" => "local", "tgt" => "*", "fun" => "test.ping"}]);
    assert_eq!(ping.first(), map! {"web1" => true}.into(), "{ping:?}");
    let active = api.post("/", &token, &list![map! {"client" => "runner", "fun" => "jobs.active"}]);
    assert_eq!(active.status, 200, "{active:?}");
    let hook = api.curl("/hook/x", &["-d", "a=1"]);
    assert_eq!(hook.data(), map! {"success" => true}.into(), "{hook:?}");
    let out = api.curl("/logout", &["-X", "POST", "-H", &format!("X-Auth-Token: {token}")]);
    assert_eq!(out.status, 200, "{out:?}");
    std::fs::rename(api.system.path("hidden"), &root).unwrap();
    let tokens = crate::support::stdout(&api.system.tool("salt-run", &["auth.list_tokens", "--out=json"]));
    assert_eq!(brine_value::json::from_json(&tokens).unwrap(), Value::map());
    // Without its own key it says what to do, and takes a new one without a restart.
    let own = brine_master_access::access::api_key_path(&api.system.path("cache"));
    std::fs::rename(&own, api.system.path("hidden")).unwrap();
    api.system.stop_master();
    api.system.start_master().await;
    assert!(own.exists());
    let token = api.login("fred", "pw");
    assert_eq!(api.get("/stats", &token).status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_lifetimes_of_tokens_are_refused() {
    let api = Api::start(&format!("{CONFIG}{API}"), &[("users", "fred:pw\n")], &[]).await;
    let words = |expire: &str| {
        ["username=fred", "password=pw", "eauth=file", &format!("token_expire={expire}")]
            .iter()
            .flat_map(|field| ["-d".to_owned(), (*field).to_owned()])
            .collect::<Vec<_>>()
    };
    for (path, expire, status) in [
        ("/login", "60", 200),
        ("/login", "1e12", 400),
        ("/login", "-5", 400),
        ("/login", "soon", 400),
        ("/token", "60", 200),
        ("/token", "-5", 400),
    ] {
        let words = words(expire);
        let response = api.curl(path, &words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(response.status, status, "{path} {expire}: {response:?}");
        if status == 400 {
            let text = response.data().get("return").unwrap().to_string();
            assert!(
                text.contains("'token_expire' is invalid: expected a number of seconds from 1 to 315360000"),
                "{text}"
            );
        }
    }
}
