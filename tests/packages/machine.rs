//! A Debian with a systemd of its own, in name spaces of this machine (systemd-nspawn).

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The longest wait for a machine to boot, on a machine with much else to do.
const BOOT: Duration = Duration::from_secs(120);

/// Runs a command to its end, and returns what it printed.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{text}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

pub struct Machine {
    root: tempfile::TempDir,
    container: Child,
    /// The machine's first process, whose name spaces are entered.
    leader: String,
}

impl Machine {
    /// Boots the system of an archive, with a directory of this machine as `/packages`.
    pub fn boot(archive: &Path, packages: &Path) -> Self {
        let root = tempfile::tempdir().unwrap();
        run(Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(root.path()));
        let container = Command::new("systemd-nspawn")
            .args(["--quiet", "--boot", "--register=no", "--keep-unit", "--private-network", "--console=pipe"])
            .arg(format!("--bind-ro={}:/packages", packages.display()))
            .arg("--directory")
            .arg(root.path())
            .args(["systemd.unit=multi-user.target"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let pid = container.id();
        let mut machine = Self { root, container, leader: String::new() };
        let begun = Instant::now();
        loop {
            let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
            children.split_whitespace().next().unwrap_or_default().clone_into(&mut machine.leader);
            // `degraded` is a running system, too: a container has no modules of the kernel to load.
            let state = machine.try_sh("systemctl is-system-running --wait; systemctl is-active multi-user.target");
            if !machine.leader.is_empty() && state.is_ok() {
                return machine;
            }
            assert!(begun.elapsed() < BOOT, "the machine has not started: {state:?}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    fn command(&self, script: &str) -> Command {
        let mut command = Command::new("nsenter");
        let words = self.enter();
        command.args(words.split(' ').skip(1)).args(["sh", "-c", script]).stdin(Stdio::null());
        command
    }

    /// The words of a command that runs what follows them as the machine's root.
    pub fn enter(&self) -> String {
        format!(
            "nsenter --target {} --mount --uts --ipc --net --pid --root --wd env --ignore-environment \
             PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive",
            self.leader
        )
    }

    /// Runs a script as the machine's root.
    pub fn sh(&self, script: &str) -> String {
        run(&mut self.command(script))
    }

    /// Runs a script that may fail: what it printed, or with its errors.
    pub fn try_sh(&self, script: &str) -> Result<String, String> {
        let output = self.command(script).output().map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(text);
        }
        Err(format!("{}: {text}{}", output.status, String::from_utf8_lossy(&output.stderr)))
    }

    /// Starts a script that runs until the machine ends.
    pub fn spawn(&self, script: &str) {
        self.sh(&format!("setsid sh -c '{script}' > /dev/null 2>&1 &"));
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Its first process takes all others along.
        let _ = Command::new("kill").args(["-KILL", &self.leader]).status();
        let _ = self.container.wait();
    }
}
