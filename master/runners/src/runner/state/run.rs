//! Runs of the state system on the master's host.

use std::sync::Arc;

use brine_function::{Args, CallError};
use brine_ids::Jid;
use brine_job::orchestration::{MasterAccess, OrchestrationError};
use brine_job::plan::Steps;
use brine_master_calls::orchestration::Orchestrator;
use brine_master_custom::Orchestrated;
use brine_master_jobs::checkpoint::Checkpoint;
use brine_value::Value;

use crate::runner::RunnerContext;

/// Runs a state function on the master's host.
pub(super) fn run(
    context: &RunnerContext,
    function: &str,
    positional: Vec<Value>,
    keyword: impl IntoIterator<Item = (impl Into<Value>, Value)>,
    pillar: Value,
) -> Result<Orchestrated, CallError> {
    Run::default().call(context, function, positional, keyword, pillar)
}

/// A run of a state function on the master's host.
#[derive(Default)]
pub(super) struct Run {
    /// The job id; that of the call by default.
    pub jid: Option<String>,
    /// The plan that it makes or applies.
    pub plan: Option<Arc<Steps>>,
}

impl Run {
    pub(super) fn call(
        self,
        context: &RunnerContext,
        function: &str,
        positional: Vec<Value>,
        keyword: impl IntoIterator<Item = (impl Into<Value>, Value)>,
        pillar: Value,
    ) -> Result<Orchestrated, CallError> {
        if !matches!(pillar, Value::Nil | Value::Map(_)) {
            return Err(CallError::execution("Pillar data must be formatted as a dictionary"));
        }
        let keyword = keyword.into_iter().map(|(name, value)| (name.into(), value));
        // An orchestration runs beside state runs. What `state.single` is given, is an argument of the state as well.
        let concurrent = if function == "state.single" { Value::Nil } else { true.into() };
        let keyword = keyword.chain([("pillar".into(), pillar), ("concurrent".into(), concurrent)]);
        let keyword = keyword.filter(|(_, value)| !value.is_nil()).collect();
        let jid = match self.jid {
            Some(jid) => jid.parse::<Jid>().map_err(CallError::execution)?,
            None => context.caller.jid.clone(),
        };
        let caller = brine_master_calls::Caller { jid: jid.clone(), ..context.caller.clone() };
        let (jobs, calls) = (Arc::clone(&context.master.jobs), Arc::clone(&context.calls));
        let (events, publishes) = (context.master.events.clone(), function != "state.single");
        // The groups of a plan are in memory: a successor would begin with the first step.
        let makes_plan = self.plan.as_ref().is_some_and(|plan| plan.makes_plan());
        let checkpoint = match context.calls.orchestration(&context.caller.jid).filter(|_| !makes_plan) {
            Some((_, Some(resumed))) => Some(resumed),
            Some((call, None)) => context.wait(Checkpoint::open(&jobs, &context.caller.jid, call)).map(Arc::new),
            None => None,
        };
        if let Some(checkpoint) = &checkpoint {
            context.wait(jobs.wait_for_minions_of(checkpoint));
        }
        let orchestrator =
            Orchestrator { jobs, calls, events, caller, checkpoint: checkpoint.clone(), plan: self.plan, publishes };
        let master: Arc<dyn MasterAccess> = Arc::new(orchestrator);
        let result = context.host()?.orchestrate(function, Args { positional, keyword }, &jid, master);
        if let Some(checkpoint) = checkpoint {
            if checkpoint.is_elsewhere() {
                context.calls.hand_over(&context.caller.jid);
                return Err(CallError::execution(OrchestrationError::TakenOver));
            }
            context.wait(checkpoint.end());
        }
        result
    }
}
