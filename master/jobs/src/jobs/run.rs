//! A running job: connects the driver of `brine_job` to the master's bus and publish stream.

use std::collections::BTreeSet;
use std::sync::Arc;

use brine_bus::store::StoreError;
use brine_bus::{Filter, Start, Subscription};
use brine_event::Event;
use brine_job::{Action, Driver};
use brine_value::Map;
use brine_wire::PublishRequest;
use tokio::time::Instant;

use super::{Jobs, PublishError, Published};

/// A running job.
pub(super) struct Run {
    jobs: Arc<Jobs>,
    events: Subscription,
    pub driver: Driver,
}

/// The next step of a job.
pub(super) enum Progress {
    /// The job is due at these minions: publish it and call [`Driver::published`].
    Due(Vec<String>),
    /// A minion returned.
    Returned(String, Map),
    /// These minions neither returned nor run the job.
    Missing(BTreeSet<String>),
    /// Another event that was subscribed to.
    Event(Event),
    /// The job has ended, or was halted.
    Ended,
    /// The master stops.
    Stopping,
}

impl Jobs {
    /// Subscribes to returns, and to other tags with these prefixes. Must be called before the job is published, so
    /// that no return is missed.
    pub(super) fn subscribe(&self, prefixes: Vec<String>) -> Result<Subscription, StoreError> {
        let prefixes =
            ["salt/job/".to_owned(), "syndic/".to_owned()].into_iter().chain(prefixes).map(Into::into).collect();
        self.events.bus.subscribe(Filter::Prefixes(prefixes), Start::Now)
    }
}

impl Jobs {
    /// Publishes a part of a job. Returns the minions that it does not reach, because their keys were deleted in the
    /// meantime.
    pub(super) async fn publish_part(
        &self,
        driver: &mut Driver,
        request: &PublishRequest,
        minions: &[String],
    ) -> Result<Vec<String>, PublishError> {
        let part = PublishRequest {
            tgt: minions.iter().map(String::as_str).collect(),
            tgt_type: "list".to_owned(),
            jid: Some(driver.jid().clone()),
            ..request.clone()
        };
        let published = self.publish(part).await;
        let reached = published.as_ref().map(Published::reached).unwrap_or_default();
        let others = driver.published(&reached, Instant::now());
        published.map(|_| others)
    }
}

impl Run {
    /// Creates the run of a driver.
    pub fn new(jobs: Arc<Jobs>, events: Subscription, driver: Driver) -> Self {
        Run { jobs, events, driver }
    }

    /// Waits for the next progress.
    pub async fn next(&mut self) -> Progress {
        loop {
            match self.driver.next(Instant::now()) {
                Action::Publish(minions) => return Progress::Due(minions),
                Action::Missing(minions) => return Progress::Missing(minions),
                Action::End => return Progress::Ended,
                Action::Ask(request) => {
                    let asked = self.jobs.publish(*request).await;
                    if let Err(error) = &asked {
                        tracing::error!(jid = %self.driver.jid(), %error, "asking silent minions for a job failed");
                    }
                    self.driver.asked(asked.ok().and_then(|asked| asked.jid), Instant::now());
                }
                Action::Wait(until) => match tokio::time::timeout_at(until, self.events.recv()).await {
                    Err(_) => {}
                    Ok(None) => return Progress::Stopping,
                    Ok(Some(event)) => {
                        if let Some((id, data)) = self.driver.process(&event, Instant::now()) {
                            return Progress::Returned(id, data);
                        }
                        if !["salt/job/", "syndic/"].iter().any(|prefix| event.tag().starts_with(prefix)) {
                            return Progress::Event(event);
                        }
                    }
                },
            }
        }
    }
}
