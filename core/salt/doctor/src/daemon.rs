//! The daemon itself: its process, unit, PID file and limits.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use brine_system::user_files;
use nix::unistd::{Uid, User};

use crate::finding::{Finding, Repair, Role, quoted};
use crate::installation::Installation;
use crate::kinds;
use crate::logs;
use crate::processes::{self, Process};
use crate::unit::{self, Unit};

/// The part of the limit of open files from which the daemon is about to fail, in percent.
const EXHAUSTED: u64 = 90;
/// The files that a daemon opens besides those of its minions.
const OWN_DESCRIPTORS: u64 = 200;
/// The maximum size of a PID file, in bytes.
const MAX_PID: usize = 32;

/// The daemon of an installation, if it runs.
#[derive(Debug, Clone)]
pub struct Daemon {
    /// Its process.
    pub process: Option<Process>,
    /// Its unit.
    pub unit: Option<Unit>,
    /// The PID in the PID file, of a process that is not the daemon.
    stale: Option<u32>,
    /// The user and group that own its files; `None` if the user does not exist.
    pub owner: Option<(u32, u32)>,
    /// Whether the owner is that of the configuration or the unit, or root, and not only that of a process, which any
    /// user can start: mends may then give files to it.
    pub is_owner_sure: bool,
}

impl Daemon {
    /// Finds the daemon of an installation.
    pub fn find(installation: &Installation) -> Self {
        let tool = installation.tool();
        let unit = unit::find(installation.role.name(), &installation.config_dir);
        let named = pid_in(&installation.pidfile);
        let configured = Configured::of(installation, unit.as_ref());
        let keys = std::fs::metadata(&installation.pki_dir).ok().map(|status| status.uid());
        let trusted = [Some(0), Some(Uid::effective().as_raw()), configured.owner().map(|owner| owner.0), keys];
        let is_trusted = |uid: u32| trusted.contains(&Some(uid));
        let by_pid = |pid: u32| {
            let process = Process::of_pid(pid).filter(|process| is_trusted(process.owner.0));
            process.filter(|process| is_ours(process, installation))
        };
        let of_unit = || unit.as_ref().and_then(|unit| unit.pid).and_then(Process::of_pid);
        let process = named
            .and_then(by_pid)
            .or_else(of_unit)
            .or_else(|| processes::daemons(&tool, &installation.config_dir, is_trusted).into_iter().next());
        let stale = named.filter(|pid| by_pid(*pid).is_none());
        let running = process.as_ref().map(|process| process.owner);
        let (owner, is_owner_sure) = match (configured, running) {
            (Configured::Nobody, None) => (Some(default_owner(installation)), true),
            (Configured::Nobody, Some(running)) => (Some(running), running.0 == 0 || !Uid::effective().is_root()),
            (configured, None) => (configured.owner(), true),
            (configured, Some(running)) => (Some(running), configured.owner() == Some(running)),
        };
        Daemon { process, unit, stale, owner, is_owner_sure }
    }

    /// Returns the owner for mends; `None` if it is not sure.
    pub fn sure_owner(&self) -> Option<(u32, u32)> {
        self.owner.filter(|_| self.is_owner_sure)
    }

    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// Returns the command that starts it.
    pub fn start_command(&self, installation: &Installation) -> String {
        match &self.unit {
            Some(unit) => format!("systemctl start {}", unit.name),
            None => format!("{}{} -d", installation.tool(), installation.options()),
        }
    }

    /// Returns the command that restarts it.
    pub fn restart_command(&self, installation: &Installation) -> String {
        match (&self.unit, &self.process) {
            (Some(unit), _) => format!("systemctl restart {}", unit.name),
            (None, Some(process)) => {
                format!("kill {}; {}{} -d", process.pid, installation.tool(), installation.options())
            }
            (None, None) => self.start_command(installation),
        }
    }
}

/// Whether a process is the daemon of this installation. One whose configuration this user cannot see may be another.
fn is_ours(process: &Process, installation: &Installation) -> bool {
    let canonical = std::fs::canonicalize(&installation.config_dir);
    process.is_daemon(&installation.tool())
        && process
            .config_dir()
            .is_none_or(|have| canonical.map_or(have == installation.config_dir, |canonical| have == canonical))
}

