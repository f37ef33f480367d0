//! Salt itself, as its authors release it: installed from PyPI below `target/interop`, its daemons run beside
//! Brine's on loopback.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::support::{BRINE, System, free_port, stderr, within_limit};

/// One release of each line that is tried.
pub const RELEASES: &[&str] = &["3008.3", "3007.15", "3006.28"];

/// The environment of a release. Made if it is not there, which takes a minute.
pub fn environment(version: &str) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _making = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let target = Path::new(BRINE).parent().and_then(Path::parent).unwrap();
    let folder = target.join("interop").join(version);
    // Written last: an environment that was given up half-way is made anew.
    let complete = folder.join("complete");
    if complete.exists() {
        return folder;
    }
    let step = |what: &str, output: std::io::Result<Output>| {
        let output = output.unwrap_or_else(|error| panic!("Salt {version} cannot be installed: {what}: {error}"));
        assert!(output.status.success(), "Salt {version} cannot be installed: {what}: {}", stderr(&output));
    };
    let made = Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder).output();
    step("python3 makes no virtual environment (is python3-venv there?)", made);
    let pip = Command::new("timeout")
        .args(["--kill-after=5", "400"])
        .arg(folder.join("bin/pip"))
        .args(["install", "--quiet", "--disable-pip-version-check", &format!("salt=={version}")])
        .output();
    step("pip gets it not from PyPI (is PyPI reachable?)", pip);
    std::fs::write(&complete, version).unwrap();
    folder
}

/// A Python minion: unmodified, in a folder of its own below the system's.
pub struct PythonMinion {
    pub id: String,
    environment: PathBuf,
    folder: PathBuf,
    etc: PathBuf,
    log: PathBuf,
    child: Option<Child>,
}

impl PythonMinion {
    /// Configures a minion of this release; `extra` is more of its configuration.
    pub fn new(system: &System, id: &str, version: &str, extra: &str) -> Self {
        let environment = environment(version);
        let root = system.path(id);
        let at = root.display();
        // Salt looks for its connection on the port that it is configured with, wherever it is connected to.
        let text = format!(
            "id: {id}\nroot_dir: {at}\npki_dir: {at}/pki\ncachedir: {at}/cache\nsock_dir: {at}/run\nconf_file: {at}/etc/minion\n\
             pidfile: {at}/minion.pid\nlog_file: {at}/log\nmaster: 127.0.0.1\nmaster_port: {}\npublish_port: {}\n\
             acceptance_wait_time: 1\nrecon_default: 50\nrecon_max: 200\nrandom_reauth_delay: 1\nloop_interval: 1\n\
             enable_gpu_grains: False\nenable_fqdns_grains: False\n{extra}",
            system.ret_port, system.publish_port
        );
        system.write(&format!("{id}/etc/minion"), &text);
        let (etc, log) = (system.path(&format!("{id}/etc")), system.path(&format!("{id}.log")));
        PythonMinion { id: id.to_owned(), environment, folder: root, etc, log, child: None }
    }

    /// Starts the daemon without waiting for it.
    pub fn spawn(&mut self) {
        self.child = Some(daemon(&self.environment.join("bin/salt-minion"), &self.etc, &self.log));
    }

    /// Kills the daemon and whatever it has started, as the end of its host would.
    pub fn kill(&mut self) {
        kill_group(&mut self.child);
        for file in ["minion.pid", "process_responsibility_minion.pid"] {
            let _ = std::fs::remove_file(self.folder.join(file));
        }
    }

    /// Runs `salt-call` beside the daemon.
    pub async fn call(&self, words: &[&str]) -> Output {
        let mut command = within_limit(&self.environment.join("bin/salt-call").display().to_string());
        command.args(["-c", &self.etc.display().to_string(), "--out=json"]).args(words).stdin(Stdio::null());
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }
}

impl Drop for PythonMinion {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("--- {}\n{}", self.id, std::fs::read_to_string(&self.log).unwrap_or_default());
        }
    }
}

/// A Python master: unmodified, in a folder of its own, which accepts every key.
pub struct PythonMaster {
    environment: PathBuf,
    pub folder: tempfile::TempDir,
    pub publish_port: u16,
    pub ret_port: u16,
    child: Option<Child>,
}

impl PythonMaster {
    /// Configures a master of this release; `extra` is more of its configuration.
    pub fn new(version: &str, extra: &str) -> Self {
        let environment = environment(version);
        let folder = tempfile::Builder::new().prefix("salt").tempdir().unwrap();
        let (publish_port, ret_port) = (free_port(), free_port());
        let at = folder.path().display();
        let text = format!(
            "root_dir: {at}\npki_dir: {at}/pki\ncachedir: {at}/cache\nsock_dir: {at}/run\nconf_file: {at}/etc/master\n\
             pidfile: {at}/master.pid\nlog_file: {at}/log\ninterface: 127.0.0.1\npublish_port: {publish_port}\n\
             ret_port: {ret_port}\nauto_accept: True\ntimeout: 20\nworker_threads: 3\nloop_interval: 1\n\
             file_roots: {{base: ['{at}/srv/salt']}}\npillar_roots: {{base: ['{at}/srv/pillar']}}\n{extra}"
        );
        let master = PythonMaster { environment, publish_port, ret_port, child: None, folder };
        master.write("etc/master", &text);
        master
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.folder.path().join(relative)
    }

    pub fn write(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text.replace("ROOT", &self.folder.path().display().to_string())).unwrap();
    }

    /// Starts the daemon without waiting for it.
    pub fn spawn(&mut self) {
        let program = self.environment.join("bin/salt-master");
        self.child = Some(daemon(&program, &self.path("etc"), &self.path("master.log")));
    }

    /// Kills the daemon and whatever it has started.
    pub fn kill(&mut self) {
        kill_group(&mut self.child);
        let _ = std::fs::remove_file(self.path("master.pid"));
    }

    /// Runs one of the master's tools.
    pub async fn tool(&self, tool: &str, words: &[&str]) -> Output {
        let mut command = within_limit(&self.environment.join("bin").join(tool).display().to_string());
        command.args(["-c", &self.path("etc").display().to_string()]).args(words).stdin(Stdio::null());
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }
}

impl Drop for PythonMaster {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("--- Python master\n{}", std::fs::read_to_string(self.path("master.log")).unwrap_or_default());
        }
    }
}

/// Starts a daemon that logs into this file. Its processes are ended together.
fn daemon(program: &Path, etc: &Path, log: &Path) -> Child {
    let log = std::fs::File::options().create(true).append(true).open(log).unwrap();
    Command::new(program)
        .args(["-c", &etc.display().to_string(), "-l", "warning"])
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .process_group(0)
        .spawn()
        .unwrap()
}

/// Kills a daemon with all its processes, and waits until they are gone: the next daemon would take the numbers
/// in the files that they leave for those of one that runs.
fn kill_group(child: &mut Option<Child>) {
    let Some(mut child) = child.take() else { return };
    let group = Pid::from_raw(child.id().cast_signed());
    let _ = killpg(group, Signal::SIGKILL);
    let _ = child.wait();
    let begun = Instant::now();
    while killpg(group, None).is_ok() && begun.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(5));
    }
}
