//! `brine up` from start to end, as a new user runs it.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use crate::support::{BRINE, within_limit};

#[test]
fn up_once_shows_the_first_highstates_and_leaves_files() {
    let directory = tempfile::tempdir().unwrap();
    let output =
        within_limit(BRINE).args(["up", "--once"]).current_dir(directory.path()).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let mut rest = text.as_str();
    for steps in [
        &["salt/auth  act pend, id web1"][..],
        &["wheel.key.accept match=web1 by Reactor, who rendered reactor.d/auth.sls"],
        // The minion may authenticate with the accepted key before the acceptance is published.
        &["salt/key  act accepted, id web1", "salt/auth  act accept, id web1"],
        &["salt/minion/web1/start  Minion web1 started at"],
        &["state.highstate for web1 by Reactor, who rendered reactor.d/start.sls"],
        &["ret/web1  state.highstate returned, retcode 0, 4 states"],
        &["web1: 4 states, 4 changed"],
        &["brine salt -c .brine/etc '*' test.ping"],
    ] {
        let position =
            |step: &str| rest.find(step).unwrap_or_else(|| panic!("'{step}' is not (in its place) in:\n{text}"));
        let last = steps.iter().map(|step| position(step)).max().unwrap();
        rest = &rest[last..];
    }
    assert!(text.contains("db1: 2 states, 2 changed"), "{text}");
    let site = std::fs::read_to_string(directory.path().join(".brine/minions/web1/home/site.conf")).unwrap();
    assert!(site.contains("server_name web1;"), "{site}");
    assert!(!directory.path().join(".brine/run/master.pid").exists(), "the daemons are stopped");

    // In the second run, the keys are accepted already and nothing changes.
    let output =
        within_limit(BRINE).args(["up", "--once"]).current_dir(directory.path()).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("web1: 4 states, 0 changed"), "{text}");
    let log = std::fs::read_to_string(directory.path().join(".brine/log/master")).unwrap();
    assert!(
        log.contains("master is ready") && !log.contains("store repaired"),
        "the first stop was a clean one: {log}"
    );
}

#[test]
fn a_second_up_in_the_same_directory_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut first = Command::new(BRINE)
        .args(["up", "--minions", "1"])
        .current_dir(directory.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(first.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("1 minions"));
    let second = within_limit(BRINE).args(["up"]).current_dir(directory.path()).output().unwrap();
    let report = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(!second.status.success() && report.contains("a system is already running in"), "{report}");
    assert!(
        lines.any(|line| line.unwrap().contains("Try in another terminal")),
        "the system keeps running after its summary"
    );
    let pid = nix::unistd::Pid::from_raw(first.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    assert!(first.wait().unwrap().success());
}

#[test]
fn up_with_web_serves_the_api_with_a_login_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let mut up = Command::new(BRINE)
        .args(["up", "--web", "--minions", "1"])
        .current_dir(directory.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(up.stdout.take().unwrap()).lines().map(Result::unwrap);
    let after = |line: &str, word: &str| -> String {
        let rest = line.split_once(word).unwrap_or_else(|| panic!("no '{word}' in {line}")).1;
        rest.split([' ', ',']).next().unwrap().to_owned()
    };
    let address = after(&lines.find(|line| line.starts_with("REST API: ")).unwrap(), "REST API: ");
    let password = after(&lines.next().unwrap(), "password ");
    let fields = format!("username=admin&password={password}&eauth=sharedsecret");
    let login = within_limit("curl").args(["-ksSf", "-d", &fields, &format!("{address}login")]).output().unwrap();
    assert!(login.status.success(), "{login:?}");
    assert!(String::from_utf8_lossy(&login.stdout).contains("\"user\": \"admin\""), "{login:?}");
    // It contains the password.
    let mode = std::fs::metadata(directory.path().join(".brine/etc/master")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(up.id().cast_signed()), nix::sys::signal::Signal::SIGTERM)
        .unwrap();
    // Keeps reading, so that a full pipe does not block the end.
    lines.for_each(drop);
    up.wait().unwrap();
    assert!(!directory.path().join(".brine/run/api.pid").exists(), "the API is stopped");
}
