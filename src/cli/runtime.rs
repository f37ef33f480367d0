//! The tokio runtimes of the tools.

use std::io;
use std::pin::{Pin, pin};

use brine_runtime::STACK_SIZE;
use tokio::runtime::{Builder, Runtime};

/// Creates a runtime that does all its work in [`block_on`].
///
/// # Errors
/// The system has no more file descriptors.
pub fn current_thread() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Creates a runtime with a thread for each processor, or with this number.
///
/// # Errors
/// The system has no more threads or file descriptors.
pub fn multi_thread(threads: Option<usize>) -> io::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    if let Some(threads) = threads {
        builder.worker_threads(threads);
    }
    builder.thread_stack_size(STACK_SIZE).enable_all().build()
}

/// Blocks on a future.
pub fn block_on<F: Future>(runtime: &Runtime, future: F) -> F::Output {
    // One copy of tokio's code for each type of output, not for each future.
    let future: Pin<&mut dyn Future<Output = F::Output>> = pin!(future);
    runtime.block_on(future)
}
