//! A cluster of masters on a NATS server: any member reaches all minions, each event has its reactions once, and
//! nothing is lost while the server or a member is down.
#![cfg(feature = "messaging")]

use crate::support;

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::nats::{Nats, member, three_servers};
use crate::support::{System, stderr, stdout, until};
use brine_bus::SocketNames;
use brine_event::Event;
use brine_value::{Value, json, map};
use brine_zmtp::Push;
use tokio::net::{TcpListener, TcpStream};

const SECRET: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Accepts every minion, and records each `test/event` by a runner call with its number.
const REACTOR: &str = "reactor:\n  - salt/auth: [ROOT/accept.sls]\n  - test/event: [ROOT/record.sls]\n";

/// Starts these members.
async fn cluster(ports: &[u16], names: &[&str], extra: &str) -> Vec<System> {
    let mut members = Vec::new();
    for name in names {
        let mut system = member(ports, name, SECRET, &format!("{REACTOR}{extra}"));
        system.write("accept.sls", "accept:\n  wheel.key.accept:\n    - match: {{ data['id'] }}\n");
        system.write(
            "record.sls",
            "record:\n  runner.event.send:\n    - tag: recorded/{{ data['number'] }}\n    - data: {by: {{ opts['id'] }}}\n",
        );
        system.start_master().await;
        members.push(system);
    }
    members
}

/// Returns the ids that return a ping.
fn pinged(system: &System, words: &[&str]) -> Vec<String> {
    let returned = system.salt_json(&[words, &["test.ping"]].concat());
    let all = returned.as_map().cloned().unwrap_or_default();
    let mut ids: Vec<String> =
        all.iter().filter(|(_, value)| **value == true.into()).map(|(id, _)| id.to_string()).collect();
    ids.sort();
    ids
}

fn run_json(system: &System, words: &[&str]) -> Value {
    let output = system.tool("salt-run", &[words, &["--out=json"]].concat());
    json::from_json(&stdout(&output)).unwrap_or_else(|_| panic!("{}{}", stdout(&output), stderr(&output)))
}

/// Sends `test/event` with this number on a member's bus.
fn send(system: &System, number: u32) {
    let sent = system.tool("salt-run", &["event.send", "test/event", &format!("{{number: {number}}}")]);
    assert!(sent.status.success(), "{}", stderr(&sent));
}

/// Returns the recorded numbers in a member's journal, each with the member that recorded it.
fn recorded(system: &System) -> Vec<(String, String)> {
    let (mut records, mut next) = (Vec::new(), 1);
    loop {
        let page = run_json(system, &["event_bus.since", &next.to_string(), "limit=1000"]);
        let page = page.as_list().unwrap();
        for event in page {
            let data = event.get("data").unwrap();
            if let Some(number) = event.get("tag").unwrap().to_string().strip_prefix("recorded/") {
                let by = data.get("data").unwrap_or(data).get("by").unwrap().to_string();
                records.push((number.to_owned(), by));
            }
            next = event.get("seq").unwrap().as_i64().unwrap() + 1;
        }
        if page.is_empty() {
            records.sort();
            return records;
        }
    }
}

/// Waits until every member's journal has records of all these numbers, and returns the members that recorded them.
async fn until_recorded(members: &[&System], numbers: std::ops::Range<u32>) -> Vec<String> {
    let expected: Vec<String> = numbers.map(|number| number.to_string()).collect();
    for member in members {
        until("all events have their reaction", || {
            let mut numbers: Vec<String> = recorded(member).into_iter().map(|(number, _)| number).collect();
            numbers.dedup();
            expected.iter().all(|number| numbers.contains(number))
        })
        .await;
    }
    recorded(members[0]).into_iter().map(|(_, by)| by).collect()
}

