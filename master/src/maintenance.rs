//! What must be done now and then: keys rotated, old jobs removed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_bus::{Filter, Start};
use brine_ids::MinionId;
use brine_value::Value;
use tokio_util::sync::CancellationToken;

use crate::Shared;

/// A file of this name in `cachedir` asks the master to rotate its keys; `salt-key` leaves it.
pub const ROTATE_FILE: &str = ".dfn";
const ROTATE_LOOK: Duration = Duration::from_secs(1);

/// Runs until `shutdown`.
pub(crate) async fn maintain(shared: Arc<Shared>, shutdown: CancellationToken) {
    let interval = Duration::from_secs(shared.config.loop_interval.max(1));
    let rotation = Duration::from_secs(shared.config.publish_session.max(1));
    let (mut cleaned, mut rotated) = (Instant::now(), Instant::now());
    let mut ticks = tokio::time::interval(ROTATE_LOOK);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shutdown.cancelled() => return,
        }
        let request = shared.config.cachedir.join(ROTATE_FILE);
        let asked = shared.disk.run(move |_| std::fs::remove_file(request).is_ok()).await.unwrap_or(false);
        if asked || rotated.elapsed() >= rotation {
            rotated = Instant::now();
            shared.rotate_keys().await;
            tracing::info!(asked, "the publish keys are rotated: minions authenticate again");
        }
        if cleaned.elapsed() >= interval {
            cleaned = Instant::now();
            clean(&shared).await;
        }
    }
}

/// Fetches the repositories of gitfs every `gitfs_update_interval`, until `shutdown`.
pub(crate) async fn fetch_repositories(shared: Arc<Shared>, shutdown: CancellationToken) {
    let mut ticks = tokio::time::interval(Duration::from_secs(shared.config.gitfs_update_interval.max(1)));
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shutdown.cancelled() => return,
        }
        let fetching = Arc::clone(&shared);
        // A fetch waits for a network.
        if let Ok(true) = shared.executors.render.run(move |thread| fetching.disk.get(thread).files.update()).await {
            tracing::info!("the repositories of gitfs have changed");
        }
    }
}

/// Ends the sessions of minions whose keys are deleted or rejected, until `shutdown`.
pub(crate) async fn forget_minions(shared: Arc<Shared>, shutdown: CancellationToken) {
    let mut keys = match shared.bus.subscribe(Filter::prefix("salt/key"), Start::Now) {
        Ok(keys) => keys,
        Err(error) => return tracing::error!(%error, "subscribing to key events failed"),
    };
    loop {
        let event = tokio::select! {
            event = keys.recv() => event,
            () = shutdown.cancelled() => return,
        };
        let Some(event) = event else { return };
        let data = event.data();
        let text = |name: &str| data.get(name).and_then(Value::as_str);
        let (Some(act), Some(Ok(id))) = (text("act"), text("id").map(str::parse::<MinionId>)) else { continue };
        if !data.contains_key("_cause") {
            // Those of reactions are logged with their cause.
            tracing::info!(minion = %id, act, "key changed by an operator (salt-key or wheel)");
        }
        if matches!(act, "delete" | "rejected") {
            shared.sessions.end(&id);
            shared.presence.forget(&id);
            tracing::info!(minion = %id, act, "a minion's session has ended with its key");
        }
        if act == "delete" {
            let forgotten = shared.disk.run(move |disk| {
                disk.minion_data.delete(id.as_str()).durable_blocking()?;
                disk.mines.flush(id.as_str())
            });
            if let Ok(Err(error)) = forgotten.await {
                tracing::error!(%error, "removing the data and mine of a deleted minion failed");
            }
        }
    }
}

async fn clean(shared: &Arc<Shared>) {
    // No lifetime means for ever, as in Salt.
    if shared.config.job_lifetime().is_zero() {
        return;
    }
    let lifetime = shared.config.job_lifetime();
    let cleaned = shared.disk.run(move |disk| {
        disk.large_returns.expire(lifetime);
        disk.job_cache.clean_old_jobs(lifetime)
    });
    let cleaned = cleaned.await;
    if let Ok(Err(error)) = cleaned {
        tracing::error!(%error, "old jobs could not be removed");
    }
}
