//! A real `sshd` on a free port, for the user that runs the tests.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use brine_value::{Value, json};

use crate::support::{BRINE, System, free_port, stderr, stdout, until, within_limit};

pub struct Sshd {
    child: Child,
    pub port: u16,
    /// The private key that may log in.
    pub key: PathBuf,
    pub log: PathBuf,
}

fn generate(path: &Path, passphrase: &str) {
    let status = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", passphrase, "-f"])
        .arg(path)
        .status()
        .expect("ssh-keygen is missing: install openssh-client");
    assert!(status.success());
}

impl Sshd {
    /// Starts a server below this system's directory. `passphrase` protects the key that may log in; `options` precede
    /// the key in the file of authorized keys.
    pub async fn start(system: &System, name: &str, passphrase: &str, options: &str) -> Self {
        let directory = system.path(name);
        std::fs::create_dir_all(&directory).unwrap();
        let (host_key, key) = (directory.join("host"), directory.join("id"));
        generate(&host_key, "");
        generate(&key, passphrase);
        let public = std::fs::read_to_string(key.with_extension("pub")).unwrap();
        let authorized = system.write(&format!("{name}/authorized"), &format!("{options}{public}"));
        let port = free_port();
        let config = system.write(
            &format!("{name}/config"),
            &format!(
                "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n\
                 PasswordAuthentication no\nPidFile none\nMaxStartups 200\nMaxSessions 200\n",
                host_key.display(),
                authorized.display()
            ),
        );
        // The directory for privilege separation, which is otherwise created by the service manager.
        _ = std::fs::create_dir("/run/sshd");
        let log = directory.join("log");
        let mut child = Command::new("/usr/sbin/sshd")
            .args(["-D", "-f"])
            .arg(&config)
            .arg("-E")
            .arg(&log)
            .stdin(Stdio::null())
            .spawn()
            .expect("sshd is missing: install openssh-server");
        until("sshd listens", || {
            let log = std::fs::read_to_string(&log).unwrap_or_default();
            assert!(child.try_wait().unwrap().is_none(), "sshd ended: {log}");
            log.contains("Server listening")
        })
        .await;
        Sshd { child, port, key, log }
    }

    /// Returns the entry of a roster for this server, with a directory for the program below the system's.
    pub fn entry(&self, id: &str, more: &str) -> String {
        let key = self.key.display();
        format!(
            "{id}: {{host: 127.0.0.1, port: {}, priv: {key}, thin_dir: ROOT/thin, user: {}{more}}}\n",
            self.port,
            user()
        )
    }
}

/// Returns the name of the user that runs the tests.
pub fn user() -> String {
    nix::unistd::User::from_uid(nix::unistd::getuid()).unwrap().unwrap().name
}

impl Drop for Sshd {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- sshd\n{}", std::fs::read_to_string(&self.log).unwrap_or_default());
        }
    }
}

/// Runs `salt-ssh` without checking keys of hosts, with shared connections of its own.
pub fn ssh(system: &System, words: &[&str]) -> Output {
    within_limit(BRINE)
        .args(["salt-ssh", "-c", &system.etc(), "--no-host-keys"])
        .args(words)
        .env("XDG_RUNTIME_DIR", system.path("."))
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Runs `salt-ssh` and returns the results by host.
pub fn ssh_json(system: &System, words: &[&str]) -> Value {
    let output = ssh(system, &[&["--static", "--out=json"], words].concat());
    let text = stdout(&output);
    json::from_json(&text).unwrap_or_else(|_| panic!("{text}{}", stderr(&output)))
}
