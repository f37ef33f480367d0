//! The sockets of the event bus, used by pyzmq and by the crate `zeromq`.

use crate::support;

use crate::support::{System, stdout, text};
use brine_event::Event;
use brine_value::map;
use brine_zmtp::{Endpoint, Push};

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
async fn five_lines_of_python_publish_and_subscribe() {
    let system = System::start("").await;
    let directory = system.path("");
    let mut events = system.events("my/").await;
    let pushing = directory.clone();
    tokio::task::spawn_blocking(move || support::python(PUSH, &[&pushing])).await.unwrap();
    let (tag, data) = events.next().await;
    assert_eq!((tag.as_str(), text(&data, "from")), ("my/tag", "python".into()));
    assert_eq!(text(&data, "_stamp").len(), "2026-11-21T10:00:00.123456+00:00".len());
    assert!(text(&data, "_seq").parse::<u64>().unwrap() > 0);

    let following = tokio::task::spawn_blocking({
        let directory = directory.clone();
        move || support::python(FOLLOW, &[&directory])
    });
    support::until("the follower is connected", || system.path("following").exists()).await;
    // The subscription is asynchronous: publish until the subscriber has printed an event.
    let mut following = std::pin::pin!(following);
    let printed = loop {
        system.tool_async("salt-run", &["event.send", "my/other", "{n: 1}"]).await;
        if let Ok(result) = tokio::time::timeout(std::time::Duration::from_millis(50), &mut following).await {
            break result.unwrap();
        }
    };
    assert!(printed.starts_with("b'my/other\\n\\n"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn state_event_shows_past_and_new_events() {
    let system = System::start("").await;
    for n in 1..=3 {
        assert_eq!(stdout(&system.tool("salt-run", &["event.send", "my/tag", &format!("{{n: {n}}}")])), "True\n");
    }
    let text = stdout(&system.tool("salt-run", &["state.event", "my/*", "count=3", "since=1"]));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    for (n, line) in lines.iter().enumerate() {
        assert!(line.starts_with(&format!("my/tag\t{{\"n\": {}, \"_seq\": ", n + 1)), "{line}");
    }
    let pretty = stdout(&system.tool("salt-run", &["state.event", "my/*", "count=1", "since=1", "pretty=True"]));
    assert!(pretty.starts_with("my/tag\t{\n    \"_seq\": ") && pretty.contains("\n    \"n\": 1\n}"), "{pretty}");
    assert_eq!(stdout(&system.tool("salt-run", &["state.event", "my/*", "since=1", "quiet=True", "timeout=0.2"])), "");
}

const REPLAYED: &str = "
import sys, zmq, msgpack
s = zmq.Context().socket(zmq.PULL); s.bind('ipc://' + sys.argv[1] + '/mine.ipc')
open(sys.argv[1] + '/bound', 'w').close()
while True:
    tag, body = s.recv().split(b'\\n\\n', 1)
    data = msgpack.unpackb(body)
    print(tag.decode(), data.get('n'), data.get('count'), flush=True)
    if tag == b'salt/event_bus/replay/end':
        break
";

#[tokio::test(flavor = "multi_thread")]
async fn a_range_of_the_journal_is_replayed_to_a_new_subscriber() {
    let system = System::start("").await;
    for n in 1..=4 {
        system.tool("salt-run", &["event.send", "my/tag", &format!("{{n: {n}}}")]);
    }
    let directory = system.path("");
    let subscriber = tokio::task::spawn_blocking({
        let directory = directory.clone();
        move || support::python(REPLAYED, &[&directory])
    });
    support::until("the subscriber has bound its socket", || system.path("bound").exists()).await;
    let socket = format!("socket={}", directory.join("mine.ipc").display());
    let count = system.tool_async("salt-run", &["event_bus.replay", "1", "tag=my/*", &socket]).await;
    assert_eq!(stdout(&count).trim(), "4");
    let printed = subscriber.await.unwrap();
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(
        lines,
        ["my/tag 1 None", "my/tag 2 None", "my/tag 3 None", "my/tag 4 None", "salt/event_bus/replay/end None 4"]
    );
    let nobody = system.tool_async("salt-run", &["event_bus.replay", "1", "socket=/nonexistent.ipc"]).await;
    assert!(!nobody.status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_served_and_shown() {
    use std::io::{Read, Write};
    let port = support::free_port();
    let mut system = System::new(&format!("metrics_port: {port}\nreactor:\n  - 'go': [ROOT/go.sls]\n"));
    system.write("go.sls", "a:\n  runner.test.arg: []\nb:\n  runner.no.such: []\n");
    system.start_master().await;
    let mut events = system.events("salt/reactor/error").await;
    system.tool("salt-run", &["event.send", "go"]);
    events.next().await;
    let ask = |path: &str| {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let metric = "brine_reactor_reactions_total{entry=\"go\",outcome=\"failed\"} 1\n";
    support::until("the reactions are counted", || {
        let answer = ask("/metrics");
        answer.contains(metric) && answer.contains("brine_reactor_queue_depth 0\n")
    })
    .await;
    let answer = ask("/metrics");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("text/plain; version=0.0.4"), "{answer}");
    for line in [
        "brine_reactor_reactions_total{entry=\"go\",outcome=\"done\"} 1\n",
        "brine_subscriber_lag_events{subscriber=\"reactor\"} ",
        "# TYPE brine_reactor_render_seconds histogram\n",
    ] {
        assert!(answer.contains(line), "{line}{answer}");
    }
    assert!(ask("/other").starts_with("HTTP/1.1 404 Not Found\r\n"));
    let text = stdout(&system.tool("salt-run", &["metrics.show"]));
    assert!(text.contains("brine_reactor_reactions_total{entry=\"go\",outcome=\"done\"}:\n    1"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn past_events_are_shown_beyond_the_size_of_a_message() {
    let system = System::start("").await;
    let mut push = Push::connect(&Endpoint::Ipc(system.path("run/master_event_pull.ipc"))).await.unwrap();
    let mut events = system.events("large/").await;
    let count = 90;
    for n in 0..count {
        let event = Event::from_map("large/tag", &map! {"n" => n, "text" => "x".repeat(900_000)}).unwrap();
        push.send(event.frame()).await.unwrap();
        events.next().await;
    }
    let words = ["state.event", "large/*", &format!("count={count}"), "since=1"];
    let text = stdout(&system.tool_async("salt-run", &words).await);
    let numbers: Vec<&str> = text.lines().map(|line| line.split(',').next().unwrap()).collect();
    let expected: Vec<String> = (0..count).map(|n| format!("large/tag\t{{\"n\": {n}")).collect();
    assert_eq!(numbers, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_nest_too_deep_are_refused_and_break_no_reader() {
    use brine_value::json::to_json;
    use brine_value::levels::nested;

    let system = System::start("").await;
    let mut push = Push::connect(&Endpoint::Ipc(system.path("run/master_event_pull.ipc"))).await.unwrap();
    for (tag, levels) in [("deep/refused", 101), ("deep/old", 129), ("deep/most", 100)] {
        let event = Event::from_trusted_map(tag, nested(levels).as_map().unwrap()).unwrap();
        push.send(event.frame()).await.unwrap();
    }
    let sent = system.tool("salt-run", &["event.send", "deep/sent", &to_json(&nested(98))]);
    assert_eq!(stdout(&sent), "True\n");
    let refused = system.tool("salt-run", &["event.send", "deep/refused", &to_json(&nested(99))]);
    let text = stdout(&refused);
    assert!(!refused.status.success() && text.contains("it nests deeper than 100 levels"), "{text}");
    assert_eq!(stdout(&system.tool("salt-run", &["event.send", "ok/1", "{n: 1}"])), "True\n");
    let text = stdout(&system.tool("salt-run", &["state.event", "ok/*", "count=1", "since=1"]));
    assert!(text.starts_with("ok/1\t"), "{text}");
    let text = stdout(&system.tool("salt-run", &["event_bus.since", "1", "--out=json"]));
    for (tag, is_there) in [("deep/most", true), ("deep/sent", true), ("deep/refused", false), ("deep/old", false)] {
        assert_eq!(text.contains(&format!("\"tag\": \"{tag}\"")), is_there, "{tag}: {text}");
    }
}
