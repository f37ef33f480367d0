//! The work of a cluster of masters: another member takes it over when a member is killed, and all members see it.
#![cfg(feature = "messaging")]

use crate::support;

use std::collections::BTreeMap;

use crate::support::nats::{Nats, member};
use crate::support::{System, stderr, stdout, until};
use brine_value::{Value, json};

const SECRET: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Starts members that accept every key.
async fn cluster(ports: &[u16], names: &[&str], extra: &str) -> Vec<System> {
    cluster_with(ports, names, extra, "").await
}

/// Starts members as [`cluster`]; `own` is a file of their configuration that takes precedence.
async fn cluster_with(ports: &[u16], names: &[&str], extra: &str, own: &str) -> Vec<System> {
    let mut members = Vec::new();
    for name in names {
        let mut system = member(ports, name, SECRET, &format!("auto_accept: True\n{extra}"));
        system.write("etc/master.d/own.conf", own);
        system.start_master().await;
        members.push(system);
    }
    members
}

fn run(system: &System, words: &[&str]) -> Value {
    let output = system.tool("salt-run", &[words, &["--out=json"]].concat());
    json::from_json(&stdout(&output)).unwrap_or_else(|_| panic!("{}{}", stdout(&output), stderr(&output)))
}

/// Returns the items of a list as strings, sorted.
fn sorted(value: &Value) -> Vec<String> {
    let mut all: Vec<String> = value.as_list().unwrap_or_default().iter().map(ToString::to_string).collect();
    all.sort();
    all
}

fn leads(system: &System) -> bool {
    system.counter("brine_cluster_leader") == 1
}

/// Waits for a leader and returns its index.
async fn leader(members: &[System]) -> usize {
    let mut position = None;
    until("a member leads", || {
        position = members.iter().position(leads);
        position.is_some()
    })
    .await;
    position.unwrap()
}

