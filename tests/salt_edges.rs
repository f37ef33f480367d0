//! Optional features of the protocol between Brine and Salt: heartbeats, filtered publishes, signed messages.

use crate::support;

use std::collections::BTreeSet;
use std::time::Duration;

use crate::support::salt::{PythonMaster, PythonMinion, RELEASES};
use crate::support::{Events, System, stderr, stdout};
use brine_value::{Map, Value, map};

/// A Salt master with Brine minions of several configurations, by id.
struct SaltMaster {
    // Dropped before the minions' directory.
    system: System,
    master: PythonMaster,
}

impl SaltMaster {
    /// Starts the master and minions, and waits for accepted keys and start events.
    async fn start(version: &str, master: &str, minions: &[(&str, &str)]) -> Self {
        let mut master = PythonMaster::new(version, &format!("auto_accept: True\n{master}"));
        master.write("srv/salt/word.txt", "word");
        master.spawn();
        let mut events = master.events("salt/minion/").await;
        let mut system = System::new("");
        for (id, config) in minions {
            let file = system.configure_minion(id, config).join("minion");
            let text = std::fs::read_to_string(&file).unwrap();
            std::fs::write(&file, text.replace(&system.ret_port.to_string(), &master.ret_port.to_string())).unwrap();
            system.spawn_minion(id);
            events.until(&format!("salt/minion/{id}/start")).await;
        }
        SaltMaster { system, master }
    }

    /// Runs `salt` and returns the results by minion.
    async fn salt(&self, words: &[&str]) -> Map {
        let output = self.master.tool("salt", &[&["--static", "--out=json", "-t", "10"], words].concat()).await;
        let read = brine_value::json::from_json(&stdout(&output));
        let logs = || std::fs::read_to_string(self.master.path("master.log")).unwrap_or_default();
        let failed = || panic!("{words:?}: {}{}\n{}", stdout(&output), stderr(&output), logs());
        read.ok().and_then(|read| read.as_map().cloned()).unwrap_or_else(failed)
    }
}

fn ids(answers: &Map) -> BTreeSet<String> {
    answers.keys().map(ToString::to_string).collect()
}

fn set(ids: &[&str]) -> BTreeSet<String> {
    ids.iter().map(ToString::to_string).collect()
}

/// Salt 3008 closes connections with unanswered heartbeats. The first request after an idle time must not find a closed
/// connection, whatever its kind.
#[tokio::test(flavor = "multi_thread")]
async fn connections_to_salt_3008_outlive_its_heartbeats() {
    let heartbeats = "zmq_heartbeat_ivl: 200\nzmq_heartbeat_timeout: 600\n";
    let salt = SaltMaster::start("3008.5", heartbeats, &[("brine", "")]).await;
    let mut events = salt.master.events("my/").await;
    for (n, words) in [
        &["event.send", "my/tag"][..],
        &["cp.get_file_str", "salt://word.txt"],
        &["mine.send", "test.ping"],
        &["saltutil.refresh_pillar"],
        &["event.send", "my/last"],
    ]
    .into_iter()
    .enumerate()
    {
        // Idle for several times as long as an unanswered heartbeat keeps a connection.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let answers = salt.salt(&[&["brine"], words].concat()).await;
        let answer = answers.get("brine").cloned().unwrap_or_default();
        let expected = if n == 1 { Value::from("word") } else { true.into() };
        assert_eq!(answer, expected, "{words:?}: {}", salt.system.minion_log("brine"));
    }
    events.until("my/tag").await;
    events.until("my/last").await;
    let log = salt.system.minion_log("brine");
    assert!(!log.contains("closed the connection") && !log.contains("reconnecting"), "{log}");
}

