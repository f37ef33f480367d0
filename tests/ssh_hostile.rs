//! Hosts of `salt-ssh` that are silent or hostile: a program that takes the place of `ssh` plays them. Each call ends in
//! time, with nothing left behind.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{BRINE, System, stderr, stdout, until};

/// Returns the token of the start command, and says that the program starts.
const READY: &str = "token=$(printf '%s' \"$*\" | grep -o 'brine-[0-9a-f]\\{16\\}' | head -1)\necho \"$token READY\"\n";

/// Creates a system with one host, whose `ssh` is this script.
fn system(script: &str, options: &str) -> System {
    let system = System::new(options);
    system.write("etc/roster", "web1: {host: 192.0.2.1, user: nobody}\n");
    std::fs::create_dir_all(system.path("tmp")).unwrap();
    // The process and a child of it that holds the pipes.
    let start = "#!/bin/bash\necho $$ >> ROOT/pids\nsleep 300 & echo $! >> ROOT/pids\n";
    let path = system.write("bin/ssh", &format!("{start}{script}"));
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    system
}

fn command(system: &System, words: &[&str]) -> Command {
    let mut command = Command::new(BRINE);
    let path = format!("{}:{}", system.path("bin").display(), std::env::var("PATH").unwrap());
    command.args(["salt-ssh", "-c", &system.etc()]).args(words).env("PATH", path);
    command.env("TMPDIR", system.path("tmp")).env("XDG_RUNTIME_DIR", system.path("."));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Asserts that no process and no file of a call is left.
async fn assert_clean(system: &System) {
    let pids = std::fs::read_to_string(system.path("pids")).unwrap();
    assert!(pids.lines().count() >= 2, "{pids}");
    for pid in pids.lines() {
        let pid = nix::unistd::Pid::from_raw(pid.parse().unwrap());
        until("the processes of the call end", || nix::sys::signal::kill(pid, None).is_err() || is_zombie(pid)).await;
    }
    let left: Vec<_> = std::fs::read_dir(system.path("tmp")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// An orphan that nobody reaps has ended as well.
fn is_zombie(pid: nix::unistd::Pid) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
}

async fn call(system: &System, words: &[&str]) -> (Output, Duration) {
    let mut command = command(system, words);
    let began = Instant::now();
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    (output, began.elapsed())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_a_silent_or_endless_host_ends() {
    // A request for the master: four bytes of length, and msgpack.
    let ask = "printf '\\0\\0\\0\\x0c\\x81\\xa3ask\\x81\\xa3cmd\\xa1x'";
    let alive = "printf '\\0\\0\\0\\x08\\x81\\xa5alive\\xc3'";
    for (name, script, words, expected) in [
        ("silent from the start", "sleep 300", &["test.ping"][..], "does not answer"),
        ("noise without lines", "exec cat /dev/zero", &["test.ping"], "login exceeds 64 KiB"),
        ("lines", "exec yes", &["test.ping"], "login exceeds 64 KiB"),
        ("noise on stderr", "exec cat /dev/zero >&2", &["test.ping"], "does not answer"),
        ("slow lines", "while echo x; do sleep 0.5; done", &["test.ping"], "the call was ended"),
        ("hang after the start", &format!("{READY}sleep 300"), &["test.ping"], "does not answer"),
        ("half a message", &format!("{READY}printf '\\0\\0\\1'; sleep 300"), &["test.ping"], "does not answer"),
        ("invalid message", &format!("{READY}exec yes"), &["test.ping"], "invalid message"),
        (
            "requests",
            &format!("{READY}cat <&0 >/dev/null &\nwhile {ask}; do :; done"),
            &["test.ping"],
            "the call was ended",
        ),
        ("only alive", &format!("{READY}while {alive}; do sleep 0.1; done"), &["test.ping"], "the call was ended"),
        (
            "program again and again",
            "token=$(printf '%s' \"$*\" | grep -o 'brine-[0-9a-f]\\{16\\}' | head -1)\nwhile echo \"$token NEED $(uname -sm) \"; do n=$(dd bs=1 count=12 2>/dev/null); head -c $n > /dev/null; done",
            &["test.ping"],
            "again and again",
        ),
        ("raw, silent", "sleep 300", &["-r", "uptime"], "the call was ended"),
        ("raw, endless", "exec cat /dev/zero", &["-r", "uptime"], "output exceeds 64 MiB"),
    ] {
        let system = system(script, "ssh_call_timeout: 15\nssh_control_persist: 0\n");
        let mut all = vec!["--timeout", "1"];
        let (options, rest) = words.split_at(usize::from(words[0] == "-r"));
        all.extend(options);
        all.push("web1");
        all.extend(rest);
        let (output, time) = call(&system, &all).await;
        let text = format!("{}{}", stdout(&output), stderr(&output));
        let text: String = text.chars().take(2000).collect();
        assert!(text.contains(expected), "{name}: expected '{expected}': {text}");
        assert!(time < Duration::from_secs(60), "{name}: {time:?}");
        assert_eq!(output.status.code(), Some(20), "{name}");
        assert_clean(&system).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_ends_the_calls_and_removes_their_files() {
    for signal in [nix::sys::signal::Signal::SIGTERM, nix::sys::signal::Signal::SIGINT] {
        let system = system("sleep 300", "");
        let mut child = command(&system, &["web1", "test.ping"]).spawn().unwrap();
        let pids = system.path("pids");
        until("ssh is started", || std::fs::read_to_string(&pids).is_ok_and(|text| text.lines().count() >= 2)).await;
        assert!(std::fs::read_dir(system.path("tmp")).unwrap().count() > 0);
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id().cast_signed()), signal).unwrap();
        let status = tokio::task::spawn_blocking(move || child.wait().unwrap()).await.unwrap();
        assert_eq!(status.code(), Some(143), "{signal}");
        assert_clean(&system).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_files_of_a_killed_call_are_removed_by_the_next() {
    let system = system("exit 255", "");
    let left = system.path("tmp/brine-ssh-left");
    std::fs::create_dir(&left).unwrap();
    std::fs::write(left.join("lock"), "").unwrap();
    let (output, _) = call(&system, &["--timeout", "1", "web1", "test.ping"]).await;
    assert_eq!(output.status.code(), Some(20), "{}", stderr(&output));
    assert_clean(&system).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_by_the_master_ends_and_gives_its_place_back() {
    let mut system = system("sleep 300", "auto_accept: True\nssh_timeout: 1\nssh_control_persist: 0\n");
    let path = format!("{}:{}", system.path("bin").display(), std::env::var("PATH").unwrap());
    system.start_master_with(&[("PATH", &path), ("TMPDIR", &system.path("tmp").display().to_string())]).await;
    for _ in 0..2 {
        let began = Instant::now();
        let text = stdout(&system.tool_async("salt-run", &["ssh.cmd", "web1", "test.ping"]).await);
        assert!(text.contains("does not answer"), "{text}");
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    }
    assert_clean(&system).await;
}
