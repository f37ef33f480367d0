//! Replays recorded messages of Salt minions to a Brine master: its replies match those of the recorded Salt master.
//!
//! `tests/interop/record` makes the recordings and documents them. Requests are encrypted as by the recorded minion,
//! commands on the master's machine are run with Brine's tools, and publishes must match the recorded ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::{System, TIMEOUT, stderr, text};
use brine_crypt::{EncryptionAlgorithm, PrivateKey, PublicKey, Session, SignatureAlgorithm, token};
use brine_ids::Jid;
use brine_value::{Map, Value, json, msgpack};
use brine_wire::private;
use brine_zmtp::{Endpoint, Limits, RequestClient, Subscriber};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::task::JoinHandle;

/// Known differences from the recordings: the command, the prefix of the difference (path: recorded -> answered), and
/// the reason. Every entry is needed by some recording.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    (
        "_auth",
        "request: nothing -> b",
        "the digest of the request, by which Brine's minions detect that it was modified",
    ),
    ("_minion_event", ": None -> True", "acknowledges that the journal has the event; Salt's minions ignore it"),
    (
        "_return",
        ": None -> True",
        "acknowledges that the journal has the return; Salt's minions pass it on and ignore it",
    ),
    (
        "_serve_file",
        "gzip: 5 -> nothing",
        "chunks are not compressed, which Salt's minions detect by the missing `gzip`",
    ),
    ("minion_publish", ":  -> {'web1': 'foo'}", "the documented result; Salt's master fails with a KeyError"),
    ("pub_ret", ":  -> {}", "a job of another publisher: Salt's master fails on the missing file"),
    ("publish", "load.tgt: web* -> ['web1']", "nodegroups reach minions as lists of ids"),
    ("publish", "load.tgt_type: compound -> list", "nodegroups reach minions as lists of ids"),
];

/// One recorded minion.
struct Replay {
    release: &'static str,
    system: System,
    key: PrivateKey,
    master: PublicKey,
    client: RequestClient,
    /// The minion's session and the publish stream's, after authentication.
    keys: Option<(Session, Session)>,
    publishes: Option<Subscriber>,
    /// The job ids of this run, by the recorded ones.
    jids: BTreeMap<String, String>,
    differences: BTreeSet<(String, String)>,
}

/// A request without its answer yet.
struct PendingRequest {
    recorded: Map,
    /// The entry after which the answer arrived.
    due: usize,
    nonce: String,
    session: Option<Session>,
    answer: JoinHandle<Bytes>,
}

impl Replay {
    async fn start(release: &'static str) -> Self {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop");
        let world = brine_yaml::load(&std::fs::read_to_string(directory.join("world.yaml")).unwrap()).unwrap();
        let mut system = System::new(&world.get("master").unwrap().to_string());
        for (path, content) in world.get("files").unwrap().as_map().unwrap() {
            let path = path.to_string();
            match content {
                Value::Str(text) => {
                    let mode = std::fs::Permissions::from_mode(0o644);
                    std::fs::set_permissions(system.write(&path, text), mode).unwrap();
                }
                Value::Nil => std::fs::create_dir_all(system.path(&path)).unwrap(),
                link => {
                    std::os::unix::fs::symlink(link.get("to").unwrap().to_string(), system.path(&path)).unwrap();
                }
            }
        }
        system.start_master().await;
        let master = std::fs::read_to_string(system.path("pki/master.pub")).unwrap();
        Replay {
            release,
            key: PrivateKey::generate(2048).unwrap(),
            master: PublicKey::from_pem(&master).unwrap(),
            client: RequestClient::new(system.request_endpoint(), Limits::default()),
            system,
            keys: None,
            publishes: None,
            jids: BTreeMap::new(),
            differences: BTreeSet::new(),
        }
    }

