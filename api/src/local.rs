//! Jobs for minions: published in the user's name, with results in the forms of Salt's local client.

use std::time::Duration;

use brine_ids::Jid;
use brine_job::{Batch, Driver, Return, Step, Times, batch_size};
use brine_target::TargetKind;
use brine_value::{Map, Value, map};
use brine_wire::PublishRequest;
use rand::seq::SliceRandom;
use tokio::time::Instant;

use crate::Api;
use crate::error::{ApiError, MasterError};
use crate::hub::{Pace, Start, Subscription};
use crate::master::Published;

/// A job of one chunk.
pub(crate) struct LocalJob<'a> {
    pub api: &'a Api,
    pub request: PublishRequest,
    pub times: Times,
    /// Whether results include retcode and job id.
    pub is_full: bool,
}

/// The outcome of one minion.
enum Outcome {
    Returned(Box<Return>),
    Missing(String),
}

/// Returns Salt's message about a minion that did not return.
fn no_return(jid: &Jid) -> String {
    format!(
        "Minion did not return. [No response]\n\
         The minions may not have all finished running and any remaining minions will return upon completion. \
         To look up the return data for this job later, run the following command:\n\
         \n\
         salt-run jobs.lookup_jid {jid}"
    )
}

impl LocalJob<'_> {
    fn subscribe(&self) -> Subscription {
        self.api.hub.subscribe(Start::Now, Pace::AtOnce)
    }

    async fn publish(&self, request: &PublishRequest) -> Result<Published, MasterError> {
        self.api.master.publish(request).await
    }

    /// Publishes the job and returns its id and minions; an empty mapping if no minion matches.
    pub async fn publish_only(self) -> Result<Value, ApiError> {
        let published = self.publish(&self.request).await?;
        Ok(match published.jid {
            Some(jid) => map! {"jid" => &jid, "minions" => published.minions}.into(),
            None => Value::map(),
        })
    }

    /// Publishes the job and returns the returns by minion.
    pub async fn run(self) -> Result<Value, ApiError> {
        // Subscribed before the publish: no return is missed.
        let mut events = self.subscribe();
        let published = self.publish(&self.request).await?;
        let Some(jid) = published.jid else { return Ok(Value::map()) };
        let mut returned = Map::new();
        for outcome in self.collect(&mut events, &jid, published.minions).await? {
            let (id, value) = self.shown(&jid, outcome);
            returned.insert(id.into(), value);
        }
        for id in published.missing {
            let (id, value) = self.shown(&jid, Outcome::Missing(id));
            returned.insert(id.into(), value);
        }
        Ok(returned.into())
    }

    fn shown(&self, jid: &Jid, outcome: Outcome) -> (String, Value) {
        match outcome {
            Outcome::Returned(one) if self.is_full => {
                let retcode = one.map().get("retcode").cloned().unwrap_or_else(|| 0.into());
                let mut full = map! {"ret" => one.value().clone(), "retcode" => retcode, "jid" => one.jid()};
                full.extend(one.out().map(|out| ("out".into(), out.into())));
                (one.id().to_string(), full.into())
            }
            Outcome::Returned(one) => (one.id().to_string(), one.value().clone()),
            Outcome::Missing(id) if self.is_full => {
                (id, map! {"out" => "no_return", "ret" => no_return(jid), "retcode" => 1}.into())
            }
            Outcome::Missing(id) => (id, no_return(jid).into()),
        }
    }

    /// Waits for the outcomes of all minions of a published job.
    async fn collect(
        &self,
        events: &mut Subscription,
        jid: &Jid,
        minions: Vec<String>,
    ) -> Result<Vec<Outcome>, ApiError> {
        let mut driver = Driver::of_published(jid.clone(), "", minions, self.times, Instant::now());
        let mut outcomes = Vec::new();
        loop {
            match driver.next(Instant::now()) {
                Step::Ask(request) => self.ask(&mut driver, *request).await?,
                Step::Missing(ids) => outcomes.extend(ids.into_iter().map(Outcome::Missing)),
                Step::Wait(until) => outcomes.extend(wait(&mut driver, events, until).await),
                Step::Publish(_) | Step::End => return Ok(outcomes),
            }
        }
    }

    /// Asks silent minions whether they still run the job.
    async fn ask(&self, driver: &mut Driver, request: PublishRequest) -> Result<(), ApiError> {
        let request = PublishRequest { proof: self.request.proof.clone(), ..request };
        let asked = self.publish(&request).await?;
        driver.asked(asked.jid, Instant::now());
        Ok(())
    }

    /// Runs the job on this many random minions of its target that have its function.
    pub async fn subset(mut self, count: usize) -> Result<Value, ApiError> {
        let list = PublishRequest {
            fun: "sys.list_functions".into(),
            arg: Vec::new(),
            ret: String::new(),
            jid: None,
            ..self.request.clone()
        };
        let functions: Vec<Value> = match &self.request.fun {
            Value::List(all) => all.clone(),
            one => vec![one.clone()],
        };
        let mut events = self.subscribe();
        let published = self.publish(&list).await?;
        let Some(jid) = published.jid else { return Ok(Value::map()) };
        let mut able: Vec<String> = Vec::new();
        for outcome in self.collect(&mut events, &jid, published.minions).await? {
            if let Outcome::Returned(one) = outcome {
                let known = one.value().as_list().unwrap_or_default();
                if functions.iter().all(|fun| known.contains(fun)) {
                    able.push(one.id().to_string());
                }
            }
        }
        able.shuffle(&mut rand::rng());
        able.truncate(count);
        self.request.tgt = able.into();
        TargetKind::List.name().clone_into(&mut self.request.tgt_type);
        self.run().await
    }

    /// Runs the job in batches, on the minions that answer a ping. Returns the results in order of arrival.
    pub async fn batch(
        self,
        size: &str,
        wait_time: Duration,
        failhard: bool,
    ) -> Result<Vec<(String, Value)>, ApiError> {
        batch_size(size, 1).map_err(ApiError::bad_request)?;
        let ping = PublishRequest {
            fun: "test.ping".into(),
            arg: Vec::new(),
            ret: String::new(),
            jid: None,
            ..self.request.clone()
        };
        let mut events = self.subscribe();
        let published = self.publish(&ping).await?;
        let Some(jid) = published.jid else { return Ok(Vec::new()) };
        let mut minions: Vec<String> = Vec::new();
        for outcome in self.collect(&mut events, &jid, published.minions).await? {
            if let Outcome::Returned(one) = outcome {
                minions.push(one.id().to_string());
            }
        }
        minions.sort();
        if minions.is_empty() {
            return Ok(Vec::new());
        }
        let size = batch_size(size, minions.len()).map_err(ApiError::bad_request)?;
        let jid = self.request.jid.clone().unwrap_or_default();
        let batch = Batch { size, wait: wait_time, failhard };
        let mut driver = Driver::in_batches(jid.clone(), "", minions, batch, self.times, Instant::now());
        let mut returned = Vec::new();
        loop {
            match driver.next(Instant::now()) {
                Step::Publish(ids) => {
                    let request = PublishRequest {
                        tgt: ids.into(),
                        tgt_type: TargetKind::List.name().to_owned(),
                        jid: Some(jid.clone()),
                        ..self.request.clone()
                    };
                    let published = self.publish(&request).await?;
                    driver.published(&published.minions, Instant::now());
                }
                Step::Ask(request) => self.ask(&mut driver, *request).await?,
                Step::Missing(ids) => {
                    returned.extend(ids.into_iter().map(|id| self.shown(&jid, Outcome::Missing(id))));
                }
                Step::Wait(until) => {
                    let outcome = wait(&mut driver, &mut events, until).await;
                    returned.extend(outcome.map(|outcome| self.shown(&jid, outcome)));
                }
                Step::End => return Ok(returned),
            }
        }
    }
}

/// Waits for the next event, until this time at the latest. Returns the minion's return, if it is one.
async fn wait(driver: &mut Driver, events: &mut Subscription, until: Instant) -> Option<Outcome> {
    let item = tokio::time::timeout_at(until, events.next()).await.ok()?;
    let (id, data) = driver.take(&item.event, Instant::now())?;
    match Return::from_map(data) {
        Ok(one) => Some(Outcome::Returned(Box::new(one))),
        Err(error) => {
            tracing::error!(minion = id, %error, "return is invalid");
            None
        }
    }
}
