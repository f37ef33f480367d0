//! Daemons give up the privileges that they do not need: capabilities, set-user-ID programs, system calls.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use brine_value::Value;
use nix::unistd::geteuid;

use crate::support::api::Api;
use crate::support::{System, syndic};

const API: &str = "api_pidfile: ROOT/api.pid
external_auth: {file: {'^filename': ROOT/users, fred: ['.*']}}
netapi_enable_clients: [local]
rest_cherrypy: {port: PORT, disable_ssl: True}
";

/// The bits of capabilities, as in `linux/capability.h`.
const CHOWN: u64 = 1 << 0;
const DAC_OVERRIDE: u64 = 1 << 1;
const DAC_READ_SEARCH: u64 = 1 << 2;
const FOWNER: u64 = 1 << 3;
const FSETID: u64 = 1 << 4;
const KILL: u64 = 1 << 5;
const SETGID: u64 = 1 << 6;
const SETUID: u64 = 1 << 7;
const NET_BIND_SERVICE: u64 = 1 << 10;
const NET_RAW: u64 = 1 << 13;
const AUDIT_WRITE: u64 = 1 << 29;

const MASTER: u64 = CHOWN
    | DAC_OVERRIDE
    | DAC_READ_SEARCH
    | FOWNER
    | FSETID
    | KILL
    | SETGID
    | SETUID
    | NET_BIND_SERVICE
    | NET_RAW
    | AUDIT_WRITE;
const PAM: u64 = CHOWN | DAC_OVERRIDE | DAC_READ_SEARCH | FOWNER | SETGID | SETUID | NET_BIND_SERVICE | AUDIT_WRITE;
const API_KEEPS: u64 = DAC_READ_SEARCH | NET_BIND_SERVICE;
const SYNDIC: u64 = DAC_OVERRIDE | DAC_READ_SEARCH;

/// The fields of a `/proc/PID/status` file.
struct Status(HashMap<String, String>);

impl Status {
    fn parse(text: &str) -> Self {
        let pairs = text.lines().filter_map(|line| line.split_once(':'));
        Status(pairs.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect())
    }

    fn of(pid: u32) -> Vec<Self> {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        let paths = tasks.map(|task| task.unwrap().path().join("status"));
        paths.filter_map(|path| std::fs::read_to_string(path).ok()).map(|text| Status::parse(&text)).collect()
    }

    fn capabilities(&self, set: &str) -> u64 {
        u64::from_str_radix(&self.0[set], 16).unwrap()
    }

    /// Asserts that a process has these capabilities at most, in each set.
    fn assert_keeps(&self, most: u64, what: &str) {
        self.assert_bounded(most, most, what);
    }

    /// Asserts that a process has these capabilities at most, and these in its bounding set.
    fn assert_bounded(&self, most: u64, bounding: u64, what: &str) {
        assert_eq!((self.0["NoNewPrivs"].as_str(), self.0["Seccomp"].as_str()), ("1", "2"), "{what}");
        assert_eq!(self.capabilities("CapBnd") & !bounding, 0, "{what} CapBnd: {}", self.0["CapBnd"]);
        for set in ["CapPrm", "CapEff", "CapInh", "CapAmb"] {
            assert_eq!(self.capabilities(set) & !most, 0, "{what} {set}: {}", self.0[set]);
        }
    }
}

fn pid_in(path: &Path) -> u32 {
    std::fs::read_to_string(path).unwrap().trim().parse().unwrap()
}

/// Whether the tests run as root, with capabilities that can be dropped.
fn is_root() -> bool {
    assert!(geteuid().is_root() || std::env::var_os("BRINE_CI").is_none(), "the tests of sandboxes run as root");
    geteuid().is_root()
}