    async fn run(&mut self) {
        let file = format!("tests/interop/recordings/{}.json", self.release);
        let recording = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        let recording = json::from_json(&recording).unwrap();
        let mut pending: Vec<PendingRequest> = Vec::new();
        for (at, entry) in recording.as_list().unwrap().iter().enumerate() {
            let entry = entry.as_map().unwrap();
            if let Some(words) = entry.get("do") {
                self.run_command(words).await;
            } else if let Some(publish) = entry.get("publish") {
                self.receive_publish(publish).await;
            } else if entry.contains_key("load") {
                pending.push(self.ask(at, entry));
            }
            while let Some(next) = pending.iter().position(|request| request.due <= at) {
                self.receive_reply(pending.remove(next)).await;
            }
        }
        assert!(pending.is_empty());
    }

    /// Runs a command on the master's machine.
    async fn run_command(&self, words: &Value) {
        let words: Vec<String> = words.as_list().unwrap().iter().map(|word| self.expanded(&word.to_string())).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = self.system.tool_async(words[0], &words[1..]).await;
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    }

    /// Waits for a publish, which must match the recorded one.
    async fn receive_publish(&mut self, recorded: &Value) {
        let publishes = self.publishes.as_mut().unwrap();
        let received = tokio::time::timeout(TIMEOUT, publishes.recv()).await;
        let frames = received
            .unwrap_or_else(|_| panic!("{}: timed out waiting for a publish: {recorded}", self.release))
            .unwrap();
        assert_eq!(frames.len(), 1);
        let mut publish = msgpack::unpack_map(&frames[0]).unwrap();
        let sealed = publish["load"].as_bytes().unwrap().to_vec();
        let algorithm: SignatureAlgorithm = text(&publish, "sig_algo").parse().unwrap();
        self.master.verify(&sealed, publish["sig"].as_bytes().unwrap(), algorithm).unwrap();
        let load = self.keys.as_ref().unwrap().1.open(&sealed, None, b"").unwrap();
        publish.insert("load".into(), msgpack::unpack(&load).unwrap());
        self.compare("publish", "", recorded, &publish.into());
    }

    /// Sends a request.
    fn ask(&mut self, at: usize, entry: &Map) -> PendingRequest {
        let nonce = token::nonce();
        let load = self.filled(&entry["load"], &nonce, &entry["load"]);
        let mut envelope = entry["envelope"].as_map().unwrap().clone();
        let session = self.keys.as_ref().map(|(session, _)| session.clone());
        let sealed = if text(&envelope, "enc") == "aes" {
            session.as_ref().unwrap().seal(&msgpack::pack(&load), None, b"").into()
        } else {
            load
        };
        envelope.insert("load".into(), sealed);
        let (client, request) = (self.client.clone(), msgpack::pack_map(&envelope));
        let answer = tokio::spawn(async move { client.request(request, TIMEOUT).await.expect("the master replies") });
        let later = entry.get("answered").and_then(Value::as_i64).unwrap_or(0);
        PendingRequest { recorded: entry.clone(), due: at + usize::try_from(later).unwrap(), nonce, session, answer }
    }

    /// Receives the answer to a request, which must match the recorded one in encryption and content.
    async fn receive_reply(&mut self, pending: PendingRequest) {
        let PendingRequest { recorded, nonce, session, answer, .. } = pending;
        let answer = msgpack::unpack(&answer.await.unwrap()).unwrap();
        let of = |name: &str| recorded["load"].get(name).or(recorded["envelope"].get(name)).unwrap().to_string();
        let cmd = of("cmd");
        let (reply, sealed) = match answer {
            Value::Bytes(text) => {
                let plain = session.unwrap().open(&text, Some(&nonce), b"").unwrap();
                (msgpack::unpack(&plain).unwrap(), "session")
            }
            Value::Map(map) if map.contains_key("sig") => {
                let load = map["load"].as_bytes().unwrap();
                self.master.verify(load, map["sig"].as_bytes().unwrap(), of("sig_algo").parse().unwrap()).unwrap();
                let reply = msgpack::unpack_map(load).unwrap();
                assert_eq!(text(&reply, "nonce"), nonce);
                if reply.contains_key("aes") {
                    self.store_session_keys(&reply, of("enc_algo").parse().unwrap()).await;
                }
                (reply.into(), "signed")
            }
            Value::Map(map) if private::is_private(&map) => {
                let algorithms = (of("enc_algo").parse().unwrap(), of("sig_algo").parse().unwrap());
                let opened = private::open(&map, &nonce, &self.key, &self.master, algorithms.0, algorithms.1);
                (opened.unwrap(), "private")
            }
            other => (other, "no"),
        };
        if cmd == "_file_recv" {
            let path = self.system.path(&format!("cache/minions/web1/files{}/pushed.txt", self.root()));
            assert_eq!(std::fs::read_to_string(path).unwrap(), recorded["load"].get("data").unwrap().to_string());
        }
        self.compare(&cmd, "(sealed)", &recorded["sealed"], &sealed.into());
        self.compare(&cmd, "", &recorded["reply"], &reply);
    }

