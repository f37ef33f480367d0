//! What an orchestration's states ask of this master: jobs that are waited for as long as minions work on them,
//! runner and wheel functions, events.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use brine_bus::{Filter, Start};
use brine_function::Args;
use brine_ids::Jid;
use brine_job::orchestration::{Answer, Ask, Called, MasterAccess};
use brine_job::{Times, Watch, batch_size};
use brine_value::{Map, Value};
use brine_wire::PublishRequest;
use rand::seq::SliceRandom;
use tokio::time::Instant;

use crate::Shared;
use crate::calls::{Caller, Kind};

/// The master, for one orchestration.
pub(crate) struct Orchestrator {
    pub shared: Arc<Shared>,
    /// The runner call that the orchestration is.
    pub caller: Caller,
    /// Whether what its states do is told on the bus: not of a single state, as in Salt.
    pub tells: bool,
}

impl MasterAccess for Orchestrator {
    fn ask(&self, ask: Ask) -> Result<Vec<Answer>, String> {
        self.caller.thread.wait(self.ask_all(ask))
    }

    fn runner(&self, function: &str, args: Args) -> Called {
        self.call(Kind::Runner, function, args)
    }

    fn wheel(&self, function: &str, args: Args) -> Called {
        self.call(Kind::Wheel, function, args)
    }

    fn follow(&self, timeout: Duration, seen: &mut dyn FnMut(&str, &Map) -> bool) -> Result<bool, String> {
        let subscribed = self.shared.bus.subscribe(Filter::All, Start::Now);
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

    fn tell(&self, what: &str, mut body: Map) {
        if !self.tells {
            return;
        }
        self.caller.mark(&mut body);
        self.caller.thread.wait(self.shared.fire(&format!("salt/run/{}/{what}", self.caller.jid), &body));
    }
}

impl Orchestrator {
    fn call(&self, kind: Kind, function: &str, args: Args) -> Called {
        let (jid, mut answer) = self.shared.call_within(kind, function, args, &self.caller);
        let data = answer.shift_remove("data").unwrap_or_default();
        let success = data.get("success").is_some_and(Value::is_truthy);
        Called { jid, value: data.get("return").cloned().unwrap_or_default(), success }
    }

    async fn ask_all(&self, ask: Ask) -> Result<Vec<Answer>, String> {
        let Ask { mut request, timeout, batch, failhard, subset } = ask;
        request.user.clone_from(&self.caller.user);
        request.kwargs.extend(self.caller.caused.clone());
        let timeout = timeout.unwrap_or(Duration::from_secs(self.shared.config.timeout));
        if batch.is_none() && subset.is_none() {
            return self.watch(request, timeout).await;
        }
        // Who does not answer a ping is not counted among those to choose from.
        let ping = PublishRequest { fun: "test.ping".into(), arg: Vec::new(), ret: String::new(), ..request.clone() };
        let there = self.shared.ask(ping, timeout).await.map_err(|error| error.to_string())?;
        let mut ids: Vec<String> = there.returned.into_iter().map(|(id, _)| id).collect();
        if let Some(subset) = subset {
            ids.shuffle(&mut rand::rng());
            ids.truncate(subset);
        }
        ids.sort();
        let size = match batch {
            Some(batch) => batch_size(&batch, ids.len())?,
            None => ids.len().max(1),
        };
        let mut answers = Vec::new();
        // As of `salt -b`: one job id for all parts.
        let jid = Jid::new();
        for now in ids.chunks(size) {
            let tgt = now.iter().map(String::as_str).collect();
            let request = PublishRequest { tgt, tgt_type: "list".into(), jid: Some(jid.clone()), ..request.clone() };
            answers.extend(self.watch(request, timeout).await?);
            if failhard && answers.iter().any(has_failed) {
                break;
            }
        }
        Ok(answers)
    }

    /// Publishes a job and waits for its returns as long as minions work on it.
    async fn watch(&self, request: PublishRequest, timeout: Duration) -> Result<Vec<Answer>, String> {
        // Before the job goes out: nothing that it leads to may be missed.
        let subscribed = self.shared.bus.subscribe(Filter::prefix("salt/job/"), Start::Now);
        let mut events = subscribed.map_err(|error| error.to_string())?;
        let published = self.shared.publish(request).await.map_err(|error| error.to_string())?;
        let Some(jid) = published.jid else { return Ok(Vec::new()) };
        let times = Times { timeout, gather: Duration::from_secs(self.shared.config.gather_job_timeout) };
        let mut watch = Watch::new(jid.clone(), published.minions.clone(), times, Instant::now());
        let mut returned = HashMap::new();
        while !watch.is_over() {
            match tokio::time::timeout_at(watch.deadline(), events.recv()).await {
                Ok(Some(event)) => returned.extend(watch.take(&event, Instant::now())),
                // The master stops.
                Ok(None) => break,
                Err(_) => self.shared.look_for_silent(&mut watch, &self.caller.user).await.map(drop)?,
            }
        }
        let all = published.minions.into_iter().chain(published.missing);
        Ok(all.map(|id| Answer { returned: returned.remove(&id), jid: jid.clone(), id }).collect())
    }
}

fn has_failed(answer: &Answer) -> bool {
    answer.returned.as_ref().is_none_or(|returned| returned.get("retcode").is_some_and(Value::is_truthy))
}
