//! A master and minions for tests: the real binary, on free ports, in its own directory, killed on drop.

pub mod api;
pub mod balancer;
pub mod browser;
pub mod clock;
#[allow(dead_code, reason = "the tests of returners use the rest")]
#[path = "../../returners/tests/support/database.rs"]
pub mod database;
#[cfg(feature = "interop")]
pub mod fleet;
pub mod linearizability;
pub mod local_minion;
pub mod nats;
#[cfg(feature = "pam")]
pub mod pam;
pub mod proxy;
#[path = "../../returners/tests/support/rabbitmq.rs"]
pub mod rabbitmq;
pub mod raw;
#[cfg(feature = "interop")]
pub mod salt;
#[allow(dead_code, reason = "the tests of returners use the rest")]
#[path = "../../returners/tests/support/service.rs"]
pub mod service;
pub mod sshd;
pub mod syndic;
pub mod zmtp;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use brine_agent::channel::Channel;
use brine_bus::SocketNames;
use brine_config::MinionConfig;
use brine_event::Event;
use brine_runtime::executors::Executor;
use brine_value::{Map, Value};
use brine_zmtp::{Endpoint, Limits, Subscriber};
use nix::sys::signal::Signal;

pub use service::free_port;

pub const BRINE: &str = env!("CARGO_BIN_EXE_brine");
/// The timeout of all waits, for busy machines; successful tests never reach it.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the executor of a channel. Must be called within a runtime.
pub fn crypto() -> Executor {
    Executor::new("crypto", 2, 100)
}

pub const AUTH: &str = "{% if 'act' in data and data['act']  == 'pend' and data['id'].endswith('_youshi') %}
minion_add:
  wheel.key.accept:
    - match: {{ data['id'] }}
{% endif %}
";
pub const START: &str = "highstate_run:
  local.state.highstate:
    - tgt: {{ data['id'] }}
";

/// A system below one directory.
pub struct System {
    directory: tempfile::TempDir,
    pub publish_port: u16,
    pub ret_port: u16,
    master: Option<Child>,
    minions: Vec<(String, Child)>,
    extra: String,
}

impl System {
    /// Creates a directory with a master's configuration; `extra` is added to it.
    pub fn new(extra: &str) -> Self {
        let directory = tempfile::Builder::new().prefix("brine").tempdir().unwrap();
        let ports = (free_port(), free_port());
        let system = System {
            directory,
            publish_port: ports.0,
            ret_port: ports.1,
            master: None,
            minions: Vec::new(),
            extra: extra.to_owned(),
        };
        system.write_master();
        system
    }

    /// Starts a master that accepts every key.
    pub async fn start(extra: &str) -> Self {
        let mut system = System::new(&format!("auto_accept: True\n{extra}"));
        system.start_master().await;
        system
    }

    fn write_master(&self) {
        let root = self.path("");
        let root = root.display();
        let text = format!(
            "root_dir: {root}\npki_dir: {root}/pki\ncachedir: {root}/cache\nsock_dir: {root}/run\npidfile: {root}/master.pid\n\
             interface: 127.0.0.1\npublish_port: {}\nret_port: {}\ntimeout: 5\nfile_roots: {{base: ['{root}/srv/salt']}}\n\
             pillar_roots: {{base: ['{root}/srv/pillar']}}\n{}",
            self.publish_port,
            self.ret_port,
            self.extra.replace("ROOT", &root.to_string())
        );
        self.write("etc/master", &text);
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        if relative.is_empty() { self.directory.path().to_owned() } else { self.directory.path().join(relative) }
    }