/// Returns the PID in a file.
fn pid_in(path: &Path) -> Option<u32> {
    let bytes = user_files::read(path).ok().filter(|bytes| bytes.len() <= MAX_PID)?;
    std::str::from_utf8(&bytes).ok()?.trim().parse().ok()
}

/// The user that the configuration or the unit names.
#[derive(Clone, Copy)]
enum Configured {
    /// None is named.
    Nobody,
    /// There is no user of the name.
    Missing,
    /// Its user and group.
    User(u32, u32),
}

impl Configured {
    fn of(installation: &Installation, unit: Option<&Unit>) -> Self {
        let name = installation.user.as_deref().or(unit.and_then(|unit| unit.user.as_deref()));
        let Some(name) = name else { return Configured::Nobody };
        let user = User::from_name(name).ok().flatten();
        user.map_or(Configured::Missing, |user| Configured::User(user.uid.as_raw(), user.gid.as_raw()))
    }

    fn owner(self) -> Option<(u32, u32)> {
        match self {
            Configured::User(uid, gid) => Some((uid, gid)),
            Configured::Nobody | Configured::Missing => None,
        }
    }
}

/// Returns the user that would run a daemon whose user nobody names.
fn default_owner(installation: &Installation) -> (u32, u32) {
    let is_default = installation.config_dir == Path::new(brine_config::DEFAULT_DIRECTORY);
    if is_default || Uid::effective().is_root() {
        return (0, 0);
    }
    (Uid::effective().as_raw(), nix::unistd::getegid().as_raw())
}

/// Examines the user, the process, the unit and the limits.
pub fn examine(installation: &Installation, daemon: &Daemon) -> Vec<Finding> {
    let role = installation.role;
    let mut findings = Vec::new();
    if let Some(user) =
        installation.user.as_deref().filter(|user| User::from_name(user).is_ok_and(|user| user.is_none()))
    {
        findings.push(
            Finding::new(&kinds::USER_MISSING, role, format!("the user '{user}' does not exist"))
                .at("option 'user'")
                .because("the daemon changes to this user and cannot start without it")
                .mended_by(format!("useradd --system --no-create-home --shell /usr/sbin/nologin {user}")),
        );
    }
    findings.extend(daemon.unit.as_ref().map(|unit| of_unit(role, unit, daemon, installation)).unwrap_or_default());
    match &daemon.process {
        Some(process) if "Tt".contains(process.state) => findings.push(
            Finding::new(&kinds::DAEMON_STOPPED, role, format!("the {} is stopped and does nothing", role.noun()))
                .at(format!("process {}", process.pid))
                .because("it received SIGSTOP, or a debugger holds it")
                .mended_by(format!("kill -CONT {}", process.pid)),
        ),
        Some(process) => findings.extend(descriptors(installation, daemon, process)),
        None if !installation.needs_daemon => {}
        None => {
            let last = logs::last_error(&installation.log_file);
            let last = last.map_or_else(String::new, |last| format!("; its last error: {last}"));
            findings.push(
                Finding::new(&kinds::DAEMON_DOWN, role, format!("the {} does not run", role.noun()))
                    .at(installation.pidfile.display())
                    .because(format!(
                        "no process is a {} with the configuration {}{last}",
                        installation.tool(),
                        installation.config_dir.display()
                    ))
                    .mended_by(daemon.start_command(installation)),
            );
        }
    }
    if let Some(pid) = daemon.stale {
        let why = if daemon.is_running() {
            "the daemon has another PID: it was started with another `--pid-file`, or the file was left over"
        } else {
            "the daemon was killed, or the host went down"
        };
        findings.push(
            Finding::new(&kinds::PID_STALE, role, format!("process {pid} is not the {}", role.noun()))
                .at(installation.pidfile.display())
                .because(why)
                .repaired_by(Repair::PidFile(installation.pidfile.clone())),
        );
    }
    findings
}

