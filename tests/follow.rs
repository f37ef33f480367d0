//! Subscribing to the bus from a command line: readable lines, resuming by sequence number, and closed pipes.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{BRINE, System, TIMEOUT, stderr, stdout, until};

#[tokio::test(flavor = "multi_thread")]
async fn follow_prints_one_readable_line_for_each_event() {
    let mut system = System::new("reactor:\n  - 'my/go': [ROOT/go.sls]\n");
    system.write("go.sls", "a:\n  runner.test.arg: [{args: [1]}]\n");
    system.start_master().await;
    for tag in ["my/go", "my/other"] {
        system.tool_async("salt-run", &["event.send", tag, "{n: 7}"]).await;
    }
    let readable = stdout(&system.tool("salt-run", &["state.event", "my/*", "--follow", "--since", "1", "count=2"]));
    let lines: Vec<Vec<&str>> = readable.lines().map(|line| line.split("  ").collect()).collect();
    assert_eq!(lines.len(), 2, "{readable}");
    assert_eq!((lines[0][2], lines[0][3]), ("my/go", "{\"n\": 7}"), "{readable}");
    let seq: u64 = lines[0][1].parse().unwrap();
    assert!(seq > 0 && lines[0][0].len() == "10:00:00.123".len(), "{readable}");
    let called = ["state.event", "salt/run/*/new", "--since", "1", "--follow", "count=3"];
    let called = stdout(&system.tool("salt-run", &called));
    assert!(called.contains("runner.test.arg 1 by Reactor, who rendered"), "{called}");

    // Salt's format, with each way to specify the starting point.
    let seq = seq.to_string();
    for point in [&["--since", &seq][..], &["--follow", &seq], &[&format!("since={seq}")], &["--since", "1h"]] {
        let words = [&["state.event", "my/go", "count=1"], point].concat();
        let text = stdout(&system.tool("salt-run", &words));
        assert!(text.starts_with("my/go\t{") && text.contains(&format!("\"_seq\": {seq}")), "{point:?}: {text}");
    }
    let pretty = stdout(&system.tool("salt-run", &["state.event", "my/go", "count=1", "--since", "1", "pretty=True"]));
    assert!(pretty.starts_with("my/go\t{\n    \"_"), "{pretty}");
    let wrong = system.tool("salt-run", &["jobs.active", "--follow"]);
    assert!(wrong.status.code() == Some(64) && stderr(&wrong).contains("require state.event"), "{wrong:?}");
    // Live, with colours on request.
    let words = ["state.event", "--follow", "live/*", "count=1", "--force-color"];
    let mut follower = piped(Command::new(BRINE).arg("salt-run").args(["-c", &system.etc()]).args(words));
    let mut line = String::new();
    let mut reader = BufReader::new(follower.stdout.take().unwrap());
    let firing = async {
        loop {
            system.tool_async("salt-run", &["event.send", "live/x"]).await;
        }
    };
    let reading = tokio::task::spawn_blocking(move || {
        reader.read_line(&mut line).unwrap();
        line
    });
    let line = tokio::select! { line = reading => line.unwrap(), () = firing => unreachable!() };
    assert!(line.contains("live/x") && !line.contains('\t'), "{line}");
    assert!(ended(&mut follower).success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_ends_silently_when_its_reader_closes() {
    let mut system = System::new("");
    system.start_master().await;
    let words = ["state.event", "never/*", "--follow"];
    let mut follower = piped(Command::new(BRINE).arg("salt-run").args(["-c", &system.etc()]).args(words));
    // Nothing is printed that could fail: only the closed pipe ends it.
    drop(follower.stdout.take());
    let status = tokio::task::spawn_blocking(move || {
        let status = ended(&mut follower);
        let mut errors = String::new();
        std::io::Read::read_to_string(&mut follower.stderr.take().unwrap(), &mut errors).unwrap();
        (status, errors)
    });
    let (status, errors) = status.await.unwrap();
    assert_eq!((status.code(), errors.as_str()), (Some(141), ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn documented_programs_miss_no_event() {
    let doc = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reactor.md")).unwrap();
    let block = |language: &str| {
        let (_, rest) = doc.split_once(&format!("```{language} title=")).unwrap();
        let (_, rest) = rest.split_once('\n').unwrap();
        rest.split_once("```").unwrap().0.to_owned()
    };
    let python = std::env::var("BRINE_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    for (program, text) in [("sh", block("sh")), (python.as_str(), block("python"))] {
        let mut system = System::new("");
        system.start_master().await;
        let bin = system.path("bin");
        let wrapper = format!("#!/bin/sh\nexec {BRINE} salt-run -c {} \"$@\"\n", system.etc());
        let wrapper = system.write("bin/salt-run", &wrapper);
        std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::create_dir_all(system.path("deploys")).unwrap();
        let text = text.replace("/var/lib/deploys", &system.path("deploys").display().to_string());
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let log = std::fs::File::create(system.path("printed")).unwrap();
        let mut running = Command::new(program)
            .args(["-c", &text])
            .env("PATH", path)
            .env("PYTHONUNBUFFERED", "1")
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let noted = |system: &System| std::fs::read_to_string(system.path("deploys/last_seq")).unwrap_or_default();
        let mut last = String::new();
        for n in 0..4 {
            if n == 2 {
                // Pushed while the master is down, so the subscriber is disconnected.
                system.stop_master();
                system.start_master().await;
            }
            let sent = system.tool_async("salt-run", &["event.send", "deploy/web", &format!("{{n: 10{n}}}")]).await;
            assert_eq!(stdout(&sent).trim(), "True");
            if n != 2 {
                let before = last.clone();
                until("the event is handled", || !noted(&system).is_empty() && noted(&system) != before).await;
                last = noted(&system);
            }
        }
        until("all events are handled", || {
            let printed = std::fs::read_to_string(system.path("printed")).unwrap_or_default();
            let printed = printed + &std::fs::read_to_string(system.path("deploys/log")).unwrap_or_default();
            (0..4).all(|n| printed.contains(&format!("10{n}")))
        })
        .await;
        let group = nix::unistd::Pid::from_raw(-running.id().cast_signed());
        nix::sys::signal::kill(group, nix::sys::signal::Signal::SIGKILL).unwrap();
        running.wait().unwrap();
    }
}

#[test]
fn up_leaves_no_process_when_its_reader_closes() {
    let directory = tempfile::tempdir().unwrap();
    let mut up = piped(Command::new(BRINE).arg("up").current_dir(directory.path()));
    let mut reader = BufReader::new(up.stdout.take().unwrap());
    let mut line = String::new();
    for _ in 0..5 {
        line.clear();
        reader.read_line(&mut line).unwrap();
    }
    assert!(processes(directory.path()) >= 1, "{line}");
    drop(reader);
    let status = ended(&mut up);
    assert_eq!(status.code(), Some(141));
    assert_eq!(processes(directory.path()), 0);
    let run = std::fs::read_dir(directory.path().join(".brine/run")).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = run.filter(|name| name.to_string_lossy().ends_with(".pid")).collect();
    assert!(left.is_empty(), "{left:?}");
    let errors = std::io::read_to_string(up.stderr.take().unwrap()).unwrap();
    assert_eq!(errors, "");
}

/// Returns the number of processes with a path below this directory among their arguments.
fn processes(directory: &std::path::Path) -> usize {
    let directory = directory.display().to_string();
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let arguments = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    arguments.filter(|arguments| String::from_utf8_lossy(arguments).contains(&directory)).count()
}

fn piped(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for the end of a process.
fn ended(child: &mut Child) -> std::process::ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if start.elapsed() > TIMEOUT {
            child.kill().unwrap();
            panic!("the process does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
