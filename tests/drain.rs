//! A minion that is stopped lets its jobs end, and their returns reach the master.

use crate::support;

use std::process::{Child, Command, Stdio};

use crate::support::{BRINE, System, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Starts a job that runs until a file exists, and waits until it has begun.
async fn start_job(system: &System, name: &str) -> Child {
    let root = system.path("").display().to_string();
    let script =
        format!("touch {root}/{name}.begun; while [ ! -e {root}/{name}.go ]; do sleep 0.05; done; echo the job ended");
    let job = Command::new(BRINE)
        .args(["salt", "-c", &system.etc(), "-t", "60", "--out=txt", "web1", "cmd.run", &script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    until("the job has begun", || system.path(&format!("{name}.begun")).exists()).await;
    job
}

fn signal(pid: u32) {
    kill(Pid::from_raw(i32::try_from(pid).unwrap()), Signal::SIGTERM).unwrap();
}

/// Waits for the end of a child of this process that nobody has waited for.
async fn until_ended(pid: u32) {
    let status = format!("/proc/{pid}/status");
    until("the minion ends", || std::fs::read_to_string(&status).is_ok_and(|text| text.contains("State:\tZ"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_a_stopping_minion_end_and_return() {
    let mut system = System::start("").await;
    system.start_minion("web1").await;
    let job = start_job(&system, "job").await;
    let pid = system.minion_pid("web1");
    signal(pid);
    until("the minion waits", || system.minion_log("web1").contains("the minion waits for running jobs")).await;
    // A job that arrives now is left for after the restart.
    let root = system.path("").display().to_string();
    let late = system.tool_async("salt", &["--async", "web1", "cmd.run", &format!("touch {root}/late")]).await;
    assert!(late.status.success());
    until("it is left", || system.minion_log("web1").contains("left for after the restart")).await;
    system.write("job.go", "");
    let output = tokio::task::spawn_blocking(move || job.wait_with_output().unwrap()).await.unwrap();
    assert_eq!(support::stdout(&output), "web1: the job ended\n");
    until_ended(pid).await;
    assert!(!system.path("late").exists());
    system.kill_minion("web1");
    system.spawn_minion("web1");
    until("the job that was left is run", || system.path("late").exists()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_and_the_timeout_end_jobs() {
    for (extra, second) in [("", true), ("job_stop_timeout: 1\n", false), ("job_stop_timeout: 0\n", false)] {
        let mut system = System::start("").await;
        system.configure_minion("web1", extra);
        let mut events = system.events("salt/minion/").await;
        system.spawn_minion("web1");
        events.until("salt/minion/web1/start").await;
        let mut job = start_job(&system, "job").await;
        let pid = system.minion_pid("web1");
        signal(pid);
        if second {
            until("the minion waits", || system.minion_log("web1").contains("the minion waits for running jobs")).await;
            signal(pid);
        }
        until_ended(pid).await;
        job.kill().unwrap();
        job.wait().unwrap();
    }
}
