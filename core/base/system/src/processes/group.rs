//! Child processes that lead a process group of their own.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
pub use nix::sys::signal::Signal;
use nix::sys::signal::killpg;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use parking_lot::Mutex;

/// The interval at which a wait with a deadline looks for the end of the process.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A child process that leads a process group, with all its descendants that have not left the group.
///
/// A signal goes to the group only until the leader is reaped: after that, the kernel may give its number to a process
/// of somebody else. Waiting for the end therefore does not reap; [`Group::reap`] does.
#[derive(Debug, Clone)]
pub struct Group(Arc<Leader>);

#[derive(Debug)]
struct Leader {
    pid: Pid,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    /// The process runs, or has ended and keeps its number.
    Unreaped(Child),
    Reaped(Result<ExitStatus, Errno>),
}

/// The pipes of a child process.
#[derive(Debug)]
pub struct Pipes {
    /// Its standard input, if that is a pipe.
    pub stdin: Option<ChildStdin>,
    /// Its standard output, likewise.
    pub stdout: Option<ChildStdout>,
    /// Its standard error, likewise.
    pub stderr: Option<ChildStderr>,
}

impl Group {
    /// Spawns a process as the leader of a new group.
    ///
    /// # Errors
    /// The process cannot be spawned.
    pub fn start(command: &mut Command) -> io::Result<(Self, Pipes)> {
        let mut child = super::start(command.process_group(0))?;
        let pipes = Pipes { stdin: child.stdin.take(), stdout: child.stdout.take(), stderr: child.stderr.take() };
        let pid = Pid::from_raw(child.id().cast_signed());
        Ok((Group(Arc::new(Leader { pid, state: Mutex::new(State::Unreaped(child)) })), pipes))
    }

    /// Returns the PID of the leader, which is the number of the group.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.0.pid.as_raw().cast_unsigned()
    }

    /// Sends a signal to all processes of the group. Returns whether there was one to receive it; never after the leader
    /// was reaped.
    pub fn signal(&self, signal: Signal) -> bool {
        let state = self.0.state.lock();
        matches!(*state, State::Unreaped(_)) && killpg(self.0.pid, signal).is_ok()
    }

    /// Waits for the end of the leader, without reaping it.
    pub fn wait(&self) {
        while !self.has_ended(WaitPidFlag::empty()) {}
    }

    /// Waits for the end of the leader as [`Group::wait`], until a deadline. Returns whether it has ended.
    #[must_use]
    pub fn wait_until(&self, deadline: Instant) -> bool {
        while !self.is_over() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            std::thread::sleep(POLL_INTERVAL.min(left));
        }
        true
    }

    /// Returns whether the leader has ended, without reaping it.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.has_ended(WaitPidFlag::WNOHANG)
    }

    fn has_ended(&self, how: WaitPidFlag) -> bool {
        if matches!(*self.0.state.lock(), State::Reaped(_)) {
            return true;
        }
        match waitid(Id::Pid(self.0.pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | how) {
            Ok(WaitStatus::StillAlive) | Err(Errno::EINTR) => false,
            // Another thread has reaped it, or this process ignores the ends of its children.
            Ok(_) | Err(_) => true,
        }
    }

    /// Waits for the end of the leader and reaps it. From then on no signal is sent to the group.
    ///
    /// # Errors
    /// The status of the process is not known.
    pub fn reap(&self) -> io::Result<ExitStatus> {
        self.wait();
        let mut state = self.0.state.lock();
        let status = match &mut *state {
            State::Unreaped(child) => {
                child.wait().map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or_default()))
            }
            State::Reaped(status) => *status,
        };
        *state = State::Reaped(status);
        status.map_err(io::Error::from)
    }

    /// Kills all processes of the group and reaps the leader.
    ///
    /// # Errors
    /// As for [`Group::reap`].
    pub fn kill(&self) -> io::Result<ExitStatus> {
        self.signal(Signal::SIGKILL);
        self.reap()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::Stdio;

    use super::*;

    fn sh(script: &str) -> (Group, Pipes) {
        Group::start(Command::new("sh").args(["-c", script]).stdout(Stdio::piped())).unwrap()
    }

    #[test]
    fn no_signal_is_sent_after_the_leader_was_reaped() {
        // A process of another session keeps the output open after the leader and its group have ended.
        let (group, mut pipes) = sh("setsid sleep 600 & echo $!");
        let mut first = [0; 16];
        let length = pipes.stdout.as_mut().unwrap().read(&mut first).unwrap();
        group.wait();
        assert!(group.is_over());
        assert!(group.signal(Signal::SIGKILL), "the number belongs to the leader until it is reaped");
        assert!(group.reap().unwrap().success());
        assert!(!group.signal(Signal::SIGKILL) && group.reap().unwrap().success() && group.is_over());
        let orphan = String::from_utf8_lossy(&first[..length]).trim().parse().unwrap();
        nix::sys::signal::kill(Pid::from_raw(orphan), Signal::SIGKILL).unwrap();
    }

    #[test]
    fn a_signal_reaches_the_group_of_an_ended_leader() {
        let (group, mut pipes) = sh("sleep 600 & exit 3");
        group.wait();
        assert_eq!(group.kill().unwrap().code(), Some(3));
        // The output ends with the other process of the group.
        pipes.stdout.take().unwrap().read_to_end(&mut Vec::new()).unwrap();
    }

    #[test]
    fn waiting_ends_at_a_deadline() {
        let (group, _pipes) = sh("exec sleep 600");
        assert!(!group.is_over());
        assert!(!group.wait_until(Instant::now() + Duration::from_millis(20)));
        assert!(!group.kill().unwrap().success());
        assert!(group.wait_until(Instant::now()));
    }
}
