//! Upgrades of minions' programs: the real program, copied to a directory of each minion, and bad ones.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use brine_value::{Map, Value};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::proxy::{Mode, Proxy};
use crate::support::{BRINE, Events, System, stderr, stdout, until};

/// The path of the program on the file server.
const SOURCE: &str = "srv/salt/brine/test/brine";
/// Options of a minion that reads the program itself: a build for tests, which is large, needs a minute to fetch one.
const LOCAL: &str = "file_client: local\nfile_roots: {base: ['ROOT/srv/salt']}\n";
/// The arguments of an upgrade to it: the tests have one version alone.
const UPGRADE: [&str; 3] = ["brine.upgrade", "source=salt://brine/test/brine", "force=True"];

/// A minion with a program of its own. It may be restarted by the watcher, so it is found by its PID file.
struct Minion {
    id: String,
    root: PathBuf,
    child: Child,
}

impl Minion {
    /// Places the program and starts it, without waiting for it.
    fn spawn(system: &System, id: &str) -> Self {
        let root = system.path("");
        let program = root.join(id).join("bin/brine");
        if !program.exists() {
            std::fs::create_dir_all(program.parent().unwrap()).unwrap();
            std::fs::copy(stripped(system), &program).unwrap();
        }
        let child = Self::start(&root, id);
        Minion { id: id.to_owned(), root, child }
    }

    /// Starts the program again, after it has ended.
    fn restart(&mut self) {
        _ = self.child.try_wait();
        self.child = Self::start(&self.root, &self.id);
    }

    fn start(root: &Path, id: &str) -> Child {
        let log = std::fs::File::options().create(true).append(true).open(root.join(format!("{id}.log"))).unwrap();
        Command::new(root.join(id).join("bin/brine"))
            .args(["salt-minion", "-c", &root.join(id).join("etc").display().to_string(), "-l", "info"])
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap()
    }

    fn program(&self) -> PathBuf {
        self.root.join(&self.id).join("bin/brine")
    }

    /// The names in the directory of the program.
    fn names(&self) -> Vec<String> {
        let entries = self.program().parent().unwrap().read_dir().unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn pid(&self) -> Option<i32> {
        std::fs::read_to_string(self.root.join(format!("{}.pid", self.id))).ok()?.trim().parse().ok()
    }

    /// The program that runs.
    fn running(&self) -> PathBuf {
        std::fs::read_link(format!("/proc/{}/exe", self.pid().unwrap())).unwrap()
    }

    /// The state on disk.
    fn state(&self) -> Value {
        let text = std::fs::read_to_string(self.root.join(&self.id).join("cache/upgrade/state")).unwrap_or_default();
        brine_value::json::from_json(&text).unwrap_or_default()
    }

    fn phase(&self) -> String {
        self.state().get("phase").map(ToString::to_string).unwrap_or_default()
    }

    fn kill(&mut self) {
        kill(Pid::from_raw(self.pid().unwrap()), Signal::SIGKILL).unwrap();
        _ = self.child.wait();
    }
}

impl Drop for Minion {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.root.join(format!("{}.log", self.id))).unwrap_or_default();
            eprintln!("--- {}\n{log}\n{}", self.id, self.state());
        }
        _ = self.child.kill();
        _ = self.child.wait();
        if let Some(pid) = self.pid() {
            _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

/// Returns the program without debug information, which makes copies quick.
fn stripped(system: &System) -> PathBuf {
    let path = system.path("stripped");
    if !path.exists() {
        let done = Command::new("strip").arg("-o").arg(&path).arg(BRINE).status();
        if !done.is_ok_and(|status| status.success()) {
            std::fs::copy(BRINE, &path).unwrap();
        }
    }
    path
}

/// Publishes a file as the new program, with its checksum.
fn publish(system: &System, content: &[u8]) {
    let path = system.path(SOURCE);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, content).unwrap();
    let sum = Command::new("sha256sum").arg("brine").current_dir(path.parent().unwrap()).output().unwrap();
    std::fs::write(path.with_extension("sha256"), sum.stdout).unwrap();
}

/// Publishes another build of the real program.
fn publish_good(system: &System, build: &str) {
    publish(system, &[&std::fs::read(stripped(system)).unwrap()[..], build.as_bytes()].concat());
}

