//! The interface of orchestration states to the master: jobs, runner and wheel functions, events.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use brine_bus::{Filter, Start};
use brine_function::Args;
use brine_ids::Jid;
use brine_job::orchestration::{Called, MasterAccess, MinionResult, OrchestratedJob};
use brine_job::{Batch, Driver, batch_size};
use brine_mask::Mask;
use brine_value::{Map, Value};
use brine_wire::PublishRequest;
use rand::seq::SliceRandom;
use tokio::time::Instant;

use super::Jobs;
use super::checkpoint::Checkpoint;
use super::run::{Progress, Run};
use crate::events::Events;
use crate::runner_calls::{Caller, Kind, RunnerCalls};

/// The error of a state in an orchestration that another member of the cluster has taken over.
pub(crate) const ELSEWHERE: &str = "another master of the cluster has taken over this orchestration";

/// The services of the master for one orchestration.
pub(crate) struct Orchestrator {
    pub jobs: Arc<Jobs>,
    pub calls: Arc<RunnerCalls>,
    pub events: Events,
    /// The runner call of the orchestration.
    pub caller: Caller,
    /// The orchestration's progress in a cluster.
    pub checkpoint: Option<Arc<Checkpoint>>,
    /// Whether the events of its states are published. As in Salt, they are not for a single state.
    pub publishes: bool,
}

impl MasterAccess for Orchestrator {
    fn ask(&self, ask: OrchestratedJob) -> Result<Vec<MinionResult>, String> {
        let mut ask = ask;
        ask.request.user.clone_from(&self.caller.user);
        ask.request.kwargs.extend(self.caller.cause.clone());
        self.caller.thread.wait(async {
            let Some(checkpoint) = self.checkpoint.as_ref().filter(|_| ask.batch.is_none() && ask.subset.is_none())
            else {
                return self.jobs.run_to_end(ask).await;
            };
            let earlier = checkpoint.take_interrupted_job(&ask.request);
            let published = match &earlier {
                Some(jid) => self.jobs.published_minions(jid).await,
                None => None,
            };
            let jid = earlier.or_else(|| ask.request.jid.clone()).unwrap_or_default();
            let answers = if let Some(minions) = published {
                self.jobs.attach(ask, jid.clone(), minions).await
            } else {
                if !checkpoint.store_job(&ask.request, &jid).await {
                    return Err(ELSEWHERE.to_owned());
                }
                ask.request.jid = Some(jid.clone());
                self.jobs.run_to_end(ask).await
            };
            checkpoint.job_ended(jid);
            answers
        })
    }

    fn runner(&self, function: &str, args: Args) -> Called {
        self.call(Kind::Runner, function, args)
    }

    fn wheel(&self, function: &str, args: Args) -> Called {
        self.call(Kind::Wheel, function, args)
    }

    fn follow(&self, timeout: Duration, seen: &mut dyn FnMut(&str, &Map) -> bool) -> Result<bool, String> {
        let subscribed = self.events.bus.subscribe(Filter::All, Start::Now);
        let mut events = subscribed.map_err(|error| error.to_string())?;
        let follow = async {
            while let Some(event) = events.recv().await {
                if seen(event.tag(), &event.data()) {
                    return true;
                }
            }
            false
        };
        Ok(self.caller.thread.wait(async { tokio::time::timeout(timeout, follow).await.unwrap_or(false) }))
    }

    fn stored_result(&self, tag: &str) -> Option<Map> {
        self.checkpoint.as_ref()?.earlier(tag)
    }

    fn store_result(&self, tag: &str, result: &Map) -> bool {
        self.checkpoint.as_ref().is_none_or(|checkpoint| self.caller.thread.wait(checkpoint.store_result(tag, result)))
    }

    fn publish_progress(&self, what: &str, mut body: Map) {
        if !self.publishes {
            return;
        }
        mask_arguments(&self.jobs.mask, &mut body);
        self.caller.mark(&mut body);
        self.caller.thread.wait(self.events.fire(&format!("salt/run/{}/{what}", self.caller.jid), &body));
    }
}

