//! Faults of reactions in a real master: `reactor.explain` and `reactor.history` report the causes of errors and of
//! missing reactions.

use crate::support;

use crate::support::{System, TIMEOUT, stdout, text};
use brine_value::Value;

const CONFIG: &str = "
reactor:
  - 'fault/undefined': [ROOT/undefined.sls]
  - 'fault/yaml': [ROOT/yaml.sls]
  - 'fault/missing': [/nonexistent/x.sls]
  - 'fault/function': [ROOT/function.sls]
  - 'fault/target': [ROOT/target.sls]
  - 'fault/type': [ROOT/type.sls]
  - 'fault/arguments': [ROOT/arguments.sls]
  - 'fault/fails': [ROOT/fails.sls]
  - 'fault/text': [ROOT/text.sls]
  - 'fault/cool/*': [ROOT/good.sls]
  - 'fault/rate': [ROOT/good.sls]
  - 'fault/burst': [ROOT/good.sls]
  - 'fault/nobody': [ROOT/nobody.sls]
  - 'fault/empty': [ROOT/empty.sls]
  - 'fault/state': [ROOT/state.sls]
reactor_cooldown: {'fault/cool/*': 1h}
reactor_rate_limit: {'fault/rate': 1/1h}
reactor_debounce: {'fault/burst': 1h}
reactor_rules: [ROOT/rules.sls]
";

const FILES: [(&str, &str); 12] = [
    ("undefined.sls", "a:\n  runner.test.arg: [{{ nothing }}]\n"),
    ("yaml.sls", "a:\n  runner.test.arg: [1\n"),
    ("function.sls", "a:\n  runner.no.such: []\n"),
    ("target.sls", "a:\n  local.test.ping: []\n"),
    ("type.sls", "a:\n  remote.test.ping: []\n"),
    ("arguments.sls", "a:\n  runner.test.arg: [{args: [1]}, {arg: [2]}]\n"),
    ("fails.sls", "a:\n  runner.jobs.lookup_jid: [{jid: nonsense}]\n"),
    ("text.sls", "a:\n  runner.test.arg: [{x: {{ data.text }}}]\n"),
    ("good.sls", "a:\n  runner.test.arg: []\n"),
    ("nobody.sls", "a:\n  local.test.ping: [{tgt: 'nosuch*'}]\n"),
    ("empty.sls", "{% if data.act == 'other' %}\na:\n  runner.test.arg: []\n{% endif %}\n"),
    (
        "rules.sls",
        "logins:\n  rule.count: [{tag: fault/login}, {where: {ok: false}}, {count: 5}, {within: 60}, {react: ROOT/good.sls}]\n",
    ),
];

/// Publishes an event and returns its sequence number.
async fn publish(system: &System, tag: &str, data: &str) -> String {
    let mut events = system.events(tag).await;
    assert_eq!(stdout(&system.tool_async("salt-run", &["event.send", tag, data]).await).trim(), "True");
    let (_, data) = events.next().await;
    text(&data, "_seq")
}

/// Waits until `reactor.explain` reports this about an event. Returns the whole report.
async fn explained(system: &System, seq: &str, expected: &str) -> String {
    let start = std::time::Instant::now();
    loop {
        let report = stdout(&system.tool_async("salt-run", &["reactor.explain", seq]).await);
        if report.contains(expected) {
            return report;
        }
        assert!(start.elapsed() < TIMEOUT, "'{expected}' is not in:\n{report}");
    }
}

