//! A fleet of a Brine master with unmodified Salt minions of several releases and a Brine minion.

use std::collections::BTreeSet;
use std::time::Instant;

use brine_value::{Map, Value};

use super::salt::{FLEET_TIMEOUT, PythonMinion, RELEASES};
use crate::support::{Events, System, stderr, stdout};

/// The id of the Brine minion in each fleet.
pub const BRINE_ID: &str = "brine";

/// A Brine master with a Salt minion of each release, and a Brine minion.
pub struct Fleet {
    // Dropped before the system's directory.
    pub python: Vec<PythonMinion>,
    pub system: System,
}

impl Fleet {
    /// Starts a fleet and waits until it has joined; `master` and `minion` are additional configuration.
    pub async fn start(master: &str, minion: &str, files: &[(&str, &str)]) -> Self {
        let system = System::new(&format!("auto_accept: True\n{master}"));
        for (path, text) in files {
            system.write(path, text);
        }
        Fleet::join(system, minion).await
    }

    async fn join(system: System, minion: &str) -> Self {
        let mut fleet = Fleet { python: Vec::new(), system };
        fleet.system.start_master().await;
        let mut events = fleet.system.events("salt/minion/").await;
        fleet.spawn(minion);
        events.until_all(&fleet.ids(), started).await;
        // A minion of Salt may announce its start before it receives publishes.
        fleet.until_reached().await;
        fleet
    }

    pub fn spawn(&mut self, minion: &str) {
        for version in RELEASES {
            let id = format!("salt{}", version.replace('.', "-"));
            let mut one = PythonMinion::new(&self.system, &id, version, &minion.replace("ROOT", &self.root()));
            one.spawn();
            self.python.push(one);
        }
        self.system.configure_minion(BRINE_ID, "");
        self.system.spawn_minion(BRINE_ID);
    }

    pub fn root(&self) -> String {
        self.system.path("").display().to_string().trim_end_matches('/').to_owned()
    }

    pub fn python_ids(&self) -> BTreeSet<String> {
        self.python.iter().map(|minion| minion.id.clone()).collect()
    }

    pub fn ids(&self) -> BTreeSet<String> {
        self.python_ids().into_iter().chain([BRINE_ID.to_owned()]).collect()
    }

    /// Runs `salt` and returns the results by minion.
    pub async fn salt(&self, words: &[&str]) -> Map {
        let all = [&["--static", "--out=json", "-t", "30"], words].concat();
        let output = self.system.tool_async("salt", &all).await;
        match brine_value::json::from_json(&stdout(&output)) {
            Ok(Value::Map(map)) => map,
            _ => panic!("salt {words:?}: {}{}", stdout(&output), stderr(&output)),
        }
    }

    /// Runs `salt`, which may return nothing.
    pub async fn try_salt(&self, words: &[&str]) -> Map {
        let output = self.system.tool_async("salt", &[&["--static", "--out=json"], words].concat()).await;
        let said = brine_value::json::from_json(&stdout(&output));
        said.ok().and_then(|said| said.as_map().cloned()).unwrap_or_default()
    }

    /// Runs `salt` and returns the results of all Python minions, which must all return.
    pub async fn python(&self, words: &[&str]) -> Vec<Value> {
        let answers = self.salt(&[&["salt*"], words].concat()).await;
        let answered: BTreeSet<String> = answers.keys().map(ToString::to_string).collect();
        assert_eq!(answered, self.python_ids(), "{words:?}: {answers:?}");
        answers.into_values().collect()
    }

    /// Asserts that every Python minion returns this.
    pub async fn assert_python_returns(&self, words: &[&str], expected: impl Into<Value>) {
        let expected = expected.into();
        for answer in self.python(words).await {
            assert_eq!(answer, expected, "{words:?}");
        }
    }

    /// Waits until publishes reach all minions.
    pub async fn until_reached(&self) {
        let (mut missing, begun) = (self.ids(), Instant::now());
        while !missing.is_empty() {
            assert!(begun.elapsed() < FLEET_TIMEOUT, "timed out waiting for publishes to reach {missing:?}");
            let list = missing.iter().cloned().collect::<Vec<_>>().join(",");
            let answers = self.try_salt(&["-L", &list, "test.ping", "-t", "2"]).await;
            missing.retain(|id| answers.get(id.as_str()) != Some(&true.into()));
        }
    }

    /// Asserts that all minions answer.
    pub async fn all_answer(&self) {
        let answers = self.salt(&["*", "test.ping"]).await;
        let answered: BTreeSet<String> = answers.keys().map(ToString::to_string).collect();
        assert_eq!(answered, self.ids(), "{answers:?}");
        assert!(answers.values().all(|answer| *answer == Value::Bool(true)), "{answers:?}");
    }
}

impl Events {
    /// Waits for an event of each of these minions; `whose` returns the minion of a tag and body.
    pub async fn until_all(&mut self, ids: &BTreeSet<String>, whose: impl Fn(&str, &Map) -> Option<String>) {
        let mut missing = ids.clone();
        let wait = async {
            while !missing.is_empty() {
                let (tag, data) = self.next().await;
                if let Some(id) = whose(&tag, &data) {
                    missing.remove(&id);
                }
            }
        };
        let in_time = tokio::time::timeout(FLEET_TIMEOUT, wait).await;
        assert!(in_time.is_ok(), "timed out waiting for events of {missing:?}");
    }
}

/// Returns the minion of a start event.
pub fn started(tag: &str, _: &Map) -> Option<String> {
    Some(tag.strip_prefix("salt/minion/")?.strip_suffix("/start")?.to_owned())
}