#[tokio::test(flavor = "multi_thread")]
async fn daemons_of_root_keep_only_what_they_need() {
    if !is_root() {
        return;
    }
    let api = Api::start(API, &[("users", "fred:pw\n")], &["web1"]).await;
    for (pid, most, what) in
        [(pid_in(&api.system.path("master.pid")), MASTER, "master"), (api.child.id(), API_KEEPS, "API")]
    {
        for task in Status::of(pid) {
            task.assert_keeps(most, what);
            assert_ne!(task.capabilities("CapEff"), 0, "{what}");
        }
    }
    // A job of a minion may do anything.
    for task in Status::of(api.system.minion_pid("web1")) {
        assert_eq!((task.0["NoNewPrivs"].as_str(), task.0["Seccomp"].as_str()), ("0", "0"));
    }
    let token = api.login("fred", "pw");
    assert_eq!(api.get("/minions/web1", &token).status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_syndic_keeps_access_to_files_alone() {
    if !is_root() {
        return;
    }
    let mut above = System::new("order_masters: True\nauto_accept: True\n");
    above.start_master().await;
    let mut below = syndic::below(&[above.ret_port], "");
    below.start_master().await;
    let _syndic = syndic::Syndic::start(&below, "below").await;
    for task in Status::of(pid_in(&below.path("syndic.pid"))) {
        task.assert_keeps(SYNDIC, "syndic");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_of_the_master_inherit_its_limits() {
    if !is_root() {
        return;
    }
    let mut system = System::new("ext_pillar: [{cmd_yaml: 'ROOT/report'}]\nauto_accept: True\n");
    let script = "#!/bin/sh\ncp /proc/self/status \"$(dirname \"$0\")/status\"\nunshare -m true 2>/dev/null && echo 'mounts: allowed'\nmount -t tmpfs none \"$(dirname \"$0\")/mnt\" 2>/dev/null && echo 'mount: allowed'\necho 'ran: true'\n";
    system.write("report", script);
    std::fs::create_dir(system.path("mnt")).unwrap();
    std::fs::set_permissions(system.path("report"), std::fs::Permissions::from_mode(0o755)).unwrap();
    system.start_master().await;
    system.start_minion("web1").await;
    // The program reports by its keys what it could do: values of pillars are masked.
    let answer = system.salt_json(&["web1", "pillar.ls"]);
    let keys: Vec<String> =
        answer.get("web1").and_then(Value::as_list).unwrap_or_default().iter().map(ToString::to_string).collect();
    assert_eq!(keys, ["ran"], "{answer}");
    let status = Status::parse(&std::fs::read_to_string(system.path("status")).unwrap());
    status.assert_keeps(MASTER, "program");
}

#[tokio::test(flavor = "multi_thread")]
async fn daemons_of_other_users_have_no_capabilities_at_all() {
    if !is_root() {
        return;
    }
    let port = crate::support::free_port();
    let mut system =
        System::new(&format!("user: nobody\nauto_accept: True\n{}", API.replace("PORT", &port.to_string())));
    std::fs::set_permissions(system.path(""), std::fs::Permissions::from_mode(0o755)).unwrap();
    system.write("users", "fred:pw\n");
    system.start_master().await;
    let child = crate::support::api::serve(&system).await;
    for (pid, bounding, what) in
        [(pid_in(&system.path("master.pid")), MASTER, "master"), (child.id(), API_KEEPS, "API")]
    {
        for task in Status::of(pid) {
            task.assert_keeps(bounding, what);
            assert_eq!([task.capabilities("CapEff"), task.capabilities("CapPrm")], [0, 0], "{what}");
        }
    }
    drop(Api { system, child, url: String::new() });
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sandbox_can_be_switched_off_and_a_minion_can_enter_it() {
    if !is_root() {
        return;
    }
    let mut system = System::new("sandbox: False\nauto_accept: True\n");
    system.start_master().await;
    system.configure_minion("web1", "sandbox: True\n");
    let mut events = system.events("salt/minion/").await;
    system.spawn_minion("web1");
    events.until("salt/minion/web1/start").await;
    let own = Status::parse(&std::fs::read_to_string("/proc/self/status").unwrap());
    for task in Status::of(pid_in(&system.path("master.pid"))) {
        assert_eq!((task.0["NoNewPrivs"].as_str(), task.0["Seccomp"].as_str()), ("0", "0"));
        assert_eq!(task.0["CapBnd"], own.0["CapBnd"]);
    }
    for task in Status::of(system.minion_pid("web1")) {
        task.assert_keeps(MASTER, "minion");
    }
}

#[cfg(feature = "pam")]
#[tokio::test(flavor = "multi_thread")]
async fn modules_of_pam_run_in_a_sandbox() {
    use crate::support::pam;

    if !pam::is_possible() {
        return;
    }
    for (option, is_sandboxed) in [("", true), ("sandbox: False\n", false)] {
        let system = System::new(&format!("{option}external_auth: {{pam: {{good: ['@jobs']}}}}\n"));
        pam::write_accounts(&system);
        // The program of a module inherits what the helper has.
        let script = format!("#!/bin/sh\ncp /proc/self/status {}\n", system.path("status").display());
        system.write("seen", &script);
        std::fs::set_permissions(system.path("seen"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let service = format!(
            "auth required pam_unix.so nodelay\nauth optional pam_exec.so quiet {}\naccount required pam_unix.so\n",
            system.path("seen").display()
        );
        system.write("host/pam.d/login", &service);
        let _master = pam::start_master(&system).await;
        let words = ["-a", "pam", "--username", "good", "--password", "pw", "jobs.active", "--out=json"];
        let output = system.tool("salt-run", &words);
        assert_eq!(crate::support::stdout(&output).trim(), "{}", "{}", system.master_log());
        let status = Status::parse(&std::fs::read_to_string(system.path("status")).unwrap());
        if is_sandboxed {
            // Only the master could reduce the bounding set, which no_new_privs makes irrelevant.
            status.assert_bounded(PAM, MASTER, "brine-pam");
        } else {
            assert_eq!((status.0["NoNewPrivs"].as_str(), status.0["Seccomp"].as_str()), ("0", "0"));
        }
    }
}
