//! The common parts of the daemons: options, running in the background, signals, the PID file.

use std::ffi::OsString;
use std::io::{IsTerminal, Read, Seek, SeekFrom};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use brine_check::{Finding, Severity};
use brine_sandbox::{Profile, SandboxError};
use brine_system::{files, user_files};
use clap::{Args, CommandFactory, Parser};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::common::{CommonOptions, Role};
use super::privileges::{self, OwnedPaths};
use super::{service_manager, usage};
use crate::ui::{print_plain, print_plain_error, symptoms};

/// The environment variable that marks the background process.
const IN_BACKGROUND: &str = "BRINE_IN_BACKGROUND";
/// The timeout of a start in the background: custom grains and the repair of a large store take their time.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// The time that a daemon has to end after `kill`, before the next one starts.
const END_TIMEOUT: Duration = Duration::from_secs(3);
/// The maximum size of the part of a log that is searched for the cause of a failed start.
const LOG_TAIL: u64 = 64 * 1024;

/// Options of daemons.
#[derive(Args, Debug)]
#[command(next_help_heading = "Daemon options")]
pub struct DaemonOptions {
    /// Run in the background
    #[arg(short, long)]
    daemon: bool,
    /// The file that holds the PID
    #[arg(long, value_name = "FILE")]
    pid_file: Option<PathBuf>,
    /// The user to run as if root starts the daemon (default: the option user)
    #[arg(short, long, value_name = "USER")]
    user: Option<String>,
    /// Check the configuration without changing anything; exit status 1 if the daemon or a part of it would not work
    #[arg(long)]
    check: bool,
}

/// The command line of a daemon.
#[derive(Parser, Debug)]
pub struct DaemonArguments {
    #[command(flatten)]
    pub common: CommonOptions,
    #[command(flatten)]
    pub daemon: DaemonOptions,
}

/// The name and the texts of a daemon's command line.
#[derive(Debug)]
pub struct DaemonCommand {
    /// The name of the tool.
    pub name: &'static str,
    /// The text after `Usage: `.
    pub usage: &'static str,
    /// The purpose of the daemon, in one line.
    pub about: &'static str,
    /// The text below the options.
    pub examples: &'static str,
}

impl DaemonCommand {
    /// Parses a command line. Help, version and usage errors are printed, and the error is the exit status.
    pub fn parse(&self, words: Vec<OsString>) -> Result<DaemonArguments, ExitCode> {
        usage::parse(self.name, self.usage, self.options(), words)
    }

    /// Returns the options.
    pub fn options(&self) -> clap::Command {
        DaemonArguments::command().about(self.about).after_help(self.examples)
    }
}

/// Logs panics: a daemon has no terminal for their messages.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|panic| tracing::error!("{}", panic.to_string().replace('\n', ": "))));
}

/// The configured files of a daemon and its user.
#[derive(Debug)]
pub struct DaemonPaths<'a> {
    /// The PID file.
    pub pid_file: &'a Path,
    /// The log file.
    pub log_file: &'a Path,
    /// The directories that the user must own.
    pub directories: Vec<&'a Path>,
    /// Further files and directories that the user must own, if they exist.
    pub existing: Vec<PathBuf>,
    /// The user that the daemon runs as.
    pub user: Option<&'a str>,
    /// The privileges that the daemon keeps; `None` for all (`sandbox: False`).
    pub sandbox: Option<Profile>,
}

/// Returns whether this process is a daemon in the background, whose stderr has no reader.
pub fn is_in_background() -> bool {
    std::env::var_os(IN_BACKGROUND).is_some()
}

impl DaemonOptions {
    /// Returns the user on the command line.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Returns the path of the PID file.
    pub fn pid_file<'a>(&'a self, configured: &'a Path) -> &'a Path {
        self.pid_file.as_deref().unwrap_or(configured)
    }

    /// Returns the role of this process.
    pub fn role(&self) -> Role {
        if self.check || self.daemon && !is_in_background() { Role::BeforeDaemon } else { Role::Daemon }
    }

