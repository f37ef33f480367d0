//! Migrates a Salt master and its minions to Brine and back, by the steps of docs/migrating.md: the commands of the
//! document are executed, with a directory and a stand-in for `systemctl` as each machine.

use crate::support;

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::support::salt::{FLEET_TIMEOUT, PythonEvents, RELEASES, environment, outcome};
use crate::support::{BRINE, Events, free_port, stderr, stdout, text, within_limit};
use brine_value::{Map, Value};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// Returns the commands below a heading of the document.
fn steps(heading: &str) -> String {
    let document = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/migrating.md")).unwrap();
    let (_, section) = document.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no '{heading}'"));
    let section = section.split("\n#").next().unwrap();
    let blocks = section.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    let steps: String = blocks.collect();
    assert!(!steps.is_empty(), "'{heading}' has no commands");
    steps
}

/// A machine with Salt installed: a directory with `/etc`, `/usr` and so on, and its services.
struct Machine {
    root: PathBuf,
    environment: PathBuf,
}

impl Machine {
    /// Creates a machine. `daemon` is `salt-master` or `salt-minion`, `config` its configuration beside the paths.
    fn new(root: PathBuf, version: &str, daemon: &str, config: &str) -> Self {
        let environment = environment(version);
        let machine = Machine { root, environment };
        let (file, root) = (daemon.strip_prefix("salt-").unwrap(), machine.root.display());
        machine.write(&format!("etc/salt/{file}"), &format!("root_dir: {root}\n{config}"));
        machine.write(
            &format!("etc/systemd/system/{daemon}.service"),
            &format!("[Service]\nExecStart={root}/usr/bin/{daemon}\n"),
        );
        for tool in ["salt", "salt-call", "salt-key", "salt-master", "salt-minion", "salt-run"] {
            let program = machine.environment.join("bin").join(tool);
            let script = format!("#!/bin/sh\nexec {} -c {root}/etc/salt \"$@\"\n", program.display());
            machine.program(&format!("usr/bin/{tool}"), &script);
        }
        machine.program("shim/systemctl", include_str!("support/systemctl"));
        std::fs::create_dir_all(machine.path("usr/local/bin")).unwrap();
        std::fs::create_dir_all(machine.path("target/release")).unwrap();
        std::os::unix::fs::symlink(BRINE, machine.path("target/release/brine")).unwrap();
        machine
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    fn write(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text.replace("ROOT", &self.root.display().to_string())).unwrap();
    }

