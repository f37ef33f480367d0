//! Beacons of a real minion: their events reach the master's reactor and the minion's own bus, and they are changed at
//! run time.

use crate::support;

use std::io::Write;

use crate::support::{System, TIMEOUT, text};
use brine_bus::SocketNames;
use brine_value::Value;
use brine_zmtp::{Limits, Subscriber};

const BEACONS: &str = "beacons:
  log:
    - file: ROOT/app.log
    - tags: {trouble: {regex: '.*went wrong'}}
  no_such: []
  memusage: [{percent: often}]
";

#[tokio::test(flavor = "multi_thread")]
async fn the_reactor_reacts_to_events_of_a_beacon() {
    let mut system = System::start("reactor:\n  - 'salt/beacon/*/log/*': [ROOT/seen.sls]\n").await;
    system.write("seen.sls", "seen:\n  runner.test.arg:\n    - args: [{{ data.id }}, {{ data.raw }}, {{ tag }}]\n");
    let log = system.write("app.log", "this went wrong before\n");
    system.configure_minion("web1", BEACONS);
    let mut events = system.events("salt/").await;
    system.spawn_minion("web1");
    events.until("salt/minion/web1/start").await;
    let own = SocketNames::minion("web1").publish_endpoint(&system.path("run"));
    let mut own = Subscriber::connect(&own, &[b"__beacons_return"], Limits::default()).await.unwrap();
    // The first poll records the end of the file, without an event.
    let mut file = std::fs::File::options().append(true).open(log).unwrap();
    let report = loop {
        writeln!(file, "all is well\nthis went wrong").unwrap();
        let next = tokio::time::timeout(std::time::Duration::from_millis(500), events.until("salt/beacon/web1/log/*"));
        if let Ok((tag, data)) = next.await {
            break (tag, data);
        }
    };
    let (tag, data) = report;
    assert_eq!(tag, "salt/beacon/web1/log/trouble");
    assert_eq!((text(&data, "raw"), text(&data, "match")), ("this went wrong".into(), "yes".into()));
    assert_eq!((text(&data, "id"), text(&data, "error")), ("web1".into(), String::new()));
    loop {
        let (_, data) = events.until("salt/run/*/ret").await;
        if text(&data, "fun") == "runner.test.arg" {
            let expected = "{'args': ['web1', 'this went wrong', 'salt/beacon/web1/log/trouble'], 'kwargs': {}}";
            assert_eq!(text(&data, "return"), expected);
            break;
        }
    }
    let frames = tokio::time::timeout(TIMEOUT, own.recv()).await.unwrap().unwrap();
    let event = brine_event::Event::from_frame(frames[0].clone()).unwrap().data();
    let first = event.get("beacons").and_then(Value::as_list).unwrap()[0].clone();
    assert_eq!(first.get("tag"), Some(&"salt/beacon/web1/log/trouble".into()));
    assert_eq!(first.get("beacon_name"), Some(&"log".into()));
    // Each error is logged once.
    let said = system.minion_log("web1");
    for line in [
        "beacon 'no_such' is invalid: unknown beacon 'no_such'",
        "beacon 'memusage' is invalid: option 'percent': expected a number",
    ] {
        assert_eq!(said.matches(line).count(), 1, "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn beacons_and_jobs_are_changed_at_runtime_and_persisted() {
    let mut system = System::start("").await;
    system.start_minion("web1").await;
    let mut events = system.events("salt/").await;
    let said = |words: &[&str]| {
        let report = system.salt_json(&[&["web1"], words].concat());
        report.get("web1").unwrap_or(&report).get("comment").map(ToString::to_string).unwrap_or_default()
    };
    // No process has this name, so that each poll reports it.
    assert_eq!(said(&["beacons.add", "ps", "[{processes: {no-such: stopped}}]"]), "Added beacon: ps.");
    let (_, data) = events.until("salt/beacon/web1/ps/").await;
    assert_eq!((text(&data, "no-such"), text(&data, "id")), ("Stopped".into(), "web1".into()));
    // The same through `salt-call`.
    let etc = system.path("web1/etc").display().to_string();
    let mut call = support::within_limit(support::BRINE);
    let listed = call.args(["salt-call", "-c", &etc, "beacons.list", "--out=txt"]).output().unwrap();
    assert!(support::stdout(&listed).contains("no-such: stopped"), "{}", support::stderr(&listed));
    assert_eq!(said(&["beacons.save"]), format!("Beacons saved to {etc}/minion.d/beacons.conf."));
    let job = ["schedule.add", "often", "function=test.echo", "job_args=[hi]", "seconds=1"];
    assert_eq!(said(&job), "Added job: often to schedule.");
    system.kill_minion("web1");
    system.spawn_minion("web1");
    events.until("salt/minion/web1/start").await;
    events.until("salt/beacon/web1/ps/").await;
    loop {
        let (_, data) = events.until("salt/job/*/ret/web1").await;
        if text(&data, "schedule") == "often" {
            assert_eq!(text(&data, "return"), "hi");
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn beacons_and_jobs_can_start_before_the_master() {
    let mut system = System::new("");
    let early = "beacons_before_connect: True\nscheduler_before_connect: True\n\
                 beacons: {ps: [{processes: {no-such: stopped}}]}\nschedule: {j: {function: test.ping, seconds: 1}}\n";
    system.configure_minion("web1", early);
    system.spawn_minion("web1");
    let names = SocketNames::minion("web1");
    let own = names.publish_endpoint(&system.path("run"));
    let brine_zmtp::Endpoint::Ipc(path) = &own else { panic!("{own:?}") };
    // The file is there before somebody listens.
    let listens = || std::os::unix::net::UnixStream::connect(path).is_ok();
    support::until("the minion's bus is there", listens).await;
    let mut own = Subscriber::connect(&own, &[b"__"], Limits::default()).await.unwrap();
    let (mut looked, mut ran) = (false, false);
    while !looked || !ran {
        let frames = tokio::time::timeout(TIMEOUT, own.recv()).await.expect("timed out waiting for an event").unwrap();
        let event = brine_event::Event::from_frame(frames[0].clone()).unwrap();
        looked |= event.tag() == "__beacons_return";
        ran |= event.tag() == "__schedule_return" && event.data().get("return") == Some(&true.into());
    }
    // The return of the job waits for the master.
    system.start_master().await;
    let mut events = system.events("salt/job/").await;
    support::until("the key is shown", || {
        system.tool("salt-key", &["-y", "-a", "web1"]);
        system.path("pki/minions/web1").exists()
    })
    .await;
    let (_, data) = events.until("salt/job/*/ret/web1").await;
    assert_eq!(text(&data, "schedule"), "j");
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_and_directories_are_monitored() {
    let mut system = System::start("").await;
    std::fs::create_dir(system.path("watched")).unwrap();
    let watched = system.path("watched");
    system.configure_minion(
        "web1",
        "beacons:\n  salt_monitor: [{salt_fun: [{test.echo: {args: [well]}}]}]\n  \
         watchdog: [{directories: {ROOT/watched: {mask: [create]}}}]\n",
    );
    let mut events = system.events("salt/").await;
    system.spawn_minion("web1");
    let (_, data) = events.until("salt/beacon/web1/salt_monitor/").await;
    assert_eq!(
        (text(&data, "salt_fun"), text(&data, "ret"), text(&data, "id")),
        ("test.echo".into(), "well".into(), "web1".into())
    );
    // The first poll has watched the directory.
    let path = watched.join("new").display().to_string();
    std::fs::write(&path, "").unwrap();
    let (_, data) = events.until("salt/beacon/web1/watchdog/watchdog").await;
    assert_eq!((text(&data, "path"), text(&data, "change")), (path, "created".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn states_with_beacon_true_configure_beacons() {
    let mut system = System::start("").await;
    system.start_minion("web1").await;
    let path = system.path("conf").display().to_string();
    system.write(
        "srv/salt/watched.sls",
        &format!(
            "{path}:\n  file.managed:\n    - contents: a\n    - beacon: True\n    - beacon_data: {{interval: 1}}\n\
             link: {{file.symlink: [{{name: {path}.link}}, {{target: {path}}}, {{beacon: True}}]}}\n"
        ),
    );
    let applied = system.salt_json(&["web1", "state.apply", "watched"]);
    let states = applied.get("web1").unwrap().as_map().unwrap();
    let result = |tag: &str| {
        let state = states.get(tag).unwrap_or_else(|| panic!("{applied}"));
        (state.get("result").cloned(), state.get("comment").unwrap().to_string())
    };
    let name = format!("beacon_inotify_{path}");
    assert_eq!(
        result(&format!("file_|-beacon_{path}_|-{path}_|-mod_beacon")),
        (Some(true.into()), format!("Adding {name} to beacons"))
    );
    assert_eq!(
        result(&format!("file_|-beacon_link_|-{path}.link_|-mod_beacon")),
        (Some(false.into()), "file.symlink does not work with the beacon state function".to_owned())
    );
    let again = system.salt_json(&["web1", "state.apply", "watched"]).to_string();
    assert!(again.contains(&format!("Job {name} in correct state")), "{again}");
    let mut events = system.events("salt/beacon/web1/").await;
    // The first poll starts to watch the file; an earlier change causes no event.
    let changes = async {
        for number in 0.. {
            std::fs::write(&path, number.to_string()).unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    };
    let pattern = format!("salt/beacon/web1/{name}/*");
    let (tag, data) = tokio::select! {
        event = events.until(&pattern) => event,
        () = changes => unreachable!("changes do not end"),
    };
    assert_eq!((text(&data, "path"), text(&data, "change")), (path, "IN_MODIFY".into()), "{tag}");
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_copied_and_moved_to_other_minions() {
    let mut system = System::start("peer: {web1: [schedule.add, test.echo, {'@options': [metadata]}]}\n").await;
    for id in ["web1", "web2"] {
        system.start_minion(id).await;
    }
    let call = |id: &str, words: &[&str]| {
        let report = system.salt_json(&[&[id], words].concat());
        report.get(id).unwrap_or(&report).clone()
    };
    let jobs = |id: &str| call(id, &["schedule.list", "return_yaml=False"]);
    for name in ["one", "two"] {
        let add =
            ["schedule.add", name, "function=test.echo", "job_args=['a: b']", "seconds=3600", "metadata={x: [1]}"];
        assert_eq!(call("web1", &add).get("result"), Some(&true.into()));
    }
    let before = jobs("web1");
    let report = call("web1", &["schedule.copy", "one", "web2"]);
    assert_eq!(report.get("comment"), Some(&"Copied Job one from schedule to minion(s).".into()), "{report}");
    assert_eq!(report.get("minions"), Some(&brine_value::list!["web2"]));
    assert_eq!(jobs("web2").get("one"), before.get("one"));
    // The other side has a job of that name, so the job stays here.
    let report = call("web1", &["schedule.move", "one", "web2"]);
    assert_eq!(report.get("comment"), Some(&"the following minions return False".into()), "{report}");
    let report = call("web1", &["schedule.move", "two", "web2"]);
    assert_eq!(report.get("comment"), Some(&"Moved Job two from schedule.".into()), "{report}");
    assert_eq!(jobs("web2").get("two"), before.get("two"));
    assert_eq!((jobs("web1").get("one"), jobs("web1").get("two")), (before.get("one"), None));
    let report = call("web2", &["schedule.copy", "one", "web1"]);
    assert_eq!(report.get("comment"), Some(&"no servers answered the published schedule.add command".into()));
}
