//! The files and processes of a system below one directory.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use brine_system::ports::free_port;
use brine_system::user_files;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rand::RngExt as _;

/// The reactor files of `reactor.d/` and a small state tree.
const FILES: &[(&str, &str)] = &[
    ("reactor.d/auth.sls", include_str!("../../../reactor.d/auth.sls")),
    ("reactor.d/start.sls", include_str!("../../../reactor.d/start.sls")),
    ("srv/salt/top.sls", include_str!("tree/top.sls")),
    ("srv/salt/hello.sls", include_str!("tree/hello.sls")),
    ("srv/salt/web.sls", include_str!("tree/web.sls")),
    ("srv/salt/site.conf.j2", include_str!("tree/site.conf.j2")),
];

/// The timeout of stopping the daemons.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// The REST API of the system.
struct Web {
    port: u16,
    /// The password of the user `admin` until the system stops.
    password: String,
}

/// A master and its minions, a process each.
pub(super) struct System {
    directory: PathBuf,
    minions: Vec<String>,
    ports: (u16, u16),
    web: Option<Web>,
    running: Vec<(String, Child)>,
}

impl System {
    /// Writes the configuration and starts the master. Keys and states of an earlier run are kept.
    pub fn start(directory: &Path, count: u32, web: bool) -> anyhow::Result<Self> {
        let minions = (1..=count.div_ceil(2)).flat_map(|n| [format!("web{n}"), format!("db{n}")]).take(count as usize);
        let mut system = System {
            directory: directory.to_owned(),
            minions: minions.collect(),
            ports: (free_port()?, free_port()?),
            web: web.then(Web::new).transpose()?,
            running: Vec::new(),
        };
        system.write()?;
        system.spawn("master", &["salt-master", "-c", &path_text(&directory.join("etc"))])?;
        Ok(system)
    }

    fn write(&self) -> anyhow::Result<()> {
        for (path, text) in FILES {
            // Files that the user has edited are kept.
            let path = self.directory.join(path);
            if !path.exists() {
                write(&path, text)?;
            }
        }
        let (publish, ret) = self.ports;
        let root = self.directory.display();
        let web = self.web.as_ref().map(Web::configuration).unwrap_or_default();
        // Only the owner may read the password in it.
        write_private(
            &self.directory.join("etc/master"),
            &format!(
                "# written by brine up\nroot_dir: {root}\npki_dir: {root}/master/pki\ncachedir: {root}/master/cache\n\
                 sock_dir: {root}/run\npidfile: {root}/run/master.pid\nlog_level_logfile: quiet\n\
                 interface: 127.0.0.1\npublish_port: {publish}\nret_port: {ret}\nfile_roots:\n  base:\n    - {root}/srv/salt\n\
                 pillar_roots:\n  base:\n    - {root}/srv/pillar\nreactor:\n  - 'salt/auth':\n    - {root}/reactor.d/auth.sls\n  \
                 - 'salt/minion/*/start':\n    - {root}/reactor.d/start.sls\n{web}"
            ),
        )?;
        for id in &self.minions {
            let own = self.minion_dir(id);
            let own = own.display();
            write(
                &self.minion_dir(id).join("etc/minion"),
                // All minions share a directory for sockets, whose paths must be short.
                &format!(
                    "# written by brine up\nid: {id}\nroot_dir: {root}\npki_dir: {own}/pki\ncachedir: {own}/cache\n\
                     sock_dir: {root}/run\npidfile: {root}/run/{id}.pid\nlog_level_logfile: quiet\n\
                     master: 127.0.0.1\nmaster_port: {ret}\nacceptance_wait_time: 1\nrecon_default: 100\n\
                     grains:\n  home: {own}/home\n"
                ),
            )?;
        }
        Ok(())
    }

