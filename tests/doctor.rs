//! `brine doctor`: installations are broken in many ways; the finding about the cause comes first, and `--fix` mends what
//! it says it does.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use brine_value::Value;

use crate::support::{self, BRINE, System, stderr, stdout, within_limit};

/// Returns the report of the doctor for a directory of configuration, and its exit status.
pub fn report(etc: &Path, words: &[&str]) -> (Value, i32) {
    let output = run(etc, &[&["--json"], words].concat());
    let text = stdout(&output);
    let report = brine_value::json::from_json(&text).unwrap_or_else(|_| panic!("{text}{}", stderr(&output)));
    (report, output.status.code().unwrap())
}

pub fn run(etc: &Path, words: &[&str]) -> Output {
    within_limit(BRINE).args(["doctor", "-c"]).arg(etc).args(words).output().unwrap()
}

/// Returns the fields of the findings.
pub fn field(report: &Value, name: &str) -> Vec<String> {
    let findings = report.get("findings").and_then(Value::as_list).unwrap();
    findings.iter().map(|one| one.get(name).unwrap().to_string()).collect()
}

fn kinds(etc: &Path) -> Vec<String> {
    field(&report(etc, &[]).0, "kind")
}

/// Creates the directories that a configuration of tests names.
pub fn with_roots(system: System) -> System {
    for name in ["srv/salt", "srv/pillar"] {
        fs::create_dir_all(system.path(name)).unwrap();
    }
    system
}

pub fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

pub fn chown(path: &Path, id: u32) {
    std::os::unix::fs::lchown(path, Some(id), Some(id)).unwrap();
}

