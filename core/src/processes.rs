//! Starting programs beside writing such that are to be run.
//!
//! A process that is being started has, until it becomes its program, all files open that its parent has open. A script
//! that another thread writes at that moment is then open for writing in a process that does not know of it, and the
//! system runs no file that somebody has open for writing: "Text file busy". So no process starts while such a file is
//! written.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use parking_lot::RwLock;

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

/// Runs a program to its end, and gives what it says.
pub fn output(command: &mut Command) -> io::Result<Output> {
    start(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?.wait_with_output()
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