/// A Salt master with `zmq_filtering` sends a publish once for each minion of its target. Minions that filter receive
/// their own, the others skip those for others.
async fn filtered_publishes_of_a_salt_master(version: &str) {
    let minions = [("filters", "zmq_filtering: True\n"), ("plain", ""), ("other", "zmq_filtering: True\n")];
    let salt = SaltMaster::start(version, "zmq_filtering: True\n", &minions).await;
    for (words, expected) in [
        (&["*", "test.ping"][..], set(&["filters", "plain", "other"])),
        (&["-L", "filters,plain", "test.ping"], set(&["filters", "plain"])),
        (&["-E", "o.*", "test.ping"], set(&["other"])),
        (&["-G", "kernel:Linux", "test.ping"], set(&["filters", "plain", "other"])),
    ] {
        let answers = salt.salt(words).await;
        assert_eq!(ids(&answers), expected, "{words:?}");
        assert!(answers.values().all(|answer| *answer == Value::Bool(true)), "{words:?}: {answers:?}");
    }
    for (id, _) in minions {
        let log = salt.system.minion_log(id);
        assert!(!log.contains("a publish"), "{log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn filtered_publishes_of_salt_3006() {
    filtered_publishes_of_a_salt_master("3006.30").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn filtered_publishes_of_salt_3008() {
    filtered_publishes_of_a_salt_master("3008.5").await;
}

/// A Salt master that requires signatures accepts returns only from a Brine minion that signs. Salt's masters fail to
/// verify any signature unless `signing_algorithm` is set, which has no default there.
async fn signed_returns_to_a_salt_master(version: &str) {
    let required = "require_minion_sign_messages: True\ndrop_messages_signature_fail: True\n\
                    signing_algorithm: PKCS1v15-SHA1\n";
    let minions = [("signs", "minion_sign_messages: True\n"), ("unsigned", "")];
    let salt = SaltMaster::start(version, required, &minions).await;
    for (words, expected) in [
        (&["test.ping"][..], Value::Bool(true)),
        (&["test.outputter", "{a: [1, -1, 70000, 5000000000, 1.5, null, true], b: {c: ''}}"], Value::Nil),
        (&["cmd.run", "printf 'w\\303\\266rd'"], "wörd".into()),
        (&["cmd.run", "head -c 300000 /dev/zero | tr '\\0' x"], "x".repeat(300_000).into()),
    ] {
        let answers = salt.salt(&[&["signs"], words].concat()).await;
        let answer = answers.get("signs").cloned().unwrap_or_default();
        let is_wanted =
            if expected.is_nil() { answer.get("b") == Some(&map! {"c" => ""}.into()) } else { answer == expected };
        assert!(is_wanted, "{words:?}: {}", salt.system.minion_log("signs"));
    }
    let answers = salt.salt(&["unsigned", "test.ping", "-t", "2"]).await;
    assert_ne!(answers.get("unsigned"), Some(&true.into()));
    let log = std::fs::read_to_string(salt.master.path("log")).unwrap_or_default()
        + &std::fs::read_to_string(salt.master.path("master.log")).unwrap();
    assert!(log.contains("no signature in this payload from unsigned"), "{log}");
    assert!(!log.contains("dropping message from signs"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn signed_returns_to_salt_3006() {
    signed_returns_to_a_salt_master("3006.30").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signed_returns_to_salt_3007() {
    signed_returns_to_a_salt_master("3007.17").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signed_returns_to_salt_3008() {
    signed_returns_to_a_salt_master("3008.5").await;
}

/// The log of a minion names the transport as the cause of the closed connection.
#[tokio::test(flavor = "multi_thread")]
async fn a_salt_master_with_another_transport_is_reported() {
    let mut master = PythonMaster::new("3007.17", "transport: tcp\n");
    master.spawn();
    let mut system = System::new("");
    let file = system.configure_minion("brine", "").join("minion");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace(&system.ret_port.to_string(), &master.ret_port.to_string())).unwrap();
    system.spawn_minion("brine");
    let named = || system.minion_log("brine").contains("a master with `transport: tcp`");
    support::until("the minion names the transport", named).await;
}

impl Events {
    /// Waits for the start events of these minions.
    async fn until_started(&mut self, ids: &BTreeSet<String>) {
        let mut missing = ids.clone();
        while !missing.is_empty() {
            let (tag, _) = self.until("salt/minion/*/start").await;
            missing.remove(tag.split('/').nth(2).unwrap_or_default());
        }
    }
}

/// A Brine master that filters publishes and requires signatures, with minions of all releases that do both, one of
/// Salt and two of Brine that do not filter, and one of Brine that does not sign.
#[tokio::test(flavor = "multi_thread")]
async fn a_brine_master_with_filtered_publishes_and_signed_returns() {
    let mut system = System::new(
        "auto_accept: True\nzmq_filtering: True\nrequire_minion_sign_messages: True\ndrop_messages_signature_fail: True\n",
    );
    system.start_master().await;
    let mut events = system.events("salt/minion/").await;
    let mut python = Vec::new();
    for (n, version) in RELEASES.iter().chain([&"3008.5"]).enumerate() {
        let filtering = if n < RELEASES.len() { "True" } else { "False" };
        let config = format!("minion_sign_messages: True\nzmq_filtering: {filtering}\n");
        let mut minion = PythonMinion::new(&system, &format!("salt{n}"), version, &config);
        minion.spawn();
        python.push(minion);
    }
    let cbc = "ciphers: [aes-192-cbc-hmac]\n";
    let signs = "minion_sign_messages: True\n";
    for (id, config) in [
        ("brine-gcm", signs.to_owned()),
        ("brine-cbc", format!("{cbc}{signs}")),
        ("brine-filters", format!("{cbc}{signs}zmq_filtering: True\n")),
        ("rogue", String::new()),
    ] {
        system.configure_minion(id, &config);
        system.spawn_minion(id);
    }
    let sign = set(&["salt0", "salt1", "salt2", "salt3", "brine-gcm", "brine-cbc", "brine-filters"]);
    let all: BTreeSet<String> = sign.iter().cloned().chain(["rogue".to_owned()]).collect();
    tokio::time::timeout(3 * support::TIMEOUT, events.until_started(&all)).await.expect("all minions start");
    let salt = async |words: &[&str]| {
        let output = system.tool_async("salt", &[&["--static", "--out=json", "-t", "30"], words].concat()).await;
        let read = brine_value::json::from_json(&stdout(&output)).unwrap_or_default();
        let answers = read.as_map().cloned().unwrap_or_default();
        // A minion that does not answer may be listed without an answer.
        answers.into_iter().filter(|(_, answer)| *answer == Value::Bool(true)).collect::<Map>()
    };
    for (words, expected) in [
        (&["-L", "salt0,salt1,salt2,salt3", "test.ping"][..], set(&["salt0", "salt1", "salt2", "salt3"])),
        (&["-E", "(salt|brine).*", "test.ping"], sign.clone()),
        (&["brine*", "test.ping"], set(&["brine-gcm", "brine-cbc", "brine-filters"])),
        (&["-C", "not rogue", "test.ping"], sign.clone()),
    ] {
        assert_eq!(ids(&salt(words).await), expected, "{words:?}");
    }
    assert_eq!(ids(&salt(&["-t", "3", "rogue", "test.ping"]).await), set(&[]));
    assert!(system.master_log().contains("return refused: it is not signed"));
    assert!(!system.master_log().contains("signature is invalid"));
}
