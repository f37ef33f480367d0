//! Unmodified Salt: installed from PyPI below `target/interop`, with daemons beside Brine's on loopback.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use brine_value::{Map, Value};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};

use crate::support::{BRINE, System, free_port, stderr, within_limit};

/// The timeout for Python daemons on a busy machine, where each may need a minute to start.
pub const FLEET_TIMEOUT: Duration = Duration::from_secs(180);

/// The tested release of each line.
pub const RELEASES: &[&str] = &["3008.5", "3007.17", "3006.30"];

/// Makes the installed Salt accept any release of certifi. Each Salt release requires the certifi release of its time,
/// which some mirrors of PyPI lack and no test needs.
const ANY_CERTIFICATES: &str = r"
from importlib.metadata import files
import re
[metadata] = [file.locate() for file in files('salt') if file.name == 'METADATA']
text = metadata.read_text(encoding='utf-8')
metadata.write_text(re.sub(r'(?m)^Requires-Dist: certifi\b.*', 'Requires-Dist: certifi', text), encoding='utf-8')
";

/// Returns the environment of a release. Creates it if necessary, which takes a minute.
pub fn environment(version: &str) -> PathBuf {
    environment_with(version, version, &[])
}

/// Returns an environment with a release and further packages, in a directory of this name.
pub fn environment_with(name: &str, version: &str, packages: &[&str]) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _making = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let target = Path::new(BRINE).parent().and_then(Path::parent).unwrap();
    let directory = target.join("interop").join(name);
    // Written last: an incomplete environment is created again.
    let complete = directory.join("complete");
    if complete.exists() {
        return directory;
    }
    let step = |what: &str, output: std::io::Result<Output>| {
        let output = output.unwrap_or_else(|error| panic!("Salt {version} cannot be installed: {what}: {error}"));
        assert!(output.status.success(), "Salt {version} cannot be installed: {what}: {}", stderr(&output));
    };
    let made = Command::new("python3").args(["-m", "venv", "--clear"]).arg(&directory).output();
    step("python3 -m venv failed (is python3-venv installed?)", made);
    let pip = |words: &[&str]| {
        let output = Command::new("timeout")
            .args(["--kill-after=5", "400"])
            .arg(directory.join("bin/pip"))
            .args(["install", "--quiet", "--disable-pip-version-check"])
            .args(words)
            .output();
        step("pip install failed (is PyPI reachable?)", output);
    };
    let release = format!("salt=={version}");
    pip(&["--no-deps", &release]);
    let any = Command::new(directory.join("bin/python")).args(["-c", ANY_CERTIFICATES]).output();
    step("changing its requirements failed", any);
    pip(&[&[release.as_str()], packages].concat());
    std::fs::write(&complete, version).unwrap();
    directory
}

/// An unmodified Python minion, in its own directory below the system's.
pub struct PythonMinion {
    pub id: String,
    environment: PathBuf,
    directory: PathBuf,
    etc: PathBuf,
    log: PathBuf,
    child: Option<Child>,
}

impl PythonMinion {
    /// Configures a minion of this release; `extra` is added to its configuration.
    pub fn new(system: &System, id: &str, version: &str, extra: &str) -> Self {
        let environment = environment(version);
        let root = system.path(id);
        let at = root.display();
        // Salt checks its connection by the configured port, not the actual one.
        let text = format!(
            "id: {id}\nroot_dir: {at}\npki_dir: {at}/pki\ncachedir: {at}/cache\nsock_dir: {at}/run\nconf_file: {at}/etc/minion\n\
             pidfile: {at}/minion.pid\nlog_file: {at}/log\nmaster: 127.0.0.1\nmaster_port: {}\npublish_port: {}\n\
             acceptance_wait_time: 1\nrecon_default: 50\nrecon_max: 200\nrandom_reauth_delay: 1\nloop_interval: 1\n\
             enable_gpu_grains: False\nenable_fqdns_grains: False\n{extra}",
            system.ret_port, system.publish_port
        );
        system.write(&format!("{id}/etc/minion"), &text);
        let (etc, log) = (system.path(&format!("{id}/etc")), system.path(&format!("{id}.log")));
        PythonMinion { id: id.to_owned(), environment, directory: root, etc, log, child: None }
    }

