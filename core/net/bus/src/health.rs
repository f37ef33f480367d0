//! Publishes an event when the store fails and when it recovers.

use std::sync::Weak;
use std::time::Instant;

use brine_value::map;
use tokio::sync::watch;

use super::{Bus, Inner};
use crate::metrics;
use crate::store::Health;

const FAILED: &str = "salt/master/store/failed";
const RECOVERED: &str = "salt/master/store/recovered";

/// Publishes an event at each change of the store's health, until the store or the bus is closed.
pub(super) async fn announce(bus: Weak<Inner>, mut health: watch::Receiver<Health>) {
    let mut failed: Option<(Instant, u64)> = None;
    while health.changed().await.is_ok() {
        let state = health.borrow_and_update().clone();
        let Some(inner) = bus.upgrade() else { return };
        let path = inner.journal.as_ref().map(|journal| journal.store().path().display().to_string());
        let (tag, body) = match (state, failed) {
            (Health::Failed(error), None) => {
                failed = Some((Instant::now(), metrics::JOURNAL_FAILED.get()));
                (FAILED, map! {"path" => path.unwrap_or_default(), "message" => error.to_string()})
            }
            (state @ (Health::Healthy | Health::Replaced(_)), Some((since, before))) => {
                failed = None;
                let lost = metrics::JOURNAL_FAILED.get().saturating_sub(before);
                let seconds = since.elapsed().as_secs_f64();
                let mut body = map! {"path" => path.unwrap_or_default(), "duration" => seconds, "not_kept" => lost};
                if let Health::Replaced(aside) = state {
                    body.insert("moved_to".into(), aside.display().to_string().into());
                }
                (RECOVERED, body)
            }
            _ => continue,
        };
        let bus = Bus { inner };
        if let Err(error) = bus.fire(tag, &body).await {
            tracing::error!(tag, %error, "publishing an event failed");
        }
    }
}