pub fn signal(pid: u32, name: &str) {
    assert!(std::process::Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}

pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

pub const NOBODY: u32 = 65534;

/// A way to break an installation, and the way back.
struct Case {
    /// The kind of the first finding.
    expected: &'static str,
    /// The end of a relevant path, for messages.
    name: &'static str,
    harm: fn(&System),
    /// `None` if `--fix` has to mend it.
    mend: Option<fn(&System)>,
    /// Whether only root can do this.
    is_for_root: bool,
}

const fn case(expected: &'static str, name: &'static str, harm: fn(&System), mend: fn(&System)) -> Case {
    Case { expected, name, harm, mend: Some(mend), is_for_root: false }
}

const fn fixed(expected: &'static str, name: &'static str, harm: fn(&System)) -> Case {
    Case { expected, name, harm, mend: None, is_for_root: false }
}

const fn fixed_by_root(expected: &'static str, name: &'static str, harm: fn(&System)) -> Case {
    Case { expected, name, harm, mend: None, is_for_root: true }
}

pub fn remove(system: &System, name: &str) {
    fs::remove_file(system.path(name)).unwrap();
}

/// Returns the text of a certificate made by openssl, valid for these days.
fn certificate(system: &System, days: &str) {
    let (key, certificate) = (system.path("pki/api.key"), system.path("pki/api.crt"));
    let mut command = std::process::Command::new("openssl");
    command.args([
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=other.example",
        "-days",
        days,
        "-keyout",
    ]);
    command.arg(key).arg("-out").arg(certificate).stderr(std::process::Stdio::null());
    assert!(command.status().unwrap().success());
}

fn no_certificate(system: &System) {
    remove(system, "pki/api.key");
    remove(system, "pki/api.crt");
}

/// A key that nobody uses, as the accepted key of this id.
fn accept(system: &System, id: &str) {
    let pem = brine_crypt::PrivateKey::generate(2048).unwrap().public().to_pem();
    system.write(&format!("pki/minions/{id}"), &pem);
}

/// What is broken while the master and its minion run.
const OF_MASTER: &[Case] = &[
    fixed("directory-mode", "pki", |system| chmod(&system.path("pki"), 0o755)),
    fixed("directory-mode", "cache", |system| chmod(&system.path("cache"), 0o777)),
    fixed("directory-mode", "pki/minions", |system| chmod(&system.path("pki/minions"), 0o777)),
    fixed("key-mode", "master.pem", |system| chmod(&system.path("pki/master.pem"), 0o644)),
    fixed("key-mode", "root key", |system| chmod(&system.path("cache/.root_key"), 0o440)),
    fixed("key-mode", "master.pub", |system| chmod(&system.path("pki/master.pub"), 0o666)),
    fixed("key-mode", "pki/minions/m1", |system| chmod(&system.path("pki/minions/m1"), 0o664)),
    fixed_by_root("directory-owner", "pki", |system| chown(&system.path("pki"), NOBODY)),
    fixed_by_root("directory-owner", "run", |system| chown(&system.path("run"), NOBODY)),
    fixed_by_root("key-owner", "master.pem", |system| chown(&system.path("pki/master.pem"), NOBODY)),
    fixed_by_root("key-owner", "pki/minions/m1", |system| chown(&system.path("pki/minions/m1"), NOBODY)),
    case(
        "directory-untrusted",
        "the directory above",
        |system| chmod(&system.path(""), 0o777),
        |system| chmod(&system.path(""), 0o700),
    ),
    case(
        "keys-pending",
        "pki/minions_pre",
        |system| _ = fs::copy(system.path("pki/master.pub"), system.path("pki/minions_pre/new")).unwrap(),
        |system| remove(system, "pki/minions_pre/new"),
    ),
    case(
        "key-denied",
        "pki/minions_denied",
        |system| _ = fs::copy(system.path("pki/master.pub"), system.path("pki/minions_denied/m1")).unwrap(),
        |system| remove(system, "pki/minions_denied/m1"),
    ),
    case(
        "keys-doubled",
        "a clone",
        |system| _ = fs::copy(system.path("pki/minions/m1"), system.path("pki/minions/m2")).unwrap(),
        |system| remove(system, "pki/minions/m2"),
    ),
    case(
        "keys-unreadable",
        "a damaged key",
        |system| _ = system.write("pki/minions/bad", "-----BEGIN PUBLIC KEY-----\nAAAA\n"),
        |system| remove(system, "pki/minions/bad"),
    ),
    case("minion-never-connected", "m3", |system| accept(system, "m3"), |system| remove(system, "pki/minions/m3")),
    case(
        "minion-silent",
        "m1",
        |system| signal(system.minion_pid("m1"), "-STOP"),
        |system| signal(system.minion_pid("m1"), "-CONT"),
    ),
    case(
        "daemon-stopped",
        "the master",
        |system| signal(system.master_pid(), "-STOP"),
        |system| signal(system.master_pid(), "-CONT"),
    ),
    case(
        "descriptors-exhausted",
        "RLIMIT_NOFILE",
        |system| limit(system, "20:4096"),
        |system| limit(system, "1024:4096"),
    ),
    case("descriptors-low", "RLIMIT_NOFILE", |system| limit(system, "150:4096"), |system| limit(system, "1024:4096")),
    case(
        "certificate-unreadable",
        "api.crt",
        |system| {
            certificate(system, "300");
            system.write("pki/api.crt", "x");
        },
        no_certificate,
    ),
    case(
        "certificate-unreadable",
        "another key",
        |system| {
            certificate(system, "300");
            fs::copy(system.path("pki/api.key"), system.path("old.key")).unwrap();
            certificate(system, "300");
            fs::copy(system.path("old.key"), system.path("pki/api.key")).unwrap();
        },
        no_certificate,
    ),
    case("certificate-expires", "api.crt", |system| certificate(system, "5"), no_certificate),
    case("certificate-names", "api.crt", |system| certificate(system, "300"), no_certificate),
    case(
        "clock-differs",
        "a key of the future",
        |system| touch(&system.path("pki/master.pem"), "+2 hours"),
        |system| touch(&system.path("pki/master.pem"), "now"),
    ),
    case(
        "store-damaged",
        "a replaced store",
        |system| _ = system.write("cache/brine.redb.damaged", "x"),
        |system| remove(system, "cache/brine.redb.damaged"),
    ),
    case(
        "key-unreadable",
        "master.pub of another key",
        |system| _ = fs::copy(system.path("pki/minions/m1"), system.path("pki/master.pub")).unwrap(),
        |system| _ = fs::copy(system.path("m1/pki/minion_master.pub"), system.path("pki/master.pub")).unwrap(),
    ),
    case("config-warning", "a misspelt option", |system| add(system, "worker_thread: 3\n"), restore),
    case(
        "config-broken",
        "a schedule",
        |system| add(system, "schedule: {a: {function: test.nope, seconds: 5}}\n"),
        restore,
    ),
    case("config-refused", "an option", |system| add(system, "publish_signing_algorithm: none\n"), restore),
    case("config-invalid", "YAML", |system| add(system, "a: [\n"), restore),
    case("config-invalid", "a type", |system| add(system, "worker_threads: many\n"), restore),
    case("user-missing", "user", |system| add(system, "user: no-such-user\n"), restore),
    case("port-closed", "ret_port", |system| add(system, "ret_port: 9\n"), restore),
];

fn limit(system: &System, limit: &str) {
    let pid = system.master_pid().to_string();
    let set = std::process::Command::new("prlimit").args(["--pid", &pid, &format!("--nofile={limit}")]).status();
    assert!(set.unwrap().success());
}

fn touch(path: &Path, date: &str) {
    let set = std::process::Command::new("touch").args(["-d", date]).arg(path).status();
    assert!(set.unwrap().success());
}

pub fn add(system: &System, text: &str) {
    system.write("etc/master.d/broken.conf", text);
}

pub fn restore(system: &System) {
    remove(system, "etc/master.d/broken.conf");
}

#[tokio::test(flavor = "multi_thread")]
async fn causes_come_first_while_a_master_runs() {
    let mut system = with_roots(System::start("").await);
    system.start_minion("m1").await;
    let etc = system.path("etc");
    let healthy = |name: &str| {
        let actual = kinds(&etc);
        assert!(actual.is_empty(), "{name}: {actual:?}: {}", stdout(&run(&etc, &[])));
    };
    healthy("a new master");
    for one in OF_MASTER.iter().filter(|one| is_root() || !one.is_for_root) {
        (one.harm)(&system);
        let (findings, status) = report(&etc, &[]);
        let actual = field(&findings, "kind");
        assert_eq!(actual.first().map(String::as_str), Some(one.expected), "{}: {actual:?}", one.name);
        let is_error = brine_doctor::KINDS
            .iter()
            .any(|kind| kind.name == one.expected && kind.severity == brine_doctor::Severity::Error);
        assert_eq!(status, i32::from(is_error), "{}", one.name);
        if let Some(mend) = one.mend {
            mend(&system);
        } else {
            let (fixed, status) = report(&etc, &["--fix"]);
            assert_eq!(status, 0, "{}: {fixed}", one.name);
            let made = fixed.get("fixed").and_then(Value::as_list).unwrap();
            assert!(!made.is_empty() && made.iter().all(|one| one.get("error") == Some(&Value::Nil)), "{fixed}");
        }
        // A minion that was stopped is asked again.
        let first = kinds(&etc);
        if !first.is_empty() {
            support::until("the harm is mended", || kinds(&etc).is_empty()).await;
        }
    }
    // The minion goes away.
    system.stop_minion("m1");
    support::until("the minion is away", || kinds(&etc).first().is_some_and(|kind| kind == "minion-away")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn causes_come_first_while_a_master_is_down() {
    let mut system = with_roots(System::new("auto_accept: True\n"));
    let etc = system.path("etc");
    let first = || kinds(&etc).first().cloned().unwrap_or_default();
    assert_eq!(kinds(&etc), ["daemon-down"], "a new installation");
    // Another program has a port.
    let held = std::net::TcpListener::bind(("127.0.0.1", system.ret_port)).unwrap();
    assert_eq!(first(), "port-taken");
    let (findings, _) = report(&etc, &[]);
    let why = &field(&findings, "why")[0];
    assert!(why.contains(&format!("process {} of ", std::process::id())), "{why}");
    drop(held);
    system.write("cache", "x");
    assert_eq!(first(), "directory-invalid");
    remove(&system, "cache");

    system.start_master().await;
    system.start_minion("m1").await;
    system.stop_minion("m1");
    system.kill_master();
    let actual = kinds(&etc);
    assert_eq!(actual[..3], ["daemon-down", "pid-stale", "socket-stale"], "{actual:?}");
    let (fixed, _) = report(&etc, &["--fix"]);
    assert_eq!(field(&fixed, "kind"), ["daemon-down"], "{fixed}");
    assert!(!system.path("master.pid").exists());
    assert_eq!(fixed.get("fixed").and_then(Value::as_list).unwrap().len(), 4, "{fixed}");

    let key = fs::read_to_string(system.path("pki/master.pem")).unwrap();
    for text in ["", "x", &key[..key.len() / 2]] {
        chmod(&system.path("pki/master.pem"), 0o600);
        system.write("pki/master.pem", text);
        chmod(&system.path("pki/master.pem"), 0o400);
        assert_eq!(first(), "key-unreadable", "{text}");
    }
    remove(&system, "pki/master.pem");
    assert_eq!(first(), "key-unreadable", "missing");
    system.write("pki/master.pem", &key);
    assert_eq!(first(), "key-mode");
    chmod(&system.path("pki/master.pem"), 0o400);
    let store = fs::read(system.path("cache/brine.redb")).unwrap();
    fs::write(system.path("cache/brine.redb"), "not a store").unwrap();
    assert!(kinds(&etc).contains(&"store-damaged".to_owned()));
    fs::write(system.path("cache/brine.redb"), store).unwrap();
    fs::remove_dir_all(system.path("run")).unwrap();
    assert!(kinds(&etc).contains(&"directory-missing".to_owned()));
    let (fixed, _) = report(&etc, &["--fix"]);
    assert_eq!(field(&fixed, "kind"), ["daemon-down"], "{fixed}");

    // The next start repairs the store, which is good to know.
    system.start_master().await;
    system.kill_master();
    system.start_master().await;
    let log = system.path("var/log/salt/master");
    support::until("the repair is logged", || {
        fs::read_to_string(&log).is_ok_and(|text| text.contains("store repaired"))
            || system.master_log().contains("store repaired")
    })
    .await;
    system.stop_master();
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(kinds(empty.path()), ["not-installed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn causes_come_first_on_a_minion() {
    let mut system = with_roots(System::start("").await);
    system.start_minion("m1").await;
    let etc = system.path("m1/etc");
    let first = || kinds(&etc).first().cloned().unwrap_or_default();
    assert_eq!(kinds(&etc), Vec::<String>::new());
    let add = |text: &str| {
        system.write("m1/etc/minion.d/broken.conf", text);
        let kind = first();
        remove(&system, "m1/etc/minion.d/broken.conf");
        kind
    };
    let closed = support::free_port();
    assert_eq!(add("master: no-such-host.invalid\n"), "name-unresolved");
    assert_eq!(add(&format!("master_port: {closed}\n")), "master-unreachable");
    assert_eq!(add(&format!("publish_port: {closed}\n")), "publish-unreachable");
    assert_eq!(add("beacons: {lod: []}\n"), "config-broken");
    assert_eq!(add("id: a/b\n"), "config-refused");
    chmod(&system.path("m1/pki/minion.pem"), 0o644);
    assert_eq!(first(), "key-mode");
    let (fixed, status) = report(&etc, &["--fix"]);
    assert_eq!(status, 0, "{fixed}");
    // The key of the master was replaced.
    let trusted = fs::read(system.path("m1/pki/minion_master.pub")).unwrap();
    fs::copy(system.path("m1/pki/minion.pub"), system.path("m1/pki/minion_master.pub")).unwrap();
    assert_eq!(first(), "master-key-changed");
    system.write("m1/pki/minion_master.pub", "x");
    assert_eq!(first(), "key-unreadable");
    fs::write(system.path("m1/pki/minion_master.pub"), trusted).unwrap();
    // The master decides about the key.
    let (accepted, pending) = (system.path("pki/minions/m1"), system.path("pki/minions_pre/m1"));
    let rejected = system.path("pki/minions_rejected/m1");
    fs::rename(&accepted, &rejected).unwrap();
    assert_eq!(first(), "minion-key-refused");
    fs::rename(&rejected, &accepted).unwrap();
    // Returns that wait, and a job of another time.
    let waiting = system.write("m1/cache/returns/x", "x");
    touch(&waiting, "-1 hour");
    assert_eq!(first(), "returns-waiting");
    fs::remove_file(waiting).unwrap();
    let jobs = system.path("m1/cache/seen_jobs");
    fs::write(&jobs, "20200101000000000000\n").unwrap();
    assert_eq!(first(), "clock-differs");
    fs::write(&jobs, "").unwrap();
    // All minions answer about themselves.
    chmod(&system.path("m1/pki"), 0o755);
    let answers = system.salt_json(&["*", "brine.doctor"]);
    let findings = answers.get("m1").and_then(Value::as_list).unwrap();
    assert_eq!(findings.len(), 1, "{answers}");
    assert_eq!(findings[0].get("kind"), Some(&"directory-mode".into()));
    chmod(&system.path("m1/pki"), 0o700);
    system.stop_minion("m1");
    assert_eq!(kinds(&etc), ["daemon-down"]);
    system.stop_master();
    // Accepted no more, by a master that asks its operator.
    let mut system = with_roots(System::new(""));
    system.start_master().await;
    system.configure_minion("m1", "");
    system.spawn_minion("m1");
    support::until("the key is pending", || system.path("pki/minions_pre/m1").exists()).await;
    support::until("the minion says so", || kinds(&system.path("m1/etc")) == ["minion-key-pending"]).await;
    drop(pending);
    assert_eq!(kinds(&system.path("etc")), ["keys-pending"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn units_and_reactions_are_examined() {
    let config = "reactor_deadline: 1\nreactor:\n  - 'go': [ROOT/slow.sls]\n";
    let mut system = with_roots(System::new(config));
    system.write("slow.sls", "b:\n  runner.test.sleep:\n    - args: [20]\n");
    let etc = system.path("etc");
    let shim = system.path("shim");
    let show = |active: &str, file: &str, pid: u32| {
        let text = format!(
            "#!/bin/sh\ncat <<'E'\nId=brine-master.service\nLoadState=loaded\nActiveState={active}\nSubState=x\nUnitFileState={file}\n\
             Result=exit-code\nMainPID={pid}\nNRestarts=4\nExecStart={{ argv[]=brine master -c {} ; }}\nE\n",
            etc.display()
        );
        chmod(&system.write("shim/systemctl", &text), 0o755);
        let path = format!("{}:{}", shim.display(), std::env::var("PATH").unwrap());
        let output = within_limit(BRINE).args(["doctor", "--json", "-c"]).arg(&etc).env("PATH", path).output().unwrap();
        let report = brine_value::json::from_json(&stdout(&output)).unwrap();
        (field(&report, "kind"), field(&report, "mend"))
    };
    let (actual, mends) = show("failed", "enabled", 0);
    assert_eq!(actual, ["unit-failed"]);
    assert!(mends[0].contains("systemctl restart brine-master"), "{mends:?}");
    assert_eq!(show("inactive", "disabled", 0).0, ["daemon-down", "unit-disabled"]);
    assert_eq!(show("inactive", "enabled", 0).1, ["systemctl start brine-master"]);
    system.start_master().await;
    let show = |system: &System| kinds(&system.path("etc"));
    assert_eq!(show(&system), Vec::<String>::new());
    let fired = system.tool("salt-run", &["event.send", "go"]);
    assert!(fired.status.success(), "{}", stderr(&fired));
    support::until("there is a dead letter", || show(&system) == ["dead-letters"]).await;
}