    /// Stores the session keys from the master.
    async fn store_session_keys(&mut self, reply: &Map, algorithm: EncryptionAlgorithm) {
        let key = |name: &str| {
            let text = self.key.decrypt(reply[name].as_bytes().unwrap(), algorithm).unwrap();
            String::from_utf8(text).unwrap()
        };
        let publish = key("aes");
        let digest = brine_digest::hex(Sha256::digest(&publish));
        assert_eq!(self.master.recover_x931(reply["sig"].as_bytes().unwrap()).unwrap(), digest.as_bytes());
        self.keys = Some((Session::from_key_text(&key("session")).unwrap(), Session::from_key_text(&publish).unwrap()));
        if self.publishes.is_none() {
            assert_eq!(reply["publish_port"], i64::from(self.system.publish_port).into());
            let endpoint = Endpoint::Tcp("127.0.0.1".into(), self.system.publish_port);
            self.publishes = Some(Subscriber::connect(&endpoint, &[b""], Limits::default()).await.unwrap());
        }
    }

    fn root(&self) -> String {
        self.system.path("").display().to_string()
    }

    /// Replaces this run's directory and job ids in a recorded text. An unknown job id gets a new one.
    fn expanded(&self, recorded: &str) -> String {
        let mut expanded = recorded.replace("ROOT", &self.root()).replace("<user>", "root");
        for (recorded, jid) in &self.jids {
            expanded = expanded.replace(recorded, jid);
        }
        expanded
    }

    /// Returns a recorded load with the values of this run.
    fn filled(&mut self, recorded: &Value, nonce: &str, load: &Value) -> Value {
        match recorded {
            Value::Str(word) => match word.as_str() {
                "<nonce>" => nonce.into(),
                "<tok>" => self.key.sign_x931(b"salt").unwrap().into(),
                "<pub>" => self.key.public().to_pem().trim_end().into(),
                "<token>" => {
                    let algorithm = load.get("enc_algo").unwrap().to_string().parse().unwrap();
                    self.master.encrypt(&token::random_bytes::<24>(), algorithm).unwrap().into()
                }
                "<int>" => jiff::Timestamp::now().as_second().into(),
                "<float>" => 1.5.into(),
                _ => {
                    if let Some(new) = word.strip_prefix("<jid ") {
                        self.jids.entry(format!("<jid {new}")).or_insert_with(|| Jid::new().to_string());
                    }
                    self.expanded(word).replace("<time>", "2026-11-21T12:00:00.000000").into()
                }
            },
            Value::List(all) if all.first() == Some(&"ROOT".into()) => {
                let directories = self.root();
                let directories = directories.split('/').filter(|name| !name.is_empty()).map(Value::from);
                directories.chain(all[1..].iter().cloned()).collect()
            }
            Value::List(all) => all.iter().map(|one| self.filled(one, nonce, load)).collect(),
            Value::Map(fields) => match fields.get("<bytes>") {
                Some(text) => self.expanded(&text.to_string()).into_bytes().into(),
                None => Value::Map(
                    fields
                        .iter()
                        .map(|(name, one)| (self.expanded(&name.to_string()).into(), self.filled(one, nonce, load)))
                        .collect(),
                ),
            },
            other => other.clone(),
        }
    }

