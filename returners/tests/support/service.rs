//! Servers on free ports of the loopback interface.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use brine_value::{Value, json};

/// The timeout of a server's start.
const START: Duration = Duration::from_secs(60);

/// Returns a port for a server.
pub fn free_port() -> u16 {
    brine_system::ports::free_port().unwrap()
}

/// A running server program.
pub struct Service {
    process: Child,
    pub port: u16,
}

impl Service {
    /// Starts a program, and waits until it accepts connections to a port.
    pub fn start(mut command: Command, package: &str, directory: &Path, port: u16) -> Self {
        let log = fs::File::create(directory.join("log")).unwrap();
        let started =
            command.current_dir(directory).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn();
        let process =
            started.unwrap_or_else(|error| panic!("{command:?}: {error}: install Debian's package {package}"));
        let mut service = Service { process, port };
        let deadline = Instant::now() + START;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let log = || fs::read_to_string(directory.join("log")).unwrap();
            assert!(service.process.try_wait().unwrap().is_none(), "{command:?} ended: {}", log());
            assert!(Instant::now() < deadline, "{command:?} does not answer: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
        service
    }

    pub fn memcached(directory: &Path, port: u16) -> Self {
        let mut command = Command::new("memcached");
        command.args(["-l", "127.0.0.1", "-u", "nobody", "-m", "128", "-I", "32m", "-p", &port.to_string()]);
        Service::start(command, "memcached", directory, port)
    }

    /// Starts SecantusDB of PyPI: MongoDB's protocol over WiredTiger, since MongoDB itself is in no package registry.
    pub fn mongo(directory: &Path, port: u16) -> Self {
        let python = std::env::var("BRINE_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let program = Path::new(&python).with_file_name("secantusd-py");
        let mut command = Command::new(program);
        command
            .args(["--host", "127.0.0.1", "--port", &port.to_string(), "--storage-path"])
            .arg(directory.join("mongo"));
        Service::start(command, "none, but SecantusDB with pip", directory, port)
    }

    pub fn etcd(directory: &Path, port: u16) -> Self {
        let peers = format!("http://127.0.0.1:{}", free_port());
        let client = format!("http://127.0.0.1:{port}");
        let mut command = Command::new("etcd");
        command.arg("--data-dir").arg(directory.join("etcd"));
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
        command.args(["--initial-cluster", &format!("default={peers}"), "--unsafe-no-fsync"]);
        Service::start(command, "etcd-server", directory, port)
    }

    pub fn influxdb(directory: &Path, port: u16) -> Self {
        let path = |name: &str| directory.join(name).display().to_string();
        let config = format!(
            "reporting-disabled = true\nbind-address = \"127.0.0.1:{}\"\n[meta]\ndir = \"{}\"\n[data]\ndir = \"{}\"\n\
             wal-dir = \"{}\"\n[http]\nbind-address = \"127.0.0.1:{port}\"\nlog-enabled = false\n",
            free_port(),
            path("meta"),
            path("data"),
            path("wal")
        );
        fs::write(directory.join("influxdb.conf"), config).unwrap();
        let mut command = Command::new("influxd");
        command.arg("-config").arg(directory.join("influxdb.conf"));
        Service::start(command, "influxdb", directory, port)
    }

    /// Starts a server of Graphite that accepts plain text on its port and pickles on another one, and stores the
    /// received metrics every second below `whisper`.
    pub fn carbon(directory: &Path, pickles: u16) -> Self {
        let port = free_port();
        let path = directory.display();
        fs::write(directory.join("storage-schemas.conf"), "[all]\npattern = .*\nretentions = 1s:1d\n").unwrap();
        let config = format!(
            "[cache]\nSTORAGE_DIR = {path}\nLOCAL_DATA_DIR = {path}/whisper\nCONF_DIR = {path}\nLOG_DIR = {path}\nPID_DIR = {path}\n\
             USER =\nLINE_RECEIVER_INTERFACE = 127.0.0.1\nLINE_RECEIVER_PORT = {port}\nPICKLE_RECEIVER_INTERFACE = 127.0.0.1\n\
             PICKLE_RECEIVER_PORT = {pickles}\nCACHE_QUERY_INTERFACE = 127.0.0.1\nCACHE_QUERY_PORT = {}\n\
             MAX_CREATES_PER_MINUTE = inf\nMAX_UPDATES_PER_SECOND = 1000\nENABLE_LOGROTATION = False\n",
            free_port()
        );
        fs::write(directory.join("carbon.conf"), config).unwrap();
        let mut command = Command::new("carbon-cache");
        command.arg("--config").arg(directory.join("carbon.conf")).args(["--debug", "--nodaemon", "start"]);
        Service::start(command, "graphite-carbon", directory, port)
    }

    /// Stops the server at once.
    pub fn stop(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have ended already.
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// A mail server of the Python package aiosmtpd.
pub struct MailServer {
    process: Child,
    lines: BufReader<ChildStdout>,
    pub port: u16,
}

impl MailServer {
    /// Starts a server. With a certificate and its key it offers TLS; then, and only then, it demands the login
    /// `fred`/`s3cret`.
    pub fn start(tls: Option<(&str, &str)>) -> Self {
        let python = std::env::var("BRINE_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/mail_server.py");
        let mut command = Command::new(python);
        command.arg(program).args(tls.iter().flat_map(|(certificate, key)| [certificate, key]));
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap());
        let mut server = MailServer { process, lines, port: 0 };
        let port = server.line();
        server.port = port.as_i64().unwrap_or_else(|| panic!("aiosmtpd is missing: install it with pip")) as u16;
        server
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        json::from_json(&line).unwrap_or_default()
    }

    /// Waits for the next mail: a mapping with `from`, `to`, `user`, `tls`, `subject`, `type` and `body`.
    pub fn mail(&mut self) -> Value {
        self.line()
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// A request received by [`http_server`].
#[derive(Debug)]
pub struct Request {
    /// The method and the path.
    pub line: String,
    /// The headers, names in lower case.
    pub headers: String,
    pub body: String,
}

/// Starts an HTTP server. `reply` returns status and body for a request.
pub fn http_server(reply: impl Fn(&Request) -> (u16, String) + Send + Sync + 'static) -> (String, Receiver<Request>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, requests) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let Some(request) = read_request(&mut stream) else { continue };
            let (status, body) = reply(&request);
            let length = body.len();
            let head = format!("HTTP/1.1 {status} Status\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            let body = if request.line.starts_with("HEAD") { "" } else { &body };
            _ = stream.get_mut().write_all(format!("{head}{body}").as_bytes());
            if sender.send(request).is_err() {
                return;
            }
        }
    });
    (url, requests)
}

fn read_request(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    stream.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let mut headers = String::new();
    loop {
        let mut header = String::new();
        stream.read_line(&mut header).ok()?;
        if header.trim().is_empty() {
            break;
        }
        let (name, value) = header.split_once(':')?;
        headers += &format!("{}:{value}", name.to_lowercase());
    }
    let length = headers.lines().find_map(|header| header.strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).ok()?;
    let line = line.rsplit_once(' ')?.0.to_owned();
    Some(Request { line, headers, body: String::from_utf8(body).unwrap() })
}
