//! The returner kafka on a server of Kafka's protocol: the mock of librdkafka, read back by its client.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

use crate::support::free_port;
use brine_event::Event;
use brine_job::Return;
use brine_returners::{Options, Returner, open};
use brine_value::{Map, Value, json, list, map};

fn returner(port: u16, more: Map) -> Box<dyn Returner> {
    let mut options = map! {"bootstrap" => list![format!("127.0.0.1:{port}")], "topic" => "salt-returns"};
    options.extend(more);
    open("kafka", &Options::new(&map! {"returner.kafka" => options}, None)).unwrap()
}

fn returned(id: &str, value: impl Into<Value>) -> Return {
    let fields = map! {"jid" => "20261120235852025555", "id" => id, "fun" => "test.arg", "return" => value.into(), "retcode" => 0};
    Return::from_map(fields).unwrap()
}

/// A server, and the client that reads its topics.
struct Kafka {
    process: Child,
    lines: BufReader<ChildStdout>,
}

impl Kafka {
    fn start(port: u16) -> Self {
        let python = std::env::var("BRINE_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/kafka_server.py");
        let mut command = Command::new(python);
        command.arg(program).arg(port.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap());
        let mut server = Kafka { process, lines };
        assert!(server.line().as_i64().is_some(), "confluent-kafka is missing: install it with pip");
        server
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        json::from_json(&line).unwrap_or_default()
    }

    /// Returns the messages of a topic: partition, key and content, in the order of partitions.
    fn messages(&mut self, topic: &str, number: usize) -> Vec<(i64, String, Value)> {
        writeln!(self.process.stdin.as_ref().unwrap(), "{topic} {number}").unwrap();
        let message = |line: Value| {
            let [partition, key, content] = line.as_list().unwrap() else { panic!("{line}") };
            let content = json::from_json(content.as_str().unwrap()).unwrap_or_else(|_| panic!("{content}"));
            (partition.as_i64().unwrap(), key.to_string(), content)
        };
        (0..number).map(|_| message(self.line())).collect()
    }
}

