//! Returners of other services on real servers: memcached, etcd, InfluxDB, Graphite and a mail server. Their data is read
//! back in its own form, and servers are stopped and started.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::{MailServer, Service, free_port, write_certificates};
use brine_event::Event;
use brine_job::{Load, Return};
use brine_returners::{Options, Returner, open};
use brine_value::{Map, Value, list, map};

const JID: &str = "20261120235852025555";

fn returner(name: &str, opts: &Map) -> Box<dyn Returner> {
    open(name, &Options::new(opts, None)).unwrap()
}

fn returned(id: &str, value: impl Into<Value>) -> Return {
    let fields = map! {"jid" => JID, "id" => id, "fun" => "test.arg", "return" => value.into(), "retcode" => 0, "success" => true};
    Return::from_map(fields).unwrap()
}

fn returns(returner: &dyn Returner) -> Map {
    returner.get_jid(&JID.parse().unwrap()).unwrap()
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Stops a server and starts it again: meanwhile errors are outages, and afterwards the returner works again.
fn restart(returner: &dyn Returner, service: Service, start: impl Fn() -> Service) -> Service {
    service.stop();
    let error = returner.returner(&returned("late", 1)).unwrap_err();
    assert!(error.is_outage(), "{error}");
    let service = start();
    returner.returner(&returned("late", 1)).unwrap();
    service
}

#[test]
fn memcache_has_salts_keys() {
    let directory = tempfile::tempdir().unwrap();
    let port = free_port();
    let server = Service::memcached(directory.path(), port);
    let memcache = returner("memcache", &map! {"memcache" => map! {"host" => "127.0.0.1", "port" => i64::from(port)}});
    memcache.save_load(&Load::from_map(map! {"jid" => JID, "fun" => "test.arg"}).unwrap()).unwrap();
    memcache.save_returns(&[returned("web1", "ü\r\nEND\r\n"), returned("web2", 2), returned("web1", "again")]).unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut value = |key: &str| {
        stream.write_all(format!("get {key}\r\n").as_bytes()).unwrap();
        let mut lines = BufReader::new(&stream).lines().map(Result::unwrap);
        assert!(lines.next().unwrap().starts_with(&format!("VALUE {key} 0 ")));
        let value = lines.next().unwrap();
        assert_eq!(lines.next().unwrap(), "END");
        value
    };
    assert_eq!(value("minions"), "web1,web2,");
    assert_eq!(value("jids"), format!("{JID},"));
    assert_eq!(value(JID), format!(r#"{{"jid": "{JID}", "fun": "test.arg"}}"#));
    let of_web1 = r#""id": "web1", "fun": "test.arg", "return": "ü\r\nEND\r\n", "retcode": 0, "success": true}"#;
    assert_eq!(value(&format!("{JID}:web1")), format!(r#"{{"jid": "{JID}", {of_web1}"#));
    assert!(value("test.arg:web2").contains(r#""return": 2"#));
    // A large return, and one that is too large for the server.
    memcache.returner(&returned("large", "x".repeat(10_000_000))).unwrap();
    assert_eq!(returns(&*memcache).len(), 3);
    let error = memcache.returner(&returned("huge", "x".repeat(40_000_000))).unwrap_err();
    assert!(!error.is_outage() && error.to_string().contains("too large"), "{error}");
    assert_eq!(memcache.get_minions().unwrap().len(), 3);
    let error = memcache.returner(&returned("a b", 1)).unwrap_err();
    assert!(error.to_string().contains("the key"), "{error}");
    let _server = restart(&*memcache, server, || Service::memcached(directory.path(), port));
    assert_eq!(returns(&*memcache).len(), 1, "a cache forgets");
}

#[test]
fn several_processes_share_the_lists_of_memcache() {
    let directory = tempfile::tempdir().unwrap();
    let port = free_port();
    let _server = Service::memcached(directory.path(), port);
    let opts = map! {"memcache.host" => "127.0.0.1", "memcache.port" => i64::from(port)};
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let opts = &opts;
            scope.spawn(move || {
                let memcache = returner("memcache", opts);
                for number in 0..25 {
                    memcache.returner(&returned(&format!("web{thread}-{number}"), 1)).unwrap();
                }
            });
        }
    });
    assert_eq!(returns(&*returner("memcache", &opts)).len(), 100);
}

#[test]
fn etcd_has_salts_keys() {
    let directory = tempfile::tempdir().unwrap();
    let port = free_port();
    let server = Service::etcd(directory.path(), port);
    let opts = map! {
        "etcd.returner" => "mine", "etcd.returner_root" => "/salt/mine",
        "mine" => map! {"etcd.host" => "127.0.0.1", "etcd.port" => i64::from(port), "etcd.encode_values" => false},
    };
    let etcd = returner("etcd", &opts);
    etcd.save_load(&Load::from_map(map! {"jid" => JID, "fun" => "test.arg"}).unwrap()).unwrap();
    etcd.save_returns(&[returned("web1", list!["ü", 1]), returned("web1", "again")]).unwrap();
    let endpoint = format!("--endpoints=127.0.0.1:{port}");
    let read = |key: &str, options: &[&str]| {
        let mut command = Command::new("etcdctl");
        output(command.env("ETCDCTL_API", "3").arg(&endpoint).arg("get").args(options).arg(key))
    };
    let keys = read("/salt/mine/jobs/", &["--prefix", "--keys-only"]);
    let fields = ["fun", "id", "jid", "retcode", "return", "success"];
    let expected: Vec<String> = std::iter::once(".load.p".to_owned())
        .chain(fields.iter().map(|field| format!("web1/{field}")))
        .map(|key| format!("/salt/mine/jobs/{JID}/{key}"))
        .collect();
    assert_eq!(keys.split_whitespace().collect::<Vec<_>>(), expected);
    assert_eq!(read(&format!("/salt/mine/jobs/{JID}/web1/return"), &["--print-value-only"]), "[\"ü\", 1]\n");
    assert_eq!(read("/salt/mine/minions/web1", &["--print-value-only"]), format!("{JID}\n"));
    let error = etcd.returner(&returned("large", "x".repeat(10_000_000))).unwrap_err();
    assert!(!error.is_outage() && error.to_string().contains("too large"), "{error}");
    // Salt's default encoding: msgpack.
    let packed =
        returner("etcd", &map! {"etcd.host" => "127.0.0.1", "etcd.port" => i64::from(port), "etcd.ttl" => 1000});
    packed.returner(&returned("web1", 1)).unwrap();
    // A string of 20 bytes begins with the byte b4, which is not UTF-8.
    assert_eq!(read("/salt/return/minions/web1", &["--print-value-only"]), format!("\u{fffd}{JID}\n"));
    let _server = restart(&*etcd, server, || Service::etcd(directory.path(), port));
    assert_eq!(returns(&*etcd).len(), 2);
}

#[test]
fn etcd_logs_in_again_when_its_token_has_expired() {
    let directory = tempfile::tempdir().unwrap();
    let port = free_port();
    let server = Service::etcd(directory.path(), port);
    let endpoint = format!("--endpoints=127.0.0.1:{port}");
    let run = |arguments: &str| {
        let mut command = Command::new("etcdctl");
        output(command.env("ETCDCTL_API", "3").arg(&endpoint).args(arguments.split(' ')))
    };
    for command in ["user add root:s3cret", "role add root", "user grant-role root root", "auth enable"] {
        run(command);
    }
    let opts = |password: &str| {
        map! {"etcd" => map! {"host" => "127.0.0.1", "port" => i64::from(port), "username" => "root", "password" => password}}
    };
    let etcd = returner("etcd", &opts("s3cret"));
    etcd.returner(&returned("web1", 1)).unwrap();
    // A restarted server does not accept its earlier tokens.
    let _server = restart(&*etcd, server, || Service::etcd(directory.path(), port));
    let error = returner("etcd", &opts("hush-hush")).returner(&returned("web1", 1)).unwrap_err().to_string();
    assert!(!error.contains("hush"), "{error}");
}

#[test]
fn influxdb_has_salts_points() {
    let directory = tempfile::tempdir().unwrap();
    let port = free_port();
    let server = Service::influxdb(directory.path(), port);
    let influxdb = returner("influxdb", &map! {"influxdb" => map! {"host" => "127.0.0.1", "port" => i64::from(port)}});
    let error = influxdb.get_minions().unwrap_err().to_string();
    assert!(error.contains("database not found: salt; `salt-run returner.setup influxdb` creates it"), "{error}");
    influxdb.setup().unwrap();
    influxdb.save_load(&Load::from_map(map! {"jid" => JID, "fun" => "test.arg"}).unwrap()).unwrap();
    influxdb.save_returns(&[returned("web 1,a=b", "a\"b\\c\nd"), returned("web2", 2), returned("web2", 3)]).unwrap();
    let read = |query: &str| {
        let mut command = Command::new("influx");
        command.args(["-host", "127.0.0.1", "-port", &port.to_string(), "-database", "salt", "-format", "csv"]);
        output(command.args(["-execute", query]))
    };
    let rows = read("SELECT fun, id, jid, \"return\", full_ret FROM returns WHERE id = 'web2'");
    assert!(rows.contains(&format!("test.arg,web2,{JID},2,")) && rows.contains("retcode"), "{rows}");
    assert_eq!(read("SELECT \"load\" FROM jids").lines().count(), 2);
    assert_eq!(returns(&*influxdb).get("web 1,a=b").unwrap().get("return"), Some(&"a\"b\\c\nd".into()));
    influxdb.returner(&returned("large", "x".repeat(10_000_000))).unwrap();
    assert_eq!(returns(&*influxdb).len(), 3);
    let _server = restart(&*influxdb, server, || Service::influxdb(directory.path(), port));
    assert_eq!(returns(&*influxdb).get("web2").unwrap().get("return"), Some(&2.into()));
}

/// Waits until Graphite has stored a metric, and returns its last value.
fn stored(directory: &Path, metric: &str) -> String {
    let file = directory.join("whisper").join(metric.replace('.', "/")).with_extension("wsp");
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if file.exists() {
            let rows = output(Command::new("whisper-fetch").arg("--drop=nulls").arg(&file));
            if let Some((_, value)) = rows.lines().last().and_then(|row| row.split_once('\t')) {
                return value.to_owned();
            }
        }
        assert!(Instant::now() < deadline, "{metric} is not stored");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn graphite_stores_numbers_of_both_protocols() {
    let directory = tempfile::tempdir().unwrap();
    let pickles = free_port();
    let server = Service::carbon(directory.path(), pickles);
    for (mode, port) in [("text", server.port), ("pickle", pickles)] {
        let opts = map! {"carbon" => map! {"host" => "127.0.0.1", "port" => i64::from(port), "mode" => mode}};
        let carbon = returner("carbon", &opts);
        carbon
            .returner(&returned(&format!("{mode}.example"), map! {"load" => map! {"1-min" => 0.5}, "n" => 7}))
            .unwrap();
        carbon
            .event_return(&[Event::from_map(mode, &map! {"data" => map! {"free" => 12.25, "name" => "x"}}).unwrap()])
            .unwrap();
        assert_eq!(stored(directory.path(), &format!("test.arg.{mode}_example.load.1-min")), "0.500000");
        assert_eq!(stored(directory.path(), &format!("test.arg.{mode}_example.n")), "7.000000");
        assert_eq!(stored(directory.path(), &format!("{mode}.free")), "12.250000");
        let error = carbon.returner(&returned("web1", "word")).unwrap_err();
        assert!(!error.is_outage(), "{error}");
    }
    let opts = map! {"carbon.host" => "127.0.0.1", "carbon.port" => i64::from(server.port)};
    server.stop();
    assert!(returner("carbon", &opts).returner(&returned("web1", 1)).unwrap_err().is_outage());
}

fn mail_options(port: u16) -> Map {
    map! {"from" => "salt@example.org", "to" => "a@example.org, B <b@example.org>", "host" => "localhost", "port" => i64::from(port)}
}

#[test]
fn returns_and_events_are_mails() {
    let mut server = MailServer::start(None);
    let directory = tempfile::tempdir().unwrap();
    let template = directory.path().join("mail.j2");
    std::fs::write(&template, "act: {{ act }}\nid: {{ id }}").unwrap();
    let mut options = mail_options(server.port);
    options.extend(map! {"subject" => "Key of {{ id }}", "fields" => "fun,missing"});
    let opts = map! {"smtp" => options, "keys.smtp.template" => template.display().to_string()};
    returner("smtp", &opts).returner(&returned("wéb\u{1f9c2}", list!["{{ 1 }}", "ü"])).unwrap();
    let mail = server.mail();
    for (name, expected) in [
        ("from", "salt@example.org".into()),
        ("to", list!["a@example.org", "b@example.org"]),
        ("tls", false.into()),
        ("subject", "Key of wéb\u{1f9c2} test.arg".into()),
        ("type", "text/plain".into()),
    ] {
        assert_eq!(mail.get(name), Some(&expected), "{name}");
    }
    let body = mail.get("body").unwrap().to_string();
    assert!(body.contains("function: test.arg") && body.contains("return: ['{{ 1 }}', 'ü']"), "{body}");
    let of_keys = open("smtp", &Options::new(&opts, None).for_job(Some("keys"), &map! {})).unwrap();
    of_keys.event_return(&[Event::from_map("salt/key", &map! {"act" => "accept", "id" => "web1"}).unwrap()]).unwrap();
    let mail = server.mail();
    assert_eq!(mail.get("subject"), Some(&"Key of web1".into()));
    assert!(mail.get("body").unwrap().to_string().starts_with("act: accept"), "{mail}");
    let port = server.port;
    drop(server);
    let error = returner("smtp", &map! {"smtp" => mail_options(port)}).returner(&returned("web1", 1)).unwrap_err();
    assert!(error.is_outage(), "{error}");
}

#[test]
fn mail_servers_are_verified_and_get_the_password_by_tls_only() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    write_certificates(directory.path());
    let mut server = MailServer::start(Some((&path("server.pem"), &path("server.key"))));
    let mut options = mail_options(server.port);
    options.extend(map! {"username" => "fred", "password" => "s3cret", "tls" => true});
    let opts = map! {"smtp" => options.clone(), "ca_bundle" => path("ca.pem")};
    returner("smtp", &opts).returner(&returned("web1", 1)).unwrap();
    let mail = server.mail();
    assert_eq!((mail.get("user"), mail.get("tls")), (Some(&"fred".into()), Some(&true.into())));
    for (change, expected) in [
        (map! {"password" => "wr0ng"}, ""),
        (map! {"host" => "127.0.0.1"}, "not valid for name"),
        (map! {"tls" => false}, "No compatible authentication mechanism"),
    ] {
        let mut options = options.clone();
        options.extend(change);
        let opts = map! {"smtp" => options, "ca_bundle" => path("ca.pem")};
        let error = returner("smtp", &opts).returner(&returned("web1", 1)).unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains("s3cret") && !error.contains("wr0ng"), "{error}");
    }
    let untrusted = returner("smtp", &map! {"smtp" => options}).returner(&returned("web1", 1)).unwrap_err().to_string();
    assert!(untrusted.contains("UnknownIssuer"), "{untrusted}");
}

#[test]
fn reports_of_state_runs_are_mails() {
    let mut server = MailServer::start(None);
    let opts = map! {"id" => "web1", "highstate" => map! {
        "report_format" => "html", "report_delivery" => "smtp", "smtp_server" => "localhost", "smtp_port" => i64::from(server.port),
        "smtp_sender" => "salt@example.org", "smtp_recipients" => "a@example.org, b@example.org",
        "smtp_failure_subject" => "failed on {id}",
    }};
    let states =
        map! {"pkg_|-a_|-a_|-installed" => map! {"result" => false, "comment" => "<no>", "changes" => map! {}}};
    returner("highstate", &opts).returner(&returned("web1", states)).unwrap();
    let mail = server.mail();
    assert_eq!(mail.get("subject"), Some(&"failed on web1".into()));
    assert_eq!(mail.get("type"), Some(&"text/html".into()));
    assert!(mail.get("body").unwrap().to_string().contains("&lt;no&gt;"), "{mail}");
}

/// Starts a NATS server with JetStream and the login `fred`/`s3cret`.
#[cfg(feature = "nats")]
fn nats_server(directory: &Path, port: u16) -> Service {
    let mut command = Command::new("nats-server");
    command.args(["-a", "127.0.0.1", "-p", &port.to_string(), "--user", "fred", "--pass", "s3cret", "-js", "-sd"]);
    command.arg(directory.join("jetstream"));
    Service::start(command, "nats-server", directory, port)
}

#[cfg(feature = "nats")]
#[test]
fn nats_servers_get_returns_and_events() {
    let directory = tempfile::tempdir().unwrap();
    let port = free_port();
    let server = nats_server(directory.path(), port);
    let options = map! {"url" => format!("nats://127.0.0.1:{port}"), "username" => "fred", "password" => "s3cret"};
    let nats = returner("nats", &map! {"nats" => options.clone()});
    // A subscriber, in the protocol itself.
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
        .write_all(b"CONNECT {\"verbose\":false,\"user\":\"fred\",\"pass\":\"s3cret\"}\r\nSUB salt.> 1\r\nPING\r\n")
        .unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
    assert!(lines.by_ref().any(|line| line == "PONG"));
    nats.returner(&returned("web1.example *", list!["ü", 1])).unwrap();
    assert!(lines.next().unwrap().starts_with("MSG salt.ret.web1_example__ 1 "));
    let payload = brine_value::json::from_json(&lines.next().unwrap()).unwrap();
    assert_eq!(payload, returned("web1.example *", list!["ü", 1]).map().clone().into());
    nats.event_return(&["a", "b"].map(|tag| Event::from_map(tag, &map! {"x" => 1}).unwrap())).unwrap();
    for tag in ["a", "b"] {
        assert!(lines.next().unwrap().starts_with("MSG salt.event 1 "));
        let payload = brine_value::json::from_json(&lines.next().unwrap()).unwrap();
        assert_eq!(payload, map! {"tag" => tag, "data" => map! {"x" => 1}}.into());
    }
    let error = nats.returner(&returned("large", "x".repeat(10_000_000))).unwrap_err();
    assert!(!error.is_outage() && error.to_string().contains("it takes 1048576"), "{error}");
    // JetStream: an error without a stream, and stored messages with one.
    let with = |more: Map| {
        let mut options = options.clone();
        options.extend(more);
        returner("nats", &map! {"nats" => options})
    };
    let stored = with(map! {"jetstream" => true});
    let error = stored.returner(&returned("web1", 1)).unwrap_err();
    assert!(!error.is_outage(), "{error}");
    let create = r#"{"name":"SALT","subjects":["salt.>"]}"#;
    let request = format!("SUB reply 2\r\nPUB $JS.API.STREAM.CREATE.SALT reply {}\r\n{create}\r\n", create.len());
    stream.write_all(request.as_bytes()).unwrap();
    assert!(lines.by_ref().any(|line| line.contains("io.nats.jetstream.api.v1.stream_create_response")));
    stored.save_returns(&[returned("web1", 1), returned("web2", 2)]).unwrap();
    let error = with(map! {"password" => "wr0ng"}).returner(&returned("web1", 1)).unwrap_err();
    assert!(!error.to_string().contains("wr0ng") && !error.to_string().contains("s3cret"), "{error}");
    let _server = restart(&*nats, server, || nats_server(directory.path(), port));
}
