//! The event bus from outside: pyzmq, and the `zeromq` crate's users.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use support::{System, stdout, text};

const FOLLOW: &str = "
import sys, zmq
s = zmq.Context().socket(zmq.SUB); s.connect('ipc://' + sys.argv[1] + '/run/master_event_pub.ipc'); s.setsockopt(zmq.SUBSCRIBE, b'my/')
open(sys.argv[1] + '/following', 'w').close()
print(s.recv())
";
const PUSH: &str = "
import sys, zmq, msgpack
context = zmq.Context(); s = context.socket(zmq.PUSH)
s.connect('ipc://' + sys.argv[1] + '/run/master_event_pull.ipc')
s.send(b'my/tag\\n\\n' + msgpack.packb({'from': 'python'}))
s.close(); context.term()
";

#[tokio::test(flavor = "multi_thread")]
async fn five_lines_of_python_fire_and_follow() {
    let system = System::start("").await;
    let folder = system.path("");
    let mut events = system.events("my/").await;
    let pushing = folder.clone();
    tokio::task::spawn_blocking(move || support::python(PUSH, &[&pushing])).await.unwrap();
    let (tag, data) = events.next().await;
    assert_eq!((tag.as_str(), text(&data, "from")), ("my/tag", "python".into()));
    assert_eq!(text(&data, "_stamp").len(), "2026-11-21T01:02:03.000004+00:00".len());
    assert!(text(&data, "_seq").parse::<u64>().unwrap() > 0);

    let following = tokio::task::spawn_blocking({
        let folder = folder.clone();
        move || support::python(FOLLOW, &[&folder])
    });
    support::until("the follower is connected", || system.path("following").exists()).await;
    // Its subscription is on its way: fire until it has printed one.
    let mut following = std::pin::pin!(following);
    let printed = loop {
        system.tool_async("salt-run", &["event.send", "my/other", "{n: 1}"]).await;
        if let Ok(done) = tokio::time::timeout(std::time::Duration::from_millis(50), &mut following).await {
            break done.unwrap();
        }
    };
    assert!(printed.starts_with("b'my/other\\n\\n"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn state_event_shows_the_past_and_goes_on() {
    let system = System::start("").await;
    for n in 1..=3 {
        assert_eq!(stdout(&system.tool("salt-run", &["event.send", "my/tag", &format!("{{n: {n}}}")])), "True\n");
    }
    let shown = stdout(&system.tool("salt-run", &["state.event", "my/*", "count=3", "since=1"]));
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 3, "{shown}");
    for (n, line) in lines.iter().enumerate() {
        assert!(line.starts_with(&format!("my/tag\t{{\"n\": {}, \"_seq\": ", n + 1)), "{line}");
    }
    let pretty = stdout(&system.tool("salt-run", &["state.event", "my/*", "count=1", "since=1", "pretty=True"]));
    assert!(pretty.starts_with("my/tag\t{\n    \"_seq\": ") && pretty.contains("\n    \"n\": 1\n}"), "{pretty}");
    assert_eq!(stdout(&system.tool("salt-run", &["state.event", "my/*", "since=1", "quiet=True", "timeout=0.2"])), "");
}