    /// Starts the daemon without waiting for it.
    pub fn spawn(&mut self) {
        self.child = Some(daemon(&self.environment.join("bin/salt-minion"), &self.etc, &self.log));
    }

    /// Kills the daemon and all its children, as a crash of the host would.
    pub fn kill(&mut self) {
        kill_group(&mut self.child);
        for file in ["minion.pid", "process_responsibility_minion.pid"] {
            let _ = std::fs::remove_file(self.directory.join(file));
        }
    }

    /// Returns whether Salt itself dropped a return: its daemon may write a return to a socket that it has just closed
    /// for a new authentication. It logs this and does not retry.
    pub fn dropped_a_return(&self) -> bool {
        // Of 3006 and 3007, and of 3008.
        let dropped = [
            "Error dispatching event. 'NoneType' object has no attribute 'send'",
            "Error dispatching event. RequestClient is closed",
        ];
        std::fs::read_to_string(&self.log).is_ok_and(|log| dropped.iter().any(|message| log.contains(message)))
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

/// An unmodified Python master, in its own directory.
pub struct PythonMaster {
    environment: PathBuf,
    pub directory: tempfile::TempDir,
    pub ret_port: u16,
    child: Option<Child>,
    syndic: Option<Child>,
}

impl PythonMaster {
    /// Configures a master of this release; `extra` is added to its configuration.
    pub fn new(version: &str, extra: &str) -> Self {
        let environment = environment(version);
        let directory = tempfile::Builder::new().prefix("salt").tempdir().unwrap();
        let (publish_port, ret_port) = (free_port(), free_port());
        let at = directory.path().display();
        let text = format!(
            "root_dir: {at}\npki_dir: {at}/pki\ncachedir: {at}/cache\nsock_dir: {at}/run\nconf_file: {at}/etc/master\n\
             pidfile: {at}/master.pid\nlog_file: {at}/log\ninterface: 127.0.0.1\npublish_port: {publish_port}\n\
             ret_port: {ret_port}\ntimeout: 20\nworker_threads: 3\nloop_interval: 1\n\
             file_roots: {{base: ['{at}/srv/salt']}}\npillar_roots: {{base: ['{at}/srv/pillar']}}\n{extra}"
        );
        let master = PythonMaster { environment, ret_port, child: None, syndic: None, directory };
        master.write("etc/master", &text);
        master
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.directory.path().join(relative)
    }

    pub fn write(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text.replace("ROOT", &self.directory.path().display().to_string())).unwrap();
    }

    /// Starts the daemon without waiting for it.
    pub fn spawn(&mut self) {
        let program = self.environment.join("bin/salt-master");
        self.child = Some(daemon(&program, &self.path("etc"), &self.path("master.log")));
    }

    /// Starts Salt's syndic of this master under the id s1, without waiting for it. The syndic connects to the
    /// configured publish port, not to the one that the upper master sends.
    pub fn spawn_syndic(&mut self, publish_port: u16) {
        let text = "id: s1\nroot_dir: ROOT\npki_dir: ROOT/syndic-pki\nacceptance_wait_time: 1\n";
        self.write("etc/minion", &format!("{text}publish_port: {publish_port}\n"));
        let program = self.environment.join("bin/salt-syndic");
        self.syndic = Some(daemon(&program, &self.path("etc"), &self.path("master.log")));
    }

    /// Kills the daemons and all their children.
    pub fn kill(&mut self) {
        kill_group(&mut self.syndic);
        kill_group(&mut self.child);
        let _ = std::fs::remove_file(self.path("master.pid"));
    }

    /// Subscribes to the events of this master with a tag prefix, as soon as it has a bus.
    pub async fn events(&self, prefix: &str) -> PythonEvents {
        PythonEvents::follow(&self.environment, &self.path("etc/master"), prefix).await
    }

    /// Runs one of the master's tools.
    pub async fn tool(&self, tool: &str, words: &[&str]) -> Output {
        let mut command = within_limit(&self.environment.join("bin").join(tool).display().to_string());
        command.args(["-c", &self.path("etc").display().to_string()]).args(words).stdin(Stdio::null());
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }
}

/// Subscribes to a Salt master's bus with Salt's own library: one line for each event.
const FOLLOW: &str = "import json, sys, time
import salt.config, salt.utils.event
opts = salt.config.master_config(sys.argv[1])
with salt.utils.event.get_event('master', sock_dir=opts['sock_dir'], opts=opts, listen=True) as bus:
    while not bus.connect_pub(timeout=1):
        time.sleep(0.05)
    print('following', flush=True)
    while True:
        event = bus.get_event(wait=60, tag=sys.argv[2], full=True, auto_reconnect=True)
        if event:
            print(json.dumps([event['tag'], event['data']], default=str), flush=True)
";

/// A subscription to a Salt master's events.
pub struct PythonEvents {
    lines: Lines<BufReader<tokio::process::ChildStdout>>,
    _child: tokio::process::Child,
}

impl PythonEvents {
    /// Subscribes to the master with this configuration, by the library of this environment.
    pub async fn follow(environment: &Path, config: &Path, prefix: &str) -> Self {
        let mut child = tokio::process::Command::new(environment.join("bin/python"))
            .args(["-c", FOLLOW, &config.display().to_string(), prefix])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut events = PythonEvents { lines, _child: child };
        assert_eq!(events.line().await, "following");
        events
    }

