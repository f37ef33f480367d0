//! Daemons as child processes that end with the round: started, killed, terminated.

use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

pub struct Daemon(Child);

impl Daemon {
    pub fn spawn(command: &mut Command) -> Result<Self, String> {
        command.spawn().map(Daemon).map_err(|error| format!("starting {command:?} failed: {error}"))
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Returns the status of a daemon that has ended by itself.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().unwrap()
    }

    /// Sends SIGKILL and waits for the end.
    pub fn kill(mut self) {
        self.end();
    }

    /// Sends SIGTERM and waits for the end.
    pub async fn terminate(mut self, limit: Duration) -> Result<(), String> {
        let _ended = kill(Pid::from_raw(self.0.id().cast_signed()), Signal::SIGTERM);
        let start = Instant::now();
        while self.ended().is_none() {
            if start.elapsed() > limit {
                return Err(format!("the daemon did not end within {} s of SIGTERM", limit.as_secs()));
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    }

    fn end(&mut self) {
        let _ended = self.0.kill();
        let _status = self.0.wait();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.end();
    }
}
