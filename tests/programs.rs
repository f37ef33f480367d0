//! Custom modules that are programs in other languages than Python.

use crate::support::{System, stderr, stdout};
use brine_value::json::from_json;
use brine_value::{Value, list, map};

const MODULE: &str = r#"#!/bin/sh
case "$1" in
    describe) echo '{"greet": {"doc": "Greet somebody.", "args": ["name", "greeting"], "defaults": ["hello"]}, "fails": {}}' ;;
    greet) sed 's/^{"args": \[\([^]]*\)\].*/[\1]/' ;;
    fails) echo "no such site" >&2; exit 1 ;;
esac
"#;

const STATE: &str = r#"#!/bin/sh
case "$1" in
    describe) echo '{"present": {"args": ["name"]}}' ;;
    present) echo '{"name": "site", "result": true, "changes": {"made": true}, "comment": "by a program"}' ;;
esac
"#;

const RUNNER: &str = r#"#!/bin/sh
case "$1" in
    describe) echo '{"count": {"doc": "Count the shops.", "args": ["of"], "defaults": [null]}}' ;;
    count) echo 3 ;;
esac
"#;

fn executable(system: &System, path: &str, text: &str) {
    let path = system.write(path, text);
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_are_synced_and_called_without_python() {
    let mut system = System::start("runner_dirs: [ROOT/own]\npython_host: /nonexistent/python\n").await;
    system.write("srv/salt/_modules/web", MODULE);
    system.write("srv/salt/_modules/README", "No program.\n");
    system.write("srv/salt/_states/site", STATE);
    executable(&system, "own/shop", RUNNER);
    system.configure_minion("m1", "python_host: /nonexistent/python\n");
    let mut events = system.events("salt/minion/").await;
    system.spawn_minion("m1");
    events.until("salt/minion/m1/start").await;

    let run = |words: &[&str]| system.salt_json(&[&["m1"], words].concat()).get("m1").cloned().unwrap();
    assert_eq!(run(&["saltutil.sync_modules"]), list!["modules.web"]);
    assert_eq!(run(&["saltutil.sync_modules"]), list![]);
    assert_eq!(run(&["saltutil.sync_states"]), list!["states.site"]);
    assert_eq!(run(&["web.greet", "you"]), list!["you"]);
    assert_eq!(run(&["web.greet", "you", "bye"]), list!["you", "bye"]);
    assert!(run(&["web.fails"]).to_string().contains("no such site"));
    assert!(run(&["web.greet"]).to_string().contains("web.greet"));
    assert!(run(&["sys.list_functions", "web"]).as_list().unwrap().contains(&"web.greet".into()));
    assert!(stdout(&system.tool("salt", &["m1", "sys.doc", "web.greet"])).contains("Greet somebody."));

    let applied = run(&["state.single", "site.present", "site"]);
    let state = applied.as_map().unwrap().values().next().unwrap();
    assert_eq!(state.get("comment"), Some(&"by a program".into()), "{applied}");
    assert_eq!(state.get("changes"), Some(&map! {"made" => true}.into()), "{applied}");

    let output = system.tool("salt-run", &["shop.count", "--out=json"]);
    assert_eq!(from_json(&stdout(&output)).ok(), Some(Value::Int(3)), "{}", stderr(&output));
    assert!(stdout(&system.tool("salt-run", &["-d", "shop"])).contains("Count the shops."));
}
