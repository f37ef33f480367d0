//! Lower masters: a system with a syndic.

use std::path::PathBuf;
use std::process::{Child, Command};

use crate::support::{BRINE, System, until};

/// A running `salt-syndic`.
pub struct Syndic {
    child: Child,
    log: PathBuf,
}

/// Creates a master below the masters with these ports. `extra` is added to its configuration.
pub fn below(above: &[u16], extra: &str) -> System {
    let masters: Vec<String> = above.iter().map(|port| format!("'127.0.0.1:{port}'")).collect();
    System::new(&format!(
        "auto_accept: True\n{}syndic_pidfile: ROOT/syndic.pid\nsyndic_log_file: ROOT/syndic-file.log\n{extra}",
        if masters.is_empty() { String::new() } else { format!("syndic_master: [{}]\n", masters.join(", ")) }
    ))
}

impl Syndic {
    /// Starts the syndic of a system and waits until it serves.
    pub async fn start(system: &System, id: &str) -> Self {
        Self::start_with(system, id, "").await
    }

    /// Starts the syndic as [`Syndic::start`], with further options of its minion.
    pub async fn start_with(system: &System, id: &str, extra: &str) -> Self {
        system.write(
            "etc/minion",
            &format!("id: {id}\nroot_dir: ROOT\npki_dir: ROOT/syndic-pki\nacceptance_wait_time: 1\nrecon_default: 50\nrecon_max: 200\nauth_timeout: 2\n{extra}"),
        );
        let log = system.path("syndic.log");
        let file = std::fs::File::options().create(true).append(true).open(&log).unwrap();
        let child = Command::new(BRINE)
            .args(["salt-syndic", "-c", &system.etc(), "-l", "info"])
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap();
        let mut syndic = Syndic { child, log };
        let pid_file = system.path("syndic.pid");
        let pid = syndic.child.id().to_string();
        until("the syndic runs", || {
            assert!(syndic.child.try_wait().unwrap().is_none(), "the syndic ended: {}", syndic.log());
            std::fs::read_to_string(&pid_file).is_ok_and(|text| text.trim() == pid)
        })
        .await;
        syndic
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Kills the syndic as a crash would.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Syndic {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- syndic\n{}", self.log());
        }
    }
}
