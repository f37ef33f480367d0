//! Detects that stdout has no reader any more: a tool that waits for events would otherwise only notice when it prints
//! the next line.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;

use tokio::io::Interest;
use tokio::net::unix::pipe::Sender;

/// Waits until the reader of stdout has closed the pipe. Never returns for a file or a terminal.
pub(super) async fn closed() {
    if let Ok(stdout) = watched() {
        while let Ok(ready) = stdout.ready(Interest::ERROR).await {
            if ready.is_error() {
                return;
            }
        }
    }
    std::future::pending::<()>().await;
}

/// Duplicates stdout for polling only; writes stay blocking.
fn watched() -> io::Result<Sender> {
    let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    if stdout.metadata()?.file_type().is_fifo() {
        Sender::from_file_unchecked(stdout)
    } else {
        Err(io::ErrorKind::Unsupported.into())
    }
}
