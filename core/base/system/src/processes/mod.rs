//! Child processes: runs programs to their end within limits, and spawns children without racing scripts that are still
//! being written (ETXTBSY). `group.rs` sends signals to process groups.
//!
//! Between fork and exec, a child holds all open files of its parent. A script that another thread is writing at that
//! moment is then open for writing in the child, and the kernel refuses to execute it: "Text file busy". So no process
//! is spawned while such a file is written.

mod group;

use std::ffi::OsStr;
use std::io::{self, Read as _, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use parking_lot::RwLock;

use crate::metrics;
pub use group::{Group, Pipes, Signal};

/// The time for which a write waits for processes that are being spawned.
const TIMEOUT: Duration = Duration::from_secs(5);

static STARTING: RwLock<()> = RwLock::new(());

/// Returns the path of an executable. A name that contains a `/` is its path; others are searched in `PATH`.
pub fn find(name: &Path) -> Option<PathBuf> {
    find_in(name, &std::env::var_os("PATH").unwrap_or_default())
}

/// As [`find`], in these colon-separated directories.
pub fn find_in(name: &Path, directories: &OsStr) -> Option<PathBuf> {
    let runs = |path: &PathBuf| {
        path.metadata().is_ok_and(|status| status.is_file() && status.permissions().mode() & 0o111 != 0)
    };
    if name.as_os_str().as_encoded_bytes().contains(&b'/') {
        return Some(name.to_owned()).filter(runs);
    }
    std::env::split_paths(directories).map(|directory| directory.join(name)).find(runs)
}

/// Spawns a process.
pub fn start(command: &mut Command) -> io::Result<Child> {
    let _shared = STARTING.read();
    command.spawn()
}

/// The maximum size of output kept in memory, in bytes.
const OUTPUT_LIMIT: usize = 16 << 20;

/// Runs a process to its end and returns its output.
///
/// # Errors
///
/// The process cannot be spawned, runs for longer than `timeout`, or writes more than 16 MiB to its standard output: then
/// it is killed with its descendants. Standard error is truncated.
pub fn output(command: &mut Command, timeout: Duration) -> io::Result<Output> {
    output_with(command, &[], OUTPUT_LIMIT, timeout)
}

/// As [`output`], with `input` as standard input.
///
/// # Errors
/// As for [`output`].
pub fn output_of(command: &mut Command, input: &[u8], timeout: Duration) -> io::Result<Output> {
    output_with(command.stdin(Stdio::piped()), input, OUTPUT_LIMIT, timeout)
}

/// The time to wait for the output of a killed process: a descendant that has left its group may keep the pipe open.
const KILLED_OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// What a thread has read, and whether that was truncated.
type Read = io::Result<(Vec<u8>, bool)>;

enum Event {
    Stdout(Read),
    Stderr(Read),
    Ended,
}

fn output_with(command: &mut Command, input: &[u8], limit: usize, timeout: Duration) -> io::Result<Output> {
    let program = command.get_program().to_owned();
    let mut deadline = Instant::now().checked_add(timeout);
    let (group, pipes) = Group::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    let (sender, events) = mpsc::channel();
    // The threads end with the process, or with the last descendant that holds a pipe; then nobody may be left to listen.
    if let Some(mut stdin) = pipes.stdin {
        let input = input.to_owned();
        // A process may exit without reading all of its input.
        std::thread::spawn(move || _ = stdin.write_all(&input));
    }
    let (of_stdout, of_stderr, of_leader) = (sender.clone(), sender.clone(), sender);
    let own = group.clone();
    std::thread::spawn(move || {
        let read = bounded(pipes.stdout, limit, false);
        if !matches!(read, Ok((_, false))) {
            own.signal(Signal::SIGKILL);
        }
        _ = of_stdout.send(Event::Stdout(read));
    });
    std::thread::spawn(move || _ = of_stderr.send(Event::Stderr(bounded(pipes.stderr, limit, true))));
    let own = group.clone();
    std::thread::spawn(move || {
        own.wait();
        _ = of_leader.send(Event::Ended);
    });
    let (mut stdout, mut stderr, mut has_ended, mut is_late) = (None, None, false, false);
    while stdout.is_none() || stderr.is_none() || !has_ended {
        let next = match deadline {
            None => events.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected),
            Some(deadline) => events.recv_timeout(deadline.saturating_duration_since(Instant::now())),
        };
        match next {
            Ok(Event::Stdout(read)) => stdout = Some(read),
            Ok(Event::Stderr(read)) => stderr = Some(read),
            Ok(Event::Ended) => has_ended = true,
            Err(_) if is_late => break,
            Err(_) => {
                is_late = true;
                group.signal(Signal::SIGKILL);
                deadline = Some(Instant::now() + KILLED_OUTPUT_TIMEOUT);
            }
        }
    }
    if is_late {
        metrics::PROGRAMS_TIMED_OUT.add(1);
        tracing::warn!(?program, ?timeout, "a program did not end in time and was killed");
        // A process in an uninterruptible wait may outlive its signal.
        std::thread::spawn(move || _ = group.reap());
        return Err(io::Error::new(io::ErrorKind::TimedOut, format!("it ran longer than {timeout:?} and was killed")));
    }
    let status = group.reap()?;
    let lost = || Err(io::Error::other("reading the output failed"));
    let ((stdout, is_cut), (stderr, is_stderr_cut)) = (stdout.unwrap_or_else(lost)?, stderr.unwrap_or_else(lost)?);
    if is_cut {
        return Err(io::Error::other(format!("it wrote more than {limit} bytes and was killed")));
    }
    if is_stderr_cut {
        metrics::OUTPUT_CUT.add(1);
        tracing::warn!(?program, limit, "the standard error of a program was truncated");
    }
    Ok(Output { status, stdout, stderr })
}

