//! Who may upgrade minions, and minions below a syndic.

use brine_value::Value;

use super::minion::{LOCAL, Minion, SOURCE, outcome, pings, publish_good, sha256, start, text};
use crate::support::syndic::{Syndic, below};
use crate::support::{System, stderr, stdout};

const ACCESS: &str = "external_auth:
  file:
    ^filename: ROOT/users
    bob: [test.ping, brine.version]
    run: ['@runner']
    ops: [{m1: [brine.upgrade]}, '@runner']
";

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_needs_its_own_permission() {
    let system = System::start(ACCESS).await;
    system.write("users", "bob:one\nrun:two\nops:three\n");
    system.configure_minion("m1", LOCAL);
    let mut events = system.events("salt/minion/").await;
    let minion = Minion::spawn(&system, "m1");
    events.until("salt/minion/m1/start").await;
    publish_good(&system, "build 2");
    let old = sha256(&minion.program());
    let source = "source=salt://brine/test/brine";
    let call = |tool: &str, user: &str, password: &str, words: &[&str]| {
        let who = ["-a", "file", "--username", user, "--password", password];
        let output = system.tool(tool, &[&who[..], words].concat());
        stdout(&output) + &stderr(&output)
    };
    // What it runs is not a secret.
    let version = call("salt", "bob", "one", &["m1", "brine.version"]);
    assert!(version.contains("program"), "{version}");
    for (tool, user, password, words) in [
        ("salt", "bob", "one", &["m1", "brine.upgrade", source, "force=True"][..]),
        ("salt", "bob", "one", &["m1", "brine.rollback"]),
        ("salt", "run", "two", &["m1", "brine.upgrade", source, "force=True"]),
        ("salt-run", "bob", "one", &["brine.upgrade", "m1", source, "force=True"]),
        // The runner calls the execution function.
        ("salt-run", "run", "two", &["brine.upgrade", "m1", source, "force=True"]),
    ] {
        let said = call(tool, user, password, words).to_lowercase();
        assert!(said.contains("auth") || said.contains("permi"), "{tool} {user} {words:?}: {said}");
        assert_eq!((minion.names(), minion.phase()), (vec!["brine".to_owned()], String::new()), "{tool} {user}");
    }
    let said = call("salt-run", "ops", "three", &["--out=json", "brine.upgrade", "m1", source, "force=True"]);
    assert!(said.contains("\"upgraded\""), "{said}");
    assert_eq!(sha256(&minion.program()), sha256(&system.path(SOURCE)), "{said}");
    assert_ne!(sha256(&minion.program()), old);
    pings(&system);
}

#[tokio::test(flavor = "multi_thread")]
async fn minions_below_a_syndic_are_upgraded_by_the_master_above() {
    let upper = System::start("order_masters: True\nsyndic_wait: 15\n").await;
    let mut lower = below(&[upper.ret_port], "");
    lower.start_master().await;
    lower.configure_minion("m1", LOCAL);
    let mut events = lower.events("salt/minion/").await;
    let minion = Minion::spawn(&lower, "m1");
    events.until("salt/minion/m1/start").await;
    let mut started = upper.events("salt/syndic/").await;
    let _syndic = Syndic::start(&lower, "s1").await;
    started.until("salt/syndic/s1/start").await;
    publish_good(&lower, "build 2");
    let words = ["--out=json", "brine.upgrade", "m1", "source=salt://brine/test/brine", "force=True", "timeout=60"];
    let output = upper.tool("salt-run", &words);
    let stdout_text = stdout(&output);
    let last = stdout_text.rfind("\n{\n").map_or(&stdout_text[..], |at| &stdout_text[at..]);
    let report = brine_value::json::from_json(last).unwrap_or_else(|_| panic!("{stdout_text}{}", stderr(&output)));
    assert_eq!(report.get("upgraded").map(ToString::to_string), Some("['m1']".to_owned()), "{report}");
    assert_eq!(report.get("result"), Some(&Value::from(true)), "{report}");
    let told = outcome(&mut events, "m1").await;
    assert_eq!(text(&told, "result"), "done", "{told:?}");
    assert_eq!(sha256(&minion.program()), sha256(&lower.path(SOURCE)));
    pings(&upper);
}

/// How long twenty minions take, with the program that `BRINE_UPGRADE_PROGRAM` names, or that of the tests.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement: twenty processes with programs of their own"]
async fn twenty_minions_in_batches_of_five() {
    let (system, first, mut events) = start(LOCAL).await;
    let mut minions = vec![first];
    for number in 2..=20 {
        let id = format!("m{number}");
        system.configure_minion(&id, LOCAL);
        minions.push(Minion::spawn(&system, &id));
        events.until(&format!("salt/minion/{id}/start")).await;
    }
    publish_good(&system, "build 2");
    let begun = std::time::Instant::now();
    let words = ["--out=json", "brine.upgrade", "*", "source=salt://brine/test/brine", "force=True", "batch=5"];
    let output = system.tool("salt-run", &words);
    let report = stdout(&output);
    eprintln!("20 minions in batches of 5: {:.1} s", begun.elapsed().as_secs_f64());
    assert!(report.contains("\"failed\": {}"), "{report}{}", stderr(&output));
    let new = sha256(&system.path(SOURCE));
    assert!(minions.iter().all(|minion| sha256(&minion.program()) == new), "{report}");
}