    pub fn write(&self, relative: &str, text: &str) -> PathBuf {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text.replace("ROOT", &self.directory.path().display().to_string())).unwrap();
        path
    }

    pub fn etc(&self) -> String {
        self.path("etc").display().to_string()
    }

    /// Starts the master and waits until it serves.
    pub async fn start_master(&mut self) {
        self.start_master_with(&[]).await;
    }

    /// Starts the master as [`System::start_master`], with additional environment variables.
    pub async fn start_master_with(&mut self, env: &[(&str, &str)]) {
        let log = std::fs::File::options().create(true).append(true).open(self.path("master.log")).unwrap();
        let child = Command::new(BRINE)
            .args(["salt-master", "-c", &self.etc(), "-l", "info"])
            .envs(env.iter().copied())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.master = Some(child);
        // The PID file means that all sockets are served.
        let pid = self.master.as_ref().unwrap().id().to_string();
        let file = self.path("master.pid");
        until("the master serves", || {
            let ended = self.master.as_mut().unwrap().try_wait().unwrap();
            assert!(
                ended.is_none(),
                "the master ended: {}",
                std::fs::read_to_string(self.directory.path().join("master.log")).unwrap_or_default()
            );
            std::fs::read_to_string(&file).is_ok_and(|text| text.trim() == pid)
        })
        .await;
    }

    pub fn master_log(&self) -> String {
        std::fs::read_to_string(self.path("master.log")).unwrap_or_default()
    }

    pub fn minion_log(&self, id: &str) -> String {
        std::fs::read_to_string(self.path(&format!("{id}.log"))).unwrap_or_default()
    }

    /// Kills the master as a crash would.
    pub fn kill_master(&mut self) {
        let mut child = self.master.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Returns the PID of the running master.
    pub fn master_pid(&self) -> u32 {
        self.master.as_ref().unwrap().id()
    }

    /// Stops the master as an operator would.
    pub fn stop_master(&mut self) {
        end(self.master.take().unwrap(), Signal::SIGTERM);
    }

    /// Returns the master's process: the caller ends it.
    pub fn take_master(&mut self) -> Child {
        self.master.take().unwrap()
    }

    pub fn configure_minion(&self, id: &str, extra: &str) -> PathBuf {
        let root = self.path("");
        let root = root.display();
        let text = format!(
            "id: {id}\nroot_dir: {root}\npki_dir: {root}/{id}/pki\ncachedir: {root}/{id}/cache\nsock_dir: {root}/run\n\
             pidfile: {root}/{id}.pid\nmaster: 127.0.0.1\nmaster_port: {}\nacceptance_wait_time: 1\nrecon_default: 50\nrecon_max: 200\n{}",
            self.ret_port,
            extra.replace("ROOT", &root.to_string())
        );
        self.write(&format!("{id}/etc/minion"), &text);
        self.path(&format!("{id}/etc"))
    }

    /// Starts a minion without waiting for it.
    pub fn spawn_minion(&mut self, id: &str) {
        self.spawn_minion_with(id, &[]);
    }

    /// Starts a minion as [`System::spawn_minion`], with additional environment variables.
    pub fn spawn_minion_with(&mut self, id: &str, env: &[(&str, &str)]) {
        let log = std::fs::File::options().create(true).append(true).open(self.path(&format!("{id}.log"))).unwrap();
        let child = Command::new(BRINE)
            .args(["salt-minion", "-c", &self.path(&format!("{id}/etc")).display().to_string(), "-l", "info"])
            .envs(env.iter().copied())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.minions.push((id.to_owned(), child));
    }

    /// Starts a minion and waits for its start event.
    pub async fn start_minion(&mut self, id: &str) {
        self.configure_minion(id, "");
        let mut events = self.events("salt/minion/").await;
        self.spawn_minion(id);
        events.until(&format!("salt/minion/{id}/start")).await;
    }

    /// Returns the PID of a running minion.
    pub fn minion_pid(&self, id: &str) -> u32 {
        self.minions.iter().find(|(name, _)| name == id).unwrap().1.id()
    }

    pub fn kill_minion(&mut self, id: &str) {
        let at = self.minions.iter().position(|(name, _)| name == id).unwrap();
        let (_, mut child) = self.minions.remove(at);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Stops a minion as an operator would.
    pub fn stop_minion(&mut self, id: &str) {
        let at = self.minions.iter().position(|(name, _)| name == id).unwrap();
        end(self.minions.remove(at).1, Signal::SIGTERM);
    }

    /// Subscribes to the master's events with a tag prefix.
    pub async fn events(&self, prefix: &str) -> Events {
        Events::follow(&self.path("run"), prefix).await
    }

    /// Returns a channel of a minion that offers this cipher alone; its key is in the directory of the minion's name.
    pub fn channel(&self, id: &str, cipher: &str) -> Arc<Channel> {
        self.channel_by(self.ret_port, id, cipher)
    }

    /// Returns a channel as [`System::channel`], by a port that leads to the master.
    pub fn channel_by(&self, port: u16, id: &str, cipher: &str) -> Arc<Channel> {
        let config = MinionConfig {
            pki_dir: self.path(id),
            master_port: port,
            ciphers: vec![cipher.to_owned()],
            ..MinionConfig::default()
        };
        Arc::new(Channel::new(id.parse().unwrap(), Arc::new(config), "127.0.0.1", crypto()).unwrap())
    }

    pub fn request_endpoint(&self) -> Endpoint {
        Endpoint::Tcp("127.0.0.1".into(), self.ret_port)
    }

    pub fn root_key(&self) -> String {
        std::fs::read_to_string(brine_master_access::access::root_key_path(&self.path("cache"), None)).unwrap()
    }

    /// Runs a tool with the master's configuration.
    pub fn tool(&self, tool: &str, words: &[&str]) -> Output {
        within_limit(BRINE).arg(tool).args(["-c", &self.etc()]).args(words).stdin(Stdio::null()).output().unwrap()
    }

    /// Runs a tool with these words alone.
    pub fn command(tool: &str, words: &[&str]) -> Output {
        within_limit(BRINE).arg(tool).args(words).stdin(Stdio::null()).output().unwrap()
    }

    /// Runs like [`System::tool`], without blocking the test's runtime.
    pub async fn tool_async(&self, tool: &str, words: &[&str]) -> Output {
        let mut command = within_limit(BRINE);
        command.arg(tool).args(["-c", &self.etc()]).args(words).stdin(Stdio::null());
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }

    /// Returns one of the master's metrics.
    pub fn counter(&self, name: &str) -> i64 {
        let text = stdout(&self.tool("salt-run", &["metrics.show", "--out=json"]));
        brine_value::json::from_json(&text).unwrap().get(name).and_then(Value::as_i64).unwrap()
    }

    /// Returns the JSON of `salt --static --out=json`.
    pub fn salt_json(&self, words: &[&str]) -> Value {
        let all: Vec<&str> = [&["--static", "--out=json"], words].concat();
        let output = self.tool("salt", &all);
        let text = stdout(&output);
        brine_value::json::from_json(&text).unwrap_or_else(|_| panic!("{text}{}", stderr(&output)))
    }
}

impl Drop for System {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- master\n{}", self.master_log());
            for (id, _) in &self.minions {
                eprintln!("--- {id}\n{}", self.minion_log(id));
            }
        }
        for (_, child) in self.minions.drain(..) {
            // Their jobs are of no interest any more.
            end(child, Signal::SIGINT);
        }
        if let Some(child) = self.master.take() {
            end(child, Signal::SIGTERM);
        }
    }
}

