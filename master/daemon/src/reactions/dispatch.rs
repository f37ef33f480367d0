//! Carries out the reactions of the master's reactor: jobs, runner and wheel calls.

use std::sync::Arc;

use brine_function::Args;
use brine_master_calls::{REACTOR, RunnerCalls};
use brine_master_custom::Kind;
use brine_master_jobs::{Jobs, PublishError};
use brine_reactor::{Cause, Dispatch, DispatchError, Dispatched, LocalReaction, Reaction};
use brine_value::Value;
use brine_wire::PublishRequest;
use futures::future::BoxFuture;

use crate::metrics;

/// Dispatches reactions through the jobs and runner calls of the master.
pub(crate) struct MasterDispatch {
    pub jobs: Arc<Jobs>,
    pub calls: Arc<RunnerCalls>,
}

impl Dispatch for MasterDispatch {
    fn check(&self, reaction: &Reaction) -> Result<(), DispatchError> {
        let exists = match reaction {
            Reaction::Local(_) => true,
            Reaction::Runner { fun, .. } => self.calls.has(Kind::Runner, fun),
            Reaction::Wheel { fun, .. } => self.calls.has(Kind::Wheel, fun),
            Reaction::Caller { .. } => {
                return Err(DispatchError::permanent(
                    "'caller' works in a minion's reactor, this is the master's: use local",
                ));
            }
        };
        if exists {
            Ok(())
        } else {
            let (fun, is_wheel) = (reaction.fun(), matches!(reaction, Reaction::Wheel { .. }));
            let near = self.calls.nearest(if is_wheel { Kind::Wheel } else { Kind::Runner }, fun);
            let near = near.map(|near| format!("; did you mean '{near}'?")).unwrap_or_default();
            Err(DispatchError::permanent(format!(
                "'{fun}' is not available: `salt-run doc.{}` lists the available functions{near}",
                if is_wheel { "wheel" } else { "runner" }
            )))
        }
    }

    fn dispatch(&self, reaction: Reaction, cause: Cause) -> BoxFuture<'_, Result<Dispatched, DispatchError>> {
        Box::pin(async move {
            if cause.prior.as_ref().is_some_and(|prior| prior.ended) {
                metrics::REACTIONS_KNOWN.add(1);
                return Ok(Dispatched::Done);
            }
            match reaction {
                Reaction::Local(local) => self.publish(local, &cause).await,
                Reaction::Runner { fun, args } => self.call(Kind::Runner, &fun, args, &cause).await,
                Reaction::Wheel { fun, args } => self.call(Kind::Wheel, &fun, args, &cause).await,
                Reaction::Caller { .. } => self.check(&reaction).map(|()| Dispatched::Done),
            }
        })
    }
}

impl MasterDispatch {
    async fn publish(&self, local: LocalReaction, cause: &Cause) -> Result<Dispatched, DispatchError> {
        let mut kwargs = cause.fields();
        kwargs.extend(local.options);
        let request = PublishRequest {
            tgt: local.tgt,
            tgt_type: local.tgt_type,
            fun: local.fun.into(),
            arg: local.args.to_wire(),
            ret: local.ret,
            jid: None,
            key: None,
            proof: None,
            user: REACTOR.to_owned(),
            kwargs,
        };
        let target = format!("target '{}' ({})", request.tgt, request.tgt_type);
        let published = match &cause.prior {
            Some(prior) => self.jobs.publish_again(request, prior.jid.clone()).await,
            None => self.jobs.publish_as(request, cause.jid.clone()).await,
        };
        let published = published.map_err(|error| match error {
            PublishError::Failed(message) => DispatchError::transient(message),
            other => DispatchError::permanent(other.to_string()),
        })?;
        if published.jid.is_none() {
            tracing::warn!(tag = &*cause.tag, target, "target of a reaction matches no accepted minion");
            return Ok(Dispatched::NoMinion { target });
        }
        Ok(Dispatched::Done)
    }

    async fn call(&self, kind: Kind, fun: &str, args: Args, cause: &Cause) -> Result<Dispatched, DispatchError> {
        let data = self.calls.call_for_reaction(kind, fun, args, cause).await;
        if data.get("success").is_some_and(Value::is_truthy) {
            return Ok(Dispatched::Done);
        }
        Err(DispatchError::permanent(data.get("return").map(ToString::to_string).unwrap_or_default()))
    }
}
