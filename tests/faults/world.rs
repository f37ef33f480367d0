//! One master, one minion, the REST API and a returner with their proxies, files and command lines.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use brine_bus::SocketNames;
use brine_value::{Value, json};
use brine_zmtp::Endpoint;

use super::process::Daemon;
use super::redis::{self, Redis};
use super::web;
use crate::support::proxy::Proxy;
use crate::support::{BRINE, System, free_port};

/// The minion that runs the jobs.
pub const MINION: &str = "real";
/// The timeout for starting or stopping a daemon on a busy machine.
pub const DAEMON: Duration = Duration::from_secs(60);

const MASTER: &str = "auto_accept: True
event_journal_hours: 1000
keep_jobs: 1000
reactor:
  - 'fault/local/*': [ROOT/local.sls]
  - 'fault/runner/*': [ROOT/runner.sls]
";
/// The job's line holds the number of its event and the time at which it ran, in nanoseconds.
const LOCAL: &str = "{% set line = 'echo ' ~ tag.split('/')[-1] ~ ' $(date +%s%N) >> ROOT/reactions' %}
run:
  local.cmd.run:
    - tgt: real
    - arg: [{{ line | yaml_encode }}]
";
const RUNNER: &str = "{% set again = 'fault/reacted/' ~ tag.split('/')[-1] %}
run:
  runner.event.send:
    - tag: {{ again | yaml_encode }}
";

/// The settings of the master's start.
#[derive(Default)]
pub struct Start {
    /// The limit of file descriptors.
    pub descriptors: Option<u32>,
    /// Variables of the environment.
    pub environment: Vec<(String, PathBuf)>,
}

pub struct World {
    pub system: System,
    /// The proxy of the request port.
    pub requests: Proxy,
    /// The proxy of the publish port.
    pub publishes: Proxy,
    /// The server of the returner.
    pub redis: Redis,
    /// The port of the REST API.
    pub api_port: u16,
    master: Option<Daemon>,
    minion: Option<Daemon>,
    api: Option<Daemon>,
    start: Start,
    minion_environment: Vec<(String, PathBuf)>,
}

/// Returns the binary under test: Cargo's, or that of `BRINE_FAULTS_BINARY`.
pub fn binary() -> String {
    std::env::var("BRINE_FAULTS_BINARY").unwrap_or_else(|_| BRINE.to_owned())
}

impl World {
    /// Writes the files; no daemon runs yet.
    pub async fn new() -> Result<Self, String> {
        let api_port = free_port();
        let system =
            System::new(&format!("{MASTER}{}{}", redis::OPTIONS, web::OPTIONS.replace("PORT", &api_port.to_string())));
        let redis = Redis::start(&system.path("redis")).await?;
        system.write("users", web::USERS);
        system.write("local.sls", LOCAL);
        system.write("runner.sls", RUNNER);
        let requests = Proxy::start(system.ret_port).await;
        let publishes = Proxy::start(system.publish_port).await;
        let root = system.path("").display().to_string();
        let (request_port, publish_port) = (requests.port, publishes.port);
        let minion = format!(
            "id: {MINION}\nroot_dir: {root}\npki_dir: {root}/{MINION}/pki\ncachedir: {root}/{MINION}/cache\n\
             sock_dir: {root}/run\npidfile: {root}/{MINION}.pid\nmaster: 127.0.0.1\nmaster_port: {request_port}\n\
             publish_port: {publish_port}\nacceptance_wait_time: 1\nrecon_default: 50\nrecon_max: 500\n"
        );
        system.write(&format!("{MINION}/etc/minion"), &minion);
        Ok(World {
            system,
            redis,
            requests,
            publishes,
            api_port,
            master: None,
            minion: None,
            api: None,
            start: Start::default(),
            minion_environment: Vec::new(),
        })
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.system.path(relative)
    }

    /// Sets the settings of further starts of the master.
    pub fn start_with(&mut self, start: Start) {
        self.start = start;
    }

    /// Sets variables of the environment for further starts of the minion.
    pub fn start_minion_with(&mut self, environment: Vec<(String, PathBuf)>) {
        self.minion_environment = environment;
    }

    /// Starts the master and waits until it serves.
    pub async fn start_master(&mut self) -> Result<(), String> {
        let mut command = Command::new("sh");
        let limit = self.start.descriptors.map_or(String::new(), |count| format!("ulimit -n {count}; "));
        command.args(["-c", &format!("{limit}exec \"$0\" \"$@\""), &binary()]);
        command.args(["salt-master", "-c", &self.system.etc(), "-l", "info"]);
        command.envs(self.start.environment.iter().map(|(name, path)| (name, path)));
        let mut daemon = Daemon::spawn(logging_to(&mut command, &self.path("master.log")))?;
        until_served(&mut daemon, "master", &self.path("master.pid")).await?;
        self.master = Some(daemon);
        Ok(())
    }

