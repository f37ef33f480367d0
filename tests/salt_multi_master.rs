//! A Brine minion with masters of Brine and of Salt that share a key pair: connected to all at once, or to one at a
//! time.

use std::path::Path;

use crate::support::salt::{FLEET_TIMEOUT, PythonMaster};
use crate::support::{System, stderr, stdout, until};

const ID: &str = "brine";
const START: &str = "salt/minion/brine/start";

/// Copies the key pair of a master, as soon as it has created it.
async fn copy_keys(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for file in ["master.pem", "master.pub"] {
        // Salt writes a key to its file in one call, but creates the file before.
        let text = || std::fs::read_to_string(from.join(file)).unwrap_or_default();
        until("the master has its key pair", || text().contains("-----END")).await;
        std::fs::copy(from.join(file), to.join(file)).unwrap();
    }
}

/// Starts masters of these releases of Salt, and a Brine master, with the key pair of the first one.
async fn masters(versions: &[&str]) -> (System, Vec<PythonMaster>) {
    let mut all: Vec<PythonMaster> = Vec::new();
    for version in versions {
        let mut master = PythonMaster::new(version, "auto_accept: True\n");
        if let Some(first) = all.first() {
            copy_keys(&first.path("pki"), &master.path("pki")).await;
        }
        master.spawn();
        master.events("none/").await;
        all.push(master);
    }
    let mut system = System::new("auto_accept: True\n");
    copy_keys(&all[0].path("pki"), &system.path("pki")).await;
    system.start_master().await;
    (system, all)
}

/// Starts the minion with these masters and the Brine master, which is the last one.
fn start(system: &mut System, all: &[PythonMaster], extra: &str) {
    let ports = all.iter().map(|master| master.ret_port).chain([system.ret_port]);
    let addresses: Vec<String> = ports.map(|port| format!("'127.0.0.1:{port}'")).collect();
    let path = system.configure_minion(ID, &format!("master: [{}]\n{extra}", addresses.join(", "))).join("minion");
    let text = std::fs::read_to_string(&path).unwrap().replace("master: 127.0.0.1\n", "");
    std::fs::write(path, text).unwrap();
    system.spawn_minion(ID);
}

/// Whether the minion returns a ping of a Salt master.
async fn answers(master: &PythonMaster) -> bool {
    let output = master.tool("salt", &[ID, "test.ping", "--static", "--out=json"]).await;
    let returned = brine_value::json::from_json(&stdout(&output)).unwrap_or_default();
    returned.get(ID) == Some(&true.into())
}

fn answers_brine(system: &System) -> bool {
    system.salt_json(&[ID, "test.ping"]).get(ID) == Some(&true.into())
}

#[tokio::test(flavor = "multi_thread")]
async fn minion_serves_salt_and_brine_masters_at_once() {
    let (mut system, mut all) = masters(&["3008.5", "3006.30"]).await;
    let mut starts = Vec::new();
    let mut fired = Vec::new();
    for master in &all {
        starts.push(master.events("salt/minion/").await);
        fired.push(master.events("my/").await);
    }
    let mut own = system.events("salt/minion/").await;
    start(&mut system, &all, "");
    own.until(START).await;
    for events in &mut starts {
        events.until(START).await;
    }
    assert!(answers_brine(&system));
    for master in &all {
        assert!(answers(master).await);
    }
    let sent = system.salt_json(&[ID, "event.send", "my/event", "{a: 1}"]);
    assert_eq!(sent.get(ID), Some(&true.into()));
    for events in &mut fired {
        events.until("my/event").await;
    }
    // Salt's own salt-cp.
    let from = system.write("motd", "welcome\n").display().to_string();
    for (more, name) in [(&[][..], "small"), (&["-C"], "pieces")] {
        let to = system.path(name).display().to_string();
        let copied = all[1].tool("salt-cp", &[more, &[ID, &from, &to]].concat()).await;
        assert!(copied.status.success(), "{}", stderr(&copied));
        assert_eq!(std::fs::read_to_string(&to).unwrap_or_default(), "welcome\n", "{}", stdout(&copied));
    }
    all[0].kill();
    assert!(answers(&all[1]).await && answers_brine(&system));
}

#[tokio::test(flavor = "multi_thread")]
async fn failover_from_a_salt_master_to_a_brine_master_and_back() {
    let (mut system, mut all) = masters(&["3007.17"]).await;
    let mut starts = all[0].events("salt/minion/").await;
    let mut own = system.events("salt/minion/").await;
    start(&mut system, &all, "master_type: failover\nmaster_failback: True\nmaster_failback_interval: 1\n");
    starts.until(START).await;
    assert!(answers(&all[0]).await);
    all[0].kill();
    own.until(START).await;
    assert!(answers_brine(&system));
    all[0].spawn();
    let begun = std::time::Instant::now();
    while !answers(&all[0]).await {
        assert!(begun.elapsed() < FLEET_TIMEOUT, "timed out waiting for the minion: {}", system.minion_log(ID));
    }
}
