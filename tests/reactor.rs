//! The reactor in a real master: keys are accepted, highstates run, and no event is lost.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::{AUTH, START, System, TIMEOUT, stdout, text};
use brine_function::Args;
use brine_value::json::to_json;
use brine_value::{Value, map, msgpack};
use brine_wire::{Call, ClientCommand, Envelope};
use brine_zmtp::{Limits, RequestClient};

const REACTOR: &str =
    "reactor:\n  - 'salt/auth': [ROOT/reactor/auth.sls]\n  - 'salt/minion/*/start': [ROOT/reactor/start.sls]\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_new_minion_is_accepted_and_gets_its_highstate() {
    let mut system = System::new(REACTOR);
    system.write("reactor/auth.sls", AUTH);
    system.write("reactor/start.sls", START);
    system.write("srv/salt/top.sls", "base:\n  '*': [one]\n");
    system.write("srv/salt/one.sls", "one:\n  file.managed:\n    - name: ROOT/made\n    - contents: made\n");
    system.start_master().await;
    let mut events = system.events("").await;
    system.configure_minion("web1_youshi", "");
    system.configure_minion("outsider", "");
    system.spawn_minion("web1_youshi");
    let (tag, data) = events.until("salt/auth").await;
    assert_eq!((tag.as_str(), text(&data, "act"), text(&data, "result")), ("salt/auth", "pend".into(), "True".into()));
    assert!(text(&data, "pub").starts_with("-----BEGIN PUBLIC KEY-----"));
    let (_, data) = events.until("salt/wheel/*/new").await;
    assert_eq!((text(&data, "fun"), text(&data, "user")), ("wheel.key.accept".into(), "Reactor".into()));
    let (_, data) = events.until("salt/key").await;
    assert_eq!((text(&data, "act"), text(&data, "id")), ("accepted".into(), "web1_youshi".into()));
    events.until("minion_start").await;
    events.until("salt/minion/web1_youshi/start").await;
    let (_, data) = events.until("salt/job/*/new").await;
    assert_eq!(
        (text(&data, "fun"), text(&data, "user"), text(&data, "tgt")),
        ("state.highstate".into(), "Reactor".into(), "web1_youshi".into())
    );
    let (_, data) = events.until("salt/job/*/ret/web1_youshi").await;
    assert_eq!(
        (text(&data, "retcode"), text(&data, "success"), text(&data, "out")),
        ("0".into(), "True".into(), "highstate".into())
    );
    assert_eq!(std::fs::read_to_string(system.path("made")).unwrap(), "made\n");

    // An id without a matching reaction stays pending.
    system.spawn_minion("outsider");
    loop {
        let (_, data) = events.until("salt/auth").await;
        if text(&data, "id") == "outsider" {
            assert_eq!(text(&data, "act"), "pend");
            break;
        }
    }
    let listed = stdout(&system.tool("salt-key", &["-L"]));
    assert_eq!(
        listed.trim_end(),
        "Accepted Keys:\nweb1_youshi\nDenied Keys:\nUnaccepted Keys:\noutsider\nRejected Keys:"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_files_of_reactor_d_work_as_documented() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/reactor.d");
    let mut system = System::new(&format!(
        "reactor:\n  - 'salt/auth': [{directory}/auth.sls]\n  - 'salt/minion/*/start': [{directory}/start.sls]\n"
    ));
    system.start_master().await;
    let mut events = system.events("salt/").await;
    system.configure_minion("db7", "");
    system.spawn_minion("db7");
    events.until("salt/job/*/ret/db7").await;
    // An id with a glob must not accept other keys.
    system.configure_minion("web1*", "");
    system.spawn_minion("web1*");
    loop {
        let (_, data) = events.until("salt/auth").await;
        if text(&data, "id") == "web1*" {
            break;
        }
    }
    assert!(stdout(&system.tool("salt-key", &["-l", "un"])).contains("web1*"));
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_ids_accept_no_key_and_inject_no_reaction() {
    let mut system = System::new(REACTOR);
    system.write("reactor/auth.sls", AUTH);
    system.write("reactor/start.sls", START);
    system.start_master().await;
    let mut events = system.events("salt/").await;
    let attacks = [
        ("salt/auth", "\"*\" #_youshi", "auth.sls"),
        ("salt/auth", "'*' #x_youshi", "auth.sls"),
        ("salt/auth", "[p*] #x_youshi", "auth.sls"),
        ("salt/auth", "*_youshi", "auth.sls"),
        ("salt/auth", "payroll-db,x_youshi", "auth.sls"),
        ("salt/minion/x/start", "*", "start.sls"),
        ("salt/minion/x/start", "x\nevil:\n  local.cmd.run:\n    - tgt: '*'\n    - arg: [id]", "start.sls"),
    ];
    for (tag, id, file) in attacks {
        let data = to_json(&map! {"act" => "pend", "id" => id}.into());
        assert_eq!(stdout(&system.tool("salt-run", &["event.send", tag, &data])).trim(), "True", "{id}");
        // Neither a call nor a job precedes the error.
        loop {
            let (tag, data) = events.next().await;
            let message = text(&data, "message");
            assert!(
                tag != "salt/key" && !tag.starts_with("salt/wheel/") && !tag.starts_with("salt/job/"),
                "{tag} {id}"
            );
            if tag == "salt/reactor/error" {
                assert!(message.contains(file) && message.contains("`{{ data['id'] }}`"), "{message}");
                break;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_reaction_is_an_event_and_others_continue() {
    let mut system = System::new("reactor:\n  - 'go': [ROOT/bad.sls, ROOT/unknown.sls, ROOT/good.sls]\n");
    system.write("bad.sls", "x:\n  runner.test.arg:\n    - {{ nothing }}\n");
    system.write("unknown.sls", "x:\n  runner.no.such: []\n");
    system.write("good.sls", "x:\n  runner.test.arg:\n    - args: [{{ data.n }}]\n");
    system.start_master().await;
    let mut events = system.events("salt/").await;
    assert_eq!(stdout(&system.tool("salt-run", &["event.send", "go", "{n: 7}"])).trim(), "True");
    let (_, bad) = events.until("salt/reactor/error").await;
    assert!(text(&bad, "message").ends_with("bad.sls:3: Jinja variable 'nothing' is undefined"), "{bad:?}");
    let (_, unknown) = events.until("salt/reactor/error").await;
    assert!(
        text(&unknown, "message").ends_with(
            "unknown.sls:2: runner.no.such: 'no.such' is not available: `salt-run doc.runner` lists the available functions"
        ),
        "{unknown:?}"
    );
    // The return of the publishing call may come before or after.
    let good = loop {
        let (_, data) = events.until("salt/run/*/ret").await;
        if text(&data, "fun") == "runner.test.arg" {
            break data;
        }
    };
    assert_eq!(text(&good, "return"), "{'args': [7], 'kwargs': {}}");
    assert!(system.master_log().contains("bad.sls:3: Jinja variable 'nothing' is undefined"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reaction_past_its_deadline_is_a_dead_letter_and_missing_files_are_logged_at_the_start() {
    let config = "reactor_deadline: 1\nreactor:\n  - 'go': [ROOT/slow.sls]\n  - 'never': [/nonexistent/x.sls]\n";
    let mut system = System::new(config);
    system.write("slow.sls", "a:\n  runner.test.arg: []\nb:\n  runner.test.sleep:\n    - args: [20]\n");
    system.start_master().await;
    let mut events = system.events("salt/").await;
    assert_eq!(stdout(&system.tool("salt-run", &["event.send", "go", "{n: 7}"])).trim(), "True");
    let (_, error) = events.until("salt/reactor/error").await;
    let message = text(&error, "message");
    assert!(
        message.contains("slow.sls: reaction 'b: runner.test.sleep' failed: it exceeded its deadline"),
        "{message}"
    );
    let failed = stdout(&system.tool("salt-run", &["reactor.failed"]));
    assert!(failed.contains("runner.test.sleep") && !failed.contains("runner.test.arg"), "{failed}");
    let log = system.master_log();
    assert!(log.contains("names a file that does not exist") && log.contains("/nonexistent/x.sls"), "{log}");
}

/// Publishes a numbered event through the master. Returns true if the master has acknowledged it.
pub async fn fire(client: &RequestClient, key: &str, n: u64) -> bool {
    // Reactions to events of one tag run one after the other, each with a write to the disk.
    let args = Args::positional([format!("load/go/{}", n % 64).into(), map! {"n" => n}.into()]);
    let call = Call {
        fun: "event.send".into(),
        args,
        key: Some(key.into()),
        proof: None,
        user: "test".into(),
        asynchronous: false,
        jid: None,
        is_salt: false,
    };
    let request = Envelope::clear(ClientCommand::call_map("runner", &call));
    let Ok(answer) = client.request(request, TIMEOUT).await else { return false };
    let answer = msgpack::unpack(&answer).unwrap();
    let data = answer.get("load").and_then(|load| load.get("data")).cloned().unwrap_or_default();
    data.get("return") == Some(&Value::Bool(true))
}

#[tokio::test(flavor = "multi_thread")]
async fn no_acknowledged_event_is_lost_when_the_master_is_killed() {
    const EVENTS: u64 = 5_000;
    let mut system = System::new("reactor:\n  - 'load/go/*': [ROOT/go.sls]\nworker_threads: 64\n");
    system.write("go.sls", "done:\n  runner.event.send:\n    - tag: load/done\n    - data: {n: {{ data.n }}}\n");
    system.start_master().await;
    let key = system.root_key();
    let (next, acknowledged) = (Arc::new(AtomicU64::new(0)), Arc::new(std::sync::Mutex::new(HashSet::new())));
    let half = Arc::new(tokio::sync::Notify::new());
    let firing: Vec<_> = (0..64)
        .map(|_| {
            let (next, acknowledged, half) = (Arc::clone(&next), Arc::clone(&acknowledged), Arc::clone(&half));
            let (endpoint, key) = (system.request_endpoint(), key.clone());
            tokio::spawn(async move {
                let client = RequestClient::new(endpoint, Limits::default());
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= EVENTS {
                        return;
                    }
                    if n == EVENTS / 2 {
                        half.notify_one();
                    }
                    // Retries until the master acknowledges it: it may be down for a while.
                    while !fire(&client, &key, n).await {
                        tokio::task::yield_now().await;
                    }
                    acknowledged.lock().unwrap().insert(n);
                }
            })
        })
        .collect();
    half.notified().await;
    let before = acknowledged.lock().unwrap().len();
    system.kill_master();
    assert!(before > 1000 && before < EVENTS as usize, "{before} were acknowledged before the kill");
    system.start_master().await;
    assert!(system.master_log().contains("store repaired after an unclean stop"));
    for one in firing {
        one.await.unwrap();
    }
    // Every event in the journal has its reaction, whether or not it was acknowledged.
    let client = RequestClient::new(system.request_endpoint(), Limits::default());
    let (mut fired, mut processed, mut from) = (HashSet::new(), HashSet::new(), 1u64);
    // Reactions must make progress, at any speed of the machine.
    let mut progress = (0, std::time::Instant::now());
    loop {
        let args = Args::positional([from.into(), 5000.into()]);
        let call = Call {
            fun: "event_bus.since".into(),
            args,
            key: Some(key.clone()),
            user: "test".into(),
            proof: None,
            asynchronous: false,
            jid: None,
            is_salt: false,
        };
        let request = Envelope::clear(ClientCommand::call_map("runner", &call));
        let answer = msgpack::unpack(&client.request(request, TIMEOUT).await.unwrap()).unwrap();
        let page = answer.get("load").unwrap().get("data").unwrap().get("return").unwrap().as_list().unwrap().to_vec();
        for event in &page {
            from = u64::try_from(event.get("seq").unwrap().as_i64().unwrap()).unwrap() + 1;
            let n = event.get("data").unwrap().get("n").and_then(Value::as_i64);
            match (event.get("tag").unwrap().as_str().unwrap(), n) {
                (tag, Some(n)) if tag.starts_with("load/go/") => _ = fired.insert(n.cast_unsigned()),
                ("load/done", Some(n)) => _ = processed.insert(n.cast_unsigned()),
                _ => {}
            }
        }
        if fired.len() == EVENTS as usize && processed.is_superset(&fired) {
            break;
        }
        if processed.len() > progress.0 {
            progress = (processed.len(), std::time::Instant::now());
        }
        assert!(progress.1.elapsed() < TIMEOUT, "{} fired, {} done", fired.len(), processed.len());
    }
    assert!(fired.is_superset(&acknowledged.lock().unwrap()));
}
