//! `ping_interval`: publishes a heartbeat event to the master at an interval.

use std::time::Duration;

use brine_config::MinionConfig;
use brine_context::{MasterEvent, UpstreamError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Returns `ping_interval`, unless that is 0 or invalid.
pub(crate) fn interval(config: &MinionConfig) -> Option<Duration> {
    let minutes = config.ping_interval;
    let every = Duration::try_from_secs_f64(minutes * 60.0);
    if every.is_err() {
        tracing::error!("option 'ping_interval' is invalid: expected minutes, got {minutes}; the master is not pinged");
    }
    every.ok().filter(|every| !every.is_zero())
}

/// Publishes `minion_ping` by `fire` at this interval while the master serves the minion (`ready`), until `shutdown`.
pub(crate) async fn run<F: Future<Output = Result<(), UpstreamError>>>(
    fire: impl Fn(MasterEvent) -> F,
    ready: watch::Receiver<bool>,
    every: Duration,
    shutdown: CancellationToken,
) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            () = shutdown.cancelled() => return,
        }
        if !*ready.borrow() {
            continue;
        }
        if let Err(error) = fire(MasterEvent::new("minion_ping", "ping")).await {
            tracing::warn!(%error, "pinging the master failed");
        }
    }
}
