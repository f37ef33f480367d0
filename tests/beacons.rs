//! Beacons of a real minion: what they tell reaches the master's reactor and the minion's own bus, and they are
//! changed while the minion runs.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::io::Write;

use brine_core::Value;
use brine_core::bus::SocketNames;
use brine_core::transport::{Limits, Subscriber};
use support::{LONG, System, text};

const BEACONS: &str = "beacons:
  log:
    - file: ROOT/app.log
    - tags: {trouble: {regex: '.*went wrong'}}
  no_such: []
  memusage: [{percent: often}]
";

#[tokio::test(flavor = "multi_thread")]
async fn the_reactor_reacts_to_what_a_beacon_sees() {
    let mut system = System::start("reactor:\n  - 'salt/beacon/*/log/*': [ROOT/seen.sls]\n").await;
    system.write("seen.sls", "seen:\n  runner.test.arg:\n    - args: [{{ data.id }}, {{ data.raw }}, {{ tag }}]\n");
    let log = system.write("app.log", "this went wrong before\n");
    system.configure_minion("web1", BEACONS);
    let mut events = system.events("salt/").await;
    system.spawn_minion("web1");
    events.until("salt/minion/web1/start").await;
    let own = SocketNames::minion("web1").publish_endpoint(&system.path("run"));
    let mut own = Subscriber::connect(&own, &[b"__beacons_return"], Limits::default()).await.unwrap();
    // The first look finds the end of the file; when that was, nothing tells.
    let mut file = std::fs::File::options().append(true).open(log).unwrap();
    let told = loop {
        writeln!(file, "all is well\nthis went wrong").unwrap();
        let next = tokio::time::timeout(std::time::Duration::from_millis(500), events.until("salt/beacon/web1/log/*"));
        if let Ok((tag, data)) = next.await {
            break (tag, data);
        }
    };
    let (tag, data) = told;
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
    let frames = tokio::time::timeout(LONG, own.recv()).await.unwrap().unwrap();
    let event = brine_core::Event::from_frame(frames[0].clone()).unwrap().data();
    let first = event.get("beacons").and_then(Value::as_list).unwrap()[0].clone();
    assert_eq!(first.get("tag"), Some(&"salt/beacon/web1/log/trouble".into()));
    assert_eq!(first.get("beacon_name"), Some(&"log".into()));
    // Of what is wrong, one line each.
    let said = system.minion_log("web1");
    for line in
        ["beacon 'no_such': there is no beacon 'no_such'", "beacon 'memusage': option 'percent': expected a number"]
    {
        assert_eq!(said.matches(line).count(), 1, "{said}");
    }
}