fn end(mut child: Child, signal: Signal) {
    let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
    let _ = nix::sys::signal::kill(pid, signal);
    let start = std::time::Instant::now();
    while start.elapsed() < Duration::from_secs(15) {
        if child.try_wait().unwrap().is_some() {
            return;
        }
        std::thread::yield_now();
    }
    let _ = child.kill();
    let _ = child.wait();
    assert!(std::thread::panicking(), "a daemon did not stop on {signal}");
}

/// Polls a condition that no event announces.
pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !is_so() {
        assert!(start.elapsed() < TIMEOUT, "timed out waiting for: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// A subscription to events.
pub struct Events(Subscriber);

impl Events {
    /// Subscribes to the events of the master with sockets in this directory.
    pub async fn follow(sock_dir: &Path, prefix: &str) -> Self {
        let endpoint = SocketNames::master().publish_endpoint(sock_dir);
        Events(Subscriber::connect(&endpoint, &[prefix.as_bytes()], Limits::default()).await.unwrap())
    }

    pub async fn next(&mut self) -> (String, Map) {
        let frames =
            tokio::time::timeout(TIMEOUT, self.0.recv()).await.expect("timed out waiting for an event").unwrap();
        let event = Event::from_frame(frames[0].clone()).unwrap();
        (event.tag().to_owned(), event.data())
    }

    /// Returns the next event; `None` if the master has ended.
    pub async fn next_if_any(&mut self) -> Option<(String, Map)> {
        let frames = self.0.recv().await.ok()?;
        let event = Event::from_frame(frames.first()?.clone()).ok()?;
        Some((event.tag().to_owned(), event.data()))
    }

    /// Returns the first event whose tag matches this glob.
    pub async fn until(&mut self, pattern: &str) -> (String, Map) {
        loop {
            let (tag, data) = self.next().await;
            if brine_text::glob::fnmatch(pattern, &tag) {
                return (tag, data);
            }
        }
    }
}

/// Returns a command that is killed after a time limit, so that a test fails rather than hangs.
pub fn within_limit(program: &str) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "120", program]);
    command
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub fn text(map: &Map, key: &str) -> String {
    map.get(key).map(ToString::to_string).unwrap_or_default()
}

/// Runs a Python script with pyzmq and msgpack. Returns its output.
pub fn python(script: &str, words: &[&Path]) -> String {
    let python = std::env::var("BRINE_TEST_PYTHON").expect("run the tests by tests/run, which installs pyzmq");
    let mut child =
        within_limit(&python).arg("-").args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    stdout(&output)
}
