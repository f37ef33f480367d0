//! Every event recorded from Salt 3008.3 by `tests/events/record`, reproduced with Brine: the same tag, and the same
//! fields with the same types. The steps here have the labels of the recording.

use crate::support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{BRINE, Events, System, TIMEOUT};
use brine_crypt::{EncryptionAlgorithm, PrivateKey, SignatureAlgorithm, token};
use brine_function::Args;
use brine_value::{Map, Value, json, map};
use brine_wire::{AuthRequest, Call, ClientCommand, Envelope, PublishRequest};
use brine_zmtp::{Limits, RequestClient};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// The kind of a step.
enum Step {
    /// Runs a tool with the master's configuration.
    Tool(&'static str, &'static [&'static str]),
    /// Runs `salt-call` for the minion web1.
    Call(&'static [&'static str]),
    /// Calls a wheel function.
    Wheel(&'static str, fn() -> Map),
    /// Publishes `test.ping` to web1 with these options.
    Publish(fn() -> Map),
    /// An unauthenticated peer publishes with a job id.
    Unauthenticated,
    /// A minion authenticates: with this id, the first or another key, and these grains.
    Authenticate(&'static str, usize, fn() -> Map),
    /// Starts the minion web1.
    Start,
    /// No action: the events are published without one.
    Wait,
    /// Writes a file of the file server.
    Write,
    /// Starts a batch that the master runs, and stops it.
    StopBatch,
    /// Starts a master with `max_minions: 1`, and its minion authenticates.
    StartLimited,
    /// A second minion authenticates with it.
    ExceedLimit,
}
use Step::{
    Authenticate, Call as Minion, ExceedLimit, Publish, Start, StartLimited, StopBatch, Tool, Unauthenticated, Wait,
    Wheel, Write,
};

const STEPS: &[(&str, Step)] = &[
    ("a new key is shown", Start),
    ("a key is accepted and the minion starts", Tool("salt-key", &["-y", "-a", "web1"])),
    ("modules are synchronised", Tool("salt", &["web1", "saltutil.sync_all"])),
    ("another key is shown for a known id", Authenticate("web1", 1, Map::new)),
    ("a key is shown with grains to sign it by", Authenticate("web2", 0, || map! {"kernel" => "Linux"})),
    ("a wheel function fails", Wheel("key.gen_accept", || map! {"id_" => "no/id"})),
    ("a job has metadata", Publish(|| map! {"metadata" => map! {"who" => "me"}})),
    ("a job asks for its start", Publish(|| map! {"start_event" => true})),
    ("a job names a minion that is not known", Tool("salt", &["-L", "web1,db9", "test.ping", "-t", "1"])),
    ("a job has several functions", Tool("salt", &["web1", "test.ping,test.echo", ",", "hi"])),
    ("a job has a function that fails", Tool("salt", &["web1", "test.exception", "no"])),
    ("a job is published by a stranger", Unauthenticated),
    ("states are applied", Tool("salt", &["web1", "state.apply", "good"])),
    ("a state fails", Tool("salt", &["web1", "state.sls", "bad"])),
    ("a state says fire_event: True", Tool("salt", &["web1", "state.apply", "fire_true"])),
    ("a state says fire_event and a text", Tool("salt", &["web1", "state.apply", "fire_text"])),
    ("a state sends an event", Tool("salt", &["web1", "state.apply", "send"])),
    ("event.send by a job", Tool("salt", &["web1", "event.send", "try/send/job", "{a: 1}", "b=text"])),
    ("event.fire_master", Tool("salt", &["web1", "event.fire_master", "{a: 1}", "try/from/minion"])),
    ("event.send by salt-call", Minion(&["event.send", "try/send/call", "{a: 1}", "b=text"])),
    (
        "event.send with grains, pillar and environment",
        Minion(&[
            "event.send",
            "try/send/with",
            "with_grains=[id, kernel]",
            "with_pillar=True",
            "with_env=[TRY]",
            "with_env_opts=True",
        ]),
    ),
    ("event.send with all grains", Minion(&["event.send", "try/send/grains", "with_grains=True"])),
    ("event.send without data", Minion(&["event.send", "try/send/none"])),
    ("salt-call applies states", Minion(&["state.apply", "good"])),
    ("salt-run event.send", Tool("salt-run", &["event.send", "try/run/send", "{a: 1}"])),
    ("a runner function is called", Tool("salt-run", &["test.arg", "1", "a=b"])),
    ("a runner function is called wrongly", Tool("salt-run", &["test.sleep", "a", "b", "c"])),
    ("a runner function fails", Tool("salt-run", &["jobs.lookup_jid", "none"])),
    ("a runner function is not there", Tool("salt-run", &["no.such"])),
    ("a runner function tells of its progress", Tool("salt-run", &["jobs.list_jobs", "display_progress=True"])),
    ("an orchestration runs", Tool("salt-run", &["state.orchestrate", "orch"])),
    (
        "one step of an orchestration runs",
        Tool("salt-run", &["state.orchestrate_single", "fun=salt.wheel", "name=key.list_all"]),
    ),
    ("the reactor calls a runner function", Tool("salt-run", &["event.send", "try/reactor/runner"])),
    ("the reactor calls a wheel function", Tool("salt-run", &["event.send", "try/reactor/wheel"])),
    ("the reactor publishes a job", Tool("salt-run", &["event.send", "try/reactor/local"])),
    ("the reactor is listed", Tool("salt-run", &["reactor.list"])),
    ("the reactor is added to", Tool("salt-run", &["reactor.add", "try/added", "reactors=/nonexistent.sls"])),
    ("the reactor is taken from", Tool("salt-run", &["reactor.delete", "try/added"])),
    ("the reactor is asked whether it leads", Tool("salt-run", &["reactor.is_leader"])),
    ("the reactor becomes the leader", Tool("salt-run", &["reactor.set_leader", "True"])),
    ("a job is published in batches", Tool("salt", &["web1", "test.ping", "-b", "1"])),
    ("a batch is handed to the master", Tool("salt", &["web1", "test.ping", "-b", "1", "--async"])),
    ("a running batch is stopped", StopBatch),
    (
        "a job of the minion's schedule runs",
        Tool("salt", &["web1", "schedule.add", "often", "function=test.ping", "seconds=1", "return_job=True"]),
    ),
    ("the minion's schedule is emptied", Tool("salt", &["web1", "schedule.delete", "often"])),
    ("a minion pings its master", Wait),
    ("a file of the file server changes", Write),
    // Keys last: a job that is published while a minion fetches new publish keys is lost.
    ("a key is rejected", Tool("salt-key", &["-y", "-r", "web2"])),
    ("a rejected key is shown", Authenticate("web2", 0, Map::new)),
    ("a rejected key is deleted", Tool("salt-key", &["-y", "-d", "web2"])),
    (
        "a denied key is deleted",
        Wheel("key.delete_dict", || map! {"match" => map! {"minions_denied" => brine_value::list!["web1"]}}),
    ),
    ("a master with room for one minion starts", StartLimited),
    ("there are as many minions as may be", ExceedLimit),
];

/// Recorded events that are not reproduced: the label, the tag (a glob), and the reason. The line has to be removed
/// once the event exists.
const NOT_REPRODUCED: &[(&str, &str, &str)] = &[
    ("*", "resource/refresh/<id>", "a minion of Python registers its resources; one of Brine has none"),
    ("a job gives its result in parts", "*", "needs execution modules in Python"),
    ("the reactor is *", "salt/run/<jid>/*", "Salt puts a key of the master's on the bus there"),
    ("a queue cannot be processed", "*", "needs queues"),
    ("a second minion starts and ends", "salt/minion/<id>/start", "the first one starts with start_event_grains"),
];

/// A line of the recording.
#[derive(Clone)]
struct Recorded {
    when: String,
    tag: String,
    fields: Map,
}

fn recording() -> Vec<Recorded> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/events/salt-3008.json");
    let all = json::from_json(&std::fs::read_to_string(path).unwrap()).unwrap();
    let one = |entry: &Value| {
        let text = |name| entry.get(name).unwrap().to_string();
        Recorded {
            when: text("when"),
            tag: text("tag"),
            fields: entry.get("fields").unwrap().as_map().unwrap().clone(),
        }
    };
    all.as_list().unwrap().iter().map(one).collect()
}

fn reason(entry: &Recorded) -> Option<&'static str> {
    let is = |pattern: &str, text: &str| brine_text::glob::fnmatch(pattern, text);
    NOT_REPRODUCED.iter().find(|(when, tag, _)| is(when, &entry.when) && is(tag, &entry.tag)).map(|(.., why)| *why)
}

/// Returns a tag in the form of the recording.
fn plain(tag: &str) -> String {
    let part = |part: &str| match part {
        "web1" | "web2" | "db1" | "db2" => "<id>".to_owned(),
        "MWorker-default-0" => "MWorker-<n>".to_owned(),
        digits if digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit()) => "<jid>".to_owned(),
        other => other.to_owned(),
    };
    tag.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// Returns the type errors of a value compared with the recorded one.
fn type_errors(at: &str, expected: &Value, actual: &Value) -> Vec<String> {
    let is = match (expected, actual) {
        (Value::Map(expected), Value::Map(actual)) => return differences(at, expected, actual),
        (Value::Str(word), actual) => match (word.as_str(), actual) {
            ("any", _)
            | ("str", Value::Str(_))
            | ("int", Value::Int(_))
            | ("float", Value::Float(_))
            | ("bool", Value::Bool(_))
            | ("none", Value::Nil)
            | ("list", Value::List(_))
            | ("map", Value::Map(_))
            | ("bytes", Value::Bytes(_)) => true,
            (word, Value::Str(text)) => word.strip_prefix('=') == Some(text),
            _ => false,
        },
        _ => false,
    };
    if is { Vec::new() } else { vec![format!("{at}: expected {expected}, got {actual}")] }
}

/// Returns the differences of fields. Brine's own fields begin with `_`; the master's name is that of the host.
fn differences(at: &str, expected: &Map, actual: &Map) -> Vec<String> {
    let plain = |name: &Value| if name.to_string().ends_with("_master") { "<master>".into() } else { name.clone() };
    let actual: Map = actual.iter().map(|(name, value)| (plain(name), value.clone())).collect();
    let mut all = Vec::new();
    for (name, kind) in expected {
        let place = format!("{at}.{name}");
        match actual.get(name) {
            Some(value) => all.extend(type_errors(&place, kind, value)),
            None => all.push(format!("{place} is missing")),
        }
    }
    let more = actual.keys().filter(|name| !expected.contains_key(*name));
    all.extend(more.filter(|name| !name.to_string().starts_with('_')).map(|name| format!("{at}.{name} is unexpected")));
    all
}

/// All events of a master since its start.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<(String, Map)>>>, Arc<Notify>);

impl Seen {
    fn follow(&self, mut events: Events, followers: &mut JoinSet<()>) {
        let seen = self.clone();
        followers.spawn(async move {
            loop {
                let (tag, data) = events.next().await;
                seen.0.lock().unwrap().push((plain(&tag), data));
                seen.1.notify_one();
            }
        });
    }

    fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// Waits for an event like the recorded one. The error describes the differences of events with its tag.
    async fn until(&self, from: usize, entry: &Recorded) -> Result<(), String> {
        let fits = |(tag, data): &(String, Map)| *tag == entry.tag && differences("", &entry.fields, data).is_empty();
        let comes = async {
            while !self.0.lock().unwrap()[from..].iter().any(fits) {
                self.1.notified().await;
            }
        };
        if tokio::time::timeout(Duration::from_secs(10), comes).await.is_ok() {
            return Ok(());
        }
        let seen = self.0.lock().unwrap();
        let near = seen[from..].iter().filter(|(tag, _)| *tag == entry.tag);
        let mut report: Vec<_> = near.map(|(_, data)| differences("", &entry.fields, data).join(", ")).collect();
        report.dedup();
        Err(format!(
            "{}\n    {}: {}",
            entry.when,
            entry.tag,
            if report.is_empty() { "none".into() } else { report.join("\n    or ") }
        ))
    }
}

/// Subscribers end before the masters.
struct World {
    followers: JoinSet<()>,
    system: System,
    other: Option<System>,
    seen: Seen,
    keys: [String; 2],
}

impl World {
    async fn ask(&self, system: &System, load: Map) {
        let client = RequestClient::new(system.request_endpoint(), Limits::default());
        client.request(Envelope::clear(load), TIMEOUT).await.unwrap();
    }