/// Masks the arguments in an event about a state of an orchestration. The field `name` is the function.
fn mask_arguments(mask: &Mask, body: &mut Map) {
    let function = body.get("name").map(ToString::to_string).unwrap_or_default();
    let Some(Value::Map(args)) = body.get_mut("args") else { return };
    if let Some(positional) = args.get("arg").and_then(Value::as_list).and_then(|arg| mask.arguments(&function, arg)) {
        args.insert("arg".into(), positional.into());
    }
    if let Some(masked) = mask.mapping(&function, args) {
        *args = masked;
    }
}

impl Orchestrator {
    fn call(&self, kind: Kind, function: &str, args: Args) -> Called {
        let (jid, mut answer) = self.calls.call_within(kind, function, args, &self.caller);
        let data = answer.shift_remove("data").unwrap_or_default();
        let success = data.get("success").is_some_and(Value::is_truthy);
        Called { jid, value: data.get("return").cloned().unwrap_or_default(), success }
    }
}

impl Jobs {
    /// Runs a job to its end: until every minion has returned or does not run it any more.
    pub(super) async fn run_to_end(self: &Arc<Self>, ask: OrchestratedJob) -> Result<Vec<MinionResult>, String> {
        let OrchestratedJob { request, timeout, batch, failhard, subset } = ask;
        let timeout = timeout.unwrap_or(self.config.timeout.seconds());
        let events = self.subscribe(Vec::new())?;
        if batch.is_none() && subset.is_none() {
            let published = self.publish(request.clone()).await.map_err(|error| error.to_string())?;
            let Some(jid) = published.jid else { return Ok(Vec::new()) };
            let (minions, now) = (published.minions.clone(), Instant::now());
            let driver = Driver::of_published(jid, &request.user, minions, self.times(timeout), now);
            let driver = driver.with_syndics(published.syndics, now);
            let ids: Vec<String> = published.minions.into_iter().chain(published.missing).collect();
            return self.collect(Run::new(Arc::clone(self), events, driver), &request, ids, HashMap::new()).await;
        }
        // Minions that do not answer a ping are left out.
        let ping =
            PublishRequest { fun: brine_auth::PING.into(), arg: Vec::new(), ret: String::new(), ..request.clone() };
        let present = self.publish_and_wait(ping, timeout).await.map_err(|error| error.to_string())?;
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
    async fn attach(
        self: &Arc<Self>,
        ask: OrchestratedJob,
        jid: Jid,
        ids: Vec<String>,
    ) -> Result<Vec<MinionResult>, String> {
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
    ) -> Result<Vec<MinionResult>, String> {
        // The minions of syndics, which are known only from reports and returns.
        let (known, mut below): (HashSet<String>, _) = (ids.iter().cloned().collect(), Vec::new());
        loop {
            match run.next().await {
                Progress::Due(minions) => {
                    self.publish_part(&mut run.driver, request, &minions).await.map_err(|error| error.to_string())?;
                }
                Progress::Returned(id, data) => {
                    below.extend(Some(&id).filter(|id| !known.contains(*id)).cloned());
                    returned.insert(id, data);
                }
                Progress::Missing(missing) => below.extend(missing.into_iter().filter(|id| !known.contains(id))),
                Progress::Event(_) => {}
                Progress::Ended | Progress::Stopping => break,
            }
        }
        let jid = run.driver.jid();
        let ids = ids.into_iter().chain(below).filter(|id| !run.driver.pending().contains(id));
        Ok(ids.map(|id| MinionResult { returned: returned.remove(&id), jid: jid.clone(), id }).collect())
    }
}

#[cfg(test)]
mod tests {
    use brine_mask::MASK;
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn arguments_of_states_are_masked_in_their_events() {
        let event = |value: &str| {
            let args = map! {"arg" => list![format!("token={value}")], "kwarg" => map! {"env" => map! {"DB_PASSWORD" => value}}};
            map! {"type" => "function", "name" => "cmd.run", "tgt" => "m1", "args" => args}
        };
        let mut body = event("x");
        mask_arguments(&Mask::default(), &mut body);
        assert_eq!(body, event(MASK));
    }
}