impl Drop for Kafka {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

#[test]
fn kafka_gets_returns_and_events() {
    let port = free_port();
    let mut server = Kafka::start(port);
    let kafka = returner(port, map! {});
    let first = returned("web1", list!["ü\u{1f9c2}", 1]);
    kafka.returner(&first).unwrap();
    let of_web1 = server.messages("salt-returns", 1);
    assert_eq!((&of_web1[0].1, &of_web1[0].2), (&"web1".to_owned(), &Value::from(first.map().clone())));
    // The mock has four partitions; the CRC-32 of `web1` is 0x9fa547ed.
    assert_eq!(of_web1[0].0, 0x9fa5_47ed % 4);
    // Messages of one minion keep their order.
    let many: Vec<Return> = (0..300).map(|number| returned(&format!("m{}", number % 10), number)).collect();
    kafka.save_returns(&many).unwrap();
    let stored = server.messages("salt-returns", 301);
    for minion in 0..10 {
        let of_minion = stored.iter().filter(|(_, key, _)| *key == format!("m{minion}"));
        let numbers: Vec<i64> =
            of_minion.map(|(_, _, content)| content.get("return").unwrap().as_i64().unwrap()).collect();
        assert_eq!(numbers, (0..30).map(|tens| tens * 10 + minion).collect::<Vec<_>>());
    }
    let events = returner(port, map! {"event_topic" => "salt-events"});
    let event = |number: i64| Event::from_map(&format!("salt/job/{number}/new"), &map! {"x" => number}).unwrap();
    let all: Vec<Event> = (0..10_000).map(event).collect();
    let start = Instant::now();
    for batch in all.chunks(1000) {
        events.event_return(batch).unwrap();
    }
    let rate = 10_000.0 / start.elapsed().as_secs_f64();
    println!("{rate:.0} events a second");
    let mut stored = server.messages("salt-events", 10_000);
    stored.sort_by_key(|(_, _, content)| content.get("data").unwrap().get("x").unwrap().as_i64());
    for (number, (_, key, content)) in stored.iter().enumerate() {
        let tag = format!("salt/job/{number}/new");
        let expected: Value = map! {"tag" => tag.as_str(), "data" => map! {"x" => number}}.into();
        assert_eq!((key, content), (&tag, &expected));
    }
    assert!(!kafka.stores_jobs());
}

#[test]
fn messages_over_the_limit_are_refused() {
    let port = free_port();
    let mut server = Kafka::start(port);
    let error = returner(port, map! {}).returner(&returned("web1", "x".repeat(1_000_000))).unwrap_err();
    assert!(!error.is_outage());
    let expected = format!(
        "kafka server 127.0.0.1:{port} (kafka) failed: the message of 'web1' has 1000160 bytes; \
         returner.kafka.message_max_bytes permits 1000000"
    );
    assert_eq!(error.to_string(), expected);
    // With a higher limit, they are sent in several batches. The mock stores at most 5 MiB of a partition.
    let kafka = returner(port, map! {"message_max_bytes" => 2_000_000});
    let large: Vec<Return> = (0..3).map(|_| returned("web1", "x".repeat(1_200_000))).collect();
    kafka.save_returns(&large).unwrap();
    let stored = server.messages("salt-returns", 3);
    assert!(stored.iter().all(|(_, _, content)| content.get("return").unwrap().as_str().unwrap().len() == 1_200_000));
}

#[test]
fn returns_wait_for_an_unreachable_server() {
    let port = free_port();
    let kafka = returner(port, map! {});
    let error = kafka.returner(&returned("early", 1)).unwrap_err();
    assert!(error.is_outage() && error.to_string().contains("Connection refused"), "{error}");
    let mut server = Kafka::start(port);
    kafka.returner(&returned("web1", 1)).unwrap();
    assert_eq!(server.messages("salt-returns", 1)[0].1, "web1");
    drop(server);
    let error = kafka.returner(&returned("late", 1)).unwrap_err();
    assert!(error.is_outage(), "{error}");
    let mut server = Kafka::start(port);
    kafka.returner(&returned("late", 1)).unwrap();
    assert_eq!(server.messages("salt-returns", 1)[0].1, "late");
}

#[test]
fn a_server_that_does_not_answer_is_an_outage() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let kafka = returner(silent.local_addr().unwrap().port(), map! {});
    let start = Instant::now();
    let error = kafka.returner(&returned("web1", 1)).unwrap_err();
    assert!(error.is_outage() && start.elapsed().as_secs() < 60, "{error}");
    assert!(error.to_string().ends_with("failed: the server does not answer"), "{error}");
}

#[test]
fn options_are_validated() {
    for (options, expected) in [
        (map! {"topic" => "t"}, "option 'returner.kafka.bootstrap': it is required"),
        (map! {"bootstrap" => "a:1"}, "option 'returner.kafka.topic': it is required"),
        (
            map! {"bootstrap" => list![], "topic" => "t"},
            "option 'returner.kafka.bootstrap': it is invalid: expected servers",
        ),
        (map! {"bootstrap" => list!["a:1", "b:x"], "topic" => "t"}, "option 'returner.kafka.bootstrap': it is invalid"),
        (map! {"bootstrap" => "a:1,b:2", "topic" => "t t"}, "option 'returner.kafka.topic': it is invalid"),
        (map! {"bootstrap" => "a:1", "topic" => ".."}, "option 'returner.kafka.topic': it is invalid"),
        (map! {"bootstrap" => "a:1", "topic" => "x".repeat(250)}, "option 'returner.kafka.topic': it is invalid"),
        (map! {"bootstrap" => "a:1", "topic" => "t", "event_topic" => "/"}, "option 'returner.kafka.event_topic'"),
        (
            map! {"bootstrap" => "a:1", "topic" => "t", "message_max_bytes" => 0},
            "option 'returner.kafka.message_max_bytes'",
        ),
    ] {
        let opts = map! {"returner.kafka" => options};
        let error = open("kafka", &Options::new(&opts, None)).err().unwrap().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    // Salt's notation: full names.
    let opts = map! {"returner.kafka.bootstrap" => list!["a:1"], "returner.kafka.topic" => "t"};
    assert!(open("kafka", &Options::new(&opts, None)).is_ok());
    let opts = map! {"returner" => map! {"kafka" => map! {"bootstrap" => "a,[::1]:2", "topic" => "t"}}};
    assert!(open("kafka", &Options::new(&opts, None)).is_ok());
}
