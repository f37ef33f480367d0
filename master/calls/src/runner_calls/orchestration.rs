//! The interface of orchestration states to the master: jobs, runner and wheel functions, events.

use std::sync::Arc;
use std::time::Duration;

use brine_bus::{Filter, Start};
use brine_function::Args;
use brine_job::orchestration::{Called, MasterAccess, MinionResult, OrchestratedJob, OrchestrationError, StepPlan};
use brine_job::plan::Steps;
use brine_mask::Mask;
use brine_master_custom::Kind;
use brine_master_jobs::checkpoint::Checkpoint;
use brine_master_jobs::{Jobs, RunError};
use brine_master_store::events::Events;
use brine_value::{Map, Value};

use super::{Caller, RunnerCalls};

/// The services of the master for one orchestration.
pub struct Orchestrator {
    /// The jobs of the master.
    pub jobs: Arc<Jobs>,
    /// The runner and wheel functions.
    pub calls: Arc<RunnerCalls>,
    /// The events of the master.
    pub events: Events,
    /// The runner call of the orchestration.
    pub caller: Caller,
    /// The orchestration's progress in a cluster.
    pub checkpoint: Option<Arc<Checkpoint>>,
    /// The plan that is made or applied.
    pub plan: Option<Arc<Steps>>,
    /// Whether the events of its states are published. As in Salt, they are not for a single state.
    pub publishes: bool,
}

impl MasterAccess for Orchestrator {
    fn ask(&self, ask: OrchestratedJob) -> Result<Vec<MinionResult>, OrchestrationError> {
        let mut ask = ask;
        ask.request.user.clone_from(&self.caller.user);
        ask.request.kwargs.extend(self.caller.cause.clone());
        let failed = |error: RunError| OrchestrationError::Job(error.into());
        self.caller.thread.wait(async {
            let Some(checkpoint) = self.checkpoint.as_ref().filter(|_| ask.batch.is_none() && ask.subset.is_none())
            else {
                return self.jobs.run_to_end(ask).await.map_err(failed);
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
                    return Err(OrchestrationError::TakenOver);
                }
                ask.request.jid = Some(jid.clone());
                self.jobs.run_to_end(ask).await
            };
            checkpoint.job_ended(jid);
            answers.map_err(failed)
        })
    }

    fn step_plan(&self, name: &str) -> StepPlan {
        self.plan.as_ref().map_or(StepPlan::Run, |plan| plan.of(name))
    }

    fn planned(&self, name: &str, results: &[MinionResult]) {
        if let Some(plan) = &self.plan {
            plan.planned(name, results);
        }
    }

    fn runner(&self, function: &str, args: Args) -> Called {
        self.call(Kind::Runner, function, args)
    }

    fn wheel(&self, function: &str, args: Args) -> Called {
        self.call(Kind::Wheel, function, args)
    }

    fn follow(&self, timeout: Duration, seen: &mut dyn FnMut(&str, &Map) -> bool) -> Result<bool, OrchestrationError> {
        let subscribed = self.events.bus.subscribe(Filter::All, Start::Now);
        let mut events = subscribed.map_err(|error| OrchestrationError::Events(error.into()))?;
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