/// Reads a pipe up to the limit, or to its end, discarding all bytes beyond the limit. Returns the bytes, and whether
/// they were truncated.
fn bounded(pipe: Option<impl io::Read>, limit: usize, to_end: bool) -> Read {
    let Some(mut pipe) = pipe else { return Ok((Vec::new(), false)) };
    let mut output = Vec::new();
    pipe.by_ref().take(limit as u64).read_to_end(&mut output)?;
    let is_cut = output.len() == limit && pipe.read(&mut [0])? > 0;
    if is_cut && to_end {
        io::copy(&mut pipe, &mut io::sink())?;
    }
    Ok((output, is_cut))
}

/// Calls `write`, which writes a file that will be executed, while no process is being spawned.
pub fn write_program<T>(write: impl FnOnce() -> T) -> T {
    // A process that hangs in exec, as on an unreachable network file system, must not block all writers.
    let alone = STARTING.try_write_for(TIMEOUT);
    if alone.is_none() {
        tracing::warn!(
            "a process has been starting for {} s: writing a script without waiting for it",
            TIMEOUT.as_secs()
        );
    }
    write()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, input: &[u8]) -> io::Result<Output> {
        let timeout = Duration::from_secs(60);
        output_with(Command::new("sh").args(["-c", script]).stdin(Stdio::piped()), input, 100_000, timeout)
    }

    #[test]
    fn output_is_bounded() {
        let all = sh("head -c 100000 /dev/zero; echo error >&2; exit 3", b"").unwrap();
        assert_eq!((all.stdout.len(), all.stderr, all.status.code()), (100_000, b"error\n".to_vec(), Some(3)));
        let error = sh("cat /dev/zero", b"").unwrap_err();
        assert_eq!(error.to_string(), "it wrote more than 100000 bytes and was killed");
        let cut = sh("head -c 200000 /dev/zero >&2; echo out", b"").unwrap();
        assert_eq!((cut.stdout, cut.stderr.len()), (b"out\n".to_vec(), 100_000));
    }

    #[test]
    fn input_is_written_concurrently_and_may_remain_unread() {
        let input = vec![b'x'; 90_000];
        assert_eq!(sh("cat", &input).unwrap().stdout, input);
        assert_eq!(sh("echo done", &vec![b'x'; 1 << 20]).unwrap().stdout, b"done\n");
    }

    #[test]
    fn programs_that_hang_are_killed_with_their_descendants() {
        let timeout = Duration::from_millis(100);
        // The second one has a descendant that leaves the group and keeps the pipe open.
        for script in ["sleep 600 | sleep 600", "exec setsid sleep 600 & sleep 600", "sleep 600 &"] {
            let started = Instant::now();
            let error = output(Command::new("sh").args(["-c", script]), timeout).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{script}");
            assert!(started.elapsed() < Duration::from_secs(30), "{script}");
        }
    }
}
