//! Daemons that cannot start say why in one sentence.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::process::Command;

use support::{BRINE, System, stderr};

#[tokio::test(flavor = "multi_thread")]
async fn what_keeps_a_master_from_starting_is_one_sentence() {
    let system = System::new("");
    // A file where a folder must be: also root cannot write there.
    system.write("cache", "not a folder");
    let output = system.tool("salt-master", &[]);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert_eq!(told.trim().lines().count(), 1, "{told}");
    assert!(told.contains(&system.path("cache").display().to_string()), "{told}");

    for (text, expected) in [
        (
            "worker_threads: many\n",
            "master:1: option 'worker_threads': expected a whole number that is not negative, got str",
        ),
        ("a: b: c\n", "master:1: mapping values are not allowed in this context"),
        ("root_dir: ROOT\nreactor: 5\n", "option 'reactor': 'reactor' is a list of `tag pattern: [SLS files]`"),
        (
            "root_dir: ROOT\nmaster_job_cache: mongo\ninterface: 127.0.0.1\npublish_port: 0\nret_port: 0\n",
            "there is no returner 'mongo'",
        ),
    ] {
        let other = System::new("");
        other.write("etc/master", text);
        let output = other.tool("salt-master", &[]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_without_room_is_one_sentence() {
    let system = System::new("");
    // A limit on file sizes is to the master what a full disk is: writes fail.
    let line = format!("trap '' XFSZ; ulimit -f 16; exec {BRINE} salt-master -c {}", system.etc());
    let output = Command::new("sh").args(["-c", &line]).output().unwrap();
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert_eq!(told.trim().lines().count(), 1, "{told}");
    assert!(told.contains(&system.path("cache/brine.redb").display().to_string()), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_master_finds_the_ports_taken() {
    let system = System::start("").await;
    let output = system.tool("salt-master", &[]);
    assert_eq!(output.status.code(), Some(4));
    assert!(
        stderr(&output).contains("The salt master is shutdown. The ports are not available to bind"),
        "{}",
        stderr(&output)
    );
    assert_eq!(support::stdout(&system.tool("salt-run", &["test.arg", "1", "--out=json"])).matches('1').count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn daemons_go_to_the_background_and_tools_miss_a_master() {
    let system = System::new("");
    let output = system.tool("salt", &["*", "test.ping"]);
    assert_eq!(
        (output.status.code(), support::stdout(&output)),
        (Some(0), "The salt master could not be contacted. Is master running?\n".into())
    );
    let output = system.tool("salt-master", &["-d", "--log-file", &system.path("log").display().to_string()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let pid = std::fs::read_to_string(system.path("master.pid")).unwrap();
    assert_eq!(system.tool("salt-run", &["test.arg"]).status.code(), Some(0));
    let pid = nix::unistd::Pid::from_raw(pid.trim().parse().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    support::until("the daemon ends", || !system.path("master.pid").exists()).await;
}

#[test]
fn the_binary_is_the_tool_that_it_is_called_as() {
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new(BRINE).arg("link").arg(folder.path()).output().unwrap();
    assert!(made.status.success(), "{}", stderr(&made));
    for tool in ["salt", "salt-call", "salt-key", "salt-master", "salt-minion", "salt-run"] {
        let output = Command::new(folder.path().join(tool)).arg("--version").output().unwrap();
        assert!(
            support::stdout(&output).starts_with(&format!("{tool} {}", env!("CARGO_PKG_VERSION"))),
            "{tool}: {output:?}"
        );
        let help = Command::new(folder.path().join(tool)).arg("--help").output().unwrap();
        assert!(support::stdout(&help).contains("Examples:"), "{tool}");
        let usage = Command::new(folder.path().join(tool)).arg("--no-such-option").output().unwrap();
        assert_eq!(usage.status.code(), Some(64), "{tool}");
        assert!(
            stderr(&usage).ends_with(&format!("{tool}: error: no such option: --no-such-option\n")),
            "{}",
            stderr(&usage)
        );
    }
}
