//! Masters below a master: jobs of the upper master reach the minions of all, returns and events are passed up, and
//! nothing is lost while a master or a syndic is down.

use std::time::{Duration, Instant};

use crate::support::syndic::{Syndic, below};
use crate::support::{System, stderr, stdout, until};
use brine_value::{Value, json};

/// Starts a master with `order_masters`, and one below it with these minions.
async fn two_tiers(minions: &[&str]) -> (System, System, Syndic) {
    let upper = System::start("order_masters: True\nsyndic_wait: 15\n").await;
    let (lower, syndic) = add(&upper, "s1", minions, "").await;
    (upper, lower, syndic)
}

/// Starts a master below `upper`.
async fn add(upper: &System, id: &str, minions: &[&str], extra: &str) -> (System, Syndic) {
    let mut lower = below(&[upper.ret_port], extra);
    lower.start_master().await;
    for minion in minions {
        lower.start_minion(minion).await;
    }
    let mut started = upper.events("salt/syndic/").await;
    let syndic = Syndic::start(&lower, id).await;
    started.until(&format!("salt/syndic/{id}/start")).await;
    (lower, syndic)
}

/// Returns the ids that return a ping with these words of a target.
fn pinged(system: &System, words: &[&str]) -> Vec<String> {
    let returned = system.salt_json(&[words, &["test.ping"]].concat());
    let mut ids: Vec<String> = returned
        .as_map()
        .unwrap()
        .iter()
        .filter(|(_, value)| **value == true.into())
        .map(|(id, _)| id.to_string())
        .collect();
    ids.sort();
    ids
}

fn run_json(system: &System, words: &[&str]) -> Value {
    let output = system.tool("salt-run", &[words, &["--out=json"]].concat());
    json::from_json(&stdout(&output)).unwrap_or_else(|_| panic!("{}{}", stdout(&output), stderr(&output)))
}

/// Starts a job and returns its id.
fn start(system: &System, words: &[&str]) -> String {
    let output = stdout(&system.tool("salt", &[&["--async"], words].concat()));
    output.lines().find_map(|line| line.split("job ID: ").nth(1)).unwrap().to_owned()
}

