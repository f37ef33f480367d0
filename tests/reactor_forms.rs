//! The reactor in a real master and minion: configuration reloads, stopped loops, explanations, rules over time, the
//! minion's own reactor.

use crate::support::{System, stdout, text, until};
use brine_value::Value;

#[tokio::test(flavor = "multi_thread")]
async fn configuration_changes_are_reloaded_and_drop_ins_add_entries() {
    let mut system = System::new("reactor:\n  - 'one': [ROOT/n.sls]\n");
    system.write("n.sls", "{{ tag }}:\n  runner.test.arg: [{args: [{{ data.n }}]}]\n");
    system.start_master().await;
    let mut events = system.events("salt/").await;
    system.write("etc/master.d/more.conf", "reactor:\n  two: ROOT/n.sls\n");
    let (_, configured) = events.until("salt/reactor/configured").await;
    assert_eq!(configured.get("reactors").unwrap().as_list().unwrap().len(), 2);
    for (tag, n) in [("one", "1"), ("two", "2")] {
        system.tool("salt-run", &["event.send", tag, &format!("{{n: {n}}}")]);
        loop {
            let (_, data) = events.until("salt/run/*/ret").await;
            if text(&data, "fun") == "runner.test.arg" {
                assert_eq!(text(&data, "return"), format!("{{'args': [{n}], 'kwargs': {{}}}}"));
                break;
            }
        }
    }
    // An error is reported, and the previous configuration stays.
    system.write("etc/master.d/more.conf", "reactor: {three: 5}\n");
    let (_, error) = events.until("salt/reactor/error").await;
    assert_eq!(text(&error, "message"), "'reactor': the files of 'three' are invalid: expected a list of paths, got 5");
    let listed = stdout(&system.tool("salt-run", &["reactor.list", "--out=json"]));
    assert!(listed.contains("\"two\""), "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_through_a_minion_is_found_and_explained() {
    let mut system = System::start("reactor_max_depth: 3\nreactor:\n  - 'again': [ROOT/again.sls]\n").await;
    system
        .write("again.sls", "again:\n  local.event.send:\n    - tgt: m1\n    - args: [{tag: again}, {data: {x: 1}}]\n");
    system.start_minion("m1").await;
    let mut events = system.events("salt/reactor/error").await;
    system.tool("salt-run", &["event.send", "again"]);
    let (_, error) = events.until("salt/reactor/error").await;
    assert!(text(&error, "message").starts_with("3 reactions lead from one to the next"), "{error:?}");
    let report = stdout(&system.tool("salt-run", &["reactor.explain", &text(&error, "_cause")]));
    let lines: Vec<_> = report.lines().collect();
    // The external event, and three jobs with the event of each, all below their causes.
    for (index, what) in [
        (0, " again"),
        (1, "again: local.event.send"),
        (2, " again id=m1"),
        (5, "again: local.event.send"),
        (6, "again id=m1  <--"),
    ] {
        assert!(lines[index].ends_with(what) || lines[index].contains(what), "{index}: {report}");
    }
    assert_eq!(lines.len(), 8, "{report}");
    assert!(lines[6].starts_with("               └─ "), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_reports_reactions_without_dispatching_them() {
    let mut system = System::new("reactor:\n  - 'go': [ROOT/go.sls, ROOT/bad.sls]\n");
    system.write("go.sls", "a:\n  local.cmd.run:\n    - tgt: {{ data.id }}\n    - args: [{cmd: uptime}]\n");
    system.write("bad.sls", "a:\n  runner.test.arg: []\n  wheel.no.such: []\n");
    system.start_master().await;
    let report = system.tool("salt-run", &["reactor.test", "go", "{id: m1}", "--out=json"]);
    let report = brine_value::json::from_json(&stdout(&report)).unwrap();
    let list = |name: &str| report.get(name).unwrap().as_list().unwrap().to_vec();
    assert_eq!(list("reactions")[0].get("reaction"), Some(&"a: local.cmd.run".into()));
    assert_eq!(list("reactions")[0].get("tgt"), Some(&"m1".into()));
    assert_eq!(list("reactions").len(), 2);
    assert!(list("errors")[0].to_string().contains("bad.sls:3: wheel.no.such: 'no.such' is not available"));
    // The same for an event of the journal, by its sequence number.
    system.tool("salt-run", &["event.send", "go", "{id: m2}"]);
    let since = stdout(&system.tool("salt-run", &["event_bus.since", "1", "--out=json"]));
    let since = brine_value::json::from_json(&since).unwrap();
    let fired = since.as_list().unwrap().iter().find(|event| event.get("tag") == Some(&"go".into())).unwrap();
    let seq = fired.get("seq").unwrap().to_string();
    let report = stdout(&system.tool("salt-run", &["reactor.test", "--from-seq", &seq, "--out=json"]));
    assert!(report.contains("\"tgt\": \"m2\""), "{report}");
    let failed = stdout(&system.tool("salt-run", &["reactor.failed", "--out=json"]));
    assert!(failed.contains("wheel.no.such"), "{failed}");
    let retried = stdout(&system.tool("salt-run", &["reactor.retry", "all"]));
    assert!(retried.contains("'no.such' is not available"), "{retried}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_over_time_react_and_keep_their_state_across_a_crash() {
    let mut system = System::new("reactor_rules: [ROOT/rules/*.sls]\n");
    system.write(
        "rules/logins.sls",
        "failed_logins:\n  rule.count:\n    - tag: 'login/*'\n    - where: {ok: false}\n    - by: host\n    - count: 3\n    - within: 10m\n    - react: ROOT/block.sls\n",
    );
    system.write(
        "block.sls",
        "block:\n  runner.test.arg:\n    - args: [{{ rule }}, {{ key }}, {{ count }}, {{ events[0].n }}, {{ data.n }}]\n",
    );
    system.start_master().await;
    let login = |n: u32, host: &str| format!("{{n: {n}, host: {host}, ok: False}}");
    for (n, host) in [(1, "h1"), (2, "h2"), (3, "h1")] {
        assert_eq!(stdout(&system.tool("salt-run", &["event.send", "login/x", &login(n, host)])).trim(), "True");
    }
    // The state of the rule is written with a delay.
    until("both hosts are remembered", || stdout(&system.tool("salt-run", &["reactor.rules"])).contains("rule.count"))
        .await;
    system.stop_master();
    system.start_master().await;
    let mut events = system.events("salt/run/").await;
    system.tool("salt-run", &["event.send", "login/x", &login(4, "h1")]);
    loop {
        let (_, data) = events.until("salt/run/*/ret").await;
        if text(&data, "fun") == "runner.test.arg" {
            assert_eq!(text(&data, "return"), "{'args': ['failed_logins', 'h1', 3, 1, 4], 'kwargs': {}}");
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minion_reacts_to_events_on_its_own_bus() {
    let mut system = System::start("").await;
    system.write("seen.sls", "seen:\n  caller.event.send:\n    - args:\n      - tag: seen/{{ grains.id }}\n      - data: {n: {{ data.n }}}\n");
    system.configure_minion("m1", "reactor:\n  - 'own/*': [ROOT/seen.sls]\n");
    let mut events = system.events("").await;
    system.spawn_minion("m1");
    events.until("salt/minion/m1/start").await;
    assert_eq!(system.salt_json(&["m1", "event.fire", "{n: 7}", "own/thing"]).get("m1"), Some(&Value::Bool(true)));
    let (_, data) = events.until("seen/m1").await;
    assert_eq!(data.get("data").unwrap().get("n"), Some(&7.into()));
}