/// Returns the index of the leader.
fn leader(members: &[System]) -> usize {
    let leads = |member: &System| member.counter("brine_cluster_leader") == 1;
    members.iter().position(leads).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_member_reaches_all_minions() {
    let nats = Nats::start().await;
    let mut members = cluster(&[nats.port], &["m1", "m2", "m3"], "").await;
    let keys: Vec<String> =
        members.iter().map(|member| std::fs::read_to_string(member.path("pki/master.pub")).unwrap()).collect();
    assert!(keys.iter().all(|key| *key == keys[0]), "all members have one key pair");
    for (member, id) in members.iter_mut().zip(["web1", "web2", "db1"]) {
        member.start_minion(id).await;
    }
    for member in &members {
        until("the keys of all minions are known", || {
            let listed = stdout(&member.tool("salt-key", &["-l", "acc"]));
            ["web1", "web2", "db1"].iter().all(|id| listed.contains(id))
        })
        .await;
        assert_eq!(pinged(member, &["*"]), ["db1", "web1", "web2"]);
        assert_eq!(pinged(member, &["-L", "web1,db1"]), ["db1", "web1"]);
        until("grains are known", || pinged(member, &["-G", "id:web2"]) == ["web2"]).await;
    }
    // A job that one member published is in the job caches of all.
    let started = stdout(&members[0].tool("salt", &["--async", "*", "test.echo", "hello"]));
    let jid = started.lines().find_map(|line| line.split("job ID: ").nth(1)).unwrap().to_owned();
    for member in &members {
        until("the returns are known", || {
            let returned = run_json(member, &["jobs.lookup_jid", &jid]);
            returned.as_map().is_some_and(|all| all.len() == 3 && all.values().all(|value| *value == "hello".into()))
        })
        .await;
    }
    // A deleted key is deleted everywhere.
    members[0].kill_minion("web1");
    assert!(members[1].tool("salt-key", &["-y", "-d", "web1"]).status.success());
    for member in &members {
        until("the key is gone", || !stdout(&member.tool("salt-key", &["-l", "acc"])).contains("web1")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_event_has_its_reactions_once_across_leaders() {
    let nats = Nats::start().await;
    let mut members = cluster(&[nats.port], &["m1", "m2", "m3"], "").await;
    for number in 0..9 {
        send(&members[number as usize % 3], number);
    }
    let all: Vec<&System> = members.iter().collect();
    let by = until_recorded(&all, 0..9).await;
    assert_eq!(by.len(), 9, "one reaction each");
    assert!(by.iter().all(|member| *member == by[0]), "one member reacts: {by:?}");
    // The leader is killed; another member takes over, and repeats no reaction.
    let first = leader(&members);
    assert_eq!(by[0], format!("m{}", first + 1));
    members[first].kill_master();
    let others: Vec<usize> = (0..3).filter(|at| *at != first).collect();
    for number in 9..15 {
        send(&members[others[number as usize % 2]], number);
    }
    let rest: Vec<&System> = others.iter().map(|at| &members[*at]).collect();
    let by = until_recorded(&rest, 0..15).await;
    assert_eq!(by.len(), 15, "one reaction each: {by:?}");
    // The first member starts again, and receives the events that it has missed.
    members[first].start_master().await;
    send(&members[first], 15);
    let all: Vec<&System> = members.iter().collect();
    let by = until_recorded(&all, 0..16).await;
    assert_eq!(by.len(), 16, "one reaction each: {by:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn members_serve_their_minions_without_the_server_and_catch_up() {
    let mut nats = Nats::start().await;
    let mut members = cluster(&[nats.port], &["m1", "m2"], "").await;
    members[0].start_minion("web1").await;
    members[1].start_minion("web2").await;
    for member in &members {
        until("the keys of all minions are known", || {
            let listed = stdout(&member.tool("salt-key", &["-l", "acc"]));
            ["web1", "web2"].iter().all(|id| listed.contains(id))
        })
        .await;
    }
    nats.kill();
    assert_eq!(pinged(&members[0], &["web1"]), ["web1"]);
    assert_eq!(pinged(&members[1], &["web2"]), ["web2"]);
    // Each member reacts to its own events.
    send(&members[0], 0);
    send(&members[1], 1);
    until_recorded(&[&members[0]], 0..1).await;
    until_recorded(&[&members[1]], 1..2).await;
    // A new minion is accepted, and its key reaches the other member later.
    members[0].start_minion("web3").await;
    let started = stdout(&members[0].tool("salt", &["--async", "web1", "test.echo", "alone"]));
    let jid = started.lines().find_map(|line| line.split("job ID: ").nth(1)).unwrap().to_owned();
    nats.restart().await;
    let all: Vec<&System> = members.iter().collect();
    let by = until_recorded(&all, 0..2).await;
    assert_eq!(by, ["m1", "m2"], "nothing is repeated");
    until("the return during the outage is known", || {
        run_json(&members[1], &["jobs.lookup_jid", &jid]).get("web1") == Some(&"alone".into())
    })
    .await;
    until("the key accepted during the outage is known", || {
        stdout(&members[1].tool("salt-key", &["-l", "acc"])).contains("web3")
    })
    .await;
    until("every minion is reached again", || pinged(&members[1], &["*"]) == ["web1", "web2", "web3"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn new_member_receives_earlier_events() {
    let nats = Nats::start().await;
    let mut members = cluster(&[nats.port], &["m1"], "").await;
    members[0].start_minion("web1").await;
    members[0].start_minion("gone").await;
    let started = stdout(&members[0].tool("salt", &["--async", "web1", "test.echo", "early"]));
    let jid = started.lines().find_map(|line| line.split("job ID: ").nth(1)).unwrap().to_owned();
    send(&members[0], 0);
    until_recorded(&[&members[0]], 0..1).await;
    members[0].kill_minion("gone");
    assert!(members[0].tool("salt-key", &["-y", "-d", "gone"]).status.success());
    members.extend(cluster(&[nats.port], &["m2"], "").await);
    until("the job is known", || {
        run_json(&members[1], &["jobs.lookup_jid", &jid]).get("web1") == Some(&"early".into())
    })
    .await;
    let all: Vec<&System> = members.iter().collect();
    assert_eq!(until_recorded(&all, 0..1).await, ["m1"], "the past has no reactions");
    assert_eq!(pinged(&members[1], &["*"]), ["web1"]);
    // The data stored about the minion was copied, too.
    until("grains are known", || {
        run_json(&members[1], &["cache.grains", "tgt=web1"])
            .get("web1")
            .is_some_and(|grains| grains.get("os").is_some())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_cannot_be_stored_is_stored_later() {
    let nats = Nats::start().await;
    let mut members = cluster(&[nats.port], &["m1", "m2"], "").await;
    members[0].start_minion("web1").await;
    let (accepted, rejected) = (members[1].path("pki/minions/web1"), members[1].path("pki/minions_rejected"));
    until("the key is known", || accepted.exists()).await;
    // Each of its authentications would have the key compared.
    members[0].kill_minion("web1");
    // The second member can store no rejected key, as on a full disk.
    _ = std::fs::remove_dir_all(&rejected);
    let refused = members[0].tool("salt-key", &["-y", "-r", "web1", "--include-all"]);
    assert!(refused.status.success(), "{}", stderr(&refused));
    let failures = || members[1].master_log().matches("storing a value of the cluster failed: retrying").count();
    until("storing it fails again and again", || failures() > 1).await;
    assert!(accepted.exists());
    std::fs::create_dir(&rejected).unwrap();
    until("it is rejected here, too", || rejected.join("web1").exists() && !accepted.exists()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_with_another_secret_or_key_does_not_join() {
    let nats = Nats::start().await;
    let members = cluster(&[nats.port], &["m1"], "").await;
    let refused = |system: &System| {
        let output =
            std::process::Command::new(support::BRINE).args(["salt-master", "-c", &system.etc()]).output().unwrap();
        assert!(!output.status.success());
        stderr(&output)
    };
    let outsider = member(&[nats.port], "m2", &SECRET.replace('0', "x"), "");
    let error = refused(&outsider);
    assert!(error.contains("the masters of a cluster need the same secret"), "{error}");
    assert!(!outsider.path("pki/master.pem").exists());
    let other = member(&[nats.port], "m3", SECRET, "");
    std::fs::create_dir_all(other.path("pki")).unwrap();
    std::fs::write(other.path("pki/master.pem"), "another").unwrap();
    let error = refused(&other);
    assert!(error.contains("master.pem differs from the key pair of the cluster"), "{error}");
    // Messages and values that were written without the secret are refused and have no effect.
    let client = async_nats::connect(format!("127.0.0.1:{}", nats.port)).await.unwrap();
    let context = async_nats::jetstream::new(client);
    let values = context.get_key_value("brine_brine_values").await.unwrap();
    values.put("keys.ZXZpbA", "junk".into()).await.unwrap();
    values.put("shared.publish_keys", "junk".into()).await.unwrap();
    context.publish("brine.brine.events.bTk", "junk".into()).await.unwrap().await.unwrap();
    until("junk is refused", || {
        members[0].counter("brine_cluster_values_refused_total") == 2
            && members[0].counter("brine_cluster_events_lost_total") == 1
    })
    .await;
    let mut second = cluster(&[nats.port], &["m2"], "").await.remove(0);
    second.start_minion("web1").await;
    until("the key is known", || stdout(&members[0].tool("salt-key", &["-l", "acc"])).contains("web1")).await;
    assert!(!stdout(&members[0].tool("salt-key", &["-L"])).contains("evil"));
    // The data on the server contains neither keys nor tags in clear text.
    let events = String::from_utf8_lossy(&std::fs::read(members[0].path("pki/master.pem")).unwrap()).into_owned();
    let line = events.lines().nth(3).unwrap().to_owned();
    let stored = nats.stored();
    assert!(stored.len() > 1000 && !stored.windows(line.len()).any(|part| part == line.as_bytes()));
    assert!(!stored.windows(9).any(|part| part == b"salt/auth"));
}

/// Starts a proxy that passes each connection on to the next of these ports, and returns its port.
async fn round_robin(ports: Vec<u16>) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let next = AtomicUsize::new(0);
        while let Ok((mut here, _)) = listener.accept().await {
            let to = ports[next.fetch_add(1, Ordering::Relaxed) % ports.len()];
            tokio::spawn(async move {
                if let Ok(mut there) = TcpStream::connect(("127.0.0.1", to)).await {
                    _ = tokio::io::copy_bidirectional(&mut here, &mut there).await;
                }
            });
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread")]
async fn minions_connect_through_a_proxy_to_any_member() {
    let nats = Nats::start().await;
    // Each minion is configured with the publish port of the proxy.
    let mut members = cluster(&[nats.port], &["m1", "m2"], "").await;
    let requests = round_robin(members.iter().map(|member| member.ret_port).collect()).await;
    let publishes = round_robin(members.iter().map(|member| member.publish_port).collect()).await;
    for id in ["web1", "web2", "web3", "web4"] {
        let extra = format!("master_port: {requests}\npublish_port: {publishes}\n");
        members[0].configure_minion(id, "");
        let config = members[0].path(&format!("{id}/etc/minion"));
        let text = std::fs::read_to_string(&config).unwrap();
        let text: Vec<&str> = text.lines().filter(|line| !line.starts_with("master_port")).collect();
        std::fs::write(config, format!("{}\n{extra}", text.join("\n"))).unwrap();
        members[0].spawn_minion(id);
    }
    for member in &members {
        until("the keys of all minions are known", || {
            let listed = stdout(&member.tool("salt-key", &["-l", "acc"]));
            ["web1", "web2", "web3", "web4"].iter().all(|id| listed.contains(id))
        })
        .await;
        until("every minion is reached", || pinged(member, &["*"]).len() == 4).await;
        let applied = member.salt_json(&["*", "state.single", "test.nop", "name=x"]);
        assert_eq!(applied.as_map().unwrap().len(), 4);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_any_size_reach_the_other_members() {
    let nats = Nats::start().await;
    let members = cluster(&[nats.port], &["m1", "m2"], "").await;
    let mut events = members[1].events("big/").await;
    let mut push = Push::connect(&SocketNames::master().pull_endpoint(&members[0].path("run"))).await.unwrap();
    for size in [10, 700_000, 1_000_000] {
        let event = Event::from_map("big/event", &map! {"text" => "x".repeat(size)}).unwrap();
        push.send(event.frame()).await.unwrap();
        let (_, data) = events.until("big/event").await;
        assert_eq!(data.get("text").unwrap().to_string().len(), size);
        assert_eq!(data.get("_origin"), Some(&"m1".into()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_survives_the_loss_of_one_server_of_three() {
    let mut servers = three_servers().await;
    let ports: Vec<u16> = servers.iter().map(|server| server.port).collect();
    let mut members = cluster(&ports, &["m1", "m2"], "").await;
    members[0].start_minion("web1").await;
    members[1].start_minion("web2").await;
    for round in 0..2_u32 {
        servers[round as usize].kill();
        until("every minion is reached", || pinged(&members[1], &["*"]) == ["web1", "web2"]).await;
        send(&members[round as usize % 2], round);
        let all: Vec<&System> = members.iter().collect();
        until_recorded(&all, 0..round + 1).await;
        servers[round as usize].restart().await;
        servers[round as usize].until_current().await;
    }
    assert_eq!(recorded(&members[0]).len(), 2, "one reaction each");
}

/// A server reserves the sizes of all streams when they are created.
#[tokio::test(flavor = "multi_thread")]
async fn small_storage_makes_small_streams_and_too_small_storage_is_named() {
    let server = Nats::start_with_storage(500).await;
    let members = cluster(&[server.port], &["ma"], "").await;
    send(&members[0], 1);
    until("the event is recorded", || !recorded(&members[0]).is_empty()).await;
    let log = members[0].master_log();
    assert!(log.contains("the streams of the cluster hold 448 MiB instead of 7168"), "{log}");

    let server = Nats::start_with_storage(100).await;
    let system = member(&[server.port], "mb", SECRET, "");
    let output = system.tool("salt-master", &[]);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("JetStream has no room for the cluster, which needs 448 MiB"), "{message}");
}