/// Waits until the job cache has this return of web1.
async fn until_returned(system: &System, jid: &str, value: &Value) {
    until("the return arrives", || run_json(system, &["jobs.lookup_jid", jid]).get("web1") == Some(value)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_reaches_the_minions_of_all_masters_below() {
    let groups = "nodegroups: {group: 'L@web1,top1', deep: 'web* or db1'}\n";
    let mut upper = System::start(&format!("order_masters: True\nsyndic_wait: 15\n{groups}")).await;
    upper.start_minion("top1").await;
    let (lower, _first) = add(&upper, "s1", &["web1", "web2"], "").await;
    let (_other, _second) = add(&upper, "s2", &["db1"], "").await;
    let started = Instant::now();
    assert_eq!(pinged(&upper, &["*"]), ["db1", "top1", "web1", "web2"]);
    assert!(started.elapsed() < Duration::from_secs(10), "no timeout elapses: {:?}", started.elapsed());
    for (words, expected) in [
        (&["web*"][..], &["web1", "web2"][..]),
        (&["-L", "web2,top1,gone"], &["top1", "web2"]),
        (&["-E", "(web|db)1"], &["db1", "web1"]),
        (&["-G", "id:web2"], &["web2"]),
        (&["-C", "web* and not L@web1"], &["web2"]),
        (&["-N", "group"], &["top1", "web1"]),
        (&["-N", "deep"], &["db1", "web1", "web2"]),
        (&["-b", "1", "*"], &["db1", "top1", "web1", "web2"]),
        (&["top1"], &["top1"]),
    ] {
        assert_eq!(pinged(&upper, words), expected, "{words:?}");
    }
    // A minion that no master knows is listed as missing; minions of lower masters are not.
    let listed = stdout(&upper.tool("salt", &["-L", "web2,gone", "test.ping"]));
    assert!(listed.contains("gone:\n    Minion did not return.") && listed.contains("web2:\n    True"), "{listed}");
    let nobody = upper.tool("salt", &["nobody*", "test.ping"]);
    assert!(stderr(&nobody).contains("No return received"), "{}{}", stdout(&nobody), stderr(&nobody));
    // An orchestration of the upper master runs a job on minions below.
    upper.write("srv/salt/orch.sls", "below:\n  salt.function:\n    - name: test.ping\n    - tgt: 'web*'\n");
    let ran = stdout(&upper.tool("salt-run", &["state.orchestrate", "orch"]));
    assert!(ran.contains("Succeeded: 1") && ran.contains("web1") && ran.contains("web2"), "{ran}");
    // A job that fails below fails above.
    let failed = upper.tool("salt", &["web1", "cmd.run", "exit 3"]);
    assert!(!failed.status.success());
    // The states of a job come from the master of its minion.
    lower.write("srv/salt/here.sls", "here:\n  test.nop: []\n");
    let applied = upper.tool("salt", &["web1", "state.apply", "here"]);
    assert!(applied.status.success() && stdout(&applied).contains("Succeeded: 1"), "{}", stdout(&applied));
}

#[tokio::test(flavor = "multi_thread")]
async fn upper_master_receives_jobs_and_events_of_lower_masters() {
    let (upper, lower, _syndic) = two_tiers(&["web1"]).await;
    let mut events = upper.events("syndic/s1/").await;
    let mut returns = upper.events("salt/job/").await;
    // A job of the upper master.
    let jid = start(&upper, &["*", "test.echo", "hello"]);
    let (_, report) = events.until(&format!("syndic/s1/salt/job/{jid}/new")).await;
    assert_eq!(report.get("minions"), Some(&vec![Value::from("web1")].into()));
    until("the job cache has the minions below", || {
        run_json(&upper, &["jobs.list_job", &jid]).get("Minions") == Some(&vec![Value::from("web1")].into())
    })
    .await;
    until_returned(&upper, &jid, &"hello".into()).await;
    // A job of the lower master.
    let jid = start(&lower, &["web1", "test.echo", "below"]);
    let (_, returned) = returns.until(&format!("salt/job/{jid}/ret/web1")).await;
    assert_eq!((returned.get("return"), returned.get("fun")), (Some(&"below".into()), Some(&"test.echo".into())));
    assert_eq!(returned.get("_from"), Some(&"s1".into()));
    until("the job from below is in the job cache", || {
        let job = run_json(&upper, &["jobs.list_job", &jid]);
        job.get("Function") == Some(&"test.echo".into()) && job.get("Target") == Some(&"web1".into())
    })
    .await;
    // Another event.
    let mut plain = upper.events("my/").await;
    assert!(lower.tool("salt-run", &["event.send", "my/event", "{a: 1}"]).status.success());
    assert_eq!(events.until("syndic/s1/my/event").await.1.get("a"), Some(&1.into()));
    assert_eq!(plain.until("my/event").await.1.get("a"), Some(&1.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn events_during_an_outage_of_the_upper_master_or_the_syndic_arrive_later() {
    let (mut upper, lower, mut syndic) = two_tiers(&["web1"]).await;
    assert_eq!(pinged(&upper, &["*"]), ["web1"]);
    // The upper master is killed while a job runs.
    let slow = start(&upper, &["web1", "test.sleep", "2"]);
    let mut below = lower.events("salt/job/").await;
    upper.kill_master();
    below.until(&format!("salt/job/{slow}/ret/web1")).await;
    assert!(lower.tool("salt-run", &["event.send", "my/event", "{number: 1}"]).status.success());
    upper.start_master().await;
    until("the return arrives", || run_json(&upper, &["jobs.lookup_jid", &slow]).get("web1") == Some(&true.into()))
        .await;
    let number = |output: &str| output.matches("syndic/s1/my/event").count();
    let seen = || number(&stdout(&upper.tool("salt-run", &["event_bus.since", "1", "limit=10000", "--out=json"])));
    until("the event arrives", || seen() > 0).await;
    assert_eq!(seen(), 1);
    // The syndic is killed; when it starts again it sends the events that it has missed, and none twice.
    syndic.kill();
    let alone = start(&lower, &["web1", "test.echo", "alone"]);
    below.until(&format!("salt/job/{alone}/ret/web1")).await;
    // A job that is published without the syndic is not lost either, and `salt` does not wait for it.
    until("the upper master notices its end", || pinged(&upper, &["*"]).is_empty()).await;
    let missed = start(&upper, &["web1", "test.echo", "missed"]);
    let _syndic = Syndic::start(&lower, "s1").await;
    until_returned(&upper, &alone, &"alone".into()).await;
    until_returned(&upper, &missed, &"missed".into()).await;
    assert_eq!(seen(), 1);
    assert_eq!(pinged(&upper, &["*"]), ["web1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_reach_minions_two_syndics_below() {
    let mut upper = System::start("order_masters: True\nsyndic_wait: 15\n").await;
    upper.start_minion("top1").await;
    let (middle, _first) = add(&upper, "s1", &["mid1"], "order_masters: True\nsyndic_wait: 15\n").await;
    let mut seen = upper.events("syndic/s1/salt/syndic/").await;
    let (_lowest, _second) = add(&middle, "s2", &["deep1", "deep2"], "").await;
    seen.until("syndic/s1/salt/syndic/s2/start").await;
    let started = Instant::now();
    assert_eq!(pinged(&upper, &["*"]), ["deep1", "deep2", "mid1", "top1"]);
    assert!(started.elapsed() < Duration::from_secs(10), "no timeout elapses: {:?}", started.elapsed());
    assert_eq!(pinged(&upper, &["deep*"]), ["deep1", "deep2"]);
    assert_eq!(pinged(&middle, &["*"]), ["deep1", "deep2", "mid1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_upper_masters_receive_their_own_returns_and_all_events() {
    let options = "order_masters: True\nsyndic_wait: 15\n";
    let first = System::start(options).await;
    let mut second = System::new(&format!("auto_accept: True\n{options}"));
    for file in ["master.pem", "master.pub"] {
        std::fs::create_dir_all(second.path("pki")).unwrap();
        std::fs::copy(first.path("pki").join(file), second.path("pki").join(file)).unwrap();
    }
    second.start_master().await;
    let mut lower = below(&[first.ret_port, second.ret_port], "");
    lower.start_master().await;
    lower.start_minion("web1").await;
    let mut events = Vec::new();
    for upper in [&first, &second] {
        events.push((upper.events("salt/syndic/").await, upper.events("syndic/").await));
    }
    let _syndic = Syndic::start(&lower, "s1").await;
    for (starts, _) in &mut events {
        starts.until("salt/syndic/s1/start").await;
    }
    for upper in [&first, &second] {
        assert_eq!(pinged(upper, &["*"]), ["web1"]);
    }
    let jid = start(&second, &["*", "test.echo", "own"]);
    until_returned(&second, &jid, &"own".into()).await;
    assert!(lower.tool("salt-run", &["event.send", "my/event"]).status.success());
    for (_, events) in &mut events {
        events.until("syndic/s1/my/event").await;
    }
    assert_eq!(run_json(&first, &["jobs.lookup_jid", &jid]).get("web1"), None);
}
