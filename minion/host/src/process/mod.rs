//! Child processes of jobs: start, timeout, and termination of the process group.
//!
//! `output` bounds their output, `launcher` changes the user.

pub mod launcher;
mod output;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::future::Future;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use brine_system::processes::{Group, Pipes};
pub use brine_text::words::split;
use brine_value::{Value, map, python};
use nix::sys::signal::Signal;
use nix::unistd::User;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

pub use self::output::DEFAULT_LIMIT;
use self::output::{Captured, collect};

/// The running process groups of a job.
#[derive(Debug, Clone, Default)]
pub struct Children {
    groups: Arc<Mutex<BTreeMap<u32, Group>>>,
}

impl Children {
    /// Sends a signal to all processes of the job, including their children. Returns the number of groups.
    pub fn signal(&self, signal: Signal) -> usize {
        self.groups.lock().values().filter(|group| group.signal(signal)).count()
    }
}

/// A command to run.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// The command: for a shell, or to be split into words.
    pub command: String,
    /// The shell; without one, the first word is the program.
    pub shell: Option<String>,
    /// The working directory.
    pub cwd: Option<PathBuf>,
    /// Variables of its environment.
    pub env: Vec<(String, String)>,
    /// Whether these variables are its whole environment.
    pub clean_env: bool,
    /// Whether it has the locale of the minion in place of `C.UTF-8`.
    pub keep_locale: bool,
    /// Its standard input.
    pub stdin: Option<String>,
    /// The user that it runs as.
    pub runas: Option<String>,
    /// The timeout.
    pub timeout: Option<Duration>,
    /// The umask.
    pub umask: Option<u32>,
    /// The maximum size of each file that it writes, in bytes.
    pub file_limit: Option<u64>,
    /// Whether stderr is redirected to stdout.
    pub merge: bool,
    /// Whether trailing newlines of the output are kept.
    pub keep_line_ends: bool,
    /// Whether errors omit the command.
    pub quiet: bool,
    /// The maximum size of each output, in bytes; default: [`DEFAULT_LIMIT`].
    pub output_limit: Option<usize>,
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Its PID.
    pub pid: u32,
    /// Its exit status; the negated signal if one terminated it.
    pub retcode: i64,
    /// Its standard output, without trailing white space unless that is kept.
    pub stdout: String,
    /// Its standard error, likewise.
    pub stderr: String,
    /// Whether the timeout expired.
    pub timed_out: bool,
}

impl Output {
    /// Whether the standard output was cut at its limit.
    pub fn is_cut(&self) -> bool {
        output::is_cut(&self.stdout)
    }
}

/// The error of running a command.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The command has an unclosed quote.
    #[error("the command '{0}' has an unclosed quote")]
    Quoting(String),
    /// The command is empty.
    #[error("the command is empty")]
    Empty,
    /// The user does not exist.
    #[error("User '{0}' is not available")]
    NoUser(String),
    /// The directory does not exist.
    #[error("Specified cwd '{0}' either not absolute or does not exist")]
    NoFolder(PathBuf),
    /// The program could not be started.
    #[error("Unable to run command '{command}' with the context '{context}', reason: {}", reason(.program, .source))]
    Start {
        /// The command in Python's notation.
        command: String,
        /// Its settings in Python's notation.
        context: String,
        /// The program only.
        program: String,
        /// The error of the system.
        source: std::io::Error,
    },
}

/// Returns Python's message for a system error.
fn reason(program: &str, source: &std::io::Error) -> String {
    let text = source.to_string();
    match source.raw_os_error() {
        Some(code) => {
            let text = text.trim_end_matches(&format!(" (os error {code})")).to_owned();
            format!("[Errno {code}] {text}: '{program}'")
        }
        None => text,
    }
}

/// The unit of `ulimit -f` of a POSIX shell, in bytes.
const ULIMIT_BLOCK: u64 = 512;

/// The time to wait for the output of killed processes: a process that has left its process group may keep the pipe
/// open indefinitely.
const KILLED_OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// An event of a running command.
enum ProcessEvent {
    Ended,
    /// One of its two outputs was closed.
    Closed,
    /// The job may have been cancelled.
    Woken,
}

struct ChannelWaker(mpsc::Sender<ProcessEvent>);

impl Wake for ChannelWaker {
    fn wake(self: Arc<Self>) {
        _ = self.0.send(ProcessEvent::Woken);
    }
}

