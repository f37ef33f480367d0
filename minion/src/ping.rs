//! `ping_interval`: the minion tells its master now and then that it is there.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::context::MasterEvent;
use crate::daemon::Connected;

/// Fires `minion_ping` every so many minutes, until `shutdown`.
pub(crate) async fn run(connected: Arc<Connected>, shutdown: CancellationToken) {
    let minutes = connected.minion.config.ping_interval;
    let Ok(every) = Duration::try_from_secs_f64(minutes * 60.0) else {
        tracing::error!("option 'ping_interval': expected minutes, got {minutes}; the master is not pinged");
        return;
    };
    if every.is_zero() {
        return;
    }
    loop {
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            () = shutdown.cancelled() => return,
        }
        if !connected.is_ready() {
            continue;
        }
        if let Err(error) = connected.fire(&MasterEvent::new("minion_ping", "ping")).await {
            tracing::warn!(error, "the master does not answer to a ping");
        }
    }
}