    async fn authenticate(&self, system: &System, id: &str, key: usize, grains: Map) {
        let request = AuthRequest {
            id: id.parse().unwrap(),
            public_key: self.keys[key].clone(),
            nonce: token::nonce(),
            encryption: EncryptionAlgorithm::default(),
            signature: SignatureAlgorithm::default(),
            token: None,
            is_token_optional: false,
            ciphers: Vec::new(),
            autosign_grains: grains,
        };
        self.ask(system, request.to_map()).await;
    }

    async fn publish(&self, kwargs: Map, key: Option<String>, jid: Option<&str>) {
        let jid = jid.map(|jid| jid.parse().unwrap());
        let request = PublishRequest { kwargs, key, jid, ..PublishRequest::new("web1", "test.ping", "root") };
        self.ask(&self.system, request.to_map()).await;
    }

    async fn act(&mut self, step: &Step) {
        match step {
            Tool(tool, words) => _ = self.system.tool_async(tool, words).await,
            Minion(words) => {
                let mut command = support::within_limit(BRINE);
                command.args(["salt-call", "-c", &self.system.path("web1/etc").display().to_string()]);
                command.args(*words).env("TRY", "text");
                tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
            }
            Wheel(fun, kwargs) => {
                let args = Args::keyword(kwargs());
                let key = Some(self.system.root_key());
                let call = Call {
                    fun: (*fun).into(),
                    args,
                    key,
                    proof: None,
                    user: "root".into(),
                    asynchronous: false,
                    jid: None,
                    is_salt: false,
                };
                self.ask(&self.system, ClientCommand::call_map("wheel", &call)).await;
            }
            Publish(kwargs) => self.publish(kwargs(), Some(self.system.root_key()), None).await,
            Unauthenticated => self.publish(Map::new(), Some("wrong".into()), Some("20261121000000000000")).await,
            Authenticate(id, key, grains) => self.authenticate(&self.system, id, *key, grains()).await,
            Start => {
                self.system.configure_minion("web1", MINION);
                self.system.spawn_minion("web1");
            }
            StopBatch => {
                let words = ["web1", "test.sleep", "60", "-b", "1", "--async"];
                let report = support::stdout(&self.system.tool_async("salt", &words).await);
                let jid = report.trim().rsplit(' ').next().unwrap().to_owned();
                self.system.tool_async("salt-run", &["batch.stop", &jid, "kill=True"]).await;
            }
            Wait => {}
            Write => _ = self.system.write("srv/salt/new.txt", "new\n"),
            StartLimited => {
                let other = System::start(LIMITED).await;
                self.seen.follow(other.events("").await, &mut self.followers);
                self.authenticate(&other, "db1", 0, Map::new()).await;
                self.other = Some(other);
            }
            ExceedLimit => self.authenticate(self.other.as_ref().unwrap(), "db2", 1, Map::new()).await,
        }
    }
}

const CONFIG: &str = "presence_events: True
loop_interval: 1
fileserver_events: True
roots_update_interval: 1
auth_events_autosign_grains: [pend]
reactor:
  - 'try/reactor/runner': [ROOT/reactor/runner.sls]
  - 'try/reactor/wheel': [ROOT/reactor/wheel.sls]
  - 'try/reactor/local': [ROOT/reactor/local.sls]
";

const LIMITED: &str = "max_minions: 1
master_stats: True
master_stats_event_iter: 0
schedule:
  often: {function: test.arg, seconds: 1, args: [1]}
";

const MINION: &str = "state_events: True
ping_interval: 0.05
beacons:
  load: [{averages: {1m: [1000.0, 2000.0]}}, {interval: 2}]
";

const FILES: &[(&str, &str)] = &[
    ("srv/salt/good.sls", "one: test.nop\ntwo:\n  test.succeed_with_changes:\n    - require: [{test: one}]\n"),
    ("srv/salt/bad.sls", "wrong: test.fail_without_changes\n"),
    ("srv/salt/fire_true.sls", "shown:\n  test.nop:\n    - fire_event: True\n"),
    ("srv/salt/fire_text.sls", "shown:\n  test.nop:\n    - fire_event: my/text\n"),
    ("srv/salt/send.sls", "try/state/send:\n  event.send:\n    - data: {a: 1}\n    - b: text\n"),
    (
        "srv/salt/orch.sls",
        "job:\n  salt.function:\n    - name: test.ping\n    - tgt: web1\nstates:\n  salt.state:\n    - tgt: web1\n    - sls: good\n\
         run:\n  salt.runner:\n    - name: test.arg\n    - arg: [1]\n",
    ),
    ("srv/pillar/top.sls", "base: {'*': [all]}\n"),
    ("srv/pillar/all.sls", "port: 80\n"),
    ("reactor/runner.sls", "called:\n  runner.test.arg:\n    - args: [1]\n"),
    ("reactor/wheel.sls", "called:\n  wheel.key.list:\n    - args: [{match: acc}]\n"),
    ("reactor/local.sls", "called:\n  local.test.ping:\n    - tgt: web1\n"),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_event_of_salt_has_its_tag_and_fields() {
    let recording = recording();
    let mut system = System::new(CONFIG);
    for (path, text) in FILES {
        system.write(path, text);
    }
    system.start_master().await;
    let seen = Seen::default();
    let mut followers = JoinSet::new();
    seen.follow(system.events("").await, &mut followers);
    let key = || PrivateKey::generate(2048).unwrap().public().to_pem();
    let mut world = World { followers, system, other: None, seen, keys: [key(), key()] };
    let mut failures = Vec::new();
    for (when, step) in STEPS {
        let from = world.seen.len();
        world.act(step).await;
        for entry in recording.iter().filter(|entry| entry.when == *when && reason(entry).is_none()) {
            failures.extend(world.seen.until(from, entry).await.err());
        }
    }
    // Every recorded event is tested or listed with a reason, and every listed one was recorded.
    let untried = |entry: &&Recorded| reason(entry).is_none() && !STEPS.iter().any(|(when, _)| *when == entry.when);
    failures
        .extend(recording.iter().filter(untried).map(|entry| format!("{}: {} is not tried", entry.when, entry.tag)));
    for (when, tag, why) in NOT_REPRODUCED {
        let is = |entry: &Recorded| reason(entry) == Some(*why);
        if !recording.iter().any(is) {
            failures.push(format!("{when}: {tag} was not recorded: remove its line"));
        }
    }
    // All other published events are Salt's, except for Brine's own name space.
    let own = ["try/", "brine/"];
    for (tag, data) in
        world.seen.0.lock().unwrap().iter().filter(|(tag, _)| !own.iter().any(|own| tag.starts_with(own)))
    {
        let stamp = data.get("_stamp").map(ToString::to_string).unwrap_or_default();
        if !stamp.ends_with("+00:00") || stamp.len() != "2026-11-21T01:02:03.000004+00:00".len() {
            failures.push(format!("{tag}: '{stamp}' is not a time stamp in Salt's format"));
        }
        let kinds: Vec<_> = recording.iter().filter(|entry| entry.tag == *tag).collect();
        if !kinds.is_empty() && kinds.iter().all(|entry| reason(entry).is_some()) {
            continue;
        }
        if !kinds.iter().any(|entry| differences("", &entry.fields, data).is_empty()) {
            let data = Value::from(data.clone());
            failures.push(format!("{tag} {data}\n    is none of the {} that Salt fires", kinds.len()));
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn presence_tracks_the_minions() {
    let mut system = System::start("presence_events: True\nloop_interval: 1\n").await;
    let mut events = system.events("salt/presence/").await;
    let ids = |data: &Map, name: &str| data.get(name).unwrap().to_string();
    for id in ["web1", "web2"] {
        system.start_minion(id).await;
        let (_, data) = events.until("salt/presence/change").await;
        assert_eq!((ids(&data, "new"), ids(&data, "lost")), (format!("['{id}']"), "[]".into()));
    }
    assert_eq!(ids(&events.until("salt/presence/present").await.1, "present"), "['web1', 'web2']");
    // Both have one address; the missing one is still identified, and `salt-call` does not count as a minion.
    let etc = system.path("web2/etc").display().to_string();
    tokio::task::spawn_blocking(move || {
        support::within_limit(BRINE).args(["salt-call", "-c", &etc, "test.ping"]).output().unwrap()
    })
    .await
    .unwrap();
    system.kill_minion("web2");
    let (_, data) = events.until("salt/presence/change").await;
    assert_eq!((ids(&data, "new"), ids(&data, "lost")), ("[]".into(), "['web2']".into()));
    assert_eq!(ids(&events.until("salt/presence/present").await.1, "present"), "['web1']");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_job_is_published_under_its_bare_id_on_request() {
    let mut system = System::start("bare_jid_events: True\n").await;
    system.start_minion("web1").await;
    let mut events = system.events("").await;
    system.tool_async("salt", &["web1", "test.ping"]).await;
    let (new, data) = events.until("[0-9]*").await;
    assert_eq!(data.get("minions").map(ToString::to_string), Some("['web1']".into()));
    assert_eq!(events.next().await.0, format!("salt/job/{new}/new"));
}
