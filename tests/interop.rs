//! Fleets in which unmodified Salt minions of several releases and Brine minions have one Brine master.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;
#[path = "support/salt.rs"]
mod salt;

use std::collections::BTreeSet;

use brine_core::{Map, Value, list, map};
use salt::{PythonMinion, RELEASES};
use support::{Events, System, stderr, stdout, text};

/// The id of the Brine minion in each fleet.
const BRINE_ID: &str = "brine";

/// A Brine master with a minion of each release of Salt, and one of Brine.
struct Fleet {
    // Ends before the system's folder goes.
    python: Vec<PythonMinion>,
    system: System,
}

impl Fleet {
    /// A fleet that has joined; `master` and `minion` are more of the configurations.
    async fn start(master: &str, minion: &str, files: &[(&str, &str)]) -> Self {
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
        events.from_all(&fleet.ids(), |tag, _| tag.strip_prefix("salt/minion/")?.strip_suffix("/start")).await;
        fleet
    }

    fn spawn(&mut self, minion: &str) {
        for version in RELEASES {
            let id = format!("salt{}", version.replace('.', "-"));
            let mut one = PythonMinion::new(&self.system, &id, version, &minion.replace("ROOT", &self.root()));
            one.spawn();
            self.python.push(one);
        }
        self.system.configure_minion(BRINE_ID, "");
        self.system.spawn_minion(BRINE_ID);
    }

    fn root(&self) -> String {
        self.system.path("").display().to_string().trim_end_matches('/').to_owned()
    }

    fn python_ids(&self) -> BTreeSet<String> {
        self.python.iter().map(|minion| minion.id.clone()).collect()
    }

    fn ids(&self) -> BTreeSet<String> {
        self.python_ids().into_iter().chain([BRINE_ID.to_owned()]).collect()
    }

    /// What `salt` says: by minion, what it returned.
    async fn salt(&self, words: &[&str]) -> Map {
        let all = [&["--static", "--out=json", "-t", "20"], words].concat();
        let output = self.system.tool_async("salt", &all).await;
        match brine_core::value::json::from_json(&stdout(&output)) {
            Ok(Value::Map(map)) => map,
            _ => panic!("salt {words:?}: {}{}", stdout(&output), stderr(&output)),
        }
    }

    /// What all Python minions return to `salt`, who must all return it.
    async fn python(&self, words: &[&str]) -> Vec<Value> {
        let answers = self.salt(&[&["salt*"], words].concat()).await;
        let answered: BTreeSet<String> = answers.keys().map(ToString::to_string).collect();
        assert_eq!(answered, self.python_ids(), "{words:?}: {answers:?}");
        answers.into_values().collect()
    }

    /// Every Python minion returns this.
    async fn python_says(&self, words: &[&str], wanted: impl Into<Value>) {
        let wanted = wanted.into();
        for answer in self.python(words).await {
            assert_eq!(answer, wanted, "{words:?}");
        }
    }

    /// Everybody answers.
    async fn all_answer(&self) {
        let answers = self.salt(&["*", "test.ping"]).await;
        let answered: BTreeSet<String> = answers.keys().map(ToString::to_string).collect();
        assert_eq!(answered, self.ids(), "{answers:?}");
        assert!(answers.values().all(|answer| *answer == Value::Bool(true)), "{answers:?}");
    }
}

impl Events {
    /// Waits until there was an event of each of these minions, as `whose` reads it off tag and body.
    async fn from_all(&mut self, ids: &BTreeSet<String>, whose: impl for<'a> Fn(&'a str, &'a Map) -> Option<&'a str>) {
        let mut missing = ids.clone();
        while !missing.is_empty() {
            let (tag, data) = tokio::time::timeout(support::LONG, self.next())
                .await
                .unwrap_or_else(|_| panic!("nothing comes of {missing:?}"));
            if let Some(id) = whose(&tag, &data) {
                missing.remove(id);
            }
        }
    }
}

const TREE: &[(&str, &str)] = &[
    ("srv/pillar/top.sls", "base: {'*': [data]}\n"),
    ("srv/pillar/data.sls", "greeting: hello {{ grains.id }}\n"),
    ("srv/salt/top.sls", "base: {'*': [web]}\n"),
    ("srv/salt/files/web.conf", "{{ pillar.greeting }} of {{ grains.kernel }}\n"),
    ("srv/salt/macros.jinja", "{% macro out(name) %}ROOT/{{ grains.id }}/out/{{ name }}{% endmacro %}\n"),
    (
        "srv/salt/web.sls",
        "{% from 'macros.jinja' import out with context %}
late:
  cmd.run:
    - name: echo {{ pillar['greeting'] }} > {{ out('late') }}
    - onchanges: [{file: conf}]
never:
  test.fail_without_changes:
    - require: [{test: broken}]
broken:
  test.fail_without_changes: []
conf:
  file.managed:
    - name: {{ out('web.conf') }}
    - source: salt://files/web.conf
    - template: jinja
    - makedirs: True
    - mode: '0640'
    - require: [{test: first}]
first: test.succeed_without_changes
",
    ),
];

/// What a minion says of a state, by its id: result, and whether there were changes.
fn outcome(returned: &Value, state: &str) -> (Value, bool) {
    let states = returned.as_map().unwrap_or_else(|| panic!("no states: {returned}"));
    let found = states.iter().find(|(name, _)| name.to_string().contains(&format!("_|-{state}_|-")));
    let (_, found) = found.unwrap_or_else(|| panic!("no state {state}: {returned}"));
    (found.get("result").unwrap().clone(), found.get("changes").is_some_and(Value::is_truthy))
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_and_states() {
    let fleet = Fleet::start("", "", TREE).await;
    fleet.all_answer().await;
    for answer in fleet.salt(&["*", "cmd.run", "echo a; echo b"]).await.into_values() {
        assert_eq!(answer, "a\nb".into());
    }
    // The first time something is changed, the second time nothing.
    for changed in [true, false] {
        for (id, returned) in fleet.salt(&["*", "state.apply"]).await {
            for (state, result, changes) in [
                ("first", Value::Bool(true), false),
                ("conf", Value::Bool(true), changed),
                ("late", Value::Bool(true), changed),
                ("broken", Value::Bool(false), false),
                ("never", Value::Bool(false), false),
            ] {
                assert_eq!(outcome(&returned, state), (result, changes), "{id} {state}: {returned}");
            }
            let out = |name: &str| std::fs::read_to_string(fleet.system.path(&format!("{id}/out/{name}"))).unwrap();
            assert_eq!(out("web.conf"), format!("hello {id} of Linux\n"));
            assert_eq!(out("late"), format!("hello {id}\n"));
        }
    }
    for (words, count) in [
        (&["-G", "kernel:Linux", "test.ping"][..], 4),
        (&["-I", "greeting:hello salt*", "test.ping"], 3),
        (&["-C", "salt* and not E@.*3007.*", "test.ping"], 2),
    ] {
        assert_eq!(fleet.salt(words).await.len(), count, "{words:?}");
    }
    let batches = fleet.system.tool_async("salt", &["-b", "2", "*", "test.ping", "--out=txt"]).await;
    let said = stdout(&batches);
    let answered: BTreeSet<String> = said.lines().filter_map(|line| Some(line.strip_suffix(": True")?.to_owned())).collect();
    assert_eq!(answered, fleet.ids(), "{said}{}", stderr(&batches));
}
