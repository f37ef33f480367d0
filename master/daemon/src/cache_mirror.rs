//! Copies the minions' data to the driver of `cache`: the banks `grains`, `pillar` and `mine`, with a key for each
//! minion, as Salt's masters write them.
//!
//! The master itself reads only its own store; the copies are for other programs. While a driver is unavailable,
//! changed minions are remembered, and written when it is back.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use brine_bus::store::{BlockingStore, Touched};
use brine_function::CallError;
use brine_master_calls::Services;
use brine_master_custom::stores::CacheDriver;
use brine_master_store::mines::MINE;
use brine_master_store::minion_data::MINIONS;
use brine_master_store::storage::Storage;
use brine_runtime::backoff::Backoff;
use brine_target::TargetFacts;
use tokio_util::sync::CancellationToken;

/// The number of minions whose data is written in one job.
const BATCH_SIZE: usize = 64;
/// The number of consecutive failures after which a driver counts as unavailable.
const MAX_FAILURES: usize = 3;

/// Writes the data of all minions, and then all changes, until `shutdown`.
pub(crate) async fn write_copies(
    services: Arc<Services>,
    store: BlockingStore,
    driver: Arc<CacheDriver>,
    shutdown: CancellationToken,
) {
    let mut changes = store.observe(&[MINIONS, MINE]);
    let mut waiting = mirrored_ids(&services).await;
    let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
    while !shutdown.is_cancelled() {
        if waiting.is_empty() {
            tokio::select! {
                () = shutdown.cancelled() => return,
                touched = changes.changed() => waiting.extend(ids(&services, touched).await),
            }
        }
        let Some(error) = write(&services, &driver, &mut waiting, &shutdown).await else {
            backoff.reset();
            continue;
        };
        tracing::warn!(error, minions = waiting.len(), "writing minion data to the driver of 'cache' failed: retrying");
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = backoff.wait() => {}
        }
    }
}

/// Returns all accepted minions.
async fn mirrored_ids(services: &Services) -> BTreeSet<String> {
    let accepted = services.storage.run(|storage| storage.accepted().unwrap_or_default()).await;
    accepted.unwrap_or_default().into_iter().collect()
}

/// Returns the minions that changes concern.
async fn ids(services: &Services, touched: Touched) -> BTreeSet<String> {
    let mut ids = if touched.more { mirrored_ids(services).await } else { BTreeSet::new() };
    ids.extend(touched.keys.into_iter().filter_map(|(_, key)| String::from_utf8(key).ok()));
    ids
}

/// Writes the data of the waiting minions. Failed ones stay queued. Returns the first error.
async fn write(
    services: &Services,
    driver: &Arc<CacheDriver>,
    waiting: &mut BTreeSet<String>,
    shutdown: &CancellationToken,
) -> Option<String> {
    let (mut failed, mut error) = (BTreeSet::new(), None);
    while !waiting.is_empty() && !shutdown.is_cancelled() {
        let ids: Vec<String> = (0..BATCH_SIZE).map_while(|_| waiting.pop_first()).collect();
        let (storage, driver, batch) = (services.storage.clone(), Arc::clone(driver), ids.clone());
        let written = services.executors.jobs.run(move |thread| write_some(storage.get(thread), &driver, batch)).await;
        let (left, reason) = written.unwrap_or_else(|error| (ids, Some(error.to_string())));
        let is_away = left.len() >= MAX_FAILURES;
        failed.extend(left);
        error = error.or(reason);
        if is_away {
            break;
        }
    }
    waiting.append(&mut failed);
    error
}

/// Writes the data of some minions. Returns the failed ones, and the first error.
fn write_some(storage: &Storage, driver: &CacheDriver, ids: Vec<String>) -> (Vec<String>, Option<String>) {
    let (mut failed, mut first, mut in_a_row) = (Vec::new(), None, 0);
    for id in ids {
        if in_a_row >= MAX_FAILURES {
            failed.push(id);
            continue;
        }
        match write_one(storage, driver, &id) {
            Ok(()) => in_a_row = 0,
            Err(error) => {
                in_a_row += 1;
                first.get_or_insert(error);
                failed.push(id);
            }
        }
    }
    (failed, first)
}

fn write_one(storage: &Storage, driver: &CacheDriver, id: &str) -> Result<(), String> {
    let facts = storage.minion_data.facts(id);
    let mine = storage.mines.get(id).map_err(|error| error.to_string())?;
    let banks = [
        ("grains", facts.grains().cloned()),
        ("pillar", facts.pillar().cloned()),
        ("mine", Some(mine).filter(|mine| !mine.is_empty())),
    ];
    for (bank, data) in banks {
        match data {
            Some(data) => driver.store(bank, id, &data.into()).map_err(CallError::cause)?,
            None => _ = driver.flush(bank, Some(id)).map_err(CallError::cause)?,
        }
    }
    Ok(())
}
