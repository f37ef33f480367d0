//! Daemons that stop and restart.

use crate::support;

use crate::support::{BRINE, System, stdout, text};
use brine_value::{Value, map};

fn ping(system: &System) -> Value {
    let output = system.tool("salt", &["web1", "test.ping", "-t", "1", "--static", "--out=json"]);
    brine_value::json::from_json(&stdout(&output)).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn minions_reconnect_after_the_master_was_down() {
    let mut system = System::start("").await;
    system.start_minion("web1").await;
    assert_eq!(ping(&system), map! {"web1" => true}.into());
    for stop in [System::stop_master, System::kill_master] {
        stop(&mut system);
        system.start_master().await;
        support::until("the minion reconnects", || ping(&system) == map! {"web1" => true}.into()).await;
    }
    let accepted = stdout(&system.tool("salt-key", &["-l", "acc"]));
    assert_eq!(accepted.trim_end(), "Accepted Keys:\nweb1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_minion_starts_again() {
    let mut system = System::start("").await;
    system.start_minion("web1").await;
    system.kill_minion("web1");
    system.start_minion("web1").await;
    assert_eq!(ping(&system), map! {"web1" => true}.into());
}

#[tokio::test(flavor = "multi_thread")]
async fn new_publish_keys_are_fetched_by_running_minions() {
    let mut system = System::start("").await;
    system.start_minion("web1").await;
    let mut events = system.events("salt/auth").await;
    system.write("cache/.dfn", "");
    support::until("the master takes the file", || !system.path("cache/.dfn").exists()).await;
    events.until("salt/auth").await;
    support::until("the minion has the new keys", || ping(&system) == map! {"web1" => true}.into()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_master_key_is_refused() {
    let mut system = System::start("").await;
    system.start_minion("web1").await;
    system.kill_minion("web1");
    system.stop_master();
    for file in ["pki/master.pem", "pki/master.pub"] {
        std::fs::remove_file(system.path(file)).unwrap();
    }
    system.start_master().await;
    system.spawn_minion("web1");
    support::until("the minion refuses", || system.minion_log("web1").contains("the master's key is not the one in"))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_key_ends_the_session() {
    let mut system = System::start("").await;
    system.start_minion("web1").await;
    let mut events = system.events("salt/").await;
    let said = stdout(&system.tool_async("salt-key", &["-d", "web1", "-y"]).await);
    assert!(said.contains("Key for minion web1 deleted."), "{said}");
    events.until("salt/key").await;
    // With auto_accept the minion authenticates again by itself, with a new session.
    events.until("salt/auth").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_master_fingerprint_is_refused_on_first_use() {
    let mut system = System::start("").await;
    let fingers = stdout(&system.tool("salt-key", &["-f", "master.pub"]));
    let finger = fingers.split_whitespace().last().unwrap().to_owned();
    system.configure_minion("wary", &format!("master_finger: '{}'\n", finger.replace(':', "0").replacen('0', ":", 1)));
    system.spawn_minion("wary");
    support::until("the minion refuses", || system.minion_log("wary").contains("(master_finger)")).await;
    assert!(!system.path("wary/pki/minion_master.pub").exists());
    system.configure_minion("web1", &format!("master_finger: '{finger}'\n"));
    let mut events = system.events("salt/minion/").await;
    system.spawn_minion("web1");
    events.until("salt/minion/web1/start").await;
}

/// Salt's `autosign_grains`: the minion sends grains with its key, and the master's files decide which are accepted.
#[tokio::test(flavor = "multi_thread")]
async fn keys_are_accepted_by_autosign_grains() {
    let mut system =
        System::new("autosign_grains_dir: ROOT/autosign_grains\nauth_events_autosign_grains: [accept, pend]\n");
    system.write("autosign_grains/role", "# who may come in\nweb\n");
    system.start_master().await;
    let mut events = system.events("salt/auth").await;
    for (id, role, act) in [("web1", "web", "accept"), ("db1", "db", "pend")] {
        let config = format!("grains: {{role: {role}, other: secret}}\nautosign_grains: [role, absent]\n");
        system.configure_minion(id, &config);
        system.spawn_minion(id);
        let (_, event) = events.until("salt/auth").await;
        let grains = map! {"role" => role, "absent" => Value::Nil};
        assert_eq!((text(&event, "id"), text(&event, "act")), (id.to_owned(), act.to_owned()));
        assert_eq!(event.get("autosign_grains"), Some(&grains.into()));
        system.kill_minion(id);
    }
}

/// A `salt-call` has its own session: neither it nor the daemon loses messages.
#[tokio::test(flavor = "multi_thread")]
async fn processes_of_one_minion_work_concurrently() {
    const EACH: usize = 10;
    let mut system = System::start("").await;
    system.start_minion("web1").await;
    let mut events = system.events("try/").await;
    let etc = system.path("web1/etc").display().to_string();
    let call = |n: usize| {
        let tag = format!("try/call/{n}");
        stdout(&support::within_limit(BRINE).args(["salt-call", "-c", &etc, "event.send", &tag]).output().unwrap())
    };
    let ask = |n: usize| stdout(&system.tool("salt", &["web1", "event.send", &format!("try/daemon/{n}")]));
    std::thread::scope(|scope| {
        for half in [0, 1] {
            scope.spawn(move || {
                (0..EACH).for_each(|n| {
                    let output = call(2 * n + half);
                    assert!(output.contains("True"), "salt-call {n}: {output}");
                });
            });
        }
        (0..EACH).for_each(|n| assert!(ask(n).contains("True"), "salt {n}"));
    });
    for _ in 0..3 * EACH {
        events.next().await;
    }
}
