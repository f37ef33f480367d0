//! A minion with several masters (`master_type: failover`): masters that are killed, hang, are unresolvable, refuse the
//! minion, and come back.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::{Events, System};

const START: &str = "salt/minion/m1/start";

/// Several masters with one key pair.
async fn masters(count: usize) -> Vec<System> {
    let mut all = vec![System::start("").await];
    for _ in 1..count {
        let mut other = System::new("auto_accept: True\n");
        for file in ["master.pem", "master.pub"] {
            std::fs::create_dir_all(other.path("pki")).unwrap();
            std::fs::copy(all[0].path("pki").join(file), other.path("pki").join(file)).unwrap();
        }
        other.start_master().await;
        all.push(other);
    }
    all
}

async fn events(all: &[System]) -> Vec<Events> {
    let mut events = Vec::new();
    for system in all {
        events.push(system.events("salt/minion/").await);
    }
    events
}

/// Starts the minion m1 in the first directory, with these masters in front of all.
fn start(all: &mut [System], before: &str, extra: &str) {
    let ports: Vec<String> = all.iter().map(|system| format!("'127.0.0.1:{}'", system.ret_port)).collect();
    let more = format!("master_type: failover\nmaster: [{before}{}]\nauth_timeout: 1\n{extra}", ports.join(", "));
    all[0].configure_minion("m1", &more);
    // The last one counts.
    let path = all[0].path("m1/etc/minion");
    let text = std::fs::read_to_string(&path).unwrap().replace("master: 127.0.0.1\n", "");
    std::fs::write(path, text).unwrap();
    all[0].spawn_minion("m1");
}

fn answers(system: &System) -> bool {
    system.salt_json(&["m1", "test.ping"]).get("m1") == Some(&true.into())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_death_leads_to_the_next_master_and_around() {
    let mut all = masters(3).await;
    let mut events = events(&all).await;
    start(&mut all, "", "");
    events[0].until(START).await;
    assert!(answers(&all[0]));

    let killed = Instant::now();
    all[0].kill_master();
    events[1].until(START).await;
    assert!(killed.elapsed() < Duration::from_secs(3), "the failover took {:?}", killed.elapsed());
    assert!(answers(&all[1]));

    // A second death is noticed as the first one.
    all[1].kill_master();
    events[2].until(START).await;
    assert!(answers(&all[2]));

    // All are down; the minion waits, and takes the first that is there again.
    all[2].kill_master();
    all[1].start_master().await;
    let mut second = all[1].events("salt/minion/").await;
    second.until(START).await;
    assert!(answers(&all[1]));
    assert!(all[0].minion_log("m1").contains("the master does not serve this minion"));
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_do_not_resolve_and_masters_that_are_down_at_the_start_are_passed_over() {
    let mut all = masters(2).await;
    all[0].kill_master();
    let mut second = all[1].events("salt/minion/").await;
    start(&mut all, "no-such-host.invalid, ", "");
    second.until(START).await;
    assert!(answers(&all[1]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_hangs_is_left_and_the_first_is_preferred_again() {
    let mut all = masters(2).await;
    let mut events = events(&all).await;
    start(&mut all, "", "master_alive_interval: 1\nmaster_failback: True\nmaster_failback_interval: 1\n");
    events[0].until(START).await;
    assert!(answers(&all[0]));
    let first = Pid::from_raw(i32::try_from(all[0].master_pid()).unwrap());
    kill(first, Signal::SIGSTOP).unwrap();
    events[1].until(START).await;
    assert!(answers(&all[1]));
    kill(first, Signal::SIGCONT).unwrap();
    events[0].until(START).await;
    assert!(answers(&all[0]));
    assert!(all[0].minion_log("m1").contains("has not answered for 1s"));
    // Two checks later there was no further start. Nothing happens that could be awaited.
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let log = all[0].minion_log("m1");
    assert_eq!(log.matches("the minion is ready").count(), 3, "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_has_rejected_the_minion_is_passed_over() {
    let mut all = masters(2).await;
    let mut events = events(&all).await;
    start(&mut all, "", "");
    events[0].until(START).await;
    assert!(all[0].tool("salt-key", &["-y", "-r", "m1", "--include-accepted"]).status.success());
    events[1].until(START).await;
    assert!(answers(&all[1]));
}
