//! Child processes of jobs: run, time out, end with all their children.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, User};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// The process groups that a job has started and that have not ended.
#[derive(Debug, Default)]
pub struct Children {
    groups: Mutex<BTreeSet<i32>>,
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
}

/// What a command did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Its number.
    pub pid: u32,
    /// Its exit status; the negative signal if one ended it.
    pub retcode: i64,
    /// What it wrote, without trailing line ends.
    pub stdout: String,
    /// What it wrote to the error output, without trailing line ends.
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
    #[error("Unable to run command '{command}': {source}")]
    Start {
        /// What was to be run.
        command: String,
        /// What the system says.
        source: std::io::Error,
    },
}

impl Program {
    fn command(&self) -> Result<Command, ProcessError> {
        let mut command = if let Some(shell) = &self.shell {
            let mut command = Command::new(shell);
            command.arg("-c").arg(&self.command);
            command
        } else {
            let words = split(&self.command).ok_or_else(|| ProcessError::Quoting(self.command.clone()))?;
            let (program, args) = words.split_first().ok_or(ProcessError::Empty)?;
            let mut command = Command::new(program);
            command.args(args);
            command
        };
        if let Some(cwd) = &self.cwd {
            if !cwd.is_absolute() || !cwd.is_dir() {
                return Err(ProcessError::NoFolder(cwd.clone()));
            }
            command.current_dir(cwd);
        }
        if self.clean_env {
            command.env_clear();
        } else {
            // Output that programs and templates read must not change with the operator's language.
            command.env("LC_ALL", "C.UTF-8");
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(name) = &self.runas {
            let user = User::from_name(name).ok().flatten().ok_or_else(|| ProcessError::NoUser(name.clone()))?;
            command.uid(user.uid.as_raw()).gid(user.gid.as_raw()).env("HOME", &user.dir).env("USER", name);
        }
        command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.stdin(if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() });
        Ok(command)
    }

    /// Runs the command to its end, to its time, or to the end of its job.
    pub fn run(&self, children: &Children, cancel: &CancellationToken) -> Result<Output, ProcessError> {
        let start = |source| ProcessError::Start { command: self.command.clone(), source };
        let mut child = self.command()?.spawn().map_err(start)?;
        let (pid, group) = (child.id(), child.id().cast_signed());
        children.groups.lock().insert(group);
        if let (Some(mut pipe), Some(text)) = (child.stdin.take(), self.stdin.clone()) {
            // A program that does not read its input is not an error.
            std::thread::spawn(move || _ = pipe.write_all(text.as_bytes()));
        }
        let (stdout, stderr) = (collect(child.stdout.take()), collect(child.stderr.take()));
        let (ended, end) = mpsc::channel();
        std::thread::spawn(move || _ = ended.send(child.wait()));
        let deadline = self.timeout.map(|timeout| std::time::Instant::now() + timeout);
        let mut timed_out = false;
        let status = loop {
            // The job's end is looked for now and then: a thread can wait for one thing only.
            match end.recv_timeout(Duration::from_millis(50)) {
                Ok(status) => break status,
                Err(_) if deadline.is_some_and(|deadline| std::time::Instant::now() >= deadline) => {
                    timed_out = true;
                    _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
                    break end.recv().unwrap_or_else(|_| Err(std::io::ErrorKind::Interrupted.into()));
                }
                Err(_) if cancel.is_cancelled() => {
                    _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
                    break end.recv().unwrap_or_else(|_| Err(std::io::ErrorKind::Interrupted.into()));
                }
                Err(_) => {}
            }
        };
        children.groups.lock().remove(&group);
        let status = status.map_err(start)?;
        let retcode = status.code().map(i64::from).or(status.signal().map(|signal| -i64::from(signal))).unwrap_or(1);
        let text = |pipe: mpsc::Receiver<Vec<u8>>| {
            // A grandchild may hold the pipe open after the command itself has ended.
            let bytes = pipe.recv_timeout(Duration::from_secs(if timed_out { 1 } else { 3600 })).unwrap_or_default();
            String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']).to_owned()
        };
        Ok(Output { pid, retcode, stdout: text(stdout), stderr: text(stderr), timed_out })
    }
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (done, read) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            _ = pipe.read_to_end(&mut bytes);
        }
        _ = done.send(bytes);
    });
    read
}

/// Splits into words as a shell does, without expanding anything. Nothing if a quote is not closed.
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
                            c @ ('"' | '\\' | '$' | '`') => word.push(c),
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
                "Unable to run command '/no/such/program': ",
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
        let start = std::time::Instant::now();
        while !gone(state()) {
            assert!(start.elapsed() < Duration::from_secs(20), "the grandchild lives on");
            std::thread::yield_now();
        }

        let (children, cancel) = (Children::default(), CancellationToken::new());
        cancel.cancel();
        assert_eq!(shell("sleep 600").run(&children, &cancel).unwrap().retcode, -9);
        assert!(children.groups.lock().is_empty());
    }
}
