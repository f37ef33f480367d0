//! Writes to the store that are retried, with backoff, until they succeed.

use brine_bus::store::{Batch, Store};
use brine_runtime::backoff::Backoff;
use tokio_util::sync::CancellationToken;

use crate::metrics;

/// Writes a batch and retries until it is on disk, or until `stop`. Returns whether it is on disk.
pub(crate) async fn write(store: &Store, batch: impl Fn() -> Batch, what: &str, stop: &CancellationToken) -> bool {
    let mut backoff = Backoff::default();
    loop {
        let Err(error) = store.write(batch()).durable().await else { return true };
        metrics::REACTOR_WRITES_FAILED.add(1);
        let pause = backoff.next_wait();
        tracing::error!(%error, "writing {what} failed; it is retried in {pause:?}");
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => return false,
        }
    }
}
