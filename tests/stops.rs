//! Stops of the master: a regular one leaves a store that the next start need not repair, whatever runs meanwhile.

use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use brine_zmtp::{Limits, RequestClient};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{BRINE, System, until};

/// The log line of a start after an unclean stop.
const REPAIRED: &str = "store repaired after an unclean stop";
/// The maximum time of a stop: that of the master, and some for a busy machine.
const STOP: Duration = Duration::from_secs(10);

fn terminate(child: &Child) {
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM).unwrap();
}

/// Waits for the end of a process, within the time of a stop.
async fn ended(mut child: Child) {
    let start = Instant::now();
    until("the master ends", || child.try_wait().unwrap().is_some()).await;
    assert!(start.elapsed() < STOP, "{:?}", start.elapsed());
}

fn repairs(system: &System) -> usize {
    system.master_log().matches(REPAIRED).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_under_load_is_a_clean_one() {
    let mut system = System::new("reactor:\n  - 'load/go/*': [ROOT/go.sls]\n  - 'load/slow': [ROOT/slow.sls]\n");
    system.write("go.sls", "done:\n  runner.event.send:\n    - tag: load/done\n    - data: {n: {{ data.n }}}\n");
    system.write("slow.sls", "slow:\n  runner.salt.cmd:\n    - fun: test.sleep\n    - args: [30]\n");
    for round in 0..20 {
        system.start_master().await;
        let (client, key, next) = (system.request_endpoint(), system.root_key(), Arc::new(AtomicU64::new(0)));
        let load: Vec<_> = (0..8)
            .map(|_| {
                let (client, key, next) =
                    (RequestClient::new(client.clone(), Limits::default()), key.clone(), Arc::clone(&next));
                tokio::spawn(async move {
                    while crate::reactor::fire(&client, &key, next.fetch_add(1, Ordering::Relaxed)).await {}
                })
            })
            .collect();
        if round % 2 == 1 {
            // A reaction and a job that outlast the stop.
            let slow = system.tool_async("salt-run", &["event.send", "load/slow"]).await;
            assert!(slow.status.success());
        }
        until("the load runs", || next.load(Ordering::Relaxed) > 200).await;
        let master = system.take_master();
        terminate(&master);
        ended(master).await;
        for task in load {
            task.abort();
        }
    }
    system.start_master().await;
    assert_eq!(repairs(&system), 0, "{}", system.master_log());
    assert_eq!(system.counter("brine_store_failures_total"), 0);
}

#[tokio::test]
async fn a_stop_during_the_start_is_a_clean_one() {
    let mut system = System::new("");
    system.start_master().await;
    system.stop_master();
    for round in 0..12u64 {
        let log = std::fs::File::options().append(true).open(system.path("master.log")).unwrap();
        let mut command = Command::new(BRINE);
        command.args(["salt-master", "-c", &system.etc(), "-l", "info"]).stdout(log.try_clone().unwrap()).stderr(log);
        let child = command.spawn().unwrap();
        // At different points: before, while and after the store is opened.
        tokio::time::sleep(Duration::from_millis(round * 25)).await;
        terminate(&child);
        ended(child).await;
    }
    system.start_master().await;
    assert_eq!(repairs(&system), 0, "{}", system.master_log());
}

#[tokio::test]
async fn a_start_that_fails_leaves_a_clean_store() {
    let mut system = System::new("");
    system.start_master().await;
    system.stop_master();
    let config = std::fs::read_to_string(system.path("etc/master")).unwrap();
    for wrong in ["master_job_cache: no_such_returner\n", "event_return: no_such_returner\n", "ciphers: [rot13]\n"] {
        system.write("etc/master", &format!("{config}{wrong}"));
        let output = system.tool_async("salt-master", &[]).await;
        assert!(!output.status.success(), "{wrong}");
    }
    system.write("etc/master", &config);
    system.start_master().await;
    assert_eq!(repairs(&system), 0, "{}", system.master_log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_file_sizes_is_an_error_of_the_store_and_not_the_end_of_the_master() {
    let mut system = System::new("");
    system.start_master().await;
    let pid = system.master_pid().to_string();
    // The store may not grow any more.
    let size = std::fs::metadata(system.path("cache/brine.redb")).unwrap().len();
    let limited = Command::new("prlimit").args(["--pid", &pid, &format!("--fsize={size}:unlimited")]).status().unwrap();
    assert!(limited.success());
    let client = RequestClient::new(system.request_endpoint(), Limits::default());
    let key = system.root_key();
    let mut sent = 0;
    while !system.master_log().contains("it exceeds the limit of file sizes") {
        assert!(sent < 100_000);
        for _ in 0..50 {
            crate::reactor::fire(&client, &key, sent).await;
            sent += 1;
        }
    }
    let unlimited = Command::new("prlimit").args(["--pid", &pid, "--fsize=unlimited:unlimited"]).status().unwrap();
    assert!(unlimited.success());
    let start = Instant::now();
    while !crate::reactor::fire(&client, &key, 1).await {
        assert!(start.elapsed() < Duration::from_secs(60));
    }
    assert_eq!(system.master_pid().to_string(), pid);
    system.stop_master();
}

#[tokio::test]
async fn user_signals_do_not_end_daemons() {
    let mut system = System::start("").await;
    system.start_minion("m1").await;
    let pids = [system.master_pid(), system.minion_pid("m1")];
    for signal in [Signal::SIGUSR1, Signal::SIGUSR2] {
        for pid in pids {
            kill(Pid::from_raw(pid.cast_signed()), signal).unwrap();
        }
        assert_eq!(system.salt_json(&["m1", "test.ping"]).to_string(), "{'m1': True}", "{signal}");
    }
    assert_eq!([system.master_pid(), system.minion_pid("m1")], pids);
}
