//! Jobs of orchestrations: published, and followed until every minion has returned or does not run them any more.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use brine_bus::store::StoreError;
use brine_ids::Jid;
use brine_job::orchestration::{MinionResult, OrchestratedJob};
use brine_job::{Batch, BatchSizeError, Driver, batch_size};
use brine_value::{Map, Value};
use brine_wire::PublishRequest;
use rand::seq::SliceRandom;
use tokio::time::Instant;

use super::run::{Progress, Run};
use super::{Jobs, PublishError};

/// The reason why a job is not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The job, or a part of it, was not published.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The size of a batch is invalid.
    #[error(transparent)]
    Batch(#[from] BatchSizeError),
    /// The store failed: the returns cannot be read, or a batch cannot be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Jobs {
    /// Runs a job to its end: until every minion has returned or does not run it any more.
    ///
    /// # Errors
    /// The job is not published, or its returns cannot be read.
    pub async fn run_to_end(self: &Arc<Self>, ask: OrchestratedJob) -> Result<Vec<MinionResult>, RunError> {
        let OrchestratedJob { request, timeout, batch, failhard, subset } = ask;
        let timeout = timeout.unwrap_or(self.config.timeout.seconds());
        let events = self.subscribe(Vec::new())?;
        if batch.is_none() && subset.is_none() {
            let published = self.publish(request.clone()).await?;
            let Some(jid) = published.jid.clone() else { return Ok(Vec::new()) };
            let now = Instant::now();
            let driver = Driver::of_published(jid, &request.user, published.awaited(), self.times(timeout), now);
            let driver = driver.with_syndics(published.syndics, now);
            let unknown = published.missing;
            let ids: Vec<String> = published.minions.into_iter().chain(unknown.iter().cloned()).collect();
            let run = Run::new(Arc::clone(self), events, driver);
            let mut results = self.collect(run, &request, ids, HashMap::new()).await?;
            for result in &mut results {
                result.is_unknown = unknown.contains(&result.id);
            }
            return Ok(results);
        }
        // Minions that do not answer a ping are left out.
        let ping =
            PublishRequest { fun: brine_auth::PING.into(), arg: Vec::new(), ret: String::new(), ..request.clone() };
        let present = self.publish_and_wait(ping, timeout).await?;
        let mut ids: Vec<String> = present.returned.into_iter().map(|(id, _)| id).collect();
        if let Some(subset) = subset {
            ids.shuffle(&mut rand::rng());
            ids.truncate(subset);
        }
        ids.sort();
        let size = match batch {
            Some(batch) => batch_size(&batch, ids.len())?,
            None => ids.len().max(1),
        };
        let batch = Batch { size, wait: Duration::ZERO, failhard };
        // As with `salt -b`, all parts have the same jid.
        let (jid, now) = (Jid::new(), Instant::now());
        let driver = Driver::in_batches(jid, &request.user, ids.clone(), batch, self.times(timeout), now);
        self.collect(Run::new(Arc::clone(self), events, driver), &request, ids, HashMap::new()).await
    }

    /// Awaits the returns of a job that an earlier process has published to these minions.
    ///
    /// # Errors
    /// The returns cannot be read.
    pub async fn attach(
        self: &Arc<Self>,
        ask: OrchestratedJob,
        jid: Jid,
        ids: Vec<String>,
    ) -> Result<Vec<MinionResult>, RunError> {
        let timeout = ask.timeout.unwrap_or(self.config.timeout.seconds());
        let events = self.subscribe(Vec::new())?;
        let cached = self.cached_returns(jid.clone()).await.unwrap_or_default();
        let returned = cached.into_iter().filter_map(|(id, value)| match value {
            Value::Map(fields) => Some((id.to_string(), fields)),
            _ => None,
        });
        let returned: HashMap<String, Map> = returned.collect();
        let missing: Vec<String> = ids.iter().filter(|id| !returned.contains_key(*id)).cloned().collect();
        tracing::info!(%jid, missing = missing.len(), "awaiting the returns of a job of another master");
        let driver = Driver::of_published(jid, &ask.request.user, missing, self.times(timeout), Instant::now());
        self.collect(Run::new(Arc::clone(self), events, driver), &ask.request, ids, returned).await
    }

    /// Collects the returns of a job from these minions, except for those skipped by a halt. `returned` contains
    /// earlier returns. Parts are published as `request`.
    async fn collect(
        &self,
        mut run: Run,
        request: &PublishRequest,
        ids: Vec<String>,
        mut returned: HashMap<String, Map>,
    ) -> Result<Vec<MinionResult>, RunError> {
        // The minions of syndics, which are known only from reports and returns.
        let (targets, mut below): (HashSet<String>, _) = (ids.iter().cloned().collect(), Vec::new());
        loop {
            match run.next().await {
                Progress::Due(minions) => {
                    self.publish_part(&mut run.driver, request, &minions).await?;
                }
                Progress::Returned(id, data) => {
                    below.extend(Some(&id).filter(|id| !targets.contains(*id)).cloned());
                    returned.insert(id, data);
                }
                Progress::Missing(missing) => below.extend(missing.into_iter().filter(|id| !targets.contains(id))),
                Progress::Event(_) => {}
                Progress::Ended | Progress::Stopping => break,
            }
        }
        let jid = run.driver.jid();
        let ids = ids.into_iter().chain(below).filter(|id| !run.driver.pending().contains(id));
        let result = |id| MinionResult { returned: returned.remove(&id), jid: jid.clone(), id, is_unknown: false };
        Ok(ids.map(result).collect())
    }
}