    async fn line(&mut self) -> String {
        let line = tokio::time::timeout(FLEET_TIMEOUT, self.lines.next_line())
            .await
            .expect("timed out waiting for an event of Salt's master");
        line.unwrap().expect("the subscription to Salt's master ended")
    }

    /// Returns tag and data of the first event whose tag matches this glob.
    pub async fn until(&mut self, pattern: &str) -> (String, Map) {
        loop {
            let line = self.line().await;
            let event = brine_value::json::from_json(&line).unwrap();
            let [tag, data] = event.as_list().unwrap() else { panic!("no event: {line}") };
            if brine_text::glob::fnmatch(pattern, tag.as_str().unwrap()) {
                return (tag.to_string(), data.as_map().cloned().unwrap_or_default());
            }
        }
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

/// Starts a daemon that logs to this file, in its own process group.
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

/// Kills a daemon's process group and waits for its end: the next daemon would mistake reused PIDs in leftover files
/// for running processes.
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

/// A state tree with a pillar: states that make changes once, failing states, and requisites.
pub const TREE: &[(&str, &str)] = &[
    ("srv/pillar/top.sls", "base: {'*': [data]}\n"),
    ("srv/pillar/data.sls", "greeting: hello {{ grains.id }}\n"),
    ("srv/salt/top.sls", "base: {'*': [web]}\n"),
    ("srv/salt/files/web.conf", "{{ pillar.greeting }} of {{ grains.kernel }}\n"),
    ("srv/salt/macros.jinja", "{% macro out(name) %}ROOT/{{ grains.id }}/out/{{ name }}{% endmacro %}\n"),
    (
        "srv/salt/web.sls",
        "{% from 'macros.jinja' import out with context %}
late:
  cmd.run:
    - name: echo {{ pillar['greeting'] }} > {{ out('late') }}
    - onchanges: [{file: conf}]
never:
  test.fail_without_changes:
    - require: [{test: broken}]
broken:
  test.fail_without_changes: []
conf:
  file.managed:
    - name: {{ out('web.conf') }}
    - source: salt://files/web.conf
    - template: jinja
    - makedirs: True
    - mode: '0640'
    - require: [{test: first}]
first: test.succeed_without_changes
",
    ),
];

/// Returns result and whether there were changes of a state in a return, by its id.
pub fn outcome(returned: &Value, state: &str) -> (Value, bool) {
    let states = returned.as_map().unwrap_or_else(|| panic!("no states: {returned}"));
    let entry = states.iter().find(|(name, _)| name.to_string().contains(&format!("_|-{state}_|-")));
    let (_, result) = entry.unwrap_or_else(|| panic!("no state {state}: {returned}"));
    (result.get("result").unwrap().clone(), result.get("changes").is_some_and(Value::is_truthy))
}
