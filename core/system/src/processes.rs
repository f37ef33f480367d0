//! Spawns children without racing scripts that are still being written (ETXTBSY).
//!
//! Between fork and exec, a child holds all open files of its parent. A script that another thread is writing at that
//! moment is then open for writing in the child, and the kernel refuses to execute it: "Text file busy". So no process
//! is spawned while such a file is written.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use parking_lot::RwLock;

use crate::metrics;

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
/// The process cannot be spawned, or it writes more than 16 MiB to its standard output: then it is killed. Standard
/// error is truncated.
pub fn output(command: &mut Command) -> io::Result<Output> {
    output_with(command, &[], OUTPUT_LIMIT)
}

/// As [`output`], with `input` as standard input.
pub fn output_of(command: &mut Command, input: &[u8]) -> io::Result<Output> {
    output_with(command.stdin(Stdio::piped()), input, OUTPUT_LIMIT)
}

fn output_with(command: &mut Command, input: &[u8], limit: usize) -> io::Result<Output> {
    let mut child = start(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (stdout, stderr) = std::thread::scope(|scope| {
        // A process may exit without reading all of its input.
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
        let stderr = scope.spawn(move || bounded(stderr, limit, true));
        let stdout = bounded(stdout, limit, false);
        if !matches!(stdout, Ok((_, false))) {
            // The process may have exited just now.
            _ = child.kill();
        }
        let stderr = stderr.join().unwrap_or_else(|_| Err(io::Error::other("reading standard error failed")));
        (stdout, stderr)
    });
    let status = child.wait()?;
    let ((stdout, is_cut), (stderr, is_stderr_cut)) = (stdout?, stderr?);
    if is_cut {
        return Err(io::Error::other(format!("it wrote more than {limit} bytes and was killed")));
    }
    if is_stderr_cut {
        metrics::OUTPUT_CUT.add(1);
        tracing::warn!(program = ?command.get_program(), limit, "the standard error of a program was truncated");
    }
    Ok(Output { status, stdout, stderr })
}

/// Reads a pipe up to the limit, or to its end, discarding all bytes beyond the limit. Returns the bytes, and whether
/// they were truncated.
fn bounded(pipe: Option<impl Read>, limit: usize, to_end: bool) -> io::Result<(Vec<u8>, bool)> {
    let Some(mut pipe) = pipe else { return Ok((Vec::new(), false)) };
    let mut kept = Vec::new();
    pipe.by_ref().take(limit as u64).read_to_end(&mut kept)?;
    let is_cut = kept.len() == limit && pipe.read(&mut [0])? > 0;
    if is_cut && to_end {
        io::copy(&mut pipe, &mut io::sink())?;
    }
    Ok((kept, is_cut))
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
        output_with(Command::new("sh").args(["-c", script]).stdin(Stdio::piped()), input, 100_000)
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
}