fn of_unit(role: Role, unit: &Unit, daemon: &Daemon, installation: &Installation) -> Vec<Finding> {
    let name = &unit.name;
    let mut findings = Vec::new();
    if unit.is_masked {
        if !daemon.is_running() {
            findings.push(
                Finding::new(&kinds::UNIT_MASKED, role, format!("the unit {name} is masked"))
                    .at(name)
                    .because("nothing can start it, not even by hand")
                    .mended_by(format!("systemctl unmask {name} && systemctl enable --now {name}")),
            );
        }
        return findings;
    }
    if let Some(failure) = &unit.failure {
        let last = logs::last_error(&installation.log_file);
        let last = last.map_or_else(String::new, |last| format!("; its last error: {last}"));
        findings.push(
            Finding::new(&kinds::UNIT_FAILED, role, format!("the unit {name} has failed"))
                .at(name)
                .because(format!("{failure}{last}"))
                .mended_by(format!("journalctl -u {name} -n 50; systemctl restart {name}")),
        );
    }
    if !unit.is_enabled {
        findings.push(
            Finding::new(&kinds::UNIT_DISABLED, role, format!("the unit {name} is not enabled"))
                .at(name)
                .because("the daemon does not start with the host")
                .mended_by(format!("systemctl enable {name}")),
        );
    }
    findings
}

fn descriptors(installation: &Installation, daemon: &Daemon, process: &Process) -> Option<Finding> {
    let (Some(soft), open) = process.descriptors() else { return None };
    let minions = match installation.role {
        Role::Master => std::fs::read_dir(installation.pki_dir.join("minions")).map_or(0, |keys| keys.count() as u64),
        Role::Minion | Role::Api | Role::Syndic => 0,
    };
    let (kind, what) = judge(soft, open, minions)?;
    let limit = (4 * minions + OWN_DESCRIPTORS).max(100_000);
    let mend = match &daemon.unit {
        Some(unit) => format!(
            "mkdir -p /etc/systemd/system/{0}.service.d && printf '[Service]\\nLimitNOFILE={limit}\\n' > \
             /etc/systemd/system/{0}.service.d/limits.conf && systemctl daemon-reload && systemctl restart {0}",
            unit.name
        ),
        None => {
            format!("prlimit --pid {} --nofile={limit}   # and `ulimit -n {limit}` before the next start", process.pid)
        }
    };
    Some(
        Finding::new(kind, installation.role, what)
            .at(format!("process {}", process.pid))
            .because(format!("the soft limit is {soft}, and each minion has two connections"))
            .mended_by(mend),
    )
}

/// Returns what is wrong with a limit of open files.
fn judge(soft: u64, open: Option<u64>, minions: u64) -> Option<(&'static kinds::Kind, String)> {
    if let Some(open) = open.filter(|open| open * 100 >= soft * EXHAUSTED) {
        return Some((&kinds::DESCRIPTORS_EXHAUSTED, format!("{open} of {soft} files are open")));
    }
    let needed = 2 * minions + OWN_DESCRIPTORS;
    (soft < needed)
        .then(|| (&kinds::DESCRIPTORS_LOW, format!("the daemon may open {soft} files and may need {needed}")))
}

/// Finds sockets that a daemon which does not run has left.
pub fn sockets(installation: &Installation, daemon: &Daemon) -> Vec<Finding> {
    use std::os::unix::fs::FileTypeExt;
    use std::os::unix::net::UnixStream;
    if daemon.is_running() {
        return Vec::new();
    }
    let is_stale = |path: &&std::path::PathBuf| {
        std::fs::symlink_metadata(path).is_ok_and(|status| status.file_type().is_socket())
            && UnixStream::connect(path).is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
    };
    let stale = installation.sockets.iter().filter(is_stale);
    stale
        .map(|path| {
            Finding::new(&kinds::SOCKET_STALE, installation.role, format!("nobody listens on {}", quoted(path)))
                .at(path.display())
                .because("the daemon was killed, or the host went down")
                .repaired_by(Repair::Socket(path.clone()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_judged_by_what_is_open_and_by_the_number_of_minions() {
        for (soft, open, minions, expected) in [
            (1024, Some(50), 10, None),
            (1024, Some(950), 10, Some("descriptors-exhausted")),
            (1024, Some(50), 1000, Some("descriptors-low")),
            (1024, None, 1000, Some("descriptors-low")),
            (100_000, Some(2100), 1000, None),
        ] {
            let actual = judge(soft, open, minions).map(|(kind, _)| kind.name);
            assert_eq!(actual, expected, "{soft} {open:?} {minions}");
        }
    }
}
