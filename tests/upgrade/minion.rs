//! Minions with programs of their own, and new programs for them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use brine_value::{Map, Value};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::proxy::Proxy;
use crate::support::{BRINE, Events, System, stderr, stdout};

/// The path of the program on the file server.
pub const SOURCE: &str = "srv/salt/brine/test/brine";
/// Options of a minion that reads the program itself: a build for tests, which is large, needs a minute to fetch one.
pub const LOCAL: &str = "file_client: local\nfile_roots: {base: ['ROOT/srv/salt']}\n";
/// The arguments of an upgrade to it: the tests have one version alone.
pub const UPGRADE: [&str; 3] = ["brine.upgrade", "source=salt://brine/test/brine", "force=True"];

/// A minion with a program of its own. It may be restarted by the watcher, so it is found by its PID file.
pub struct Minion {
    pub id: String,
    pub root: PathBuf,
    pub env: Vec<(String, String)>,
    pub child: Child,
}

impl Minion {
    /// Places the program and starts it, without waiting for it.
    pub fn spawn(system: &System, id: &str) -> Self {
        Self::spawn_with(system, id, &[])
    }

    /// As [`Minion::spawn`], with additional environment variables.
    pub fn spawn_with(system: &System, id: &str, env: &[(&str, &str)]) -> Self {
        let root = system.path("");
        let program = root.join(id).join("bin/brine");
        if !program.exists() {
            std::fs::create_dir_all(program.parent().unwrap()).unwrap();
            std::fs::copy(stripped(system), &program).unwrap();
        }
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<Vec<_>>();
        let child = Self::start(&root, id, &env);
        Minion { id: id.to_owned(), root, env, child }
    }

    /// Starts the program again, after it has ended.
    pub fn restart(&mut self) {
        _ = self.child.try_wait();
        self.child = Self::start(&self.root, &self.id, &self.env);
    }

    pub fn start(root: &Path, id: &str, env: &[(String, String)]) -> Child {
        let log = std::fs::File::options().create(true).append(true).open(root.join(format!("{id}.log"))).unwrap();
        Command::new(root.join(id).join("bin/brine"))
            .args(["salt-minion", "-c", &root.join(id).join("etc").display().to_string(), "-l", "info"])
            .envs(env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap()
    }

    pub fn program(&self) -> PathBuf {
        self.root.join(&self.id).join("bin/brine")
    }

    /// The names in the directory of the program.
    pub fn names(&self) -> Vec<String> {
        let entries = self.program().parent().unwrap().read_dir().unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub fn pid(&self) -> Option<i32> {
        std::fs::read_to_string(self.root.join(format!("{}.pid", self.id))).ok()?.trim().parse().ok()
    }

    /// The program that runs.
    pub fn running(&self) -> PathBuf {
        std::fs::read_link(format!("/proc/{}/exe", self.pid().unwrap())).unwrap()
    }

    /// The state on disk.
    pub fn state(&self) -> Value {
        let text = std::fs::read_to_string(self.root.join(&self.id).join("cache/upgrade/state")).unwrap_or_default();
        brine_value::json::from_json(&text).unwrap_or_default()
    }

    pub fn phase(&self) -> String {
        self.state().get("phase").map(ToString::to_string).unwrap_or_default()
    }

    /// Kills the watcher.
    pub fn kill_watcher(&self) {
        let directory = self.root.join(&self.id).join("cache/upgrade").display().to_string();
        let is_it = |words: &str| {
            let words: Vec<&str> = words.split('\0').collect();
            words.starts_with(&["brine-upgrade", "watching"]) && words.contains(&directory.as_str())
        };
        let processes =
            std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().into_string().ok());
        let pids = processes.filter_map(|name| name.parse::<i32>().ok());
        let watchers: Vec<i32> = pids
            .filter(|pid| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|words| is_it(&words)))
            .collect();
        assert_eq!(watchers.len(), 1, "{watchers:?}");
        kill(Pid::from_raw(watchers[0]), Signal::SIGKILL).unwrap();
    }

    pub fn kill(&mut self) {
        kill(Pid::from_raw(self.pid().unwrap()), Signal::SIGKILL).unwrap();
        _ = self.child.wait();
    }
}

