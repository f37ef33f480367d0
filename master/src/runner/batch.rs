//! `batch`: jobs in batches that the master runs.

use brine_function::{CallError, functions};
use brine_value::{Map, Value, map};
use brine_wire::PublishRequest;

use super::RunnerContext;
use crate::batches::Wanted;

functions! {
    module "batch", context RunnerContext;

    /// Start a job in batches and return its job id, the minions that take part, and those that do not answer.
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

    /// Return the progress of a batch; nothing if there is none of this job id.
    ///
    /// jid: the job id of the batch.
    ///
    /// CLI Example:
    ///
    ///     salt-run batch.status 20261120235852025555
    fn status(context, jid: Value) {
        let (batches, jid) = (&context.master.batches, jid.to_string());
        let own = batches.get(&jid).map(|state| state.summary());
        Ok(own.or_else(|| Some(batches.followed.get(&jid)?.summary())).map_or(Value::Nil, Value::Map))
    }

    /// Return the progress of the batches that run.
    ///
    /// CLI Example:
    ///
    ///     salt-run batch.list_active
    fn list_active(context) {
        let batches = &context.master.batches;
        let own = batches.active().into_iter().map(|state| state.summary());
        let followed = batches.followed.active().into_iter().map(|state| state.summary());
        let mut all: Vec<Map> = own.chain(followed).collect();
        all.sort_by_key(|summary| summary.get("jid").map(ToString::to_string));
        Ok(all.into_iter().map(Value::Map).collect())
    }

    /// Stop a batch: no more minions are asked. Returns False if no such batch runs.
    ///
    /// jid: the job id of the batch. kill: whether the job is ended on the minions that work on it (False).
    ///
    /// CLI Example:
    ///
    ///     salt-run batch.stop 20261120235852025555
    ///     salt-run batch.stop 20261120235852025555 kill=True
    fn stop(context, jid: Value, kill: bool = false) {
        let jid = jid.to_string();
        let (batches, user) = (&context.master.batches, &context.caller.user);
        let own = batches.active().into_iter().find(|state| state.jid.as_str() == jid);
        let followed = || batches.followed.active_one(&jid);
        let request = match own.map(|state| state.kill_request(user)) {
            Some(request) => request,
            None => match followed() {
                Some(state) => state.kill_request(user),
                None => return Ok(false.into()),
            },
        };
        if kill {
            context.wait(context.master.publish(request)).map_err(CallError::execution)?;
        }
        let body = map! {"jid" => &jid, "reason" => "stop"};
        context.wait(context.master.fire(&format!("salt/batch/{jid}/stop"), &body));
        Ok(true.into())
    }
}
