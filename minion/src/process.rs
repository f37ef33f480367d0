//! Child processes of jobs: run, time out, end with all their children.

use std::collections::BTreeSet;
use std::future::Future;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::pin::pin;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, mpsc};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use brine_core::value::python;
use brine_core::{Value, map, processes};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, User};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// The process groups that a job has started and that have not ended.
#[derive(Debug, Clone, Default)]
pub struct Children {
    groups: Arc<Mutex<BTreeSet<i32>>>,
}

impl Children {
    /// Sends a signal to all processes of the job, their children too. Says how many groups there were.
    pub fn signal(&self, signal: Signal) -> usize {
        let groups = self.groups.lock();
        // One may just have ended.
        groups.iter().filter(|group| killpg(Pid::from_raw(**group), signal).is_ok()).count()
    }
}

/// A command to run.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// The command: for a shell, or split into words.
    pub command: String,
    /// The shell that runs it; without one, the first word is the program.
    pub shell: Option<String>,
    /// Where it runs.
    pub cwd: Option<PathBuf>,
    /// Variables of its environment.
    pub env: Vec<(String, String)>,
    /// Whether it sees only those variables.
    pub clean_env: bool,
    /// What it reads.
    pub stdin: Option<String>,
    /// The user that it runs as.
    pub runas: Option<String>,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// The bits that files it makes do not get.
    pub umask: Option<u32>,
    /// Whether both outputs are one, in the order they are written.
    pub merge: bool,
    /// Whether line ends at the end of what it writes are kept.
    pub keep_line_ends: bool,
    /// Whether errors do not show the command.
    pub quiet: bool,
}

/// What a command did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Its number.
    pub pid: u32,
    /// Its exit status; the negative signal if one ended it.
    pub retcode: i64,
    /// What it wrote, without trailing white space unless they are to be kept.
    pub stdout: String,
    /// What it wrote to the error output, likewise.
    pub stderr: String,
    /// Whether it was ended because it took too long.
    pub timed_out: bool,
}

/// Why a command could not be run.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The words cannot be split.
    #[error("the command '{0}' has a quote that is not closed")]
    Quoting(String),
    /// There is nothing to run.
    #[error("there is no command")]
    Empty,
    /// The user does not exist.
    #[error("User '{0}' is not available")]
    NoUser(String),
    /// The folder does not exist.
    #[error("Specified cwd '{0}' either not absolute or does not exist")]
    NoFolder(PathBuf),
    /// The system does not run it.
    #[error("Unable to run command '{command}' with the context '{context}', reason: {}", reason(.program, .source))]
    Start {
        /// What was to be run, as Python shows it.
        command: String,
        /// How it was to be run, as Python shows it.
        context: String,
        /// The program alone.
        program: String,
        /// What the system says.
        source: std::io::Error,
    },
}

/// What Python says of an error of the system.
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

/// How long the output of processes that were killed is waited for: one that has left its process
/// group may hold the pipe open for as long as it likes.
const AFTER_KILL: Duration = Duration::from_secs(1);

/// What a running command has to say.
enum News {
    Ended(std::io::Result<ExitStatus>),
    /// One of its two outputs is closed.
    Closed,
    /// The job may have been ended.
    Woken,
}

struct Bell(mpsc::Sender<News>);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        _ = self.0.send(News::Woken);
    }
}

/// Waits for this long, or until the job is ended. Says whether it was.
pub fn cancelled_within(cancel: &CancellationToken, time: Duration) -> bool {
    let (ring, bell) = mpsc::channel();
    let waker = Waker::from(Arc::new(Bell(ring)));
    let mut cancelled = pin!(cancel.cancelled());
    let deadline = Instant::now() + time;
    while cancelled.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
        if bell.recv_timeout(deadline.saturating_duration_since(Instant::now())).is_err() {
            return cancel.is_cancelled();
        }
    }
    true
}

