//! `publish`: jobs and runner functions that a minion requests from the master, as far as the master's options
//! `peer` and `peer_run` allow it.

use std::time::{Duration, Instant};

use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};

/// Poll interval for returns of a job.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `publish`.
pub static FUNCTIONS: Functions<Context> = registry!("publish", [publish, full_data, runner]);

/// The arguments of a job for other minions.
#[derive(Args)]
pub struct JobArgs {
    /// Target: which minions.
    tgt: Value,
    /// Full name of the execution function.
    fun: String,
    /// Positional arguments of the function.
    #[default]
    arg: Value,
    /// Type of the target: `glob`, `list`, `grain`, `compound`, ...
    #[default("glob".into())]
    tgt_type: String,
    /// Returners to which the minions send their returns, too.
    #[default]
    returner: String,
    /// Seconds to wait for returns.
    #[default(5)]
    timeout: u64,
}

impl JobArgs {
    fn ask(self, context: &Context) -> Result<Map, CallError> {
        let load = map! {
            "cmd" => "minion_pub", "fun" => self.fun, "arg" => listed(self.arg), "tgt" => self.tgt,
            "tgt_type" => self.tgt_type, "ret" => self.returner, "form" => "clean",
        };
        publish_and_wait(context, &load, self.timeout)
    }
}

/// Publish a job for other minions, and wait up to `timeout` seconds for their returns. Nothing is returned if the
/// master does not allow it.
///
/// CLI Example:
///
///     salt web1 publish.publish 'db*' test.ping
#[function]
pub fn publish(context: &Context, #[args] args: JobArgs) -> CallResult {
    let returned = args.ask(context)?;
    let clean = returned.into_iter().map(|(id, one)| (id, one.get("ret").cloned().unwrap_or_default()));
    Ok(Value::Map(clean.collect()))
}

/// Publish a job as `publish`, and return all details of each return.
///
/// CLI Example:
///
///     salt web1 publish.full_data 'db*' test.ping
#[function]
pub fn full_data(context: &Context, #[args] args: JobArgs) -> CallResult {
    args.ask(context).map(Value::Map)
}

/// Run a runner function on the master.
///
/// CLI Example:
///
///     salt web1 publish.runner manage.down
#[function]
pub fn runner(
    context: &Context,
    /// Name of the runner function.
    fun: String,
    /// Arguments of the function, as a list or with commas.
    #[default]
    arg: Value,
    /// Seconds to wait for the result.
    #[default(5)]
    timeout: u64,
) -> CallResult {
    let load = map! {"cmd" => "minion_runner", "fun" => fun, "arg" => listed(arg), "tmo" => timeout};
    context.minion.upstream.ask(load).map_err(CallError::execution)
}

/// Returns an argument as a list.
fn listed(arg: Value) -> Value {
    match arg {
        Value::Nil => Value::List(Vec::new()),
        Value::List(_) => arg,
        one => Value::List(vec![one]),
    }
}

fn publish_and_wait(context: &Context, job: &Map, timeout: u64) -> Result<Map, CallError> {
    let mut load = job.clone();
    load.insert("tmo".into(), timeout.into());
    let published = context.minion.upstream.ask(load).map_err(CallError::execution)?;
    let Some(jid) = published.get("jid").filter(|jid| jid.is_truthy()) else { return Ok(Map::new()) };
    let expected = published.get("minions").and_then(Value::as_list).unwrap_or_default();
    let begun = Instant::now();
    loop {
        let asked = context.minion.upstream.ask(map! {"cmd" => "pub_ret", "jid" => jid.clone()});
        let returned = asked.map_err(CallError::execution)?.as_map().cloned().unwrap_or_default();
        let all = expected.iter().all(|id| returned.contains_key(id));
        if all || begun.elapsed() >= Duration::from_secs(timeout) || context.job.cancel.is_cancelled() {
            return Ok(returned);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}