    /// With `--check`, prints the findings, one a line, and returns the exit status: 1 if a finding is a failure, else
    /// 0. Returns `None` without `--check`.
    pub fn only_check(&self, examine: impl FnOnce() -> Vec<Finding>) -> Option<ExitCode> {
        if !self.check {
            return None;
        }
        let findings = examine();
        for finding in &findings {
            print_plain(finding);
            let section = (finding.severity > Severity::Note).then(|| symptoms::of_configuration(&finding.message));
            section.flatten().into_iter().for_each(symptoms::note_section);
        }
        let fails = findings.iter().any(Finding::is_failure);
        Some(if fails { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    /// Prepares this process to serve: moves it to the background with `-d`, and changes to the user of the
    /// configuration. Returns an exit status if this process must end.
    pub fn detach(&self, tool: &str, words: &[OsString], paths: &DaemonPaths<'_>) -> anyhow::Result<Option<ExitCode>> {
        if !is_in_background() {
            self.refuse_a_second(tool, paths.pid_file)?;
        }
        if let Some(status) = self.go_to_background(words, tool, paths.pid_file, paths.log_file)? {
            return Ok(Some(status));
        }
        let more = paths.existing.iter().cloned();
        let owned = OwnedPaths {
            directories: paths.directories.clone(),
            recursive: true,
            existing: std::iter::once(paths.log_file.to_owned()).chain(more).collect(),
            pid_file: Some(self.pid_file(paths.pid_file)),
        };
        Ok(enter(paths.sandbox, paths.user, &owned).err().map(|error| error.exit(tool)))
    }

    /// Fails if the PID file names a running daemon of this tool. One that has just been told to end has some time. As in
    /// Salt, a second master fails by its ports instead.
    fn refuse_a_second(&self, tool: &str, configured: &Path) -> anyhow::Result<()> {
        let (pid_file, start) = (self.pid_file(configured), Instant::now());
        while let Some(pid) = running(pid_file, tool) {
            if start.elapsed() > END_TIMEOUT {
                if tool == "salt-master" {
                    break;
                }
                bail!(
                    "{tool} is running already: process {pid}, as {} says: stop it with `kill {pid}`, or set another \
                     'pidfile' and 'root_dir' for a second one",
                    pid_file.display()
                );
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// With `-d`, starts the background process and returns the exit status of this one; `None` in the process that
    /// serves.
    pub fn go_to_background(
        &self,
        words: &[OsString],
        tool: &str,
        pid_file: &Path,
        log_file: &Path,
    ) -> anyhow::Result<Option<ExitCode>> {
        if !self.daemon || is_in_background() {
            return Ok(None);
        }
        let pid_file = self.pid_file(pid_file);
        let logged = std::fs::metadata(log_file).map_or(0, |file| file.len());
        let mut command = Command::new(std::env::current_exe().context("finding the path of this program failed")?);
        command.arg(tool).args(words).env(IN_BACKGROUND, "1");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut child = command.spawn().context("starting in the background failed")?;
        let start = Instant::now();
        // A daemon that serves writes its PID. The file of an earlier one, which may still run, is left as it is.
        while !names_process(pid_file, child.id()) {
            if let Some(status) = child.try_wait()? {
                let cause = last_error(log_file, logged, child.id());
                let own = format!("{tool}: ");
                let cause = cause.as_deref().map(|cause| cause.strip_prefix(&own).unwrap_or(cause));
                let cause = cause.map_or_else(
                    || "start it without -d to see the cause, or read".to_owned(),
                    |cause| format!("{cause}; for more see"),
                );
                let log_file = log_file.display();
                print_plain_error(format_args!("{tool}: the daemon ended at once ({status}): {cause} {log_file}"));
                let code = status.code().and_then(|code| u8::try_from(code).ok()).filter(|code| *code != 0);
                return Ok(Some(code.map_or(ExitCode::FAILURE, ExitCode::from)));
            }
            if start.elapsed() > START_TIMEOUT {
                let (pid, log_file) = (child.id(), log_file.display());
                bail!(
                    "the daemon does not serve after {START_TIMEOUT:?}, and runs on as process {pid}: see {log_file}"
                );
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(Some(ExitCode::SUCCESS))
    }

    /// Writes the PID file, which marks the daemon as serving, and tells systemd so. Must be called within the runtime.
    pub fn write_pid(&self, configured: &Path) -> anyhow::Result<PidFile> {
        let path = self.pid_file(configured).to_owned();
        if let Some(directory) = path.parent() {
            create_dir(directory)?;
        }
        let line = format!("{}\n", std::process::id());
        if let Err(error) = files::write_atomic(&path, line.as_bytes(), 0o644) {
            // The file may belong to the user, its directory to root.
            if !path.exists() || user_files::write(&path, line).is_err() {
                return Err(error.into());
            }
        }
        service_manager::serving();
        if is_in_background() {
            // A new session, so that the end of the terminal does not end the daemon.
            _ = nix::unistd::setsid();
        }
        Ok(PidFile(path))
    }
}

/// Changes to the user of the configuration, and enters the sandbox. A sandbox that the system does not offer whole is
/// reported: the daemon is then as privileged as without it.
pub fn enter(
    sandbox: Option<Profile>,
    user: Option<&str>,
    owned: &OwnedPaths<'_>,
) -> Result<(), privileges::PrivilegeError> {
    let report = |result: Result<(), SandboxError>| {
        if let Err(error) = result {
            tracing::warn!(%error, "the sandbox is incomplete: the system refuses a part of it (option sandbox)");
        }
    };
    // Root loses the right to do this with its user.
    report(sandbox.map_or(Ok(()), |profile| profile.bound()));
    privileges::take_user(user, owned, true)?;
    report(sandbox.map_or(Ok(()), |profile| profile.enter()));
    Ok(())
}

/// Creates a directory with mode 0755, less the umask.
fn create_dir(path: &Path) -> anyhow::Result<()> {
    let created = std::fs::DirBuilder::new().recursive(true).mode(0o755).create(path);
    created.with_context(|| format!("creating {} failed", path.display()))
}

/// Returns whether a PID file holds this PID.
fn names_process(pid_file: &Path, pid: u32) -> bool {
    std::fs::read_to_string(pid_file).is_ok_and(|text| text.trim() == pid.to_string())
}

/// Returns the PID in a PID file if it is that of another running process of this tool, as Salt's daemons do before they
/// start. A file that outlived its process may name a process of something else.
fn running(pid_file: &Path, tool: &str) -> Option<u32> {
    let pid: u32 = std::fs::read_to_string(pid_file).ok()?.trim().parse().ok()?;
    let command_line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    (pid != std::process::id() && is_of(&command_line, tool)).then_some(pid)
}

/// Returns whether a command line, with a NUL after each word, is one of this tool: `salt-minion`, `/usr/bin/salt-minion`,
/// `brine salt-minion` or `brine minion`, and of Salt `python3 /usr/bin/salt-minion`.
fn is_of(command_line: &[u8], tool: &str) -> bool {
    let short = tool.strip_prefix("salt-").unwrap_or(tool);
    let mut words = command_line.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let mut is = |name: &[&str]| words.next().is_some_and(|word| name.contains(&word.rsplit('/').next().unwrap_or("")));
    is(&[tool]) || is(&[tool, short])
}

/// Returns the message of the last error that a process has logged after the first `from` bytes of the log.
fn last_error(log_file: &Path, from: u64, pid: u32) -> Option<String> {
    let mut file = std::fs::File::open(log_file).ok()?;
    let size = file.metadata().ok()?.len();
    // A log that was moved away begins anew.
    let from = if size < from { 0 } else { from.max(size.saturating_sub(LOG_TAIL)) };
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut text = Vec::new();
    file.take(LOG_TAIL).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let is_error = |line: &&str| line.contains("[ERROR") || line.contains("[CRITICAL");
    let process = format!("[{pid}]");
    let errors = || text.lines().rev().filter(is_error);
    // An own `log_fmt_logfile` may leave out the PID.
    let line = errors().find(|line| line.contains(&process)).or_else(|| errors().next())?;
    let level = line.find("[ERROR").or_else(|| line.find("[CRITICAL"))?;
    Some(line[level..].split_once("] ").map_or(line, |(_, message)| message).to_owned())
}

/// The PID file of a running daemon; removed on drop.
pub struct PidFile(PathBuf);

impl Drop for PidFile {
    fn drop(&mut self) {
        if !names_process(&self.0, std::process::id()) {
            // Another daemon has taken its place.
            return;
        }
        // It may have been removed. In a directory of root it can only be truncated.
        if std::fs::remove_file(&self.0).is_err() && self.0.exists() {
            _ = user_files::write(&self.0, "");
        }
    }
}

/// The signals that a daemon handles while this value exists; otherwise they kill the process.
pub struct Signals {
    term: Signal,
    int: Signal,
    hangup: Signal,
}

impl Signals {
    /// Installs the handlers. Those of some signals stay without a receiver, so that they do not end the process:
    /// - SIGXFSZ: a write beyond the limit of file sizes (`ulimit -f`, `LimitFSIZE`) is then an error like any other;
    /// - SIGUSR1, SIGUSR2: they make Salt write its stacks or a profile and run on.
    ///
    /// Programs that the daemon starts do not inherit them.
    pub fn install() -> anyhow::Result<Self> {
        let handle = |kind| signal(kind).context("handling signals failed");
        for ignored in [
            SignalKind::from_raw(nix::sys::signal::Signal::SIGXFSZ as i32),
            SignalKind::user_defined1(),
            SignalKind::user_defined2(),
        ] {
            drop(handle(ignored)?);
        }
        Ok(Signals {
            term: handle(SignalKind::terminate())?,
            int: handle(SignalKind::interrupt())?,
            hangup: handle(SignalKind::hangup())?,
        })
    }

    /// Returns a token that is cancelled by the first signal that stops the daemon, after `report` is called with it.
    pub fn cancelling(mut self, report: impl FnOnce(&'static str) + Send + 'static) -> CancellationToken {
        let shutdown = CancellationToken::new();
        let stop = shutdown.clone();
        tokio::spawn(async move {
            report(self.ended().await);
            stop.cancel();
        });
        shutdown
    }

    /// Works like [`Signals::cancelling`] for a daemon that may take its time after SIGTERM: the second token is cancelled
    /// by the next signal, and with the first one by others.
    pub fn cancelling_twice(
        mut self,
        report: impl FnOnce(&'static str) + Send + 'static,
    ) -> (CancellationToken, CancellationToken) {
        let tokens = (CancellationToken::new(), CancellationToken::new());
        let (begin, at_once) = tokens.clone();
        tokio::spawn(async move {
            let signal = self.ended().await;
            report(signal);
            begin.cancel();
            if signal == "SIGTERM" {
                self.ended().await;
            }
            at_once.cancel();
        });
        tokens
    }

    /// Waits for a signal that stops the daemon and returns its name. SIGHUP, with which logrotate asks daemons to
    /// reopen their log files, stops only a daemon on a terminal: a moved log file is reopened without a signal.
    pub async fn ended(&mut self) -> &'static str {
        let signal = loop {
            tokio::select! {
                _ = self.term.recv() => break "SIGTERM",
                _ = self.int.recv() => break "SIGINT",
                _ = self.hangup.recv() => {
                    if std::io::stdin().is_terminal() {
                        break "SIGHUP";
                    }
                    tracing::info!("SIGHUP ignored: a moved log file is reopened without it");
                }
            }
        };
        service_manager::stopping();
        signal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_of_a_daemon_are_recognised() {
        for (words, expected) in [
            ("salt-minion -d", true),
            ("/usr/bin/salt-minion", true),
            ("/usr/local/bin/brine salt-minion -d", true),
            ("brine minion -c etc", true),
            ("/usr/bin/python3 /usr/bin/salt-minion -d", true),
            ("/usr/local/bin/brine salt-master -d", false),
            ("vi /etc/salt/minion.d/a salt-minion", false),
            ("", false),
        ] {
            assert_eq!(is_of(words.replace(' ', "\0").as_bytes(), "salt-minion"), expected, "{words}");
        }
    }
}
