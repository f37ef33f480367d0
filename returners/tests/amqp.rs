//! The returner amqp on a RabbitMQ server, read back by the client pika of Python.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::support::{RabbitServer, free_port, write_certificates};
use brine_event::Event;
use brine_job::Return;
use brine_returners::{Options, Returner, open};
use brine_value::{Map, Value, json, list, map};

fn returner(options: &Map, more: Map) -> Box<dyn Returner> {
    let mut options = options.clone();
    options.extend(more);
    let opts = map! {"ca_bundle" => options.shift_remove("ca_bundle").unwrap_or_default(), "amqp" => options};
    open("amqp", &Options::new(&opts, None)).unwrap()
}

fn returned(id: &str, value: impl Into<Value>) -> Return {
    let fields = map! {"jid" => "20261120235852025555", "id" => id, "fun" => "test.arg", "return" => value.into(), "retcode" => 0};
    Return::from_map(fields).unwrap()
}

/// Starts a server with a plain port and one with TLS.
fn rabbit(directory: &Path, port: u16, tls: u16) -> RabbitServer {
    let path = |name: &str| directory.join(name).display().to_string();
    let options = format!(
        "listeners.ssl.1 = 127.0.0.1:{tls}\nssl_options.cacertfile = {}\nssl_options.certfile = {}\n\
         ssl_options.keyfile = {}\nssl_options.verify = verify_none\n",
        path("ca.pem"),
        path("server.pem"),
        path("server.key")
    );
    RabbitServer::start(directory, port, &options)
}

/// A client that prints the messages of an exchange.
struct Reader {
    process: Child,
    lines: BufReader<ChildStdout>,
}

impl Reader {
    fn start(port: u16, exchange: &str) -> Self {
        let python = std::env::var("BRINE_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/amqp_reader.py");
        let mut command = Command::new(python);
        let mut process =
            command.arg(program).args([&port.to_string(), exchange]).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap());
        let mut reader = Reader { process, lines };
        assert_eq!(reader.next(), "ready".into(), "pika is missing: install it with pip");
        reader
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        json::from_json(&line).unwrap()
    }

    /// Returns the routing key and the content of the next message, which is persistent JSON.
    fn message(&mut self) -> (Value, Value) {
        let line = self.next();
        let fields = line.as_list().unwrap();
        assert_eq!(fields[1..3], ["application/json".into(), 2.into()]);
        (fields[0].clone(), json::from_json(fields[3].as_str().unwrap()).unwrap())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

#[test]
fn rabbitmq_gets_returns_and_events() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    write_certificates(directory.path());
    let (port, tls) = (free_port(), free_port());
    let mut server = rabbit(directory.path(), port, tls);
    let options = map! {"host" => "127.0.0.1", "port" => i64::from(port)};
    let amqp = returner(&options, map! {});
    let mut reader = Reader::start(port, "salt");
    amqp.returner(&returned("web1.example", list!["ü", 1])).unwrap();
    let expected: Value = returned("web1.example", list!["ü", 1]).map().clone().into();
    assert_eq!(reader.message(), ("ret.web1_example".into(), expected));
    let events = ["salt/job/1/ret/web1", "a"].map(|tag| Event::from_map(tag, &map! {"x" => 1}).unwrap());
    amqp.event_return(&events).unwrap();
    for (key, tag) in [("event.salt.job.1.ret.web1", "salt/job/1/ret/web1"), ("event.a", "a")] {
        assert_eq!(reader.message(), (key.into(), map! {"tag" => tag, "data" => map! {"x" => 1}}.into()));
    }
    amqp.returner(&returned(&"l".repeat(255), "x".repeat(10_000_000))).unwrap();
    let (key, content) = reader.message();
    assert_eq!(key, format!("ret.{}", "l".repeat(251)).into());
    assert_eq!(content.get("return").unwrap().as_str().unwrap().len(), 10_000_000);
    let many: Vec<Return> = (0..1000).map(|number| returned(&format!("m{number}"), number)).collect();
    amqp.save_returns(&many).unwrap();
    for number in 0..1000 {
        assert_eq!(reader.message().1.get("return"), Some(&number.into()));
    }
    for (more, expected, is_outage) in [
        (map! {"password" => "wr0ng"}, "check amqp.username, amqp.password and amqp.vhost", true),
        (map! {"vhost" => "none"}, "vhost none not found", false),
        (map! {"exchange" => "amq.direct"}, "declaring the topic exchange 'amq.direct' failed", false),
        (map! {"port" => 1}, "Connection refused", true),
        (map! {"host" => "localhost", "port" => i64::from(tls), "tls" => true}, "UnknownIssuer", true),
        (map! {"port" => i64::from(tls), "tls" => true, "ca_bundle" => path("ca.pem")}, "not valid for name", true),
    ] {
        let error = returner(&options, more.clone()).returner(&returned("web1", 1)).unwrap_err();
        assert!(error.to_string().contains(expected) && !error.to_string().contains("wr0ng"), "{more:?}: {error}");
        assert_eq!(error.is_outage(), is_outage, "{more:?}: {error}");
    }
    let secure = map! {"host" => "localhost", "port" => i64::from(tls), "tls" => true, "ca_bundle" => path("ca.pem")};
    returner(&options, secure).returner(&returned("web1", "by TLS")).unwrap();
    assert_eq!(reader.message().1.get("return"), Some(&"by TLS".into()));
    drop(reader);
    server.stop();
    let error = amqp.returner(&returned("late", 1)).unwrap_err();
    assert!(error.is_outage(), "{error}");
    let _server = rabbit(directory.path(), port, tls);
    amqp.returner(&returned("late", 1)).unwrap();
}

#[test]
fn exchanges_have_safe_names() {
    for name in ["a b", "ü", &"x".repeat(128)] {
        let opts = map! {"amqp" => map! {"exchange" => name}};
        let error = open("amqp", &Options::new(&opts, None)).err().unwrap().to_string();
        assert!(error.starts_with("option 'amqp.exchange': it is invalid"), "{error}");
    }
}
