//! Writes to the store that are not dropped: each is tried again until it is on disk.

use std::time::Duration;

use brine_core::metrics;
use brine_core::store::{Batch, Store};
use tokio_util::sync::CancellationToken;

/// The first pause before a write is tried again; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Writes a batch until it is on disk, or until `stop`. Returns whether it is on disk.
pub(crate) async fn write(store: &Store, batch: impl Fn() -> Batch, what: &str, stop: &CancellationToken) -> bool {
    let mut pause = FIRST_PAUSE;
    loop {
        let Err(error) = store.write(batch()).durable().await else { return true };
        metrics::REACTOR_WRITES_FAILED.add(1);
        tracing::error!(%error, "writing {what} failed; it is tried again in {pause:?}");
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => return false,
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
