//! Catches up on jobs that were published while the minion was disconnected: requests them after each connection, and
//! runs them as if they had been published again. Brine masters only.

use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_runtime::backoff::Backoff;
use brine_value::{Map, Value};
use brine_wire::Publication;

use super::Connected;
use super::intake::handle_job;
use super::received::CatchUpOptions;
use crate::channel::Channel;
use crate::masters::Address;
use crate::metrics;

/// The number of requests for missed jobs after a connection.
const ATTEMPTS: usize = 3;
/// The timeout of the reply: jobs that are published meanwhile wait too.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Fetches the jobs that the minion has missed at this master. The publish stream must be subscribed already, so that no
/// job is missed in between.
pub(super) async fn run(connected: &Arc<Connected>, master: &Address) {
    let load = request(connected, master);
    connected.received.lock().joined(master, Instant::now());
    let Some(load) = load else { return };
    if let Some(answer) = fetch(&connected.channel, load, connected.backoff()).await {
        take(connected, answer).await;
    }
}

/// Requests missed jobs, with some retries, since later requests begin at later jobs.
pub async fn fetch(channel: &Arc<Channel>, load: Map, mut backoff: Backoff) -> Option<Value> {
    for attempt in 1.. {
        let error = match tokio::time::timeout(TIMEOUT, channel.request(load.clone())).await {
            Ok(Ok(answer)) => return Some(answer),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {TIMEOUT:?}"),
        };
        if attempt >= ATTEMPTS {
            metrics::CATCH_UPS_FAILED.add(1);
            tracing::error!(
                error,
                "fetching missed jobs failed: jobs that were published while the minion was disconnected may be lost"
            );
            return None;
        }
        tracing::warn!(error, "fetching missed jobs failed: retrying");
        backoff.wait().await;
    }
    None
}

/// Returns the request, if one is necessary.
fn request(connected: &Connected, master: &Address) -> Option<Map> {
    let config = &connected.minion.config;
    if config.publish_catch_up == 0 || !connected.channel.is_brine() {
        return None;
    }
    let options = CatchUpOptions {
        max_age: Duration::from_secs(config.publish_catch_up),
        detection_time: config.master_alive_interval.seconds() * 2,
        are_several: !connected.is_only,
    };
    connected.received.lock().request(master, options, Instant::now())
}

/// Runs those jobs that target this minion and that it has not received.
pub(super) async fn take(connected: &Arc<Connected>, answer: Value) {
    // A master that does not know the command answers with an empty mapping.
    let Value::List(loads) = answer else {
        tracing::debug!("the master does not support catch-up");
        return;
    };
    for load in loads {
        let Value::Map(load) = load else {
            brine_wire::metrics::REQUESTS_REFUSED.add(1);
            tracing::warn!("a missed job is invalid: expected a mapping");
            continue;
        };
        match Publication::from_map(load) {
            Ok(publication) => handle_job(connected, publication).await,
            Err(error) => {
                brine_wire::metrics::REQUESTS_REFUSED.add(1);
                tracing::warn!(%error, "a missed job is invalid");
            }
        }
    }
}

#[cfg(test)]
mod tests;
