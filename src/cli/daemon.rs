//! What the daemons have in common: their options, going to the background, signals, the pid file.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use brine_check::Finding;
use brine_system::files;
use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::common::Role;
use crate::ui::print_plain;

/// Set for the process that a daemon goes on in.
const IN_BACKGROUND: &str = "BRINE_IN_BACKGROUND";
/// How long a daemon may take to start in the background.
const START_TIME: Duration = Duration::from_secs(10);

/// Options of daemons.
#[derive(Args, Debug)]
#[command(next_help_heading = "Daemon options")]
pub struct DaemonOptions {
    /// Run in the background
    #[arg(short, long)]
    daemon: bool,
    /// The file that holds the process number
    #[arg(long, value_name = "FILE")]
    pid_file: Option<PathBuf>,
    /// The user to run as, if root starts it; default: the option 'user'
    #[arg(short, long, value_name = "USER")]
    user: Option<String>,
    /// Check the configuration and change nothing; exit status 1 if the daemon could not start or a part of it not work
    #[arg(long)]
    check: bool,
}

/// Whether this process is the daemon that another one has started in the background: nobody reads its stderr.
pub fn is_in_background() -> bool {
    std::env::var_os(IN_BACKGROUND).is_some()
}

impl DaemonOptions {
    /// The user that the command line names.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The pid file.
    pub fn pid_file<'a>(&'a self, configured: &'a Path) -> &'a Path {
        self.pid_file.as_deref().unwrap_or(configured)
    }

    /// What this process logs for.
    pub fn role(&self) -> Role {
        if self.check || self.daemon && !is_in_background() { Role::BeforeDaemon } else { Role::Daemon }
    }

    /// Prints the findings of `--check`, a line each, and returns the exit status: 1 if something would keep the daemon
    /// from starting or a part of its configuration from working, else 0. Nothing if `--check` is not given.
    pub fn only_check(&self, examine: impl FnOnce() -> Vec<Finding>) -> Option<ExitCode> {
        if !self.check {
            return None;
        }
        let findings = examine();
        for finding in &findings {
            print_plain(finding);
        }
        let fails = findings.iter().any(Finding::is_failure);
        Some(if fails { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    /// Goes to the background if that is wanted: the status to exit with, for the process that stays.
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
        // What was left of an earlier one says nothing about this one.
        _ = std::fs::remove_file(pid_file);
        let mut command = Command::new(std::env::current_exe().context("cannot find the program itself")?);
        command.arg(tool).args(words).env(IN_BACKGROUND, "1");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut child = command.spawn().context("cannot start in the background")?;
        let start = Instant::now();
        // An empty one says that the daemon is about to serve.
        while !std::fs::metadata(pid_file).is_ok_and(|file| file.len() > 0) {
            if let Some(status) = child.try_wait()? {
                bail!("it ended at once ({status}): see {}", log_file.display());
            }
            if start.elapsed() > START_TIME {
                bail!("it did not start within {START_TIME:?}: see {}", log_file.display());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(Some(ExitCode::SUCCESS))
    }

    /// Says in the pid file that the daemon serves.
    pub fn write_pid(&self, configured: &Path) -> anyhow::Result<PidFile> {
        let path = self.pid_file(configured).to_owned();
        if let Some(folder) = path.parent() {
            create_dir(folder)?;
        }
        let line = format!("{}\n", std::process::id());
        if let Err(error) = files::write_atomic(&path, line.as_bytes(), 0o644) {
            // Its directory may be root's, the file the user's.
            if !path.exists() || std::fs::write(&path, line).is_err() {
                return Err(error.into());
            }
        }
        if is_in_background() {
            // A session of its own: the terminal's end is not the daemon's.
            _ = nix::unistd::setsid();
        }
        Ok(PidFile(path))
    }
}

/// Creates a directory that others may read, whatever the umask says.
fn create_dir(path: &Path) -> anyhow::Result<()> {
    let created = std::fs::DirBuilder::new().recursive(true).mode(0o755).create(path);
    created.with_context(|| format!("creating {} failed", path.display()))
}

/// The pid file of a daemon that runs; removed when it ends.
pub struct PidFile(PathBuf);

impl Drop for PidFile {
    fn drop(&mut self) {
        // It may be gone with its folder. In a directory of root's it can only be emptied.
        if std::fs::remove_file(&self.0).is_err() && self.0.exists() {
            _ = std::fs::write(&self.0, "");
        }
    }
}

/// The signals that a daemon handles, from when this exists: without it they end the process at once.
pub struct Signals {
    term: Signal,
    int: Signal,
    hangup: Signal,
}

impl Signals {
    /// Handles signals from now on.
    pub fn install() -> anyhow::Result<Self> {
        let handle = |kind| signal(kind).context("handling signals failed");
        Ok(Signals {
            term: handle(SignalKind::terminate())?,
            int: handle(SignalKind::interrupt())?,
            hangup: handle(SignalKind::hangup())?,
        })
    }

    /// Waits for a signal that ends a daemon, and returns its name. SIGHUP, with which logrotate and admins ask daemons
    /// for new log files, ends only one that runs on a terminal: the log file is opened again by itself when it was moved.
    pub async fn ended(&mut self) -> &'static str {
        loop {
            tokio::select! {
                _ = self.term.recv() => return "SIGTERM",
                _ = self.int.recv() => return "SIGINT",
                _ = self.hangup.recv() => {
                    if std::io::stdin().is_terminal() {
                        return "SIGHUP";
                    }
                    tracing::info!("SIGHUP received: the log file is opened again when it was moved");
                }
            }
        }
    }
}
