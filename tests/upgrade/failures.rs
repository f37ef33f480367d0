//! Programs that are not right, and what happens meanwhile: the old program stays, or comes back.

use std::path::PathBuf;
use std::process::Command;

use brine_value::Value;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::minion::{
    LOCAL, Minion, SOURCE, UPGRADE, outcome, pings, publish, publish_c, publish_good, sha256, staged, start,
    start_by_proxy, stripped, text, upgrade,
};
use crate::support::proxy::Mode;
use crate::support::{System, stderr, stdout, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_ends_at_its_start_is_rolled_back() {
    let (system, minion, mut events) = start("").await;
    let old = sha256(&minion.program());
    publish_c(&system, "brine 99.0.0", "return 3;");
    staged(&upgrade(&system, &[]));
    let told = outcome(&mut events, "m1").await;
    assert_eq!(text(&told, "result"), "rolled_back", "{told:?}");
    assert!(text(&told, "reason").contains("the new program ended"), "{told:?}");
    assert_eq!(told.get("to").and_then(|to| to.get("version")).and_then(Value::as_str), Some("99.0.0"));
    assert_eq!((minion.names(), sha256(&minion.program())), (vec!["brine".to_owned()], old));
    assert_eq!(minion.running(), minion.program());
    pings(&system);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_hangs_is_rolled_back() {
    let (system, minion, mut events) = start(&format!("{LOCAL}upgrade_health_timeout: 1\n")).await;
    publish_c(&system, "brine 99.0.0", "for (;;) pause();");
    staged(&upgrade(&system, &[]));
    let told = outcome(&mut events, "m1").await;
    assert_eq!(text(&told, "result"), "rolled_back", "{told:?}");
    assert!(text(&told, "reason").contains("did not tell within 1s"), "{told:?}");
    assert_eq!(minion.names(), ["brine"]);
    pings(&system);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_cannot_connect_goes_back_by_itself() {
    let (system, proxy, minion, mut events) = start_by_proxy(5).await;
    let (old, pid) = (sha256(&minion.program()), minion.pid());
    publish_good(&system, "build 2");
    staged(&upgrade(&system, &[]));
    // From the change on, the master cannot be reached.
    until("the new program is tried", || minion.phase() == "trial").await;
    proxy.set(Mode::Refuse);
    proxy.cut();
    until("the old program is back", || minion.phase() == "rolled_back").await;
    proxy.set(Mode::Pass);
    let told = outcome(&mut events, "m1").await;
    assert_eq!(text(&told, "result"), "rolled_back", "{told:?}");
    assert!(text(&told, "reason").contains("upgrade_health_timeout"), "{told:?}");
    assert_eq!((sha256(&minion.program()), minion.pid(), minion.names()), (old, pid, vec!["brine".to_owned()]));
    assert_eq!(minion.running(), minion.program());
    pings(&system);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_during_the_trial_is_not_undone() {
    let (system, proxy, mut minion, mut events) = start_by_proxy(60).await;
    publish_good(&system, "build 2");
    staged(&upgrade(&system, &[]));
    until("the new program is tried", || minion.phase() == "trial").await;
    proxy.set(Mode::Refuse);
    proxy.cut();
    until("the new program serves", || minion.running().ends_with("brine.new")).await;
    let serves = "connecting to the master failed";
    until("the new program tries to connect", || system.minion_log("m1").contains(serves)).await;
    kill(Pid::from_raw(minion.pid().unwrap()), Signal::SIGTERM).unwrap();
    minion.child.wait().unwrap();
    assert_eq!((minion.phase(), minion.names(), minion.pid()), ("rolled_back".into(), vec!["brine".to_owned()], None));
    proxy.set(Mode::Pass);
    minion.restart();
    let told = outcome(&mut events, "m1").await;
    assert_eq!(text(&told, "reason"), "the minion was stopped while it tried the new program");
    pings(&system);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_not_right_changes_nothing() {
    let (system, minion, _events) = start("upgrade_pubkey: ROOT/key.pub\n").await;
    let (pid, root) = (minion.pid(), system.path("").display().to_string());
    let local = |words: &[&str]| {
        let output = System::command("salt-call", &[&["-c", &format!("{root}/m1/etc"), "--local"], words].concat());
        assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
        stdout(&output)
    };
    for name in ["key", "other"] {
        local(&["x509.create_private_key", "algo=ed25519", &format!("path={root}/{name}.pem")]);
    }
    let public = local(&["--out=newline_values_only", "x509.get_public_key", &format!("{root}/key.pem")]);
    system.write("key.pub", public.trim());
    let sign = |name: &str| {
        let sums = system.path(&format!("{SOURCE}.sha256")).display().to_string();
        let key = format!("{root}/{name}.pem");
        local(&["asymmetric.sign", &key, &format!("filename={sums}"), &format!("path={sums}.sig")]);
    };
    let refused = |expected: &str, more: &[&str]| {
        let said = upgrade(&system, more).to_string();
        assert!(said.contains(expected), "expected {expected}: {said}");
        assert_eq!(
            (minion.names(), minion.pid(), minion.phase()),
            (vec!["brine".to_owned()], pid, String::new()),
            "{expected}"
        );
        pings(&system);
    };
    refused("does not exist", &[]);
    publish_good(&system, "build 2");
    refused("brine.sha256.sig does not exist", &[]);
    sign("other");
    refused("the signature is invalid", &[]);
    sign("key");
    // Signed, but not this file.
    std::fs::write(system.path(SOURCE), "something else").unwrap();
    refused("expected SHA-256", &[]);
    publish(&system, b"#!/bin/sh\necho brine 99.0.0\n");
    sign("key");
    refused("expected an ELF executable", &[]);
    let mut foreign = std::fs::read(stripped(&system)).unwrap();
    foreign.truncate(100_000);
    foreign[18] = 8;
    publish(&system, &foreign);
    sign("key");
    refused("another architecture", &[]);
    for (version, body, more, expected) in [
        ("salt 3008", "return 0;", &[][..], "printed no version of brine"),
        ("brine 0.0.1", "return 0;", &[], "allow_downgrade=True"),
        ("brine 99.0.0", "return 0;", &["version=98.0.0"], "expected 98.0.0"),
    ] {
        publish_c(&system, version, body);
        sign("key");
        refused(expected, more);
    }
    let http = system.salt_json(&["m1", "brine.upgrade", "source=https://127.0.0.1/brine"]).to_string();
    assert!(http.contains("expected a file of the master"), "{http}");
    let esky = system.salt_json(&["m1", "saltutil.update"]).to_string();
    assert!(esky.contains("brine.upgrade"), "{esky}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_leaves_nothing() {
    let system = System::start("").await;
    system.configure_minion("m1", LOCAL);
    let directory = system.path("m1/bin");
    std::fs::create_dir_all(&directory).unwrap();
    let program = stripped(&system);
    let size = program.metadata().unwrap().len() * 3 / 2;
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", &format!("size={size},mode=0755"), "tmpfs"])
        .arg(&directory)
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        eprintln!("skipped: this environment allows no mounts");
        return;
    }
    let _mount = Unmount(directory);
    let mut events = system.events("salt/minion/").await;
    let minion = Minion::spawn(&system, "m1");
    events.until("salt/minion/m1/start").await;
    publish_good(&system, "build 2");
    let said = upgrade(&system, &[]).to_string();
    assert!(said.contains("No space left on device"), "{said}");
    assert_eq!((minion.names(), minion.phase()), (vec!["brine".to_owned()], String::new()));
    pings(&system);
}

struct Unmount(PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        // The minion's program is on it.
        _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minion_that_is_killed_at_any_step_comes_back_with_one_of_the_programs() {
    let (system, mut minion, mut events) = start("").await;
    let old = sha256(&minion.program());
    // While the program is fetched.
    publish_good(&system, "build 1");
    let begun = system.tool("salt", &[&["--async", "m1"], &UPGRADE[..]].concat());
    assert!(begun.status.success(), "{}", stderr(&begun));
    until("the program is fetched", || minion.phase() == "fetching" && minion.names().len() > 1).await;
    minion.kill();
    system.configure_minion("m1", LOCAL);
    minion.restart();
    let told = outcome(&mut events, "m1").await;
    assert_eq!(text(&told, "reason"), "the minion ended before it tried the new program");
    assert_eq!(minion.names(), ["brine"]);
    // While it waits for other jobs.
    publish_good(&system, "build 2");
    let slow = system.tool("salt", &["--async", "m1", "test.sleep", "60"]);
    assert!(slow.status.success(), "{}", stderr(&slow));
    staged(&upgrade(&system, &[]));
    assert_eq!(minion.names(), ["brine", "brine.new"]);
    minion.kill();
    minion.restart();
    let told = outcome(&mut events, "m1").await;
    assert_eq!(text(&told, "reason"), "the minion ended before it tried the new program");
    assert_eq!((minion.names(), sha256(&minion.program())), (vec!["brine".to_owned()], old.clone()));
    // While the new program is tried: the watcher starts the old one.
    publish_c(&system, "brine 99.0.0", "for (;;) pause();");
    staged(&upgrade(&system, &[]));
    until("the new program is tried", || minion.running().ends_with("brine.new")).await;
    minion.kill();
    let told = outcome(&mut events, "m1").await;
    assert_eq!(text(&told, "result"), "rolled_back", "{told:?}");
    assert_eq!((minion.names(), sha256(&minion.program())), (vec!["brine".to_owned()], old.clone()));
    pings(&system);
    // The same with the watcher, as at a power failure: whoever starts the minion starts the old program.
    staged(&upgrade(&system, &[]));
    until("the new program is tried", || minion.running().ends_with("brine.new")).await;
    minion.kill_watcher();
    minion.kill();
    assert_eq!(minion.phase(), "trial");
    minion.restart();
    let told = outcome(&mut events, "m1").await;
    assert_eq!(text(&told, "reason"), "the minion ended while it tried the new program");
    assert_eq!((minion.names(), sha256(&minion.program())), (vec!["brine".to_owned()], old.clone()));
    // While it gets its place, before and after the exchange: as the state on disk is then.
    for (is_left, result) in [(true, "rolled_back"), (false, "done")] {
        kill(Pid::from_raw(minion.pid().unwrap()), Signal::SIGKILL).unwrap();
        let path = system.path("m1/cache/upgrade/state");
        let state = std::fs::read_to_string(&path).unwrap();
        let state = state.replace("\"rolled_back\"", "\"committing\"").replace("\"done\"", "\"committing\"");
        let state = state.replace("\"is_settled\":true", "\"is_settled\":false");
        std::fs::write(&path, state.replace("\"is_reported\":true", "\"is_reported\":false")).unwrap();
        if is_left {
            std::fs::write(minion.program().with_extension("new"), "new").unwrap();
        }
        minion.restart();
        let told = outcome(&mut events, "m1").await;
        assert_eq!(text(&told, "result"), result, "{told:?}");
        assert_eq!(minion.names(), ["brine"]);
    }
    pings(&system);
}
