//! The identity of processes: a PID alone is reused.

use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// A process, whatever program it executes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its PID.
    pub pid: i32,
    /// Its start, in clock ticks since the boot.
    pub start: u64,
    /// The boot.
    pub boot: String,
}

impl Identity {
    /// Returns the identity of this process.
    pub fn own() -> Option<Self> {
        Self::of(Pid::this().as_raw())
    }

    /// Returns the identity of a process that runs.
    pub fn of(pid: i32) -> Option<Self> {
        let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        let (state, start) = state_and_start(&String::from_utf8_lossy(&text))?;
        // A zombie has ended; its parent has not noticed yet.
        if matches!(state, 'Z' | 'X') {
            return None;
        }
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        Some(Identity { pid, start, boot: boot.trim().to_owned() })
    }

    /// Whether the process runs.
    pub fn is_alive(&self) -> bool {
        Self::of(self.pid).as_ref() == Some(self)
    }

    /// Kills the process.
    pub fn kill(&self) {
        if self.is_alive() {
            _ = kill(Pid::from_raw(self.pid), Signal::SIGKILL);
        }
    }
}

/// Returns the state and the start of a line of `/proc/PID/stat`.
fn state_and_start(line: &str) -> Option<(char, u64)> {
    // The name before it may contain anything.
    let rest = line.rsplit_once(')')?.1;
    let mut words = rest.split_whitespace();
    let state = words.next()?.chars().next()?;
    Some((state, words.nth(18)?.parse().ok()?))
}

/// Returns the systemd service of this process.
pub fn service() -> Option<String> {
    if !Path::new("/run/systemd/system").is_dir() {
        return None;
    }
    let text = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let names = text.lines().filter_map(|line| line.rsplit('/').next());
    names.map(str::to_owned).find(|name| name.ends_with(".service"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_follows_a_name_of_any_characters() {
        let line = "12 (a) b (c) S 1 12 12 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 4711 1 2";
        assert_eq!(state_and_start(line), Some(('S', 4711)));
        assert_eq!(state_and_start("12 (a"), None);
    }

    #[test]
    fn a_process_is_not_another_with_its_pid() {
        let own = Identity::own().unwrap();
        assert!(own.is_alive());
        assert!(!Identity { start: own.start + 1, ..own }.is_alive());
    }
}
