//! Whether somebody still reads stdout. A tool that waits for events would otherwise notice a closed pipe only with the
//! next line that it prints.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;

use tokio::io::Interest;
use tokio::net::unix::pipe::Sender;

/// Waits until the reader of the pipe that stdout is has closed it. Never returns for a file or a terminal.
pub(super) async fn gone() {
    if let Ok(stdout) = watched() {
        while let Ok(ready) = stdout.ready(Interest::ERROR).await {
            if ready.is_error() {
                return;
            }
        }
    }
    std::future::pending::<()>().await;
}

/// Opens stdout once more, to be watched only: writes stay blocking.
fn watched() -> io::Result<Sender> {
    let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    if stdout.metadata()?.file_type().is_fifo() {
        Sender::from_file_unchecked(stdout)
    } else {
        Err(io::ErrorKind::Unsupported.into())
    }
}
