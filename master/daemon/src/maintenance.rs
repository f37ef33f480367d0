//! Maintenance tasks: rotate keys, remove old jobs and tokens, fetch repositories, and end the sessions of removed
//! keys.

use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_bus::{Filter, Start};
use brine_ids::MinionId;
use brine_master_calls::Services;
use brine_master_store::shared;
use brine_value::Value;
use tokio_util::sync::CancellationToken;

/// The file in `cachedir` by which `salt-key` requests a rotation of the keys.
pub const ROTATE_FILE: &str = ".dfn";
/// The interval at which that file is polled.
const ROTATE_POLL: Duration = Duration::from_secs(1);

/// Rotates keys and removes old jobs until `shutdown`.
pub(crate) async fn maintain(services: Arc<Services>, shutdown: CancellationToken) {
    let interval = services.config.loop_interval.pause();
    let rotation = Duration::from_secs(services.config.publish_session.max(1));
    let (mut cleaned, mut rotated) = (Instant::now(), Instant::now());
    let mut ticks = tokio::time::interval(ROTATE_POLL);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shutdown.cancelled() => return,
        }
        let request = services.config.cachedir.join(ROTATE_FILE);
        let asked = services.storage.run(move |_| std::fs::remove_file(request).is_ok()).await.unwrap_or(false);
        let is_due = rotated.elapsed() >= rotation && shared::is_leader(&services.gate);
        if asked || is_due {
            rotated = Instant::now();
            services.jobs.stream.rotate_keys().await;
            tracing::info!(asked, "publish keys rotated: minions authenticate again");
        } else if services.jobs.stream.rotate_if_due().await {
            tracing::info!("publish keys rotated again: further keys were deleted or rejected");
        }
        if cleaned.elapsed() >= interval {
            cleaned = Instant::now();
            clean(&services).await;
        }
    }
}

/// Fetches the repositories of gitfs every `gitfs_update_interval`, until `shutdown`.
pub(crate) async fn fetch_repositories(services: Arc<Services>, shutdown: CancellationToken) {
    let mut ticks = tokio::time::interval(services.config.gitfs_update_interval.pause());
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shutdown.cancelled() => return,
        }
        let storage = services.storage.clone();
        // A fetch blocks on the network.
        if let Ok(true) = services.executors.render.run(move |thread| storage.get(thread).files.update()).await {
            tracing::info!("the repositories of gitfs have changed");
        }
    }
}

/// Ends the sessions of minions whose keys are deleted or rejected, until `shutdown`.
pub(crate) async fn end_sessions(services: Arc<Services>, shutdown: CancellationToken) {
    let mut keys = match services.bus.subscribe(Filter::prefix("salt/key"), Start::Now) {
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
        // Changes by the master itself (reactions, wheel functions) are logged there.
        if let Some(by) = text("_by") {
            tracing::info!(minion = %id, ?by, ?act, "key changed");
        }
        if matches!(act, "delete" | "rejected") {
            services.admission.sessions().end(&id);
            services.facts.presence.forget(&id);
            tracing::info!(minion = %id, act, "session ended: the minion's key is not accepted any more");
        }
        // For an event of another member: the data of the minion was removed by that member.
        if act == "delete" && event.origin().is_none() {
            let is_kept = services.facts.take_preserved(&id) || services.config.preserve_minion_cache;
            let (facts, syndic) = (Arc::clone(&services.facts), id.clone());
            _ = services.executors.disk.run(move |thread| facts.syndics.forget(&syndic, thread)).await;
            let forgotten = services.storage.run(move |storage| {
                if is_kept {
                    return Ok(());
                }
                storage.minion_data.delete(id.as_str()).durable_blocking()?;
                storage.mines.flush(id.as_str())
            });
            if let Ok(Err(error)) = forgotten.await {
                tracing::error!(%error, "removing the data and mine of a deleted minion failed");
            }
        }
    }
}

async fn clean(services: &Services) {
    if let Err(error) = services.access.remove_expired_tokens().await {
        tracing::error!(%error, "removing expired tokens failed");
    }
    let expired = services.storage.run(|storage| storage.sealed_arguments.expire()).await;
    if let Ok(Err(error)) = expired {
        tracing::error!(%error, "removing the arguments of masked jobs failed");
    }
    // As in Salt, 0 means unlimited.
    if services.config.job_lifetime().is_zero() {
        return;
    }
    let lifetime = services.config.job_lifetime();
    let files = Arc::clone(&services.job_files);
    let cleaned = services.storage.run(move |storage| {
        files.clean(lifetime);
        storage.large_returns.expire(lifetime);
        storage.job_cache.clean_old_jobs(lifetime)
    });
    let cleaned = cleaned.await;
    if let Ok(Err(error)) = cleaned {
        tracing::error!(%error, "removing old jobs failed");
    }
}
