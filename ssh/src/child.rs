//! A running `ssh`: in a process group of its own, with a deadline for every read and write.
//!
//! The host at the other end may be hostile: it may neither keep `ssh` alive, nor the caller waiting.

use std::io;
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep, sleep, timeout};

use crate::askpass::Answering;

/// The time that `ssh` has to exit after its output has ended, or after it was killed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time to wait for the stderr of an `ssh` that has exited: a shared connection that it leaves open may keep the
/// pipe open.
const STDERR_TIMEOUT: Duration = Duration::from_secs(1);

/// A running `ssh`. Dropping it kills its process group.
pub(crate) struct Ssh {
    child: Child,
    errors: Option<JoinHandle<Vec<u8>>>,
    /// Answers with the password, for as long as `ssh` runs.
    answering: Option<Answering>,
}

impl Ssh {
    /// Starts `ssh`, and a task that reads up to `limit` bytes of its stderr. Its streams fail when the host neither
    /// reads nor writes for the time `silence`.
    pub fn start(
        command: &mut Command,
        limit: usize,
        silence: Option<Duration>,
    ) -> io::Result<(Self, Timed<ChildStdin>, Timed<ChildStdout>)> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.kill_on_drop(true).process_group(0).spawn()?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut ssh = Ssh { child, errors: None, answering: None };
        let missing = || io::Error::other("the standard streams of ssh are not there");
        let (stdin, stdout, stderr) =
            (stdin.ok_or_else(missing)?, stdout.ok_or_else(missing)?, stderr.ok_or_else(missing)?);
        ssh.errors = Some(tokio::spawn(kept(stderr, limit)));
        Ok((ssh, Timed::new(stdin, silence), Timed::new(stdout, silence)))
    }

    /// Answers this process with a password.
    pub fn answer_by(&mut self, answering: Answering) {
        if let Some(pid) = self.child.id() {
            answering.of_process(pid);
        }
        self.answering = Some(answering);
    }

    /// Ends `ssh` after a complete exchange. Only this process: in its group may be the proxy of a shared connection.
    pub async fn close(mut self) {
        _ = self.child.start_kill();
        // After SIGKILL this fails only in an uninterruptible system call.
        _ = timeout(EXIT_TIMEOUT, self.child.wait()).await;
    }

    /// Waits for `ssh` to exit, and kills it with its group if it does not. Returns its exit status and its stderr;
    /// `None` as status if a signal ended it.
    pub async fn end(mut self) -> (Option<i64>, String) {
        let status = if let Ok(status) = timeout(EXIT_TIMEOUT, self.child.wait()).await {
            status
        } else {
            self.kill();
            timeout(EXIT_TIMEOUT, self.child.wait()).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        };
        (status.ok().and_then(|status| status.code()).map(i64::from), self.stderr().await)
    }

    /// Kills `ssh` with its group. Returns its stderr.
    pub async fn abort(mut self) -> String {
        self.kill();
        _ = timeout(EXIT_TIMEOUT, self.child.wait()).await;
        self.stderr().await
    }

    async fn stderr(&mut self) -> String {
        // `ssh` has ended, and asks for no password any more.
        drop(self.answering.take());
        let Some(errors) = self.errors.take() else { return String::new() };
        let stop = errors.abort_handle();
        let read = timeout(STDERR_TIMEOUT, errors).await;
        stop.abort();
        String::from_utf8_lossy(&read.ok().and_then(Result::ok).unwrap_or_default()).into_owned()
    }

    fn kill(&self) {
        // There is a PID as long as the process was not reaped: until then no other group can have its number.
        if let Some(group) = self.child.id().and_then(|pid| i32::try_from(pid).ok()) {
            _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        self.kill();
        if let Some(errors) = &self.errors {
            errors.abort();
        }
    }
}

/// Reads to the end, but keeps only the first `limit` bytes. The rest is drained, because a full pipe would block the
/// writer.
async fn kept(mut from: impl AsyncRead + Unpin, limit: usize) -> Vec<u8> {
    let mut output = Vec::new();
    _ = (&mut from).take(limit as u64).read_to_end(&mut output).await;
    _ = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
    output
}

/// A stream that fails with [`io::ErrorKind::TimedOut`] when an operation makes no progress for some time.
pub(crate) struct Timed<T> {
    stream: T,
    after: Option<Duration>,
    timer: Pin<Box<Sleep>>,
    is_waiting: bool,
}

impl<T> Timed<T> {
    fn new(stream: T, after: Option<Duration>) -> Self {
        Timed { stream, after, timer: Box::pin(sleep(Duration::ZERO)), is_waiting: false }
    }

    fn check<R>(&mut self, context: &mut Context<'_>, polled: Poll<io::Result<R>>) -> Poll<io::Result<R>> {
        let Some(after) = self.after.filter(|_| polled.is_pending()) else {
            self.is_waiting = false;
            return polled;
        };
        if !std::mem::replace(&mut self.is_waiting, true) {
            self.timer.as_mut().reset(Instant::now() + after);
        }
        ready!(self.timer.as_mut().poll(context));
        self.is_waiting = false;
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, format!("silent for {} seconds", after.as_secs()))))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Timed<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.check(context, polled)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Timed<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.check(context, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.check(context, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(context);
        self.check(context, polled)
    }
}