impl Program {
    fn command(&self) -> Result<Command, ProcessError> {
        let mut words = match &self.shell {
            Some(shell) => vec![shell.clone(), "-c".into(), self.command.clone()],
            None => split(&self.command).ok_or_else(|| ProcessError::Quoting(self.command.clone()))?,
        };
        if let (Some(umask), false) = (self.umask, words.is_empty()) {
            // There is no safe call for the umask of a child alone: a shell sets it and becomes the program.
            let prefix = ["/bin/sh".into(), "-c".into(), format!("umask {umask:04o}; exec \"$@\""), "sh".into()];
            words.splice(0..0, prefix);
        }
        let (program, args) = words.split_first().ok_or(ProcessError::Empty)?;
        let mut command = Command::new(program);
        command.args(args);
        if self.clean_env {
            command.env_clear();
        } else {
            // Output that programs and templates read must not change with the operator's language.
            command.env("LC_ALL", "C.UTF-8");
        }
        let mut home = own_home();
        if let Some(name) = &self.runas {
            let user = User::from_name(name).ok().flatten().ok_or_else(|| ProcessError::NoUser(name.clone()))?;
            command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
            command.env("HOME", &user.dir).env("USER", name).env("LOGNAME", name);
            home = Some(user.dir);
        }
        for (name, value) in crate::modules::environ::changed().iter().filter(|_| !self.clean_env) {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        match &self.cwd {
            Some(cwd) if cwd.is_absolute() && cwd.is_dir() => command.current_dir(cwd),
            Some(cwd) => return Err(ProcessError::NoFolder(cwd.clone())),
            None => command.current_dir(home.filter(|home| home.is_dir()).unwrap_or_else(|| "/".into())),
        };
        command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.stdin(if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() });
        Ok(command)
    }

    /// Starts the command without waiting for its end, and gives its number. It does not end with its
    /// job.
    pub fn start(&self) -> Result<u32, ProcessError> {
        let mut command = self.command()?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = processes::start(&mut command).map_err(|source| self.not_started(source))?;
        let pid = child.id();
        // Nobody else would take its exit status from the system.
        std::thread::spawn(move || _ = child.wait());
        Ok(pid)
    }

    /// The error of a command that the system does not run, told as by Salt.
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
            // What stands for a pipe, and for where the other output goes.
            "stdout" => -1,
            "stderr" => if self.merge { -2 } else { -1 },
            "with_communicate" => true,
            "timeout" => self.timeout.map_or(Value::Nil, |timeout| timeout.as_secs().into()),
            "bg" => false,
            "close_fds" => true,
        };
        ProcessError::Start { command, context: python::repr(&context.into()), program, source }
    }

    /// Runs the command until it and all who hold its output have ended, to its time, or to the end
    /// of its job.
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
        let mut child = processes::start(&mut command).map_err(start)?;
        // It holds the writing ends of the pipe, whose closing is waited for.
        drop(command);
        let (pid, group) = (child.id(), child.id().cast_signed());
        children.groups.lock().insert(group);
        if let (Some(mut pipe), Some(text)) = (child.stdin.take(), self.stdin.clone()) {
            // A program that does not read its input is not an error.
            std::thread::spawn(move || _ = pipe.write_all(text.as_bytes()));
        }
        let (tell, news) = mpsc::channel();
        let stdout = match merged {
            Some(pipe) => collect(Some(pipe), &tell),
            None => collect(child.stdout.take(), &tell),
        };
        let stderr = collect(child.stderr.take(), &tell);
        let ended = tell.clone();
        std::thread::spawn(move || _ = ended.send(News::Ended(child.wait())));
        let waker = Waker::from(Arc::new(Bell(tell)));
        let mut cancelled = pin!(cancel.cancelled());
        let mut deadline = self.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let (mut timed_out, mut killed, mut status, mut open) = (false, false, None, 2);
        let kill = || _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        while status.is_none() || open > 0 {
            if !killed && cancelled.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                kill();
                (killed, deadline) = (true, Some(Instant::now() + AFTER_KILL));
            }
            let next = match deadline {
                None => news.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected),
                Some(deadline) => news.recv_timeout(deadline.saturating_duration_since(Instant::now())),
            };
            match next {
                Ok(News::Ended(ended)) => status = Some(ended),
                Ok(News::Closed) => open -= 1,
                Ok(News::Woken) => {}
                Err(_) if killed => break,
                Err(_) => {
                    kill();
                    (timed_out, killed, deadline) = (true, true, Some(Instant::now() + AFTER_KILL));
                }
            }
        }
        children.groups.lock().remove(&group);
        let status = status.unwrap_or_else(|| Err(std::io::ErrorKind::TimedOut.into())).map_err(start)?;
        let retcode = status.code().map(i64::from).or(status.signal().map(|signal| -i64::from(signal))).unwrap_or(1);
        let text = |bytes: &Mutex<Vec<u8>>| {
            let text = String::from_utf8_lossy(&bytes.lock()).into_owned();
            if self.keep_line_ends { text } else { text.trim_end().to_owned() }
        };
        Ok(Output { pid, retcode, stdout: text(&stdout), stderr: text(&stderr), timed_out })
    }
}

