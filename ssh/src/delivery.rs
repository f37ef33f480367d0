//! Starts the program on a host: reads the lines of the start command, and sends the program to a host that lacks it.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::{Instant, timeout_at};

use crate::child::Timed;
use crate::command::SIZE;
use crate::program::Compressor;
use crate::session::{Caller, Failure, MAX_LOGIN_OUTPUT};

/// The number of times that the program is pushed in one call.
const MAX_PUSHES: usize = 2;

impl Caller {
    /// Reads the lines that precede the start of the program, and pushes the program if the host requests it. Fails if
    /// this takes longer than `time`, without the push.
    pub(crate) async fn start(
        &self,
        token: &str,
        stdin: &mut Timed<ChildStdin>,
        stdout: &mut BufReader<Timed<ChildStdout>>,
        time: Duration,
    ) -> Result<(), Failure> {
        let (mut noise, mut pushes) = (Vec::new(), 0);
        let mut deadline = Instant::now() + time;
        loop {
            let mut line = Vec::new();
            let room = MAX_LOGIN_OUTPUT.saturating_sub(noise.len()) as u64;
            if room == 0 {
                let size = MAX_LOGIN_OUTPUT >> 10;
                return Err(Failure::Host(format!("the output of the login exceeds {size} KiB")));
            }
            let mut limited = (&mut *stdout).take(room);
            let read = timeout_at(deadline, limited.read_until(b'\n', &mut line)).await;
            read.map_err(|_| Failure::Host(format!("the login has taken more than {} seconds", time.as_secs())))??;
            if line.is_empty() {
                return Err(Failure::Ended(noise));
            }
            let text = String::from_utf8_lossy(&line);
            let said = text.trim_end().strip_prefix(token).map(|rest| rest.trim().to_owned());
            match said.as_deref().map(|said| said.split_once(' ').unwrap_or((said, ""))) {
                Some(("READY", _)) => return Ok(()),
                Some(("NEED", _)) if pushes == MAX_PUSHES => {
                    return Err(Failure::Host("the host requests the program again and again".to_owned()));
                }
                Some(("NEED", machine)) => {
                    let began = Instant::now();
                    self.push(machine, stdin).await?;
                    pushes += 1;
                    // The time of a slow connection does not count: each part must make progress.
                    deadline += began.elapsed();
                }
                Some(("MACHINE", machine)) => {
                    return Err(Failure::Host(self.programs.of(machine).err().unwrap_or_default()));
                }
                Some((_, message)) => return Err(Failure::Host(message.to_owned())),
                // Output of the login.
                None => noise.extend(line),
            }
        }
    }

    /// Sends the size of the program and then the program. `host` is the system and machine of the host, followed by
    /// the name of its decompressor if it has one.
    async fn push(&self, host: &str, stdin: &mut Timed<ChildStdin>) -> Result<(), Failure> {
        let split = host.rsplit_once(' ').and_then(|(machine, name)| Some((machine, Compressor::of_name(name)?)));
        let (machine, compressor) = split.map_or((host, None), |(machine, compressor)| (machine, Some(compressor)));
        let program = self.programs.of(machine).map_err(Failure::Host)?;
        if let Some(compressor) = compressor {
            let bytes = program.compressed(compressor).await;
            let bytes = bytes.map_err(|error| Failure::Host(format!("compressing the program failed: {error}")))?;
            tracing::debug!(bytes = bytes.len(), by = compressor.name(), "pushing the compressed program");
            stdin.write_all(size_field(bytes.len() as u64).as_bytes()).await?;
            stdin.write_all(&bytes).await?;
        } else {
            let size = program.size;
            tracing::debug!(bytes = size, "pushing the program");
            stdin.write_all(size_field(size).as_bytes()).await?;
            let mut file = program.open().await?;
            tokio::io::copy(&mut (&mut file).take(size), stdin).await?;
        }
        stdin.flush().await?;
        Ok(())
    }
}

/// Formats the size of the program as the host reads it: digits padded with newlines to [`SIZE`] bytes.
fn size_field(bytes: u64) -> String {
    format!("{bytes:\n<SIZE$}")
}
