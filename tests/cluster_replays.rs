//! Somebody who may write to the NATS servers of a cluster, but does not have its secret: messages and values that he
//! kept and stores again are refused, and what he removes or replaces is written again by the members.
#![cfg(feature = "messaging")]

use async_nats::jetstream::{self, kv};
use brine_value::{Value, json};

use crate::support::nats::{Nats, member};
use crate::support::{System, stderr, stdout, until};

const SECRET: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const REFUSED: &str = "brine_cluster_values_refused_total";

async fn start(nats: &Nats, name: &str) -> System {
    let mut system = member(&[nats.port], name, SECRET, "");
    system.start_master().await;
    system
}

async fn jetstream(nats: &Nats) -> jetstream::Context {
    jetstream::new(async_nats::connect(format!("127.0.0.1:{}", nats.port)).await.unwrap())
}

async fn values(nats: &Nats) -> kv::Store {
    jetstream(nats).await.get_key_value("brine_brine_values").await.unwrap()
}

fn run(system: &System, words: &[&str]) -> Value {
    let output = system.tool("salt-run", &[words, &["--out=json"]].concat());
    json::from_json(&stdout(&output)).unwrap_or_else(|_| panic!("{}{}", stdout(&output), stderr(&output)))
}

/// Returns how many events with this tag are in a member's journal.
fn events(system: &System, tag: &str) -> usize {
    let page = run(system, &["event_bus.since", "1", "limit=1000"]);
    let has_tag = |event: &&Value| event.get("tag").is_some_and(|other| other.to_string() == tag);
    page.as_list().unwrap().iter().filter(has_tag).count()
}

fn send(system: &System, tag: &str) {
    let sent = system.tool("salt-run", &["event.send", tag, "{}"]);
    assert!(sent.status.success(), "{}", stderr(&sent));
}

fn keys(system: &System, list: &str) -> Vec<String> {
    let listed = json::from_json(&stdout(&system.tool("salt-key", &["-l", list, "--out=json"]))).unwrap();
    let all = listed.as_map().unwrap().values().next().and_then(Value::as_list).unwrap_or_default().to_vec();
    all.iter().map(ToString::to_string).collect()
}

/// Puts an accepted key into a member's directory, as an operator would copy one.
fn put_key(system: &System, id: &str) {
    let key = std::fs::read(system.path("pki/master.pub")).unwrap();
    std::fs::create_dir_all(system.path("pki/minions")).unwrap();
    std::fs::write(system.path(&format!("pki/minions/{id}")), key).unwrap();
    assert!(system.tool("salt-key", &["-L"]).status.success());
}