/// Reads a pipe to its end in a thread of its own.
fn collect(pipe: Option<impl Read + Send + 'static>, tell: &mpsc::Sender<News>) -> Arc<Mutex<Vec<u8>>> {
    let read = Arc::new(Mutex::new(Vec::new()));
    let (into, tell) = (Arc::clone(&read), tell.clone());
    std::thread::spawn(move || {
        let mut buffer = [0; 8192];
        if let Some(mut pipe) = pipe {
            loop {
                match pipe.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(length) => into.lock().extend_from_slice(&buffer[..length]),
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
        }
        _ = tell.send(News::Closed);
    });
    read
}

/// The folder in which commands run that name none: that of the environment, as Python's `~`, or else the user's.
fn own_home() -> Option<PathBuf> {
    let user = || User::from_uid(nix::unistd::geteuid()).ok().flatten().map(|user| user.dir);
    crate::modules::environ::variable("HOME").filter(|home| !home.is_empty()).map(PathBuf::from).or_else(user)
}

/// Splits into words as a shell does, without expanding anything, so that in `"` a `\` stands for itself before all but
/// `"` and `\`, as with Python's `shlex`. Nothing if a quote is not closed.
pub fn split(text: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut chars) = (Vec::new(), None::<String>, text.chars());
    while let Some(c) = chars.next() {
        match c {
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '\\' => match chars.next()? {
                            c @ ('"' | '\\') => word.push(c),
                            c => word.extend(['\\', c]),
                        },
                        c => word.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(chars.next()?),
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(program: &Program) -> Result<Output, ProcessError> {
        program.run(&Children::default(), &CancellationToken::new())
    }

    fn shell(command: &str) -> Program {
        Program { command: command.into(), shell: Some("/bin/sh".into()), ..Program::default() }
    }

    #[test]
    fn words_are_split_as_a_shell_splits_them() {
        for (text, words) in [
            ("a b  c", Some(vec!["a", "b", "c"])),
            ("a 'b c' \"d \\\" e\" f\\ g", Some(vec!["a", "b c", "d \" e", "f g"])),
            (r#"awk "{print \$1}""#, Some(vec!["awk", r"{print \$1}"])),
            ("''", Some(vec![""])),
            ("", Some(vec![])),
            ("a 'b", None),
            ("a \"b", None),
        ] {
            let words = words.map(|words| words.into_iter().map(String::from).collect::<Vec<_>>());
            assert_eq!(split(text), words, "{text}");
        }
    }

    #[test]
    fn commands_run_with_and_without_a_shell() {
        let output = run(&shell("echo out; echo err >&2; exit 3")).unwrap();
        assert_eq!((output.retcode, output.stdout.as_str(), output.stderr.as_str()), (3, "out", "err"));
        let plain = Program { command: "echo 'a | b'".into(), ..Program::default() };
        assert_eq!(run(&plain).unwrap().stdout, "a | b");
        let with = Program {
            stdin: Some("hello".into()),
            cwd: Some("/".into()),
            env: vec![("X".into(), "y".into())],
            ..shell("cat; pwd; echo $X")
        };
        assert_eq!(run(&with).unwrap().stdout, "hello/\ny");
    }

    #[test]
    fn what_cannot_be_run_says_why() {
        for (program, message) in [
            (
                Program { command: "/no/such/program".into(), ..Program::default() },
                "Unable to run command '['/no/such/program']' with the context '{'cwd': '",
            ),
            (
                Program { command: "/no/such/program".into(), quiet: true, ..Program::default() },
                "Unable to run command 'REDACTED' with the context '{'cwd': '",
            ),
            (
                Program { cwd: Some("/no/such".into()), ..shell("true") },
                "Specified cwd '/no/such' either not absolute or does not exist",
            ),
            (Program { runas: Some("nobody_here".into()), ..shell("true") }, "User 'nobody_here' is not available"),
            (Program::default(), "there is no command"),
        ] {
            let error = run(&program).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }

    #[test]
    fn time_and_cancellation_end_the_children_too() {
        let slow = Program { timeout: Some(Duration::from_millis(100)), ..shell("sleep 600 & echo $!; wait") };
        let output = run(&slow).unwrap();
        assert!(output.timed_out);
        assert_eq!(output.retcode, -9);
        let grandchild: i32 = output.stdout.parse().unwrap();
        let state = || std::fs::read_to_string(format!("/proc/{grandchild}/status")).unwrap_or_default();
        let gone = |status: String| status.is_empty() || status.contains("Z (zombie)") || status.contains("X (dead)");
        let start = Instant::now();
        while !gone(state()) {
            assert!(start.elapsed() < Duration::from_secs(20), "the grandchild lives on");
            std::thread::yield_now();
        }

        let (children, cancel) = (Children::default(), CancellationToken::new());
        cancel.cancel();
        assert_eq!(shell("sleep 600").run(&children, &cancel).unwrap().retcode, -9);
        assert!(children.groups.lock().is_empty());
    }

    #[test]
    fn a_job_that_is_ended_ends_its_commands_and_waits() {
        let (children, cancel) = (Arc::new(Children::default()), CancellationToken::new());
        let running = {
            let (children, cancel) = (Arc::clone(&children), cancel.clone());
            std::thread::spawn(move || shell("echo started; sleep 600").run(&children, &cancel))
        };
        let waiting = {
            let cancel = cancel.clone();
            std::thread::spawn(move || cancelled_within(&cancel, Duration::from_secs(600)))
        };
        while children.groups.lock().is_empty() {
            std::thread::yield_now();
        }
        cancel.cancel();
        assert_eq!(running.join().unwrap().unwrap().retcode, -9);
        assert!(waiting.join().unwrap());
        assert!(!cancelled_within(&CancellationToken::new(), Duration::from_millis(1)));
    }

    #[test]
    fn a_signal_reaches_the_processes_of_a_job() {
        let (children, cancel) = (Arc::new(Children::default()), CancellationToken::new());
        let running = {
            let (children, cancel) = (Arc::clone(&children), cancel.clone());
            std::thread::spawn(move || shell("sleep 600").run(&children, &cancel))
        };
        while children.signal(Signal::SIGTERM) == 0 {
            std::thread::yield_now();
        }
        assert_eq!(running.join().unwrap().unwrap().retcode, -15);
    }

    #[test]
    fn output_of_background_processes_is_waited_for() {
        assert_eq!(run(&shell("(sleep 0.1; echo late) & echo early")).unwrap().stdout, "early\nlate");
    }

    #[test]
    fn merged_output_keeps_its_order() {
        let merged = Program { merge: true, ..shell("echo a; echo b >&2; echo c") };
        let output = run(&merged).unwrap();
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("a\nb\nc", ""));
    }

    #[test]
    fn the_umask_the_user_and_the_folder_are_set() {
        let masked = Program { umask: Some(0o027), ..shell("umask") };
        assert_eq!(run(&masked).unwrap().stdout, "0027");
        let plain =
            Program { command: "sh -c 'umask; echo \"$1\"' x 'a  b'".into(), umask: Some(0o077), ..Program::default() };
        assert_eq!(run(&plain).unwrap().stdout, "0077\na  b");
        let other = Program { runas: Some("nobody".into()), ..shell("id -un; pwd") };
        assert_eq!(run(&other).unwrap().stdout, "nobody\n/");
        let home = own_home().unwrap();
        assert_eq!(run(&shell("pwd")).unwrap().stdout, home.display().to_string());
    }
}