    /// Records the differences of an answer from the recorded one.
    fn compare(&mut self, cmd: &str, place: &str, recorded: &Value, reply: &Value) {
        let same = match (recorded, reply) {
            (Value::Map(fields), reply) if fields.contains_key("<bytes>") => {
                reply.as_bytes() == Some(self.expanded(&fields["<bytes>"].to_string()).as_bytes())
            }
            (Value::Map(fields), Value::Map(actual)) => {
                for (name, one) in fields {
                    let place = if place.is_empty() { name.to_string() } else { format!("{place}.{name}") };
                    match actual.get(self.expanded(&name.to_string()).as_str()) {
                        Some(actual) => self.compare(cmd, &place, one, actual),
                        None => self.differs(cmd, &place, &one.to_string(), "nothing"),
                    }
                }
                let names: BTreeSet<String> = fields.keys().map(|name| self.expanded(&name.to_string())).collect();
                for (name, one) in actual.iter().filter(|(name, _)| !names.contains(&name.to_string())) {
                    let place = if place.is_empty() { name.to_string() } else { format!("{place}.{name}") };
                    self.differs(cmd, &place, "nothing", &one.to_string());
                }
                return;
            }
            (Value::List(all), Value::List(actual)) if all.len() == actual.len() => {
                for (at, (one, actual)) in all.iter().zip(actual).enumerate() {
                    self.compare(cmd, &format!("{place}[{at}]"), one, actual);
                }
                return;
            }
            (Value::Str(word), reply) => self.same_text(word, reply),
            // Salt uses 1 and 1.0 interchangeably.
            (recorded, reply) => recorded == reply,
        };
        if !same {
            self.differs(cmd, place, &recorded.to_string(), &reply.to_string());
        }
    }

    fn same_text(&mut self, word: &str, reply: &Value) -> bool {
        match word {
            "<int>" => return reply.as_i64().is_some(),
            "<float>" => return matches!(reply, Value::Float(_)),
            "<aes>" | "<session>" | "<sig>" | "<token>" | "<binary>" => return reply.as_bytes().is_some(),
            "<nonce>" | "<pub_key>" => return reply.as_str().is_some(),
            _ => {}
        }
        // Salt sends bytes as strings.
        let text = match reply {
            Value::Str(text) => text.clone(),
            Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            _ => return false,
        };
        if word.starts_with("<jid ") && !self.jids.contains_key(word) {
            let is_jid = text.parse::<Jid>().is_ok();
            self.jids.insert(word.to_owned(), text);
            return is_jid;
        }
        let expected = self.expanded(word);
        match expected.split_once("<time>") {
            Some((before, after)) => text.starts_with(before) && text.ends_with(after),
            None => text == expected,
        }
    }

    fn differs(&mut self, cmd: &str, place: &str, recorded: &str, reply: &str) {
        self.differences.insert((cmd.to_owned(), format!("{place}: {recorded} -> {reply}")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_brine_master_answers_like_the_recorded_salt_master() {
    let mut needed = BTreeSet::new();
    let mut report = String::new();
    for release in ["3008.3", "3007.15", "3006.28"] {
        let mut replay = Replay::start(release).await;
        replay.run().await;
        for (cmd, difference) in &replay.differences {
            let is_it = |(of, what, _): &&(&str, &str, &str)| of == cmd && difference.starts_with(what);
            match EXCEPTIONS.iter().find(is_it) {
                Some(exception) => _ = needed.insert(*exception),
                None => writeln!(report, "{release} {cmd} {difference}").unwrap(),
            }
        }
    }
    assert!(report.is_empty(), "recorded -> answered:\n{report}");
    let all: BTreeSet<_> = EXCEPTIONS.iter().copied().collect();
    assert_eq!(
        all.difference(&needed).collect::<Vec<_>>(),
        Vec::<&(&str, &str, &str)>::new(),
        "exceptions that no recording needs"
    );
}
