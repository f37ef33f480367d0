//! Jobs for minions: published on behalf of the user, with results in the forms of Salt's local client.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use brine_auth::{LIST_FUNCTIONS, PING};
use brine_client::Published;
use brine_client::job::{Link, Occurrence, Outcome, Run, minions_with_functions, ping_target, subset};
use brine_event::Event;
use brine_http_server::Slot;
use brine_ids::Jid;
use brine_job::{Action, Batch, Driver, Return, Times, batch_size};
use brine_value::{Map, Value, map};
use brine_wire::{Proof, PublishRequest};
use tokio::time::Instant;

use crate::Api;
use crate::error::{ApiError, MasterError};
use crate::hub::{Start, Subscription, WakePolicy};

/// A job of one chunk.
pub(crate) struct LocalJob<'a> {
    pub api: &'a Api,
    /// The address of the user.
    pub address: IpAddr,
    pub request: PublishRequest,
    /// The slot of the connection that waits for the job.
    pub slot: Arc<Slot>,
    pub times: Times,
    /// Whether results include the retcode and the jid (`full_return`).
    pub is_full: bool,
}

/// The connection of a job.
struct JobLink<'a> {
    api: &'a Api,
    address: IpAddr,
    slot: &'a Slot,
    proof: Option<Proof>,
    events: Subscription,
}

impl Link for JobLink<'_> {
    type Error = MasterError;

    async fn publish(&mut self, request: PublishRequest) -> Result<Published, MasterError> {
        // Polls of silent minions are also published on behalf of the user.
        let published =
            self.api.master.publish(self.address, &PublishRequest { proof: self.proof.clone(), ..request }).await?;
        self.slot.authenticate();
        Ok(published)
    }

    async fn event(&mut self) -> Result<Option<Event>, MasterError> {
        Ok(Some(self.events.next().await.event.clone()))
    }
}

impl LocalJob<'_> {
    /// Subscribes to events; called before the publish, so that no return is missed.
    fn link(&self) -> JobLink<'_> {
        let events = self.api.hub.subscribe(Start::Now, WakePolicy::Immediate);
        let (address, slot) = (self.address, &self.slot);
        JobLink { api: self.api, address, slot, proof: self.request.proof.clone(), events }
    }

    /// Publishes the job. Returns its jid and minions, or an empty mapping if no minion matches.
    pub async fn publish_only(self) -> Result<Value, ApiError> {
        let published = self.api.master.publish(self.address, &self.request).await?;
        Ok(match published.jid {
            Some(jid) => map! {"jid" => &jid, "minions" => published.minions}.into(),
            None => Value::map(),
        })
    }

    /// Publishes the job and returns the returns by minion.
    pub async fn run(self) -> Result<Value, ApiError> {
        let mut link = self.link();
        let published = link.publish(self.request.clone()).await?;
        let Some(jid) = published.jid.clone() else { return Ok(Value::map()) };
        let mut run = Run::of_published(&mut link, &jid, "", &published, self.times);
        let mut returned = Map::new();
        while let Some(outcome) = run.next().await? {
            match outcome {
                Outcome::Returned(one) => returned.extend([self.returned(&one)]),
                Outcome::Missing(id) => returned.extend([self.missing(&jid, id, &published)]),
                Outcome::Interrupted => {}
            }
        }
        let unknown = run.unknown(&published.missing);
        returned.extend(unknown.into_iter().map(|id| self.missing(&jid, id, &published)));
        Ok(returned.into())
    }

    fn returned(&self, one: &Return) -> (Value, Value) {
        let id = one.id().as_str().into();
        if !self.is_full {
            return (id, one.value().clone());
        }
        let retcode = one.map().get("retcode").cloned().unwrap_or_else(|| 0.into());
        let mut full = map! {"ret" => one.value().clone(), "retcode" => retcode, "jid" => one.jid()};
        full.extend(one.out().map(|out| ("out".into(), out.into())));
        (id, full.into())
    }

    fn missing(&self, jid: &Jid, id: String, published: &Published) -> (Value, Value) {
        let message = published.no_return(&id, jid.as_str());
        let full = |message| map! {"out" => "no_return", "ret" => message, "retcode" => 1}.into();
        (id.into(), if self.is_full { full(message) } else { message.into() })
    }

    /// Runs the job on `count` random minions among those in its target that provide the function.
    pub async fn subset(mut self, count: usize) -> Result<Value, ApiError> {
        let responses = minions_with_functions(&mut self.link(), &self.request, LIST_FUNCTIONS, self.times).await?;
        if !responses.matched {
            return Ok(Value::map());
        }
        self.request = subset(&self.request, responses.minions, count);
        self.run().await
    }

    /// Runs the job in batches, on the minions that answer a ping. Returns the results in order of arrival.
    pub async fn batch(self, size: &str, wait_time: Duration, failhard: bool) -> Result<Vec<(Value, Value)>, ApiError> {
        batch_size(size, 1).map_err(|error| ApiError::bad_request(error.to_string()))?;
        let mut link = self.link();
        let minions = ping_target(&mut link, &self.request, PING, self.times).await?.minions;
        if minions.is_empty() {
            return Ok(Vec::new());
        }
        let size = batch_size(size, minions.len()).map_err(|error| ApiError::bad_request(error.to_string()))?;
        let jid = self.request.jid.clone().unwrap_or_default();
        let batch = Batch { size, wait: wait_time, failhard };
        let driver = Driver::in_batches(jid.clone(), "", minions, batch, self.times, Instant::now());
        let mut run = Run::new(&mut link, driver, None);
        let mut returned = Vec::new();
        // Those that answered the ping were connected.
        let connected = Published::default();
        loop {
            match run.driver.next(Instant::now()) {
                Action::Publish(ids) => _ = run.publish(&self.request, ids).await?,
                Action::Ask(request) => run.ask(*request).await?,
                Action::Missing(ids) => returned.extend(ids.into_iter().map(|id| self.missing(&jid, id, &connected))),
                Action::Wait(until) => {
                    if let Occurrence::Returned(one) = run.wait(until).await? {
                        returned.push(self.returned(&one));
                    }
                }
                Action::End => return Ok(returned),
            }
        }
    }
}
