//! State runs of minions use the master's options (`_master_opts`).

use crate::support;

use crate::support::System;
use brine_value::Value;

const MASTER: &str = "state_events: True
failhard: True
state_top: web.sls
state_auto_order: False
jinja_sls_env: {trim_blocks: True}
nodegroups: {web: 'web1'}
";

/// The minion's own options, of which only `state_aggregate` applies to runs with a master.
const MINION: &str = "failhard: False
state_top: own.sls
state_aggregate: [pkg]
file_roots: {base: [ROOT/srv/salt]}
";

const FILES: [(&str, &str); 5] = [
    ("srv/salt/web.sls", "base:\n  web:\n    - match: nodegroup\n    - two\n"),
    ("srv/salt/own.sls", "base: {'*': [three]}\n"),
    // Ordered by name, the second state runs first.
    ("srv/salt/two.sls", "zz: test.nop\na: test.fail_without_changes\n"),
    ("srv/salt/three.sls", "x: test.fail_without_changes\ny: test.nop\n"),
    (
        "srv/salt/shown.sls",
        "\"{% if true %}\nid{% endif %}\":\n  test.nop:\n    - name: \"{{ [opts.failhard, opts.state_top, \
         opts.state_events, opts.state_aggregate] | join(' ') }}\"\n",
    ),
];

/// Returns the names of the states of a run, in the order of the results.
fn names(returned: &Value) -> Vec<String> {
    let results = returned.as_map().unwrap_or_else(|| panic!("{returned}"));
    results.values().filter_map(|result| result.get("name").map(ToString::to_string)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn state_runs_use_the_options_of_the_master() {
    let mut system = System::start(MASTER).await;
    for (path, text) in FILES {
        system.write(path, text);
    }
    let etc = system.configure_minion("web1", MINION).display().to_string();
    let mut events = system.events("salt/").await;
    system.spawn_minion("web1");
    events.until("salt/minion/web1/start").await;

    // The master's top file, its node group, the order of names, and the end at the first failure.
    let returned = system.salt_json(&["web1", "state.highstate"]);
    assert_eq!(names(returned.get("web1").unwrap()), ["a"]);
    let (tag, data) = events.until("salt/job/*/prog/web1/0").await;
    assert_eq!(data.get("data").and_then(|data| data.get("len")), Some(&Value::from(2)), "{tag} {data:?}");

    // Templates see them, too, and whitespace follows `trim_blocks`.
    let returned = system.salt_json(&["web1", "state.apply", "shown"]);
    let result = returned.get("web1").and_then(Value::as_map).and_then(|results| results.first()).unwrap();
    assert!(result.0.to_string().starts_with("test_|-id_|-"), "{result:?}");
    assert_eq!(names(returned.get("web1").unwrap()), ["True salt://web.sls True ['pkg']"]);

    // A run without SLS files uses the minion's options: it publishes no progress event.
    let returned = system.salt_json(&["web1", "state.single", "test.nop", "name=alone"]);
    assert_eq!(names(returned.get("web1").unwrap()), ["alone"]);
    loop {
        let (tag, data) = events.next().await;
        if data.get("fun") == Some(&"state.single".into()) && tag.ends_with("/ret/web1") {
            break;
        }
        assert!(!tag.contains("/prog/") || !data.get("data").is_some_and(|data| data.to_string().contains("alone")));
    }

    // Without a master the minion's own options apply.
    let local = |words: &[&str]| {
        let mut command = support::within_limit(env!("CARGO_BIN_EXE_brine"));
        let output = command.args(["salt-call", "-c", &etc, "--out=json"]).args(words).output().unwrap();
        brine_value::json::from_json(&support::stdout(&output)).unwrap().get("local").cloned().unwrap()
    };
    assert_eq!(names(&local(&["--local", "state.highstate"])), ["x", "y"]);
    assert_eq!(names(&local(&["state.highstate"])), ["a"]);
}
