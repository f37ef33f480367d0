//! A Brine minion with an unmodified Salt master, of several releases.

use crate::support;

use crate::support::salt::{FLEET_TIMEOUT, PythonMaster, TREE, outcome};
use crate::support::{System, stderr, stdout, text};
use brine_value::{Value, list, map};

/// The id of the Brine minion.
const BRINE_ID: &str = "brine";
/// The options of the master.
const MASTER: &str = "hash_type: md5\npeer: {'.*': ['test.*']}\npeer_run: {'.*': ['test.arg']}\nfile_recv: True\nfile_recv_max_size: 1\nfile_buffer_size: 5000\n";

/// A Salt master of one release and its only minion, a Brine minion.
struct Pair {
    // Dropped before the minion's directory.
    system: System,
    master: PythonMaster,
}

impl Pair {
    /// Starts both, and waits for the accepted key and the start event.
    async fn start(version: &str, transport: &str) -> Self {
        let mut master = PythonMaster::new(version, &format!("transport: {transport}\n{MASTER}"));
        for (path, text) in TREE {
            master.write(path, text);
        }
        master.spawn();
        let mut events = master.events("salt/").await;
        let mut system = System::new("");
        let mine = "mine_return_job: True\nmine_functions:\n  kind: [{mine_function: grains.get}, kernel]\n";
        let file = system.configure_minion(BRINE_ID, &format!("transport: {transport}\n{mine}")).join("minion");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.replace(&system.ret_port.to_string(), &master.ret_port.to_string())).unwrap();
        system.spawn_minion(BRINE_ID);
        let (_, asked) = events.until("salt/auth").await;
        assert_eq!((support::text(&asked, "act"), support::text(&asked, "id")), ("pend".into(), BRINE_ID.into()));
        let accepted = master.tool("salt-key", &["-y", "-a", BRINE_ID]).await;
        assert!(stdout(&accepted).contains(&format!("Key for minion {BRINE_ID} accepted.")), "{}", stderr(&accepted));
        events.until(&format!("salt/minion/{BRINE_ID}/start")).await;
        // The minion sends its mine data on a schedule.
        while support::text(&events.until(&format!("salt/job/*/ret/{BRINE_ID}")).await.1, "fun") != "mine.update" {}
        Pair { system, master }
    }

    /// Runs `salt` and returns the minion's result.
    async fn salt(&self, words: &[&str]) -> Value {
        let output = self.master.tool("salt", &[&["--static", "--out=json", "*"], words].concat()).await;
        let said = brine_value::json::from_json(&stdout(&output)).unwrap_or_default();
        let report =
            || panic!("{words:?}: {}{}\n{}", stdout(&output), stderr(&output), self.system.minion_log(BRINE_ID));
        said.get(BRINE_ID).cloned().unwrap_or_else(report)
    }

    /// Files are pushed to the master, in small pieces.
    async fn pushes_files(&self) {
        let path = self.system.write("box/a.conf", &"0123456789abcdef".repeat(40_000)).display().to_string();
        let stored_path = |name: &str| self.master.path(&format!("cache/minions/{BRINE_ID}/files/{name}"));
        assert_eq!(self.salt(&["cp.push", &path]).await, true.into());
        let content = std::fs::read(&path).unwrap();
        assert_eq!(std::fs::read(stored_path(path.trim_start_matches('/'))).unwrap(), content);
        let directory = self.system.path("box").display().to_string();
        assert_eq!(self.salt(&["cp.push_dir", &directory, "upload_path=up"]).await, true.into());
        assert_eq!(std::fs::read(stored_path("up/a.conf")).unwrap(), content);
        let large = self.system.write("large", &"0123456789abcdef".repeat(70_000)).display().to_string();
        assert_eq!(self.salt(&["cp.push", &large]).await, false.into());
        // In the other direction, with the master's `file_buffer_size`.
        self.master.write("srv/salt/big", &"0123456789abcdef".repeat(40_000));
        assert_eq!(self.salt(&["cp.get_file_str", "salt://big"]).await, String::from_utf8(content).unwrap().into());
    }

    /// Pillar values are masked only with masters from 3008 on.
    async fn shows_the_pillar_as(&self, version: &str) {
        let greeting = format!("hello {BRINE_ID}");
        let expected = if version.starts_with("3008") { "**********" } else { &greeting };
        assert_eq!(self.salt(&["pillar.get", "greeting"]).await, expected.into());
        assert_eq!(self.salt(&["pillar.item", "greeting"]).await, map! {"greeting" => expected}.into());
        assert_eq!(self.salt(&["pillar.items"]).await.get("greeting"), Some(&expected.into()));
        assert_eq!(self.salt(&["pillar.get", "greeting", "unmask=True"]).await, greeting.into());
    }

    async fn up(&self) -> Value {
        let status = stdout(&self.master.tool("salt-run", &["manage.status", "--out=json"]).await);
        brine_value::json::from_json(&status).unwrap().get("up").cloned().unwrap_or_default()
    }
}