    /// Starts the REST API, if it is enabled, and waits until it serves. Returns its address and login.
    pub async fn start_web(&mut self) -> anyhow::Result<Option<String>> {
        let Some(Web { port, password }) = &self.web else { return Ok(None) };
        let address = format!("https://127.0.0.1:{port}/");
        let message = format!(
            "REST API: {address}  console: {address}console\nlogin: user admin, password {password}, eauth sharedsecret (until the system stops)\n"
        );
        let pid_file = self.directory.join("run/api.pid");
        _ = std::fs::remove_file(&pid_file);
        self.spawn("api", &["salt-api", "-c", &path_text(&self.directory.join("etc"))])?;
        while !std::fs::metadata(&pid_file).is_ok_and(|file| file.len() > 0) {
            self.check()?;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(Some(message))
    }

    /// Starts the minions.
    pub fn start_minions(&mut self) -> anyhow::Result<()> {
        for id in self.minions.clone() {
            let config = path_text(&self.minion_dir(&id).join("etc"));
            self.spawn(&id, &["salt-minion", "-c", &config])?;
        }
        Ok(())
    }

    fn spawn(&mut self, name: &str, words: &[&str]) -> anyhow::Result<()> {
        use std::os::unix::process::CommandExt;
        let logs = self.log_dir();
        std::fs::create_dir_all(&logs).with_context(|| format!("creating {} failed", logs.display()))?;
        let path = logs.join(name);
        let log =
            user_files::open_truncated(&path, 0o666).with_context(|| format!("creating {} failed", path.display()))?;
        let child = Command::new(std::env::current_exe()?)
            .args(words)
            .args(["-l", "info"])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            // Ctrl-C reaches this process alone, which stops the others in order.
            .process_group(0)
            .spawn()
            .with_context(|| format!("starting {name} failed"))?;
        self.running.push((name.to_owned(), child));
        Ok(())
    }

    /// Returns an error if a process has ended.
    pub fn check(&mut self) -> anyhow::Result<()> {
        let logs = self.log_dir();
        for (name, child) in &mut self.running {
            if let Some(status) = child.try_wait()? {
                let log = std::fs::read_to_string(logs.join(&*name)).unwrap_or_default();
                let last = log.lines().last().unwrap_or_default().to_owned();
                bail!("{name} has ended ({status}): {last}");
            }
        }
        Ok(())
    }

    /// Stops minions, then the master, and waits for them.
    pub fn stop(&mut self) {
        self.running.reverse();
        for (_, child) in &mut self.running {
            // The number of a process that was reaped may belong to another one.
            if matches!(child.try_wait(), Ok(None)) {
                _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
            }
        }
        let deadline = Instant::now() + STOP_TIMEOUT;
        for (_, child) in &mut self.running {
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
            }
            _ = child.kill();
            _ = child.wait();
        }
        self.running.clear();
    }

    /// Returns the ids of the minions.
    pub fn minions(&self) -> &[String] {
        &self.minions
    }

    /// Returns the ports for publishes and requests.
    pub fn ports(&self) -> (u16, u16) {
        self.ports
    }

    /// Returns the directory, relative to the current one if it is below it.
    pub fn shown_directory(&self) -> String {
        let here = std::env::current_dir().unwrap_or_default();
        self.directory.strip_prefix(&here).unwrap_or(&self.directory).display().to_string()
    }

    /// Returns the directory of the master's event sockets.
    pub fn sock_dir(&self) -> PathBuf {
        self.directory.join("run")
    }

    /// Returns the directory of the logs.
    pub fn log_dir(&self) -> PathBuf {
        self.directory.join("log")
    }

    fn minion_dir(&self, id: &str) -> PathBuf {
        self.directory.join("minions").join(id)
    }
}

impl Drop for System {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Web {
    fn new() -> anyhow::Result<Self> {
        // The port of Salt's API, if it is free.
        let listener =
            TcpListener::bind("127.0.0.1:8000").or_else(|_| TcpListener::bind(("127.0.0.1", free_port()?)))?;
        let password: String = rand::rng().sample_iter(rand::distr::Alphanumeric).take(20).map(char::from).collect();
        Ok(Web { port: listener.local_addr()?.port(), password })
    }

    fn configuration(&self) -> String {
        let Web { port, password } = self;
        format!(
            "api_pidfile: run/api.pid\napi_logfile: ''\nrest_cherrypy:\n  host: 127.0.0.1\n  port: {port}\nnetapi_enable_clients: [local, local_async, \
             local_batch, local_subset, runner, runner_async, wheel, wheel_async]\nsharedsecret: {password}\n\
             external_auth:\n  sharedsecret:\n    admin: ['.*', '@runner', '@wheel', '@jobs']\n"
        )
    }
}

fn path_text(path: &Path) -> String {
    path.display().to_string()
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).with_context(|| format!("creating {} failed", directory.display()))?;
    }
    user_files::write(path, text).with_context(|| format!("writing {} failed", path.display()))
}

fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).with_context(|| format!("creating {} failed", directory.display()))?;
    }
    Ok(brine_system::files::write_atomic(path, text.as_bytes(), 0o600)?)
}
