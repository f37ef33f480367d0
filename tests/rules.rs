//! The worked examples of docs/rules.md, with the files shown there.

use crate::support;

use crate::support::{Events, System, text};
use brine_value::{Map, Value};

/// Starts a master with these files of `reactor.d`, each with text replacements.
fn system(config: &str, files: &[(&str, &[(&str, &str)])]) -> System {
    let system = System::new(&format!("auto_accept: True\nreactor_rules: [ROOT/rules/*.sls]\n{config}"));
    for (name, changes) in files {
        let path = format!("{}/reactor.d/{name}", env!("CARGO_MANIFEST_DIR"));
        let mut content = std::fs::read_to_string(path).unwrap().replace("/srv/reactor", "ROOT");
        for (from, to) in *changes {
            assert!(content.contains(from), "{name} says '{from}'");
            content = content.replace(from, to);
        }
        system.write(name, &content);
    }
    system
}

async fn fire(system: &System, tag: &str, data: &str) {
    assert_eq!(support::stdout(&system.tool_async("salt-run", &["event.send", tag, data]).await).trim(), "True");
}

async fn job(events: &mut Events) -> Map {
    loop {
        let (_, data) = events.until("salt/job/*/new").await;
        if text(&data, "user") == "Reactor" {
            return data;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn five_failed_logins_block_the_host() {
    let stubs: &[(&str, &str)] =
        &[("ip route replace blackhole", "echo"), ("sleep 600; ip route del blackhole", "true")];
    let files: &[(&str, &[_])] = &[("rules/logins.sls", &[]), ("block.sls", stubs)];
    let mut system = system("", files);
    system.start_master().await;
    system.start_minion("web1").await;
    let mut events = system.events("salt/job/").await;
    for host in ["10.0.0.7", "10.0.0.7", "evil; reboot", "10.0.0.8", "10.0.0.7", "10.0.0.7", "10.0.0.7"] {
        fire(&system, "salt/beacon/web1/btmp/", &format!("{{id: web1, hostname: '{host}', user: root}}")).await;
    }
    let published = job(&mut events).await;
    assert_eq!((text(&published, "fun"), text(&published, "tgt")), ("cmd.run".into(), "web1".into()));
    let mut returned = Map::new();
    while text(&returned, "fun") != "cmd.run" {
        (_, returned) = events.until("salt/job/*/ret/web1").await;
    }
    assert_eq!(text(&returned, "return"), "10.0.0.7");
}

#[tokio::test(flavor = "multi_thread")]
async fn minion_missing_after_a_reboot_raises_an_alert() {
    let files: &[(&str, &[_])] = &[("rules/reboots.sls", &[("within: 10m", "within: 1s")]), ("not_back.sls", &[])];
    let mut system = system("", files);
    system.start_master().await;
    let mut events = system.events("brine/alert/").await;
    let new = "{fun: system.reboot, minions: [web1, web2], user: root}";
    fire(&system, "salt/job/20261121000000000000/new", new).await;
    fire(&system, "salt/minion/web2/start", "{id: web2}").await;
    let (_, data) = events.until("brine/alert/not_back").await;
    assert_eq!((text(&data, "minion"), text(&data, "told_by")), ("web1".into(), "root".into()));
    // Only for web1: web2 started in time.
    fire(&system, "brine/alert/end", "{}").await;
    assert_eq!(events.next().await.0, "brine/alert/end");
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_on_a_part_of_a_group_stop_a_rollout() {
    let files: &[(&str, &[_])] = &[("rules/rollout.sls", &[]), ("stop_rollout.sls", &[])];
    let mut system = system("nodegroups: {web: 'L@web1,web2'}\n", files);
    system.write("srv/salt/bad.sls", "one: test.fail_without_changes\n");
    let waves = "wave_1:\n  salt.state:\n    - tgt: web1\n    - sls: bad\nhold:\n  salt.wait_for_event:\n    - name: go/*\n    \
                 - id_list: [on]\nwave_2:\n  salt.state:\n    - tgt: web2\n    - sls: bad\n";
    system.write("srv/salt/orch/rollout.sls", waves);
    system.start_master().await;
    system.start_minion("web1").await;
    system.start_minion("web2").await;
    let mut events = system.events("").await;
    let rollout = system.tool_async("salt-run", &["--async", "state.orchestrate", "orch.rollout"]);
    rollout.await;
    let (_, alert) = events.until("brine/alert/rollout_stopped").await;
    assert_eq!((text(&alert, "failed"), text(&alert, "share")), ("['web1']".into(), "0.5".into()));
    fire(&system, "go/x", "{id: on}").await;
    loop {
        let (_, data) = events.until("salt/run/*/ret").await;
        if text(&data, "fun") == "runner.state.orchestrate" {
            let results = data.get("return").unwrap().get("data").and_then(Value::as_map).unwrap();
            let ids: Vec<String> =
                results.values().next().unwrap().as_map().unwrap().keys().map(ToString::to_string).collect();
            // The reaction stops the run while it is held up, or even before.
            assert!(ids.iter().any(|id| id.contains("wave_1")), "{ids:?}");
            assert!(!ids.iter().any(|id| id.contains("wave_2")), "{ids:?}");
            break;
        }
    }
}