/// Returns the key of a minion's value in the bucket.
async fn value_key(values: &kv::Store, id: &str) -> String {
    use base64::Engine;
    let token = base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(id);
    let key = format!("keys.{token}");
    for _ in 0..600 {
        if values.entry(&key).await.unwrap().is_some() {
            return key;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the key of {id} never reached the servers");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_a_former_store_are_refused() {
    let nats = Nats::start().await;
    let (mut first, second) = (start(&nats, "m1").await, start(&nats, "m2").await);
    send(&first, "test/kept");
    until("the event is on the other member", || events(&second, "test/kept") == 1).await;
    // Everything that the member has sent so far is kept ...
    let context = jetstream(&nats).await;
    let mut stream = context.get_stream("brine_brine_events").await.unwrap();
    let last = stream.info().await.unwrap().state.last_sequence;
    let mut messages = Vec::new();
    for number in 1..=last {
        if let Ok(message) = stream.get_raw_message(number).await
            && message.subject.as_str().ends_with(".bTE")
        {
            messages.push((message.subject, message.payload));
        }
    }
    assert!(!messages.is_empty());
    // ... the member loses its store ...
    first.kill_master();
    std::fs::remove_dir_all(first.path("cache")).unwrap();
    first.start_master().await;
    send(&first, "test/new");
    until("the new event is on the other member", || events(&second, "test/new") == 1).await;
    // ... and the messages are stored again.
    let count = messages.len() as i64;
    for (subject, payload) in messages {
        context.publish(subject, payload).await.unwrap().await.unwrap();
    }
    until("they are refused", || second.counter(REFUSED) == count).await;
    send(&first, "test/after");
    until("further events arrive", || events(&second, "test/after") == 1).await;
    assert_eq!(events(&second, "test/kept"), 1);
    // A member that has just joined has the history in its order, and refuses them, too.
    let third = start(&nats, "m3").await;
    until("the history is on the new member", || events(&third, "test/after") == 1).await;
    assert_eq!((events(&third, "test/kept"), events(&third, "test/new")), (1, 1));
    assert_eq!(third.counter(REFUSED), count);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_value_is_refused_and_replaced() {
    let nats = Nats::start().await;
    let (first, second) = (start(&nats, "m1").await, start(&nats, "m2").await);
    put_key(&first, "gone");
    until("the key is on the other member", || keys(&second, "acc") == ["gone"]).await;
    let values = values(&nats).await;
    let key = value_key(&values, "gone").await;
    let old_value = values.get(&key).await.unwrap().unwrap();
    let publish_keys = values.get("shared.publish_keys").await.unwrap().unwrap();
    // The deletion also rotates the publish keys.
    assert!(second.tool("salt-key", &["-y", "-d", "gone"]).status.success());
    until("the key is deleted on both", || [&first, &second].iter().all(|member| keys(member, "acc").is_empty())).await;
    let current = |values: &kv::Store| {
        let values = values.clone();
        async move { values.get("shared.publish_keys").await.unwrap().unwrap() }
    };
    let began = std::time::Instant::now();
    while current(&values).await == publish_keys && began.elapsed() < std::time::Duration::from_secs(20) {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let rotated = current(&values).await != publish_keys;
    let revision = values.put(&key, old_value).await.unwrap();
    until("it is refused", || [&first, &second].iter().all(|member| member.counter(REFUSED) > 0)).await;
    until("it is replaced", || tokio_revision(&values, &key) > revision).await;
    if rotated {
        let revision = values.put("shared.publish_keys", publish_keys).await.unwrap();
        until("the publish keys are replaced", || tokio_revision(&values, "shared.publish_keys") > revision).await;
    }
    // A member that has just joined cannot know that the value is old: the others have replaced it.
    let third = start(&nats, "m3").await;
    send(&first, "test/last");
    until("the new member follows", || events(&third, "test/last") == 1).await;
    for member in [&first, &second, &third] {
        assert!(keys(member, "acc").is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_value_is_written_again() {
    let nats = Nats::start().await;
    let (first, second) = (start(&nats, "m1").await, start(&nats, "m2").await);
    put_key(&first, "web1");
    until("the key is on the other member", || keys(&second, "acc") == ["web1"]).await;
    let values = values(&nats).await;
    let key = value_key(&values, "web1").await;
    values.delete(&key).await.unwrap();
    until("the removal is refused", || [&first, &second].iter().all(|member| member.counter(REFUSED) == 1)).await;
    let third = start(&nats, "m3").await;
    until("the new member has the key", || keys(&third, "acc") == ["web1"]).await;
    for member in [&first, &second] {
        assert_eq!(keys(member, "acc"), ["web1"]);
    }
}

/// Returns the revision of a value now.
fn tokio_revision(values: &kv::Store, key: &str) -> u64 {
    let (values, key) = (values.clone(), key.to_owned());
    tokio::task::block_in_place(|| {
        tokio::runtime::Handle::current()
            .block_on(async move { values.entry(&key).await.unwrap().map_or(0, |entry| entry.revision) })
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn members_that_write_large_values_at_once_agree_on_one() {
    let nats = Nats::start().await;
    let members = [start(&nats, "m1").await, start(&nats, "m2").await, start(&nats, "m3").await];
    let text = |letter: char| letter.to_string().repeat(700_000);
    for member in &members {
        for letter in ['a', 'b', 'c'] {
            let sls = format!(
                "store:\n  salt.runner:\n    - name: cache.store\n    - bank: large\n    - key: one\n    - data: '{}'\n",
                text(letter)
            );
            member.write(&format!("srv/salt/{letter}.sls"), &sls);
        }
    }
    for round in 0..3 {
        let words = ["a", "b", "c"].map(|letter| ["state.orchestrate", letter]);
        let running = members.iter().zip(&words).map(|(member, words)| member.tool_async("salt-run", words));
        for output in futures::future::join_all(running).await {
            assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
        }
        let stored = |member: &System| run(member, &["cache.fetch", "large", "key=one"]).to_string();
        until("all members have one of the values", || {
            let all: Vec<String> = members.iter().map(stored).collect();
            ['a', 'b', 'c'].iter().any(|letter| all.iter().all(|value| *value == text(*letter)))
        })
        .await;
        println!("round {round}: {}", &stored(&members[0])[..1]);
    }
    for member in &members {
        assert_eq!(member.counter(REFUSED), 0);
    }
}