    /// Starts the REST API and waits until it serves.
    pub async fn start_api(&mut self) -> Result<(), String> {
        let mut command = Command::new(binary());
        command.args(["salt-api", "-c", &self.system.etc(), "-l", "info"]);
        let mut daemon = Daemon::spawn(logging_to(&mut command, &self.path("api.log")))?;
        until_served(&mut daemon, "API", &self.path("api.pid")).await?;
        self.api = Some(daemon);
        Ok(())
    }

    pub fn kill_api(&mut self) {
        if let Some(api) = self.api.take() {
            api.kill();
        }
    }

    pub fn kill_master(&mut self) {
        if let Some(master) = self.master.take() {
            master.kill();
        }
    }

    pub async fn stop_master(&mut self) -> Result<(), String> {
        match self.master.take() {
            Some(master) => master.terminate(Duration::from_secs(30)).await,
            None => Ok(()),
        }
    }

    /// Returns an error if the master or the API has ended unexpectedly.
    pub fn check_daemons(&mut self) -> Result<(), String> {
        for (name, daemon) in [("master", &mut self.master), ("API", &mut self.api)] {
            if let Some(status) = daemon.as_mut().and_then(Daemon::ended) {
                return Err(format!("the {name} ended by itself: {status}"));
            }
        }
        Ok(())
    }

    /// Starts the minion and waits for its start event.
    pub async fn start_minion(&mut self) -> Result<(), String> {
        let mut events = self.system.events(&format!("salt/minion/{MINION}/")).await;
        let mut command = Command::new(binary());
        let etc = self.path(MINION).join("etc");
        command.args(["salt-minion", "-c", &etc.display().to_string(), "-l", "info"]);
        command.envs(self.minion_environment.iter().map(|(name, path)| (name, path)));
        self.minion = Some(Daemon::spawn(logging_to(&mut command, &self.path("real.log")))?);
        let tag = format!("salt/minion/{MINION}/start");
        let started = tokio::time::timeout(DAEMON, events.until(&tag)).await;
        started.map(drop).map_err(|_| format!("the minion has not started after {} s", DAEMON.as_secs()))
    }

    pub fn kill_minion(&mut self) {
        if let Some(minion) = self.minion.take() {
            minion.kill();
        }
    }

    /// Kills all daemons at once.
    pub fn kill_all(&mut self) {
        self.kill_api();
        self.kill_minion();
        self.kill_master();
    }

    pub fn pull_endpoint(&self) -> Endpoint {
        SocketNames::master().pull_endpoint(&self.path("run"))
    }

    pub fn publish_endpoint(&self) -> Endpoint {
        SocketNames::master().publish_endpoint(&self.path("run"))
    }

    /// Returns the command line of a tool with the master's configuration.
    pub fn tool(&self, tool: &str, words: &[&str]) -> Command {
        let mut command = crate::support::within_limit(&binary());
        command.arg(tool).args(["-c", &self.system.etc()]).args(words).stdin(Stdio::null());
        command
    }

    /// Calls a runner function and returns its result.
    pub async fn runner(&self, words: &[&str]) -> Result<Value, String> {
        let output = run(self.tool("salt-run", &[&["--out=json"], words].concat())).await;
        let text = crate::support::stdout(&output);
        match json::from_json(&text) {
            Ok(value) if output.status.success() => Ok(value),
            _ => Err(format!("{} failed: {text}{}", words.join(" "), crate::support::stderr(&output))),
        }
    }

    /// Copies the daemons' logs to a place outside of the round's directory.
    pub fn keep_logs(&self, name: &str) -> PathBuf {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults").join(name);
        let _exists = std::fs::create_dir_all(&directory);
        for log in ["master.log", "real.log", "api.log", "reactions", "jobs"] {
            let _absent = std::fs::copy(self.path(log), directory.join(log));
        }
        directory
    }
}

/// Waits for the PID file of a daemon, which is written when all its sockets are served.
async fn until_served(daemon: &mut Daemon, name: &str, file: &Path) -> Result<(), String> {
    let (pid, start) = (daemon.pid().to_string(), Instant::now());
    while !std::fs::read_to_string(file).is_ok_and(|text| text.trim() == pid) {
        if let Some(status) = daemon.ended() {
            return Err(format!("the {name} ended while it started: {status}"));
        }
        if start.elapsed() > DAEMON {
            return Err(format!("the {name} does not serve after {} s", DAEMON.as_secs()));
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

fn logging_to<'a>(command: &'a mut Command, log: &Path) -> &'a mut Command {
    let log = std::fs::File::options().create(true).append(true).open(log).unwrap();
    command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log)
}

/// Runs a command without blocking the test's runtime.
pub async fn run(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}
