//! `batch`: jobs in batches that the master runs.

use brine_core::function::CallError;
use brine_core::wire::PublishRequest;
use brine_core::{Map, Value, functions, map};

use super::RunnerContext;
use crate::batches::Wanted;

functions! {
    module "batch", context RunnerContext;

    /// Starts a job in batches and gives its job id, the minions that take part, and those that do not answer.
    /// `salt --batch-size 10 --async` does it.
    ///
    /// CLI Example:
    ///
    ///     salt-run batch.start '*' state.apply batch=10%
    fn start(context, tgt: Value, fun: Value, arg: Vec<Value> = Vec::new(), tgt_type: String = "glob".into(), batch: String = "1".into(), failhard: bool = false, batch_wait: f64 = 0.0, timeout: Option<u64> = None, ret: String = String::new(), kwargs: Map = Map::new()) {
        let request = PublishRequest { tgt, tgt_type, fun, arg, ret, kwargs, ..PublishRequest::new("", "", &context.caller.user) };
        let timeout = timeout.unwrap_or(context.master.config.timeout);
        let wanted = Wanted { request, size: batch, failhard, wait: batch_wait, timeout };
        let (jid, minions, missing) = context.wait(context.master.start_batch(wanted)).map_err(CallError::Execution)?;
        Ok(map! {"jid" => jid.map(|jid| jid.to_string()), "minions" => minions, "missing" => missing}.into())
    }

    /// How far a batch is; nothing if there is none of this job id.
    ///
    /// CLI Example:
    ///
    ///     salt-run batch.status 20261120235852025555
    fn status(context, jid: Value) {
        Ok(context.master.batches.get(&jid.to_string()).map_or(Value::Nil, |state| state.summary().into()))
    }

    /// How far the batches are that run.
    ///
    /// CLI Example:
    ///
    ///     salt-run batch.list_active
    fn list_active(context) {
        Ok(context.master.batches.active().iter().map(|state| Value::Map(state.summary())).collect())
    }

    /// Stops a batch: no further minions are asked. With `kill`, those that work are told to end, too. Gives false
    /// if no such batch runs.
    ///
    /// CLI Example:
    ///
    ///     salt-run batch.stop 20261120235852025555
    ///     salt-run batch.stop 20261120235852025555 kill=True
    fn stop(context, jid: Value, kill: bool = false) {
        let jid = jid.to_string();
        let Some(state) = context.master.batches.active().into_iter().find(|state| state.jid.as_str() == jid) else {
            return Ok(false.into());
        };
        if kill {
            let request = state.kill_request(&context.caller.user);
            context.wait(context.master.publish(request)).map_err(CallError::execution)?;
        }
        let body = map! {"jid" => &jid, "reason" => "stop"};
        context.wait(context.master.fire(&format!("salt/batch/{jid}/stop"), &body));
        Ok(true.into())
    }
}
