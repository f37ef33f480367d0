//! The rosters that query other programs or the network, with the real programs and a real `sshd`.

use std::path::PathBuf;
use std::process::Stdio;

use crate::support::sshd::{Sshd, ssh, ssh_json, user};
use crate::support::{BRINE, System, stderr, stdout, within_limit};

/// Returns the `PATH` with the programs of the tests' Python.
fn path() -> String {
    let python = PathBuf::from(std::env::var("BRINE_TEST_PYTHON").expect("run the tests by tests/run"));
    format!("{}:{}", python.parent().unwrap().display(), std::env::var("PATH").unwrap())
}

/// Starts an `sshd`, and configures `salt-ssh` with its port and its login key for all hosts.
async fn started(settings: impl FnOnce(u16) -> String) -> (System, Sshd) {
    let system = System::new("");
    let sshd = Sshd::start(&system, "sshd", "", "").await;
    let (key, thin) = (sshd.key.display(), system.path("thin"));
    let hosts = format!("roster_defaults: {{priv: {key}, thin_dir: {}}}\n", thin.display());
    system.write("etc/master.d/ssh.conf", &(settings(sshd.port) + &hosts));
    (system, sshd)
}

#[tokio::test(flavor = "multi_thread")]
async fn clustershell_roster_expands_node_sets() {
    let (system, _sshd) = started(|port| format!("ssh_scan_ports: [1, {port}]\nssh_scan_timeout: 5\n")).await;
    // The real `nodeset`, and a group of nodes in its configuration.
    let path = path();
    system.write(
        "clustershell/groups.conf",
        "[Main]\ndefault: local\n[local]\nmap: test $GROUP = both && echo '127.0.0.[1-2]'\nlist: echo both\n",
    );
    let nodes = |words: &[&str]| {
        let mut command = within_limit(BRINE);
        command.args(["salt-ssh", "-c", &system.etc(), "--no-host-keys", "--roster", "clustershell"]).args(words);
        command.env("PATH", &path).env("CLUSTERSHELL_CFGDIR", system.path("clustershell"));
        command.env("XDG_RUNTIME_DIR", system.path(".")).stdin(Stdio::null()).output().unwrap()
    };
    for (tgt, expected) in [
        ("127.0.0.[1-3,6-8/2]", "127.0.0.1 127.0.0.2 127.0.0.3 127.0.0.6 127.0.0.8"),
        ("@both", "127.0.0.1 127.0.0.2"),
        ("@both!127.0.0.2", "127.0.0.1"),
    ] {
        let output = nodes(&["-H", tgt]);
        let listed = stdout(&output);
        let ids: Vec<&str> = listed.lines().map(|line| line.split(':').next().unwrap()).collect();
        assert_eq!(ids.join(" "), expected, "{}", stderr(&output));
    }
    let called = stdout(&nodes(&["--user", &user(), "127.0.0.1", "test.ping"]));
    assert_eq!(called, "127.0.0.1:\n    True\n");
    for (tgt, message) in [("127.0.0.[1-", "the node set '127.0.0.[1-'"), ("@none", "the node set '@none'")] {
        let output = nodes(&[tgt, "test.ping"]);
        assert!(!output.status.success() && stderr(&output).contains(message), "{}", stderr(&output));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ansible_roster_reads_inventories() {
    let system = System::new("");
    let sshd = Sshd::start(&system, "sshd", "", "").await;
    system
        .write("etc/master.d/ssh.conf", &format!("roster_defaults: {{thin_dir: {}}}\n", system.path("thin").display()));
    let inventory = system.write(
        "inventory.yml",
        &format!(
            "web:\n  hosts:\n    web[1:2]: {{}}\n  vars: {{ansible_host: 127.0.0.1, ansible_port: {}, ansible_user: {}, \
             ansible_ssh_private_key_file: {}}}\ndb:\n  hosts:\n    db1: {{}}\n",
            sshd.port,
            user(),
            sshd.key.display()
        ),
    );
    let call = |inventory: &str, words: &[&str]| {
        let mut command = within_limit(BRINE);
        command.args(["salt-ssh", "-c", &system.etc(), "--no-host-keys", "--roster", "ansible"]);
        command.args(["--roster-file", inventory]).args(words);
        // `HOME` is the directory of this test.
        command.env("PATH", path()).env("HOME", system.path(".")).env("XDG_RUNTIME_DIR", system.path("."));
        command.stdin(Stdio::null()).output().unwrap()
    };
    let inventory = inventory.display().to_string();
    let called = call(&inventory, &["--static", "web*", "test.ping"]);
    assert_eq!(stdout(&called), "web1:\n    True\nweb2:\n    True\n", "{}", stderr(&called));
    let listed = stdout(&call(&inventory, &["-H", "*"]));
    let ids: Vec<&str> = listed.lines().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(ids, ["db1", "web1", "web2"]);
    let broken = system.write("broken.yml", "web: [").display().to_string();
    let output = call(&broken, &["*", "test.ping"]);
    assert!(!output.status.success(), "{}", stdout(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn scan_roster_finds_hosts_with_an_open_port() {
    let (system, sshd) = started(|_| String::new()).await;
    let user = user();
    let scan = |ports: &str, target: &str| {
        let roster = ["--roster", "scan", "--scan-ports", ports, "--scan-timeout", "5", "--user", &user];
        ssh(&system, &[&roster[..], &["--static", target, "test.ping"]].concat())
    };
    // The server listens on the first of these addresses only.
    let output = scan(&format!("1,{}", sshd.port), "127.0.0.0/30");
    assert_eq!(stdout(&output), "127.0.0.1:\n    True\n", "{}", stderr(&output));
    let none = scan("1", "127.0.0.1");
    assert!(!none.status.success() && !stdout(&none).contains("True"), "{}{}", stdout(&none), stderr(&none));
}

#[tokio::test(flavor = "multi_thread")]
async fn target_may_be_a_host_outside_of_the_roster() {
    let (system, _sshd) = started(|port| format!("ssh_port: {port}\n")).await;
    let user = user();
    let target = format!("{user}@127.0.0.1");
    assert_eq!(ssh_json(&system, &[&target, "test.ping"]).get("127.0.0.1"), Some(&true.into()));
    assert!(!system.path("etc/roster").exists());
    assert_eq!(ssh_json(&system, &["--update-roster", &target, "test.ping"]).get("127.0.0.1"), Some(&true.into()));
    let roster = std::fs::read_to_string(system.path("etc/roster")).unwrap();
    assert_eq!(roster, format!("'127.0.0.1':\n  host: '127.0.0.1'\n  user: '{user}'\n"));
    // The host is in the roster now, which is not changed again.
    assert_eq!(ssh_json(&system, &["--update-roster", "*", "test.ping"]).get("127.0.0.1"), Some(&true.into()));
    assert_eq!(std::fs::read_to_string(system.path("etc/roster")).unwrap(), roster);
}
