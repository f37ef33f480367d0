use futures::future::BoxFuture;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::*;
use crate::PublishError;

/// Collects events; refuses those with the tag `refused`.
struct Bus(UnboundedSender<(String, Map)>);

impl Bus {
    fn new() -> (Self, UnboundedReceiver<(String, Map)>) {
        let (sender, events) = unbounded_channel();
        (Bus(sender), events)
    }
}

impl Publisher for Bus {
    fn id(&self) -> &'static str {
        "m1"
    }

    fn max_event_size(&self) -> usize {
        1 << 20
    }

    fn publish(&self, tag: String, data: Map) -> BoxFuture<'_, Result<(), PublishError>> {
        let result = if tag == "refused" { Err(PublishError::Refused("it is refused".to_owned())) } else { Ok(()) };
        _ = self.0.send((tag, data));
        Box::pin(async { result })
    }
}

/// Runs a shell script until it has published `count` events, and returns them.
async fn events(script: &str, kwargs: Map, count: usize) -> Vec<(String, Map)> {
    let (bus, mut events) = Bus::new();
    let mut all = map! {"cmd" => format!("sh -c {}", brine_text::shell::quote(script)), "interval" => 0};
    all.extend(kwargs);
    let (engine, stopping) = (Script::new(&all).unwrap(), CancellationToken::new());
    let stop = stopping.clone();
    let receive = async move {
        let mut received = Vec::new();
        while received.len() < count {
            received.extend(events.recv().await);
        }
        stop.cancel();
        received
    };
    let (ended, received) = tokio::join!(engine.run(&bus, &stopping), receive);
    ended.unwrap();
    received
}

#[test]
fn arguments_are_checked() {
    for (kwargs, error) in [
        (map! {"cmd" => "a 'b c'"}, None),
        (map! {"cmd" => "a", "output" => "yaml", "interval" => 0.5, "onchange" => true}, None),
        (map! {}, Some("'cmd' is missing")),
        (map! {"cmd" => " "}, Some("'cmd' is empty")),
        (map! {"cmd" => "a 'b"}, Some("a quote is open")),
        (map! {"cmd" => "a", "output" => "xml"}, Some("Unknown serializer `xml`")),
        (map! {"cmd" => "a", "interval" => "often"}, Some("'interval' is invalid")),
        (map! {"cmd" => "a", "interval" => -1}, Some("'interval' is invalid")),
        (map! {"cmd" => "a", "every" => 1}, Some("'every' is unknown")),
    ] {
        let read = Script::new(&kwargs);
        match error {
            None => assert!(read.is_ok(), "{kwargs:?}: {read:?}"),
            Some(error) => assert!(read.as_ref().is_err_and(|read| read.contains(error)), "{kwargs:?}: {read:?}"),
        }
    }
}

#[tokio::test]
async fn lines_with_a_tag_are_events_and_others_are_skipped() {
    let script = r#"echo '{"tag": "a", "data": {"n": 1}}'; echo; echo '{"data": {"n": 2}}'; echo error >&2
        echo '[1]'; echo '{"tag": "b"}'; echo '{"tag": "x", "data": 5}'; echo '{"tag": "refused"}'
        printf '{"tag": "c", "data": {"id": "own"}}'; exit 3"#;
    let refused = metrics::ENGINE_LINES_REFUSED.get();
    let received = events(script, map! {}, 5).await;
    let first = [
        ("a".to_owned(), map! {"n" => 1, "id" => "m1"}),
        ("b".to_owned(), map! {}),
        ("refused".to_owned(), map! {}),
        ("c".to_owned(), map! {"id" => "own"}),
        // The program is run again, although it failed.
        ("a".to_owned(), map! {"n" => 1, "id" => "m1"}),
    ];
    assert_eq!(received, first);
    assert!(metrics::ENGINE_LINES_REFUSED.get() >= refused + 4);
}

#[tokio::test]
async fn yaml_is_read_and_unchanged_data_is_published_once() {
    let script = "echo '{tag: a, data: {n: 1, l: [{x: 1, y: 2}]}}'; echo '{tag: a, data: {l: [{y: 2, x: 1}], n: 1}}'
        echo 'tag: b'; echo '{tag: a, data: {n: 0644}}'";
    let received = events(script, map! {"output" => "yaml", "onchange" => true}, 3).await;
    let tags: Vec<_> =
        received.iter().map(|(tag, data)| (tag.as_str(), data.get("n").and_then(Value::as_i64))).collect();
    assert_eq!(tags, [("a", Some(1)), ("b", None), ("a", Some(420))]);
}

#[tokio::test]
async fn program_and_its_children_end_with_the_engine() {
    let script = "trap '' TERM; sleep 600 & echo \"{\\\"tag\\\": \\\"pids\\\", \\\"data\\\": {\\\"own\\\": $$, \\\"child\\\": $!}}\"; wait; sleep 600";
    let received = events(script, map! {}, 1).await;
    let (_, data) = &received[0];
    for name in ["own", "child"] {
        let pid = data.get(name).and_then(Value::as_i64).unwrap();
        let runs = || {
            let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            !status.is_empty() && !status.contains(") Z ")
        };
        tokio::time::timeout(Duration::from_secs(20), async {
            while runs() {
                tokio::task::yield_now().await;
            }
        })
        .await
        .unwrap_or_else(|_| panic!("{name} still runs"));
    }
}

#[tokio::test]
async fn program_that_cannot_be_started_ends_the_engine() {
    let (bus, _events) = Bus::new();
    let engine = Script::new(&map! {"cmd" => "/nonexistent/program -x"}).unwrap();
    let error = engine.run(&bus, &CancellationToken::new()).await.unwrap_err().to_string();
    assert!(error.starts_with("starting the program '/nonexistent/program' failed: No such file"), "{error}");
}

#[test]
fn remembered_tags_are_bounded() {
    let mut seen = Seen::default();
    for n in 0..=MAX_TAGS {
        seen.record(n.to_string(), 1);
    }
    assert_eq!(seen.last.len(), 1);
}
