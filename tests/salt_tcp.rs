//! A Brine master with `transport: tcp`, with unmodified Salt minions of several releases and a Brine minion.

use std::collections::BTreeSet;

use crate::support::fleet::BRINE_ID;
use crate::support::salt::{FLEET_TIMEOUT, PythonMinion, RELEASES, TREE, environment, outcome};
use crate::support::{System, stderr, stdout, within_limit};
use brine_value::{Map, Value};

const TCP: &str = "transport: tcp\n";

/// Runs `salt` for all minions and returns the results.
async fn salt(system: &System, words: &[&str]) -> Map {
    let output = system.tool_async("salt", &[&["--static", "--out=json", "-t", "30", "*"], words].concat()).await;
    let said = brine_value::json::from_json(&stdout(&output)).unwrap_or_default();
    said.as_map().cloned().unwrap_or_else(|| panic!("{words:?}: {}{}", stdout(&output), stderr(&output)))
}

#[tokio::test(flavor = "multi_thread")]
async fn salt_minions_of_a_brine_master() {
    let mut system = System::new(&format!("auto_accept: True\n{TCP}"));
    for (path, text) in TREE {
        system.write(path, text);
    }
    system.start_master().await;
    let mut events = system.events("salt/minion/").await;
    let mut python = Vec::new();
    for version in RELEASES {
        let mut minion = PythonMinion::new(&system, &format!("salt{}", version.replace('.', "-")), version, TCP);
        minion.spawn();
        python.push(minion);
    }
    system.configure_minion(BRINE_ID, TCP);
    system.spawn_minion(BRINE_ID);
    let ids: BTreeSet<String> = python.iter().map(|minion| minion.id.clone()).chain([BRINE_ID.to_owned()]).collect();
    let mut missing = ids.clone();
    while !missing.is_empty() {
        let (tag, _) = events.until("salt/minion/*/start").await;
        missing.remove(tag.split('/').nth(2).unwrap_or_default());
    }
    let all = |value: &Value| -> Map { ids.iter().map(|id| (id.as_str().into(), value.clone())).collect() };

    let mut auths = system.events("salt/").await;
    assert_eq!(salt(&system, &["test.ping"]).await, all(&true.into()));
    assert_eq!(salt(&system, &["test.ping"]).await, all(&true.into()));
    system.tool_async("salt-run", &["event.send", "salt/done"]).await;
    // Salt's minions must not receive publishes for Brine's, or they would authenticate again to decrypt them.
    loop {
        let (tag, data) = auths.next().await;
        assert_ne!(tag, "salt/auth", "{data:?}");
        if tag == "salt/done" {
            break;
        }
    }
    for changed in [true, false] {
        for (id, returned) in salt(&system, &["state.apply"]).await {
            for (state, result, changes) in
                [("first", true, false), ("conf", true, changed), ("late", true, changed), ("broken", false, false)]
            {
                assert_eq!(outcome(&returned, state), (result.into(), changes), "{id} {state}: {returned}");
            }
            let conf = std::fs::read_to_string(system.path(&format!("{id}/out/web.conf"))).unwrap();
            assert_eq!(conf, format!("hello {id} of Linux\n"));
        }
    }
    for minion in &python {
        let output = minion.call(&["cp.get_file_str", "salt://files/web.conf"]).await;
        assert!(stdout(&output).contains("pillar.greeting"), "{}{}", stdout(&output), stderr(&output));
    }
    // Salt's own command line on the host of the master.
    for release in ["3008.5", "3006.30"] {
        let mut command = within_limit(&environment(release).join("bin/salt").display().to_string());
        command.args(["-c", &system.etc(), "--static", "--out=json", "-t", "20", "*", "test.ping"]);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let said = brine_value::json::from_json(&stdout(&output)).unwrap_or_default();
        assert_eq!(said, Value::from(all(&true.into())), "{release}: {}", stderr(&output));
    }

    system.stop_master();
    system.start_master().await;
    let back = answering(&system, &ids).await;
    assert!(back.contains(BRINE_ID) && back.len() > 1, "only {back:?} came back");
    // Over TCP a minion of Salt may end its own authentication while the master is away (`'AsyncAuth' object has no
    // attribute '_creds'`), and is silent for ever. An operator restarts it.
    for minion in python.iter_mut().filter(|minion| !back.contains(&minion.id)) {
        minion.kill();
        minion.spawn();
    }
    assert_eq!(answering(&system, &ids).await, ids);
}

/// Pings until all of these minions answer, for a minute at most, and returns those that do.
async fn answering(system: &System, ids: &BTreeSet<String>) -> BTreeSet<String> {
    let begun = std::time::Instant::now();
    loop {
        let answers = salt(system, &["test.ping", "-t", "2"]).await;
        let there =
            answers.into_iter().filter(|(_, answer)| *answer == Value::Bool(true)).map(|(id, _)| id.to_string());
        let there: BTreeSet<String> = there.collect();
        if there == *ids || begun.elapsed() > FLEET_TIMEOUT / 3 {
            return there;
        }
    }
}