/// Waits for this time, or until the job is cancelled. Returns whether the job was cancelled.
pub fn cancelled_within(cancel: &CancellationToken, time: Duration) -> bool {
    let (sender, receiver) = mpsc::channel();
    let waker = Waker::from(Arc::new(ChannelWaker(sender)));
    let mut cancelled = pin!(cancel.cancelled());
    let deadline = Instant::now() + time;
    while cancelled.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
        if receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())).is_err() {
            return cancel.is_cancelled();
        }
    }
    true
}

impl Program {
    fn other_user(&self) -> Result<Option<User>, ProcessError> {
        let Some(name) = &self.runas else { return Ok(None) };
        User::from_name(name).ok().flatten().ok_or_else(|| ProcessError::NoUser(name.clone())).map(Some)
    }

    fn command(&self) -> Result<Command, ProcessError> {
        let mut words = match &self.shell {
            Some(shell) => vec![shell.clone(), "-c".into(), self.command.clone()],
            None => split(&self.command).ok_or_else(|| ProcessError::Quoting(self.command.clone()))?,
        };
        // No safe call sets the umask or the limits of only a child: a shell sets them and executes the program. A lower
        // limit stays.
        let umask = self.umask.map(|umask| format!("umask {umask:04o}; "));
        let limit = self.file_limit.map(|max| format!("ulimit -f {} 2>/dev/null; ", max.div_ceil(ULIMIT_BLOCK)));
        if (umask.is_some() || limit.is_some()) && !words.is_empty() {
            let script = format!("{}{}exec \"$@\"", umask.unwrap_or_default(), limit.unwrap_or_default());
            words.splice(0..0, ["/bin/sh".into(), "-c".into(), script, "sh".into()]);
        }
        let (program, args) = words.split_first().ok_or(ProcessError::Empty)?;
        let mut command = Command::new(program);
        command.args(args);
        if self.clean_env {
            command.env_clear();
        } else if !self.keep_locale {
            // Output that programs and templates parse must not depend on the operator's language.
            command.env("LC_ALL", "C.UTF-8");
        }
        let mut home = own_home();
        let user = self.other_user()?;
        if let Some(user) = &user {
            command.env("HOME", &user.dir).env("USER", &user.name).env("LOGNAME", &user.name);
            home = Some(user.dir.clone());
        }
        for (name, value) in crate::environment::changed().iter().filter(|_| !self.clean_env) {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        match &self.cwd {
            Some(cwd) if cwd.is_absolute() && cwd.is_dir() => command.current_dir(cwd),
            Some(cwd) => return Err(ProcessError::NoFolder(cwd.clone())),
            None => command.current_dir(existing(home)),
        };
        if let Some(user) = user {
            command = launcher::for_user(command, &user, self.clean_env).map_err(|source| self.not_started(source))?;
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.stdin(if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() });
        Ok(command)
    }

    /// Starts the command without waiting for its end, and returns its PID. It is not killed when its job ends.
    pub fn start(&self) -> Result<u32, ProcessError> {
        let mut command = self.command()?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let (group, _) = Group::start(&mut command).map_err(|source| self.not_started(source))?;
        let pid = group.id();
        std::thread::spawn(move || _ = group.reap());
        Ok(pid)
    }

    /// Returns the error of a command that could not be started, in Salt's wording.
    fn not_started(&self, source: std::io::Error) -> ProcessError {
        let words = split(&self.command).unwrap_or_default();
        let program = self.shell.clone().or_else(|| words.first().cloned()).unwrap_or_default();
        let command = match &self.shell {
            _ if self.quiet => "REDACTED".to_owned(),
            Some(_) => self.command.clone(),
            None => python::repr(&words.into()),
        };
        let home = || own_home().map_or_else(|| "/".to_owned(), |home| home.display().to_string());
        let cwd = self.cwd.as_ref().map_or_else(home, |cwd| cwd.display().to_string());
        let context = map! {
            "cwd" => cwd,
            "shell" => self.shell.is_some(),
            // Python's constants for a pipe and for redirection to stdout.
            "stdout" => -1,
            "stderr" => if self.merge { -2 } else { -1 },
            "with_communicate" => true,
            "timeout" => self.timeout.map_or(Value::Nil, |timeout| timeout.as_secs().into()),
            "bg" => false,
            "close_fds" => true,
        };
        ProcessError::Start { command, context: python::repr(&context.into()), program, source }
    }

    /// Runs the command until it and all processes that hold its output have ended, until its timeout, or until its job
    /// is cancelled.
    pub fn run(&self, children: &Children, cancel: &CancellationToken) -> Result<Output, ProcessError> {
        let start = |source| self.not_started(source);
        let mut command = self.command()?;
        let merged = if self.merge {
            let (reader, writer) = std::io::pipe().map_err(start)?;
            command.stdout(writer.try_clone().map_err(start)?).stderr(writer);
            Some(reader)
        } else {
            None
        };
        let (group, pipes) = Group::start(&mut command).map_err(start)?;
        let Pipes { stdin, stdout, stderr } = pipes;
        // `command` holds write ends of the pipe, which must be closed for the readers to end.
        drop(command);
        let pid = group.id();
        children.groups.lock().insert(pid, group.clone());
        if let (Some(mut pipe), Some(text)) = (stdin, self.stdin.clone()) {
            // A program that does not read its input is not an error.
            std::thread::spawn(move || _ = pipe.write_all(text.as_bytes()));
        }
        let (sender, events) = mpsc::channel();
        let limit = self.output_limit.unwrap_or(DEFAULT_LIMIT);
        let closed = |sender: &mpsc::Sender<ProcessEvent>| {
            let sender = sender.clone();
            // The job may have ended.
            move || _ = sender.send(ProcessEvent::Closed)
        };
        let stdout = match merged {
            Some(pipe) => collect(Some(pipe), limit, closed(&sender)),
            None => collect(stdout, limit, closed(&sender)),
        };
        let stderr = collect(stderr, limit, closed(&sender));
        let (ended, leader) = (sender.clone(), group.clone());
        std::thread::spawn(move || {
            // The leader is reaped when no signal will be sent any more: until then its number is not reused.
            leader.wait();
            _ = ended.send(ProcessEvent::Ended);
        });
        let waker = Waker::from(Arc::new(ChannelWaker(sender)));
        let mut cancelled = pin!(cancel.cancelled());
        let mut deadline = self.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let (mut timed_out, mut killed, mut has_ended, mut open) = (false, false, false, 2);
        let kill = || _ = group.signal(Signal::SIGKILL);
        while !has_ended || open > 0 {
            if !killed && cancelled.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                kill();
                (killed, deadline) = (true, Some(Instant::now() + KILLED_OUTPUT_TIMEOUT));
            }
            let next = match deadline {
                None => events.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected),
                Some(deadline) => events.recv_timeout(deadline.saturating_duration_since(Instant::now())),
            };
            match next {
                Ok(ProcessEvent::Ended) => has_ended = true,
                Ok(ProcessEvent::Closed) => open -= 1,
                Ok(ProcessEvent::Woken) => {}
                Err(_) if killed => break,
                Err(_) => {
                    kill();
                    (timed_out, killed, deadline) = (true, true, Some(Instant::now() + KILLED_OUTPUT_TIMEOUT));
                }
            }
        }
        children.groups.lock().remove(&pid);
        if !has_ended {
            // A process in an uninterruptible wait outlives its signal.
            std::thread::spawn(move || _ = group.reap());
            return Err(start(std::io::ErrorKind::TimedOut.into()));
        }
        let status = group.reap().map_err(start)?;
        let retcode = status.code().map(i64::from).or(status.signal().map(|signal| -i64::from(signal))).unwrap_or(1);
        let text = |captured: &Mutex<Captured>| {
            let captured = std::mem::take(&mut *captured.lock());
            if captured.is_cut() {
                brine_system::metrics::OUTPUT_CUT.add(1);
                // The command is not logged: it may contain a password.
                tracing::warn!(pid, limit, "the output of a command was cut: see `cmd_output_limit`");
            }
            captured.into_text(self.keep_line_ends)
        };
        Ok(Output { pid, retcode, stdout: text(&stdout), stderr: text(&stderr), timed_out })
    }
}

/// Returns the working directory of a command: this one, or the home directory of the user that it runs as.
pub fn working_directory(cwd: Option<&Path>, runas: Option<&str>) -> PathBuf {
    let home = || match runas.and_then(|name| User::from_name(name).ok().flatten()) {
        Some(user) => Some(user.dir),
        None => own_home(),
    };
    cwd.map_or_else(|| existing(home()), Path::to_owned)
}

/// Returns a home directory, or `/` if it is missing.
fn existing(home: Option<PathBuf>) -> PathBuf {
    home.filter(|home| home.is_dir()).unwrap_or_else(|| "/".into())
}

/// Returns the default working directory: the home of the environment, as Python's `~`, or else that of the user.
fn own_home() -> Option<PathBuf> {
    let user = || User::from_uid(nix::unistd::geteuid()).ok().flatten().map(|user| user.dir);
    crate::environment::variable("HOME").filter(|home| !home.is_empty()).map(PathBuf::from).or_else(user)
}