impl Drop for Minion {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.root.join(format!("{}.log", self.id))).unwrap_or_default();
            eprintln!("--- {}\n{log}\n{}", self.id, self.state());
        }
        _ = self.child.kill();
        _ = self.child.wait();
        if let Some(pid) = self.pid() {
            _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

/// Returns the program without debug information, which makes copies quick.
pub fn stripped(system: &System) -> PathBuf {
    let path = system.path("stripped");
    if !path.exists() {
        let status = Command::new("strip").arg("-o").arg(&path).arg(BRINE).status();
        if !status.is_ok_and(|status| status.success()) {
            std::fs::copy(BRINE, &path).unwrap();
        }
    }
    path
}

/// Publishes a file as the new program, with its checksum.
pub fn publish(system: &System, content: &[u8]) {
    let path = system.path(SOURCE);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, content).unwrap();
    let sum = Command::new("sha256sum").arg("brine").current_dir(path.parent().unwrap()).output().unwrap();
    std::fs::write(path.with_extension("sha256"), sum.stdout).unwrap();
}

/// Publishes another build of the real program.
pub fn publish_good(system: &System, build: &str) {
    publish(system, &[&std::fs::read(stripped(system)).unwrap()[..], build.as_bytes()].concat());
}

/// Publishes a program that prints this with `--version`, and otherwise runs these statements of C.
pub fn publish_c(system: &System, version: &str, body: &str) {
    let source = format!(
        "#include <stdio.h>\n#include <string.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
         int main(int argc, char **argv) {{\n\
         if (argc > 1 && !strcmp(argv[1], \"--version\")) {{ puts(\"{version}\"); return 0; }}\n{body}\n}}\n"
    );
    let (code, out) = (system.write("program.c", &source), system.path("program"));
    let built = Command::new("cc").arg("-o").arg(&out).arg(&code).output().unwrap();
    assert!(built.status.success(), "{}", stderr(&built));
    publish(system, &std::fs::read(out).unwrap());
}

/// Returns the outcome in the next start event of a minion that has one.
pub async fn outcome(events: &mut Events, id: &str) -> Map {
    loop {
        let (_, data) = events.until(&format!("salt/minion/{id}/start")).await;
        if let Some(Value::Map(outcome)) = data.get("upgrade") {
            return outcome.clone();
        }
    }
}

pub fn text(map: &Map, name: &str) -> String {
    map.get(name).map(ToString::to_string).unwrap_or_default()
}

/// Starts a master and a minion with a program of its own.
pub async fn start(options: &str) -> (System, Minion, Events) {
    let system = System::start("").await;
    system.configure_minion("m1", options);
    let mut events = system.events("salt/minion/").await;
    let minion = Minion::spawn(&system, "m1");
    events.until("salt/minion/m1/start").await;
    (system, minion, events)
}

/// As [`start`], with a proxy in front of the master, and this limit of trials in seconds.
pub async fn start_by_proxy(limit: u32) -> (System, Proxy, Minion, Events) {
    let system = System::start("").await;
    let proxy = Proxy::start(system.ret_port).await;
    let options = format!("upgrade_health_timeout: {limit}\nmaster_port: {}\n", proxy.port);
    let path = system.configure_minion("m1", LOCAL).join("minion");
    let config = std::fs::read_to_string(&path).unwrap();
    let config = config.lines().filter(|line| !line.starts_with("master_port")).collect::<Vec<_>>().join("\n");
    std::fs::write(&path, format!("{config}\n{options}")).unwrap();
    let mut events = system.events("salt/minion/").await;
    let minion = Minion::spawn(&system, "m1");
    events.until("salt/minion/m1/start").await;
    (system, proxy, minion, events)
}

/// Calls `brine.upgrade` and returns its result.
pub fn upgrade(system: &System, more: &[&str]) -> Value {
    let words: Vec<&str> = [&["-t", "60", "m1"], &UPGRADE[..], more].concat();
    system.salt_json(&words).get("m1").cloned().unwrap_or_default()
}

pub fn staged(value: &Value) {
    assert_eq!(value.get("result").and_then(Value::as_str), Some("staged"), "{value}");
}

pub fn sha256(path: &Path) -> String {
    let output = Command::new("sha256sum").arg(path).output().unwrap();
    stdout(&output).split(' ').next().unwrap_or_default().to_owned()
}

pub fn pings(system: &System) {
    assert_eq!(system.salt_json(&["-t", "30", "m1", "test.ping"]).to_string(), "{'m1': True}");
}