/// Publishes a program that prints this with `--version`, and otherwise runs these statements of C.
fn publish_c(system: &System, version: &str, body: &str) {
    let source = format!(
        "#include <stdio.h>\n#include <string.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
         int main(int argc, char **argv) {{\n\
         if (argc > 1 && !strcmp(argv[1], \"--version\")) {{ puts(\"{version}\"); return 0; }}\n{body}\n}}\n"
    );
    let (code, out) = (system.write("program.c", &source), system.path("program"));
    let built = Command::new("cc").arg("-o").arg(&out).arg(&code).output().unwrap();
    assert!(built.status.success(), "{}", stderr(&built));
    publish(system, &std::fs::read(out).unwrap());
}

/// Returns the outcome in the next start event of a minion that has one.
async fn outcome(events: &mut Events, id: &str) -> Map {
    loop {
        let (_, data) = events.until(&format!("salt/minion/{id}/start")).await;
        if let Some(Value::Map(outcome)) = data.get("upgrade") {
            return outcome.clone();
        }
    }
}

fn text(map: &Map, name: &str) -> String {
    map.get(name).map(ToString::to_string).unwrap_or_default()
}

/// Starts a master and a minion with a program of its own.
async fn start(options: &str) -> (System, Minion, Events) {
    let system = System::start("").await;
    system.configure_minion("m1", options);
    let mut events = system.events("salt/minion/").await;
    let minion = Minion::spawn(&system, "m1");
    events.until("salt/minion/m1/start").await;
    (system, minion, events)
}

/// Calls `brine.upgrade` and returns its result.
fn upgrade(system: &System, more: &[&str]) -> Value {
    let words: Vec<&str> = [&["-t", "60", "m1"], &UPGRADE[..], more].concat();
    system.salt_json(&words).get("m1").cloned().unwrap_or_default()
}

fn staged(value: &Value) {
    assert_eq!(value.get("result").and_then(Value::as_str), Some("staged"), "{value}");
}

fn sha256(path: &Path) -> String {
    let output = Command::new("sha256sum").arg(path).output().unwrap();
    stdout(&output).split(' ').next().unwrap_or_default().to_owned()
}

fn pings(system: &System) {
    assert_eq!(system.salt_json(&["-t", "30", "m1", "test.ping"]).to_string(), "{'m1': True}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_upgrade_keeps_the_process_and_can_be_reversed() {
    let (system, minion, mut events) = start(LOCAL).await;
    let (old, pid) = (sha256(&minion.program()), minion.pid());
    publish_good(&system, "build 2");
    // The same version is not installed by mistake.
    let words = ["m1", "brine.upgrade", "source=salt://brine/test/brine"];
    let refused = system.salt_json(&words).to_string();
    assert!(refused.contains("force=True"), "{refused}");
    assert_eq!(minion.names(), ["brine"]);
    staged(&upgrade(&system, &[]));
    let told = outcome(&mut events, "m1").await;
    assert_eq!((text(&told, "result"), text(&told, "reason")), ("done".into(), String::new()), "{told:?}");
    assert_eq!(minion.names(), ["brine", "brine.previous"]);
    assert_eq!(sha256(&minion.program()), sha256(&system.path(SOURCE)));
    assert_eq!(sha256(&minion.program().with_extension("previous")), old);
    assert_eq!((minion.pid(), minion.running()), (pid, minion.program()));
    pings(&system);
    // Once it runs, there is nothing to do; and a start event tells an outcome once.
    let again = upgrade(&system, &[]);
    assert_eq!(again.get("result").and_then(Value::as_str), Some("unchanged"), "{again}");
    let version = system.salt_json(&["m1", "brine.version"]).to_string();
    assert!(version.contains("'result': 'done'"), "{version}");
    staged(system.salt_json(&["-t", "60", "m1", "brine.rollback"]).get("m1").unwrap());
    let told = outcome(&mut events, "m1").await;
    assert_eq!(text(&told, "result"), "done", "{told:?}");
    assert_eq!((sha256(&minion.program()), minion.pid()), (old, pid));
    pings(&system);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_ends_at_its_start_is_rolled_back() {
    let (system, minion, mut events) = start("").await;
    let old = sha256(&minion.program());
    publish_c(&system, "brine 99.0.0", "return 3;");
    staged(&upgrade(&system, &[]));
    let told = outcome(&mut events, "m1").await;
    assert_eq!(text(&told, "result"), "rolled_back", "{told:?}");
    assert!(text(&told, "reason").contains("the new program ended"), "{told:?}");
    assert_eq!(told.get("to").and_then(|to| to.get("version")).and_then(Value::as_str), Some("99.0.0"));
    assert_eq!((minion.names(), sha256(&minion.program())), (vec!["brine".to_owned()], old));
    assert_eq!(minion.running(), minion.program());
    pings(&system);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_hangs_is_rolled_back() {
    let (system, minion, mut events) = start(&format!("{LOCAL}upgrade_health_timeout: 1\n")).await;
    publish_c(&system, "brine 99.0.0", "for (;;) pause();");
    staged(&upgrade(&system, &[]));
    let told = outcome(&mut events, "m1").await;
    assert_eq!(text(&told, "result"), "rolled_back", "{told:?}");
    assert!(text(&told, "reason").contains("did not tell within 1s"), "{told:?}");
    assert_eq!(minion.names(), ["brine"]);
    pings(&system);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_cannot_connect_goes_back_by_itself() {
    let system = System::start("").await;
    let proxy = Proxy::start(system.ret_port).await;
    let options = format!("upgrade_health_timeout: 5\nmaster_port: {}\n", proxy.port);
    let path = system.configure_minion("m1", LOCAL).join("minion");
    let config = std::fs::read_to_string(&path).unwrap();
    let config = config.lines().filter(|line| !line.starts_with("master_port")).collect::<Vec<_>>().join("\n");
    std::fs::write(&path, format!("{config}\n{options}")).unwrap();
    let mut events = system.events("salt/minion/").await;
    let minion = Minion::spawn(&system, "m1");
    events.until("salt/minion/m1/start").await;
    let (old, pid) = (sha256(&minion.program()), minion.pid());
    publish_good(&system, "build 2");
    staged(&upgrade(&system, &[]));
    // From the change on, the master cannot be reached.
    until("the new program is tried", || minion.phase() == "trial").await;
    proxy.set(Mode::Refuse);
    proxy.cut();
    until("the old program is back", || minion.phase() == "rolled_back").await;
    proxy.set(Mode::Pass);
    let told = outcome(&mut events, "m1").await;
    assert_eq!(text(&told, "result"), "rolled_back", "{told:?}");
    assert!(text(&told, "reason").contains("upgrade_health_timeout"), "{told:?}");
    assert_eq!((sha256(&minion.program()), minion.pid(), minion.names()), (old, pid, vec!["brine".to_owned()]));
    assert_eq!(minion.running(), minion.program());
    pings(&system);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_not_right_changes_nothing() {
    let (system, minion, _events) = start("upgrade_pubkey: ROOT/key.pub\n").await;
    let (pid, root) = (minion.pid(), system.path("").display().to_string());
    let local = |words: &[&str]| {
        let output = System::command("salt-call", &[&["-c", &format!("{root}/m1/etc"), "--local"], words].concat());
        assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
        stdout(&output)
    };
    for name in ["key", "other"] {
        local(&["x509.create_private_key", "algo=ed25519", &format!("path={root}/{name}.pem")]);
    }
    let public = local(&["--out=newline_values_only", "x509.get_public_key", &format!("{root}/key.pem")]);
    system.write("key.pub", public.trim());
    let sign = |name: &str| {
        let sums = system.path(&format!("{SOURCE}.sha256")).display().to_string();
        let key = format!("{root}/{name}.pem");
        local(&["asymmetric.sign", &key, &format!("filename={sums}"), &format!("path={sums}.sig")]);
    };
    let refused = |expected: &str, more: &[&str]| {
        let said = upgrade(&system, more).to_string();
        assert!(said.contains(expected), "expected {expected}: {said}");
        assert_eq!(
            (minion.names(), minion.pid(), minion.phase()),
            (vec!["brine".to_owned()], pid, String::new()),
            "{expected}"
        );
        pings(&system);
    };
    refused("does not exist", &[]);
    publish_good(&system, "build 2");
    refused("brine.sha256.sig does not exist", &[]);
    sign("other");
    refused("the signature is invalid", &[]);
    sign("key");
    // Signed, but not this file.
    std::fs::write(system.path(SOURCE), "something else").unwrap();
    refused("expected SHA-256", &[]);
    publish(&system, b"#!/bin/sh\necho brine 99.0.0\n");
    sign("key");
    refused("expected an ELF executable", &[]);
    let mut foreign = std::fs::read(stripped(&system)).unwrap();
    foreign.truncate(100_000);
    foreign[18] = 8;
    publish(&system, &foreign);
    sign("key");
    refused("another architecture", &[]);
    for (version, body, more, expected) in [
        ("salt 3008", "return 0;", &[][..], "printed no version of brine"),
        ("brine 0.0.1", "return 0;", &[], "allow_downgrade=True"),
        ("brine 99.0.0", "return 0;", &["version=98.0.0"], "expected 98.0.0"),
    ] {
        publish_c(&system, version, body);
        sign("key");
        refused(expected, more);
    }
    let http = system.salt_json(&["m1", "brine.upgrade", "source=https://127.0.0.1/brine"]).to_string();
    assert!(http.contains("expected a file of the master"), "{http}");
    let esky = system.salt_json(&["m1", "saltutil.update"]).to_string();
    assert!(esky.contains("brine.upgrade"), "{esky}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_leaves_nothing() {
    let system = System::start("").await;
    system.configure_minion("m1", LOCAL);
    let directory = system.path("m1/bin");
    std::fs::create_dir_all(&directory).unwrap();
    let program = stripped(&system);
    let size = program.metadata().unwrap().len() * 3 / 2;
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", &format!("size={size},mode=0755"), "tmpfs"])
        .arg(&directory)
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        eprintln!("skipped: this environment allows no mounts");
        return;
    }
    let _mount = Unmount(directory);
    let mut events = system.events("salt/minion/").await;
    let minion = Minion::spawn(&system, "m1");
    events.until("salt/minion/m1/start").await;
    publish_good(&system, "build 2");
    let said = upgrade(&system, &[]).to_string();
    assert!(said.contains("No space left on device"), "{said}");
    assert_eq!((minion.names(), minion.phase()), (vec!["brine".to_owned()], String::new()));
    pings(&system);
}

struct Unmount(PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        // The minion's program is on it.
        _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_upgrade_is_refused_and_the_change_waits_for_jobs() {
    let (system, minion, mut events) = start(LOCAL).await;
    publish_good(&system, "build 2");
    let slow = system.tool("salt", &["--async", "m1", "test.sleep", "8"]);
    assert!(slow.status.success(), "{}", stderr(&slow));
    staged(&upgrade(&system, &[]));
    let second = upgrade(&system, &[]).to_string();
    assert!(second.contains("an upgrade is under way"), "{second}");
    assert_eq!(minion.phase(), "staged");
    let mut returns = system.events("salt/job/").await;
    let (_, slept) = returns.until("salt/job/*/ret/m1").await;
    assert_eq!((text(&slept, "fun"), text(&slept, "return")), ("test.sleep".into(), "True".into()));
    assert_eq!(text(&outcome(&mut events, "m1").await, "result"), "done");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minion_that_is_killed_at_any_step_comes_back_with_one_of_the_programs() {
    let (system, mut minion, mut events) = start("").await;
    let old = sha256(&minion.program());
    // While the program is fetched.
    publish_good(&system, "build 1");
    let begun = system.tool("salt", &[&["--async", "m1"], &UPGRADE[..]].concat());
    assert!(begun.status.success(), "{}", stderr(&begun));
    until("the program is fetched", || minion.phase() == "fetching" && minion.names().len() > 1).await;
    minion.kill();
    system.configure_minion("m1", LOCAL);
    minion.restart();
    let told = outcome(&mut events, "m1").await;
    assert_eq!(text(&told, "reason"), "the minion ended before it tried the new program");
    assert_eq!(minion.names(), ["brine"]);
    // While it waits for other jobs.
    publish_good(&system, "build 2");
    let slow = system.tool("salt", &["--async", "m1", "test.sleep", "60"]);
    assert!(slow.status.success(), "{}", stderr(&slow));
    staged(&upgrade(&system, &[]));
    assert_eq!(minion.names(), ["brine", "brine.new"]);
    minion.kill();
    minion.restart();
    let told = outcome(&mut events, "m1").await;
    assert_eq!(text(&told, "reason"), "the minion ended before it tried the new program");
    assert_eq!((minion.names(), sha256(&minion.program())), (vec!["brine".to_owned()], old.clone()));
    // While the new program is tried: the watcher starts the old one.
    publish_c(&system, "brine 99.0.0", "for (;;) pause();");
    staged(&upgrade(&system, &[]));
    until("the new program is tried", || minion.running().ends_with("brine.new")).await;
    minion.kill();
    let told = outcome(&mut events, "m1").await;
    assert_eq!(text(&told, "result"), "rolled_back", "{told:?}");
    assert_eq!((minion.names(), sha256(&minion.program())), (vec!["brine".to_owned()], old.clone()));
    pings(&system);
    // While it gets its place, before and after the exchange: as the state on disk is then.
    for (is_left, result) in [(true, "rolled_back"), (false, "done")] {
        kill(Pid::from_raw(minion.pid().unwrap()), Signal::SIGKILL).unwrap();
        let path = system.path("m1/cache/upgrade/state");
        let state = std::fs::read_to_string(&path).unwrap();
        let state = state.replace("\"rolled_back\"", "\"committing\"").replace("\"done\"", "\"committing\"");
        let state = state.replace("\"is_settled\":true", "\"is_settled\":false");
        std::fs::write(&path, state.replace("\"is_reported\":true", "\"is_reported\":false")).unwrap();
        if is_left {
            std::fs::write(minion.program().with_extension("new"), "new").unwrap();
        }
        minion.restart();
        let told = outcome(&mut events, "m1").await;
        assert_eq!(text(&told, "result"), result, "{told:?}");
        assert_eq!(minion.names(), ["brine"]);
    }
    pings(&system);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_is_upgraded_in_batches_that_stop_at_failures() {
    let system = System::start("").await;
    let mut events = system.events("salt/minion/").await;
    let mut minions = Vec::new();
    for id in ["m1", "m2", "m3"] {
        system.configure_minion(id, LOCAL);
        minions.push(Minion::spawn(&system, id));
        events.until(&format!("salt/minion/{id}/start")).await;
    }
    let run = |more: &[&str]| {
        let words =
            [&["brine.upgrade", "*", "source=salt://brine/test/brine", "force=True", "--out=json"], more].concat();
        let output = system.tool("salt-run", &words);
        let shown = stdout(&output);
        // After the events about its progress.
        let last = shown.rfind("\n{\n").map_or(&shown[..], |at| &shown[at..]);
        brine_value::json::from_json(last).unwrap_or_else(|_| panic!("{shown}{}", stderr(&output)))
    };
    let names = |value: &Value, name: &str| value.get(name).map(ToString::to_string).unwrap_or_default();
    publish_good(&system, "build 2");
    let done = run(&["batch=2"]);
    assert_eq!((names(&done, "result"), names(&done, "failed")), ("True".into(), "{}".into()), "{done}");
    assert_eq!(names(&done, "upgraded"), "['m1', 'm2', 'm3']");
    publish_c(&system, "brine 99.0.0", "return 3;");
    let stopped = run(&["batch=1"]);
    assert_eq!(names(&stopped, "result"), "False", "{stopped}");
    assert_eq!((names(&stopped, "upgraded"), names(&stopped, "skipped")), ("[]".into(), "['m2', 'm3']".into()));
    assert!(names(&stopped, "failed").contains("'m1': 'the new program ended"), "{stopped}");
    let good = sha256(&minions[0].program());
    assert!(minions.iter().all(|minion| sha256(&minion.program()) == good));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_in_the_background_keeps_its_pid_file() {
    let system = System::start("").await;
    system.configure_minion("m1", &format!("{LOCAL}log_file: ROOT/m1.log\n"));
    let mut events = system.events("salt/minion/").await;
    std::fs::create_dir_all(system.path("m1/bin")).unwrap();
    std::fs::copy(stripped(&system), system.path("m1/bin/brine")).unwrap();
    // By the name of Salt's tool.
    std::os::unix::fs::symlink("brine", system.path("m1/bin/salt-minion")).unwrap();
    let mut child = Command::new(system.path("m1/bin/salt-minion"))
        .args(["-d", "-c", &system.path("m1/etc").display().to_string()])
        .spawn()
        .unwrap();
    assert!(child.wait().unwrap().success());
    let minion = Minion { id: "m1".into(), root: system.path(""), child };
    events.until("salt/minion/m1/start").await;
    let pid = minion.pid();
    publish_good(&system, "build 2");
    staged(&upgrade(&system, &[]));
    assert_eq!(text(&outcome(&mut events, "m1").await, "result"), "done");
    until("the PID file names the process", || minion.pid() == pid).await;
    assert_eq!(minion.running(), minion.program());
    publish_c(&system, "brine 99.0.0", "abort();");
    staged(&upgrade(&system, &[]));
    assert_eq!(text(&outcome(&mut events, "m1").await, "result"), "rolled_back");
    until("the PID file names the new process", || minion.pid().is_some_and(|new| Some(new) != pid)).await;
    let words = std::fs::read(format!("/proc/{}/cmdline", minion.pid().unwrap())).unwrap();
    assert!(String::from_utf8_lossy(&words).contains("minion"), "{words:?}");
    pings(&system);
}
