//! Starting programs beside writing such that are to be run.
//!
//! A process that is being started has, until it becomes its program, all files open that its parent has open. A script
//! that another thread writes at that moment is then open for writing in a process that does not know of it, and the
//! system runs no file that somebody has open for writing: "Text file busy". So no process starts while such a file is
//! written.

use std::io;
use std::process::{Child, Command, Output, Stdio};

use parking_lot::RwLock;

static STARTING: RwLock<()> = RwLock::new(());

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
    let _alone = STARTING.write();
    write()
}