    fn program(&self, relative: &str, text: &str) {
        self.write(relative, text);
        std::fs::set_permissions(self.path(relative), std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn command(&self, script: &str) -> Command {
        let root = self.root.display().to_string();
        let mut command = within_limit("bash");
        let path = std::env::var("PATH").unwrap();
        command
            .args(["-euo", "pipefail", "-c", script])
            .env("PATH", format!("{root}/shim:{root}/usr/local/bin:{root}/usr/bin:{path}"))
            .env("SALT_CONFIG_DIR", format!("{root}/etc/salt"))
            .current_dir(&self.root)
            .stdin(Stdio::null());
        command
    }

    async fn run(&self, script: &str) -> Output {
        let mut command = self.command(script);
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }

    /// Runs the commands below a heading of the document. Returns their output.
    async fn follow(&self, heading: &str) -> String {
        let mut steps = steps(heading);
        for directory in ["/etc/", "/usr/local/", "/run/", "/var/"] {
            steps = steps.replace(directory, &format!("{}{directory}", self.root.display()));
        }
        let output = self.run(&steps).await;
        assert!(output.status.success(), "{heading}\n{steps}\n{}{}", stdout(&output), stderr(&output));
        format!("{}{}", stdout(&output), stderr(&output))
    }

    /// Runs `salt` and returns the results by minion.
    async fn salt(&self, words: &str) -> Map {
        let output = self.run(&format!("salt --static --out=json {words}")).await;
        let said = brine_value::json::from_json(&stdout(&output)).ok();
        said.and_then(|said| said.as_map().cloned()).unwrap_or_default()
    }

    /// Runs `salt` and returns the result of one minion.
    async fn salt_one(&self, words: &str) -> Value {
        self.salt(words).await.into_values().next().unwrap_or_else(|| panic!("nothing returned to {words}"))
    }

    /// Waits until exactly these minions answer.
    async fn until_back(&self, ids: &[&str]) {
        let there = self.answering(ids, FLEET_TIMEOUT).await;
        assert!(there.iter().eq(ids), "{there:?} instead of {ids:?}");
    }

    /// Waits until exactly these minions answer, or for this time. Returns the ids of the last answers.
    async fn answering(&self, ids: &[&str], time: Duration) -> BTreeSet<String> {
        let all: BTreeSet<String> = ids.iter().map(ToString::to_string).collect();
        let begun = std::time::Instant::now();
        loop {
            let answers = self.salt("-t 2 '*' test.ping").await;
            let there = answers.iter().filter(|(_, answer)| **answer == Value::Bool(true));
            let there: BTreeSet<String> = there.map(|(id, _)| id.to_string()).collect();
            if there == all || begun.elapsed() > time {
                return there;
            }
        }
    }

    /// Returns the keys by state, as `salt-key` lists them.
    async fn keys(&self) -> Value {
        let output = self.run("salt-key -L --out=json").await;
        let keys = brine_value::json::from_json(&stdout(&output));
        keys.unwrap_or_else(|_| panic!("{}{}", stdout(&output), stderr(&output)))
    }

    fn log(&self, unit: &str) -> String {
        std::fs::read_to_string(self.path(&format!("{unit}.log"))).unwrap_or_default()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let units = ["salt-master", "brine-master", "salt-minion", "brine-minion"];
        for unit in units {
            let file = self.path(&format!("{unit}.running"));
            if let Some(pid) = std::fs::read_to_string(file).ok().and_then(|pid| pid.trim().parse().ok()) {
                _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
            }
            if std::thread::panicking() {
                eprintln!("--- {} {unit}\n{}", self.root.display(), self.log(unit));
            }
        }
    }
}

const TREE: &[(&str, &str)] = &[
    ("srv/pillar/top.sls", "base: {'*': [data]}\n"),
    ("srv/pillar/data.sls", "greeting: hello {{ grains.id }}\n"),
    ("srv/salt/top.sls", "base: {'*': [web]}\n"),
    ("srv/salt/files/web.conf", "{{ pillar.greeting }} of {{ grains.kernel }}\n"),
    (
        "srv/salt/web.sls",
        "conf:
  file.managed:
    - name: ROOT/out/{{ grains.id }}.conf
    - source: salt://files/web.conf
    - template: jinja
    - makedirs: True
late:
  cmd.run:
    - name: echo {{ grains.id }} >> ROOT/out/late
    - onchanges: [{file: conf}]
",
    ),
    (
        "srv/reactor/note.sls",
        "note:\n  local.cmd.run:\n    - tgt: web2\n    - arg: ['echo {{ data.id }} >> ROOT/noted']\n",
    ),
    ("etc/salt/master.d/reactor.conf", "reactor:\n  - my/event:\n    - ROOT/srv/reactor/note.sls\n"),
];

/// A typical configuration of an old master.
const MASTER: &str = "interface: 127.0.0.1
user: USER
timeout: 20
worker_threads: 3
loop_interval: 1
hash_type: sha256
fileserver_backend: [roots]
file_roots: {base: [ROOT/srv/salt]}
pillar_roots: {base: [ROOT/srv/pillar]}
state_output: mixed
ping_on_rotate: True
external_auth: {mysql: {admin: ['.*']}}
ext_pillar: []
log_level_logfile: warning
company_datacentre: north
";
const MINION: &str = "user: USER
acceptance_wait_time: 1
recon_default: 50
recon_max: 200
random_reauth_delay: 1
loop_interval: 1
enable_fqdns_grains: False
tcp_keepalive: True
";

/// A master with minions: `web1` and `web2`, which are accepted, and `bad`, which is rejected.
struct Fleet {
    // The fields are in the order in which they are dropped.
    bad: std::process::Child,
    web1: Machine,
    web2: Machine,
    master: Machine,
    _folder: tempfile::TempDir,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        _ = self.bad.kill();
        _ = self.bad.wait();
    }
}

impl Fleet {
    /// Starts a Salt master and minions of this release, with these additional lines of configuration.
    async fn start(version: &str, master: &str, minion: &str) -> Self {
        let directory = tempfile::Builder::new().prefix("migrating").tempdir().unwrap();
        let (publish, ret) = (free_port(), free_port());
        let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).unwrap().unwrap().name;
        let machine = |name: &str, daemon, config: &str| {
            Machine::new(directory.path().join(name), version, daemon, &config.replace("USER", &user))
        };
        let config = format!("{MASTER}publish_port: {publish}\nret_port: {ret}\n{master}");
        let master = machine("master", "salt-master", &config);
        for (path, text) in TREE {
            master.write(path, text);
        }
        let config = format!("{MINION}master: 127.0.0.1:{ret}\npublish_port: {publish}\n{minion}");
        let [web1, web2] = ["web1", "web2"].map(|id| {
            let machine = machine(id, "salt-minion", &config);
            machine.write("etc/salt/minion_id", id);
            machine
        });
        let bad = directory.path().join("bad");
        std::fs::create_dir_all(&bad).unwrap();
        let config = format!("{config}root_dir: {}\nid: bad\nrejected_retry: True\n", bad.display());
        std::fs::write(bad.join("minion"), config.replace("USER", &user)).unwrap();
        master.start("salt-master").await;
        if config.contains("verify_master_pubkey_sign") {
            // The public key that an operator copies to minions, for verifying their master.
            let signer = master.path("etc/salt/pki/master/master_sign.pub");
            support::until("the master creates the signing key", || signer.exists()).await;
            for minion in [&web1, &web2] {
                let pki = minion.path("etc/salt/pki/minion");
                std::fs::create_dir_all(&pki).unwrap();
                std::fs::copy(&signer, pki.join("master_sign.pub")).unwrap();
            }
        }
        web1.start("salt-minion").await;
        web2.start("salt-minion").await;
        let mut events = PythonEvents::follow(&master.environment, &master.path("etc/salt/master"), "salt/").await;
        let bad = Command::new(BRINE)
            .args(["minion", "-c", &bad.display().to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let fleet = Fleet { bad, web1, web2, master, _folder: directory };
        let mut waiting = BTreeSet::from(["web1", "web2", "bad"].map(str::to_owned));
        while !waiting.is_empty() {
            let (_, data) = events.until("salt/auth").await;
            waiting.remove(&text(&data, "id"));
        }
        let decided = fleet.master.run("salt-key -y -a 'web*' && salt-key -y -r bad").await;
        assert!(decided.status.success(), "{}{}", stdout(&decided), stderr(&decided));
        // A pending key, and a denied one with a known id.
        let pki = fleet.master.path("etc/salt/pki/master");
        let own = fleet.web1.path("etc/salt/pki/minion/minion.pub");
        std::fs::copy(&own, pki.join("minions_pre/new")).unwrap();
        std::fs::copy(&own, pki.join("minions_denied/web2")).unwrap();
        fleet.restart_silent_minions().await;
        fleet
    }

    /// Restarts minions of Salt that do not answer, as an operator does: some never do after they were accepted.
    async fn restart_silent_minions(&self) {
        for _ in 0..3 {
            let there = self.master.answering(&["web1", "web2"], FLEET_TIMEOUT / 4).await;
            if there.len() == 2 {
                return;
            }
            let silent =
                [("web1", &self.web1), ("web2", &self.web2)].into_iter().filter(|(id, _)| !there.contains(*id));
            for (_, machine) in silent {
                let restarted =
                    machine.run("systemctl disable --now salt-minion && systemctl enable --now salt-minion").await;
                assert!(restarted.status.success(), "{}", stderr(&restarted));
            }
        }
    }

    /// Asserts that minions answer, states and pillar work, and events lead to reactions.
    async fn works(&self) {
        self.master.until_back(&["web1", "web2"]).await;
        // Only the first run has changes.
        let first = !self.master.path("out").exists();
        let returned = self.master.salt("'*' state.apply").await;
        assert_eq!(returned.len(), 2, "{returned:?}");
        for (id, returned) in returned {
            for state in ["conf", "late"] {
                assert_eq!(outcome(&returned, state), (true.into(), first), "{id} {state}: {returned}");
            }
            let conf = std::fs::read_to_string(self.master.path(&format!("out/{id}.conf"))).unwrap();
            assert_eq!(conf, format!("hello {id} of Linux\n"));
        }
        let noted = self.master.path("noted");
        _ = std::fs::remove_file(&noted);
        assert_eq!(self.master.salt_one("web1 event.send my/event").await, true.into());
        support::until("the reaction", || std::fs::read_to_string(&noted).is_ok_and(|text| text == "web1\n")).await;
    }
}

impl Machine {
    async fn start(&self, unit: &str) {
        let started = self.run(&format!("systemctl enable --now {unit}")).await;
        assert!(started.status.success(), "{}", stderr(&started));
    }

