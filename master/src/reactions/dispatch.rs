//! Where the reactions of the master's reactor go: jobs, runner and wheel calls.

use std::sync::Arc;

use brine_function::Args;
use brine_reactor::{Cause, Dispatch, DispatchError, Dispatched, LocalReaction, Reaction};
use brine_value::Value;
use brine_wire::PublishRequest;

use super::USER;
use crate::Shared;
use crate::calls::Kind;
use crate::metrics;
use crate::publish::PublishError;

pub(crate) struct MasterDispatch(pub Arc<Shared>);

impl Dispatch for MasterDispatch {
    fn check(&self, reaction: &Reaction) -> Result<(), DispatchError> {
        let known = match reaction {
            Reaction::Local(_) => true,
            Reaction::Runner { fun, .. } => self.0.has_call(Kind::Runner, fun),
            Reaction::Wheel { fun, .. } => self.0.has_call(Kind::Wheel, fun),
            Reaction::Caller { .. } => {
                return Err(DispatchError::lasting(
                    "'caller' works in a minion's reactor, this is the master's: use local",
                ));
            }
        };
        if known {
            Ok(())
        } else {
            Err(DispatchError::lasting(format!(
                "'{}' is not available: `salt-run doc.{}` lists what is",
                reaction.fun(),
                if matches!(reaction, Reaction::Wheel { .. }) { "wheel" } else { "runner" }
            )))
        }
    }

    async fn dispatch(&self, reaction: Reaction, cause: Cause) -> Result<Dispatched, DispatchError> {
        if cause.before.as_ref().is_some_and(|before| before.ended) {
            metrics::REACTIONS_KNOWN.add(1);
            return Ok(Dispatched::Done);
        }
        match reaction {
            Reaction::Local(local) => self.publish(local, &cause).await,
            Reaction::Runner { fun, args } => self.call(Kind::Runner, &fun, args, &cause).await,
            Reaction::Wheel { fun, args } => self.call(Kind::Wheel, &fun, args, &cause).await,
            Reaction::Caller { .. } => self.check(&reaction).map(|()| Dispatched::Done),
        }
    }
}

impl MasterDispatch {
    async fn publish(&self, local: LocalReaction, cause: &Cause) -> Result<Dispatched, DispatchError> {
        let mut kwargs = cause.fields();
        if let Some(metadata) = local.metadata {
            kwargs.insert("metadata".into(), metadata);
        }
        let request = PublishRequest {
            tgt: local.tgt,
            tgt_type: local.tgt_type,
            fun: local.fun.into(),
            arg: local.args.to_wire(),
            ret: local.ret,
            jid: None,
            key: None,
            proof: None,
            user: USER.to_owned(),
            kwargs,
        };
        let target = format!("target '{}' ({})", request.tgt, request.tgt_type);
        let published = match &cause.before {
            Some(before) => self.0.publish_again(request, before.jid.clone()).await,
            None => self.0.publish(request).await,
        };
        let published = published.map_err(|error| match error {
            PublishError::Failed(message) => DispatchError::passing(message),
            other => DispatchError::lasting(other.to_string()),
        })?;
        if published.jid.is_none() {
            tracing::warn!(tag = &*cause.tag, target, "a reaction is for minions of which none is known");
            return Ok(Dispatched::NoMinion { target });
        }
        Ok(Dispatched::Done)
    }

    async fn call(&self, kind: Kind, fun: &str, args: Args, cause: &Cause) -> Result<Dispatched, DispatchError> {
        let data = self.0.call_for(kind, fun, args, cause).await;
        if data.get("success").is_some_and(Value::is_truthy) {
            return Ok(Dispatched::Done);
        }
        Err(DispatchError::lasting(data.get("return").map(ToString::to_string).unwrap_or_default()))
    }
}