async fn history(system: &System, words: &[&str]) -> Vec<Value> {
    let words = [&["reactor.history", "--out=json"], words].concat();
    let text = stdout(&system.tool_async("salt-run", &words).await);
    brine_value::json::from_json(&text).unwrap().as_list().unwrap().to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_planted_fault_is_explained() {
    let mut system = System::new(CONFIG);
    for (name, text) in FILES {
        system.write(name, text);
    }
    system.start_master().await;
    // The first event of each limit has its reaction.
    for tag in ["fault/cool/1", "fault/rate"] {
        let seq = publish(&system, tag, "{id: web1}").await;
        explained(&system, &seq, "a: runner.test.arg  jid").await;
    }
    let mut numbers = Vec::new();
    for (tag, data, expected) in [
        // Faults that are errors.
        ("fault/undefined", "{}", "undefined.sls:2: Jinja variable 'nothing' is undefined"),
        ("fault/yaml", "{}", "yaml.sls:"),
        ("fault/missing", "{}", "/nonexistent/x.sls: No such file or directory"),
        ("fault/function", "{}", "function.sls:2: runner.no.such: 'no.such' is not available"),
        ("fault/target", "{}", "target.sls:2: 'local.test.ping' needs a target"),
        ("fault/type", "{}", "type.sls:2: 'remote' in 'remote.test.ping' is not a type of reaction"),
        ("fault/arguments", "{}", "arguments.sls:2: 'runner.test.arg' has its arguments both"),
        ("fault/fails", "{}", "fails.sls:2: runner.jobs.lookup_jid: "),
        ("fault/text", "{text: 'a: b'}", "text.sls:2: render failed: `{{ data.text }}` would change the structure"),
        // Silent faults.
        ("fualt/cool/1", "{}", "no reaction: no pattern matches the tag; the nearest: 'fault/cool/*'"),
        ("other", "{}", "no reaction: no pattern matches the tag, and none is similar"),
        (
            "fault/cool/2",
            "{id: web1}",
            "no reaction of 'fault/cool/*': reactor_cooldown leaves events of 'web1' out until 2",
        ),
        (
            "fault/rate",
            "{id: web1}",
            "no reaction of 'fault/rate': reactor_rate_limit leaves events of 'web1' out until 2",
        ),
        ("fault/burst", "{id: web1}", "no reaction of 'fault/burst': reactor_debounce holds events of 'web1' until 2"),
        (
            "fault/nobody",
            "{}",
            "a: local.test.ping: the job was published to nobody, as target 'nosuch*' (glob) matches no accepted",
        ),
        ("fault/empty", "{act: pend}", "empty.sls ('fault/empty'): the file renders to no reaction for this event"),
        (
            "fault/login",
            "{ok: True}",
            "no reaction of 'logins': a condition does not hold: 'ok' is True, expected False",
        ),
        ("fault/login", "{ok: False}", "no reaction of 'logins': 1 of 5 events within 60 s by now"),
    ] {
        let seq = publish(&system, tag, data).await;
        explained(&system, &seq, expected).await;
        numbers.push((tag, seq));
    }
    // The events published by the reactor's own call.
    let first = history(&system, &["tag=fault/cool/1"]).await;
    let jid = first[0].get("reactions").unwrap().as_list().unwrap()[0].get("jid").unwrap().to_string();
    let all = stdout(&system.tool("salt-run", &["state.event", &format!("salt/run/{jid}/ret"), "count=1", "since=1"]));
    let ret = brine_value::json::from_json(all.split_once('\t').unwrap().1).unwrap();
    let report =
        explained(&system, &ret.get("_seq").unwrap().to_string(), "the reactor's own runner and wheel calls").await;
    assert!(report.contains("<--"), "{report}");

    // The history has events with matching entries, and with a tag also others.
    let recent = history(&system, &["limit=50"]).await;
    for (tag, seq) in &numbers {
        let event = recent.iter().find(|event| event.get("seq").unwrap().to_string() == **seq);
        let is_bound = !["fualt/cool/1", "other", "fault/login"].contains(tag);
        assert_eq!(event.is_some(), is_bound, "{tag}: {recent:?}");
    }
    let unmatched = history(&system, &["tag=fualt/*"]).await;
    let outcome = unmatched[0].get("reactions").unwrap().as_list().unwrap()[0].get("outcome").unwrap().to_string();
    assert_eq!(outcome, "no reaction: no pattern matches the tag; the nearest: 'fault/cool/*'");

    // A reactor that is not the leader, and an event that is not in the journal.
    system.tool("salt-run", &["reactor.set_leader", "False"]);
    let seq = publish(&system, "fault/rate", "{id: web2}").await;
    explained(&system, &seq, "no reaction: the reactor was off").await;
    let gone = system.tool("salt-run", &["reactor.explain", "99999999"]);
    let report = stdout(&gone) + &support::stderr(&gone);
    assert!(report.contains("the journal has no event 99999999: it holds"), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_states_of_a_reaction_are_in_its_result() {
    let mut system = System::start("reactor:\n  - 'fault/state': [ROOT/state.sls]\n").await;
    system.write("state.sls", "a:\n  local.state.apply: [{tgt: m1}, {args: [{mods: broken}]}]\n");
    system.write("srv/salt/broken.sls", "it_fails:\n  test.fail_without_changes: []\n");
    system.start_minion("m1").await;
    let seq = publish(&system, "fault/state", "{}").await;
    let expected = "1 of 1 returned, failed: m1; first failed state of m1: it_fails: ";
    explained(&system, &seq, expected).await;
    let recent = history(&system, &["tag=fault/state"]).await;
    let reaction = recent[0].get("reactions").unwrap().as_list().unwrap()[0].clone();
    let failed = reaction.get("failed_states").unwrap().as_list().unwrap()[0].to_string();
    assert!(failed.starts_with("it_fails: ") && failed.ends_with(" of m1"), "{failed}");
}