/// Returns the tags and data of the events in a member's journal whose tag matches a glob.
fn journal(system: &System, pattern: &str) -> Vec<(String, Value)> {
    let (mut events, mut next) = (Vec::new(), 1);
    loop {
        let page = run(system, &["event_bus.since", &next.to_string(), "limit=1000"]);
        let page = page.as_list().unwrap();
        for event in page {
            let tag = event.get("tag").unwrap().to_string();
            next = event.get("seq").unwrap().as_i64().unwrap() + 1;
            if brine_text::glob::fnmatch(pattern, &tag) {
                events.push((tag, event.get("data").unwrap().clone()));
            }
        }
        if page.is_empty() {
            return events;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leader_takes_over_the_batch_of_a_killed_member() {
    let nats = Nats::start().await;
    let mut members = cluster(&[nats.port], &["m1", "m2", "m3"], "").await;
    let ids = ["a1", "a2", "a3", "b1", "b2", "b3"];
    for id in ids {
        let at = if id.starts_with('a') { 1 } else { 2 };
        members[at].start_minion(id).await;
    }
    until("the minions of all are known", || sorted(&run(&members[0], &["manage.present"])).len() == ids.len()).await;
    let file = members[0].path("ran");
    let command = format!("arg=['sleep 1; echo $SALT_ID >> {}']", file.display());
    let command = command.replace("$SALT_ID", "$(basename $PWD)x");
    let started = run(&members[0], &["batch.start", "*", "cmd.run", &command, "batch=1", "kwargs={}"]);
    let jid = started.get("jid").unwrap().to_string();
    assert_eq!(started.get("minions").and_then(Value::as_list).unwrap().len(), ids.len());
    let lines = || std::fs::read_to_string(&file).unwrap_or_default().lines().count();
    until("the batch is under way", || lines() >= 2).await;
    // Every member sees it.
    let status = run(&members[2], &["batch.status", &jid]);
    assert_eq!(status.get("total"), Some(&6.into()), "{status:?}");
    assert_eq!(run(&members[1], &["batch.list_active"]).as_list().unwrap().len(), 1);
    members[0].kill_master();
    until("all minions have returned", || {
        let returned = run(&members[1], &["jobs.lookup_jid", &jid]);
        returned.as_map().is_some_and(|all| all.len() == ids.len())
    })
    .await;
    assert_eq!(lines(), ids.len(), "each minion has run it once");
    for member in &members[1..] {
        until("the batch has ended", || journal(member, &format!("salt/batch/{jid}/complete")).len() == 1).await;
        until("no batch is active", || run(member, &["batch.list_active"]).as_list().unwrap().is_empty()).await;
    }
    // The member that began the batch starts again, and repeats nothing.
    members[0].start_master().await;
    until("no batch is active", || run(&members[0], &["batch.list_active"]).as_list().unwrap().is_empty()).await;
    assert_eq!(lines(), ids.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn batch_can_be_stopped_on_another_member() {
    let nats = Nats::start().await;
    let mut members = cluster(&[nats.port], &["m1", "m2"], "").await;
    for id in ["a1", "a2", "a3"] {
        members[1].start_minion(id).await;
    }
    until("the minions are known", || sorted(&run(&members[0], &["manage.present"])).len() == 3).await;
    let started = run(&members[0], &["batch.start", "*", "test.sleep", "arg=[3]", "batch=1"]);
    let jid = started.get("jid").unwrap().to_string();
    until("the batch is known on the other member", || {
        run(&members[1], &["batch.status", &jid]).get("total") == Some(&3.into())
    })
    .await;
    assert_eq!(run(&members[1], &["batch.stop", &jid]), true.into());
    until("the batch is halted", || journal(&members[1], &format!("salt/batch/{jid}/halted")).len() == 1).await;
    until("no batch is active", || run(&members[1], &["batch.list_active"]).as_list().unwrap().is_empty()).await;
}

/// Starts a runner function in the background and returns its job id.
fn start(member: &System, words: &[&str]) -> String {
    let started = member.tool("salt-run", &[&["--async"], words].concat());
    let text = format!("{}{}", stdout(&started), stderr(&started));
    text.split(|c: char| !c.is_ascii_digit()).find(|word| word.len() == 20).expect(&text).to_owned()
}

/// Waits until every member's journal has the end of a call. The member that began the call was killed, and is started
/// here. Returns the data of the end's only event on each member.
async fn until_ended(members: &mut [System], jid: &str) -> Vec<Value> {
    let tag = format!("salt/run/{jid}/ret");
    for member in &members[1..] {
        until("the end of the call is known", || !journal(member, &tag).is_empty()).await;
    }
    // The member neither starts nor reports the call again.
    members[0].start_master().await;
    until("the end of the call is known on the restarted member", || !journal(&members[0], &tag).is_empty()).await;
    let end = |member: &System| {
        let mut ends = journal(member, &tag);
        assert_eq!(ends.len(), 1, "{ends:?}");
        ends.remove(0).1
    };
    members.iter().map(end).collect()
}

/// A busy machine must not make minions count as silent.
const PATIENT: &str = "timeout: 60\ngather_job_timeout: 60\n";

#[tokio::test(flavor = "multi_thread")]
async fn orchestration_resumes_on_another_member() {
    let nats = Nats::start().await;
    let mut members = cluster_with(&[nats.port], &["m1", "m2", "m3"], "", PATIENT).await;
    members[1].start_minion("web1").await;
    let lines = members[0].path("lines");
    let (proceed, text) = (members[0].path("proceed"), lines.display().to_string());
    let step = |name: &str, command: &str, needs: &str| {
        format!(
            "{name}:\n  salt.function:\n    - name: cmd.run\n    - tgt: web1\n    - arg: ['{command}echo {name} >> {text}']\n{needs}"
        )
    };
    let wait = format!("while [ ! -e {} ]; do sleep 0.1; done; ", proceed.display());
    let sls = [
        step("first", "", ""),
        step("second", &wait, "    - require: [{salt: first}]\n"),
        step("third", "", "    - require: [{salt: second}]\n"),
        // The same request as the first state's: it must not be taken for the one that was already made.
        step("first", "", "    - require: [{salt: third}]\n").replacen("first", "again", 1),
    ];
    for member in &members {
        member.write("srv/salt/steps.sls", &sls.concat());
    }
    until("the minion is known", || sorted(&run(&members[0], &["manage.present"])) == ["web1"]).await;
    let jid = start(&members[0], &["state.orchestrate", "steps"]);
    let log = || members[1].minion_log("web1").matches("job received").count();
    until("the second state runs", || lines.exists() && log() >= 2).await;
    members[0].kill_master();
    let taken = |member: &System| member.master_log().matches("orchestration taken over").count();
    until("another member takes over the orchestration", || members[1..].iter().map(taken).sum::<usize>() == 1).await;
    std::fs::write(&proceed, "").unwrap();
    for end in until_ended(&mut members, &jid).await {
        assert_eq!(end.get("success"), Some(&true.into()), "{end:?}");
        let states = end.get("return").unwrap().to_string();
        assert_eq!(states.matches("'result': True").count(), 4, "{states}");
    }
    assert_eq!(std::fs::read_to_string(&lines).unwrap(), "first\nsecond\nthird\nfirst\n", "each state has run once");
}

#[tokio::test(flavor = "multi_thread")]
async fn orchestration_with_large_results_resumes() {
    let nats = Nats::start().await;
    let mut members = cluster_with(&[nats.port], &["m1", "m2"], "", PATIENT).await;
    members[1].start_minion("web1").await;
    let (lines, proceed) = (members[0].path("lines"), members[0].path("proceed"));
    let step = |name: &str, command: &str| {
        format!(
            "{name}:\n  salt.function:\n    - name: cmd.run\n    - tgt: web1\n    - arg: ['{command}; echo {name} >> {}']\n",
            lines.display()
        )
    };
    let large = "head -c 600000 /dev/zero | tr \"\\0\" x";
    let wait = format!("while [ ! -e {} ]; do sleep 0.1; done", proceed.display());
    let sls = [step("first", large), step("second", large), step("third", &wait), step("fourth", large)].concat();
    for member in &members {
        member.write("srv/salt/steps.sls", &sls);
    }
    until("the minion is known", || sorted(&run(&members[0], &["manage.present"])) == ["web1"]).await;
    let jid = start(&members[0], &["state.orchestrate", "steps"]);
    let log = || members[1].minion_log("web1").matches("job received").count();
    until("the third state runs", || lines.exists() && log() >= 3).await;
    members[0].kill_master();
    until("the other member takes over the orchestration", || {
        members[1].master_log().contains("orchestration taken over")
    })
    .await;
    std::fs::write(&proceed, "").unwrap();
    for end in until_ended(&mut members, &jid).await {
        assert_eq!(end.get("success"), Some(&true.into()), "{end:?}");
    }
    assert_eq!(std::fs::read_to_string(&lines).unwrap(), "first\nsecond\nthird\nfourth\n", "each state has run once");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_call_fails_once_on_all_members() {
    let nats = Nats::start().await;
    let mut members = cluster(&[nats.port], &["m1", "m2", "m3"], "").await;
    members[1].start_minion("web1").await;
    until("the minion is known", || sorted(&run(&members[0], &["manage.present"])) == ["web1"]).await;
    let jid = start(&members[0], &["salt.execute", "web1", "test.sleep", "arg=[600]", "timeout=600"]);
    // The call is recorded in the cluster when the record is larger than an empty one.
    let client = async_nats::connect(format!("127.0.0.1:{}", nats.port)).await.unwrap();
    let work = async_nats::jetstream::new(client).get_key_value("brine_brine_work").await.unwrap();
    tokio::time::timeout(support::TIMEOUT, async {
        let mut records = work.watch_with_history("calls.m1").await.unwrap();
        while let Some(record) = futures::StreamExt::next(&mut records).await {
            if record.unwrap().value.len() > 100 {
                return;
            }
        }
    })
    .await
    .unwrap();
    members[0].kill_master();
    for end in until_ended(&mut members, &jid).await {
        assert_eq!(end.get("success"), Some(&false.into()));
        let text = end.get("return").unwrap().to_string();
        assert!(text.starts_with("The call was interrupted, because its master has ended."), "{text}");
    }
    let logs: usize = members.iter().map(|one| one.master_log().matches("a call was interrupted").count()).sum();
    assert_eq!(logs, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn scheduled_job_runs_on_one_member_and_fails_over() {
    let nats = Nats::start().await;
    let schedule = "schedule:\n  often:\n    function: event.send\n    args: [scheduled/run]\n    seconds: 2\n";
    let mut members = cluster(&[nats.port], &["m1", "m2", "m3"], schedule).await;
    let runs = |member: &System| -> Vec<(String, f64)> {
        let events = journal(member, "scheduled/run").into_iter();
        let by = |data: &Value| data.get("_origin").map_or("own".to_owned(), ToString::to_string);
        let time = |data: &Value| {
            let stamp = data.get("_stamp").unwrap().to_string();
            let stamp: jiff::civil::DateTime = stamp.parse().unwrap();
            stamp.to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp().as_millisecond() as f64 / 1000.0
        };
        events.map(|(_, data)| (by(&data), time(&data))).collect()
    };
    until("the job has run four times", || runs(&members[0]).len() >= 4).await;
    let first = leader(&members).await;
    members[first].kill_master();
    let other = (first + 1) % 3;
    let before = runs(&members[other]).len();
    until("the job runs on another member", || runs(&members[other]).len() >= before + 4).await;
    let all = runs(&members[other]);
    let members: BTreeMap<&String, usize> = all.iter().fold(BTreeMap::new(), |mut counts, (by, _)| {
        *counts.entry(by).or_default() += 1;
        counts
    });
    assert_eq!(members.len(), 2, "one member at a time: {members:?}");
    for pair in all.windows(2) {
        assert!(pair[1].1 - pair[0].1 > 0.9, "an occurrence ran twice: {all:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_are_shared_and_each_item_is_processed_once() {
    let mut nats = Nats::start().await;
    let members = cluster(&[nats.port], &["m1", "m2", "m3"], "").await;
    let numbers: Vec<String> = (0..30).map(|number| number.to_string()).collect();
    let items = format!("[{}]", numbers.iter().map(|one| format!("'{one}'")).collect::<Vec<_>>().join(","));
    assert_eq!(run(&members[0], &["queue.insert", "tasks", &items]), true.into());
    assert_eq!(run(&members[1], &["queue.insert", "tasks", "['3']"]), "Item already exists: 3".into());
    for member in &members {
        assert_eq!(run(member, &["queue.list_length", "tasks"]), 30.into());
        assert_eq!(sorted(&run(member, &["queue.list_queues"])), ["tasks"]);
    }
    assert_eq!(run(&members[2], &["queue.delete", "tasks", "['29']"]), true.into());
    // The number of the last item is found after it was removed, too.
    assert_eq!(run(&members[1], &["queue.insert", "tasks", "['29']"]), true.into());
    assert_eq!(run(&members[0], &["queue.list_items", "tasks"]).as_list().map(<[Value]>::len), Some(30));
    assert_eq!(run(&members[2], &["queue.delete", "tasks", "['29']"]), true.into());
    // Three members take items at the same time.
    let mut waiting = Vec::new();
    for _ in 0..5 {
        for member in &members {
            waiting.push(member.tool_async("salt-run", &["queue.process_queue", "tasks", "2", "--out=json"]));
        }
    }
    let mut taken = Vec::new();
    for output in futures::future::join_all(waiting).await {
        let data = json::from_json(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        taken.extend(sorted(data.get("items").unwrap()));
    }
    taken.sort_by_key(|one| one.parse::<u32>().unwrap());
    assert_eq!(taken, numbers[..29]);
    // On all members, each item is in exactly one event.
    until("the events are known", || journal(&members[0], "salt/queue/tasks/process").len() == 15).await;
    assert_eq!(run(&members[1], &["queue.list_length", "tasks"]), 0.into());
    // Without the servers no item is taken, and the error names the cause.
    assert_eq!(run(&members[0], &["queue.insert", "tasks", "last"]), true.into());
    nats.kill();
    let refused = stdout(&members[1].tool("salt-run", &["queue.pop", "tasks"]));
    assert!(refused.contains("the cluster is unavailable: NATS:"), "{refused}");
    nats.restart().await;
    until("the queue is available again", || {
        stdout(&members[2].tool("salt-run", &["queue.pop", "tasks", "--out=json"])).contains("\"last\"")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn presence_covers_the_minions_of_all_members() {
    let nats = Nats::start().await;
    let presence = "presence_events: True\nloop_interval: 1\n";
    let mut members = cluster(&[nats.port], &["m1", "m2", "m3"], presence).await;
    let ids = ["web1", "web2", "web3"];
    for (member, id) in members.iter_mut().zip(ids) {
        member.start_minion(id).await;
    }
    for member in &members {
        until("all are present", || sorted(&run(member, &["manage.present"])) == ids).await;
        assert_eq!(sorted(&run(member, &["manage.alived"])), ids);
        assert_eq!(sorted(&run(member, &["manage.up"])), ids);
        assert_eq!(sorted(&run(member, &["manage.not_present"])), Vec::<String>::new());
    }
    // One member, the leader, publishes the presence events.
    let mut events = members[0].events("salt/presence/present").await;
    let (_, data) = events.until("salt/presence/present").await;
    assert_eq!(sorted(data.get("present").unwrap()), ids);
    let first = leader(&members).await;
    let others: Vec<String> = (0..3).filter(|at| *at != first).map(|at| format!("m{}", at + 1)).collect();
    for (_, data) in journal(&members[0], "salt/presence/present").iter().rev().take(3) {
        let by = data.get("_origin").map_or("m1".to_owned(), ToString::to_string);
        assert!(!others.contains(&by), "{by} is not the leader");
    }
    // The minions of a killed member are no longer present.
    members[2].kill_master();
    for member in &members[..2] {
        until("the minion of the killed member is not present", || {
            sorted(&run(member, &["manage.present"])) == ["web1", "web2"]
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn oversized_returns_are_complete_on_all_members() {
    let nats = Nats::start().await;
    let mut members = cluster(&[nats.port], &["m1", "m2", "m3"], "").await;
    members[0].start_minion("web1").await;
    until("the minion is known", || sorted(&run(&members[2], &["manage.present"])) == ["web1"]).await;
    let file = members[0].path("large");
    std::fs::write(&file, "0123456789abcde\n".repeat(200_000)).unwrap();
    let path = file.display().to_string();
    let started = stdout(&members[2].tool("salt", &["--async", "web1", "cmd.run", &format!("cat {path}")]));
    let jid = started.lines().find_map(|line| line.split("job ID: ").nth(1)).unwrap().to_owned();
    for member in &members {
        until("the return is complete", || {
            let returned = run(member, &["jobs.lookup_jid", &jid]);
            returned.get("web1").is_some_and(|text| text.to_string().len() == 3_199_999)
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn new_leader_resumes_rules_over_time() {
    let nats = Nats::start().await;
    let names = ["m1", "m2", "m3"];
    let mut members = Vec::new();
    // All members have the same files at the same paths: a rule at another path is another rule.
    let files = tempfile::tempdir().unwrap();
    let path = files.path().display().to_string();
    for what in ["three", "absent"] {
        let event = format!("tell:\n  runner.event.send:\n    - tag: fired/{what}\n");
        std::fs::write(files.path().join(format!("{what}.sls")), event).unwrap();
    }
    let rules = "three:\n  rule.count:\n    - tag: count/me\n    - count: 3\n    - within: 1h\n    - react: DIR/three.sls\n\
                 absent:\n  rule.absent:\n    - after: count/me\n    - expect: never\n    - within: 20s\n    - react: DIR/absent.sls\n";
    std::fs::write(files.path().join("rules"), rules.replace("DIR", &path)).unwrap();
    for name in names {
        let mut system = member(&[nats.port], name, SECRET, &format!("reactor_rules: [{path}/rules]\n"));
        system.start_master().await;
        members.push(system);
    }
    let first = leader(&members).await;
    let client = async_nats::connect(format!("127.0.0.1:{}", nats.port)).await.unwrap();
    let work = async_nats::jetstream::new(client).get_key_value("brine_brine_work").await.unwrap();
    let mut states = work.watch("rules").await.unwrap();
    let send = |system: &System| assert!(system.tool("salt-run", &["event.send", "count/me"]).status.success());
    for at in [first, (first + 1) % 3] {
        send(&members[at]);
        // The state of the rules, with this event, was sent to the other members.
        let state = tokio::time::timeout(support::TIMEOUT, futures::StreamExt::next(&mut states)).await.unwrap();
        assert!(!state.unwrap().unwrap().value.is_empty());
    }
    members[first].kill_master();
    let other = (first + 2) % 3;
    send(&members[other]);
    until("the third event fires", || !journal(&members[other], "fired/three").is_empty()).await;
    // The timer of `absent` continues, too.
    until("the timer fires", || !journal(&members[other], "fired/absent").is_empty()).await;
    assert_eq!(journal(&members[other], "fired/three").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_data_on_the_servers_is_ignored() {
    let nats = Nats::start().await;
    let schedule = "schedule:\n  often:\n    function: event.send\n    args: [scheduled/run]\n    seconds: 1\n";
    let members = cluster(&[nats.port], &["m1", "m2"], schedule).await;
    until("the job has run", || !journal(&members[0], "scheduled/run").is_empty()).await;
    let client = async_nats::connect(format!("127.0.0.1:{}", nats.port)).await.unwrap();
    let context = async_nats::jetstream::new(client);
    let work = context.get_key_value("brine_brine_work").await.unwrap();
    let mut keys: Vec<String> = vec!["calls.m9".into(), "batch.20261120235852025555".into(), "batch.x".into()];
    let schedule = brine_digest::hex(brine_digest::Digest::Sha256.of("often"));
    keys.push(format!("schedule.{schedule}"));
    for key in &keys {
        work.put(key, "junk".into()).await.unwrap();
    }
    let lease = context.get_key_value("brine_brine_leases").await.unwrap();
    lease.put("alive.bTk", "junk".into()).await.unwrap();
    // `d29yaw` is the queue `work` in base64.
    context.publish("brine.brine.queues.d29yaw", "junk".into()).await.unwrap().await.unwrap();
    assert_eq!(run(&members[0], &["queue.insert", "tasks", "item"]), true.into());
    assert_eq!(sorted(&run(&members[1], &["queue.pop", "tasks", "all"])), ["item"]);
    assert_eq!(run(&members[1], &["queue.list_length", "tasks"]), 0.into());
    let before = journal(&members[0], "scheduled/run").len();
    until("the job runs again", || journal(&members[0], "scheduled/run").len() > before + 1).await;
    assert_eq!(run(&members[0], &["batch.list_active"]).as_list().unwrap().len(), 0);
    until("the refused values are counted", || {
        members.iter().map(|member| member.counter("brine_cluster_values_refused_total")).sum::<i64>() >= 4
    })
    .await;
}