    /// Subscribes to the events of the Brine master on this machine.
    async fn brine_events(&self, prefix: &str) -> Events {
        support::until("the Brine master serves", || self.path("run/brine/master.pid").exists()).await;
        Events::follow(&self.path("var/run/salt/master"), prefix).await
    }
}

async fn there_and_back(version: &str) {
    let fleet = Fleet::start(version, "", "").await;
    let (master, web1) = (&fleet.master, &fleet.web1);
    fleet.works().await;
    let keys = master.keys().await;

    // Migrates the master to Brine.
    master.follow("## The binary").await;
    let said = master.follow("### Prepare").await;
    for reported in
        ["external_auth 'mysql' is not supported", "unknown option 'company_datacentre'", "2 accepted", "1 rejected"]
    {
        assert!(said.contains(reported), "'{reported}' is not in:\n{said}");
    }
    for nothing_to_tell in ["fileserver_backend", "ext_pillar'", "hash_type"] {
        assert!(!said.contains(nothing_to_tell), "{said}");
    }
    master.follow("### Switch to Brine").await;
    let mut events = master.brine_events("salt/").await;
    master.until_back(&["web1", "web2"]).await;
    let said = master.follow("### Check").await;
    assert!(said.contains("web1"), "{said}");
    assert_eq!(master.salt("-G 'kernel:Linux' test.ping").await.len(), 2);
    assert_eq!(master.keys().await, keys);
    assert!(
        master.log("brine-master").contains("external_auth 'mysql' is not supported"),
        "{}",
        master.log("brine-master")
    );
    fleet.works().await;
    // No key has to be accepted again, and rejected ones stay rejected.
    master.salt("web1 test.arg done").await;
    let mut acts = BTreeSet::new();
    loop {
        let (tag, data) = events.next().await;
        match tag.as_str() {
            "salt/auth" => _ = acts.insert((text(&data, "id"), text(&data, "act"))),
            _ if tag.ends_with("/ret/web1") && text(&data, "fun") == "test.arg" => break,
            _ => {}
        }
    }
    let expected = [("bad", "reject"), ("web1", "accept"), ("web2", "accept")];
    for (id, act) in &acts {
        assert!(expected.contains(&(id, act)), "{acts:?}");
    }
    assert!(acts.contains(&("bad".into(), "reject".into())), "{acts:?}");

    // Migrates a minion to Brine.
    web1.follow("## The binary").await;
    let said = web1.follow("### Prepare a minion").await;
    for reported in
        ["the minion 'web1' of the master 127.0.0.1", "'random_reauth_delay' has no effect", "the master's key"]
    {
        assert!(said.contains(reported), "'{reported}' is not in:\n{said}");
    }
    web1.follow("### Switch the minion to Brine").await;
    fleet.works().await;
    assert!(master.salt_one("web1 test.versions_report").await.to_string().contains("Brine"));
    assert_eq!(master.keys().await, keys);

    // Migrates the master back to Salt, with a minion of each kind, and then the minion.
    master.follow("### Switch back to Salt").await;
    fleet.works().await;
    assert_eq!(master.keys().await, keys);
    web1.follow("### Switch the minion back to Salt").await;
    fleet.works().await;
    assert!(!master.salt_one("web1 test.versions_report").await.to_string().contains("Brine"));
    assert_eq!(master.keys().await, keys);
}

#[tokio::test(flavor = "multi_thread")]
async fn encrypted_and_signed_master_keys_survive_the_migration() {
    let master = "key_pass: one\nmaster_sign_pubkey: True\nsigning_key_pass: another\n";
    let minion = "verify_master_pubkey_sign: True\nalways_verify_signature: True\n";
    // Older releases do not work with such keys.
    let fleet = Fleet::start("3008.5", master, minion).await;
    fleet.works().await;
    let pki = fleet.master.path("etc/salt/pki/master");
    let read =
        || ["master", "master_sign"].map(|name| std::fs::read_to_string(pki.join(format!("{name}.pem"))).unwrap());
    let keys = read();
    assert!(keys.iter().all(|key| key.contains("ENCRYPTED")));
    fleet.master.follow("## The binary").await;
    fleet.master.follow("### Prepare").await;
    fleet.master.follow("### Switch to Brine").await;
    fleet.works().await;
    // A new minion trusts this master by its signature.
    fleet.web1.follow("## The binary").await;
    fleet.web1.follow("### Prepare a minion").await;
    std::fs::remove_file(fleet.web1.path("etc/salt/pki/minion/minion_master.pub")).unwrap();
    fleet.web1.follow("### Switch the minion to Brine").await;
    fleet.works().await;
    assert!(fleet.web1.path("etc/salt/pki/minion/minion_master.pub").exists());
    fleet.master.follow("### Switch back to Salt").await;
    fleet.works().await;
    assert_eq!(read(), keys);
}

// One after the other: a fleet of Salt keeps two processors busy while its daemons start.
#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_of_each_release_migrates_there_and_back() {
    for version in RELEASES {
        there_and_back(version).await;
    }
}
