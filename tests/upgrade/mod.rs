//! Upgrades of minions' programs: the real program, copied to a directory of each minion, and bad ones.

mod failures;
mod minion;
mod rights;

use std::os::unix::net::UnixDatagram;
use std::process::Command;

use brine_value::Value;

use self::minion::{
    LOCAL, Minion, SOURCE, outcome, pings, publish_c, publish_good, sha256, staged, start, stripped, text, upgrade,
};
use crate::support::{System, TIMEOUT, stderr, stdout, until};

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
async fn a_program_of_a_package_is_left_to_its_manager() {
    let system = System::start("").await;
    system.configure_minion("m1", LOCAL);
    let tool = system.write("tools/dpkg-query", "#!/bin/sh\necho \"brine: $2\"\n");
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", tool.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut events = system.events("salt/minion/").await;
    let minion = Minion::spawn_with(&system, "m1", &[("PATH", &path)]);
    events.until("salt/minion/m1/start").await;
    publish_good(&system, "build 2");
    let refused = upgrade(&system, &[]).to_string();
    assert!(refused.contains("belongs to the package brine") && refused.contains("pkg.install brine"), "{refused}");
    assert_eq!((minion.names(), minion.phase()), (vec!["brine".to_owned()], String::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn systemd_keeps_the_main_process() {
    let system = System::start("").await;
    system.configure_minion("m1", LOCAL);
    let path = system.path("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    // Collects what the minion tells until it is ready.
    let told = || {
        let (mut all, mut buffer) = (String::new(), [0; 4096]);
        while !all.contains("READY=1") {
            let length = socket.recv(&mut buffer).unwrap();
            all.push_str(&format!("{}\n", String::from_utf8_lossy(&buffer[..length])));
        }
        all
    };
    let mut events = system.events("salt/minion/").await;
    let minion = Minion::spawn_with(&system, "m1", &[("NOTIFY_SOCKET", &path.display().to_string())]);
    told();
    events.until("salt/minion/m1/start").await;
    let pid = minion.pid();
    publish_good(&system, "build 2");
    staged(&upgrade(&system, &[]));
    let again = told();
    assert!(!again.contains("STOPPING") && !again.contains("MAINPID"), "{again}");
    assert_eq!(text(&outcome(&mut events, "m1").await, "result"), "done");
    assert_eq!((minion.pid(), minion.running()), (pid, minion.program()));
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
        let text = stdout(&output);
        // After the events about its progress.
        let last = text.rfind("\n{\n").map_or(&text[..], |at| &text[at..]);
        brine_value::json::from_json(last).unwrap_or_else(|_| panic!("{text}{}", stderr(&output)))
    };
    let names = |value: &Value, name: &str| value.get(name).map(ToString::to_string).unwrap_or_default();
    publish_good(&system, "build 2");
    let report = run(&["batch=2"]);
    assert_eq!((names(&report, "result"), names(&report, "failed")), ("True".into(), "{}".into()), "{report}");
    assert_eq!(names(&report, "upgraded"), "['m1', 'm2', 'm3']");
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
    let minion = Minion { id: "m1".into(), root: system.path(""), env: Vec::new(), child };
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
