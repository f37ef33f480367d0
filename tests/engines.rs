//! Engines: custom functions and built-in ones that run beside the master and a minion.

use crate::support;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;

use crate::support::{System, free_port, until};
use brine_value::{Map, Value};

const ENGINE: &str = r#"
import os
import salt.utils.event

def start(name="own", **kwargs):
    role = __opts__.get("__role", "minion")
    with salt.utils.event.get_event(role, opts=__opts__, listen=True) as bus:
        fire = bus.fire_event if role == "master" else bus.fire_master
        fire({"pid": os.getpid(), "echo": __salt__["test.echo"]("built in"), "more": sorted(kwargs)},
             "engine/%s/ready" % name)
        for event in bus.iter_events(tag="ask/%s" % name, full=True):
            if event["data"].get("end"):
                os._exit(3)
            if event["data"].get("return"):
                return
            fire({"of": event["tag"], "number": event["data"]["number"] + 1}, "engine/%s/answer" % name)
"#;

fn number(body: &Map, name: &str) -> i64 {
    let data = body.get("data").and_then(Value::as_map).unwrap_or(body);
    data.get(name).and_then(Value::as_i64).unwrap_or_else(|| panic!("{name}: {body:?}"))
}

fn runs(pid: i64) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}

#[tokio::test(flavor = "multi_thread")]
async fn master_engine_receives_and_publishes_events_and_is_restarted() {
    let mut system = System::start("engines:\n- own\n- second: {engine_module: own, name: other, port: 5}\n").await;
    let mut events = system.events("engine/").await;
    until("the engine is not there before the sync", || system.master_log().contains("'own.start' is not available"))
        .await;
    system.write("srv/salt/_engines/own.py", ENGINE);
    let synced = system.tool("salt-run", &["saltutil.sync_engines"]);
    assert!(support::stdout(&synced).contains("engines.own"), "{synced:?}");
    let mut ready = BTreeMap::new();
    while ready.len() < 2 {
        let (tag, body) = events.until("engine/*/ready").await;
        ready.insert(tag, body);
    }
    let other = &ready["engine/other/ready"];
    let (first, second) = (number(&ready["engine/own/ready"], "pid"), number(other, "pid"));
    assert_ne!(first, second, "each engine has a process of its own");
    assert!(format!("{other:?}").contains("port") && format!("{other:?}").contains("built in"), "{other:?}");

    let send = |tag: &str, data: &str| {
        let sent = system.tool("salt-run", &["event.send", tag, data]);
        assert!(sent.status.success(), "{sent:?}");
    };
    send("ask/own/1", r#"{"number": 41}"#);
    let (_, answer) = events.until("engine/own/answer").await;
    assert_eq!(number(&answer, "number"), 42);

    // After a crash and after a return the engine is started again.
    for (how, why) in [("end", "the Python process ended"), ("return", "its function returned")] {
        send("ask/own/2", &format!(r#"{{"{how}": 1}}"#));
        let (_, again) = events.until("engine/own/ready").await;
        assert_ne!(number(&again, "pid"), first);
        assert!(system.master_log().contains(why), "{}", system.master_log());
    }
    send("ask/other/3", r#"{"number": 1}"#);
    let (_, answer) = events.until("engine/other/answer").await;
    assert_eq!(number(&answer, "number"), 2, "the other engine was not touched");
    assert!(runs(second));
    system.stop_master();
    until("the engine ends with its master", || !runs(second)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn minion_engine_uses_the_minions_bus_and_functions() {
    let mut system = System::start("").await;
    system.write("srv/salt/_engines/own.py", ENGINE);
    system.configure_minion("m1", "engines: [own]\n");
    let mut events = system.events("engine/").await;
    system.spawn_minion("m1");
    until("the engine is not there before the sync", || {
        system.minion_log("m1").contains("'own.start' is not available")
    })
    .await;
    system.salt_json(&["m1", "saltutil.sync_engines"]);
    events.until("engine/own/ready").await;
    let fired = system.salt_json(&["m1", "event.fire", "{number: 1}", "ask/own/1"]);
    assert_eq!(fired.get("m1"), Some(&true.into()), "{fired}");
    let (_, answer) = events.until("engine/own/answer").await;
    assert_eq!(number(&answer, "number"), 2);
}

/// Posts a body, once the engine listens, and returns the first line of the response.
async fn post(port: u16, path: &str, body: &str) -> String {
    let mut stream = None;
    until("the engine listens", || {
        stream = TcpStream::connect(("127.0.0.1", port)).ok();
        stream.is_some()
    })
    .await;
    let mut stream = stream.unwrap();
    let length = body.len();
    let request =
        format!("POST {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
    let answer = tokio::task::spawn_blocking(move || {
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    });
    answer.await.unwrap().lines().next().unwrap_or_default().to_owned()
}

/// Returns the configuration of both built-in engines.
fn built_in(port: u16) -> String {
    format!(
        "engines:\n- script: {{cmd: 'sh ROOT/say.sh', interval: 0.1, onchange: True}}\n\
         - webhook: {{address: 127.0.0.1, port: {port}}}\n"
    )
}

const SAY: &str = "echo '{\"tag\": \"own/script\", \"data\": {\"number\": 7}}'\n";

#[tokio::test(flavor = "multi_thread")]
async fn built_in_engines_publish_on_the_masters_bus() {
    let port = free_port();
    let mut system = System::start(&built_in(port)).await;
    let mut events = system.events("").await;
    system.write("say.sh", SAY);
    let (_, said) = events.until("own/script").await;
    assert_eq!(number(&said, "number"), 7);
    assert_eq!(post(port, "/ci/build", "done").await, "HTTP/1.1 200 OK");
    let (_, hook) = events.until("salt/engines/hook/ci/build").await;
    assert_eq!((hook.get("body"), hook.contains_key("_from")), (Some(&"done".into()), false), "{hook:?}");
    // A minion cannot publish webhooks of a master that receives them itself.
    system.start_minion("m1").await;
    let forged = system.salt_json(&["m1", "event.send", "salt/engines/hook/ci/build", "{body: forged}"]);
    assert_eq!(forged.get("m1"), Some(&false.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn custom_module_replaces_the_built_in_engine() {
    let port = free_port();
    let mut system = System::new(&format!("module_dirs: [ROOT/own]\n{}", built_in(port)));
    let own = "import time\ndef start(**kwargs):\n    open('ROOT/own.txt', 'w').close()\n    time.sleep(600)\n";
    system.write("own/engines/webhook.py", own);
    system.write("say.sh", SAY);
    system.start_master().await;
    until("the custom module runs", || system.path("own.txt").exists()).await;
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn built_in_engines_of_a_minion_publish_on_its_masters_bus() {
    let port = free_port();
    let mut system = System::start("").await;
    system.write("say.sh", SAY);
    system.configure_minion("m1", &built_in(port));
    let mut events = system.events("").await;
    system.spawn_minion("m1");
    let (_, said) = events.until("own/script").await;
    assert_eq!((number(&said, "number"), said.get("_from")), (7, Some(&"m1".into())));
    assert_eq!(post(port, "/ci", "{}").await, "HTTP/1.1 200 OK");
    let (_, hook) = events.until("salt/engines/hook/ci").await;
    let data = hook.get("data").unwrap();
    assert_eq!((data.get("body"), hook.get("_from")), (Some(&"{}".into()), Some(&"m1".into())), "{hook:?}");
}
