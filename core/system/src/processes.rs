//! Starting programs beside writing such that are to be run.
//!
//! A process that is being started has, until it becomes its program, all files open that its parent has open. A script
//! that another thread writes at that moment is then open for writing in a process that does not know of it, and the
//! system runs no file that somebody has open for writing: "Text file busy". So no process starts while such a file is
//! written.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use parking_lot::RwLock;

use crate::metrics;

/// How long is waited for programs that are starting.
const PATIENCE: Duration = Duration::from_secs(5);

static STARTING: RwLock<()> = RwLock::new(());

/// Returns the path of a program that may be run: a name with a `/` is its path, others are looked for in `PATH`.
pub fn find(name: &Path) -> Option<PathBuf> {
    find_in(name, &std::env::var_os("PATH").unwrap_or_default())
}

/// As [`find`], in these directories, separated by colons.
pub fn find_in(name: &Path, directories: &OsStr) -> Option<PathBuf> {
    let runs = |path: &PathBuf| {
        path.metadata().is_ok_and(|status| status.is_file() && status.permissions().mode() & 0o111 != 0)
    };
    if name.as_os_str().as_encoded_bytes().contains(&b'/') {
        return Some(name.to_owned()).filter(runs);
    }
    std::env::split_paths(directories).map(|directory| directory.join(name)).find(runs)
}

/// Starts a program.
pub fn start(command: &mut Command) -> io::Result<Child> {
    let _shared = STARTING.read();
    command.spawn()
}

/// The most bytes of the output of a program that are kept in memory.
const OUTPUT_LIMIT: usize = 16 << 20;

/// Runs a program to its end and returns its output.
///
/// # Errors
///
/// If it cannot be started, or writes more than 16 MiB to its standard output: it is killed then. What it writes to
/// standard error is cut.
pub fn output(command: &mut Command) -> io::Result<Output> {
    output_with(command, &[], OUTPUT_LIMIT)
}

/// As [`output`], with this standard input if it is not empty.
pub fn output_of(command: &mut Command, input: &[u8]) -> io::Result<Output> {
    output_with(command.stdin(Stdio::piped()), input, OUTPUT_LIMIT)
}

fn output_with(command: &mut Command, input: &[u8], limit: usize) -> io::Result<Output> {
    let mut child = start(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (stdout, stderr) = std::thread::scope(|scope| {
        // A program that ends early does not read all of its input.
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
        let stderr = scope.spawn(move || bounded(stderr, limit, true));
        let stdout = bounded(stdout, limit, false);
        if !matches!(stdout, Ok((_, false))) {
            // It may have ended just now.
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
        tracing::warn!(program = ?command.get_program(), limit, "the standard error of a program was cut");
    }
    Ok(Output { status, stdout, stderr })
}

/// Reads a pipe up to the limit, or to its end, dropping all bytes beyond the limit. Returns what was kept, and whether
/// there was more.
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

/// Writes a file that is to be run.
pub fn write_program<T>(write: impl FnOnce() -> T) -> T {
    // A program that does not start, on a network's file system that is away, must not keep all others from starting.
    let alone = STARTING.try_write_for(PATIENCE);
    if alone.is_none() {
        tracing::warn!("a program has been starting for {} s: a script is written beside it", PATIENCE.as_secs());
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
    fn input_is_written_beside_reading_and_need_not_be_read() {
        let input = vec![b'x'; 90_000];
        assert_eq!(sh("cat", &input).unwrap().stdout, input);
        assert_eq!(sh("echo done", &vec![b'x'; 1 << 20]).unwrap().stdout, b"done\n");
    }
}
