//! Tests of child processes.

use super::*;

fn run(program: &Program) -> Result<Output, ProcessError> {
    program.run(&Children::default(), &CancellationToken::new())
}

fn shell(command: &str) -> Program {
    Program { command: command.into(), shell: Some("/bin/sh".into()), ..Program::default() }
}

#[test]
fn commands_run_with_and_without_a_shell() {
    let output = run(&shell("echo out; echo err >&2; exit 3")).unwrap();
    assert_eq!((output.retcode, output.stdout.as_str(), output.stderr.as_str()), (3, "out", "err"));
    let plain = Program { command: "echo 'a | b'".into(), ..Program::default() };
    assert_eq!(run(&plain).unwrap().stdout, "a | b");
    let with = Program {
        stdin: Some("hello".into()),
        cwd: Some("/".into()),
        env: vec![("X".into(), "y".into())],
        ..shell("cat; pwd; echo $X")
    };
    assert_eq!(run(&with).unwrap().stdout, "hello/\ny");
}

#[test]
fn commands_that_cannot_run_are_errors_with_the_cause() {
    for (program, message) in [
        (
            Program { command: "/no/such/program".into(), ..Program::default() },
            "Unable to run command '['/no/such/program']' with the context '{'cwd': '",
        ),
        (
            Program { command: "/no/such/program".into(), quiet: true, ..Program::default() },
            "Unable to run command 'REDACTED' with the context '{'cwd': '",
        ),
        (
            Program { cwd: Some("/no/such".into()), ..shell("true") },
            "Specified cwd '/no/such' either not absolute or does not exist",
        ),
        (Program { runas: Some("nobody_here".into()), ..shell("true") }, "User 'nobody_here' is not available"),
        (Program::default(), "the command is empty"),
    ] {
        let error = run(&program).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

#[test]
fn timeout_and_cancellation_kill_the_children_too() {
    let slow = Program { timeout: Some(Duration::from_millis(100)), ..shell("sleep 600 & echo $!; wait") };
    let output = run(&slow).unwrap();
    assert!(output.timed_out);
    assert_eq!(output.retcode, -9);
    let grandchild: i32 = output.stdout.parse().unwrap();
    let state = || std::fs::read_to_string(format!("/proc/{grandchild}/status")).unwrap_or_default();
    let gone = |status: String| status.is_empty() || status.contains("Z (zombie)") || status.contains("X (dead)");
    let start = Instant::now();
    while !gone(state()) {
        assert!(start.elapsed() < Duration::from_secs(20), "the grandchild lives on");
        std::thread::yield_now();
    }

    let (children, cancel) = (Children::default(), CancellationToken::new());
    cancel.cancel();
    assert_eq!(shell("sleep 600").run(&children, &cancel).unwrap().retcode, -9);
    assert!(children.groups.lock().is_empty());
}

#[test]
fn a_cancelled_job_ends_its_commands_and_waits() {
    let (children, cancel) = (Arc::new(Children::default()), CancellationToken::new());
    let running = {
        let (children, cancel) = (Arc::clone(&children), cancel.clone());
        std::thread::spawn(move || shell("echo started; sleep 600").run(&children, &cancel))
    };
    let waiting = {
        let cancel = cancel.clone();
        std::thread::spawn(move || cancelled_within(&cancel, Duration::from_secs(600)))
    };
    while children.groups.lock().is_empty() {
        std::thread::yield_now();
    }
    cancel.cancel();
    assert_eq!(running.join().unwrap().unwrap().retcode, -9);
    assert!(waiting.join().unwrap());
    assert!(!cancelled_within(&CancellationToken::new(), Duration::from_millis(1)));
}

#[test]
fn a_signal_reaches_the_processes_of_a_job() {
    let (children, cancel) = (Arc::new(Children::default()), CancellationToken::new());
    let running = {
        let (children, cancel) = (Arc::clone(&children), cancel.clone());
        std::thread::spawn(move || shell("sleep 600").run(&children, &cancel))
    };
    while children.signal(Signal::SIGTERM) == 0 {
        std::thread::yield_now();
    }
    assert_eq!(running.join().unwrap().unwrap().retcode, -15);
}

#[test]
fn output_of_background_processes_is_awaited() {
    assert_eq!(run(&shell("(sleep 0.1; echo late) & echo early")).unwrap().stdout, "early\nlate");
}

#[test]
fn merged_output_keeps_its_order() {
    let merged = Program { merge: true, ..shell("echo a; echo b >&2; echo c") };
    let output = run(&merged).unwrap();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("a\nb\nc", ""));
}

#[test]
fn umask_user_and_directory_are_set() {
    let masked = Program { umask: Some(0o027), ..shell("umask") };
    assert_eq!(run(&masked).unwrap().stdout, "0027");
    let plain =
        Program { command: "sh -c 'umask; echo \"$1\"' x 'a  b'".into(), umask: Some(0o077), ..Program::default() };
    assert_eq!(run(&plain).unwrap().stdout, "0077\na  b");
    let other = Program { runas: Some("nobody".into()), ..shell("id -un; pwd") };
    assert_eq!(run(&other).unwrap().stdout, "nobody\n/");
    let home = own_home().unwrap();
    assert_eq!(run(&shell("pwd")).unwrap().stdout, home.display().to_string());
}

#[test]
fn a_command_continues_when_its_output_is_truncated() {
    let program =
        Program { output_limit: Some(1000), ..shell("head -c 5000000 /dev/zero | tr '\\0' x; echo done >&2") };
    let output = run(&program).unwrap();
    assert_eq!((output.retcode, output.stderr.as_str()), (0, "done"));
    assert_eq!(output.stdout.len(), 1000 + "\n[output cut after 1000 bytes: 4999000 more bytes were dropped]".len());
    assert!(output.stdout.ends_with("[output cut after 1000 bytes: 4999000 more bytes were dropped]"));
}

/// Until the leader of a group is reaped, its number belongs to nobody else.
#[test]
fn the_leader_of_a_group_is_not_reaped_while_it_may_be_signalled() {
    let (children, cancel) = (Arc::new(Children::default()), CancellationToken::new());
    let running = {
        let (children, cancel) = (Arc::clone(&children), cancel.clone());
        // A process that has left the group keeps the output open after the end of the leader.
        std::thread::spawn(move || shell("setsid sleep 600 & echo $!").run(&children, &cancel))
    };
    let leader = loop {
        if let Some(pid) = children.groups.lock().keys().next() {
            break *pid;
        }
        std::thread::yield_now();
    };
    let state = || {
        let status = std::fs::read_to_string(format!("/proc/{leader}/stat")).unwrap_or_default();
        status.rsplit(") ").next().and_then(|rest| rest.chars().next())
    };
    while state().is_some_and(|state| state != 'Z') {
        std::thread::yield_now();
    }
    assert_eq!(state(), Some('Z'));
    cancel.cancel();
    let output = running.join().unwrap().unwrap();
    assert_eq!((output.retcode, output.timed_out), (0, false));
    assert!(children.groups.lock().is_empty() && state().is_none());
    let orphan = nix::unistd::Pid::from_raw(output.stdout.parse().unwrap());
    nix::sys::signal::kill(orphan, Signal::SIGKILL).unwrap();
}
