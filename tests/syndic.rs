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

/// The number of lines that jobs have written, by word.
fn ran(system: &System) -> Vec<String> {
    let text = std::fs::read_to_string(system.path("ran")).unwrap_or_default();
    let mut words: Vec<String> = text.lines().map(str::to_owned).collect();
    words.sort();
    words
}

/// Publishes a job for web1 that writes this word.
async fn write_word(upper: &System, lower: &System, word: &str) {
    let command = format!("echo {word} >> {}", lower.path("ran").display());
    let output = upper.tool_async("salt", &["--async", "web1", "cmd.run", &command]).await;
    assert!(output.status.success(), "{}", stderr(&output));
}

fn signal(pid: u32, signal: nix::sys::signal::Signal) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid.cast_signed()), signal).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_a_killed_syndic_was_publishing_runs_once() {
    let options = "publish_catch_up: 300\n";
    let upper = System::start(&format!("order_masters: True\nsyndic_wait: 15\n{options}")).await;
    let (mut lower, mut syndic) = add(&upper, "s1", &["web1"], options).await;
    let record = |lower: &System| {
        let records = std::fs::read_dir(lower.path("cache/syndic")).unwrap().map(|entry| entry.unwrap().path());
        records.into_iter().find(|path| path.extension().is_some_and(|name| name == "jobs")).unwrap()
    };
    let read = |file: &std::path::Path| std::fs::read_to_string(file).unwrap();
    let last = |text: &str| text.trim_end().rsplit('\n').next().unwrap().to_owned();
    // The first job that the syndic ever receives, and later ones.
    for word in ["1", "2", "3"] {
        let received = syndic.log().matches("job received from an upstream master").count();
        signal(lower.master_pid(), nix::sys::signal::Signal::SIGSTOP);
        write_word(&upper, &lower, word).await;
        until("the syndic has the job", || {
            syndic.log().matches("job received from an upstream master").count() > received
        })
        .await;
        syndic.kill();
        lower.kill_master();
        lower.start_master().await;
        syndic = Syndic::start(&lower, "s1").await;
        until("the job runs", || ran(&lower).contains(&word.to_owned())).await;
        // A minion may run a job before the syndic has the answer of the master, which must not be stopped until then.
        let file = record(&lower);
        until("the job is recorded as published", || !last(&read(&file)).starts_with('+')).await;
    }
    // Published, but not recorded as such: killed between the two.
    let file = record(&lower);
    syndic.kill();
    let text = read(&file);
    std::fs::write(&file, text.strip_suffix(&format!("{}\n", last(&text))).unwrap()).unwrap();
    syndic = Syndic::start(&lower, "s1").await;
    write_word(&upper, &lower, "4").await;
    until("the job runs", || ran(&lower).contains(&"4".to_owned())).await;
    assert_eq!(ran(&lower), ["1", "2", "3", "4"]);
    assert!(syndic.log().contains("job received from an upstream master"));
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_run_once_while_syndic_and_masters_are_killed() {
    const ROUNDS: usize = 8;
    let options = "publish_catch_up: 300\n";
    let mut upper = System::start(&format!("order_masters: True\nsyndic_wait: 15\n{options}")).await;
    let (mut lower, mut syndic) = add(&upper, "s1", &["web1"], options).await;
    let mut expected = Vec::new();
    for round in 0..ROUNDS {
        let words = [format!("{round}-a"), format!("{round}-b"), format!("{round}-c")];
        let pause = || Duration::from_millis(rand::random_range(0..40));
        for word in &words {
            write_word(&upper, &lower, word).await;
            tokio::time::sleep(pause()).await;
        }
        match round % 4 {
            0 => syndic.kill(),
            1 => lower.kill_master(),
            2 => {
                lower.kill_master();
                tokio::time::sleep(pause()).await;
                syndic.kill();
            }
            _ => upper.kill_master(),
        }
        tokio::time::sleep(pause()).await;
        match round % 4 {
            0 => syndic = Syndic::start(&lower, "s1").await,
            1 => lower.start_master().await,
            2 => {
                lower.start_master().await;
                syndic = Syndic::start(&lower, "s1").await;
            }
            _ => upper.start_master().await,
        }
        expected.extend(words);
        expected.sort();
        until("all jobs run", || ran(&lower).len() >= expected.len()).await;
    }
    assert_eq!(ran(&lower), expected);
}

/// Calls `salt` as a user of `external_auth`. Returns the output of both streams.
fn by_bob(system: &System, words: &[&str]) -> String {
    let login = ["-a", "file", "--username=bob", "--password=one"];
    let output = system.tool("salt", &[&login, words].concat());
    format!("{}{}", stdout(&output), stderr(&output))
}

#[tokio::test(flavor = "multi_thread")]
async fn users_of_the_upper_master_get_nothing_else_from_masters_below() {
    let mut upper = System::new(
        "auto_accept: True\norder_masters: True\nsyndic_wait: 15\nexternal_auth:\n  file:\n    ^filename: ROOT/users\n    \
         bob: [test.ping, schedule.add, {top1: [cmd.run]}]\n",
    );
    upper.write("users", "bob:one\n");
    upper.start_master().await;
    upper.start_minion("top1").await;
    let (lower, _syndic) = add(&upper, "s1", &["web1"], "").await;
    let command = format!("echo $(hostname) >> {}", lower.path("ran").display());
    let command = command.as_str();
    let pinged = by_bob(&upper, &["*", "test.ping"]);
    assert!(pinged.contains("top1:\n    True") && pinged.contains("web1:\n    True"), "{pinged}");
    let file = format!("filename={}", lower.path("ran").display());
    for words in [
        &["web1", "cmd.run", command][..],
        &["web*", "test.ping,cmd.run", ",", command],
        &["web1", "schedule.add", "j", "function=cmd.run", "seconds=1"],
        &["web1", "test.ping", "--return", "rawfile_json", "--return_kwargs", &file],
        &["-b", "1", "web1", "cmd.run", command],
    ] {
        let refused = by_bob(&upper, words);
        assert!(refused.contains("Authorization error occurred."), "{words:?}: {refused}");
    }
    // Permitted on all minions that the upper master knows: the master below, which knows another one, refuses its part.
    let ran = by_bob(&upper, &["-t", "1", "*", "cmd.run", "echo out"]);
    assert!(ran.contains("top1:\n    out") && !ran.contains("web1:\n    out"), "{ran}");
    until("the master below has refused the job", || {
        lower
            .master_log()
            .lines()
            .any(|line| line.contains("refused") && line.contains("cmd.run") && line.contains("bob"))
    })
    .await;
    assert!(by_bob(&upper, &["web1", "test.ping"]).contains("web1:\n    True"));
    assert!(!lower.path("ran").exists());
}