async fn a_brine_minion_works_for(version: &str, transport: &str) {
    let mut pair = Pair::start(version, transport).await;
    assert_eq!(pair.salt(&["test.ping"]).await, true.into());
    // The first run makes changes, the second one does not.
    for changed in [true, false] {
        let returned = pair.salt(&["state.apply"]).await;
        for (state, result, changes) in [
            ("first", true, false),
            ("conf", true, changed),
            ("late", true, changed),
            ("broken", false, false),
            ("never", false, false),
        ] {
            assert_eq!(outcome(&returned, state), (result.into(), changes), "{state}: {returned}");
        }
    }
    let conf = std::fs::read_to_string(pair.master.path(&format!("{BRINE_ID}/out/web.conf"))).unwrap();
    assert_eq!(conf, format!("hello {BRINE_ID} of Linux\n"));

    let mut events = pair.master.events("").await;
    assert_eq!(pair.salt(&["event.send", "my/tag", "{a: 1}"]).await, true.into());
    let (_, event) = events.until("my/tag").await;
    assert_eq!(text(&event, "id"), BRINE_ID);
    assert_eq!(event.get("data").and_then(|data| data.get("a")), Some(&1.into()));

    let of_brine = |value: &str| Value::from(map! {BRINE_ID => value});
    assert_eq!(pair.salt(&["mine.send", "test.echo", "word"]).await, true.into());
    assert_eq!(pair.salt(&["mine.get", "*", "test.echo"]).await, of_brine("word"));
    assert_eq!(pair.salt(&["mine.get", "*", "kind"]).await, of_brine("Linux"));
    pair.pushes_files().await;
    pair.shows_the_pillar_as(version).await;
    // With `transport: tcp`, a Salt 3008 master answers nobody while it waits for the returns of a peer publish.
    if !(version.starts_with("3008") && transport == "tcp") {
        assert_eq!(pair.salt(&["publish.publish", "*", "test.echo", "foo", "timeout=30"]).await, of_brine("foo"));
        assert_eq!(pair.salt(&["publish.publish", "*", "grains.get", "kernel"]).await, map! {}.into());
        // Not `manage.up`: this runner of Salt misses a return that arrives before it listens.
        let called = pair.salt(&["publish.runner", "test.arg", "word"]).await;
        assert_eq!(called.get("args"), Some(&list!["word"]), "{called}");
    }
    assert_eq!(pair.up().await, list![BRINE_ID]);

    // Deleting a key makes the master rotate its publish key, which it only announces on its bus.
    std::fs::copy(pair.master.path(&format!("pki/minions/{BRINE_ID}")), pair.master.path("pki/minions/other")).unwrap();
    let deleted = pair.master.tool("salt-key", &["-y", "-d", "other"]).await;
    assert!(stdout(&deleted).contains("Key for minion other deleted."), "{}{}", stdout(&deleted), stderr(&deleted));
    events.until("key").await;
    assert_eq!(pair.salt(&["test.ping"]).await, true.into());
    assert!(pair.system.minion_log(BRINE_ID).contains("authenticating again"), "the key has not changed");

    pair.master.kill();
    pair.master.spawn();
    // The minion reconnects by itself; the master does not announce when it receives publishes again.
    let begun = std::time::Instant::now();
    loop {
        let output = pair.master.tool("salt", &["--static", "--out=json", "-t", "2", "*", "test.ping"]).await;
        if stdout(&output).contains("true") {
            break;
        }
        assert!(
            begun.elapsed() < FLEET_TIMEOUT,
            "timed out waiting for the minion: {}",
            pair.system.minion_log(BRINE_ID)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_brine_minion_works_for_salt_3006() {
    a_brine_minion_works_for("3006.30", "zeromq").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_brine_minion_works_for_salt_3007() {
    a_brine_minion_works_for("3007.17", "zeromq").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_brine_minion_works_for_salt_3008() {
    a_brine_minion_works_for("3008.5", "zeromq").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_brine_minion_works_for_salt_3006_over_tcp() {
    a_brine_minion_works_for("3006.30", "tcp").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_brine_minion_works_for_salt_3007_over_tcp() {
    a_brine_minion_works_for("3007.17", "tcp").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_brine_minion_works_for_salt_3008_over_tcp() {
    a_brine_minion_works_for("3008.5", "tcp").await;
}
